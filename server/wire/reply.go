package wire

import (
	"encoding/json"
	"net/http"
	"strconv"
)

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
