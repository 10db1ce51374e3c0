package openai

import (
	"bytes"
	"encoding/json"
	"slices"

	"ridge/server/fault"
	"ridge/server/run"
	"ridge/server/wire"
)

// Structured are the fields of vLLM, llama-server and their predecessors that
// ask for structured output, beside OpenAI's response_format.
type Structured struct {
	ResponseFormat json.RawMessage `json:"response_format"`
	Structured     *struct {
		JSON       json.RawMessage `json:"json"`
		JSONObject bool            `json:"json_object"`
		Regex      string          `json:"regex"`
		Choice     []string        `json:"choice"`
		Grammar    string          `json:"grammar"`
		Tag        json.RawMessage `json:"structural_tag"`
		JumpAhead  *bool           `json:"jump_ahead"`
	} `json:"structured_outputs"`
	JumpAhead     *bool           `json:"jump_ahead"` // beside any of the fields
	GuidedJSON    json.RawMessage `json:"guided_json"`
	GuidedRegex   string          `json:"guided_regex"`
	GuidedChoice  []string        `json:"guided_choice"`
	GuidedGrammar string          `json:"guided_grammar"`
	Grammar       string          `json:"grammar"`     // llama-server: GBNF, here Lark too
	JSONSchema    json.RawMessage `json:"json_schema"` // llama-server
	Regex         string          `json:"regex"`       // SGLang
	EBNF          string          `json:"ebnf"`        // SGLang
}

// Format returns the one format that the fields ask for.
func (s *Structured) Format() (run.Format, error) {
	var found []run.Format
	add := func(field, kind string, source []byte) {
		if len(source) > 0 && string(source) != "null" {
			found = append(found, run.Format{Kind: kind, Field: field, Source: source})
		}
	}
	f, err := wire.ResponseFormat("response_format", s.ResponseFormat)
	if err != nil {
		return f, err
	}
	if f.Kind != "" {
		found = append(found, f)
	}
	add("guided_json", "schema", unquoted(s.GuidedJSON))
	add("json_schema", "schema", unquoted(s.JSONSchema))
	add("guided_regex", "regex", []byte(s.GuidedRegex))
	add("regex", "regex", []byte(s.Regex))
	add("guided_grammar", "gbnf", []byte(s.GuidedGrammar))
	add("grammar", "gbnf", []byte(s.Grammar))
	add("ebnf", "gbnf", []byte(s.EBNF))
	if s.GuidedChoice != nil {
		found = append(found, run.Format{Kind: "choice", Field: "guided_choice", Choices: s.GuidedChoice})
	}
	if o := s.Structured; o != nil {
		add("structured_outputs.structural_tag", "tag", unquoted(o.Tag))
		add("structured_outputs.json", "schema", unquoted(o.JSON))
		add("structured_outputs.regex", "regex", []byte(o.Regex))
		add("structured_outputs.grammar", "gbnf", []byte(o.Grammar))
		if o.JSONObject {
			add("structured_outputs.json_object", "json", []byte("{}"))
		}
		if o.Choice != nil {
			found = append(found, run.Format{Kind: "choice", Field: "structured_outputs.choice", Choices: o.Choice})
		}
	}
	// What is said twice, as clients do that fill in the fields of several servers, is
	// said once.
	found = slices.CompactFunc(found, func(a, b run.Format) bool {
		return a.Kind == b.Kind && bytes.Equal(bytes.TrimSpace(a.Source), bytes.TrimSpace(b.Source)) && slices.Equal(a.Choices, b.Choices)
	})
	if len(found) > 1 {
		return f, fault.BadRequest(found[1].Field, "expected at most one field that says what the answer looks like, found %s too", found[0].Field)
	}
	if len(found) == 1 {
		f = found[0]
	}
	jump := s.JumpAhead
	if jump == nil && s.Structured != nil {
		jump = s.Structured.JumpAhead
	}
	f.Jump = jump
	return f, nil
}

// unquoted is JSON that may have come as a text with JSON in it.
func unquoted(raw json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return json.RawMessage(text)
	}
	return raw
}
