package schema

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"ridge/text/grammar/internal/grammartest"
)

// Every field type of pydantic and zod compiles, but for those that no value
// has. What jsonschema says is not valid is never allowed; of what is valid, all
// but the documented differences.
func TestFieldTypes(t *testing.T) {
	f, err := os.Open("testdata/fields.jsonl") // made by testdata/gen_fields.py
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	total, schemas, allowed, valid := 0, 0, 0, 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			Name      string
			Schema    json.RawMessage
			Good, Bad []string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		schemas++
		g, err := Compile(grammartest.Small(), c.Schema, Options{})
		if err != nil {
			// No value, and sets of arrays.
			if !strings.Contains(string(c.Schema), `"not":{}`) && c.Name != "pydantic set_tuple" {
				t.Errorf("%s: %v", c.Name, err)
			}
			continue
		}
		for _, text := range c.Bad {
			if total++; grammartest.Accepts(g, text) == nil {
				t.Errorf("%s: %s: %s is accepted", c.Name, c.Schema, text)
			}
		}
		one := len(c.Good) == 0
		for _, text := range c.Good {
			valid++
			if err := grammartest.Accepts(g, text); err == nil {
				one = true
				allowed++
			}
		}
		if !one {
			t.Errorf("%s: %s: no valid text is accepted", c.Name, c.Schema)
		}
		rng := rand.New(rand.NewPCG(1, uint64(schemas)))
		check, err := compileValidator(string(c.Schema))
		if err != nil || strings.Contains(string(c.Schema), "p{") {
			continue // the validator does not know properties of characters
		}
		for range 3 {
			text := grammartest.Generate(t, g, rng, rng.IntN(30))
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err == nil {
				err = check.Validate(doc)
			}
			if err != nil {
				t.Errorf("%s: %s: generated %s: %v", c.Name, c.Schema, text, err)
			}
		}
	}
	if valid > allowed*10/9 {
		t.Errorf("%d of %d valid texts are accepted, want nine of ten", allowed, valid)
	}
	t.Logf("%d schemas, %d texts refused, %d of %d accepted", schemas, total, allowed, valid)
}
