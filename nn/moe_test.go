package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/weights/tensor"
)

// testMoE is a mixture and its matrices as they are decoded.
type testMoE struct {
	*MoE
	router, sharedGate *matrix
	experts            [][3]*matrix // gate, up, down
	shared             [3]*matrix
}

const (
	moeHidden = 96
	moeFFN    = 96
	moeCount  = 12
)

func newMoE(t testing.TB, r *rand.Rand, typ tensor.DType, route Router, shared bool) *testMoE {
	t.Helper()
	m := &testMoE{MoE: &MoE{Router: route}, router: newMatrix(t, r, tensor.F32, moeCount, moeHidden, true)}
	m.Router.Logits = m.router.Linear
	mlp := func() ([3]*matrix, MLP) {
		p := [3]*matrix{
			newMatrix(t, r, typ, moeFFN, moeHidden, false), newMatrix(t, r, typ, moeFFN, moeHidden, true),
			newMatrix(t, r, typ, moeHidden, moeFFN, true),
		}
		return p, MLP{Gate: p[0].Linear, Up: p[1].Linear, Down: p[2].Linear, Gated: true, Act: SiLU}
	}
	for range moeCount {
		p, e := mlp()
		m.experts, m.Experts = append(m.experts, p), append(m.Experts, e)
	}
	if shared {
		p, e := mlp()
		m.shared, m.Shared = p, &e
		m.sharedGate = newMatrix(t, r, tensor.F32, 1, moeHidden, false)
		m.SharedGate = m.sharedGate.Linear
	}
	return m
}

// mlpOutput is an MLP's output by its definition.
func mlpOutput(p [3]*matrix, x []float64) []float64 {
	h := p[1].times(x)
	for i, g := range p[0].times(x) {
		h[i] *= g / (1 + math.Exp(-g))
	}
	return p[2].times(h)
}

// route is Router.choose by its definition: it returns the weight of every expert.
func (m *testMoE) route(x []float64) []float64 {
	r, s := &m.Router, m.router.times(x)
	softmax := func(x []float64) {
		sum := 0.0
		for i := range x {
			x[i] = math.Exp(x[i])
			sum += x[i]
		}
		for i := range x {
			x[i] /= sum
		}
	}
	switch r.Score {
	case ScoreSoftmax:
		softmax(s)
	case ScoreSigmoid:
		for i := range s {
			s[i] = 1 / (1 + math.Exp(-s[i]))
		}
	}
	by := slices.Clone(s)
	for i := range r.Prefer {
		by[i] += float64(r.Prefer[i])
	}
	if r.Groups > 1 {
		size := len(by) / r.Groups
		worth := make([]float64, r.Groups)
		for g := range worth {
			best := slices.Clone(by[g*size : (g+1)*size])
			slices.Sort(best)
			for _, v := range best[size-r.GroupTop:] {
				worth[g] += v
			}
		}
		for i := range by {
			better := 0
			for _, w := range worth {
				if w > worth[i/size] {
					better++
				}
			}
			if better >= r.TopGroups {
				by[i] = math.Inf(-1)
			}
		}
	}
	order := make([]int, len(by))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmpDown(by[a], by[b]) })
	chosen := order[:r.TopK]
	if r.Score == ScoreSparseMixer {
		return mixed(r, s, chosen)
	}
	weights := make([]float64, r.TopK)
	sum := 0.0
	for i, e := range chosen {
		weights[i] = s[e]
	}
	if r.Score == ScoreChosen {
		softmax(weights)
	}
	for _, w := range weights {
		sum += w
	}
	out := make([]float64, len(by))
	for i, e := range chosen {
		if r.Normalize {
			weights[i] /= sum
		}
		out[e] = weights[i] * float64(r.Scale)
	}
	return out
}

// mixed is ScoreSparseMixer by its definition.
func mixed(r *Router, s []float64, chosen []int) []float64 {
	out := make([]float64, len(s))
	for i, e := range chosen {
		sum := 0.0
		for j, v := range s {
			if near := (s[e]-v)/max(math.Abs(v), s[e]) <= 2*float64(r.Near); near && !slices.Contains(chosen[:i], j) {
				sum += math.Exp(v - s[e])
			}
		}
		out[e] = float64(r.Scale) / sum
	}
	return out
}

