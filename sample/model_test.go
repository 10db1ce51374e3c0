package sample

import (
	"math"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

// naive is the documented chain in the plainest form: sort everything, in
// float64, with math.Exp. It returns the tokens left and their
// probabilities, by id, and how close the nearest decision was to falling
// the other way (relative).
type naive struct {
	p      Params
	hist   []int32
	margin float64
}

type naiveCand struct {
	id    int32
	logit float64
	key   float64
}

func (n *naive) near(x, limit float64) {
	n.margin = min(n.margin, math.Abs(x-limit)/math.Max(1e-30, math.Abs(limit)))
}

func (n *naive) adjust(logits []float32) []float64 {
	out := make([]float64, len(logits))
	for i, l := range logits {
		out[i] = float64(float32(l + n.p.LogitBias[int32(i)]))
	}
	last := n.p.PenaltyLastN
	if last == 0 {
		last = DefaultPenaltyLastN
	}
	h := n.hist
	if last > 0 && len(h) > last {
		h = h[len(h)-last:]
	}
	counts := map[int32]float64{}
	for _, t := range h {
		counts[t]++
	}
	rep := float64(n.p.RepetitionPenalty)
	if rep == 0 {
		rep = 1
	}
	for t, c := range counts {
		if out[t] > 0 {
			out[t] /= rep
		} else {
			out[t] *= rep
		}
		out[t] -= c*float64(n.p.FrequencyPenalty) + float64(n.p.PresencePenalty)
	}
	return out
}

func weights(c []naiveCand) (w []float64) {
	top := math.Inf(-1)
	for _, x := range c {
		top = math.Max(top, x.logit)
	}
	total := 0.0
	for _, x := range c {
		w = append(w, math.Exp(x.logit-top))
		total += w[len(w)-1]
	}
	for i := range w {
		w[i] /= total
	}
	return w
}

func (n *naive) run(logits []float32) map[int32]float64 {
	n.margin = math.Inf(1)
	var c []naiveCand
	for i, l := range n.adjust(logits) {
		if l > math.Inf(-1) { // not NaN
			c = append(c, naiveCand{id: int32(i), logit: l})
		}
	}
	if len(c) == 0 {
		return map[int32]float64{-1: 1}
	}
	byLogit := func() {
		sort.Slice(c, func(i, j int) bool {
			return c[i].logit > c[j].logit || c[i].logit == c[j].logit && c[i].id < c[j].id
		})
	}
	byLogit()
	if n.p.Temperature == 0 {
		return map[int32]float64{c[0].id: 1}
	}
	if k := n.p.TopK; k > 0 && k < len(c) {
		n.near(c[k-1].logit-c[k].logit, 0) // ties are fine, near ties are not
		if c[k-1].logit == c[k].logit {
			n.margin = math.Inf(1)
		}
		c = c[:k]
	}
	if p := float64(n.p.TypicalP); p > 0 && p < 1 && len(c) > 0 {
		w := weights(c)
		h := 0.0
		for _, x := range w {
			if x > 0 {
				h -= x * math.Log(x)
			}
		}
		for i := range c {
			c[i].key = math.Abs(-math.Log(w[i]) - h)
		}
		sort.SliceStable(c, func(i, j int) bool { return c[i].key < c[j].key })
		for i := range c[1:] {
			if c[i].logit != c[i+1].logit {
				n.margin = min(n.margin, (c[i+1].key-c[i].key)/(1+c[i].key))
			}
		}
		w = weights(c)
		sum := 0.0
		for i := range c {
			sum += w[i]
			n.near(sum, p)
			if sum > p {
				c = c[:i+1]
				break
			}
		}
		byLogit()
	}
	if p := float64(n.p.TopP); p > 0 && p < 1 {
		w := weights(c)
		sum := 0.0
		for i := range c {
			sum += w[i]
			n.near(sum, p)
			if sum >= p {
				c = c[:i+1]
				break
			}
		}
	}
	if p := float64(n.p.MinP); p > 0 && len(c) > 0 {
		least := c[0].logit + math.Log(p)
		for i := range c {
			n.near(c[i].logit, least)
			if c[i].logit < least {
				c = c[:i]
				break
			}
		}
	}
	t := float64(n.p.Temperature)
	for i := range c {
		c[i].logit /= t
	}
	out := map[int32]float64{}
	for i, w := range weights(c) {
		out[c[i].id] = w
	}
	return out
}

// tempered is the weight of a logit at temperature t; 0 for NaN.
func tempered(l, top float32, t float64) float64 {
	d := (float64(l) - float64(top)) / t
	if d != d {
		return 0
	}
	return exp(d)
}

// distribution is what the sampler draws from.
func (s *Sampler) distribution(logits []float32) map[int32]float64 {
	w := s.adjust(logits)
	if s.p.Temperature == 0 || s.p.TopK == 1 {
		return map[int32]float64{s.pick(w): 1}
	}
	var c []cand
	var top float32
	if s.filtered() {
		c, top = s.candidates(w)
	} else {
		c = above(nil, w, float32(math.Inf(-1)))
		top = topLogit(c)
	}
	out, total := map[int32]float64{}, 0.0
	for _, x := range c {
		out[x.id] = tempered(x.logit, top, float64(s.p.Temperature))
		total += out[x.id]
	}
	for id := range out {
		out[id] /= total
	}
	return out
}

func genParams(t *rapid.T, vocab int) Params {
	share := rapid.OneOf(rapid.Just(float32(0)), rapid.Just(float32(1)), rapid.Float32Range(0.01, 0.999))
	p := Params{
		Temperature: rapid.SampledFrom([]float32{0, 0.3, 0.8, 1, 1.7}).Draw(t, "temperature"),
		TopK:        rapid.OneOf(rapid.Just(0), rapid.IntRange(1, vocab+5)).Draw(t, "topK"),
		TopP:        share.Draw(t, "topP"),
		MinP:        share.Draw(t, "minP"),
		TypicalP:    share.Draw(t, "typicalP"),
		Seed:        rapid.Uint64().Draw(t, "seed"),
	}
	if rapid.Bool().Draw(t, "penalties") {
		p.RepetitionPenalty = rapid.SampledFrom([]float32{0, 1, 1.1, 1.5, 0.8}).Draw(t, "repetition")
		p.PresencePenalty = rapid.SampledFrom([]float32{0, 0.5, -0.5}).Draw(t, "presence")
		p.FrequencyPenalty = rapid.SampledFrom([]float32{0, 0.3, -0.2}).Draw(t, "frequency")
		p.PenaltyLastN = rapid.SampledFrom([]int{0, -1, 1, 3, 10}).Draw(t, "lastN")
	}
	if rapid.Bool().Draw(t, "bias") {
		p.LogitBias = rapid.MapOfN(rapid.Int32Range(0, int32(vocab-1)), rapid.Float32Range(-5, 5), 0, 5).Draw(t, "biases")
	}
	return p
}

// TestNaiveModel: the tokens left by the filters, and their probabilities,
// are those of the naive chain.
func TestNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vocab := rapid.SampledFrom([]int{1, 2, 5, 40, 300, 1500}).Draw(t, "vocab")
		p := genParams(t, vocab)
		s, err := New(p, vocab)
		if err != nil {
			t.Fatal(err)
		}
		n := &naive{p: p}
		scale := rapid.SampledFrom([]float32{0.01, 1, 3, 10}).Draw(t, "scale")
		seed := rapid.Uint64().Draw(t, "logits")
		ties := rapid.Bool().Draw(t, "ties")
		logits := make([]float32, vocab)
		for step := range 6 {
			for i := range logits {
				u := uniform(seed, uint64(step*vocab+i))
				logits[i] = float32(math.Sqrt2*math.Erfinv(2*u-1+1e-12)) * scale
				if ties {
					logits[i] = float32(math.Round(float64(logits[i])))
				}
			}
			if vocab > 2 {
				logits[step%vocab] = float32(math.Inf(-1))
				logits[(step+1)%vocab] = float32(math.NaN())
			}
			want, got := n.run(logits), s.distribution(logits)
			if n.margin > 1e-5 {
				compare(t, got, want)
			}
			r := s.Sample(logits)
			if _, ok := want[r.Token]; n.margin > 1e-5 && !ok {
				t.Fatalf("picked %d, which is not among %v", r.Token, want)
			}
			s.Accept(r.Token)
			n.hist = append(n.hist, r.Token)
		}
	})
}

