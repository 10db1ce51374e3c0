package wire

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// Idle is a field of an API that changes no answer of this server, whatever it
// is: what it is about does not exist here, or does the same for every value.
type Idle struct{}

// UnmarshalJSON reads any value.
func (*Idle) UnmarshalJSON([]byte) error { return nil }

// Refused is a field that asks for what this server cannot do. Values that ask for
// nothing are taken: null, false, 0, "", [] and {}.
type Refused struct{}

// UnmarshalJSON reads a value that asks for nothing.
func (*Refused) UnmarshalJSON(b []byte) error {
	switch string(bytes.TrimSpace(b)) {
	case "null", "false", "0", `""`, "[]", "{}":
		return nil
	}
	return WrongType[Refused](b)
}

// Wants says what the field may be.
func (Refused) Wants() string { return "nothing, since this server cannot do that" }

// maxUnread bounds the fields that are named to a client.
const maxUnread = 16

// unread are the fields of a body that nobody reads: those that t, a structure or
// a pointer to one, has no place for. Objects that t knows are looked into, lists
// and what reads itself are not. A null asks for nothing.
func (m *members) unread(t reflect.Type) []string {
	known := fieldsOf(t)
	if known == nil {
		return nil
	}
	var out []string
	for _, k := range m.top {
		if len(out) >= maxUnread {
			return append(out[:maxUnread-1], "...")
		}
		value := m.text[k.value:]
		f, ok := known[strings.ToLower(k.name)]
		switch {
		case !ok && !bytes.HasPrefix(value, []byte("null")):
			out = append(out, k.name)
		case ok && f.Kind() == reflect.Struct && len(value) > 0 && value[0] == '{':
			var raw json.RawMessage
			inner := members{}
			if json.NewDecoder(bytes.NewReader(value)).Decode(&raw) != nil || inner.walk(raw) != nil {
				continue
			}
			for _, name := range inner.unread(f) {
				out = append(out, k.name+"."+name)
			}
		}
	}
	return out
}

var fieldsCache sync.Map // of reflect.Type to map[string]reflect.Type

// fieldsOf are the fields that the decoder knows of t, by their names in small
// letters, with their types less pointers; nil if t is no structure, or reads itself.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || readsItself(t) {
		return nil
	}
	if f, ok := fieldsCache.Load(t); ok {
		return f.(map[string]reflect.Type)
	}
	out := map[string]reflect.Type{}
	addFields(out, t)
	fieldsCache.Store(t, out)
	return out
}

func addFields(out map[string]reflect.Type, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		typ := f.Type
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && typ.Kind() == reflect.Struct:
			addFields(out, typ)
		case name == "-" || !f.IsExported():
		case name == "":
			out[strings.ToLower(f.Name)] = typ
		default:
			out[strings.ToLower(name)] = typ
		}
	}
}

// readsItself reports whether t decodes itself.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
