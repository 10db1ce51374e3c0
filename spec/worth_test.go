package spec

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// shop is a simulated engine with answers that begin and end. Steps with guesses take
// longer than one without by each for a row.
type shop struct {
	r       *rand.Rand
	each    float64
	lengths func() int
	chance  func() float64 // of each guess of an answer
	offers  float64        // how often there are any
	always  bool           // verify all

	control Controller
	all     *Book
	gaps    []float64 // between tokens
	step    int64
}

type answerOf struct {
	left   int
	chance float64
	rate   float64
	paying int
	book   *Book
	came   []int32
}

func (s *shop) next() *answerOf {
	return &answerOf{left: s.lengths(), chance: s.chance(), rate: 1, book: NewBook(s.all)}
}

// serve answers so many requests, n at a time, and returns how long it takes. The next
// request begins when one ends, or, in batches, when all have.
func (s *shop) serve(requests, n int, batches, guess bool) (took float64) {
	if s.all == nil {
		s.all = NewBook(nil)
	}
	var under []*answerOf
	for requests > 0 || len(under) > 0 {
		if !batches || len(under) == 0 {
			for len(under) < n && requests > 0 {
				s.control.Began(s.step, len(under) == 0)
				under, requests = append(under, s.next()), requests-1
			}
		}
		took += s.steps(under, guess)
		s.step++
		under = slices.DeleteFunc(under, func(a *answerOf) bool {
			if a.left <= 0 {
				s.control.Ended(s.step)
			}
			return a.left <= 0
		})
	}
	return took
}

// steps has a step made, as the engine does.
func (s *shop) steps(under []*answerOf, guess bool) float64 {
	cost := func(more int) float64 { return 1 + s.each*float64(len(under)+more) }
	price := s.each / (cost(0) / float64(len(under)))
	worth, left, rate := make([]float64, len(under)), make([]float64, len(under)), make([]float64, len(under))
	for i, a := range under {
		left[i], rate[i] = float64(a.left), a.rate
	}
	s.control.Weigh(worth, left, rate, s.step, false)
	offers := make([]Offer, len(under))
	for i, a := range under {
		o := &offers[i]
		o.Book, o.Worth = a.book, price+(1-price)*worth[i]
		if s.r.Float64() < s.offers {
			for j := range min(4, a.left-1) {
				o.Guesses = append(o.Guesses, Guess{Token: 1, Class: uint8(5 + j)})
			}
		}
		a.paying = a.book.Likely(o.Guesses, price)
	}
	if guess && s.always {
		for i := range offers {
			offers[i].Take = len(offers[i].Guesses)
		}
	} else if guess {
		s.control.Choose(offers, len(under), len(under), cost)
	}
	rows, won := 0, 0.0
	for i, a := range under {
		o := &offers[i]
		right := 0
		for right < len(o.Guesses) && s.r.Float64() < a.chance {
			right++
		}
		a.came = a.came[:0]
		for range min(right, o.Take) {
			a.came = append(a.came, 1)
		}
		if right > o.Take {
			a.came = append(a.came, 1) // it would have come true
		} else {
			a.came = append(a.came, 0)
		}
		a.book.LearnTree(o.Guesses, a.came)
		a.rate += (1 + float64(a.book.Reach(o.Guesses[:a.paying], a.came)) - a.rate) / 32
		a.left -= len(a.came)
		rows, won = rows+o.Take, won+o.Worth*float64(len(a.came)-1)
	}
	x := cost(rows) * math.Exp(0.03*s.r.NormFloat64())
	for _, a := range under {
		s.gaps = append(s.gaps, x)
		for range len(a.came) - 1 {
			s.gaps = append(s.gaps, 0)
		}
	}
	if guess && !s.always {
		s.control.Learn(Outcome{Rows: len(under), Guesses: rows, Right: won, Plain: cost(0), Predicted: cost(rows), Worth: cost(0) / float64(len(under)), Took: x})
	}
	return x
}

