package sample

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// isLoop is the definition of a loop.
func isLoop(tokens []int32) int {
	for p := 1; p <= LoopPeriod; p++ {
		n := min(p, len(tokens))
		for n < len(tokens) && tokens[len(tokens)-1-n] == tokens[len(tokens)-1-n+p] {
			n++
		}
		if n >= LoopTokens && n >= LoopTimes*p {
			return p
		}
	}
	return 0
}

// Loop says what the definition says, token by token.
func TestLoopDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Texts that come near to loops: pieces repeated, with a token now and then
		// that does not fit.
		var tokens []int32
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			piece := rapid.SliceOfN(rapid.Int32Range(0, 3), 1, 300).Draw(t, "piece")
			if rapid.Bool().Draw(t, "short") {
				piece = piece[:min(len(piece), rapid.IntRange(1, 20).Draw(t, "period"))]
			}
			n := rapid.IntRange(0, min(10, 2500/len(piece))).Draw(t, "times")
			if rapid.Bool().Draw(t, "long") {
				n = 450/len(piece) + 1
			}
			for range n {
				tokens = append(tokens, piece...)
			}
			tokens = append(tokens, rapid.SliceOfN(rapid.Int32Range(0, 3), 0, 3).Draw(t, "between")...)
		}
		var l Loop
		for i, tok := range tokens {
			// The definition is slow: looked at where something could change.
			got := l.Add(tok)
			if got > 0 || i%37 == 0 || i == len(tokens)-1 {
				if want := isLoop(tokens[:i+1]); got != want {
					t.Fatalf("after %d tokens: expected period %d, found %d", i+1, want, got)
				}
			}
		}
	})
}

// words makes tokens of a text: its words and marks, digits one by one.
func words(text string) (tokens []int32) {
	ids := map[string]int32{}
	word := ""
	flush := func() {
		if word == "" {
			return
		}
		if _, ok := ids[word]; !ok {
			ids[word] = int32(len(ids))
		}
		tokens = append(tokens, ids[word])
		word = ""
	}
	for _, r := range text {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			word += string(r)
			continue
		}
		flush()
		word = string(r)
		flush()
	}
	flush()
	return tokens
}

func ended(tokens []int32) int {
	var l Loop
	for i, tok := range tokens {
		if l.Add(tok) > 0 {
			return i + 1
		}
	}
	return 0
}

// Texts that say something new in every line are not ended, as alike as the lines
// may be; neither are rules and repetitions of a length that people write.
func TestLoopKeeps(t *testing.T) {
	rows := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(i+1)))
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"numbers":          rows(2000, "#\n"),
		"numbers, commas":  rows(2000, "#, "),
		"numbered list":    rows(300, "#. An item of the list\n"),
		"table":            rows(300, "| # | yes | no | no | no |\n"),
		"code":             rows(300, "\tif x == # {\n\t\treturn nil\n\t}\n"),
		"JSON":             rows(300, `{"id": #, "tags": [], "done": false},`),
		"tests":            "func f() {\n" + rows(200, "\tassert(f(#) == #)\n") + "}",
		"rule":             strings.Repeat("-", 200),
		"rule of a table":  strings.Repeat("|---", 60) + "|",
		"matrix of zeros":  strings.Repeat("0 0 0 0 0 0 0 0\n", 16),
		"a word 100 times": strings.Repeat("again ", 100),
		"verse":            strings.Repeat("Row, row, row your boat, gently down the stream.\n", 7),
	} {
		if n := ended(words(text)); n > 0 {
			t.Errorf("%s is ended after %d tokens", name, n)
		}
	}
}

// A text that only repeats itself is ended soon.
func TestLoopEnds(t *testing.T) {
	var long strings.Builder // 126 tokens
	for i := range 63 {
		fmt.Fprintf(&long, "%c%c ", 'a'+i/26, 'a'+i%26)
	}
	for text, want := range map[string]int{
		"a ":                   LoopTokens,
		"la Femme, ":           LoopTokens,
		"It is a city. It is ": LoopTokens,
		long.String():          LoopTimes * 126,
	} {
		before := "Something else was said first. "
		n := ended(words(before + strings.Repeat(text, 2000)))
		if over := n - len(words(before)); over < want-3 || over > want+3 {
			t.Errorf("%.20q: expected the end after about %d tokens, found %d", text, want, over)
		}
	}
}

// Adding a token allocates nothing.
func TestLoopAllocates(t *testing.T) {
	var l Loop
	i := int32(0)
	if n := testing.AllocsPerRun(2000, func() { l.Add(i % 7); i++ }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Periods found are the shortest ones.
func TestLoopPeriod(t *testing.T) {
	var l Loop
	var seen []int
	for i := range 2000 {
		if p := l.Add(int32(i % 5)); p > 0 && !slices.Contains(seen, p) {
			seen = append(seen, p)
		}
	}
	if !slices.Equal(seen, []int{5}) {
		t.Errorf("expected a period of 5, found %v", seen)
	}
}

func BenchmarkLoop(b *testing.B) {
	var l Loop
	for i := range b.N {
		l.Add(int32(i % 1000))
	}
}