func cmpDown(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// output is the mixture's output for a row by its definition.
func (m *testMoE) output(x []float64) []float64 {
	out := make([]float64, moeHidden)
	for e, w := range m.route(x) {
		if w == 0 {
			continue
		}
		in, outer := slices.Clone(x), w
		if m.Router.WeighInput {
			for i := range in {
				in[i] *= w
			}
			outer = 1
		}
		for i, v := range mlpOutput(m.experts[e], in) {
			out[i] += outer * v
		}
	}
	if m.Shared != nil {
		open := 1 / (1 + math.Exp(-m.sharedGate.times(x)[0]))
		for i, v := range mlpOutput(m.shared, x) {
			out[i] += open * v
		}
	}
	return out
}

var routers = map[string]Router{
	"softmax":    {TopK: 3, Scale: 1},
	"normalized": {TopK: 3, Scale: 1, Normalize: true},
	"chosen":     {TopK: 2, Scale: 1, Score: ScoreChosen},
	"sigmoid":    {TopK: 4, Scale: 2.5, Score: ScoreSigmoid, Normalize: true, Prefer: []float32{0, 0.5, -0.3, 0.1, 0, 0.2, -0.1, 0.4, 0, 0, 0.3, -0.5}},
	"groups":     {TopK: 3, Scale: 1, Groups: 4, TopGroups: 2, GroupTop: 1},
	"group sums": {TopK: 3, Scale: 1, Score: ScoreSigmoid, Groups: 3, TopGroups: 1, GroupTop: 2},
	"mixer":      {TopK: 2, Scale: 1, Score: ScoreSparseMixer, Near: 0.3},
	"top 1":      {TopK: 1, Scale: 1, Score: ScoreSigmoid, WeighInput: true},
}

// What a mixture adds is what its definition says, for every router, alone and in
// a batch with the same bits, on any number of workers.
func TestMoE(t *testing.T) {
	for name, route := range routers {
		for _, typ := range execTypes {
			t.Run(fmt.Sprintf("%s/%v", name, typ), func(t *testing.T) {
				r := rand.New(rand.NewPCG(7, uint64(typ)))
				m := newMoE(t, r, typ, route, name == "softmax" || name == "sigmoid")
				x := randomActs(r, 12, moeHidden)
				want := make([][]float64, x.N)
				for i := range want {
					want[i] = m.output(values(x, i))
				}
				withWorkers(t, func(e *Exec) []*kernel.Acts {
					out := feed(e, m.MoE, x, 0, x.N)
					for i := range x.N {
						near(t, "mixture", out, i, want[i], typ != tensor.F32)
						alone := feed(e, m.MoE, x, i, 1)
						if !slices.Equal(Row(alone, 0), Row(out, i)) {
							t.Fatalf("row %d: alone other than in a batch", i)
						}
					}
					return []*kernel.Acts{out}
				})
			})
		}
	}
}

// feed returns a copy of what the mixture adds to n rows of x.
func feed(e *Exec, m *MoE, x *kernel.Acts, first, n int) *kernel.Acts {
	part := *x
	part.N, part.F32, part.Q = n, x.F32[first*x.LDF:], x.Q[first*x.LDQ:]
	got, w := m.Feed(e, &part)
	if w != nil {
		panic("a mixture has no output matrix")
	}
	out := *got
	out.F32 = slices.Clone(got.F32)
	return &out
}

// Experts that no row has chosen are not read: their weights may be anything.
func TestMoEReadsChosen(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	m := newMoE(t, r, tensor.F32, routers["softmax"], false)
	x := randomActs(r, 2, moeHidden)
	p := pool.New(2)
	defer p.Close()
	e := NewExec(p)
	want := feed(e, m.MoE, x, 0, x.N)
	chosen := map[int]bool{}
	for i := range x.N {
		for ex, w := range m.route(values(x, i)) {
			chosen[ex] = chosen[ex] || w != 0
		}
	}
	nan := newMatrix(t, r, tensor.F32, moeFFN, moeHidden, false)
	for i := range nan.W.Data {
		nan.W.Data[i] = 0xff
	}
	poisoned := 0
	for i := range m.Experts {
		if !chosen[i] {
			m.Experts[i].Gate.W, m.Experts[i].Up.W = nan.W, nan.W
			poisoned++
		}
	}
	if poisoned < moeCount/3 {
		t.Fatalf("%d of %d experts chosen: expected fewer", moeCount-poisoned, moeCount)
	}
	if got := feed(e, m.MoE, x, 0, x.N); !slices.Equal(got.F32, want.F32) {
		t.Error("the weights of experts that were not chosen matter")
	}
}

// Logits that are no numbers neither hang nor panic, and do not stay hidden.
func TestRouterNaN(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for name, r := range routers {
		for _, bad := range [][]float32{{nan}, {inf}, {nan, inf, 1}} {
			scores := make([]float32, moeCount)
			for i := range scores {
				scores[i] = bad[i%len(bad)]
			}
			experts, weights := make([]int32, r.TopK), make([]float32, r.TopK)
			var order []float32
			r.choose(experts, weights, scores, &order)
			for _, e := range experts {
				if e < 0 || e >= moeCount {
					t.Errorf("%s: expert %d of %d", name, e, moeCount)
				}
			}
		}
	}
}

// A sigmoid that is 1 for several experts hides no order.
func TestRouterSaturated(t *testing.T) {
	r := Router{Score: ScoreSigmoid, TopK: 1, Scale: 1}
	var expert [1]int32
	var weight [1]float32
	var order []float32
	r.choose(expert[:], weight[:], []float32{30, -1, 40, 35}, &order)
	if expert[0] != 2 || weight[0] != 1 {
		t.Errorf("found expert %d with weight %v, expected 2 with 1", expert[0], weight[0])
	}
}

// A token allocates nothing once there is room.
func TestMoEAllocations(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	m := newMoE(t, r, tensor.Q8_0, routers["group sums"], true)
	x := randomActs(r, 1, moeHidden)
	p := pool.New(1)
	defer p.Close()
	e := NewExec(p)
	m.Feed(e, x)
	if n := testing.AllocsPerRun(10, func() { m.Feed(e, x) }); n > 0 {
		t.Errorf("%v allocations a token", n)
	}
}

func BenchmarkMoE(b *testing.B) {
	for _, rows := range []int{1, 8, 256} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			r := rand.New(rand.NewPCG(9, 2))
			m := newMoE(b, r, tensor.Q4_0, routers["normalized"], false)
			x := randomActs(r, rows, moeHidden)
			p := pool.New(2)
			defer p.Close()
			e := NewExec(p)
			for b.Loop() {
				m.Feed(e, x)
			}
		})
	}
}
