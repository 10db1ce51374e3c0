package wire

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"ridge/server/caller"
	"ridge/server/run"
)

// NoteUnenforced names in the header X-Ridge-Unenforced what of the request's
// schemas the answer is not held to and what of the request the model does not get,
// one value for each. The latter is in the log, too. X-Ridge-Ignored has the fields
// that others take the place of.
func NoteUnenforced(w http.ResponseWriter, r *http.Request, p *run.Plan) {
	for _, name := range p.Ignored {
		w.Header().Add("X-Ridge-Ignored", headerText(name))
	}
	for _, u := range p.Unenforced {
		w.Header().Add("X-Ridge-Unenforced", headerText(u.String()))
	}
	named := map[string]bool{}
	var texts []string
	for _, l := range p.Left {
		text := headerText(l.String())
		if named[text] || len(texts) == maxLeft {
			continue
		}
		named[text] = true
		texts = append(texts, text)
		w.Header().Add("X-Ridge-Unenforced", text)
	}
	caller.Note(r.Context(), func(l *caller.Record) { l.Left = texts })
}

// NoteRecord tells what an answer is not: the header X-Ridge-Ignored names the
// fields of the request that nobody read and those that could not be followed, one
// value for each, and X-Ridge-Truncated the tokens that were cut off its prompts.
func NoteRecord(h http.Header, l *caller.Record) {
	if l.Truncated > 0 {
		h.Set("X-Ridge-Truncated", strconv.Itoa(l.Truncated))
	}
	for _, name := range l.Ignored {
		h.Add("X-Ridge-Ignored", headerText(name))
	}
}

// maxLeft bounds what is named of what was left out.
const maxLeft = 16

// headerText is text as a header's value, of at most 200 bytes.
func headerText(text string) string {
	text = strconv.QuoteToASCII(text)
	text = strings.ReplaceAll(text[1:len(text)-1], `\"`, `"`)
	if len(text) > 200 {
		text = text[:197] + "..."
	}
	return text
}

// WriteJSON answers with a JSON body.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	b, err := EncodeJSON(v)
	if err != nil {
		// Every body is made of types that encode; a failure is a bug here.
		status, b = http.StatusInternalServerError, []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":"internal_error"}}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that is gone is noticed elsewhere
}

// EncodeJSON encodes v without escapes for HTML, which nobody asked for.
func EncodeJSON(v any) ([]byte, error) {
	var b Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b[:len(b)-1], nil
}

// Buffer is the least that an encoder writes to.
type Buffer []byte

// Write appends p.
func (b *Buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// IDs are the ids of some tokens.
func IDs(tokens []run.Token) []int32 {
	out := []int32{}
	for _, t := range tokens {
		out = append(out, t.ID)
	}
	return out
}
