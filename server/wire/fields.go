package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"ridge/server/fault"
	"ridge/server/run"
)

// Integer is a whole number, also if it is written as 5.0.
type Integer int64

// UnmarshalJSON reads it.
func (n *Integer) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if v, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		*n = Integer(v)
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return WrongType[Integer](b)
	}
	*n = Integer(f)
	return nil
}

// Wants says what the field may be.
func (Integer) Wants() string { return "a whole number" }

// Pointer returns the number, nil for none.
func (n *Integer) Pointer() *int {
	if n == nil {
		return nil
	}
	return new(n.Value(0))
}

// Milliseconds returns a time of so many, nil for none.
func (n *Integer) Milliseconds() *time.Duration {
	if n == nil {
		return nil
	}
	return new(time.Duration(n.Value(0)) * time.Millisecond)
}

// Value returns the number, or def if there is none.
func (n *Integer) Value(def int) int {
	if n == nil {
		return def
	}
	return int(max(math.MinInt32, min(math.MaxInt32, int64(*n))))
}

// Seed is a seed of 64 bits, of either sign; -1 stands for a random one, as in
// Ollama, llama-server and vLLM.
type Seed struct {
	value  uint64
	random bool
}

// UnmarshalJSON reads a number or null.
func (s *Seed) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		s.random = true
		return nil
	}
	if v, err := strconv.ParseUint(string(b), 10, 64); err == nil {
		s.value = v
		return nil
	}
	var n Integer
	if err := n.UnmarshalJSON(b); err != nil {
		return err
	}
	s.value, s.random = uint64(n), n == -1
	return nil
}

// Pointer returns the seed, nil for a random one.
func (s *Seed) Pointer() *uint64 {
	if s == nil || s.random {
		return nil
	}
	return &s.value
}

// StringList is a string or a list of strings.
type StringList []string

// UnmarshalJSON reads either.
func (l *StringList) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*l = nil
		if string(b) != "null" {
			*l = StringList{one}
		}
		return nil
	}
	var many []string
	if json.Unmarshal(b, &many) != nil {
		return WrongType[StringList](b)
	}
	*l = many
	return nil
}

// Wants says what the field may be.
func (StringList) Wants() string { return "a string or a list of strings" }

// Prompts is what completions and embeddings accept as input: a string, a list
// of strings, a list of token ids, or a list of such lists; and, as llama-server
// has it, a list of texts and token ids for one prompt, and {"prompt_string": TEXT}
// for a text.
type Prompts []run.Prompt

// Wants says what the field may be.
func (Prompts) Wants() string {
	return "a string, a list of strings, a list of token ids or a list of such lists"
}

// onePrompt is a string, or a list of token ids and texts.
type onePrompt run.Prompt

// Wants says what the field may be.
func (onePrompt) Wants() string { return "a string or a list of token ids" }

// UnmarshalJSON reads any of them.
func (p *Prompts) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	first := byte(0) // of a list
	if len(b) > 0 && b[0] == '[' {
		if in := bytes.TrimLeft(b[1:], " \t\r\n"); len(in) > 0 {
			first = in[0]
		}
	}
	if first == '"' || first == '[' || first == '{' {
		var many []onePrompt
		if json.Unmarshal(b, &many) == nil {
			*p = nil
			for _, x := range many {
				*p = append(*p, run.Prompt(x))
			}
			return nil
		}
	}
	var one onePrompt
	if one.UnmarshalJSON(b) != nil {
		return WrongType[Prompts](b)
	}
	*p = Prompts{run.Prompt(one)}
	return nil
}

// tokenIDs reads a list of token ids, of which there may be millions.
func tokenIDs(b []byte) ([]int32, bool) {
	if len(b) == 0 || b[0] != '[' {
		return nil, false
	}
	ids := make([]int32, 0, 1+bytes.Count(b, []byte(",")))
	skip := func(i int) int {
		for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
			i++
		}
		return i
	}
	for i := 0; b[i] == '[' || b[i] == ','; {
		i = skip(i + 1)
		n, sign, from := int64(0), int64(1), i
		if i < len(b) && b[i] == '-' {
			sign, from, i = -1, i+1, i+1
		}
		for ; i < len(b) && i-from <= 10 && b[i] >= '0' && b[i] <= '9'; i++ {
			n = 10*n + int64(b[i]-'0')
		}
		if n *= sign; i == from || n != int64(int32(n)) {
			return nil, false
		}
		ids = append(ids, int32(n))
		if i = skip(i); i == len(b) {
			return nil, false
		}
		if b[i] == ']' {
			return ids, i == len(b)-1
		}
	}
	return nil, false
}

