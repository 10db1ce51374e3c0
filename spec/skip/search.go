package skip

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"ridge/internal/logits"
	"ridge/kvcache"
	"ridge/model"
	"ridge/nn"
)

// Row is what a row more adds to a step of one row, in steps: what a guess that is
// verified costs (measured on two cores: 0.13 for up to 16 rows).
const Row = 0.13

// depth bounds the guesses of a chain that speeds are predicted for.
const depth = 8

// Speed returns how many times as fast as plain decoding guesses are expected to be: each
// of which takes cost steps and is right with probability share, and the best number of
// which is verified (Leviathan et al. 2023, with rows that are not free).
func Speed(share, cost float64) (best float64) {
	tokens, right := 1.0, 1.0
	for n := 1; n <= depth; n++ {
		right *= share
		tokens += right
		best = max(best, tokens/(float64(n)*cost+1+Row*float64(n)))
	}
	return best
}

// Finding is a set of parts that are left out, and what it is worth.
type Finding struct {
	Parts []uint8 // by layer, see model.Step.Skip
	Share float64 // of the model's own most probable tokens that are the drafter's, too
	Cost  float64 // bytes of weights that a guess reads, of those of a token
	Speed float64 // that is expected, see Speed
}

// Left returns how many parts are left out.
func (f *Finding) Left() (n int) {
	for _, p := range f.Parts {
		n += int(p&1 + p>>1)
	}
	return n
}

// Searcher finds parts of a model's layers that guesses do without.
type Searcher struct {
	m     *model.Model
	step  model.Step
	texts []text
	can   []uint8
	bytes [][2]float64 // of mixers and FFNs, of those of a token
	// Each is told what has been looked at, nil for nobody.
	Each func(done int)
	done int
}

// text is a text whose keys and values are those of the whole model.
type text struct {
	kv     *kvcache.Seq
	first  int     // token that is compared
	tokens []int32 // from there on
	want   []int32 // what the model holds for next behind each
	tree   []int32
}

// NewSearcher returns one that measures on the last most tokens of each text.
func NewSearcher(m *model.Model, texts [][]int32, most int) (*Searcher, error) {
	if m.Pool().Stateful() {
		return nil, fmt.Errorf("skip: expected layers that can drop their last tokens, found some with states")
	}
	s := &Searcher{m: m, can: m.Net().Skippable()}
	s.measure()
	for i, tokens := range texts {
		x := text{kv: m.Pool().NewSeq(), first: max(1, len(tokens)-most)}
		if len(tokens) < 2 || len(tokens)+most > m.Context() {
			return nil, fmt.Errorf("skip: text %d: expected 2 to %d tokens, found %d", i, m.Context()-most, len(tokens))
		}
		x.tokens = tokens[x.first:]
		s.step = model.Step{Runs: []model.Run{{Seq: x.kv, Tokens: tokens, Outputs: len(x.tokens)}}}
		if err := m.Forward(&s.step); err != nil {
			return nil, fmt.Errorf("skip: text %d: %w", i, err)
		}
		for k := range x.tokens {
			x.want = append(x.want, int32(logits.Argmax(m.Logits(k))))
			x.tree = append(x.tree, int32(k-1))
		}
		// Each token once more, behind the whole model's keys and values.
		for k := range x.tokens {
			x.tree = append(x.tree, int32(k-1))
		}
		s.texts = append(s.texts, x)
	}
	if len(s.texts) == 0 {
		return nil, fmt.Errorf("skip: expected texts, found none")
	}
	return s, nil
}

// Close gives back what texts hold.
func (s *Searcher) Close() {
	for _, x := range s.texts {
		s.m.Pool().Free(x.kv)
	}
	s.texts = nil
}

// measure finds what parts read.
func (s *Searcher) measure() {
	net := s.m.Net()
	sum := func(b nn.Block) (n float64) {
		for _, r := range b.Reads().Regions {
			for _, m := range r.Mats {
				n += r.Active * float64(m.W.Size())
			}
		}
		return n
	}
	all := float64(s.m.WeightBytes())
	for i := range net.Layers {
		var b [2]float64
		if l := &net.Layers[i]; l.Mix != nil {
			b[0] = sum(l.Mix) / all
		}
		if l := &net.Layers[i]; l.FFN != nil {
			b[1] = sum(l.FFN) / all
		}
		s.bytes = append(s.bytes, b)
	}
}

