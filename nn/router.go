package nn

import (
	"math"

	"ridge/internal/pool"
	"ridge/kernel"
)

// Router chooses the experts of a row, and weighs them.
type Router struct {
	Logits Linear // [experts][hidden]
	Score  RouterScore
	// Prefer is added to the scores for the choice alone, one value per expert;
	// nil for none (DeepSeek-V3, section 2.1.2).
	Prefer []float32
	// With Groups, the experts lie in as many groups of equal size, and only those
	// of the TopGroups best can be chosen. A group is as good as the sum of its
	// GroupTop best experts.
	Groups, TopGroups, GroupTop int
	TopK                        int
	Normalize                   bool    // the weights of a row sum to 1
	Scale                       float32 // of the weights, after that
	// PerExpert, if it is not nil, multiplies the weight of each expert as well.
	PerExpert []float32
	Near      float32 // of ScoreSparseMixer
	// WeighInput multiplies what an expert reads, not what it gives (Llama 4).
	WeighInput bool
}

// RouterScore says how the scores of experts come of their logits. A chosen
// expert's weight is its score.
type RouterScore int

// The scores.
const (
	ScoreSoftmax RouterScore = iota // over all experts
	ScoreChosen                     // softmax over the chosen ones
	ScoreSigmoid
	// ScoreSparseMixer chooses one expert after the other; the weight of each is its
	// softmax over those left whose logits are at most 2·Near below its own, as a part
	// of the larger of that and their size (SparseMixer, Liu et al. 2023, arXiv
	// 2310.00811).
	ScoreSparseMixer
)

// choice is which experts a row was given, in the order of their scores, and
// their weights.
type choice struct {
	expert []int32   // [rows][top k]
	weight []float32 // [rows][top k]
}

type routeTask struct {
	r      *Router
	logits *kernel.Acts
	out    *choice
	work   [pool.MaxWorkers]struct {
		order []float32 // what the choice goes by
		_     [40]byte
	}
}

// route chooses the experts of rows by their logits, which are overwritten.
func (e *Exec) route(t *routeTask, r *Router, logits *kernel.Acts, out *choice) {
	n := logits.N * r.TopK
	if cap(out.expert) < n {
		out.expert, out.weight = make([]int32, n), make([]float32, n)
	}
	out.expert, out.weight = out.expert[:n], out.weight[:n]
	t.r, t.logits, t.out = r, logits, out
	e.run(t, 4*logits.N*logits.K)
}

func (t *routeTask) Do(worker, workers int) {
	lo, hi := pool.Split(t.logits.N, worker, workers)
	w := &t.work[worker]
	k := t.r.TopK
	for row := lo; row < hi; row++ {
		t.r.choose(t.out.expert[row*k:][:k], t.out.weight[row*k:][:k], Row(t.logits, row), &w.order)
	}
}

// choose writes the experts of one row and their weights. scores, the row's
// logits, is overwritten; order is scratch. Of equal scores the first wins.
func (r *Router) choose(experts []int32, weights, scores []float32, order *[]float32) {
	by := append((*order)[:0], scores...)
	switch r.Score {
	case ScoreSoftmax:
		kernel.SoftmaxInPlace(scores)
	case ScoreSigmoid:
		for i, v := range scores {
			scores[i] = sigmoid(v)
		}
	}
	// Without more, the order is that of the logits, of which no two become equal.
	if r.Prefer != nil || r.Groups > 1 {
		copy(by, scores)
	}
	*order = by
	if r.Prefer != nil {
		kernel.Add(by, r.Prefer)
	}
	if r.Groups > 1 {
		r.closeGroups(by)
	}
	for i := range experts {
		if r.Score == ScoreSparseMixer {
			experts[i], weights[i] = r.mix(by, scores)
			continue
		}
		best := takeBest(by)
		experts[i], weights[i] = int32(best), scores[best]
	}
	if r.Score == ScoreChosen {
		kernel.SoftmaxInPlace(weights)
	}
	if r.Normalize {
		sum := float32(1e-20) // as the reference code has it: all scores may be 0
		for _, w := range weights {
			sum += w
		}
		kernel.Scale(weights, 1/sum)
	}
	kernel.Scale(weights, r.Scale)
	if r.PerExpert != nil {
		for i, e := range experts {
			weights[i] *= r.PerExpert[e]
		}
	}
}

// mix takes the best expert out of left, and returns it with its weight by
// ScoreSparseMixer. Those that were taken before are not left.
func (r *Router) mix(left, logits []float32) (int32, float32) {
	best := takeBest(left)
	top, sum := logits[best], 1.0
	for i, v := range left {
		size := max(float32(math.Abs(float64(logits[i]))), top)
		if v != taken && !((top-v)/size > 2*r.Near) {
			sum += math.Exp(float64(v - top))
		}
	}
	return int32(best), float32(1 / sum)
}

// taken marks what takeBest has given.
var taken = float32(math.Inf(-1))

// takeBest returns the place of the largest value, and takes it out. Values
// that are no numbers come last.
func takeBest(x []float32) int {
	best := -1
	for i, v := range x {
		if v != taken && (best < 0 || v > x[best] || x[best] != x[best] && v == v) {
			best = i
		}
	}
	if best < 0 { // all that is left is infinitely bad
		best = 0
	}
	x[best] = taken
	return best
}

// closeGroups takes the experts out that are not in one of the best groups.
func (r *Router) closeGroups(by []float32) {
	size := len(by) / r.Groups
	var buf, closed [MaxGroups]float32
	worth := buf[:r.Groups]
	for g := range worth {
		worth[g] = topSum(by[g*size:][:size], r.GroupTop)
	}
	for g := range closed[:r.Groups] {
		closed[g] = 1
	}
	for range r.TopGroups {
		closed[takeBest(worth)] = 0
	}
	for g := range worth {
		if closed[g] == 0 {
			continue
		}
		for i := range by[g*size:][:size] {
			by[g*size+i] = taken
		}
	}
}

// MaxGroups is the largest number of groups of experts.
const MaxGroups = 64

// topSum returns the sum of the n largest of x, n being 1 or 2.
func topSum(x []float32, n int) float32 {
	first, second := taken, taken
	for _, v := range x {
		switch {
		case v > first:
			first, second = v, first
		case v > second:
			second = v
		}
	}
	if n == 1 || len(x) == 1 {
		return first
	}
	return first + second
}

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }
