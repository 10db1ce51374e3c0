package grammar_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
	"ridge/text/grammar/schema"
)

func gateOf(t *testing.T, v *grammar.Vocabulary, o grammar.GateOptions) *grammar.Gate {
	t.Helper()
	g, err := schema.Compile(v, []byte(`{"type":"object","properties":{"name":{"type":"integer"}},"required":["name"]}`), schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := grammar.NewGate(g, o)
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

func TestGate(t *testing.T) {
	v := grammartest.Small()
	for _, c := range []struct {
		text string
		ok   bool
		open bool
	}{
		{`so {"x" </thin </think>{"name":1}`, true, true},
		{"free </think>\n\n {\"name\": 12}", true, true},
		{`</</think>{"name":1}`, true, true},
		{`</think>x`, false, false},
		{`a</think>{"nome":1}`, false, false},
		{`</think>` + strings.Repeat(" ", 9), false, false},
		{`no end`, true, false},
		{`</think`, true, false},
	} {
		for _, chunk := range []int{1, 3, 1000} {
			g := gateOf(t, v, grammar.GateOptions{Text: "</think>"})
			var err error
			for at := 0; at < len(c.text) && err == nil; at += chunk {
				err = g.AcceptBytes([]byte(c.text[at:min(at+chunk, len(c.text))]))
			}
			if (err == nil) != c.ok || c.ok && g.Open() != c.open {
				t.Errorf("%q in pieces of %d: %v, open %v", c.text, chunk, err, g.Open())
			}
			if c.ok && g.Complete() != c.open {
				t.Errorf("%q: complete %v", c.text, g.Complete())
			}
		}
	}
}

// Masks of a closed gate are what it accepts, whatever has been written.
func TestGateMaskIsAccept(t *testing.T) {
	v := grammartest.Small()
	for _, optional := range []bool{false, true} {
		for seed := range uint64(40) {
			rng := rand.New(rand.NewPCG(seed, 1))
			g := gateOf(t, v, grammar.GateOptions{Text: "</think>", Tokens: []int32{grammartest.EOS + 1}, Optional: optional})
			for range 12 {
				mask := append([]uint64(nil), g.MaskBits()...)
				logits := make([]float32, v.Size())
				g.Clone().Mask(logits)
				before := g.Snapshot()
				for id := range int32(v.Size()) {
					allowed := mask[id>>6]>>(id&63)&1 != 0
					err := g.Accept(id)
					g.Restore(before)
					if empty := id == grammartest.EOS+2; !empty && (allowed != (err == nil) || allowed != (logits[id] == 0)) {
						t.Fatalf("token %d %q: mask %v, logit %v, Accept: %v; open %v", id, grammartest.Pieces[id], allowed, logits[id], err, g.Open())
					}
				}
				// Head for the tag more often than chance would.
				id := grammartest.Pick(mask, rng)
				if !g.Open() && rng.IntN(2) == 0 {
					for _, word := range []string{"</think>", "</", "think", "nk>", ">\n{", ">"} {
						for i, p := range grammartest.Pieces {
							if string(p) == word && mask[i>>6]>>(i&63)&1 != 0 && rng.IntN(3) == 0 {
								id = int32(i)
							}
						}
					}
				}
				if err := g.Accept(id); err != nil {
					t.Fatal(err)
				}
				if v.IsEnd(id) {
					if !optional && !g.Open() {
						t.Fatal("ended before the gate opened")
					}
					if !g.Done() {
						t.Error("not done at the end")
					}
					break
				}
			}
		}
	}
}

func TestGateOptions(t *testing.T) {
	v := grammartest.Small()
	g, err := grammar.Regex(v, "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []grammar.GateOptions{{}, {Text: strings.Repeat("x", 300)}} {
		if _, err := grammar.NewGate(g, o); err == nil {
			t.Errorf("%+v is allowed", o)
		}
	}
	bare, err := grammar.Regex(nil, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := grammar.NewGate(bare, grammar.GateOptions{Text: "x"}); err == nil {
		t.Error("a gate without a vocabulary")
	}
	gate, err := grammar.NewGate(g, grammar.GateOptions{Tokens: []int32{grammartest.EOS + 1}})
	if err != nil {
		t.Fatal(err)
	}
	if gate.Forced() != nil || gate.Complete() || gate.Accept(grammartest.EOS) == nil {
		t.Error("a closed gate forces, is complete or ends")
	}
	if err := gate.AcceptBytes([]byte("anything at all")); err != nil || gate.Open() {
		t.Errorf("%v, open %v", err, gate.Open())
	}
	if err := gate.Accept(grammartest.EOS + 1); err != nil || !gate.Open() {
		t.Errorf("the token: %v, open %v", err, gate.Open())
	}
	if err := gate.Accept('a'); err != nil || !gate.Done() {
		t.Errorf("after the token: %v, done %v", err, gate.Done())
	}
}
