package jinja

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// hide turns the letters and marks of JSON's strings into private characters.
func hide(v any) any {
	switch v := v.(type) {
	case string:
		return strings.Map(func(r rune) rune {
			if r > ' ' && r < 0x7f {
				return 0xE000 + r
			}
			return r
		}, v)
	case []any:
		for i := range v {
			v[i] = hide(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = hide(v[k])
		}
	}
	return v
}

// Given texts behave as others do, through every feature and in random
// templates, and no character of one comes out unnoticed.
func TestTrace(t *testing.T) {
	var random [][2]*string
	readJSON(t, "testdata/random.json", &random)
	_, sources := features(t)
	for _, r := range random {
		sources = append(sources, *r[0])
	}
	plain, given, hidden := testVars(t), map[string]any{}, map[string]any{}
	for k, v := range plain {
		given[k] = Given{v}
		var x any
		if err := json.Unmarshal(v.(json.RawMessage), &x); err != nil {
			t.Fatal(err)
		}
		hidden[k] = Given{hide(x)}
	}
	seen := 0
	for _, source := range sources {
		p, err := Compile(source)
		if err != nil {
			continue
		}
		want, err := p.Render(plain, Options{Now: testNow})
		got, _, err2 := p.Trace(given, Options{Now: testNow})
		if got != want || (err == nil) != (err2 == nil) {
			t.Errorf("%q:\n got %q, %v\nwant %q, %v", source, got, err2, want, err)
		}
		out, spans, err := p.Trace(hidden, Options{Now: testNow})
		if err != nil {
			continue
		}
		for i, r := range out {
			if r < 0xE000 || r > 0xE100 {
				continue
			}
			seen++
			if !slices.ContainsFunc(spans, func(s Span) bool { return s.Lo <= i && i < s.Hi }) {
				t.Errorf("%q: %q at %d is not known to be given: %q %v", source, r, i, out, spans)
				break
			}
		}
		last := -1
		for _, s := range spans {
			if s.Lo <= last || s.Hi <= s.Lo || s.Hi > len(out) {
				t.Errorf("%q: parts %v of %d bytes", source, spans, len(out))
			}
			last = s.Hi
		}
	}
	if seen < 1000 {
		t.Errorf("%d characters of given texts came out", seen)
	}
}

// What the template prints is not given, where that can be told.
func TestTraceParts(t *testing.T) {
	for source, want := range map[string]string{
		`<a>{{ x }}<b>`:                                     "<a>[one two]<b>",
		`{{ "<" ~ x ~ ">" }}`:                               "<[one two]>",
		`{{ "<" + x + ">" }}`:                               "<[one two]>",
		`{{ ("<" + x + ">")[1:4] }}`:                        "[one]",
		`{{ ("<" + x + ">")[:3] + "|" }}`:                   "<[on]|",
		`{{ (" " + x + " ") | trim }}|`:                     "[one two]|",
		`{{ x.split(" ")[1] }}|`:                            "[two]|",
		`{{ x.replace("one", "<1>") }}`:                     "<1>[ two]",
		`{{ "a_b".replace("_", x) }}`:                       "a[one two]b",
		`{{ ["<", x, ">"] | join("|") }}`:                   "<|[one two]|>",
		`{{ x.split(" ") | join("|") }}`:                    "[one]|[two]",
		`{{ {"k": x, "l": ["m"]} | tojson }}`:               `{"k": "[one two]", "l": ["m"]}`,
		`{{ {"k": x} }}`:                                    `{'k': '[one two]'}`,
		`{{ "<%s>" % x }}`:                                  "<[one two]>",
		`{{ "<{}>".format(x) }}`:                            "<[one two]>",
		`{{ ("<a>\n" ~ x) | indent(2) }}`:                   "<a>\n  [one two]",
		`{% set y %}<{{ x }}>{% endset %}{{ y }}|`:          "<[one two]>|",
		`{% macro f(a) %}<{{ a }}>{% endmacro %}{{ f(x) }}`: "<[one two]>",
		`{% for c in x %}{{ c }},{% endfor %}`:              "[o],[n],[e],[ ],[t],[w],[o],",
		`{{ x | upper }}<`:                                  "[ONE TWO]<",
		`{{ x | length }}{{ x == "one two" }}`:              "7True",
		`{% if x.startswith("one") %}<{% endif %}`:          "<",
		`{{ x }}{{ x }}<`:                                   "[one twoone two]<",
		`{% for m in l %}<{{ m.role }}>{% endfor %}`:        "<[user]>",
	} {
		p, err := Compile(source)
		if err != nil {
			t.Errorf("%q: %v", source, err)
			continue
		}
		out, spans, err := p.Trace(map[string]any{"x": Given{"one two"}, "l": Given{json.RawMessage(`[{"role": "user"}]`)}}, Options{})
		got, at := "", 0
		for _, s := range spans {
			got += out[at:s.Lo] + "[" + out[s.Lo:s.Hi] + "]"
			at = s.Hi
		}
		if got += out[at:]; got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", source, got, err, want)
		}
	}
}
