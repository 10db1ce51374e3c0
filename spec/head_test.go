package spec

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/model"
	"ridge/weights/tensor"
)

const tinyModels, tinyHeads = "../internal/tinymodel/testdata/", "../internal/tinymodel/heads/"

// openTinyHead opens a tiny model, and what drafts for it.
func openTinyHead(t *testing.T, name string) (*model.Model, *trained) {
	t.Helper()
	m, err := model.Open(tinyModels+"llama", model.Options{KV: tensor.F16, Workers: 1, Context: 120})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	h, err := m.OpenDraftHead(filepath.Join(tinyHeads, name))
	if err != nil {
		t.Fatal(err)
	}
	s := &trained{h: h}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, s
}

// rowsOf computes a text and returns what a head reads of each row.
func rowsOf(t *testing.T, m *model.Model, s *trained, tokens []int32) (rows [][][]float32) {
	t.Helper()
	seq := m.Pool().NewSeq()
	defer m.Pool().Free(seq)
	if err := m.Forward(&model.Step{Runs: []model.Run{{Seq: seq, Tokens: tokens}}, Taps: s.h.Taps()}); err != nil {
		t.Fatal(err)
	}
	for r := range tokens {
		var row [][]float32
		for k := range s.h.Taps() {
			row = append(row, slices.Clone(m.Tapped(k, r)))
		}
		rows = append(rows, row)
	}
	return rows
}

// A drafter guesses what one guesses that has read the same rows and was never asked
// before: whatever was guessed and came to nothing, however rows come, whether some come
// twice, and where the text begins for it.
func TestHeadFollowsText(t *testing.T) {
	for _, name := range []string{"medusa", "medusa-map", "eagle", "eagle3"} {
		m, s := openTinyHead(t, name)
		r := rand.New(rand.NewPCG(uint64(len(name)), 7))
		text := make([]int32, 50)
		for i := range text {
			text[i] = r.Int32N(128)
		}
		rows := rowsOf(t, m, s, text)
		for range 4 {
			from := r.IntN(8) // what is before it came from a cache of prefixes
			q := s.drafter().(*headSeq)
			for at := from; at < len(text)-1; {
				n := min(1+r.IntN(6), len(text)-1-at)
				for k := range n {
					q.Read(text[:at+n+1], at+k, rows[at+k])
					if r.IntN(3) == 0 { // computed again
						q.Read(text[:at+n+1], at+k-r.IntN(k+1), rows[at+k-r.IntN(k+1)])
					}
				}
				at += n
				fresh := s.drafter().(*headSeq)
				for k := from; k < at; k++ {
					fresh.Read(text[:at+1], k, rows[k])
				}
				ask := func(q *headSeq) (guesses []Guess) {
					if n%2 == 0 {
						return q.Draft(nil, text[:at+1], 3)
					}
					for range 3 {
						guesses = q.Branch(guesses, text[:at+1], 2)
					}
					return guesses
				}
				want := ask(fresh)
				for range 1 + n%2 { // asked twice, it says the same
					if got := ask(q); !slices.Equal(got, want) || len(got) == 0 {
						t.Fatalf("%s: at %d: %v, want %v", name, at, got, want)
					}
				}
				fresh.Close()
			}
			if q.Bytes() <= 0 || q.Lag(text) != 1 || q.Lag(text[:9]) != 9 {
				t.Errorf("%s: %d bytes, %d rows wait", name, q.Bytes(), q.Lag(text))
			}
			if got := q.Draft(nil, text[:20], 2); len(got) > 0 {
				t.Errorf("%s: guesses %v behind a text whose last row it was not told", name, got)
			}
			q.Close()
			if got := q.Draft(nil, text, 2); len(got) > 0 || q.Bytes() != 0 {
				t.Errorf("%s: closed, it guesses %v and has %d bytes", name, got, q.Bytes())
			}
		}
	}
}

// A chain has the likeliest tokens of the head, and a tree is a tree of them: the first
// guess of each place behind the likeliest ones is the chain's.
func TestHeadTrees(t *testing.T) {
	m, s := openTinyHead(t, "eagle")
	text := []int32{5, 17, 40, 3, 99, 61}
	q := s.drafter().(*headSeq)
	for at, rows := range rowsOf(t, m, s, text[:5]) {
		q.Read(text, at, rows)
	}
	chain := slices.Clone(q.Draft(nil, text, 3))
	one := q.Branch(nil, text, 1)
	two := q.Branch(slices.Clone(one), text, 1)
	if len(chain) != 3 || one[0].Token != chain[0].Token || Depth(two) != 2 {
		t.Errorf("chain %v, trees %v and %v", chain, one, two)
	}
	wide := q.Branch(nil, text, 4)
	for depth := 2; depth < 5; depth++ {
		more := q.Branch(slices.Clone(wide), text, 4)
		if len(more) <= len(wide) || !slices.Equal(more[:len(wide)], wide) || Depth(more) != depth {
			t.Fatalf("depth %d: %v behind %v", depth, more, wide)
		}
		wide = more
	}
}

// Where there is no room for keys and values nothing is guessed, and drafters begin anew.
func TestHeadRoom(t *testing.T) {
	m, s := openTinyHead(t, "eagle")
	text := make([]int32, 50)
	for i := range text {
		text[i] = int32(i * 7 % 128)
	}
	rows := rowsOf(t, m, s, text)
	var all []*headSeq
	guessed, refused := 0, 0
	for range 12 {
		q := s.drafter().(*headSeq)
		all = append(all, q)
		for at := range 49 {
			q.Read(text, at, rows[at])
		}
		if len(q.Draft(nil, text, 2)) == 2 {
			guessed++
		} else {
			refused++
		}
	}
	if guessed == 0 || refused == 0 {
		t.Errorf("%d guess, %d have no room", guessed, refused)
	}
	for _, q := range all[:11] {
		q.Close()
	}
	last := all[11]
	last.Read(text, 48, rows[48])
	if got := last.Draft(nil, text, 2); len(got) != 2 {
		t.Errorf("with room again: %v", got)
	}
}

// A head needs no memory of its own for a guess.
func TestHeadAllocations(t *testing.T) {
	for _, name := range []string{"medusa", "eagle", "eagle3"} {
		m, s := openTinyHead(t, name)
		text := make([]int32, 100)
		for i := range text {
			text[i] = int32(i * 11 % 128)
		}
		rows := rowsOf(t, m, s, text)
		q := s.drafter().(*headSeq)
		guesses := make([]Guess, 0, MaxRows)
		at := 0
		step := func() {
			q.Read(text[:at+2], at, rows[at])
			guesses = guesses[:0]
			for range 3 {
				guesses = q.Branch(guesses, text[:at+2], 3)
			}
			at++
		}
		for range 20 {
			step()
		}
		if n := testing.AllocsPerRun(50, step); n > 0.5 { // a page now and then
			t.Errorf("%s: %v allocations a step", name, n)
		}
	}
}

func TestParseHeads(t *testing.T) {
	for text, want := range map[string]Setting{
		"head=dir": {Kind: Trained, Model: "dir"}, "mtp": {Kind: Trained},
		`{"method":"eagle3","model":"x","num_speculative_tokens":3}`: {Kind: Trained, Model: "x", Most: 3},
		`{"method":"deepseek_mtp"}`:                                  {Kind: Trained},
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"head=", "medusa", `{"method":"mtp","model":"x"}`} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), "expected a path of a head") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