// Look measures what parts are worth to leave out.
func (s *Searcher) Look(parts []uint8) (f Finding, err error) {
	f = Finding{Parts: slices.Clone(parts), Cost: 1}
	for i, p := range parts {
		for k := range 2 {
			if p>>k&1 > 0 {
				f.Cost -= s.bytes[i][k]
			}
		}
	}
	right, all := 0, 0
	for _, x := range s.texts {
		s.step = model.Step{Skip: parts, Runs: append(s.step.Runs[:0], model.Run{Seq: x.kv, Tokens: x.tokens, Tree: x.tree, Outputs: len(x.tokens)})}
		if err := s.m.Forward(&s.step); err != nil {
			return f, fmt.Errorf("skip: %w", err)
		}
		for k, want := range x.want {
			if all++; int32(logits.Argmax(s.m.Logits(k))) == want {
				right++
			}
		}
		s.m.Pool().Truncate(x.kv, x.first+len(x.tokens))
	}
	f.Share = float64(right) / float64(all)
	f.Speed = Speed(f.Share, f.Cost)
	if s.done++; s.Each != nil {
		s.Each(s.done)
	}
	return f, nil
}

// tries is how many of the parts that look best on their own are looked at for each more
// that is left out.
const tries = 3

// Search leaves out part after part, of those that change least for the bytes that they
// read, until so many are left out, or with 0 all that can be; then it exchanges some. It
// returns the set of each size that it came by, the best of the largest size last.
func (s *Searcher) Search(size, exchanges int, seed uint64) (path []Finding, err error) {
	type single struct {
		layer int
		part  uint8
		value float64
	}
	var order []single
	at := Finding{Parts: make([]uint8, len(s.can))}
	for i, can := range s.can {
		for k := range 2 {
			if can>>k&1 == 0 {
				continue
			}
			at.Parts[i] = 1 << k
			f, err := s.Look(at.Parts)
			if err != nil {
				return nil, err
			}
			at.Parts[i] = 0
			order = append(order, single{i, 1 << k, (1 - f.Share) / max(s.bytes[i][k], 1e-9)})
		}
	}
	slices.SortStableFunc(order, func(a, b single) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})
	if size <= 0 || size > len(order) {
		size = len(order)
	}
	rest := slices.Clone(order)
	for at.Left() < size {
		best, which := Finding{Speed: -1}, 0
		for i, x := range rest[:min(tries, len(rest))] {
			at.Parts[x.layer] |= x.part
			f, err := s.Look(at.Parts)
			if err != nil {
				return nil, err
			}
			if at.Parts[x.layer] &^= x.part; f.Speed > best.Speed {
				best, which = f, i
			}
		}
		at, rest = best, slices.Delete(rest, which, which+1)
		path = append(path, best)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for range exchanges {
		parts := slices.Clone(at.Parts)
		out, in := order[r.IntN(len(order))], order[r.IntN(len(order))]
		if parts[out.layer]&out.part == 0 || parts[in.layer]&in.part > 0 {
			continue
		}
		parts[out.layer] &^= out.part
		parts[in.layer] |= in.part
		f, err := s.Look(parts)
		if err != nil {
			return nil, err
		}
		if f.Speed > at.Speed {
			at = f
			path[len(path)-1] = f
		}
	}
	return path, nil
}

// Random returns so many parts, drawn at random: what a search has to beat.
func (s *Searcher) Random(size int, seed uint64) []uint8 {
	parts, r := make([]uint8, len(s.can)), rand.New(rand.NewPCG(seed, 2))
	for left := size; left > 0; {
		i, k := r.IntN(len(parts)), uint8(1)<<r.IntN(2)
		if s.can[i]&k > 0 && parts[i]&k == 0 {
			parts[i] |= k
			left--
		}
	}
	return parts
}
