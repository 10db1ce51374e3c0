package schema

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"ridge/text/grammar/internal/grammartest"
)

// The schemas and texts that XGrammar's own tests try: what jsonschema says is not
// valid is never allowed, and most of what is valid is.
func TestXGrammarSchemas(t *testing.T) {
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
		g, err := Compile(grammartest.Small(), c.Schema, Options{})
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
	// Refused are counts of members that the schema does not name, and what no text
	// conforms to; the others leave members in their order.
	if schemas != 288 || refused > 17 || allowed < 843 {
		t.Errorf("%d schemas, want 288; %d refused, want at most 17; %d valid texts allowed, want at least 843", schemas, refused, allowed)
	}
	t.Logf("%d schemas, %d of them refused; of %d valid texts %d are allowed, of %d others none", schemas, refused, valid, allowed, bad)
}
