package wire

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"

	"ridge/internal/aside"
	"ridge/server/caller"
	"ridge/server/fault"
)

// DecodeBody reads a request's JSON body into v. Fields that v does not have
// are ignored, as clients of these APIs expect, and noted, to be named with the
// answer; what is of the wrong type is an error that names the field.
func DecodeBody(r *http.Request, v any) error {
	b, err := readBody(r)
	if err != nil {
		return BodyError(err)
	}
	if err := aside.Wait(r.Context()); err != nil {
		return err
	}
	var fits func(text []byte) error
	caller.Note(r.Context(), func(l *caller.Record) { fits = l.Fits })
	unread, err := decode(b, v, fits)
	caller.Note(r.Context(), func(l *caller.Record) { l.Ignored = append(l.Ignored, unread...) })
	return err
}

// readBody reads a request's body, without memory to spare where its length is
// known.
func readBody(r *http.Request) ([]byte, error) {
	var b bytes.Buffer
	if n := r.ContentLength; n > 0 {
		b.Grow(int(min(n, 1<<20)) + bytes.MinRead)
		if _, err := io.CopyN(&b, r.Body, min(n, 1<<20)); err != nil {
			return nil, unexpected(err)
		}
		if n > 1<<20 { // the client has shown that it sends
			b.Grow(int(n) - b.Len() + bytes.MinRead)
		}
	}
	_, err := b.ReadFrom(r.Body)
	return b.Bytes(), err
}

// unexpected is the error of a body that is shorter than its length.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// BodyError is what a client is told whose body could not be read.
func BodyError(err error) error {
	var size *http.MaxBytesError
	var api *fault.Error
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &size):
		return TooLarge(size)
	case errors.Is(err, os.ErrDeadlineExceeded):
		e := fault.BadRequest("", "the request's body did not arrive in the time that it may take")
		e.Code = "request_timeout"
		return e
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return fault.BadRequest("", "the request's body is not what its header Content-Encoding says: %v", err)
	}
	return fault.BadRequest("", "the request's body could not be read: %v", err)
}

// TooLarge is the error of a body of more bytes than a request may have.
func TooLarge(e *http.MaxBytesError) *fault.Error {
	return &fault.Error{Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Code: "request_too_large", Message: fmt.Sprintf("the request's body has more than %d bytes", e.Limit)}
}

// DecodeJSON is DecodeBody for a body that was read. It returns the fields that v
// does not have.
func DecodeJSON(b []byte, v any) (unread []string, err error) { return decode(b, v, nil) }

// decode is DecodeJSON for a body whose longest text must fit, unless it says that
// what is too long is cut: to read it takes far longer than to find its end.
func decode(b []byte, v any, fits func(text []byte) error) (unread []string, err error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, fault.BadRequest("", "expected a JSON object, found an empty body")
	}
	if c := bytes.TrimSpace(b)[0]; c != '{' {
		return nil, fault.BadRequest("", "expected a JSON object, found %s", fault.Excerpt(b))
	}
	m, err := checkMembers(b)
	if err != nil {
		return nil, err
	}
	if fits != nil && !slices.ContainsFunc(m.top, func(k topKey) bool { return strings.Contains(strings.ToLower(k.name), "trunc") }) {
		if err := fits(m.longest); err != nil {
			return nil, err
		}
	}
	if err := json.Unmarshal(b, v); err != nil {
		return nil, decodeError(err, v)
	}
	return m.unread(reflect.TypeOf(v)), nil
}

// decodeError is what a client is told of a body that cannot be read into v.
func decodeError(err error, v any) error {
	var (
		typ    *json.UnmarshalTypeError
		syntax *json.SyntaxError
		api    *fault.Error
	)
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &typ) && typ.Type == reflect.TypeFor[Refused]():
		return fault.Unsupported(bodyField(reflect.TypeOf(v), typ.Field), "expected %s, found %s", kindName(typ), typ.Value)
	case errors.As(err, &typ):
		return fault.BadRequest(bodyField(reflect.TypeOf(v), typ.Field), "expected %s, found %s", kindName(typ), typ.Value)
	case errors.As(err, &syntax):
		return fault.BadRequest("", "the body is not valid JSON: %v at byte %d", syntax, syntax.Offset)
	}
	return fault.BadRequest("", "the body cannot be used: %v", err)
}

// WrongType is the error of a value that T cannot be read from. The decoder
// above it adds where in the body that is.
func WrongType[T any](b []byte) error {
	return &json.UnmarshalTypeError{Value: fault.Excerpt(b), Type: reflect.TypeFor[T]()}
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

// kindName says in JSON's words what a field wants.
func kindName(e *json.UnmarshalTypeError) string {
	if v, ok := reflect.Zero(e.Type).Interface().(interface{ Wants() string }); ok {
		return v.Wants()
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

// Present reports whether a field is there and not null.
func Present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