// kindsOfWork are ways in which requests come.
var kindsOfWork = []struct {
	name    string
	batches bool
	lengths func(r *rand.Rand) int
	chance  func(r *rand.Rand) float64
	gains   bool // guesses must gain
}{
	{"batches of equal answers, one in four repeats its prompt", true, func(*rand.Rand) int { return 48 }, func(r *rand.Rand) float64 { return []float64{.05, .1, .2, .8}[r.IntN(4)] }, false},
	{"batches of equal answers, all repeat their prompts", true, func(*rand.Rand) int { return 96 }, func(*rand.Rand) float64 { return .9 }, true},
	{"batches of answers of any length", true, func(r *rand.Rand) int { return 20 + r.IntN(200) }, func(r *rand.Rand) float64 { return r.Float64() }, false},
	{"clients one after the other, one in four repeats its prompt", false, func(r *rand.Rand) int { return 20 + r.IntN(100) }, func(r *rand.Rand) float64 { return []float64{.05, .1, .2, .95}[r.IntN(4)] }, false},
	{"clients one after the other, all repeat their prompts", false, func(r *rand.Rand) int { return 20 + r.IntN(100) }, func(*rand.Rand) float64 { return .9 }, true},
}

// shopOf returns a shop for a kind of work.
func shopOf(kind, n int, seed uint64, each float64) *shop {
	w, r := &kindsOfWork[kind], rand.New(rand.NewPCG(seed, uint64(n)))
	work := rand.New(rand.NewPCG(seed, 99)) // the same requests, whatever is guessed
	return &shop{r: r, each: each, offers: .7, lengths: func() int { return w.lengths(work) }, chance: func() float64 { return w.chance(work) }}
}

// Of several answers at a time guesses cost no time either, whether they end together,
// one after the other, or others take their places; and where all gain by them, they do.
func TestGuessesOfSeveralNeverLose(t *testing.T) {
	for kind, w := range kindsOfWork {
		for _, n := range []int{1, 4, 16, 32} {
			for _, each := range []float64{.02, .12} {
				plain, auto, all := 0.0, 0.0, 0.0
				for seed := range uint64(2) {
					requests := 8 * n
					plain += shopOf(kind, n, seed, each).serve(requests, n, w.batches, false)
					auto += shopOf(kind, n, seed, each).serve(requests, n, w.batches, true)
					s := shopOf(kind, n, seed, each)
					s.always = true
					all += s.serve(requests, n, w.batches, true)
				}
				t.Logf("%s, %d at a time, rows of %.2f: %.3f of the plain time, all guesses %.3f", w.name, n, each, auto/plain, all/plain)
				if auto > 1.02*plain {
					t.Errorf("%s, %d at a time, rows of %.2f: %.3f times as long as without guesses", w.name, n, each, auto/plain)
				}
				if w.gains && all < .9*plain && auto > .95*plain {
					t.Errorf("%s, %d at a time, rows of %.2f: %.3f of the time without guesses, where all guesses take %.3f", w.name, n, each, auto/plain, all/plain)
				}
			}
		}
	}
}

// With a bound on how long steps may become, the 99th percentile of the times between
// tokens is within it of that without guesses, whatever the number of clients, and no time
// is lost; without a bound it is longer.
func TestTimesBetweenTokens(t *testing.T) {
	const bound = 1.05
	p99 := func(s *shop) float64 {
		slices.Sort(s.gaps)
		return s.gaps[len(s.gaps)*99/100]
	}
	longer := 0
	for kind, w := range kindsOfWork[3:] {
		for _, n := range []int{1, 4, 16, 32} {
			serve := func(guess bool, stretch float64) (took, gap float64) {
				s := shopOf(kind+3, n, 1, .02)
				s.control.Stretch = stretch
				took = s.serve(8*n, n, w.batches, guess)
				return took, p99(s)
			}
			plain, gap := serve(false, 0)
			held, heldGap := serve(true, bound)
			_, freeGap := serve(true, 0)
			t.Logf("%s, %d clients: p99 %.3f of that without guesses, %.3f without a bound; time %.3f", w.name, n, heldGap/gap, freeGap/gap, held/plain)
			if heldGap > bound*gap || held > 1.02*plain {
				t.Errorf("%s, %d clients: p99 %.3f times that without guesses, time %.3f", w.name, n, heldGap/gap, held/plain)
			}
			if freeGap > bound*gap {
				longer++
			}
		}
	}
	if longer < 4 {
		t.Errorf("times became longer without a bound in %d of 8 cases", longer)
	}
}
