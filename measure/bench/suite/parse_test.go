package suite

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ridge/measure/roofline"
	"ridge/weights/tensor"
)

// sample has a row of every kind.
const sample = `{
  "models": {
    "smol": {"title": "SmolLM2-135M Q8_0", "from": "smollm2"},
    "big": {"title": "1.1B Q4_0", "synthetic": "1.1b:Q4_0"}
  },
  "tables": [
    {"title": "One sequence", "peers": ["llama.cpp", "ik"], "rows": [
      {"model": "smol", "tests": ["pp512", "tg32 @ d4096"], "flags": {"ik": "-w 0"}},
      {"model": "smol", "tests": ["tg32 @ d4096"], "kv": "Q8_0", "threads": 1, "peers": []},
      {"model": "big", "tests": ["pp512"], "repeat": 7}
    ]},
    {"title": "AVX2", "tier": "AVX2", "rows": [{"model": "smol", "tests": ["tg48 @ d128 x8"], "peers": ["batched"]}]}
  ]
}`

func mustParse(t testing.TB, text string) *Suite {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse(t *testing.T) {
	s := mustParse(t, sample)
	both := []string{"llama.cpp", "ik"}
	smol := func(w roofline.Work) Case {
		return Case{Model: "smol", Title: "SmolLM2-135M Q8_0", Work: w, KV: tensor.F16, Repeat: 5, Peers: both}
	}
	first, deep, bytes, avx2 := smol(roofline.Work{Prompt: 512, Seqs: 1}), smol(roofline.Work{Gen: 32, Depth: 4096, Seqs: 1}), smol(roofline.Work{Gen: 32, Depth: 4096, Seqs: 1}), smol(roofline.Work{Gen: 48, Depth: 128, Seqs: 8})
	first.Flags = map[string]string{"ik": "-w 0"}
	deep.Flags = first.Flags
	bytes.KV, bytes.Threads, bytes.Peers = tensor.Q8_0, 1, []string{}
	big := Case{Model: "big", Title: "1.1B Q4_0", Work: roofline.Work{Prompt: 512, Seqs: 1}, KV: tensor.F16, Repeat: 7, Peers: both}
	avx2.Tier, avx2.Peers = "avx2", []string{"batched"}
	want := &Suite{
		Models: map[string]Model{"smol": {Title: "SmolLM2-135M Q8_0", From: "smollm2"}, "big": {Title: "1.1B Q4_0", Synthetic: "1.1b:Q4_0"}},
		Tables: []Table{{Title: "One sequence", Cases: []*Case{&first, &deep, &bytes, &big}}, {Title: "AVX2", Cases: []*Case{&avx2}}},
	}
	if !cmp.Equal(s, want) {
		t.Error(cmp.Diff(want, s))
	}
	var names []string
	for _, c := range s.Cases() {
		names = append(names, c.Name())
	}
	wantNames := []string{
		"SmolLM2-135M Q8_0: pp512", "SmolLM2-135M Q8_0: tg32 @ d4096", "SmolLM2-135M Q8_0: tg32 @ d4096, KV Q8_0, 1 thread",
		"1.1B Q4_0: pp512", "SmolLM2-135M Q8_0, AVX2: tg48 @ d128 x8",
	}
	if !cmp.Equal(names, wantNames) {
		t.Error(cmp.Diff(wantNames, names))
	}
	if got := s.Peers(); !cmp.Equal(got, []string{"llama.cpp", "ik", "batched"}) {
		t.Errorf("peers %v", got)
	}
}

// A mistake is named with its table, row and field, what was expected and what
// was found.
func TestParseErrors(t *testing.T) {
	const (
		models = `{"models": {"m": {"title": "M", "from": "m"}}, `
		row    = models + `"tables": [{"title": "T", "rows": [{"model": "m", "tests": ["pp1"]}, `
		where  = `table 1 "T": row 2: `
	)
	for text, want := range map[string]string{
		"":                                  "line 1: expected JSON",
		"{\n\n x":                           "line 3: expected JSON, found invalid character 'x'",
		"{} {}":                             "line 1: expected JSON",
		"[]":                                "expected an object, found []",
		`{"models": {}, "rows": 1}`:         `field: expected one of models, tables, found "rows"`,
		`{"tables": []}`:                    "models: expected an object, found none",
		`{"models": 1}`:                     "models: expected an object, found 1",
		`{"models": {"a b": {}}}`:           `models: expected names of letters, digits and . _ -, found "a b"`,
		`{"models": {"a": {"title": "A"}}}`: "models: a: expected one of from and synthetic",
		`{"models": {"a": {"title": "A", "from": "b", "synthetic": "c"}}}`: `found "b" and "c"`,
		`{"models": {"a": {"title": "A|B", "from": "b"}}}`:                 `models: a: title: expected a line`,
		`{"models": {"a": {"title": "<!-- x", "from": "b"}}}`:              `found "<!-- x"`,
		`{"models": {"a": {"title": null, "from": "b"}}}`:                  "models: a: title: expected a text, found null",
		`{"models": {"a": {"title": "A", "from": "b", "from": "c"}}}`:      "models: a: from: expected once, found a second time",
		`{"models": {}}`:                                   "tables: expected at least one row, found none",
		models + `"tables": 1}`:                            "tables: expected a list of tables, found 1",
		models + `"tables": [{"rows": []}]}`:               "table 1: title: expected a line",
		models + `"tables": [{"title": "T", "rows": {}}]}`: `table 1 "T": rows: expected a list of rows, found {}`,
		models + `"tables": [{"title": "T", "tier": "sse", "rows": [{"model": "m", "tests": ["pp1"]}]}]}`: `table 1 "T": row 1: tier: expected`,
		row + `7]}]}`: where + "expected an object, found 7",
		row + `{"model": "x", "tests": ["pp1"]}]}]}`:                              where + `model: expected one of m, found "x"`,
		row + `{"model": "m", "test": ["pp1"]}]}]}`:                               where + `field: expected one of model, tests, flags, threads, kv, tier, repeat, peers, found "test"`,
		row + `{"model": "m"}]}]}`:                                                where + "tests: expected at least one, found none",
		row + `{"model": "m", "tests": "pp1"}]}]}`:                                where + `tests: expected a list of tests, found "pp1"`,
		row + `{"model": "m", "tests": ["pp"]}]}]}`:                               where + `tests: expected a test such as pp512`,
		row + `{"model": "m", "tests": ["pp1"]}]}]}`:                              where + "tests: expected each once, found M: pp1 a second time",
		row + `{"model": "m", "tests": ["tg1", "tg1"]}]}]}`:                       "found M: tg1 a second time",
		row + `{"model": "m", "tests": ["tg1"], "threads": 1.5}]}]}`:              where + "threads: expected a whole number, found 1.5",
		row + `{"model": "m", "tests": ["tg1"], "threads": 257}]}]}`:              where + "threads: expected 0 to 256, found 257",
		row + `{"model": "m", "tests": ["tg1"], "repeat": 0}]}]}`:                 where + "repeat: expected 1 to 1000, found 0",
		row + `{"model": "m", "tests": ["tg1"], "kv": "q4_0"}]}]}`:                where + `kv: expected f16, f32, bf16 or q8_0, found "q4_0"`,
		row + `{"model": "m", "tests": ["tg1"], "peers": ["a=b"]}]}]}`:            where + `peers: expected names of letters, digits and . _ -, each once, found "a=b"`,
		row + `{"model": "m", "tests": ["tg1"], "peers": ["a", "a"]}]}]}`:         where + "peers: expected names",
		row + `{"model": "m", "tests": ["tg1"], "flags": {"a": "-x"}}]}]}`:        where + `flags: expected names of the row's peers, [], found "a"`,
		row + `{"model": "m", "tests": ["tg1"], "peers": [], "peers": ["a"]}]}]}`: where + "peers: expected once",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\nerror %v\nwant  %s", text, err, want)
		}
	}
	many := make([]string, maxCases+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"pp%d"`, i+1)
	}
	text := models + `"tables": [{"title": "T", "rows": [{"model": "m", "tests": [` + strings.Join(many, ", ") + `]}]}]}`
	if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "at most 1000 tests, found 1001") {
		t.Errorf("error %v", err)
	}
}

// A suite that is written as JSON is read as it was.
func TestParseRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9][a-z0-9._-]{0,8}`)
		title := rapid.StringMatching(`[A-Za-zäß%"\\:,.()-]([A-Za-z ]{0,6}[a-z])?`)
		models := rapid.MapOfN(name, rapid.Custom(func(t *rapid.T) map[string]string {
			return map[string]string{"title": title.Draw(t, "title"), rapid.SampledFrom([]string{"from", "synthetic"}).Draw(t, "kind"): name.Draw(t, "from")}
		}), 1, 3).Draw(t, "models")
		var keys []string
		for k := range models {
			keys = append(keys, k)
		}
		peers := rapid.SliceOfNDistinct(name, 0, 3, rapid.ID[string])
		n := rapid.IntRange(1, 5).Draw(t, "rows")
		var rows []map[string]any
		var want []Case
		for i := range n {
			c := Case{
				Model: rapid.SampledFrom(keys).Draw(t, "model"), Work: roofline.Work{Prompt: i + 1, Seqs: rapid.IntRange(1, 9).Draw(t, "seqs")},
				Threads: rapid.IntRange(0, 256).Draw(t, "threads"), KV: rapid.SampledFrom([]tensor.DType{tensor.F16, tensor.F32, tensor.Q8_0}).Draw(t, "kv"),
				Tier:   rapid.SampledFrom([]string{"", "generic", "avx2"}).Draw(t, "tier"),
				Repeat: rapid.IntRange(1, 9).Draw(t, "repeat"), Peers: append([]string{}, peers.Draw(t, "peers")...),
			}
			c.Title = models[c.Model]["title"]
			rows = append(rows, map[string]any{"model": c.Model, "tests": []string{c.Work.String()}, "threads": c.Threads,
				"kv": c.KV.String(), "tier": c.Tier, "repeat": c.Repeat, "peers": c.Peers})
			want = append(want, c)
		}
		text, err := json.Marshal(map[string]any{"models": models, "tables": []any{map[string]any{"title": "T", "peers": []string{"other"}, "rows": rows}}})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var got []Case
		for _, c := range s.Cases() {
			got = append(got, *c)
		}
		if !cmp.Equal(got, want) {
			t.Errorf("%s: %s", text, cmp.Diff(want, got))
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(`{"models": {"a": {"title": "A", "from": "b"}}, "tables": [{"title": "T", "rows": [{"model": "a", "tests": ["pp1"], "flags": null}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %q", err)
			}
			return
		}
		for _, c := range s.Cases() {
			if c.Repeat < 1 || c.Work.Tokens() < 1 || c.Title == "" || strings.ContainsAny(c.Name(), "\n|<") {
				t.Errorf("%+v", c)
			}
		}
	})
}

// The suites of the documentation are right.
func TestDocumentedSuites(t *testing.T) {
	files, err := filepath.Glob("../../../docs/bench/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		if _, err := Read(file); err != nil {
			t.Error(err)
		}
	}
	if _, err := Read("absent.json"); err == nil || !strings.Contains(err.Error(), "absent.json") {
		t.Errorf("error %v", err)
	}
	big := filepath.Join(t.TempDir(), "big.json")
	if err := os.WriteFile(big, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(big); err == nil || !strings.Contains(err.Error(), "expected at most 1048576 bytes, found 1048577") {
		t.Errorf("error %v", err)
	}
}
