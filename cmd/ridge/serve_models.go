package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"ridge/hub"
	"ridge/server"
	"ridge/server/adapters"
	"ridge/server/ollama"
)

// serveShelf knows the models that may be served: those named at the start,
// and with --local all on this machine.
type serveShelf struct {
	local  bool
	any    bool // any name means the first model
	wild   []wildName
	common requestDefaults
	loops  *bool    // answers end that only repeat themselves
	jump   bool     // forced text is not drawn
	trust  bool     // marks in messages are control tokens
	omit   []string // lines of system messages that are left out
	hub    hub.Options

	adapters []adapters.Config

	mu     sync.Mutex
	models []server.ModelConfig // the first ones are those named
	named  int
	paths  map[string]string
}

// shelf finds the models named by args, and downloads those that are not here.
func (o *serveOptions) shelf(ctx context.Context, args []string) (*serveShelf, error) {
	bars := newProgress(os.Stderr)
	defer bars.close()
	ho, err := o.hubFlags.options(bars)
	if err != nil {
		return nil, err
	}
	s := &serveShelf{local: o.local || o.pull, jump: o.jumpAhead, loops: o.endLoops.value, trust: o.trustMarks, omit: o.omit, any: o.anyName, common: o.defaults, paths: map[string]string{}, hub: hub.Options{Offline: true}}
	var models []servedModel
	for _, arg := range args {
		models = append(models, servedModel{model: arg})
	}
	all := append(models, o.models...)
	for i, own := range all {
		m, err := hub.Resolve(ctx, own.model, ho)
		if err != nil {
			return nil, err
		}
		c := s.bare(m)
		if own.model != m.Name && !filepath.IsAbs(own.model) {
			c.Aliases = append(c.Aliases, own.model)
		}
		if err := own.config(&c); err != nil {
			return nil, err
		}
		if i == 0 { // flags count before the file
			first := servedModel{name: o.name, template: o.template, reasoning: o.reasoning}
			if err := first.config(&c); err != nil {
				return nil, err
			}
		}
		s.common.put(&c)
		if _, twice := s.paths[c.Name]; twice {
			return nil, fmt.Errorf("%s: a model of this name is served already", c.Name)
		}
		s.paths[c.Name] = m.Path()
		s.models = append(s.models, s.patterns(c))
	}
	s.named = len(s.models)
	if err := s.alias(o.aliases); err != nil {
		return nil, err
	}
	for i, m := range s.models {
		loras := all[i].loras
		if i == 0 {
			loras = append(loras, o.loras...)
		}
		if err := s.adapt(m.Name, loras); err != nil {
			return nil, fmt.Errorf("--%w", err)
		}
	}
	if s.named > 0 {
		return s, nil
	}
	for _, f := range [][2]string{{"name", o.name}, {"template", o.template}, {"reasoning", o.reasoning}, {"lora", strings.Join(o.loras, " ")}} {
		if f[1] != "" {
			return nil, fmt.Errorf("--%s: expected a model on the command line or in the configuration that it is for, found none", f[0])
		}
	}
	return s, nil
}

// model says how m is served.
func (s *serveShelf) model(m *hub.Model) server.ModelConfig {
	c := s.bare(m)
	s.common.put(&c)
	return c
}

// bare is m without what requests get.
func (s *serveShelf) bare(m *hub.Model) server.ModelConfig {
	return server.ModelConfig{JumpAhead: s.jump, EndLoops: s.loops, TrustMarks: s.trust, Omit: s.omit, Name: m.Name, Path: m.Path(), Digest: m.SHA256, Size: m.Size, Modified: m.Modified, Quant: m.Quant}
}

// find is the model that a client means by name.
func (s *serveShelf) find(name string) (server.ModelConfig, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" {
		if s.named == 0 {
			return server.ModelConfig{}, false
		}
		return s.models[0], true
	}
	if m, ok := s.exact(name); ok {
		return m, true
	}
	if m, ok := s.here(name); ok {
		return m, true
	}
	for _, w := range s.wild {
		if w.match(name) {
			if m, ok := s.exact(w.model); ok {
				return m, true
			}
			return s.here(w.model)
		}
	}
	if s.any && s.named > 0 {
		return s.models[0], true
	}
	return server.ModelConfig{}, false
}

