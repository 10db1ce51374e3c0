package chat

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// stopModel is StopMatcher on a whole text, byte by byte.
func stopModel(text string, stops []string) (out, matched string, stopped bool) {
	for end := range len(text) + 1 {
		best := ""
		for _, s := range stops {
			if len(s) > len(best) && strings.HasSuffix(text[:end], s) {
				best = s
			}
		}
		if best != "" {
			return text[:end-len(best)], best, true
		}
	}
	return text, "", false
}

func TestStopMatcher(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.RuneFrom([]rune("abé<")), 0, 6, -1)
		stops := rapid.SliceOfN(word, 0, 4).Draw(t, "stops")
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abé<")), 0, 40, -1).Draw(t, "text")
		m := NewStopMatcher(stops)
		var out strings.Builder
		stopped := false
		for rest := text; rest != ""; {
			n := rapid.IntRange(0, len(rest)).Draw(t, "piece")
			emit, stop := m.Add(rest[:n])
			out.WriteString(emit)
			if stopped && (!stop || emit != "") {
				t.Fatalf("gave out %q after the stop", emit)
			}
			stopped = stop
			rest = rest[n:]
			if n == 0 {
				continue
			}
			// What is held back is needed: it begins a stop string.
			if held := m.held; held != "" {
				ok := false
				for _, s := range stops {
					ok = ok || strings.HasPrefix(s, held)
				}
				if !ok {
					t.Fatalf("held back %q, which begins none of %q", held, stops)
				}
			}
		}
		out.WriteString(m.Flush())
		want, matched, wantStop := stopModel(text, stops)
		if out.String() != want || stopped != wantStop || m.Matched() != matched {
			t.Fatalf("%q with %q: got %q, stopped %v by %q; want %q, %v, %q",
				text, stops, out.String(), stopped, m.Matched(), want, wantStop, matched)
		}
	})
}

// TestStopSingle: with one stop string it is strings.Index.
func TestStopSingle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stop := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 1, 5, -1).Draw(t, "stop")
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 60, -1).Draw(t, "text")
		m := NewStopMatcher([]string{stop})
		var out strings.Builder
		for i := range len(text) {
			emit, _ := m.Add(text[i : i+1])
			out.WriteString(emit)
		}
		out.WriteString(m.Flush())
		want := text
		if i := strings.Index(text, stop); i >= 0 {
			want = text[:i]
		}
		if out.String() != want {
			t.Fatalf("%q until %q: got %q, want %q", text, stop, out.String(), want)
		}
	})
}
