package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"ridge/model"
	"ridge/server/adapters"
)

// adapterFlags say which LoRA adapters are served, and how many at one time.
type adapterFlags struct {
	loras      []string
	mostLoras  int
	loraMemory string
	loraDir    string
	controls   controlFlags
	served     *adapters.Set
}

func (f *adapterFlags) add(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.loras, "lora", nil, "NAME=FILE[:SCALE]: a LoRA adapter of the first model, which requests name as their model; may be repeated")
	fs.IntVar(&f.mostLoras, "max-loras", 0, "adapters in memory at one time: others are read again when requests want them (default: any number)")
	fs.StringVar(&f.loraMemory, "lora-memory", "1G", "memory for the matrices of adapters")
	f.controls.add(fs)
	fs.StringVar(&f.loraDir, "lora-dir", "", "folder from which clients may load adapters, with POST /v1/load_lora_adapter; without it they load none")
}

// adapted returns the adapters of a shelf within the bounds of the flags.
func (f *adapterFlags) adapted(s *serveShelf) (*adapters.Set, error) {
	a := adapters.New()
	f.served = a
	if a.MaxLoaded = f.mostLoras; f.mostLoras < 0 {
		return nil, fmt.Errorf("--max-loras: expected 0 or more, found %d", f.mostLoras)
	}
	var err error
	if a.MaxBytes, err = parseSize(f.loraMemory); err != nil {
		return nil, fmt.Errorf("--lora-memory: %w", err)
	}
	if a.Dir = f.loraDir; f.loraDir != "" {
		if info, err := os.Stat(f.loraDir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("--lora-dir: expected a folder, found %q", f.loraDir)
		}
	}
	return a, a.Configure(s.adapters)
}

// steer gives the first model the control vectors of the flags.
func (f *adapterFlags) steer(m *model.Model, s *serveShelf, name string) error {
	if first, ok := s.find(""); len(f.controls.files) == 0 && f.controls.layers == "" || !ok || first.Name != name {
		return nil
	}
	a, err := f.controls.read(m, nil)
	if err != nil || a == nil {
		return err
	}
	return m.Steer(a)
}

// adapter reads NAME=FILE[:SCALE].
func adapter(v, base string) (c adapters.Config, err error) {
	name, file, ok := strings.Cut(v, "=")
	if name, file = strings.TrimSpace(name), strings.TrimSpace(file); !ok || name == "" || file == "" {
		return c, fmt.Errorf("lora: expected NAME=FILE or NAME=FILE:SCALE, found %q", v)
	}
	c = adapters.Config{Name: name, Base: base}
	if c.Path, c.Scale, err = scaledPath(file); err != nil {
		return c, fmt.Errorf("lora: %w", err)
	}
	return c, nil
}

// adapt reads the adapters that are served with a model.
func (s *serveShelf) adapt(base string, values []string) error {
	for _, v := range values {
		c, err := adapter(v, base)
		if err != nil {
			return err
		}
		if m, taken := s.exact(c.Name); taken {
			return fmt.Errorf("lora: %s: a model has the name: %s", c.Name, m.Name)
		}
		s.adapters = append(s.adapters, c)
	}
	return nil
}
