package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decodeBody reads a request's JSON body into v. Fields that v does not have
// are ignored, as clients of these APIs expect; what is of the wrong type is
// an error that names the field.
func decodeBody(r *http.Request, v any) error {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		var size *http.MaxBytesError
		if errors.As(err, &size) {
			return err
		}
		return badRequest("", "the request's body could not be read: %v", err)
	}
	return decodeJSON(b, v)
}

func decodeJSON(b []byte, v any) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return badRequest("", "expected a JSON object, found an empty body")
	}
	if c := bytes.TrimSpace(b)[0]; c != '{' {
		return badRequest("", "expected a JSON object, found %s", excerpt(b))
	}
	err := json.Unmarshal(b, v)
	var (
		typ    *json.UnmarshalTypeError
		syntax *json.SyntaxError
		api    *apiError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &api):
		return api
	case errors.As(err, &typ):
		return badRequest(bodyField(reflect.TypeOf(v), typ.Field), "expected %s, found %s", kindName(typ), typ.Value)
	case errors.As(err, &syntax):
		return badRequest("", "the body is not valid JSON: %v at byte %d", syntax, syntax.Offset)
	}
	return badRequest("", "the body cannot be used: %v", err)
}

// wrongType is the error of a value that T cannot be read from. The decoder
// above it adds where in the body that is.
func wrongType[T any](b []byte) error {
	return &json.UnmarshalTypeError{Value: excerpt(b), Type: reflect.TypeFor[T]()}
}

// bodyField is where in a body the decoder met an error. The decoder has the
// names of embedded types in the path; clients do not know them.
func bodyField(t reflect.Type, path string) string {
	for {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		first, rest, more := strings.Cut(path, ".")
		if !more || t.Kind() != reflect.Struct {
			return path
		}
		f, ok := t.FieldByName(first)
		if !ok || !f.Anonymous {
			return path
		}
		t, path = f.Type, rest
	}
}

// kindNames are what fields of this package's own types want.
var kindNames = map[reflect.Type]string{
	reflect.TypeFor[integer]():    "a whole number",
	reflect.TypeFor[stringList](): "a string or a list of strings",
	reflect.TypeFor[prompts]():    "a string, a list of strings, a list of token ids or a list of such lists",
	reflect.TypeFor[prompt]():     "a string or a list of token ids",
	reflect.TypeFor[passage]():    "a string, or an object with a text",
}

// kindName says in JSON's words what a field wants.
func kindName(e *json.UnmarshalTypeError) string {
	if name, ok := kindNames[e.Type]; ok {
		return name
	}
	switch s := e.Type.String(); {
	case s == "string":
		return "a string"
	case s == "bool":
		return "true or false"
	case strings.HasPrefix(s, "int"), strings.HasPrefix(s, "uint"), strings.HasPrefix(s, "float"):
		return "a number in range"
	case strings.HasPrefix(s, "[]"):
		return "a list"
	}
	return "an object"
}

// excerpt shows the start of what a client sent: JSON as it is, anything else
// in quotes.
func excerpt(b []byte) string {
	const most = 40
	b = bytes.TrimSpace(b)
	if json.Valid(b) && utf8.Valid(b) {
		b = compact(b)
		if len(b) <= most {
			return string(b)
		}
		return strings.ToValidUTF8(string(b[:most]), "") + "…"
	}
	if len(b) > most {
		return strconv.Quote(string(b[:most])) + "…"
	}
	return strconv.Quote(string(b))
}

// integer is a whole number, also if it is written as 5.0.
type integer int64

func (n *integer) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if v, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		*n = integer(v)
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return wrongType[integer](b)
	}
	*n = integer(f)
	return nil
}

// value returns the number, or def if there is none.
func (n *integer) value(def int) int {
	if n == nil {
		return def
	}
	return int(max(math.MinInt32, min(math.MaxInt32, int64(*n))))
}

// seed is a seed of 64 bits, of either sign; -1 stands for a random one, as in
// Ollama, llama-server and vLLM.
type seed struct {
	value  uint64
	random bool
}

func (s *seed) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		s.random = true
		return nil
	}
	if v, err := strconv.ParseUint(string(b), 10, 64); err == nil {
		s.value = v
		return nil
	}
	var n integer
	if err := n.UnmarshalJSON(b); err != nil {
		return err
	}
	s.value, s.random = uint64(n), n == -1
	return nil
}

// stringList is a string or a list of strings.
type stringList []string

func (l *stringList) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*l = nil
		if string(b) != "null" {
			*l = stringList{one}
		}
		return nil
	}
	var many []string
	if json.Unmarshal(b, &many) != nil {
		return wrongType[stringList](b)
	}
	*l = many
	return nil
}

// prompts is what completions and embeddings accept as input: a string, a list
// of strings, a list of token ids, or a list of such lists.
type prompts []prompt

// prompt is text, or tokens if they are not nil.
type prompt struct {
	text   string
	tokens []int32
}

func (p *prompts) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var one prompt
	if one.UnmarshalJSON(b) == nil {
		*p = prompts{one}
		return nil
	}
	var many []prompt
	if json.Unmarshal(b, &many) != nil || len(many) == 0 {
		return wrongType[prompts](b)
	}
	*p = many
	return nil
}

func (p *prompt) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &p.text)
	}
	p.tokens = []int32{}
	if err := json.Unmarshal(b, &p.tokens); err != nil || p.tokens == nil || len(p.tokens) == 0 {
		return wrongType[prompt](b)
	}
	return nil
}

// biases are logit biases: {"ID": VALUE}, or llama-server's [[ID or TEXT,
// VALUE or false], ...].
type biases struct {
	ids   map[int32]float32
	texts map[string]float32
}

// maxBias bounds the size of a bias: no logit comes near it.
const maxBias = 1e30

func (l *biases) UnmarshalJSON(b []byte) error {
	l.ids, l.texts = map[int32]float32{}, map[string]float32{}
	var byID map[string]float64
	if json.Unmarshal(b, &byID) == nil {
		for k, v := range byID {
			id, err := strconv.ParseInt(strings.TrimSpace(k), 10, 32)
			if err != nil || id < 0 {
				return badRequest("logit_bias", "expected token ids as keys, found %q", k)
			}
			if math.Abs(v) > maxBias {
				return badRequest("logit_bias", "expected numbers of at most %g, found %g", float64(maxBias), v)
			}
			l.ids[int32(id)] = float32(v)
		}
		return nil
	}
	var pairs [][2]json.RawMessage
	if json.Unmarshal(b, &pairs) != nil {
		return badRequest("logit_bias", "expected an object of token ids and numbers, found %s", excerpt(b))
	}
	for _, p := range pairs {
		var v float64
		if string(p[1]) == "false" {
			v = math.Inf(-1)
		} else if json.Unmarshal(p[1], &v) != nil || math.Abs(v) > maxBias {
			return badRequest("logit_bias", "expected a number of at most %g, or false, found %s", float64(maxBias), excerpt(p[1]))
		}
		var id int32
		var text string
		switch {
		case json.Unmarshal(p[0], &id) == nil && id >= 0:
			l.ids[id] = float32(v)
		case json.Unmarshal(p[0], &text) == nil:
			l.texts[text] = float32(v)
		default:
			return badRequest("logit_bias", "expected a token id or a text, found %s", excerpt(p[0]))
		}
	}
	return nil
}
