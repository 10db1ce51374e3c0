package main

import (
	"fmt"
	"regexp"
	"strings"

	"ridge/server"
)

// wildName is a pattern of names that mean a model.
type wildName struct {
	pattern *regexp.Regexp
	model   string
}

func (w *wildName) match(name string) bool { return w.pattern.MatchString(name) }

// isWild reports whether a name is a pattern: * stands for any text, ? for one
// character.
func isWild(name string) bool { return strings.ContainsAny(name, "*?") }

// wildOf is the pattern for a model. Like names it takes either case.
func wildOf(pattern, model string) wildName {
	expr := regexp.QuoteMeta(pattern)
	expr = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(expr)
	return wildName{regexp.MustCompile(`(?is)^` + expr + `$`), model} // of quoted text and those two
}

// patterns takes the patterns out of the names of c: what is listed are names.
func (s *serveShelf) patterns(c server.ModelConfig) server.ModelConfig {
	var plain []string
	for _, a := range c.Aliases {
		if isWild(a) {
			s.wild = append(s.wild, wildOf(a, c.Name))
			continue
		}
		plain = append(plain, a)
	}
	c.Aliases = plain
	return c
}

// alias reads the values of --alias, NAME=MODEL: a name, or a pattern, and the model
// that it means.
func (s *serveShelf) alias(values []string) error {
	for _, v := range values {
		name, model, ok := strings.Cut(v, "=")
		name, model = strings.TrimSpace(name), strings.TrimSpace(model)
		if !ok || name == "" || model == "" {
			return fmt.Errorf("--alias: expected NAME=MODEL, such as gpt-4o=smollm2 or claude-*=smollm2, found %q", v)
		}
		m, ok := s.exact(model)
		if !ok {
			m, ok = s.here(model)
		}
		if !ok {
			return fmt.Errorf("--alias: %s: expected a model that is served (%s), found %q", name, s, model)
		}
		if isWild(name) {
			s.wild = append(s.wild, wildOf(name, m.Name))
			continue
		}
		if other, taken := s.exact(name); taken && other.Name != m.Name {
			return fmt.Errorf("--alias: %s: another model has the name: %s", name, other.Name)
		}
		for i := range s.models {
			if s.models[i].Name == m.Name {
				s.models[i].Aliases = append(s.models[i].Aliases, name)
			}
		}
	}
	return nil
}
