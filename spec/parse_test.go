package spec

import "testing"

// Names and configurations of this program, of vLLM and of llama-server are read;
// what nobody knows is refused.
func TestParse(t *testing.T) {
	for text, want := range map[string]Setting{
		"off": {Kind: Off}, "none": {Kind: Off}, "": {Kind: Off}, "auto": {Kind: Auto}, "ngram": {Kind: NGrams}, "ngram-simple": {Kind: NGrams}, "draft=tiny": {Kind: Draft, Model: "tiny"},
		"cascade=tiny": {Kind: Cascade, Model: "tiny"}, "skip=parts.json": {Kind: Skipped, File: "parts.json"}, "exit=3": {Kind: Exit, Layers: 3}, "lookahead": {Kind: Lookahead}, "jacobi": {Kind: Jacobi}, "rest=x": {Kind: Stored, File: "x"},
		`{"method":"draft_model","model":"tiny","num_speculative_tokens":3}`:  {Kind: Draft, Model: "tiny", Most: 3},
		`{"method":"ngram","num_speculative_tokens":5,"prompt_lookup_max":4}`: {Kind: NGrams, Most: 5},
	} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"fast":                           `spec: expected auto, off, ngram, suffix, recycle, lookahead, jacobi, rest=FILE, draft=MODEL, cascade=MODEL, skip=FILE, exit=LAYERS, head=PATH or mtp, found "fast"`,
		`{"method":"dflash"}`:            `spec: expected auto, off, ngram, suffix, recycle, lookahead, jacobi, rest=FILE, draft=MODEL, cascade=MODEL, skip=FILE, exit=LAYERS, head=PATH or mtp, found "dflash"`,
		`{"size":"x"}`:                   `spec: expected method, model, num_speculative_tokens, prompt_lookup_max, prompt_lookup_min, found the field "size"`,
		"rest=":                          "spec: rest: expected rest=FILE, a file that ridge spec build has written, found none",
		"skip=":                          "spec: skip: expected skip=FILE, a file that ridge spec search has written, found none",
		"exit=0":                         `spec: exit: expected exit=LAYERS, how many layers draft, found "0"`,
		"draft=":                         `spec: draft: expected a model where one drafts and nowhere else, found ""`,
		"cascade=":                       `spec: cascade: expected a model where one drafts and nowhere else, found ""`,
		`{"method":"ngram","model":"x"}`: `spec: ngram: expected a model where one drafts and nowhere else, found "x"`,
		`{"method":7}`:                   "spec: method: json: cannot unmarshal number into Go value of type string",
		`{"method":"ngram"`:              `spec: expected JSON such as {"method":"ngram"}: unexpected end of JSON input`,
	} {
		if got, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, %v; want %s", text, got, err, want)
		}
	}
	for _, kind := range []Kind{Off, Auto, NGrams, Suffix} {
		d := Setting{Kind: kind, Most: 3}.Drafting()
		if want := kind != Off; want != (d != nil) {
			t.Errorf("%s: %v", kind, d)
		} else if want && (d.Check() != nil || d.Depth() != 3 || d.New(100).Bytes() == 0 || (d.Patience > 0) == (kind == Auto) || (d.Texts != nil) != (kind == Suffix)) {
			t.Errorf("%s: %+v", kind, d)
		}
	}
}
