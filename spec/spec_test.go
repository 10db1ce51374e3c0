package spec

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// naive finds what an NGram should by looking at every place: of those that share
// the last two tokens with the end the longest match among the last few, else the
// last place of the last token.
func naive(tokens []int32, n int) (out []Guess) {
	last := len(tokens) - 1
	at, long := -1, 0
	seen := 0
	for place := last - 1; place >= 0 && seen < maxVisited; place-- {
		m := 0
		for m <= place && m < maxMatch && tokens[place-m] == tokens[last-m] {
			m++
		}
		if m >= 2 {
			seen++
			if m > long {
				at, long = place, m
			}
		}
	}
	if long == 0 {
		for place := last - 1; place >= 0; place-- {
			if tokens[place] == tokens[last] {
				at, long = place, 1
				break
			}
		}
	}
	if long == 0 || last < 1 {
		return nil
	}
	text := slices.Clone(tokens)
	for i := range n {
		text = append(text, text[at+1+i])
		out = append(out, Guess{Token: text[len(text)-1], Class: uint8(min(long+i, maxMatch))})
	}
	return out
}

// An NGram finds what a search over all of the text finds, as the text grows, but
// for the few places that another hash has pushed out of a table.
func TestNGramEqualsSearch(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		vocab := []int32{2, 4, 30, 300}[seed%4]
		g := NewNGram(r.IntN(40))
		var text []int32
		found, missed := 0, 0
		for len(text) < 700 {
			if k := r.IntN(10); k == 0 && len(text) > 20 { // a piece again
				from := r.IntN(len(text) - 10)
				text = append(text, text[from:min(from+3+r.IntN(20), len(text))]...)
			} else {
				text = append(text, r.Int32N(vocab))
			}
			n := r.IntN(6)
			got := g.Draft(nil, text, n)
			want := naive(text, n)
			if found++; !slices.Equal(got, want) {
				missed++
			}
			if len(got) > len(want) || len(got) > 0 && got[0].Class > want[0].Class {
				t.Fatalf("seed %d, %d tokens: got %v, want %v", seed, len(text), got, want)
			}
		}
		if missed*50 > found {
			t.Errorf("seed %d: %d of %d differ", seed, missed, found)
		}
	}
}

// A text that repeats itself is expected to go on.
func TestNGramGoesOn(t *testing.T) {
	got := NewNGram(0).Draft(nil, []int32{9, 1, 2, 3, 1, 2, 3}, 7)
	want := []int32{1, 2, 3, 1, 2, 3, 1}
	for i, g := range got {
		if g.Token != want[i] || int(g.Class) != 3+i {
			t.Fatalf("got %v", got)
		}
	}
	if len(got) != 7 {
		t.Errorf("%d guesses", len(got))
	}
}

// Whatever it is given, an NGram returns tokens of the text, and no more than asked.
func FuzzNGram(f *testing.F) {
	f.Add([]byte("abcabcabd"), uint8(4))
	f.Add([]byte{0, 0, 0, 255, 0, 0}, uint8(255))
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		g := NewNGram(int(n))
		text := make([]int32, 0, len(data))
		for i, b := range data {
			text = append(text, int32(b%7)-3)
			if b > 250 { // another text, and one without end
				text = text[:len(text)/2]
			}
			if i%3 != 0 {
				continue
			}
			out := g.Draft(nil, text, int(n%20))
			if len(out) > int(n%20) {
				t.Fatalf("%d guesses, %d asked for", len(out), n%20)
			}
			for _, x := range out {
				if !slices.Contains(text, x.Token) || x.Class < 1 || x.Class >= half {
					t.Fatalf("guess %v after %v", x, text)
				}
			}
		}
	})
}

