package model

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ridge/weights/gguf"
	"ridge/weights/quantized"
)

// description is what a model's files say of its architecture: the metadata of a
// GGUF file, or a config.json. It keeps the first error, so that whoever reads
// need not look after each value: a value of another type than expected is an
// error that names the key.
//
// A value has a key in either kind of file. "a|b" are names for the same value
// in different files of a kind; "" says that files of that kind do not have it. A
// GGUF key is of the architecture, unless it begins with a dot.
type description struct {
	file string // for errors
	hf   bool   // it is a config.json
	in   string // for errors: the objects that it lies in
	get  func(key string) (v any, ok bool)
	err  *error
	// asked, when not nil, is told each key of a config.json that is read, and
	// the type wanted.
	asked func(key, want string)
	// noted, when not nil, is told each value for which files of the other kind have
	// keys too, and those.
	noted func(otherKeys string, v any, want string)
	// present says which weights the model has that not every model has.
	present map[string]presence
	// Of a config.json: its keys, its class if that is known, and the keys that
	// were read of those of the class.
	json  map[string]any
	class *class
	// around is the architecture of the model that it is one part of.
	around *architecture
	read   map[string]bool
	// quantized says how the weights of a checkpoint are quantized, nil if they
	// are not.
	quantized *quantized.Config
}

// ggufDescription reads the metadata of an architecture.
func ggufDescription(f *gguf.File, arch string) *description {
	return &description{file: f.Name(), err: new(error), present: map[string]presence{}, get: func(key string) (any, bool) {
		if whole, ok := strings.CutPrefix(key, "."); ok {
			return f.Lookup(whole)
		}
		return f.Lookup(arch + "." + key)
	}, in: arch + "."}
}

// hfDescription reads the config.json of a checkpoint directory.
func hfDescription(dir string) (*description, error) {
	path := filepath.Join(dir, "config.json")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("model: %s: %w", dir, err)
	}
	return parseHF(path, b)
}

// parseHF reads the description in a config.json, path being where it lies.
func parseHF(path string, b []byte) (*description, error) {
	m := map[string]any{}
	if err := json.Unmarshal(strictJSON(b), &m); err != nil {
		return nil, fmt.Errorf("model: %s: expected a JSON object: %w", path, err)
	}
	d := jsonDescription(path, m)
	if d.quantized, *d.err = quantized.ReadConfig(filepath.Dir(path), m); *d.err != nil {
		return nil, fmt.Errorf("model: %w", *d.err)
	}
	kind := d.str("", "model_type", "")
	if exact := exactType(m); exact != kind && *d.err == nil {
		kind, m["model_type"] = exact, exact
	}
	// Multi-modal checkpoints keep the language model's numbers one level down,
	// but for what concerns its output matrix.
	if text := d.object("text_config"); text != nil && *d.err == nil {
		for _, key := range []string{"architectures", "tie_word_embeddings"} {
			if v, ok := m[key]; ok {
				text.json[key] = v
			}
		}
		if text.around = byType(kind); text.around != nil {
			kind = text.str("", "model_type", text.around.hf[0])
		}
		text.json["model_type"], text.in, text.quantized = kind, "", d.quantized
		d = text
	}
	d.setClass(kind)
	return d, *d.err
}

// exactType returns the model_type of a config.json, with what tells types apart
// that share their name: the class of the model, or experts.
func exactType(m map[string]any) string {
	kind, _ := m["model_type"].(string)
	if n, ok := asInt(m["moe_every_n_layers"]); ok && n > 0 && byType(kind+"/moe") != nil {
		return kind + "/moe"
	}
	if list, _ := m["architectures"].([]any); len(list) == 1 {
		if exact := fmt.Sprint(kind, "/", list[0]); byType(exact) != nil {
			return exact
		}
	}
	return kind
}

func jsonDescription(path string, m map[string]any) *description {
	return &description{file: path, hf: true, err: new(error), json: m, read: map[string]bool{}, present: map[string]presence{}, get: func(key string) (any, bool) {
		v, ok := m[key]
		return v, ok && v != nil // null is how Python writes that there is nothing
	}}
}

// fail notes an error about the value of a key.
func (d *description) fail(key, want string, found any) {
	if *d.err != nil {
		return
	}
	if d.hf {
		*d.err = fmt.Errorf("model: %s: %s%s: expected %s, found %v", d.file, d.in, key, want, found)
	} else {
		*d.err = fmt.Errorf("model: %s: metadata %q: expected %s, found %v", d.file, d.in+key, want, found)
	}
}

