package grammar_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
	"ridge/text/grammar/schema"
)

// sources compile to grammars of every kind.
var sources = map[string]func(v *grammar.Vocabulary) (*grammar.Grammar, error){
	"json": func(v *grammar.Vocabulary) (*grammar.Grammar, error) { return schema.JSON(v, false, schema.Options{}) },
	"json object": func(v *grammar.Vocabulary) (*grammar.Grammar, error) {
		return schema.JSON(v, true, schema.Options{Whitespace: schema.Pretty})
	},
	"shallow json": func(v *grammar.Vocabulary) (*grammar.Grammar, error) {
		return schema.JSON(v, false, schema.Options{MaxDepth: 4})
	},
	"person": func(v *grammar.Vocabulary) (*grammar.Grammar, error) {
		return schema.Compile(v, []byte(`{"type":"object","properties":{"name":{"type":"string","minLength":2,"maxLength":9},
			"age":{"type":"integer","minimum":0,"maximum":130},"na":{"type":"array","items":{"type":"boolean"},"maxItems":5}},
			"required":["name"],"additionalProperties":{"type":"null"}}`), schema.Options{})
	},
	"tree": func(v *grammar.Vocabulary) (*grammar.Grammar, error) {
		return schema.Compile(v, []byte(`{"$defs":{"t":{"type":"object","properties":{"v":{"enum":[1,12,"a","ab",null]},
			"next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/t"},{"type":"array","items":{"$ref":"#/$defs/t"},"minItems":1,"maxItems":3}]}},
			"required":["v","next"]}},"$ref":"#/$defs/t"}`), schema.Options{Whitespace: schema.Compact})
	},
	"any order": func(v *grammar.Vocabulary) (*grammar.Grammar, error) {
		return schema.Compile(v, []byte(`{"properties":{"a":{"type":"integer"},"ab":{"type":"string"},"abc":{"const":[1,{"x":"é"}]}},"required":["ab"]}`), schema.Options{AnyOrder: true})
	},
	"dates": func(v *grammar.Vocabulary) (*grammar.Grammar, error) {
		return schema.Compile(v, []byte(`{"format":"date-time"}`), schema.Options{})
	},
	"regex": func(v *grammar.Vocabulary) (*grammar.Grammar, error) {
		return grammar.Regex(v, `(a|ab)(c|bcd)*\d{2,4}[^\x00-é]?\b`)
	},
	"choice": func(v *grammar.Vocabulary) (*grammar.Grammar, error) {
		return grammar.Choice(v, []string{"a", "ab", "abc", "name", "日本", ""})
	},
	"counts": func(v *grammar.Vocabulary) (*grammar.Grammar, error) {
		return grammar.GBNF(v, `root ::= ("a" | "aa"){3,400} "b"{2} tail{0,300}
			tail ::= "ab" | "a" "b" tail? | [^ab] root?`)
	},
	"ambiguous": func(v *grammar.Vocabulary) (*grammar.Grammar, error) {
		return grammar.GBNF(v, `root ::= "a" root | "a" root root | "a" other* | "b"
			other ::= "a" | "aa" other | root "c"`)
	},
	"brackets": func(v *grammar.Vocabulary) (*grammar.Grammar, error) {
		return grammar.GBNF(v, "root ::= item*\nitem ::= \"[\" root \"]\" | \"{\" root \"}\" | \"{\" root \"]\"")
	},
	"tools": func(v *grammar.Vocabulary) (*grammar.Grammar, error) {
		return schema.Tools(v, []schema.Tool{{Name: "name"}, {Name: "na", Parameters: []byte(`{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]}`)}},
			schema.ToolOptions{Begin: "<tool>", End: "</tool>\n", MinCalls: 1, MaxCalls: 3})
	},
}

// What a mask allows is exactly what the state accepts, token by token, at random
// points of random texts.
func TestMaskIsAccept(t *testing.T) {
	v := grammartest.Small()
	for name, compile := range sources {
		t.Run(name, func(t *testing.T) {
			g, err := compile(v)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			for range 30 {
				s := g.NewState()
				for range 25 {
					if !sameAsAccept(t, s) {
						return
					}
					if id := grammartest.Pick(s.MaskBits(), rng); id < 0 || s.Accept(id) != nil || v.IsEnd(id) {
						break
					}
				}
				sameAsAccept(t, s)
			}
		})
	}
}

func sameAsAccept(t *testing.T, s *grammar.State) bool {
	t.Helper()
	v := s.Vocabulary()
	mask := s.MaskBits()
	logits := make([]float32, v.Size()+3)
	for i := range logits {
		logits[i] = float32(i)
	}
	s.Clone().Mask(logits)
	before := s.Snapshot()
	for id := range int32(v.Size()) {
		allowed := mask[id>>6]>>(id&63)&1 != 0
		err := s.Accept(id)
		s.Restore(before)
		if allowed != (err == nil) {
			t.Errorf("token %d %q: mask says %v, Accept says %v", id, v.Bytes(id), allowed, err)
			return false
		}
		if kept := logits[id] == float32(id); kept != allowed {
			t.Errorf("token %d: mask says %v, logit %v", id, allowed, logits[id])
			return false
		}
	}
	for id := v.Size(); id < len(logits); id++ {
		if !math.IsInf(float64(logits[id]), -1) {
			t.Errorf("logit %d beyond the vocabulary is %v", id, logits[id])
		}
	}
	for id := v.Size(); id < len(mask)*64; id++ {
		if mask[id>>6]>>(id&63)&1 != 0 {
			t.Errorf("bit %d beyond the vocabulary", id)
		}
	}
	return true
}

