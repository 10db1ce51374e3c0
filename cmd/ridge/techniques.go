package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ridge/internal/techniques"
)

func techniquesCommand() *cobra.Command {
	var asJSON, missing bool
	c := &cobra.Command{
		Use:   "techniques [ID|WORD]",
		Short: "List the techniques of the field that ridge has, and what proves them",
		Long: `List the techniques of the field that ridge has, and what proves them: tests, a
command whose output shows what is claimed, and what is missing of what the surveys
ask for. With the name of one, all that is known of it; with another word, those
that have it in their names or descriptions.`,
		Example: "  ridge techniques\n  ridge techniques gqa\n  ridge techniques --missing",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			word := ""
			if len(args) == 1 {
				word = strings.ToLower(args[0])
			}
			rows, one := pickTechniques(word, missing)
			switch out := c.OutOrStdout(); {
			case asJSON:
				return writeJSON(out, rows)
			case one:
				return printTechnique(out, &rows[0])
			case len(rows) == 0:
				return fmt.Errorf("no technique has %q in its name or description", word)
			default:
				return printTechniques(out, rows)
			}
		},
	}
	c.Flags().BoolVar(&missing, "missing", false, "only those of which something is missing")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// pickTechniques returns the technique called word, or, where one is false, those
// that have word in their names or descriptions; missing leaves out those of which
// nothing is missing.
func pickTechniques(word string, missing bool) (rows []techniques.Technique, one bool) {
	rows = []techniques.Technique{}
	for _, t := range techniques.All {
		switch {
		case word == t.ID:
			return []techniques.Technique{t}, true
		case missing && t.Missing == "":
		case strings.Contains(strings.ToLower(t.ID+" "+t.What), word):
			rows = append(rows, t)
		}
	}
	return rows, false
}

func printTechniques(w io.Writer, rows []techniques.Technique) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "TECHNIQUE\tWHAT IT IS\tMISSING\tTESTS\tSHOWN BY")
	for _, t := range rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", t.ID, t.What, t.Missing, strings.Join(t.Tests, ", "), t.Show)
	}
	return tw.Flush()
}

func printTechnique(w io.Writer, t *techniques.Technique) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"technique", t.ID}, {"what it is", t.What}, {"used by", t.Use}, {"code", t.Code},
		{"tests", strings.Join(t.Tests, ", ")}, {"benchmark", t.Bench}, {"shown by", t.Show}, {"missing", t.Missing},
	} {
		if line[1] != "" {
			fmt.Fprintf(tw, "%s\t%s\n", line[0], line[1])
		}
	}
	return tw.Flush()
}
