package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ridge/internal/testdata"
	"ridge/text/tokenizer"
	"ridge/weights/gguf"
)

// eachTemplate calls f with the stored templates and those for models without
// one.
func eachTemplate(t *testing.T, f func(t *testing.T, name, source string)) {
	files, _ := filepath.Glob(filepath.Join(testdata.Dir(t), "templates", "*.jinja"))
	own, _ := filepath.Glob("templates/*.jinja")
	for _, file := range append(files, own...) {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) { f(t, filepath.Base(file), string(source)) })
	}
}

// write replaces all that others than the assistant say in a conversation.
func write(in Input, text func(string) string) Input {
	in.Messages = slices.Clone(in.Messages)
	for i := range in.Messages {
		m := &in.Messages[i]
		if m.Role != "assistant" {
			m.Content = text(m.Content)
		}
	}
	return in
}

// hidden is text of private characters only, which are nowhere else.
func hidden(s string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '\n' || r >= 0x1000 {
			return r
		}
		return 0xE000 + r
	}, s)
}

// What was given is known byte by byte: private characters stand in the given
// parts of a prompt, and what stands there is in the messages.
func TestGivenParts(t *testing.T) {
	s := loadScenarios(t)
	checked := 0
	eachTemplate(t, func(t *testing.T, name, source string) {
		tmpl, err := Compile(source, Options{BOS: s.BOS, EOS: s.EOS, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		for key := range s.Scenarios {
			in := write(s.input(key), hidden)
			r, err := tmpl.rendering(in)
			if err != nil {
				continue // refused, as the goldens say
			}
			checked++
			given := make([]bool, len(r.text))
			last := -1
			for _, g := range r.given {
				if g.Lo <= last || g.Hi <= g.Lo || g.Hi > len(r.text) {
					t.Fatalf("%s: given parts %v", key, r.given)
				}
				last = g.Hi
				for i := g.Lo; i < g.Hi; i++ {
					given[i] = true
				}
				if part := r.text[g.Lo:g.Hi]; !utf8.ValidString(part) {
					t.Errorf("%s: part %q", key, part)
				}
			}
			for i, c := range r.text {
				if c >= 0xE000 && c < 0xE100 && !given[i] {
					t.Errorf("%s: %q at %d is not known to be given, in %q", key, c, i, r.text)
					break
				}
			}
		}
	})
	if checked < 100 {
		t.Errorf("%d conversations rendered", checked)
	}
}

// vocabulary reads a stored vocabulary.
func vocabulary(t *testing.T, name string) *tokenizer.Tokenizer {
	t.Helper()
	f, err := gguf.Open(testdata.File(t, "tokenizers/"+name+".gguf"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Logf("%s: %v", name, err) // tested elsewhere
		return nil
	}
	return tok
}

// What users, tools and documents write becomes no control token, with any
// template and any vocabulary: the prompt has those of a prompt without marks.
func TestMarksAreText(t *testing.T) {
	var toks []*tokenizer.Tokenizer
	for _, name := range testdata.Vocabularies(t) {
		if tok := vocabulary(t, name); tok != nil {
			toks = append(toks, tok)
		}
	}
	found := 0
	eachTemplate(t, func(t *testing.T, name, source string) {
		for _, tok := range toks {
			var marks []string
			for id := range int32(tok.VocabSize()) {
				if tok.IsControl(id) && len(marks) < 30 && len(tok.Piece(id)) > 1 {
					marks = append(marks, string(tok.Piece(id)))
				}
			}
			all := strings.Join(marks, " ") + strings.Join(marks, "")
			tmpl, err := Compile(source, OptionsFor(name, tok))
			if err != nil {
				t.Fatal(err)
			}
			control := func(in Input, trust bool) (ids []int32, ok bool) {
				tmpl.opts.TrustMarks = trust
				p, err := tmpl.Prompt(in, tok)
				unknown := tok.Encode(nil, "\uE000", tokenizer.EncodeOptions{})
				return slices.DeleteFunc(p.Tokens, func(id int32) bool { return !tok.IsControl(id) || slices.Contains(unknown, id) }), err == nil
			}
			tool := json.RawMessage(`{"type": "function", "function": {"name": "f", "description": "words", "parameters": {"type": "object", "properties": {}}}}`)
			call := Message{Role: "assistant", ToolCalls: []ToolCall{{ID: "abcdefghi", Name: "f"}}}
			for _, msgs := range [][]Message{
				{{Role: "user", Content: "words"}},
				{{Role: "system", Content: "words"}, {Role: "user", Content: "words"}, {Role: "assistant", Content: "yes"}, {Role: "user", Content: "words"}},
				{{Role: "user", Content: "words"}, call, {Role: "tool", ToolCallID: "abcdefghi", Name: "f", Content: "words"}},
			} {
				in := Input{Messages: msgs, AddGenerationPrompt: true, Tools: []json.RawMessage{tool}}
				want, ok := control(in, false)
				if !ok {
					continue
				}
				quoted, _ := json.Marshal(all)
				in.Tools = []json.RawMessage{json.RawMessage(strings.Replace(string(tool), `"words"`, string(quoted), 1))}
				in = write(in, func(string) string { return all })
				got, _ := control(in, false)
				if !slices.Equal(got, want) {
					t.Fatalf("control tokens %v, want %v", got, want)
				}
				if trusted, _ := control(in, true); len(trusted) > len(got) {
					found++
				}
			}
		}
	})
	if found < 100 {
		t.Errorf("with marks trusted %d prompts have more control tokens", found)
	}
}
