package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ridge/measure/eval"
)

func choicesCommand() *cobra.Command {
	var f modelFlags
	var bos, asJSON bool
	var delimiter string
	c := &cobra.Command{
		Use:   "choices MODEL FILE",
		Short: "Accuracy on questions with several answers, as lm-eval defines it",
		Long: `Accuracy on questions with several answers. Each line of FILE is a question:

  {"query": "The capital of France is", "choices": ["Paris", "Rome"], "gold": 0}

The model takes the choice with the highest log-probability after the query
(acc), or the highest per character (acc_norm) or per byte (acc_bytes), as
lm-eval's tasks of multiple choice do. FILE may be - for standard input.`,
		Example: "  ridge eval choices smollm2 questions.jsonl",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			questions, err := readQuestions(c.InOrStdin(), args[1])
			if err != nil {
				return err
			}
			m, err := f.open(c, args[0], "")
			if err != nil {
				return err
			}
			defer m.Close()
			bars := newProgress(os.Stderr)
			r, err := eval.Choose(c.Context(), m.Engine(), questions, eval.ChoiceOptions{Delimiter: delimiter, BOS: bos, Progress: countBar(bars, "questions")})
			bars.close()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), r)
			}
			return writeChoices(c.OutOrStdout(), r)
		},
	}
	f.add(c)
	c.Flags().StringVar(&delimiter, "delimiter", " ", "text between a query and a choice")
	c.Flags().BoolVar(&bos, "bos", true, "begin with the token that the tokenizer puts first, if it does; false is what lm-eval does over HTTP")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the log-probabilities")
	return c
}

func readQuestions(stdin io.Reader, name string) ([]eval.Question, error) {
	in, name, err := openInput(stdin, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return eval.ReadQuestions(in, name)
}

func writeChoices(w io.Writer, r eval.Choices) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, x := range []struct {
		name string
		eval.Rate
	}{{"acc", r.Acc}, {"acc_norm", r.AccNorm}, {"acc_bytes", r.AccBytes}} {
		fmt.Fprintf(tw, "%s\t%.4f ± %.4f\n", x.name, x.Value, x.StdErr)
	}
	fmt.Fprintf(tw, "questions\t%d\n", r.Questions)
	return tw.Flush()
}
