package main

import (
	"github.com/spf13/cobra"

	"ridge"
)

func labCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Measure again what papers on inference report",
	}
	c.AddCommand(labSpecCommand(), labPlantedCommand(), labQuantCommand())
	return c
}

// endsOf returns the tokens that end answers.
func endsOf(m *ridge.Model) (ends []int32) {
	tok := m.Tokenizer()
	for id := range int32(m.Config().Vocab) {
		if tok.IsEOG(id) {
			ends = append(ends, id)
		}
	}
	return ends
}
