package main

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"ridge/server"
	serving "ridge/server/run"
)

// requestDefaults are what requests get that do not say otherwise, of all models or
// of one. They count before what a model's file recommends.
type requestDefaults struct {
	sampling  serving.Sampling
	maxTokens *int
	system    string
	args      map[string]any // of the chat template
}

// defaultNames are the flags, and keys of a configuration, of requestDefaults, with
// their help.
var defaultNames = [][2]string{
	{"temp", "temperature of requests that say none; 0 takes the most probable token"},
	{"top-p", "top_p of requests that say none"},
	{"min-p", "min_p of requests that say none"},
	{"top-k", "top_k of requests that say none; 0 for all tokens"},
	{"seed", "seed of requests that say none; -1 for a random one each"},
	{"max-tokens", "tokens of answers to requests that say none; -1 for as many as fit"},
	{"think", "on or off: reasoning of models that may or may not, where a request says nothing"},
	{"system", "system message of conversations that have none"},
	{"chat-template-kwargs", "JSON object with variables of the chat template, where a request does not set them"},
}

// set reads the value of a flag or key.
func (d *requestDefaults) set(name, value string) error {
	number := func(dst **float64, lo, hi float64) error {
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v >= lo && v <= hi) {
			return fmt.Errorf("expected %g to %g, found %q", lo, hi, value)
		}
		*dst = &v
		return nil
	}
	whole := func(dst **int) error {
		v, err := strconv.ParseInt(value, 10, 32)
		if err != nil || v < -1 {
			return fmt.Errorf("expected a whole number, -1 or more, found %q", value)
		}
		*dst = new(int(v))
		return nil
	}
	switch name {
	case "temp":
		return number(&d.sampling.Temperature, 0, 100)
	case "top-p":
		return number(&d.sampling.TopP, 0, 1)
	case "min-p":
		return number(&d.sampling.MinP, 0, 1)
	case "top-k":
		return whole(&d.sampling.TopK)
	case "max-tokens":
		return whole(&d.maxTokens)
	case "seed":
		d.sampling.Seed = nil
		if value == "-1" {
			return nil
		}
		v, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return fmt.Errorf("expected a whole number, -1 or more, found %q", value)
		}
		d.sampling.Seed = &v
	case "think":
		if value != "on" && value != "off" {
			return fmt.Errorf("expected on or off, found %q", value)
		}
		d.arg("enable_thinking", value == "on")
	case "system":
		d.system = value
	case "chat-template-kwargs":
		var args map[string]json.RawMessage
		if err := json.Unmarshal([]byte(value), &args); err != nil || args == nil {
			return fmt.Errorf("expected a JSON object, found %q", value)
		}
		for k, v := range args {
			d.arg(k, v)
		}
	}
	return nil
}

func (d *requestDefaults) arg(name string, v any) {
	if d.args == nil {
		d.args = map[string]any{}
	}
	d.args[name] = v
}

// put fills in what c does not say.
func (d *requestDefaults) put(c *server.ModelConfig) {
	s, o := &c.Sampling, &d.sampling
	for _, f := range []struct{ dst, src **float64 }{{&s.Temperature, &o.Temperature}, {&s.TopP, &o.TopP}, {&s.MinP, &o.MinP}} {
		if *f.dst == nil {
			*f.dst = *f.src
		}
	}
	if s.TopK == nil {
		s.TopK = o.TopK
	}
	if s.Seed == nil {
		s.Seed = o.Seed
	}
	if c.MaxTokens == nil {
		c.MaxTokens = d.maxTokens
	}
	if c.System == "" {
		c.System = d.system
	}
	for k, v := range d.args {
		if _, ok := c.TemplateArgs[k]; ok {
			continue
		}
		if c.TemplateArgs == nil {
			c.TemplateArgs = map[string]any{}
		}
		c.TemplateArgs[k] = v
	}
}

// add adds the flags.
func (d *requestDefaults) add(fs *pflag.FlagSet) {
	for _, n := range defaultNames {
		short := map[string]string{"max-tokens": "n"}[n[0]]
		fs.VarP(&defaultFlag{d: d, name: n[0]}, n[0], short, n[1])
	}
}

// defaultFlag is a flag of requestDefaults.
type defaultFlag struct {
	d           *requestDefaults
	name, value string
}

func (f *defaultFlag) String() string { return f.value }

// Set reads a value.
func (f *defaultFlag) Set(v string) error {
	f.value = v
	return f.d.set(f.name, v)
}

// Type names the kind of value in the help.
func (f *defaultFlag) Type() string {
	switch f.name {
	case "temp", "top-p", "min-p":
		return "float"
	case "top-k", "seed", "max-tokens":
		return "int"
	case "chat-template-kwargs":
		return "json"
	}
	return "string"
}
