package sample

import (
	"maps"
	"math"
	"slices"
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

// distribution is what the sampler draws from.
func (s *Sampler) distribution(logits []float32) map[int32]float64 {
	s.prepare()
	w := s.adjust(logits)
	if s.p.Temperature == 0 || s.p.TopK == 1 {
		return map[int32]float64{s.pick(w): 1}
	}
	var c []cand
	var top float32
	if s.filtered() {
		c, top = s.candidates(w)
	} else {
		top = s.survey(w)
		c = s.above(nil, w, -math.MaxFloat32)
	}
	out, total := map[int32]float64{}, 0.0
	for _, x := range c {
		out[x.id] = tempered(x.logit, top, s.p.Temperature)
		total += out[x.id]
	}
	for id := range out {
		out[id] /= total
	}
	return out
}

// draw picks what a random number u in [0, 1) means: the tokens lie side by side
// in the order of their ids, each as wide as it is probable.
func (n *naive) draw(probs map[int32]float64, u float64) int32 {
	ids := slices.Sorted(maps.Keys(probs))
	sum := 0.0
	for _, id := range ids {
		sum += probs[id]
		n.near(u-sum, 1)
		if sum > u {
			return id
		}
	}
	return ids[len(ids)-1]
}

// logProb is the log-probability of a token by the model's own logits.
func (n *naive) logProb(logits []float32, id int32) float64 {
	top, sum := math.Inf(-1), 0.0
	for _, l := range logits {
		if l == l {
			top = math.Max(top, float64(l))
		}
	}
	for _, l := range logits {
		if l == l {
			sum += math.Exp(float64(l) - top)
		}
	}
	return float64(logits[id]) - top - math.Log(sum)
}

// shapes are the kinds of rows that a sampler meets. u are uniform random
// numbers in [0, 1).
var shapes = map[string]func(out []float32, u func(i int) float64){
	"normal": func(out []float32, u func(int) float64) { normal(out, u, 1) },
	"narrow": func(out []float32, u func(int) float64) { normal(out, u, 0.01) },
	"wide":   func(out []float32, u func(int) float64) { normal(out, u, 10) },
	"flat": func(out []float32, u func(int) float64) {
		for i := range out {
			out[i] = 3
		}
	},
	"peaked": func(out []float32, u func(int) float64) {
		normal(out, u, 3)
		for i := range 4 {
			out[int(u(-1-i)*float64(len(out)))] += float32(14 - 2*i)
		}
	},
	"tied": func(out []float32, u func(int) float64) {
		normal(out, u, 3)
		for i := range out {
			out[i] = float32(math.Round(float64(out[i])))
		}
	},
	"masked": func(out []float32, u func(int) float64) { // as a grammar leaves it
		normal(out, u, 3)
		for i := range out {
			if u(-1-i) < 0.95 {
				out[i] = float32(math.Inf(-1))
			}
		}
	},
	"broken": func(out []float32, u func(int) float64) {
		normal(out, u, 3)
		for i := range out {
			switch v := u(-1 - i); {
			case v < 0.2:
				out[i] = float32(math.NaN())
			case v < 0.3:
				out[i] = float32(math.Inf(-1))
			case v < 0.4:
				out[i] = -2e38
			}
		}
	},
}

func normal(out []float32, u func(int) float64, scale float64) {
	for i := range out {
		out[i] = float32(math.Sqrt2 * math.Erfinv(2*u(i)-1+1e-12) * scale)
	}
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

// TestNaiveModel: the tokens left by the filters, their probabilities, the token
// drawn and its log-probability are those of the naive chain.
func TestNaiveModel(t *testing.T) {
	names := slices.Sorted(maps.Keys(shapes))
	rapid.Check(t, func(t *rapid.T) {
		vocab := rapid.SampledFrom([]int{1, 2, 5, 40, 300, 1500, 6000}).Draw(t, "vocab")
		p := genParams(t, vocab)
		p.LogProbs = 1
		s, err := New(p, vocab)
		if err != nil {
			t.Fatal(err)
		}
		n := &naive{p: p}
		shape := shapes[rapid.SampledFrom(names).Draw(t, "shape")]
		seed := rapid.Uint64().Draw(t, "logits")
		logits := make([]float32, vocab)
		for step := range 6 {
			shape(logits, func(i int) float64 { return uniform(seed, uint64(step*2*vocab+vocab+i)) })
			want, got := n.run(logits), s.distribution(logits)
			if _, nothing := want[-1]; n.margin > 1e-5 && !nothing {
				compare(t, got, want)
			}
			r := s.Sample(logits)
			if picked := n.draw(want, uniform(p.Seed, s.step)); n.margin > 1e-5 && r.Token != picked {
				t.Fatalf("picked %d, want %d among %v", r.Token, picked, want)
			}
			if r.Token < 0 {
				continue
			}
			if want := n.logProb(logits, r.Token); !(math.Abs(float64(r.LogProb)-want) <= 2e-6*math.Max(1, math.Abs(want))) {
				t.Fatalf("log-probability %v, want %v", r.LogProb, want)
			}
			s.Accept(r.Token)
			n.hist = append(n.hist, r.Token)
		}
	})
}

// TestPrefilter: what is not looked at would not be kept by top-p, and of what is
// little is put in order.
func TestPrefilter(t *testing.T) {
	const vocab = 50_000
	logits := make([]float32, vocab)
	for name, shape := range shapes {
		shape(logits, func(i int) float64 { return uniform(7, uint64(vocab+i)) })
		for _, p := range []float32{0.01, 0.5, 0.95, 0.999, 0.9999999} {
			s := mustNew(t, Params{Temperature: 1, TopP: p}, vocab)
			s.prepare()
			top := s.survey(logits)
			c, total := s.prefilter(nil, logits, top)
			kept := s.topP(slices.Clone(c), top, float64(p), total)
			if p > 0.999 { // the last few of all weigh less than the sum is off by
				if len(c) < len(kept) || total*(1-1e-6) > totalWeight(kept, top) {
					t.Errorf("%s, p %v: %v of the weight, want it all", name, p, totalWeight(kept, top)/total)
				}
				continue
			}
			ordered := len(s.order)
			if all := s.topP(s.above(nil, logits, -math.MaxFloat32), top, float64(p), 0); !slices.Equal(kept, all) {
				t.Errorf("%s, p %v: %d tokens kept, want %d", name, p, len(kept), len(all))
			}
			// Unless all weigh much the same.
			if name != "tied" && name != "flat" && name != "narrow" && ordered > 64+len(kept)/4 {
				t.Errorf("%s, p %v: %d of %d tokens put in order", name, p, ordered, len(kept))
			}
		}
	}
}

func totalWeight(c []cand, top float32) (sum float64) {
	for _, x := range c {
		sum += weight(x.logit, top)
	}
	return sum
}

// FuzzNaive compares with the naive chain: each byte is a logit, so that many
// are equal.
func FuzzNaive(f *testing.F) {
	f.Add(float32(0.8), float32(0.95), float32(0), float32(0), 0, uint64(1), []byte("the quick brown fox jumps over the lazy dog"))
	f.Add(float32(1), float32(0.5), float32(0.01), float32(0.9), 20, uint64(2), slices.Repeat([]byte{0, 100, 101, 102, 255, 140, 90}, 100))
	f.Add(float32(2), float32(0.999), float32(0), float32(0), 0, uint64(3), slices.Repeat([]byte{128}, 1500))
	f.Fuzz(func(t *testing.T, temp, topP, minP, typ float32, k int, seed uint64, raw []byte) {
		p := Params{Temperature: temp, TopP: topP, MinP: minP, TypicalP: typ, TopK: k, Seed: seed}
		s, err := New(p, len(raw))
		if err != nil || len(raw) > 1<<16 || temp != 0 && temp < 1e-3 {
			return
		}
		logits := make([]float32, len(raw))
		for i, b := range raw {
			switch logits[i] = (float32(b) - 128) / 8; b {
			case 0:
				logits[i] = -inf
			case 255:
				logits[i] = nan
			}
		}
		n := &naive{p: p}
		for range 4 {
			want := n.run(logits)
			picked := n.draw(want, uniform(seed, s.step))
			got := s.Sample(logits).Token
			if n.margin > 1e-5 && got != picked {
				t.Fatalf("%+v: picked %d, want %d among %v", p, got, picked, want)
			}
			s.Accept(got)
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
			best := (&Sampler{scratch: new(scratch)}).topK(nil, vals, k)
			if !slices.IsSortedFunc(best, func(a, b cand) int { return int(a.id) - int(b.id) }) {
				t.Fatalf("top %d: not in the order of ids: %v", k, best)
			}
			sortAll(best)
			for i, x := range best {
				if x != want[i] {
					t.Fatalf("top %d: place %d: %v, want %v", k, i, x, want[i])
				}
			}
		}
	})
}
