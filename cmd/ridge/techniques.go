package main

import (
	"fmt"
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
		Long: `List the techniques of the field that ridge has, and what proves them: a test,
and a command whose output shows what is claimed. With the name of one, all that
is known of it; with another word, those that have it in their names or lines.`,
		Example: "  ridge techniques\n  ridge techniques gqa\n  ridge techniques --missing",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			word := ""
			if len(args) == 1 {
				word = strings.ToLower(args[0])
			}
			rows, one := pickTechniques(word, missing)
			if asJSON {
				return writeJSON(c.OutOrStdout(), rows)
			}
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			if one {
				t := rows[0]
				fmt.Fprintf(tw, "technique\t%s\nwhat it is\t%s\nused by\t%s\ncode\t%s\ntest\t%s\nbenchmark\t%s\nshown by\t%s\nmissing\t%s\n",
					t.ID, t.What, t.Use, t.Code, t.Test, t.Bench, t.Command(), t.Missing)
				return tw.Flush()
			}
			fmt.Fprintln(tw, "TECHNIQUE\tWHAT IT IS\tUSED BY\tCODE\tTEST\tSHOWN BY\tMISSING")
			for _, t := range rows {
				fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.What, t.Use, t.Code, t.Test, t.Command(), t.Missing)
			}
			return tw.Flush()
		},
	}
	c.Flags().BoolVar(&missing, "missing", false, "only those that lack something")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// pickTechniques returns the technique called word, or, where one is false, those
// that have word in their names or lines; missing leaves out what lacks nothing.
func pickTechniques(word string, missing bool) (rows []techniques.Technique, one bool) {
	rows = []techniques.Technique{}
	for _, t := range techniques.All {
		switch {
		case missing && t.Missing == "":
		case word == t.ID:
			return []techniques.Technique{t}, true
		case strings.Contains(strings.ToLower(t.ID+" "+t.What), word):
			rows = append(rows, t)
		}
	}
	return rows, false
}
