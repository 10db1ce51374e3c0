package spec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// longestBefore finds the longest piece at the end of b that is in a and ends there
// before the place limit, by looking at every place; end is the first one.
func longestBefore(a, b []int32, limit int) (end, long int) {
	for at := 1; at <= limit; at++ {
		n := 0
		for n < at && n < len(b) && a[at-1-n] == b[len(b)-1-n] {
			n++
		}
		if n > long {
			end, long = at, n
		}
	}
	return end, long
}

// An automaton knows the longest piece at the end of its text that was there before,
// and of another text the longest that it has, as both grow.
func TestAutomatonEqualsSearch(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		vocab := []int32{2, 3, 10, 60}[seed%4]
		a, p := newAutomaton(r.IntN(10)), place{}
		var text, other []int32
		for len(text) < 150 {
			if r.IntN(8) == 0 && len(text) > 20 {
				from := r.IntN(len(text) - 10)
				for _, id := range text[from:][:3+r.IntN(6)] {
					text = append(text, id)
					a.add(id)
				}
			}
			id := r.Int32N(vocab)
			text = append(text, id)
			a.add(id)
			end, long := a.repeated()
			if wantEnd, want := longestBefore(text, text, len(text)-1); long != want || want > 0 && end != wantEnd {
				t.Fatalf("seed %d, %v: %d tokens up to %d, want %d up to %d", seed, text, long, end, want, wantEnd)
			}
			if r.IntN(3) == 0 {
				continue // the other text is read while this one grows
			}
			// What was added since the last token is not searched for again: no longer match than by search.
			other = append(other, r.Int32N(vocab))
			p = a.read(p, other[len(other)-1])
			_, most := longestBefore(text, other, len(text))
			if int(p.long) > most || p.long > 0 && !slices.Equal(text[int(a.states[p.state].end)-int(p.long):a.states[p.state].end], other[len(other)-int(p.long):]) {
				t.Fatalf("seed %d: %d tokens are like the end of the other text, want at most %d", seed, p.long, most)
			}
		}
		q := place{}
		for i, id := range other {
			q = a.read(q, id)
			if _, want := longestBefore(text, other[:i+1], len(text)); int(q.long) != want {
				t.Fatalf("seed %d: %d tokens of the other text are found, want %d", seed, q.long, want)
			}
		}
	}
}

// A text is drafted from an earlier one of its tenant, and of no other.
func TestSuffixesOfTenant(t *testing.T) {
	x := NewSuffixes()
	first := x.Drafter("a")
	text := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9}
	if got := first.Draft(nil, text, 4); len(got) != 0 {
		t.Errorf("guesses %v of a text that repeats nothing", got)
	}
	first.Close()
	for tenant, want := range map[string]string{"a": "[5 6 7]", "b": "[]", "": "[]"} {
		var ids []int32
		d := x.Drafter(tenant)
		for _, g := range d.Draft(nil, []int32{70, 3, 4}, 3) {
			ids = append(ids, g.Token)
		}
		if got := fmt.Sprint(ids); got != want {
			t.Errorf("tenant %q: guesses %s, want %s", tenant, got, want)
		}
		// Behind the end of a text there is nothing.
		if got := d.Draft(nil, []int32{70, 3, 4, 8, 9}, 3); len(got) != 0 {
			t.Errorf("tenant %q: guesses %v behind the end of a text", tenant, got)
		}
	}
}

// What is kept is bounded, for each tenant and for all, and what was kept last is known.
func TestSuffixesBounded(t *testing.T) {
	x := NewSuffixes()
	r := rand.New(rand.NewPCG(1, 8))
	var last []int32
	for i := range 100 {
		d := x.Drafter(fmt.Sprint("tenant ", min(i%70, 3+i/25)))
		last = last[:0:0]
		for range 2500 {
			last = append(last, r.Int32N(20000))
		}
		d.Draft(nil, last, 1)
		d.Close()
		if d.Bytes() != 0 {
			t.Fatal("bytes after Close")
		}
	}
	for range 2 * mostTenants {
		d := x.Drafter(fmt.Sprint(r.Uint64()))
		d.Draft(nil, last[:40], 1)
		d.Close()
	}
	if len(x.tenants) > mostTenants || x.Bytes() > 12*shelfTokens*150 {
		t.Errorf("%d tenants, %d bytes", len(x.tenants), x.Bytes())
	}
	d := x.Drafter("z")
	d.Draft(nil, last, 1)
	d.Close()
	d = x.Drafter("z")
	if got := d.Draft(nil, last[1000:1010], 2); len(got) != 2 || got[0].Token != last[1010] || got[1].Token != last[1011] || got[0].Class != suffixes+10 {
		t.Errorf("got %v, want %v", got, last[1010:1012])
	}
}

// Guesses of a text within the room allocate nothing.
func TestSuffixAllocations(t *testing.T) {
	d := NewSuffixes().Drafter("").(*suffixSeq)
	d.own = newAutomaton(3000)
	r := rand.New(rand.NewPCG(1, 1))
	text, out := make([]int32, 0, 3000), make([]Guess, 0, 8)
	for range 100 {
		text = append(text, r.Int32N(40))
	}
	d.Draft(out, text, 8)
	if n := testing.AllocsPerRun(1, func() {
		for range 1000 {
			text = append(text, r.Int32N(40))
			d.Draft(out, text, 8)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if per := d.Bytes() / 3000; per > 200 {
		t.Errorf("%d bytes a token", per)
	}
}
