package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"ridge/server"
)

// servedModel is a model of a configuration, with what belongs to it alone.
type servedModel struct {
	model, name, template, reasoning string
	aliases, loras                   []string
	defaults                         requestDefaults
}

// isYAML tells a configuration in YAML from lines "flag = value" by its name.
func isYAML(file string) bool {
	return strings.HasSuffix(file, ".yaml") || strings.HasSuffix(file, ".yml")
}

// readConfig reads a configuration in YAML: flags by their names, and a list of
// models.
func readConfig(fs *pflag.FlagSet, file string) (flags map[string][]string, models []servedModel, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	flags = map[string][]string{}
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return flags, nil, nil // nothing is in it
	} else if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	err = eachKey(file, doc.Content[0], func(key string, v *yaml.Node) error {
		if key == "models" {
			if v.Kind != yaml.SequenceNode {
				return errors.New("expected a list of models")
			}
			for _, n := range v.Content {
				m, err := readModel(file, n)
				if err != nil {
					return err
				}
				models = append(models, m)
			}
			return nil
		}
		f := fs.Lookup(key)
		if f == nil || f.Name == "config" || f.Name == "help" {
			return errors.New("expected models or a flag of this command")
		}
		values, err := texts(f.Value.Type(), v)
		flags[f.Name] = values
		return err
	})
	return flags, models, err
}

// located is an error that names its place in a file.
type located struct{ error }

// eachKey calls do for the entries of a mapping. Errors name file, line and key.
func eachKey(file string, n *yaml.Node, do func(key string, v *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return located{fmt.Errorf("%s: line %d: expected names and values", file, n.Line)}
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		var err error
		if seen[k.Value] {
			err = errors.New("found twice")
		} else {
			err = do(k.Value, v)
		}
		seen[k.Value] = true
		if _, ok := err.(located); ok {
			return err
		}
		if err != nil {
			return located{fmt.Errorf("%s: line %d: %s: %w", file, k.Line, k.Value, err)}
		}
	}
	return nil
}

// texts are the values of a flag of a type: one, or several of a list; an object
// for JSON.
func texts(kind string, v *yaml.Node) ([]string, error) {
	switch {
	case v.Kind == yaml.ScalarNode && v.Tag != "!!null":
		return []string{v.Value}, nil
	case v.Kind == yaml.MappingNode && kind == "json":
		var x map[string]any
		if err := v.Decode(&x); err != nil {
			return nil, err
		}
		b, err := json.Marshal(x)
		return []string{string(b)}, err
	case v.Kind == yaml.SequenceNode && kind == "stringArray":
		var out []string
		for _, n := range v.Content {
			if n.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("expected a list of texts, found more at line %d", n.Line)
			}
			out = append(out, n.Value)
		}
		return out, nil
	}
	return nil, errors.New("expected a value")
}

// readModel reads a model of the list.
func readModel(file string, n *yaml.Node) (m servedModel, err error) {
	if n.Kind == yaml.ScalarNode {
		return servedModel{model: n.Value}, nil
	}
	err = eachKey(file, n, func(key string, v *yaml.Node) error {
		kind := "string"
		switch key {
		case "aliases", "lora":
			kind = "stringArray"
		case "chat-template-kwargs":
			kind = "json"
		}
		values, err := texts(kind, v)
		if err != nil {
			return err
		}
		dst := map[string]*string{"model": &m.model, "name": &m.name, "template": &m.template, "reasoning": &m.reasoning}[key]
		switch {
		case dst != nil:
			*dst = values[0]
		case key == "aliases":
			m.aliases = values
		case key == "lora":
			m.loras = values
		case slices.ContainsFunc(defaultNames, func(d [2]string) bool { return d[0] == key }):
			return m.defaults.set(key, values[0])
		default:
			return errors.New("expected model, name, aliases, lora, template, reasoning or a default of requests (temp, max-tokens, ...)")
		}
		return nil
	})
	if err == nil && m.model == "" {
		err = located{fmt.Errorf("%s: line %d: model: expected a name or a file, found nothing", file, n.Line)}
	}
	return m, err
}

// config puts what belongs to a model into c.
func (m *servedModel) config(c *server.ModelConfig) error {
	if m.name != "" {
		c.Name = m.name
	}
	c.Aliases = append(c.Aliases, m.aliases...)
	if m.reasoning != "" {
		c.Reasoning = m.reasoning
	}
	if m.template != "" {
		b, err := os.ReadFile(m.template)
		if err != nil {
			return fmt.Errorf("template of %s: %w", c.Name, err)
		}
		c.Template = string(b)
	}
	m.defaults.put(c)
	return nil
}
