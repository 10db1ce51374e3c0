package schema

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"ridge/text/grammar/internal/grammartest"
)

// The schemas and texts that XGrammar's own tests try: what jsonschema says is not
// valid is never allowed, and most of what is valid is.
func TestXGrammarSchemas(t *testing.T) {
	t.Run("closed", func(t *testing.T) { tryXGrammarSchemas(t, Options{}, 5, 899) })
	t.Run("open", func(t *testing.T) { tryXGrammarSchemas(t, Options{Open: true}, 5, 1018) })
}

func tryXGrammarSchemas(t *testing.T, o Options, mostRefused, leastAllowed int) {
	f, err := os.Open("testdata/xgrammar.jsonl") // made by testdata/gen_xgrammar.py
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	schemas, refused, valid, allowed, bad := 0, 0, 0, 0, 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			Schema    json.RawMessage
			Good, Bad []string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		schemas++
		g, err := Compile(grammartest.Small(), c.Schema, o)
		if err != nil {
			refused++
			t.Logf("%s: %v", c.Schema, err)
			continue
		}
		for _, text := range c.Bad {
			if bad++; grammartest.Accepts(g, text) == nil {
				t.Errorf("%s: %s is accepted", c.Schema, text)
			}
		}
		for _, text := range c.Good {
			valid++
			if err := grammartest.Accepts(g, text); err == nil {
				allowed++
			} else if testing.Verbose() {
				t.Logf("%s: %s: %v", c.Schema, text, err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	// Refused is what no text conforms to; the others leave members in their order.
	if schemas != 288 || refused > mostRefused || allowed < leastAllowed {
		t.Errorf("%d schemas, want 288; %d refused, want at most %d; %d valid texts allowed, want at least %d", schemas, refused, mostRefused, allowed, leastAllowed)
	}
	t.Logf("%d schemas, %d of them refused; of %d valid texts %d are allowed, of %d others none", schemas, refused, valid, allowed, bad)
}

// The structural tags and texts that XGrammar's own tests try, with what XGrammar
// says of them, but that it lets members in any order come twice.
func TestXGrammarTags(t *testing.T) {
	f, err := os.Open("testdata/xgrammar_tags.jsonl") // made by testdata/gen_xgrammar.py
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tags, texts := 0, 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			Tag       json.RawMessage
			Good, Bad []string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		tags++
		g, err := StructuralTag(grammartest.Small(), c.Tag, Options{Open: true})
		if err != nil {
			t.Errorf("%s: %v", c.Tag, err)
			continue
		}
		for _, text := range c.Bad {
			if texts++; grammartest.Accepts(g, text) == nil {
				t.Errorf("%s: %q is accepted", c.Tag, text)
			}
		}
		for _, text := range c.Good {
			texts++
			if err := grammartest.Accepts(g, text); err != nil && !strings.Contains(text, `"c": true, "c": false`) {
				t.Errorf("%s: %q: %v", c.Tag, text, err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d structural tags, %d texts", tags, texts)
}
