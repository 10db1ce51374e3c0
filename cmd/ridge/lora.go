package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"ridge/model"
)

const loraHelp = "LoRA `adapter` of the model: a folder that PEFT has written, or a GGUF file, with :SCALE behind it for more or less of it; can be repeated, what they add is summed"

// addAdapters adds those that the values of a flag name, with their scales, to sum,
// which may be nil.
func addAdapters(sum *model.Adapter, flag string, values []string, read func(path string) (*model.Adapter, error)) (*model.Adapter, error) {
	for _, v := range values {
		path, scale, err := scaledPath(v)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		a, err := read(path)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		sum = sum.With(a.Scaled(scale))
	}
	return sum, nil
}

// scaledPath takes the scale off a path, if it has one and there is no such file.
func scaledPath(v string) (path string, scale float32, err error) {
	at := strings.LastIndexByte(v, ':')
	if _, err := os.Stat(v); err == nil || at < 0 {
		return v, 1, nil
	}
	x, err := strconv.ParseFloat(v[at+1:], 32)
	if err != nil || x-x != 0 {
		return "", 0, fmt.Errorf("%s: expected a file, or a file and a scale such as :0.5, found %q", v, v[at+1:])
	}
	return v[:at], float32(x), nil
}

// controlFlags name control vectors.
type controlFlags struct {
	files  []string
	layers string
}

func (f *controlFlags) add(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.files, "control-vector", nil, "control vector `file` (GGUF), with :SCALE behind it for more or less of it: it is added to the rows behind each layer; can be repeated")
	fs.StringVar(&f.layers, "control-vector-layers", "", "layers that control vectors are added behind, such as 5-20 (default: all that they have)")
}

// read adds the control vectors to an adapter, which may be nil.
func (f *controlFlags) read(m interface {
	ReadControl(path string, first, last int) (*model.Adapter, error)
}, sum *model.Adapter) (*model.Adapter, error) {
	first, last := 0, 0
	if f.layers != "" {
		if n, err := fmt.Sscanf(f.layers+" ", "%d-%d ", &first, &last); n != 2 || err != nil || first < 1 || last < first {
			return nil, fmt.Errorf("--control-vector-layers: expected FIRST-LAST, found %q", f.layers)
		}
	}
	return addAdapters(sum, "control-vector", f.files, func(path string) (*model.Adapter, error) { return m.ReadControl(path, first, last) })
}
