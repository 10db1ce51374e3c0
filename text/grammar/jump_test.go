package grammar_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
	"ridge/text/grammar/schema"
)

// longest spells a text in the longest tokens, from its begin on.
func longest(v *grammar.Vocabulary) func(text string) []int32 {
	return func(text string) (ids []int32) {
		for len(text) > 0 {
			best := int32(-1)
			for id := range int32(v.Size()) {
				if b := v.Bytes(id); len(b) > 0 && strings.HasPrefix(text, string(b)) && (best < 0 || len(b) > len(v.Bytes(best))) {
					best = id
				}
			}
			ids, text = append(ids, best), text[len(v.Bytes(best)):]
		}
		return ids
	}
}

func spelled(v *grammar.Vocabulary, ids []int32) (out []string) {
	for _, id := range ids {
		out = append(out, string(v.Bytes(id)))
	}
	return out
}

func TestJump(t *testing.T) {
	v := grammartest.Small()
	v.SpellWith(longest(v))
	schema := func(s string) func() (*grammar.Grammar, error) {
		return func() (*grammar.Grammar, error) {
			return schema.Compile(v, []byte(s), schema.Options{Whitespace: schema.Compact})
		}
	}
	regex := func(s string) func() (*grammar.Grammar, error) {
		return func() (*grammar.Grammar, error) { return grammar.Regex(v, s) }
	}
	for _, c := range []struct {
		name    string
		compile func() (*grammar.Grammar, error)
		before  string
		want    []string
	}{
		// A string follows: its first token might begin with the quote, as `"]` does.
		{"string follows", schema(`{"properties":{"age":{"type":"string"}},"required":["age"]}`), ``, []string{`{"`, `age`, `":`}},
		// `":` cannot take a part of a number.
		{"number follows", schema(`{"properties":{"age":{"type":"integer"}},"required":["age"]}`), ``, []string{`{"`, `age`, `":`}},
		{"ends", schema(`{"properties":{"age":{"const":"abc"}},"required":["age"]}`), ``, []string{`{"`, `age`, `":`, `"`, `abc`, `"}`}},
		// Of what was written before nothing is spelled anew: `":` is not joined.
		{"within", schema(`{"properties":{"name":{"type":"null"}},"required":["name"]}`), `{"na`, []string{`me":`, `null`, `}`}},
		{"may end", regex(`ab(ab)?`), ``, []string{`ab`}}, // no token begins with `aba`
		{"may go on", regex(`ab(c|d)`), ``, nil},          // but one is `abc`
		{"nothing forced", regex(`[ab]c`), ``, nil},
		{"begins within a character", regex(`日本`), "\xe6\x97", []string{"\xa5", "\xe6", "\x9c", "\xac"}},
		{"ends within a character", regex(`xx[à-ï]`), ``, []string{`x`, `x`}},
		{"joins a part of a character", regex(`x(é|è)`), ``, []string{`x`}},
		{"a token crosses from afar", regex(`x\{"name":("|1)`), ``, []string{`x`}}, // `{"name":"`
	} {
		g, err := c.compile()
		if err != nil {
			t.Fatal(err)
		}
		s := g.NewState()
		if err := s.AcceptBytes([]byte(c.before)); err != nil {
			t.Fatal(err)
		}
		got := spelled(v, s.Jump(nil))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q of %q", c.name, got, c.want, s.Forced())
		}
	}
}

// Wherever a text stands, the tokens of a jump spell what is forced, masks allow
// them, and in the place of each no token is allowed that goes beyond the forced
// text.
func TestJumpIsForced(t *testing.T) {
	v := grammartest.Small()
	v.SpellWith(longest(v))
	jumped := 0
	for name, compile := range sources {
		g, err := compile(v)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(3, 1))
		for range 20 {
			s := g.NewState()
			for range 25 {
				rest := s.Forced()
				ids := s.Jump(nil)
				if !slices.Equal(ids, s.Jump(nil)) {
					t.Fatalf("%s: it differs the second time", name)
				}
				if len(rest) == 0 && len(ids) > 0 {
					t.Fatalf("%s: %q where nothing is forced", name, spelled(v, ids))
				}
				ahead := s.Clone()
				for _, id := range ids {
					mask := ahead.MaskBits()
					for other := range int32(v.Size()) {
						if b := v.Bytes(other); mask[other>>6]>>(other&63)&1 != 0 && !bytes.HasPrefix(rest, b) {
							t.Fatalf("%s: %q is taken where %q is allowed, before %q", name, v.Bytes(id), b, rest)
						}
					}
					if err := ahead.Accept(id); err != nil || !bytes.HasPrefix(rest, v.Bytes(id)) {
						t.Fatalf("%s: %q before %q: %v", name, v.Bytes(id), rest, err)
					}
					rest = rest[len(v.Bytes(id)):]
					jumped++
				}
				if id := grammartest.Pick(s.MaskBits(), rng); id < 0 || v.IsEnd(id) || s.Accept(id) != nil {
					break
				}
			}
		}
	}
	if jumped < 100 {
		t.Errorf("only %d tokens were forced", jumped)
	}
}

func TestJumpOfGate(t *testing.T) {
	v := grammartest.Small()
	g, err := grammar.Regex(v, "name12")
	if err != nil {
		t.Fatal(err)
	}
	if ids := g.NewState().Jump(nil); ids != nil {
		t.Errorf("%v without a way to spell", ids)
	}
	v = grammartest.Small()
	v.SpellWith(longest(v))
	if g, err = grammar.Regex(v, "name12"); err != nil {
		t.Fatal(err)
	}
	gate, err := grammar.NewGate(g, grammar.GateOptions{Text: "</think>"})
	if err != nil {
		t.Fatal(err)
	}
	if err := gate.AcceptBytes([]byte("so</thi")); err != nil || gate.Jump(nil) != nil {
		t.Errorf("a closed gate forces %q, %v", spelled(v, gate.Jump(nil)), err)
	}
	if err := gate.AcceptBytes([]byte("nk>\nna")); err != nil {
		t.Fatal(err)
	}
	if got, want := spelled(v, gate.Jump(nil)), []string{`m`, `e`, `12`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// It costs no memory the second time.
	buf := make([]int32, 0, 8)
	if n := testing.AllocsPerRun(10, func() { buf = gate.Jump(buf[:0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
