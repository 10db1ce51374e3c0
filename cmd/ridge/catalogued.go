package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ridge/hub"
)

// catalogued returns the catalogue's entry of a name, if the model is not on this
// machine: show then need not fetch it.
func catalogued(c *cobra.Command, name string) (hub.Entry, bool) {
	all := hub.Catalog()
	i := slices.IndexFunc(all, func(e hub.Entry) bool { return e.Name == entryOf(strings.ToLower(name)) })
	if i < 0 {
		return hub.Entry{}, false
	}
	_, err := hub.Resolve(c.Context(), name, hub.Options{Offline: true})
	return all[i], err != nil
}

// writeEntry prints what the catalogue tells of a model.
func writeEntry(w io.Writer, e *hub.Entry) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(tw, name+"\t"+format+"\n", args...) }
	row("name", "%s", strings.Join(append([]string{e.Name}, e.Aliases...), ", "))
	row("file", "not on this machine; ridge pull %s fetches it", e.Name)
	row("title", "%s", e.Title)
	row("architecture", "%s", e.Arch)
	row("parameters", "%s", e.Params)
	row("context", "made for %d", e.Context)
	row("licence", "%s", e.License)
	if e.Answers > 0 {
		row("answers", "%d of 100 everyday questions rightly", e.Answers)
	}
	if e.Note != "" {
		row("note", "%s", e.Note)
	}
	for i, s := range e.Sources {
		name := ""
		if i == 0 {
			name = "sources"
		}
		size := ""
		if s.Size > 0 {
			size = ", " + bytesText(s.Size)
		}
		row(name, "%s (%s%s)", s.Ref, s.Quant, size)
	}
	return tw.Flush()
}
