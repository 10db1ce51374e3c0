package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ridge/internal/techniques"
)

func techniquesCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "techniques [WORD]",
		Short: "List the techniques of the field that ridge has, and what proves them",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			rows := techniques.All
			if len(args) == 1 {
				rows = nil
				for _, t := range techniques.All {
					if strings.Contains(strings.ToLower(t.ID+" "+t.What), strings.ToLower(args[0])) {
						rows = append(rows, t)
					}
				}
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), rows)
			}
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tw, "TECHNIQUE\tWHAT IT IS\tUSED BY\tCODE\tTEST")
			for _, t := range rows {
				fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", t.ID, t.What, t.Use, t.Code, t.Test)
			}
			return tw.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
