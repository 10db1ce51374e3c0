package engine

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// A session has the keys of the side of the border that its tokens are on, and is
// found by prompts on the same side.
func TestSessionsOfLongRope(t *testing.T) {
	const border = 32
	for _, size := range []int{border / 2, border, border + 20} {
		q := Request{Tokens: randomTokens(rand.New(rand.NewPCG(3, 4)), size, 128), MaxTokens: 1}
		e := start(t, openTiny(t, "phi3-longrope-long", 20), Options{})
		got, _ := ask(t, e, q)
		all := append(slices.Clone(q.Tokens), got[0].tokens...)
		var file bytes.Buffer
		if n, err := e.SaveSession(t.Context(), &file, Session{Tokens: all}); err != nil || n != size {
			t.Fatalf("%d tokens: saved %d: %v", size, n, err)
		}
		m := openTiny(t, "phi3-longrope-long", 20)
		q = Request{Tokens: append(all, 5, 6), MaxTokens: 12}
		want := alone(t, m, q)
		e = start(t, m, Options{})
		if _, err := e.LoadSession(t.Context(), &file, Session{}); err != nil {
			t.Fatal(err)
		}
		cached := size
		if size == border { // the prompt is past it
			cached = 0
		}
		expect(t, strconv.Itoa(size)+" tokens", e, q, &want, cached)
	}
}