// exact is the model that has a name.
func (s *serveShelf) exact(name string) (server.ModelConfig, bool) {
	for _, m := range s.models {
		if strings.EqualFold(m.Name, name) || slices.ContainsFunc(m.Aliases, func(a string) bool { return strings.EqualFold(a, name) }) {
			return m, true
		}
	}
	return server.ModelConfig{}, false
}

// here is the model of this machine that has a name, if clients may use them all.
func (s *serveShelf) here(name string) (server.ModelConfig, bool) {
	if !s.local {
		return server.ModelConfig{}, false
	}
	// Only what the machine's list has: a client cannot name paths.
	all, err := hub.List(s.hub)
	if err != nil {
		return server.ModelConfig{}, false
	}
	for i := range all {
		if m := &all[i]; strings.EqualFold(m.Name, name) || strings.EqualFold(m.Ref, name) {
			return s.know(m), true
		}
	}
	// Or by another name of it: "smollm2" for "smollm2:135m".
	ref, err := ollama.RemoteRef(name)
	if err != nil {
		return server.ModelConfig{}, false
	}
	m, err := hub.Find(ref, s.hub)
	if err != nil || !slices.ContainsFunc(all, func(x hub.Model) bool { return x.Path() == m.Path() }) {
		return server.ModelConfig{}, false
	}
	return s.know(m), true
}

// know keeps where a model of this machine is.
func (s *serveShelf) know(m *hub.Model) server.ModelConfig {
	c := s.model(m)
	if _, known := s.paths[c.Name]; !known {
		s.paths[c.Name] = m.Path()
		s.models = append(s.models, c)
	}
	return c
}

// list returns the models that clients may name.
func (s *serveShelf) list() []server.ModelConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.models[:s.named])
	if !s.local {
		return out
	}
	all, err := hub.List(s.hub)
	if err != nil {
		return out
	}
	for i := range all {
		if !slices.ContainsFunc(out, func(c server.ModelConfig) bool { return c.Name == all[i].Name }) {
			out = append(out, s.model(&all[i]))
		}
	}
	return out
}

// take makes s what o is: the models of a configuration that was read again.
func (s *serveShelf) take(o *serveShelf) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models, s.named, s.paths, s.common, s.any, s.wild = o.models, o.named, o.paths, o.common, o.any, o.wild
}

// path is the file of a model.
func (s *serveShelf) path(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paths[name]
}

// size is that of a model's files in bytes, 0 if it is not known.
func (s *serveShelf) size(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.models {
		if m.Name == name {
			return m.Size
		}
	}
	return 0
}

func (s *serveShelf) String() string {
	var names []string
	for _, m := range s.models[:s.named] {
		names = append(names, m.Name)
	}
	if s.local {
		names = append(names, "the models on this machine")
	}
	return strings.Join(names, ", ")
}

// fillFlags sets the flags that were not given from the environment and from a
// file: YAML, or lines "name = value". It returns the models of the file.
func fillFlags(fs *pflag.FlagSet, prefix, file string) (models []servedModel, err error) {
	env := func(name string) string { return prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }
	if file == "" {
		file = os.Getenv(env("config"))
	}
	lines := map[string][]string{}
	if isYAML(file) {
		if lines, models, err = readConfig(fs, file); err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
	} else if file != "" {
		r, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
		defer r.Close()
		in := bufio.NewScanner(r)
		for n := 1; in.Scan(); n++ {
			line := strings.TrimSpace(in.Text())
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			name, value, ok := strings.Cut(line, "=")
			name, value = strings.TrimSpace(name), strings.Trim(strings.TrimSpace(value), `"`)
			f := fs.Lookup(name)
			if !ok || f == nil || name == "config" {
				return nil, fmt.Errorf("--config: %s: line %d: expected FLAG = VALUE with a flag of this command, found %q", file, n, line)
			}
			lines[f.Name] = append(lines[f.Name], value)
		}
		if err := in.Err(); err != nil {
			return nil, fmt.Errorf("--config: %s: %w", file, err)
		}
	}
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Changed || err != nil || f.Name == "config" || f.Name == "help" {
			return
		}
		values, from := lines[f.Name], "--config: "+f.Name
		if v, ok := os.LookupEnv(env(f.Name)); ok {
			values, from = []string{v}, env(f.Name)
		}
		for _, v := range values {
			if e := fs.Set(f.Name, v); e != nil {
				err = fmt.Errorf("%s: %w", from, e)
			}
		}
	})
	return models, err
}