// find returns the first of a value's keys that is there, and the value, or else
// the default of the class. Without one key is the first name that it could have.
func (d *description) find(ggufKey, hfKey, want string) (key string, v any, ok bool) {
	keys, others := ggufKey, hfKey
	if d.hf {
		keys, others = hfKey, ggufKey
	}
	if keys == "" {
		return "", nil, false
	}
	def, hasDef := any(nil), false
	for name := range strings.SplitSeq(keys, "|") {
		if d.hf && !d.class.knows(name) && !ofEveryClass[name] {
			continue
		}
		if d.read != nil {
			d.read[d.in+name] = true
		}
		if d.asked != nil {
			d.asked(d.in+name, want)
		}
		if v, ok = d.get(name); ok {
			d.note(others, v, want)
			return name, v, true
		}
		if key == "" {
			key = name
		}
		if !hasDef {
			def, hasDef = d.classDefault(name)
		}
	}
	d.note(others, def, want)
	return key, def, hasDef
}

// note tells noted of a value.
func (d *description) note(others string, v any, want string) {
	if d.noted != nil && others != "" && (d.hf || v != nil) {
		d.noted(others, v, want)
	}
}

// ofEveryClass are keys that all classes have.
var ofEveryClass = map[string]bool{"model_type": true, "text_config": true}

// inGGUF is a default for GGUF files alone: a config.json without the value says
// that there is none, or its class has a default.
func (d *description) inGGUF(v float64) float64 {
	if d.hf {
		return 0
	}
	return v
}

// has says whether there is a value.
func (d *description) has(ggufKey, hfKey string) bool {
	_, _, ok := d.find(ggufKey, hfKey, "")
	return ok
}

// required marks a value that a file must have, requiredFloat one that need not be
// an integer.
const required = math.MinInt

var requiredFloat = math.Inf(-1)

func (d *description) int(ggufKey, hfKey string, def int) int {
	key, v, ok := d.find(ggufKey, hfKey, "an integer")
	if !ok {
		if def == required && key != "" {
			d.fail(key, "a number", "nothing")
		}
		return def
	}
	n, ok := asInt(v)
	if !ok {
		d.fail(key, "an integer", describe(v))
	}
	if def != required && (n == -1 || n == math.MaxUint32) {
		return 0 // as 0, it says that there is none
	}
	return n
}

func (d *description) float(ggufKey, hfKey string, def float64) float64 {
	key, v, ok := d.find(ggufKey, hfKey, "a number")
	if !ok {
		if math.IsInf(def, -1) && key != "" {
			d.fail(key, "a number", "nothing")
		}
		return def
	}
	f, ok := asFloat(v)
	if !ok {
		d.fail(key, "a number", describe(v))
		return def
	}
	return f
}

func (d *description) float32(ggufKey, hfKey string, def float64) float32 {
	return float32(d.float(ggufKey, hfKey, def))
}

func (d *description) str(ggufKey, hfKey, def string) string {
	key, v, ok := d.find(ggufKey, hfKey, "a string")
	if !ok {
		return def
	}
	s, ok := v.(string)
	if !ok {
		d.fail(key, "a string", describe(v))
	}
	return s
}

func (d *description) bool(ggufKey, hfKey string, def bool) bool {
	key, v, ok := d.find(ggufKey, hfKey, "true or false")
	if !ok {
		return def
	}
	b, ok := v.(bool)
	if !ok {
		d.fail(key, "true or false", describe(v))
	}
	return b
}

// perLayer reads an integer that is either the same for all layers or an array.
func (d *description) perLayer(ggufKey, hfKey string, layers, def int) []int {
	key, v, ok := d.find(ggufKey, hfKey, "an integer")
	if !ok {
		if def == required && key != "" {
			d.fail(key, "a number", "nothing")
		}
		return everyLayer(layers, def)
	}
	if n, ok := asInt(v); ok {
		if def != required && (n == -1 || n == math.MaxUint32) {
			n = 0 // it says that there is none
		}
		return everyLayer(layers, n)
	}
	if out, ok := asInts(v); ok && len(out) == layers {
		return out
	}
	d.fail(key, fmt.Sprintf("an integer or %d integers, one for each layer", layers), describe(v))
	return everyLayer(layers, def)
}