// Guesses cost no memory but the tables, which are bounded and grow by doubling.
func TestNGramAllocations(t *testing.T) {
	const most = 4000
	g := NewNGram(most)
	r := rand.New(rand.NewPCG(1, 1))
	text := make([]int32, 0, most)
	out := make([]Guess, 0, 8)
	if n := testing.AllocsPerRun(1, func() {
		for len(text) < most {
			text = append(text, r.Int32N(50))
			out = g.Draft(out[:0], text, 8)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if per := g.Bytes() / most; per > 24 {
		t.Errorf("%d bytes a token", per)
	}
	grown := NewNGram(0)
	grown.Draft(nil, text, 1)
	for range 100000 {
		text = append(text, r.Int32N(50))
		out = grown.Draft(out[:0], text, 1)
	}
	if per := grown.Bytes() / int64(len(text)); per > 48 {
		t.Errorf("%d bytes a token after growth", per)
	}
	if grown.Close(); grown.Bytes() != 0 {
		t.Errorf("%d bytes after Close", grown.Bytes())
	}
}

// A book learns each class, a request's own what differs in it.
func TestBook(t *testing.T) {
	all := NewBook(nil)
	for c := range uint8(Classes) {
		if p := all.Share(c); p <= 0 || p >= 1 || c%half > 0 && p < all.Share(c-1) {
			t.Errorf("class %d: %v before anything is known", c, p)
		}
	}
	r := rand.New(rand.NewPCG(2, 2))
	for range 2000 {
		all.Learn(3, r.Float64() < 0.7)
	}
	if p := all.Share(3); p < 0.55 || p > 0.85 {
		t.Errorf("0.7 of the guesses came true, expected %v", p)
	}
	own := NewBook(all)
	for range 100 {
		own.Learn(3, false)
	}
	if p := own.Share(3); p > 0.2 {
		t.Errorf("none of a request's guesses came true, expected %v", p)
	}
	if p, q := NewBook(all).Share(3), all.Share(3); p != q {
		t.Errorf("a new request expects %v, the others %v", p, q)
	}
	own.Learn(200, true) // a drafter that lies about classes
	own.Share(200)
}

// Choose finds the rows with the best rate: no other numbers of guesses give more,
// tried one by one.
func TestChoose(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		offers := make([]Offer, 1+r.IntN(3))
		for i := range offers {
			o := &offers[i]
			o.Book = NewBook(nil)
			for range r.IntN(200) {
				o.Book.Learn(uint8(r.IntN(Classes)), r.IntN(3) > 0)
			}
			for range r.IntN(4) {
				o.Guesses = append(o.Guesses, Guess{Class: uint8(r.IntN(Classes))})
			}
		}
		costs := []float64{1}
		for range MaxRows {
			costs = append(costs, costs[len(costs)-1]+r.Float64()*r.Float64())
		}
		cost := func(n int) float64 { return costs[n] }
		fixed := len(offers) + r.IntN(2)
		gain := choose(offers, fixed, cost)
		rate := func(take []int) float64 {
			tokens, rows := float64(fixed), 0
			for i, n := range take {
				chance := 1.0
				for _, g := range offers[i].Guesses[:n] {
					chance *= offers[i].Book.Share(g.Class)
					tokens += chance
				}
				rows += n
			}
			return tokens / cost(rows) / (float64(fixed) / cost(0))
		}
		got := make([]int, len(offers))
		for i := range offers {
			got[i] = offers[i].Take
		}
		best := 1.0
		var try func(take []int)
		try = func(take []int) {
			if i := len(take); i < len(offers) {
				for n := range len(offers[i].Guesses) + 1 {
					try(append(slices.Clone(take), n))
				}
				return
			}
			best = max(best, rate(take))
		}
		try(nil)
		if best <= margin(fixed) {
			best = 1
		}
		if d := rate(got) - best; d > 1e-9 || d < -1e-9 || gain-best > 1e-9 || best-gain > 1e-9 {
			t.Fatalf("seed %d: took %v with rate %v and said %v, the best is %v", seed, got, rate(got), gain, best)
		}
	}
}

// Nothing is verified where it cannot gain, and where nobody knows what it costs.
func TestChooseNothing(t *testing.T) {
	offers := []Offer{{Guesses: []Guess{{Class: half - 1}, {Class: half - 1}}, Book: NewBook(nil)}}
	for name, cost := range map[string]func(int) float64{
		"unknown":               func(int) float64 { return 0 },
		"each row costs a step": func(n int) float64 { return float64(1 + n) },
	} {
		if gain := choose(offers, 1, cost); gain != 1 || offers[0].Take != 0 {
			t.Errorf("%s: took %d, gain %v", name, offers[0].Take, gain)
		}
	}
	if gain := choose(offers, 1, func(int) float64 { return 1 }); gain < 2 || offers[0].Take != 2 {
		t.Errorf("rows for nothing: took %d, gain %v", offers[0].Take, gain)
	}
}
