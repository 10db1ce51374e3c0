package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ridge"
	"ridge/hub"
	"ridge/measure/machine"
	"ridge/model"
	"ridge/weights/gguf"
)

// hasScheme matches references that say where a model comes from.
var hasScheme = regexp.MustCompile(`(?i)^(hf|ollama|pypi|https?|file|builtin):`)

// isPrompt tells what the only argument of run is: text with blanks or with
// the marks of a sentence is a prompt, as no model's name has them; all else is
// a model.
func isPrompt(arg string) bool {
	if !strings.ContainsAny(arg, " \t\n?!,;\"'") || hasScheme.MatchString(arg) {
		return false
	}
	_, err := os.Stat(arg)
	return err != nil
}

// openBest opens the model to use when none is named: the best one on this
// machine, else one that is downloaded, the chosen or default one or, if that
// cannot be had in time, a small one, else the one that is part of the program.
// It says on standard error which it took, and why.
func (o *runOptions) openBest(c *cobra.Command) (*ridge.Model, error) {
	say := func(format string, a ...any) { fmt.Fprintf(c.ErrOrStderr(), "ridge: "+format+"\n", a...) }
	if name := bestHere(); name != "" {
		say("using %s", name)
		return o.open(c, name, o.template)
	}
	list := offers(machine.Read().MemoryFree / 2)
	why := ""
	if ho, err := o.hubFlags.options(newProgress(os.Stderr)); err != nil {
		return nil, err
	} else if !hub.Reachable(c.Context(), defaultModel(), ho) {
		why = "no other model is here, and no network"
	} else if picked := o.choose(c, list); picked.name == "" {
		why = "as you wish"
	} else {
		name, err := firstOf(picked, func(name string) error { return o.download(c, name, picked.asked) }, say)
		if name != "" {
			return o.open(c, name, o.template)
		}
		if c.Context().Err() != nil {
			return nil, err
		}
		why = err.Error()
	}
	if err := c.Context().Err(); err != nil {
		return nil, err
	}
	say("%s: using %s, the small model inside ridge", why, hub.EmbeddedName)
	return o.open(c, hub.EmbeddedName, o.template)
}

// firstOf downloads what was picked or, if that fails, the small model, and
// returns the name of what came, or "" and a line that says why nothing did.
func firstOf(picked choice, get func(name string) error, say func(format string, a ...any)) (string, error) {
	names := []string{picked.name}
	if small := entryOf(smallModel); small != picked.name {
		names = append(names, small)
	}
	for i, name := range names {
		err := get(name)
		if err == nil {
			return name, nil
		}
		var slow *slowError
		switch stopped := errors.Is(err, context.Canceled); {
		case errors.As(err, &slow):
			err = fmt.Errorf("%s is left: %w", name, slow)
		case stopped:
			return "", err
		default:
			err = fmt.Errorf("%s cannot be had (%s)", name, strings.Join(strings.Fields(err.Error()), " "))
		}
		if i+1 == len(names) {
			return "", err
		}
		say("%v: trying %s", err, names[i+1])
	}
	return "", nil
}

// entryOf is the catalogue's name that an alias stands for.
func entryOf(alias string) string {
	for _, e := range hub.Catalog() {
		if e.Name == alias || slices.Contains(e.Aliases, alias) {
			return e.Name
		}
	}
	return alias
}

// download brings a model here. If nobody asked for it by name, it is given up
// when its first seconds predict a long time.
func (o *runOptions) download(c *cobra.Command, name string, asked bool) error {
	bars := newProgress(os.Stderr)
	defer bars.close()
	ho, err := o.hubFlags.options(bars)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(c.Context())
	defer stop(nil)
	w := &slowWatch{Progress: ho.Progress, most: longestFirst, stop: stop, tell: func(text string) {
		if !bars.tty { // where there are bars, they show it
			bars.note("ridge: " + name + ": " + text)
		}
	}}
	if asked {
		w.most = 0
	}
	ho.Progress = w
	_, err = hub.Resolve(ctx, name, ho)
	return err
}

// bestHere is the largest model on this machine that ridge can open, that was
// made to chat, and whose weights take at most half of the free memory; "" if
// there is none. Models that ridge downloaded come before those of others.
func bestHere() string {
	all, err := hub.List(hub.Options{Offline: true})
	if err != nil {
		return ""
	}
	room := machine.Read().MemoryFree / 2
	all = slices.DeleteFunc(all, func(m hub.Model) bool {
		return m.Owner == hub.OwnerProgram || room > 0 && m.Size > room
	})
	slices.SortStableFunc(all, func(a, b hub.Model) int {
		if mine, yours := a.Owner == hub.OwnerRidge, b.Owner == hub.OwnerRidge; mine != yours {
			if mine {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.Size, a.Size)
	})
	for i := range all {
		if chats(all[i].Path()) {
			return all[i].Name
		}
	}
	return ""
}

// chats reports whether the model at path can be opened and has a chat
// template. Of a folder only the first is asked.
func chats(path string) bool {
	if _, err := model.ReadOutline(path); err != nil {
		return false
	}
	f, err := gguf.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	return f.String("tokenizer.chat_template", "") != ""
}

// hintOneWord adds to the error of an unknown model what its writer may have
// meant.
func hintOneWord(err error) error {
	if errors.Is(err, hub.ErrNotFound) {
		return fmt.Errorf("%w; a prompt of one word needs a model's name before it", err)
	}
	return err
}
