package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"ridge/server/fault"
)

// DecodeBody reads a request's JSON body into v. Fields that v does not have
// are ignored, as clients of these APIs expect; what is of the wrong type is
// an error that names the field.
func DecodeBody(r *http.Request, v any) error {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		var size *http.MaxBytesError
		if errors.As(err, &size) {
			return TooLarge(size)
		}
		return fault.BadRequest("", "the request's body could not be read: %v", err)
	}
	return DecodeJSON(b, v)
}

// TooLarge is the error of a body of more bytes than a request may have.
func TooLarge(e *http.MaxBytesError) *fault.Error {
	return &fault.Error{Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Code: "request_too_large", Message: fmt.Sprintf("the request's body has more than %d bytes", e.Limit)}
}

// DecodeJSON is DecodeBody for a body that was read.
func DecodeJSON(b []byte, v any) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return fault.BadRequest("", "expected a JSON object, found an empty body")
	}
	if c := bytes.TrimSpace(b)[0]; c != '{' {
		return fault.BadRequest("", "expected a JSON object, found %s", fault.Excerpt(b))
	}
	err := json.Unmarshal(b, v)
	var (
		typ    *json.UnmarshalTypeError
		syntax *json.SyntaxError
		api    *fault.Error
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &api):
		return api
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
