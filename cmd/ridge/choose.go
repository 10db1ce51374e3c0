package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

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
// machine, else the default one, which is downloaded, else the one that is part
// of the program. It says on standard error which it took, and why.
func (o *runOptions) openBest(c *cobra.Command) (*ridge.Model, error) {
	say := func(format string, a ...any) { fmt.Fprintf(c.ErrOrStderr(), "ridge: "+format+"\n", a...) }
	if name := bestHere(); name != "" {
		say("using %s", name)
		return o.open(c, name, o.template)
	}
	const tiny = "using " + hub.EmbeddedName + ", the small model inside ridge"
	ho, err := o.hubFlags.options(newProgress(os.Stderr))
	if err != nil {
		return nil, err
	}
	why := ""
	switch {
	case !hub.Reachable(c.Context(), defaultModel, ho):
		why = "no other model is here, and no network"
	case !offer(c.Context(), c.InOrStdin(), c.ErrOrStderr()):
		why = "as you wish"
	default:
		m, err := o.open(c, defaultModel, o.template)
		if err == nil || c.Context().Err() != nil {
			return m, err
		}
		why = fmt.Sprintf("%s cannot be had (%s)", defaultModel, strings.Join(strings.Fields(err.Error()), " "))
	}
	if err := c.Context().Err(); err != nil {
		return nil, err
	}
	say("%s: %s", why, tiny)
	return o.open(c, hub.EmbeddedName, o.template)
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

// offer asks whether the default model shall be downloaded. Where nobody can
// answer, it shall.
func offer(ctx context.Context, in io.Reader, out io.Writer) bool {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || !term.IsTerminal(int(os.Stderr.Fd())) {
		return true
	}
	size := ""
	for _, e := range hub.Catalog() {
		if e.Default && len(e.Sources) > 0 && e.Sources[0].Size > 0 {
			size = ", " + bytesText(e.Sources[0].Size)
		}
	}
	fmt.Fprintf(out, "No model is on this machine. Download %s%s? [Y/n] ", defaultModel, size)
	answer := make(chan string, 1)
	go func() { answer <- readLine(f) }()
	select {
	case s := <-answer:
		return s == "" || strings.EqualFold(s[:1], "y")
	case <-ctx.Done():
		fmt.Fprintln(out)
		return false
	}
}

// readLine reads a line and nothing after it, which a chat may want.
func readLine(r io.Reader) string {
	var line []byte
	var one [1]byte
	for {
		n, err := r.Read(one[:])
		if n == 1 && one[0] == '\n' || err != nil {
			return strings.TrimSpace(string(line))
		}
		line = append(line, one[:n]...)
	}
}

// hintOneWord adds to the error of an unknown model what its writer may have
// meant.
func hintOneWord(err error) error {
	if errors.Is(err, hub.ErrNotFound) {
		return fmt.Errorf("%w; a prompt of one word needs a model's name before it", err)
	}
	return err
}