// UnmarshalJSON reads either.
func (p *onePrompt) UnmarshalJSON(b []byte) error {
	switch {
	case len(b) > 0 && b[0] == '"':
		return json.Unmarshal(b, &p.Text)
	case len(b) > 0 && b[0] == '{':
		return p.object(b)
	}
	if ids, ok := tokenIDs(b); ok {
		p.Tokens = ids
		return nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(b, &parts) != nil || len(parts) == 0 || len(parts) > maxParts {
		return WrongType[onePrompt](b)
	}
	texts := 0
	for _, part := range parts {
		var id int32
		var x run.Prompt
		switch {
		case part[0] == '"' && json.Unmarshal(part, &x.Text) == nil:
			texts++
		case json.Unmarshal(part, &id) == nil && string(part) != "null":
			x.Tokens = []int32{id}
		default:
			return WrongType[onePrompt](b)
		}
		p.Parts = append(p.Parts, x)
	}
	if texts == len(parts) { // of texts alone a list is several prompts
		return WrongType[onePrompt](b)
	}
	return nil
}

// maxParts bounds the texts and token ids of a prompt that has both.
const maxParts = 1 << 16

// object reads llama-server's forms of a text that could have pictures: one text, or
// parts of it.
func (p *onePrompt) object(b []byte) error {
	var o struct {
		Text    *string           `json:"prompt_string"`
		Media   []json.RawMessage `json:"multimodal_data"`
		Content []struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		} `json:"content"`
	}
	switch {
	case json.Unmarshal(b, &o) != nil || (o.Text == nil) == (len(o.Content) == 0):
		return WrongType[onePrompt](b)
	case len(o.Media) > 0:
		return fault.Unsupported("multimodal_data", "this server reads text only")
	case o.Text != nil:
		p.Text = *o.Text
		return nil
	}
	for _, part := range o.Content {
		if part.Type != "text" || part.Text == nil {
			return fault.Unsupported("content", "expected parts of the type text: this server reads text only")
		}
		p.Text += *part.Text
	}
	return nil
}

// Biases are logit biases: {"ID or TEXT": VALUE}, or llama-server's [[ID or TEXT,
// VALUE or false], ...].
type Biases struct {
	ids   map[int32]float32
	texts map[string]float32
}

// maxBias bounds the size of a bias: no logit comes near it.
const maxBias = 1e30

// UnmarshalJSON reads either.
func (l *Biases) UnmarshalJSON(b []byte) error {
	l.ids, l.texts = map[int32]float32{}, map[string]float32{}
	var byID map[string]float64
	if json.Unmarshal(b, &byID) == nil {
		for k, v := range byID {
			if math.Abs(v) > maxBias {
				return fault.BadRequest("logit_bias", "expected numbers of at most %g, found %g", float64(maxBias), v)
			}
			if id, err := strconv.ParseInt(strings.TrimSpace(k), 10, 64); err != nil {
				l.texts[k] = float32(v)
			} else if id < 0 || id > math.MaxInt32 {
				return fault.BadRequest("logit_bias", "expected token ids or texts as keys, found %q", k)
			} else {
				l.ids[int32(id)] = float32(v)
			}
		}
		return nil
	}
	var pairs [][2]json.RawMessage
	if json.Unmarshal(b, &pairs) != nil {
		return fault.BadRequest("logit_bias", "expected an object of token ids or texts and numbers, found %s", fault.Excerpt(b))
	}
	for _, p := range pairs {
		var v float64
		if string(p[1]) == "false" {
			v = math.Inf(-1)
		} else if json.Unmarshal(p[1], &v) != nil || math.Abs(v) > maxBias {
			return fault.BadRequest("logit_bias", "expected a number of at most %g, or false, found %s", float64(maxBias), fault.Excerpt(p[1]))
		}
		var id int32
		var text string
		switch {
		case json.Unmarshal(p[0], &id) == nil && id >= 0:
			l.ids[id] = float32(v)
		case json.Unmarshal(p[0], &text) == nil:
			l.texts[text] = float32(v)
		default:
			return fault.BadRequest("logit_bias", "expected a token id or a text, found %s", fault.Excerpt(p[0]))
		}
	}
	return nil
}
