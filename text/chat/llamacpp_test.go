package chat

import (
	"bufio"
	"compress/bzip2"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// llamaCppCase is a template, or an answer in the form of one and what llama.cpp
// finds in it.
type llamaCppCase struct {
	Name, Source string

	Of            string // its template
	Input, Prompt string
	Tools         []json.RawMessage
	Keep          bool // reasoning stays in the text
	Cut           bool // the answer was cut off
	Open, Thinks  bool
	Continue      bool
	Before        string // text of the answer that the prompt ends with
	Thought       string // and reasoning
	Text          string
	Reasoning     string
	Calls         [][2]string
}

// The answers that llama.cpp's own tests parse, in the forms of 58 templates:
// recorded from its test-chat.cpp of November 2026, by a build that writes down
// each case. Those that differ are a matter of taste: what a broken call is, what
// becomes of a call of a tool that nobody offered.
func TestParseAsLlamaCpp(t *testing.T) {
	f, err := os.Open("testdata/llamacpp.jsonl.bz2")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sources := map[string]string{}
	cases, right := 0, 0
	lines := bufio.NewScanner(bzip2.NewReader(f))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c llamaCppCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Source != "" {
			sources[c.Name] = c.Source
			continue
		}
		cases++
		source := sources[c.Of]
		if !c.Continue {
			if tmpl, err := Compile(source, Options{}); err == nil {
				p, err := tmpl.Render(Input{Messages: []Message{{Role: "user", Content: "Hey there!"}}, Tools: c.Tools, AddGenerationPrompt: c.Open, Extra: map[string]any{"enable_thinking": c.Thinks}})
				if err == nil {
					c.Prompt = p
				}
			}
		}
		o := ParseOptions{Prompt: c.Prompt[max(0, len(c.Prompt)-256):], KeepReasoning: c.Keep, Tools: c.Tools, Continue: c.Continue}
		if c.fits(SyntaxOf(source), o) {
			right++
		} else {
			t.Logf("%s: %q", c.Of, c.Input)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if cases != 463 || right < 450 {
		t.Errorf("%d of %d answers are read as llama.cpp reads them, want at least 450 of 463", right, cases)
	}
}

// fits reports whether the answer is read as llama.cpp reads it, byte by byte.
func (c *llamaCppCase) fits(s Syntax, o ParseOptions) bool {
	p := NewParser(s, o)
	defer p.Close()
	var parts []Part
	for i := range len(c.Input) {
		parts = append(parts, p.Add(c.Input[i:i+1])...)
	}
	if c.Cut {
		parts = append(parts, p.Cut()...)
	} else {
		parts = append(parts, p.Flush()...)
	}
	text, reasoning := c.Before, c.Thought
	var calls [][2]string
	for _, q := range parts {
		switch q.Kind {
		case PartText:
			text += q.Text
		case PartReasoning:
			reasoning += q.Text
		case PartCall:
			calls = append(calls, [2]string{q.Name, ""})
		case PartArguments:
			calls[len(calls)-1][1] += q.Text
		}
	}
	same := func(a, b [2]string) bool { return a[0] == b[0] && normal(a[1]) == normal(b[1]) }
	return strings.TrimSpace(text) == strings.TrimSpace(c.Text) && strings.TrimSpace(reasoning) == strings.TrimSpace(c.Reasoning) &&
		slices.EqualFunc(calls, c.Calls, same)
}

// normal returns JSON without white space, "" if it is cut off.
func normal(s string) string {
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return `""`
	}
	b, _ := json.Marshal(v) // what was read can be written
	return string(b)
}
