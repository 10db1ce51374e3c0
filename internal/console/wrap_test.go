package console

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

// Text that comes in pieces is broken as if it came at once, no line is too wide,
// and nothing is lost but blanks between lines.
func TestWrapPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(2, 20).Draw(t, "width")
		runes := rapid.SampledFrom([]rune("aaaabc  \n\t-日é.,"))
		pieces := rapid.SliceOfN(rapid.StringOfN(runes, 0, 9, -1), 0, 12).Draw(t, "pieces")
		text := strings.Join(pieces, "")
		var whole, w wrapper
		want := append(whole.add(text, width), whole.last())
		var got []string
		for _, p := range pieces {
			got = append(got, w.add(p, width)...)
		}
		got = append(got, w.last())
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("width %d:\nexpected %q\nfound    %q", width, want, got)
		}
		for _, line := range got[:len(got)-1] {
			if ansi.StringWidth(strings.TrimRight(line, " ")) > width {
				t.Fatalf("a line of more than %d columns: %q", width, line)
			}
		}
		letters := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if letters(strings.Join(got, " ")) != letters(text) {
			t.Fatalf("expected the letters of %q, found %q", text, got)
		}
	})
}

// A printer prints what a wrapper breaks, whatever the pieces.
func TestPrinter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(2, 20).Draw(t, "width")
		runes := rapid.SampledFrom([]rune("aaaabc  \n\t-日é.,"))
		pieces := rapid.SliceOfN(rapid.StringOfN(runes, 0, 9, -1), 0, 12).Draw(t, "pieces")
		var out strings.Builder
		p := Printer{out: &out, width: func() int { return width }}
		var whole wrapper
		want := whole.add(strings.Join(pieces, ""), width)
		want = append(want, whole.last())
		for _, s := range pieces {
			if _, err := p.Write([]byte(s)); err != nil {
				t.Fatal(err)
			}
			if left := ansi.StringWidth(p.text.last()[p.printed:]); left > width+1 {
				t.Fatalf("%q is held back", p.text.last()[p.printed:])
			}
		}
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != strings.Join(want, "\n") {
			t.Fatalf("width %d:\nexpected %q\nfound    %q", width, strings.Join(want, "\n"), got)
		}
	})
}

// What a model writes does nothing to a terminal.
func TestClean(t *testing.T) {
	if got, want := clean("a\x1b[2Jb\r\n\tc\x9bd\x07"), "a\ufffd[2Jb\n\tc\ufffdd\ufffd"; got != want {
		t.Errorf("expected %q, found %q", want, got)
	}
}

// Texts are given as they were pasted, tabs and marks of tabs included.
func TestShownMeant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("a\t\n\u2409 é"))).Draw(t, "text")
		if s := shown(text); strings.Contains(s, "\t") || meant(s) != text {
			t.Fatalf("%q is shown as %q and given as %q", text, s, meant(s))
		}
	})
}

// Messages are kept, those of several lines too, and the last ones only.
func TestHistory(t *testing.T) {
	path := t.TempDir() + "/history"
	h, err := openHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a", "two\nlines", `"quoted"`, "it's", "'x'"}
	for _, e := range append(want, "", " ", "'x'") {
		if err := h.add(e); err != nil {
			t.Fatal(err)
		}
	}
	if h, err = openHistory(path); err != nil {
		t.Fatal(err)
	}
	if strings.Join(h.entries, "|") != strings.Join(want, "|") {
		t.Errorf("expected %q, found %q", want, h.entries)
	}
	if i := h.before(len(h.entries), "o"); h.entries[i] != `"quoted"` || h.before(i, "o") != 1 || h.before(1, "o") != -1 {
		t.Error("the history is not searched backwards")
	}
	for range historyEntries {
		h.entries = append(h.entries, "b")
		if err := h.add("c"); err != nil {
			t.Fatal(err)
		}
	}
	if h, err = openHistory(path); err != nil || len(h.entries) != historyEntries || h.entries[0] != "c" {
		t.Errorf("expected the last %d entries, found %d (%v)", historyEntries, len(h.entries), err)
	}
}
