package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"ridge/hub"
	"ridge/measure/bench/load"
	"ridge/text/tokenizer"
)

// targets finds or starts the servers.
func (f *benchServeFlags) targets(c *cobra.Command, args []string, bars *progress) (targets []*load.Target, stop func(), err error) {
	var started []*load.Process
	stop = func() {
		for _, p := range started {
			p.Stop()
		}
	}
	if len(args) == 0 && f.url == "" && len(f.peers) == 0 {
		return nil, stop, errors.New("bench serve: expected a model, --url or --peer, found none")
	}
	self, err := selfPath()
	if err != nil {
		return nil, stop, err
	}
	co := load.CommandOptions{Self: self}
	words, err := f.words(c, args, &co, bars)
	if err != nil {
		return nil, stop, err
	}
	f.w.Text = words
	commands := f.peers
	if len(args) > 0 {
		commands = append([]string{"ridge " + f.serve}, commands...)
	}
	if f.url != "" {
		t := &load.Target{Name: f.url, URL: f.url, Model: f.model, Key: f.apiKey()}
		if t.Model == "" {
			if t.Model, err = t.FirstModel(c.Context()); err != nil {
				return nil, stop, err
			}
		}
		targets = append(targets, t)
	}
	for _, s := range commands {
		cmd, err := load.ParseCommand(s, co)
		if err != nil {
			return nil, stop, err
		}
		if bars.tty {
			fmt.Fprintf(os.Stderr, "\r\x1b[Kstarting %s", cmd.Name)
		}
		p, t, err := cmd.Start(c.Context(), f.ready)
		if err != nil {
			return nil, stop, err
		}
		started = append(started, p)
		t.Model = f.model
		targets = append(targets, t)
	}
	names := map[string]int{}
	for _, t := range targets {
		if names[t.Name]++; names[t.Name] > 1 {
			t.Name = fmt.Sprintf("%s#%d", t.Name, names[t.Name])
		}
		if err := f.tune(t); err != nil {
			return nil, stop, err
		}
	}
	return targets, stop, nil
}

// tune sets what all targets have in common.
func (f *benchServeFlags) tune(t *load.Target) error {
	switch f.api {
	case "completions":
	case "chat":
		t.Chat = true
	default:
		return fmt.Errorf("--api: expected completions or chat, found %q", f.api)
	}
	t.EOS, t.Fresh = f.eos, f.fresh
	if f.extra != "" {
		if err := json.Unmarshal([]byte(f.extra), &t.Extra); err != nil {
			return fmt.Errorf("--extra: expected a JSON object: %w", err)
		}
	}
	return nil
}

func (f *benchServeFlags) apiKey() string {
	for _, k := range []string{f.key, os.Getenv("RIDGE_API_KEY"), os.Getenv("OPENAI_API_KEY")} {
		if k != "" {
			return k
		}
	}
	return ""
}

// words is the maker of texts; the model's file goes into co.
func (f *benchServeFlags) words(c *cobra.Command, args []string, co *load.CommandOptions, bars *progress) (*load.Words, error) {
	name := f.tokenizer
	if len(args) > 0 {
		ho, err := f.hubFlags.options(bars)
		if err != nil {
			return nil, err
		}
		m, err := hub.Resolve(c.Context(), args[0], ho)
		if err != nil {
			return nil, err
		}
		if co.Model = m.Path(); name == "" {
			name = co.Model
		}
	}
	if name == "" {
		return load.NewWords(nil), nil
	}
	tok, err := openTokenizer(c, &f.hubFlags, name)
	if err != nil {
		return nil, err
	}
	return load.NewWords(func(s string) int { return len(tok.Encode(nil, s, tokenizer.EncodeOptions{})) }), nil
}

// selfPath is the program that runs.
func selfPath() (string, error) {
	// Not os.Executable: a program may have several names.
	if p, err := exec.LookPath(os.Args[0]); err == nil {
		return p, nil
	}
	p, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("bench serve: %w", err)
	}
	return p, nil
}
