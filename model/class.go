package model

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// class is the configuration class that Hugging Face transformers has for a
// model_type. A config.json leaves out what is a default of its class, and the
// model computes with all keys of the class: those that package model does not
// read must have their default, see checkKeys.
type class struct {
	Type    string            `json:"type"`
	Keys    map[string]any    `json:"keys"`    // with their defaults; those of objects as "object: key"
	Aliases map[string]string `json:"aliases"` // other names of keys
}

// classLines are made by internal/tinymodel/gen/classes.py.
//
//go:embed classes.jsonl
var classLines []byte

var classes = sync.OnceValue(func() map[string]*class {
	byType := map[string]*class{}
	for line := range bytes.Lines(classLines) {
		c := &class{}
		if err := json.Unmarshal(line, c); err != nil {
			panic(fmt.Sprintf("model: classes.jsonl: %v", err))
		}
		byType[c.Type] = c
	}
	return byType
})

// knows reports whether a key means something to the class.
func (c *class) knows(key string) bool {
	if c == nil {
		return true
	}
	_, ok := c.Keys[key]
	return ok
}

// setClass reads the keys of d as the class of a model_type does. Two names of a
// key with different values are an error.
func (d *description) setClass(kind string) {
	d.class = classes()[kind]
	if d.class == nil {
		return
	}
	for _, other := range slices.Sorted(maps.Keys(d.class.Aliases)) {
		v, ok := d.json[other]
		if !ok {
			continue
		}
		key := d.class.Aliases[other]
		if have, ok := d.json[key]; ok && !reflect.DeepEqual(have, v) {
			d.fail(other, fmt.Sprintf("%v as in %s", have, key), v)
		}
		d.json[key] = v
	}
}

// classDefault returns the value of a key that a config.json does not have. One
// that is null there has none.
func (d *description) classDefault(key string) (v any, ok bool) {
	if d.class == nil {
		return nil, false
	}
	if _, null := d.json[key]; null {
		return nil, false
	}
	v = d.class.Keys[key]
	return v, v != nil
}

// checkKeys fails for a key that nothing has read and that is not the default of
// the class: the reference computes something else with it.
func (d *description) checkKeys() {
	if d.class == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(d.class.Keys)) {
		if d.read[key] {
			continue
		}
		at, name := d.json, key
		if object, inner, ok := strings.Cut(key, ": "); ok {
			at, _ = d.json[object].(map[string]any)
			name = inner
		}
		def := d.class.Keys[key]
		v, ok := at[name]
		if none := v == nil && (def == nil || def == false); !ok || none || reflect.DeepEqual(v, def) {
			continue
		}
		want := "nothing"
		if def != nil {
			want = fmt.Sprint(def)
		}
		d.fail(key, want, v)
	}
}
