package spec

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// machine is a simulated machine, on which steps take times that nobody is told.
type machine struct {
	first, each float64 // of a row more
	knee        int     // rows from which they cost several times as much
	off         [2 * MaxRows]float64
	noise       float64
	r           *rand.Rand
	times       []float64 // of the steps of a batch, over what they would take without guesses
}

func newMachine(r *rand.Rand) *machine {
	m := &machine{first: r.Float64() * 0.3, each: 0.01 + 0.5*r.Float64()*r.Float64(), knee: 2 + r.IntN(40), noise: 0.15 * r.Float64(), r: r}
	bias := 0.4 * (r.Float64() - 0.5)
	for i := range m.off {
		m.off[i] = math.Exp(bias*math.Log1p(float64(i)) + 0.1*r.NormFloat64())
	}
	return m
}

// takes returns how long a step takes on average.
func (m *machine) takes(rows, more int) float64 {
	at := func(n int) float64 {
		return 1 + 0.05*float64(n) + m.each*float64(max(n-m.knee, 0))
	}
	x := at(rows + more)
	if more > 0 {
		x += m.first * m.each
	}
	return x
}

// predicted is what somebody expects who errs.
func (m *machine) predicted(rows, more int) float64 { return m.takes(rows, more) * m.off[rows+more] }

func (m *machine) noisy(x float64) float64 {
	x *= math.Exp(m.noise * m.r.NormFloat64())
	if m.r.IntN(200) == 0 { // something else ran
		x *= 3
	}
	return x
}

// trace is what may be guessed in a text: by regimes.
type trace struct {
	kinds []regime
	every int // tokens of a regime
}

type regime struct {
	batch  int
	offers float64 // how often there are guesses
	chance float64 // of each
	class  uint8
}

func newTrace(r *rand.Rand, good float64) trace {
	t := trace{every: 200 + r.IntN(600)}
	for range 5 {
		t.kinds = append(t.kinds, regime{[]int{1, 1, 2, 4, 8, 16, 32}[r.IntN(7)], r.Float64(), good * math.Sqrt(r.Float64()), uint8(r.IntN(half))})
	}
	return t
}

// play has a text of so many steps' tokens made, with at most so many guesses for
// each sequence, or as many as c says, and returns how long it takes for a token of
// each sequence.
func (t *trace) play(m *machine, c *Controller, depth int) (took float64) {
	const tokens = 4000
	all := NewBook(nil)
	var books []*Book
	offers, guesses := make([]Offer, 0, 32), make([]Guess, 32*8)
	done := 0.0
	for done < tokens {
		k := &t.kinds[int(done)/t.every%len(t.kinds)]
		for len(books) < k.batch {
			books = append(books, NewBook(all))
		}
		offers = offers[:0]
		for i := range k.batch {
			o := Offer{Book: books[i]}
			if m.r.Float64() < k.offers {
				o.Guesses = guesses[8*i:][:8]
				for j := range o.Guesses {
					o.Guesses[j].Class = min(k.class+uint8(j), half-1)
				}
			}
			offers = append(offers, o)
		}
		if c != nil {
			c.Choose(offers, k.batch, k.batch, func(more int) float64 { return m.predicted(k.batch, more) })
		} else {
			left := MaxRows
			for i := range offers {
				offers[i].Take = min(depth, len(offers[i].Guesses), left)
				left -= offers[i].Take
			}
		}
		rows, right := 0, 0
		for i := range offers {
			o := &offers[i]
			rows += o.Take
			came := true
			for j, g := range o.Guesses {
				if came = m.r.Float64() < k.chance; came && j < o.Take {
					right++
				}
				if o.Book.Learn(g.Class, came); !came {
					break
				}
			}
		}
		x := m.noisy(m.takes(k.batch, rows))
		if c != nil {
			plain := m.predicted(k.batch, 0)
			c.Learn(Outcome{Rows: k.batch, Guesses: rows, Right: float64(right), Plain: plain, Predicted: m.predicted(k.batch, rows), Worth: plain / float64(k.batch), Took: x})
		}
		m.times = append(m.times, x/m.takes(k.batch, 0))
		took += x
		done += 1 + float64(right)/float64(k.batch)
	}
	return took
}

// Whatever a machine is like, and however wrong predictions and expectations are,
// guessing is at most two in a hundred slower than not guessing, over traces that
// change, and over those in which next to no guess comes true.
func TestControllerNeverLoses(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 5))
		tr := newTrace(r, []float64{1, 0.3, 0.02}[seed%3])
		m := newMachine(r)
		m.r = rand.New(rand.NewPCG(seed, 6))
		plain := tr.play(m, nil, 0)
		m.r = rand.New(rand.NewPCG(seed, 7))
		auto := tr.play(m, &Controller{}, 0)
		if auto > 1.02*plain {
			t.Errorf("seed %d: %.3f times as long as without guesses (%+v)", seed, auto/plain, tr)
		}
	}
}

// On traces that change it is at least nine tenths as fast as the best fixed number of
// guesses, found in hindsight.
func TestControllerNearBest(t *testing.T) {
	won := 0.0
	for seed := range uint64(15) {
		r := rand.New(rand.NewPCG(seed, 8))
		tr := newTrace(r, 1)
		m := newMachine(r)
		best, depth := math.Inf(1), 0
		for d := range 9 {
			m.r = rand.New(rand.NewPCG(seed, 9))
			if x := tr.play(m, nil, d); x < best {
				best, depth = x, d
			}
		}
		m.r = rand.New(rand.NewPCG(seed, 10))
		auto := tr.play(m, &Controller{}, 0)
		won += best / auto / 15
		if best < 0.9*auto {
			t.Errorf("seed %d: %.3f of the speed of %d guesses", seed, best/auto, depth)
		}
	}
	if t.Logf("%.3f of the best fixed number's speed on average", won); won < 0.97 {
		t.Errorf("%.3f of the best fixed number's speed on average", won)
	}
}

// With a bound on how long steps may become, times between tokens hardly do: their 90th
// percentile is that of steps without guesses, but for what predictions are off.
func TestControllerStretch(t *testing.T) {
	const bound = 1.1
	longer := 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 14))
		tr := newTrace(r, 1)
		m := newMachine(r)
		m.noise = 0
		percentile := func(c *Controller) float64 {
			m.r, m.times = rand.New(rand.NewPCG(seed, 15)), nil
			tr.play(m, c, 0)
			slices.Sort(m.times)
			return m.times[len(m.times)*9/10]
		}
		plain, held, free := percentile(nil), percentile(&Controller{Stretch: bound}), percentile(&Controller{})
		if held > 1.05*bound*plain {
			t.Errorf("seed %d: the 90th percentile is %.3f times that without guesses", seed, held/plain)
		}
		if free > 1.05*bound*plain {
			longer++
		}
	}
	if longer < 4 {
		t.Errorf("steps became longer without a bound in %d of 12 traces", longer)
	}
}
