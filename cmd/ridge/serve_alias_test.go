package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// shelfOf is the shelf of a server with the flags and models given; config is the
// text of its configuration.
func shelfOf(t *testing.T, config string, args ...string) (*serveShelf, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ridge.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var o serveOptions
	cmd := &cobra.Command{}
	o.add(cmd)
	if err := cmd.ParseFlags(append(args, "--offline", "--config", file)); err != nil {
		t.Fatal(err)
	}
	if err := o.prepare(cmd.Flags()); err != nil {
		t.Fatal(err)
	}
	return o.shelf(t.Context(), cmd.Flags().Args())
}

// Names of models count before patterns, those in their order before any name; what
// means no model is an error at the start.
func TestAliases(t *testing.T) {
	model, err := filepath.Abs(tinyLlama)
	if err != nil {
		t.Fatal(err)
	}
	const config = "alias: [gpt-*=fast, gpt-4o*=tiny]\nmodels:\n  - model: MODEL\n    name: fast\n    aliases: [small, \"o?-mini\"]\n"
	text := strings.ReplaceAll(config, "MODEL", model)
	s, err := shelfOf(t, text, "tiny", "--alias", "claude-*=fast", "--alias", "claude-opus=tiny", "--alias", "Work=fast")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"": "tiny", "tiny": "tiny", "FAST": "fast", "small": "fast", "work": "fast",
		"claude-sonnet-4.5": "fast", "Claude-3/haiku": "fast", "claude-opus": "tiny", "claude": "",
		"o3-mini": "fast", "o33-mini": "", "gpt-4o": "", "*": "", "claude-*": "fast",
	} {
		m, ok := s.find(name)
		if m.Name != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", name, m.Name, ok, want)
		}
	}
	for _, m := range s.list() { // names, not patterns
		if slices.ContainsFunc(m.Aliases, isWild) || m.Name == "fast" && !slices.Equal(m.Aliases, []string{"small", "Work"}) {
			t.Errorf("%s: listed as %q", m.Name, m.Aliases)
		}
	}
	s, err = shelfOf(t, text+"any-model-name: true\n", "tiny")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"gpt-4o": "fast", "gpt-5": "fast", "claude": "tiny"} {
		if m, _ := s.find(name); m.Name != want {
			t.Errorf("a configuration: %q: got %q, want %q", name, m.Name, want)
		}
	}
	for value, says := range map[string]string{
		"claude-*":      `--alias: expected NAME=MODEL`,
		"claude-*=none": `--alias: claude-*: expected a model that is served (tiny, fast), found "none"`,
		"fast=tiny":     "--alias: fast: another model has the name: fast",
	} {
		if _, err := shelfOf(t, strings.Replace(text, "alias:", "#", 1), "tiny", "--alias", value); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %s", value, err, says)
		}
	}
}

// Flags of the first model are its own whoever names it, and an error where nobody
// does.
func TestFlagsOfTheFirstModel(t *testing.T) {
	template := filepath.Join(t.TempDir(), "t.jinja")
	if err := os.WriteFile(template, []byte("{{ messages[0].content }}"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--name", "mine", "--template", template, "--reasoning", "none"}
	for place, args := range map[string][]string{
		"models: [tiny]\n": nil,
		"models:\n  - model: tiny\n    name: theirs\n    reasoning: think\n    temp: 0.5\n": nil,
		"":                                     {"tiny"},
		"models: [{model: tiny, name: two}]\n": {"tiny"},
	} {
		s, err := shelfOf(t, place, append(args, flags...)...)
		if err != nil {
			t.Fatal(err)
		}
		if m := s.models[0]; m.Name != "mine" || m.Template != "{{ messages[0].content }}" || m.Reasoning != "none" {
			t.Errorf("%q: got %q, %q, %q", place, m.Name, m.Template, m.Reasoning)
		}
		if len(s.models) == 2 && s.models[1].Name != "two" {
			t.Errorf("%q: the second model is %q", place, s.models[1].Name)
		}
	}
	if s, err := shelfOf(t, "name: mine\nmodels: [{model: tiny, reasoning: think}]\n"); err != nil || s.models[0].Name != "mine" || s.models[0].Reasoning != "think" {
		t.Errorf("in the configuration: %v", err)
	}
	for i := 0; i < len(flags); i += 2 {
		if _, err := shelfOf(t, "", "--local", flags[i], flags[i+1]); err == nil || !strings.Contains(err.Error(), flags[i]+": expected a model on the command line or in the configuration") {
			t.Errorf("%s without a model: %v", flags[i], err)
		}
	}
}

// The flag for answers that repeat themselves has three values.
func TestLoopsFlag(t *testing.T) {
	for flag, want := range map[string]*bool{"": nil, "--end-loops": new(true), "--end-loops=false": new(false), "--end-loops=auto": nil} {
		s, err := shelfOf(t, "models: [tiny]\n", strings.Fields(flag)...)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.models[0].EndLoops; (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%q: got %v", flag, got)
		}
	}
}
