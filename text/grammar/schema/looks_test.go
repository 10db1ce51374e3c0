package schema

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"

	"ridge/text/grammar"
)

// Expressions with look-around match what an engine for ECMAScript says they do.
func TestLookAround(t *testing.T) {
	for _, expr := range []string{
		`^(?=.*b)a*b?c*$`, `^(?!.*bb)[abc]+$`, `^(?:(?!ab).)*$`, `a(?=b)`, `a(?!b)`, `(?=a)b`, `(?<=a)b`, `(?<!a)b`, `^(?=(?:ab)+$)a`,
		`^(?!^[-+.]*$)[+-]?0*1*\.?1*$`, `(?!a)(?!b)c$`, `^(?=a|b)(?=.{2,3}$)[abc]*$`, `^(?:a(?=b)|b(?=a))*[ab]$`, `(?<=^|,)a+(?=,|$)`, `^(?!a$|b$)`, `(?<![ab])c(?![bc])`,
		`^(?=.*a(?!c))b`, `^(?=.*a)(?=.*b)(?=.*1).{3,5}$`, `^P(?:(1+W)|(?!.*W)(?=1|T1)(1+Y)?(T(?=1)(1+H)?)?)$`, `\b(?=a)\w+\b(?!,)`, `^(?<year>1+)-(?!1)`, `(?:(?=a)|b)c|(?!b)[ab]{2}$`,
		`(?=a{0})`, `^(?=)$`, `^((?!,,)[a,])*$`, `^(?!.*(?:ab|ba){2})[ab]{0,6}$`,
	} {
		re, err := regexp2.Compile(expr, regexp2.ECMAScript)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		b := &grammar.Builder{Source: "schema"}
		d := b.Pattern("#", "pattern", expr, true)
		if b.Err() != nil {
			t.Errorf("%s: %v", expr, b.Err())
			continue
		}
		rng := rand.New(rand.NewPCG(7, uint64(len(expr))))
		matched := 0
		for i := range 1500 {
			n := rng.IntN(8)
			if i < 8 {
				n = 1
			}
			var text strings.Builder
			letters := "abcab1,-+. PWYTH\n"
			if i%3 == 0 {
				letters = "ab"
			} else if i%3 == 1 && strings.Contains(expr, "T") {
				letters = "P1WYTH1"
			}
			if strings.HasPrefix(expr, "^P") {
				text.WriteByte('P')
			}
			for range n {
				text.WriteByte(letters[rng.IntN(len(letters))])
			}
			want, err := re.MatchString(text.String())
			if err != nil {
				t.Fatal(err)
			}
			if want {
				matched++
			}
			if got := d.Match(text.String()); got != want {
				t.Errorf("%s: %q matches: %v, want %v", expr, text.String(), got, want)
				break
			}
		}
		if matched == 0 && expr != `(?=a)b` {
			t.Errorf("%s: no text matches: the test says little", expr)
		}
	}
}
