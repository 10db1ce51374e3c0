package run

import (
	"context"
	"slices"
	"strings"

	"ridge/engine"
	"ridge/server/fault"
)

// Fixed says whether a model stays loaded as long as the server runs.
func (l *Library) Fixed(m *Model) bool { return slices.Contains(l.fixed, m) }

// Unload lets the model that a client named go when the requests that have it are over,
// and returns its name. One that is not loaded stays so.
func (l *Library) Unload(ctx context.Context, name string) (string, error) {
	l.mu.Lock()
	if real, ok := l.aliases[strings.ToLower(PlainName(name))]; ok {
		name = real
	}
	l.mu.Unlock()
	if slices.ContainsFunc(l.fixed, func(m *Model) bool { return m.Named(name) }) {
		return "", fault.BadRequest("model", "expected a model that was loaded on demand, found %q, which the server keeps", name)
	}
	c, ok := l.Find(name)
	if !ok || name == "" {
		return "", fault.ModelNotFound(name)
	}
	if !slices.ContainsFunc(l.src.Registry.Loaded(), func(x engine.LoadedModel) bool { return x.Name == c.Name }) {
		return c.Name, nil
	}
	return c.Name, l.src.Registry.Unload(ctx, c.Name)
}
