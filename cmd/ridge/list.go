package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ridge/hub"
	"ridge/model"
)

func listCommand() *cobra.Command {
	var asJSON, all bool
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List the models on this machine",
		Long: `List the models on this machine, those of other programs included. The last column
says which cannot run, and why: an architecture or quantization that ridge does not
have, files that are missing; and which were not made to chat.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			models, err := hub.List(hub.Options{Offline: true})
			if err != nil {
				return err
			}
			findProblems(models)
			models = append(models, hub.Unusable(hub.Options{})...)
			if all {
				models = append(models, toPull(models)...)
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), models)
			}
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			defer tw.Flush()
			writeModels(tw, models)
			if !all && !slices.ContainsFunc(models, func(m hub.Model) bool { return m.Owner != hub.OwnerProgram }) {
				fmt.Fprintln(c.ErrOrStderr(), "No other models here. ridge list --all shows what can be pulled by name.")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&all, "all", false, "also list what the catalogue can pull; in JSON these have no files")
	return c
}

// findProblems reads the headers of the models' files and notes which cannot be
// opened, and why.
func findProblems(models []hub.Model) {
	var wg sync.WaitGroup
	at := make(chan int)
	for range 4 {
		wg.Go(func() {
			for i := range at {
				if _, err := model.ReadOutline(models[i].Path()); err != nil {
					models[i].Problem = problemText(err, models[i].Path())
				}
			}
		})
	}
	for i := range models {
		at <- i
	}
	close(at)
	wg.Wait()
}

// problemText is an error of a model's file in one line, without the file's name.
func problemText(err error, path string) string {
	s := strings.Join(strings.Fields(err.Error()), " ")
	s = strings.ReplaceAll(strings.TrimPrefix(s, "model: "), path+": ", "")
	return s
}

// toPull are the models of the catalogue that are not here, as models without
// files.
func toPull(here []hub.Model) (out []hub.Model) {
	for _, e := range hub.Catalog() {
		if slices.ContainsFunc(here, func(m hub.Model) bool { return m.Name == e.Name && m.Problem == "" }) {
			continue
		}
		out = append(out, hub.Model{Name: e.Name, Ref: e.Sources[0].Ref, License: e.License, Quant: e.Sources[0].Quant, Size: e.Size(), Base: e.Base, Note: e.Note})
	}
	return out
}

// writeModels writes a line for each model; those whose packed weights are kept
// say so, and those that cannot run, why.
func writeModels(w io.Writer, models []hub.Model) {
	packed := slices.ContainsFunc(models, func(m hub.Model) bool { return m.Packed > 0 })
	remarks := slices.ContainsFunc(models, func(m hub.Model) bool { return remark(m) != "" })
	fmt.Fprint(w, "NAME\tSIZE\tQUANT\tFROM\tMODIFIED")
	if packed {
		fmt.Fprint(w, "\tPACKED")
	}
	if remarks {
		fmt.Fprint(w, "\tREMARK")
	}
	fmt.Fprintln(w)
	for _, m := range models {
		from := cmp.Or(string(m.Owner), "(to pull)")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s", m.Name, bytesText(m.Size), m.Quant, from, ago(m.Modified))
		kept := ""
		if m.Packed > 0 {
			kept = bytesText(m.Packed)
		}
		if packed {
			fmt.Fprint(w, "\t", kept)
		}
		if r := remark(m); r != "" {
			fmt.Fprint(w, "\t", r)
		}
		fmt.Fprintln(w)
	}
}

// remark is what a person should know of a model before running it.
func remark(m hub.Model) string {
	switch {
	case m.Problem != "":
		return "cannot run: " + m.Problem
	case m.Base:
		return "base model, not made to chat"
	case m.Owner == "":
		return offered(m)
	}
	return ""
}

// offered says what the catalogue tells of a model that is to pull.
func offered(m hub.Model) string {
	all := hub.Catalog()
	i := slices.IndexFunc(all, func(e hub.Entry) bool { return e.Name == m.Name })
	if i < 0 {
		return ""
	}
	text := fmt.Sprintf("%s, context %d", m.License, all[i].Context)
	if n := all[i].Answers; n > 0 {
		text += fmt.Sprintf(", answers %d of 100", n)
	}
	if all[i].Note != "" {
		text += "; " + all[i].Note
	}
	return text
}
