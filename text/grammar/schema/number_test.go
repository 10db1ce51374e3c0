package schema

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"ridge/text/grammar"
)

// The automaton of a range of numbers against the numbers.
func TestNumberRanges(t *testing.T) {
	for i := range 400 {
		rng := rand.New(rand.NewPCG(51, uint64(i)))
		pick := func() string {
			s := []string{"0", "1", "-1", "9", "10", "99", "100", "101", "-100", "0.5", "-0.5", "1.25", "12.34", "-12.34", "0.001", "1e2", "7", "123456", "-99.99"}
			return s[rng.IntN(len(s))]
		}
		rat := func(s string) *big.Rat { r, _ := parseRat(s); return r }
		spec := numberSpec{fractions: rng.IntN(2) == 0}
		if rng.IntN(4) > 0 {
			spec.lo, spec.openLo = rat(pick()), rng.IntN(2) == 0
		}
		if rng.IntN(4) > 0 {
			spec.hi, spec.openHi = rat(pick()), rng.IntN(2) == 0
		}
		if rng.IntN(3) == 0 {
			spec.multiple = rat([]string{"1", "2", "3", "7", "0.5", "0.01", "10", "0.125"}[rng.IntN(8)])
		}
		b := &grammar.Builder{Source: "test"}
		d := numberDFA(b, spec)
		if b.Err() != nil {
			t.Fatal(b.Err())
		}
		s := &schema{types: typeNumber, lo: spec.lo, hi: spec.hi, openLo: spec.openLo, openHi: spec.openHi}
		if spec.multiple != nil {
			s.multiples = append(s.multiples, spec.multiple)
		}
		for range 200 {
			text := randomNumber(rng)
			x := rat(text)
			want := validNumber(s, x) && (spec.fractions || !strings.Contains(text, "."))
			if got := d.Match(text); got != want {
				if spec.multiple != nil && strings.Contains(text, ".") && strings.HasSuffix(text, "0") {
					continue // more digits than the step has
				}
				if want && strings.HasPrefix(text, "-") && x.Sign() == 0 {
					continue // -0 where no other negative number is possible
				}
				t.Fatalf("%+v: %s: accepted %v, want %v", spec, text, got, want)
			}
		}
	}
}

func randomNumber(rng *rand.Rand) string {
	var b strings.Builder
	if rng.IntN(3) == 0 {
		b.WriteByte('-')
	}
	if n := rng.IntN(4); n == 0 {
		b.WriteByte('0')
	} else {
		b.WriteByte(byte('1' + rng.IntN(9)))
		for range n - 1 {
			b.WriteByte("0912345"[rng.IntN(7)])
		}
	}
	if rng.IntN(2) == 0 {
		b.WriteByte('.')
		for range 1 + rng.IntN(3) {
			b.WriteByte("0592134"[rng.IntN(7)])
		}
	}
	return b.String()
}
