package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// TestSlowForms compares the slow way with x/text where runs of marks are
// short.
func TestSlowForms(t *testing.T) {
	classes()
	r := rand.New(rand.NewPCG(1, 1))
	for range 20000 {
		var b strings.Builder
		for range 1 + r.IntN(12) {
			switch r.IntN(5) {
			case 0:
				b.WriteRune(rune(0x300 + r.IntN(0x70)))
			case 1:
				b.WriteRune(rune(0xAC00 + r.IntN(11172)))
			case 2:
				b.WriteRune(rune(0x1100 + r.IntN(0x100)))
			case 3:
				b.WriteByte("aeiou\xff"[r.IntN(6)])
			default:
				if c := rune(r.IntN(0x30000)); c < 0xD800 || c > 0xDFFF {
					b.WriteRune(c)
				}
			}
		}
		s := b.String()
		for _, form := range []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD} {
			want := string(form.AppendString(nil, s))
			if got := string(unicodeForm{form}.slow(nil, s)); got != want {
				t.Fatalf("form %d of %+q:\n got %+q\nwant %+q", form, s, got, want)
			}
		}
	}
}

// TestLongRunOfMarks has what Python's unicodedata says of runs that x/text
// would break up.
func TestLongRunOfMarks(t *testing.T) {
	classes()
	marks := strings.Repeat("\u0301\u0327\u0308", 15)
	for _, c := range []struct {
		form norm.Form
		want string
	}{
		{norm.NFC, "\u00e1" + strings.Repeat("\u0327", 15) + strings.Repeat("\u0308\u0301", 14) + "\u0308"},
		{norm.NFD, "a" + strings.Repeat("\u0327", 15) + strings.Repeat("\u0301\u0308", 15)},
	} {
		n := unicodeForm{c.form}
		if n.same("a" + marks) {
			t.Errorf("form %d: taken as normal", c.form)
		}
		if got := string(n.append(nil, "a"+marks)); got != c.want {
			t.Errorf("form %d:\n got %+q\nwant %+q", c.form, got, c.want)
		}
	}
}