// The same with a real vocabulary, where masks are found in parts.
func TestMaskIsAcceptReal(t *testing.T) {
	for _, name := range []string{"gpt-2", "llama-spm"} {
		v := grammartest.Real(t, name)
		for _, src := range []string{"person", "tree", "counts", "shallow json"} {
			g, err := sources[src](v)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(3, 4))
			for range 2 {
				s := g.NewState()
				for i := range 8 {
					if i%3 == 0 && !sameAsAccept(t, s) {
						t.Fatalf("%s, %s", name, src)
					}
					if id := grammartest.Pick(s.MaskBits(), rng); id < 0 || s.Accept(id) != nil || v.IsEnd(id) {
						break
					}
				}
			}
		}
	}
}

// Every random walk ends in a text that the grammar accepts byte by byte.
func TestGenerated(t *testing.T) {
	v := grammartest.Small()
	for name, compile := range sources {
		g, err := compile(v)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		rng := rand.New(rand.NewPCG(5, 6))
		for range 60 {
			text := grammartest.Generate(t, g, rng, rng.IntN(30))
			if err := grammartest.Accepts(g, text); err != nil {
				t.Errorf("%s: %q: %v", name, text, err)
			}
		}
	}
}

func TestForced(t *testing.T) {
	v := grammartest.Small()
	g, err := schema.Compile(v, []byte(`{"type":"object","properties":{"name":{"type":"string"},"kind":{"const":"x"}},"required":["name","kind"]}`), schema.Options{Whitespace: schema.Compact})
	if err != nil {
		t.Fatal(err)
	}
	s := g.NewState()
	for _, step := range []struct{ forced, then string }{
		{`{"name":"`, `a"`}, {`,"kind":"x"}`, ``},
	} {
		if got := string(s.Forced()); got != step.forced {
			t.Fatalf("forced %q, want %q", got, step.forced)
		}
		if got := string(s.Forced()); got != step.forced {
			t.Fatalf("the second time forced %q, want %q", got, step.forced)
		}
		if err := s.AcceptBytes([]byte(step.forced + step.then)); err != nil {
			t.Fatal(err)
		}
	}
	if !s.Done() || s.Forced() != nil {
		t.Errorf("done %v, forced %q at the end", s.Done(), s.Forced())
	}
	// What is forced is what masks allow, whatever the grammar.
	for name, compile := range sources {
		g, err := compile(v)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(7, 8))
		s := g.NewState()
		for range 40 {
			forced := s.Forced()
			if len(forced) > 0 {
				mask := s.MaskBits()
				for id := range int32(v.Size()) {
					if b := v.Bytes(id); mask[id>>6]>>(id&63)&1 != 0 && !strings.HasPrefix(string(forced), string(b)) && !strings.HasPrefix(string(b), string(forced)) {
						t.Fatalf("%s: %q is forced and %q is allowed", name, forced, b)
					}
				}
			}
			id := grammartest.Pick(s.MaskBits(), rng)
			if id < 0 || v.IsEnd(id) {
				break
			}
			if err := s.Accept(id); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestSnapshots(t *testing.T) {
	v := grammartest.Small()
	g, err := sources["person"](v)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(9, 10))
	s := g.NewState()
	var marks []grammar.Snapshot
	var masks []string
	look := func() string { return fmt.Sprint(s.MaskBits(), s.Complete(), s.Done(), string(s.Forced())) }
	for range 30 {
		marks, masks = append(marks, s.Snapshot()), append(masks, look())
		id := grammartest.Pick(s.MaskBits(), rng)
		if err := s.Accept(id); err != nil {
			t.Fatal(err)
		}
		if v.IsEnd(id) {
			break
		}
	}
	clone := s.Clone()
	for range 100 {
		i := rng.IntN(len(marks))
		s.Restore(marks[i])
		if look() != masks[i] {
			t.Fatalf("position %d differs after coming back", i)
		}
	}
	if clone.At() == s.At() && clone.At() != marks[len(marks)-1].At() {
		t.Error("a clone moves with its original")
	}
	// A refused token leaves the state where it is.
	s.Restore(marks[0])
	if err := s.Accept(grammartest.EOS); err == nil || look() != masks[0] {
		t.Errorf("after a refused token: %v", err)
	}
	if err := s.Accept(grammartest.EOS + 1); err == nil {
		t.Error("a special token was accepted")
	}
	if err := s.Accept(-1); err == nil {
		t.Error("token -1 was accepted")
	}
	if err := s.Accept(1 << 20); err == nil {
		t.Error("a token beyond the vocabulary was accepted")
	}
	if err := s.AcceptBytes([]byte("{x")); err == nil || look() != masks[0] {
		t.Errorf("after refused bytes: %v", err)
	}
}

func TestEnd(t *testing.T) {
	v := grammartest.Small()
	g, err := grammar.Choice(v, []string{"a", "ab"})
	if err != nil {
		t.Fatal(err)
	}
	s := g.NewState()
	if s.Complete() || s.Accept(grammartest.EOS) == nil {
		t.Error("the empty text is complete")
	}
	if err := s.Accept('a'); err != nil || !s.Complete() || s.Done() {
		t.Errorf("after a: %v, complete %v, done %v", err, s.Complete(), s.Done())
	}
	if err := s.Accept(grammartest.EOS); err != nil || !s.Done() {
		t.Errorf("after the end: %v, done %v", err, s.Done())
	}
	if s.Accept('b') == nil || s.AcceptBytes(nil) == nil {
		t.Error("text after the end")
	}
	mask := s.MaskBits()
	for id := range v.Size() {
		if mask[id>>6]>>(id&63)&1 != 0 != (id == grammartest.EOS) {
			t.Errorf("token %d after the end", id)
		}
	}
}

// A vocabulary without the bytes that a grammar needs fails closed.
func TestNoTokenLeadsOn(t *testing.T) {
	v := grammar.NewVocabulary(func(id int32) []byte { return []byte{"ab"[id]} }, 2, nil, nil)
	g, err := grammar.Regex(v, "ac")
	if err != nil {
		t.Fatal(err)
	}
	s := g.NewState()
	if err := s.Accept(0); err != nil {
		t.Fatal(err)
	}
	logits := []float32{1, 2}
	s.Mask(logits)
	if !math.IsInf(float64(logits[0]), -1) || !math.IsInf(float64(logits[1]), -1) || s.Err() == nil || s.Accept(0) == nil {
		t.Errorf("logits %v, error %v", logits, s.Err())
	}
}

// A grammar with more simultaneous readings than the limits allow ends in an
// error, not in an hour of work or an unconstrained text.
func TestTooAmbiguous(t *testing.T) {
	v := grammartest.Small()
	g, err := grammar.GBNF(v, `root ::= x{1,900} "b"
		x ::= ("a"{1,900}){1,900} | ("aa"{1,900} "a"?){1,900}`)
	if err != nil {
		t.Fatal(err)
	}
	s := g.NewState()
	for i := range 400 {
		s.MaskBits()
		if s.Err() != nil {
			break
		}
		if err := s.Accept('a'); err != nil && s.Err() == nil {
			t.Fatalf("after %d: %v", i, err)
		}
	}
	t.Log(s.Err())
	if s.Err() != nil && grammartest.Pick(s.MaskBits(), rand.New(rand.NewPCG(1, 1))) >= 0 {
		t.Error("a failed state allows tokens")
	}
}

// Forgetting what has been found changes nothing, and keeps memory bounded.
func TestForgetting(t *testing.T) {
	v := grammartest.Small()
	for name, compile := range sources {
		g, err := compile(v)
		if err != nil {
			t.Fatal(err)
		}
		short, err := compile(v)
		if err != nil {
			t.Fatal(err)
		}
		short.SetLimit(4000)
		rng := rand.New(rand.NewPCG(11, 12))
		s, small := g.NewState(), short.NewState()
		start, smallStart := s.Snapshot(), small.Snapshot()
		for i := range 300 {
			mask := s.MaskBits()
			if fmt.Sprint(mask) != fmt.Sprint(small.MaskBits()) || string(s.Forced()) != string(small.Forced()) {
				t.Fatalf("%s: step %d differs", name, i)
			}
			if n := short.Memory(); n > 1<<20 {
				t.Fatalf("%s: %d bytes remembered", name, n)
			}
			id := grammartest.Pick(mask, rng)
			if err := small.Accept(id); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := s.Accept(id); err != nil {
				t.Fatal(err)
			}
			if v.IsEnd(id) || s.Done() || rng.IntN(30) == 0 {
				s.Restore(start)
				small.Restore(smallStart)
			}
		}
	}
}

// States of one grammar, and grammars of one vocabulary, may be used at once.
func TestShared(t *testing.T) {
	v := grammartest.Small()
	g, err := sources["person"](v)
	if err != nil {
		t.Fatal(err)
	}
	g.SetLimit(50_000)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			own, err := sources["json"](v)
			if err != nil {
				t.Error(err)
				return
			}
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range 20 {
				for _, g := range []*grammar.Grammar{g, own} {
					text := grammartest.Generate(t, g, rng, 15)
					if err := grammartest.Accepts(g, text); err != nil {
						t.Errorf("%q: %v", text, err)
					}
				}
			}
		})
	}
	wg.Wait()
}
