package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ridge"
	"ridge/measure/eval"
	"ridge/text/chat"
)

func firstCommand() *cobra.Command {
	var f modelFlags
	var b baseFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "first BASE MODEL FILE",
		Short: "How often answers begin with another token than those of a base model",
		Long: `How often a model begins its answer in a chat with another token than a base
model, both taking the most probable one. Each line of FILE is what a user says:

  {"turns": ["How can I improve my time management skills?"]}
  {"question": "What is the capital of France?"}

FILE may be - for standard input. Prompts have the form of BASE's template.`,
		Example: "  ridge eval first smollm2 smollm2 questions.jsonl --base-act int16 --act int8",
		Args:    cobra.ExactArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			in, name, err := openInput(c.InOrStdin(), args[2])
			if err != nil {
				return err
			}
			said, err := eval.ReadPrompts(in, name)
			in.Close()
			if err != nil {
				return err
			}
			base, others, closeAll, err := b.open(c, f, args[:2])
			if err != nil {
				return err
			}
			defer closeAll()
			m := others[0]
			prompts, err := chatPrompts(base, said)
			if err != nil {
				return err
			}
			bars := newProgress(os.Stderr)
			r, err := eval.CompareFirst(c.Context(), base.Engine(), m.Engine(), prompts, countBar(bars, "prompts"))
			bars.close()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), r)
			}
			return writeFirst(c.OutOrStdout(), r)
		},
	}
	f.add(c)
	b.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// chatPrompts returns the prompts of conversations that begin with what is said.
func chatPrompts(m *ridge.Model, said []string) ([][]int32, error) {
	out := make([][]int32, len(said))
	for i, s := range said {
		var err error
		if out[i], err = m.ChatTokens(chat.Input{Messages: []chat.Message{{Role: "user", Content: s}}, AddGenerationPrompt: true}); err != nil {
			return nil, fmt.Errorf("prompt %d: %w", i+1, err)
		}
	}
	return out, nil
}

func writeFirst(w io.Writer, r eval.First) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "another first token\t%d of %d, 95%% between %.1f%% and %.1f%%\n", r.Differ, r.Prompts, 100*r.Low, 100*r.High)
	fmt.Fprintf(tw, "mean KL divergence\t%.6f ± %.6f nats\n", r.MeanKL, r.StdErr)
	return tw.Flush()
}