func compare(t *rapid.T, got, want map[int32]float64) {
	if len(got) != len(want) {
		t.Fatalf("%d tokens left, want %d", len(got), len(want))
	}
	for id, w := range want {
		g, ok := got[id]
		if !ok || math.Abs(g-w) > 1e-6+1e-4*w {
			t.Fatalf("token %d: probability %v, want %v", id, g, w)
		}
	}
}

// TestExp: the exponential against math.Exp.
func TestExp(t *testing.T) {
	for x := 0.0; x > -710; x -= 0.00731 {
		got, want := exp(x), math.Exp(x)
		if x < -700 {
			want = 0
		}
		if math.Abs(got-want) > 1e-12*want {
			t.Fatalf("exp(%v) is %v, want %v", x, got, want)
		}
	}
	for _, x := range []float64{math.Inf(-1), -1e300, math.NaN()} {
		if exp(x) != 0 {
			t.Errorf("exp(%v) is %v", x, exp(x))
		}
	}
	if exp(0) != 1 {
		t.Errorf("exp(0) is %v", exp(0))
	}
}

// TestOrder: selection and sorting against the standard library.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vals := rapid.SliceOfN(rapid.SampledFrom([]float32{-1, 0, 1, 2, 3, 4, 5.5}), 0, 2000).Draw(t, "vals")
		c := make([]cand, len(vals))
		for i, v := range vals {
			c[i] = newCand(v, i)
		}
		want := append([]cand(nil), c...)
		sort.Slice(want, func(i, j int) bool { return before(&want[i], &want[j]) })
		k := rapid.IntRange(0, len(vals)).Draw(t, "k")
		selectFirst(c, k)
		sortAll(c[:k])
		sortAll(c[k:])
		for i := range c {
			if c[i] != want[i] {
				t.Fatalf("place %d: %v, want %v", i, c[i], want[i])
			}
		}
		if k > 0 {
			best := topK(nil, vals, k)
			sortAll(best)
			for i, x := range best {
				if x != want[i] {
					t.Fatalf("top %d: place %d: %v, want %v", k, i, x, want[i])
				}
			}
		}
	})
}
