package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ridge/hub"
)

// smallModel is what is tried where the default cannot be had in time.
const smallModel = "smollm2"

// defaultModel is what run downloads when no model is named and none is here.
func defaultModel() string {
	for _, e := range hub.Catalog() {
		if e.Default {
			return e.Name
		}
	}
	return smallModel
}

// offers are the models of the catalogue that run offers to download: those of
// which it is measured how they answer, that were made to chat, and that take at
// most room bytes; 0 is no bound. The default comes first, then the best.
func offers(room int64) []hub.Entry {
	all := slices.DeleteFunc(hub.Catalog(), func(e hub.Entry) bool {
		return e.Answers == 0 || e.Base || room > 0 && e.Size() > room
	})
	slices.SortStableFunc(all, func(a, b hub.Entry) int {
		switch {
		case a.Default != b.Default && a.Default:
			return -1
		case a.Default != b.Default:
			return 1
		}
		return b.Answers - a.Answers
	})
	return all
}

// choice is what is to be downloaded.
type choice struct {
	name  string // "" for nothing
	asked bool   // a person chose it: its download may take long
}

// choose offers the models and returns the one that is chosen: the first where
// nobody can or wants to be asked.
func (o *runOptions) choose(c *cobra.Command, list []hub.Entry) choice {
	if len(list) == 0 {
		return choice{}
	}
	in, ok := c.InOrStdin().(*os.File)
	if o.yes || os.Getenv("CI") != "" || !ok || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(os.Stderr.Fd())) {
		return choice{name: list[0].Name}
	}
	return ask(c.Context(), in, c.ErrOrStderr(), list)
}

// ask prints the list with sizes and quality, and reads a number. Enter and y
// take the first; n takes nothing.
func ask(ctx context.Context, in io.Reader, out io.Writer, list []hub.Entry) choice {
	fmt.Fprintf(out, "No model is on this machine. Which one shall be downloaded?\n\n")
	for i, e := range list {
		fmt.Fprintf(out, "  %d  %-20s %9s  answers %d of 100 everyday questions rightly\n", i+1, e.Name, bytesText(e.Size()), e.Answers)
	}
	fmt.Fprintf(out, "  n  %-20s %9s  inside ridge: writes simple stories, knows next to nothing\n\n", hub.EmbeddedName, "none")
	for {
		fmt.Fprintf(out, "A number, Enter for %s, n for none: ", list[0].Name)
		answer := make(chan string, 1)
		go func() { answer <- strings.ToLower(readLine(in)) }()
		select {
		case s := <-answer:
			i, err := strconv.Atoi(s)
			switch {
			case s == "" || s == "y" || s == "yes":
				return choice{name: list[0].Name}
			case err == nil && i >= 1 && i <= len(list):
				return choice{name: list[i-1].Name, asked: true}
			case s == "n" || s == "no" || s == hub.EmbeddedName:
				return choice{}
			}
			if j := slices.IndexFunc(list, func(e hub.Entry) bool { return e.Name == s || slices.Contains(e.Aliases, s) }); j >= 0 {
				return choice{name: list[j].Name, asked: true}
			}
		case <-ctx.Done():
			fmt.Fprintln(out)
			return choice{}
		}
	}
}

// readLine reads a line and nothing after it, which a chat may want. At the end
// of the input the answer is no.
func readLine(r io.Reader) string {
	var line []byte
	var one [1]byte
	for {
		n, err := r.Read(one[:])
		if err != nil && len(line) == 0 {
			return "n"
		}
		if n == 1 && one[0] == '\n' || err != nil {
			return strings.TrimSpace(string(line))
		}
		line = append(line, one[:n]...)
	}
}
