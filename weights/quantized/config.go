package quantized

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ridge/internal/diag"
	"ridge/weights/tensor"
)

// Config says how the weights of a checkpoint are quantized: what its
// config.json, or a file beside it, has about it.
type Config struct {
	// Method is the name of the method as files spell it: "gptq", "awq", ...
	Method string
	// Text describes the method and its settings for people.
	Text string
	// Notes are for people: what is computed otherwise than by programs that
	// quantize activations too.
	Notes []string

	file   string // that says so, for errors
	keys   settings
	dtype  tensor.DType // of the model's other weights: F16, BF16 or F32
	method method
}

// settings are the keys of a configuration, which are strangers' input. err
// keeps the first fault.
type settings struct {
	values map[string]any
	file   string
	err    *error
}

// sideFiles are the files in which programs keep a configuration that is not in
// config.json, and the method of files that do not name it.
var sideFiles = []struct{ name, method string }{
	{"quantize_config.json", "gptq"}, {"quant_config.json", "awq"}, {"hf_quant_config.json", "modelopt"},
}

// ReadConfig reads how the weights of the checkpoint in dir are quantized. config
// is its config.json; nil is returned if they are not quantized. A method that is
// not known is an error that names it.
func ReadConfig(dir string, config map[string]any) (*Config, error) {
	path := filepath.Join(dir, "config.json")
	for _, at := range []any{config, config["text_config"]} {
		object, _ := at.(map[string]any)
		for _, key := range []string{"quantization_config", "compression_config"} {
			if v, ok := object[key]; ok && v != nil {
				values, ok := v.(map[string]any)
				if !ok {
					return nil, fault(path, key, "an object", fmt.Sprint(v))
				}
				return newConfig(path, values, "", dtypeOf(config, object))
			}
		}
	}
	for _, side := range sideFiles {
		path := filepath.Join(dir, side.name)
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var values map[string]any
		if err == nil {
			err = json.Unmarshal(b, &values)
		}
		if err != nil {
			return nil, fmt.Errorf("quantized: %s: expected a JSON object: %w", diag.Path(path), err)
		}
		return newConfig(path, values, side.method, dtypeOf(config))
	}
	return nil, nil
}

// dtypeOf returns the element type that a model computes in, as the first object
// with one says: bfloat16 unless it is another.
func dtypeOf(objects ...map[string]any) tensor.DType {
	for _, o := range objects {
		for _, key := range []string{"dtype", "torch_dtype"} {
			if name, ok := o[key].(string); ok {
				if t, ok := floatTypes[strings.TrimPrefix(name, "torch.")]; ok {
					return t
				}
			}
		}
	}
	return tensor.BF16
}

var floatTypes = map[string]tensor.DType{"float16": tensor.F16, "bfloat16": tensor.BF16, "float32": tensor.F32}

// newConfig reads a configuration. Files of one method alone need not name it.
func newConfig(file string, values map[string]any, kind string, dtype tensor.DType) (*Config, error) {
	c := &Config{file: file, dtype: dtype, keys: settings{values: values, file: file, err: new(error)}}
	name := c.keys.str("quant_method", kind)
	if *c.keys.err != nil {
		return nil, *c.keys.err
	}
	c.Method = strings.ToLower(name)
	open := methods[c.Method]
	if open == nil {
		known := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
		if name == "" {
			return nil, fault(file, "quant_method", "one of "+known, "nothing")
		}
		return nil, fault(file, "quant_method", "one of "+known, "quantization method "+diag.Quote(name))
	}
	c.method = open(c)
	if *c.keys.err != nil {
		return nil, *c.keys.err
	}
	return c, nil
}

// Identity returns what tells the values that weights of this configuration have
// from those of another.
func (c *Config) Identity() string {
	b, err := json.Marshal(c.keys.values) // keys are sorted
	if err != nil {
		return c.Method // of values that JSON does not have, and that were not read from a file
	}
	return fmt.Sprintf("%s %v %s", c.Method, c.dtype, b)
}

func (s settings) fail(key, want string, found any) {
	if *s.err == nil {
		*s.err = fault(s.file, key, want, fmt.Sprint(found))
	}
}

// get returns the value of a key, nil if there is none.
func (s settings) get(key string) any { return s.values[key] }

func (s settings) str(key, def string) string {
	switch v := s.get(key).(type) {
	case nil:
		return def
	case string:
		return v
	default:
		s.fail(key, "a string", v)
		return def
	}
}

func (s settings) boolean(key string, def bool) bool {
	switch v := s.get(key).(type) {
	case nil:
		return def
	case bool:
		return v
	default:
		s.fail(key, "true or false", v)
		return def
	}
}

func (s settings) int(key string, def int) int {
	v := s.get(key)
	if v == nil {
		return def
	}
	if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<31 {
		return int(f)
	}
	s.fail(key, "an integer", v)
	return def
}

// object returns the settings below a key, without values if there are none.
func (s settings) object(key string) settings {
	inner := settings{file: s.file, err: s.err}
	switch v := s.get(key).(type) {
	case nil:
	case map[string]any:
		inner.values = v
	default:
		s.fail(key, "an object", v)
	}
	return inner
}

// oneOf reads a name that must be one of those given, in any letter case.
func (s settings) oneOf(key, def string, known ...string) string {
	v := strings.ToLower(s.str(key, def))
	if !slices.Contains(known, v) {
		s.fail(key, "one of "+strings.Join(known, ", "), diag.Quote(v))
	}
	return v
}
