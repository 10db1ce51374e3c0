package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ridge"
	"ridge/measure/eval"
	"ridge/sample"
	"ridge/text/chat"
)

func answersCommand() *cobra.Command {
	var f modelFlags
	var show, asJSON bool
	var max int
	p := sample.Params{TopK: 1}
	c := &cobra.Command{
		Use:   "answers MODEL [FILE]",
		Short: "Everyday questions that a model answers rightly in a chat",
		Long: `Ask a model a hundred everyday questions (geography, arithmetic, history,
language, common facts), each in a chat of its own at temperature 0, and count
the right answers. With FILE (- for standard input) its questions are asked, one
JSON object a line:

  {"topic": "geography", "question": "What is the capital of Australia?", "accept": ["Canberra"], "wrong": ["Sydney"]}
  {"topic": "arithmetic", "question": "What is 12 times 7?", "number": "84"}
  {"topic": "language", "question": "Which letter comes after D?", "pattern": "\\bE\\b"}

An answer is right if one of the accepted words is in it as a whole word, and none
of the wrong ones before it or, behind "or" and "however", after it; if it matches
the pattern; if the number is the last one in it that is not in the question.`,
		Example: `  ridge eval answers smollm2
  ridge eval answers smollm2 --repeat-penalty 1.1
  ridge eval answers qwen2.5-coder:0.5b --show`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			facts := eval.EverydayFacts()
			if len(args) == 2 {
				in, name, err := openInput(c.InOrStdin(), args[1])
				if err != nil {
					return err
				}
				facts, err = eval.ReadFacts(in, name)
				in.Close()
				if err != nil {
					return err
				}
			}
			if max < 1 {
				return fmt.Errorf("--max-tokens: expected 1 or more, found %d", max)
			}
			p.RepetitionPenalty = cmp.Or(p.RepetitionPenalty, 1) // 0 leaves it to the model's files
			m, err := f.open(c, args[0], "")
			if err != nil {
				return err
			}
			defer m.Close()
			bars := newProgress(os.Stderr)
			r, err := eval.Ask(c.Context(), facts, askIn(m, ridge.Generation{MaxTokens: max, Sampling: p}), countBar(bars, "questions"))
			bars.close()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), r)
			}
			return writeAnswers(c.OutOrStdout(), r, show)
		},
	}
	f.add(c)
	c.Flags().IntVarP(&max, "max-tokens", "n", 256, "tokens of an answer at most, with its reasoning")
	c.Flags().Float32Var(&p.RepetitionPenalty, "repeat-penalty", 1, "divide the scores of tokens that occurred, as the flag of ridge run")
	c.Flags().IntVar(&p.PenaltyLastN, "repeat-last-n", 64, "tokens that the penalty looks back on; -1 for all")
	c.Flags().BoolVar(&show, "show", false, "print the answers that are not right")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, with all answers")
	return c
}

// askIn asks each question in a chat of its own.
func askIn(m *ridge.Model, g ridge.Generation) func(context.Context, string) (string, error) {
	return func(ctx context.Context, question string) (string, error) {
		r, err := m.Reply(ctx, []chat.Message{{Role: "user", Content: question}}, g)
		if err != nil {
			return "", err
		}
		return strings.TrimSpace(r[0].Message.Content), nil
	}
}

// openInput opens a file, or standard input for "-", with its name for errors.
func openInput(stdin io.Reader, name string) (io.ReadCloser, string, error) {
	if name == "-" {
		return io.NopCloser(stdin), "standard input", nil
	}
	f, err := os.Open(name)
	return f, name, err
}

func writeAnswers(w io.Writer, r eval.Answers, show bool) error {
	if show {
		for _, a := range r.Answers {
			if !a.Right {
				fmt.Fprintf(w, "%s\n    %s\n", a.Question, strings.ReplaceAll(a.Answer, "\n", "\n    "))
			}
		}
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, topic := range slices.Sorted(maps.Keys(r.Topics)) {
		s := r.Topics[topic]
		fmt.Fprintf(tw, "%s\t%d of %d\n", topic, s.Right, s.Questions)
	}
	fmt.Fprintf(tw, "right\t%d of %d, 95%% between %.0f%% and %.0f%%\n", r.Right, r.Questions, 100*r.Low, 100*r.High)
	return tw.Flush()
}