// ints reads n integers of a config.json, nil if there are none.
func (d *description) ints(hfKey string, n int) []int {
	out := d.intList(hfKey)
	if out != nil && len(out) != n {
		d.fail(hfKey, fmt.Sprintf("%d integers", n), describe(out))
		return nil
	}
	return out
}

// intList reads any number of integers of a config.json.
func (d *description) intList(hfKey string) []int {
	key, v, ok := d.find("", hfKey, "integers")
	if !ok {
		return nil
	}
	out, ok := asInts(v)
	if !ok {
		d.fail(key, "a list of integers", describe(v))
	}
	return out
}

// strings reads n strings of a config.json, nil if there are none.
func (d *description) strings(hfKey string, n int) []string {
	key, v, ok := d.find("", hfKey, "strings")
	if !ok {
		return nil
	}
	list, _ := v.([]any)
	out := make([]string, 0, len(list))
	for _, x := range list {
		if s, ok := x.(string); ok {
			out = append(out, s)
		}
	}
	if len(out) != n || len(list) != n {
		d.fail(key, fmt.Sprintf("%d strings", n), describe(v))
		return nil
	}
	return out
}

// floats reads any number of numbers of a config.json.
func (d *description) floats(hfKey string) []float32 {
	key, v, ok := d.find("", hfKey, "numbers")
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	out := make([]float32, 0, len(list))
	for _, x := range list {
		f, isFloat := asFloat(x)
		ok = ok && isFloat
		out = append(out, float32(f))
	}
	if !ok {
		d.fail(key, "a list of numbers", describe(v))
		return nil
	}
	return out
}

// layerFloats reads a number of a GGUF file that is the same for all layers, or one
// of each.
func (d *description) layerFloats(ggufKey string, layers int) []float32 {
	key, v, ok := d.find(ggufKey, "", "numbers")
	if f, one := asFloat(v); one && layers <= 1<<12 {
		return slices.Repeat([]float32{float32(f)}, max(layers, 0))
	}
	list, isList := v.([]float32)
	if !ok || !isList || len(list) != layers {
		d.fail(key, fmt.Sprintf("a number or %d numbers", layers), describe(v))
		return nil
	}
	return list
}

// object returns an object of a config.json, which shares the error, or nil if
// there is none.
func (d *description) object(hfKey string) *description {
	key, v, ok := d.find("", hfKey, "an object")
	if !ok {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		d.fail(key, "an object", describe(v))
		return nil
	}
	o := jsonDescription(d.file, m)
	o.in, o.err, o.asked, o.read = d.in+key+": ", d.err, d.asked, d.read
	return o
}

func asInts(v any) (out []int, ok bool) {
	switch x := v.(type) {
	case []int32:
		for _, n := range x {
			out = append(out, int(n))
		}
	case []uint32:
		for _, n := range x {
			out = append(out, int(n))
		}
	case []any:
		for _, e := range x {
			n, ok := asInt(e)
			if !ok {
				return nil, false
			}
			out = append(out, n)
		}
	default:
		return nil, false
	}
	return out, true
}

// asBools returns booleans, which llama.cpp writes as integers.
func asBools(v any) (out []bool, ok bool) {
	if list, ok := v.([]bool); ok {
		return list, true
	}
	list, ok := asInts(v)
	for _, n := range list {
		out = append(out, n != 0)
	}
	return out, ok
}

func asFloat(v any) (float64, bool) {
	switch x := v.(type) {
	case float32:
		return float64(x), true
	case float64:
		return x, true
	}
	n, ok := asInt(v)
	return float64(n), ok
}

func asInt(v any) (int, bool) {
	switch x := v.(type) {
	case uint8:
		return int(x), true
	case int8:
		return int(x), true
	case uint16:
		return int(x), true
	case int16:
		return int(x), true
	case uint32:
		return int(x), true
	case int32:
		return int(x), true
	case uint64:
		if x > math.MaxInt64 {
			return 0, false
		}
		return int(x), true
	case int64:
		return int(x), true
	case float64: // JSON
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return int(x), true
		}
	}
	return 0, false
}

// describe names a value briefly for an error.
func describe(v any) string {
	s := fmt.Sprintf("%v", v)
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return fmt.Sprintf("%s (%T)", s, v)
}
