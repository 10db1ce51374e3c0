package engine

import (
	"path/filepath"
	"slices"
	"testing"

	"ridge/model"
	"ridge/sample"
)

// verse makes every answer a text of a few tokens, again and again: a Jumper that
// forces some of them.
type verse struct {
	text  []int32
	at    int
	force int // how many are forced at a time
}

func (v *verse) Mask(logits []float32) {
	for i := range logits {
		if int32(i) != v.text[v.at] {
			logits[i] = negInf
		}
	}
}

func (v *verse) Accept(int32) error {
	v.at = (v.at + 1) % len(v.text)
	return nil
}

func (v *verse) Jump(dst []int32) []int32 {
	for i := range v.force {
		dst = append(dst, v.text[(v.at+i)%len(v.text)])
	}
	return dst
}

// An answer that only repeats itself ends where a loop is one by definition, if
// that was asked for, and is the same up to there.
func TestEndLoops(t *testing.T) {
	m, err := model.Open(filepath.Join(tinyModels, "llama"), model.Options{Workers: 1, PageTokens: 16, Context: 600, KVBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() }) //nolint:errcheck // of a model that is only read
	for _, c := range []struct {
		name string
		n    int // choices
		jump int
		min  int
		want int
	}{
		{name: "one", n: 1, want: sample.LoopTokens},
		{name: "three", n: 3, want: sample.LoopTokens},
		{name: "forced", n: 1, jump: 2, want: sample.LoopTokens + 2},
		{name: "least", n: 1, min: 450, want: 450},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := start(t, m, Options{})
			r := Request{Tokens: []int32{1, 5, 5, 5}, N: c.n, MinTokens: c.min, MaxTokens: 500, JumpAhead: c.jump > 0,
				NewMasker: func() Masker { return &verse{text: []int32{7, 8, 9, 10, 11}, force: c.jump} }}
			whole, _ := ask(t, e, r)
			r.EndLoops = true
			short, _ := ask(t, e, r)
			for i := range short {
				a, b := &short[i], &whole[i]
				if a.last.Finish != FinishLoop || b.last.Finish != FinishLength {
					t.Errorf("expected the reasons loop and length, found %q and %q", a.last.Finish, b.last.Finish)
				}
				if n := len(a.tokens); n < c.want-2 || n > c.want || !slices.Equal(a.tokens, b.tokens[:n]) {
					t.Errorf("expected the first %d tokens of %d, found %d", c.want, len(b.tokens), n)
				}
			}
		})
	}
}
