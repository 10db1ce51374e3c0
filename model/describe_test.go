package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wrong is a value that has no type that a description is asked for, and some
// that each type refuses.
var wrong = map[string][]any{
	"an integer":    {"text", true, 1.5, []any{"x"}, map[string]any{}},
	"a number":      {"text", true, []any{1.0}, map[string]any{}},
	"a string":      {1.0, true, []any{}, map[string]any{}},
	"true or false": {"true", 1.0, []any{}, map[string]any{}},
	"integers":      {"text", 1.0, true, []any{"x"}, []any{1.5}, map[string]any{}},
	"strings":       {"text", 1.0, true, []any{1.0}, map[string]any{}},
	"numbers":       {"text", 1.0, true, []any{"x"}, map[string]any{}},
	"an object":     {"text", 1.0, true, []any{}},
}

// Every key of a config.json that is read, in every architecture, is an error
// that names it if its value has another type.
func TestMistypedConfig(t *testing.T) {
	tried := 0
	for _, dir := range tinyCases(t) {
		path := filepath.Join(dir, "config.json")
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if bytes.Contains(raw, []byte(`"text_config"`)) {
			err := readConfig(t, path, []byte(`{"model_type": "gemma3", "text_config": 5}`), nil)
			if err == nil || !strings.Contains(err.Error(), "text_config: expected an object, found 5") {
				t.Errorf("%s: text_config = 5: %v", dir, err)
			}
		}
		asked := map[string]string{}
		if err := readConfig(t, path, raw, asked); err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		if len(asked) < 8 {
			t.Fatalf("%s: only %d keys are read", dir, len(asked))
		}
		for _, key := range slices.Sorted(maps.Keys(asked)) {
			values, ok := wrong[asked[key]]
			if !ok {
				continue // only whether it is there
			}
			for _, v := range values {
				changed, ok := replaceKey(t, raw, key, v)
				if !ok {
					continue // it lies in an object that this model does not have
				}
				tried++
				err := readConfig(t, path, changed, nil)
				name := key[strings.LastIndex(key, " ")+1:]
				if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "found") {
					t.Errorf("%s: %s = %v (%s expected): %v", filepath.Base(dir), key, v, asked[key], err)
				}
			}
		}
	}
	if tried < 1000 {
		t.Errorf("only %d values were tried", tried)
	}
}

// readConfig reads a config.json as Open does, and notes the keys and types that
// are asked for.
func readConfig(t *testing.T, path string, raw []byte, asked map[string]string) error {
	t.Helper()
	d, err := parseHF(path, raw)
	if err == nil {
		if asked != nil {
			d.asked = func(key, want string) {
				if asked[key] == "" {
					asked[key] = want
				}
			}
		}
		kind := d.str("", "model_type", "")
		if a := byType(kind); a != nil {
			err = a.read(d, &Config{})
		} else if err = *d.err; err == nil {
			err = fmt.Errorf("%s: model_type: found %q", path, kind)
		}
	}
	return err
}

// replaceKey sets a key, which may lie in objects ("rope_scaling: factor"), of a
// config.json.
func replaceKey(t *testing.T, raw []byte, key string, v any) ([]byte, bool) {
	t.Helper()
	var top map[string]any
	if err := json.Unmarshal(raw, &top); err != nil {
		t.Fatal(err)
	}
	at := top
	if text, ok := top["text_config"].(map[string]any); ok {
		at = text // what it says comes first
	}
	parts := strings.Split(key, ": ")
	for _, p := range parts[:len(parts)-1] {
		next, ok := at[p].(map[string]any)
		if !ok {
			return nil, false
		}
		at = next
	}
	at[parts[len(parts)-1]] = v
	b, err := json.Marshal(top)
	if err != nil {
		t.Fatal(err)
	}
	return b, true
}
