package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ridge"
	"ridge/lab/drafts"
	"ridge/text/chat"
)

func labCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Measure again what papers on inference report",
	}
	c.AddCommand(labSpecCommand(), labQuantCommand())
	return c
}

type labSpecOptions struct {
	modelFlags
	data   string
	most   int
	tokens int
	batch  int
	rounds int
	always bool
	json   bool
	mixed  bool
	temp   float32
}

func labSpecCommand() *cobra.Command {
	var o labSpecOptions
	c := &cobra.Command{
		Use:   "spec MODEL",
		Short: "What guessing next tokens gains, by kind of prompt",
		Long: `Answer the prompts of a file with guesses of next tokens and without, in turns, and
print for each kind of prompt how many guesses came true, how many tokens a step
gave, and how fast both ways were. Answers are compared token by token.

The file has a JSON object a line, as Spec-Bench has it: {"category":..,"turns":[..]}.
The first turn is asked. Without a file a few built-in prompts are.

speed is the ratio of all times; median and lower quartile are those of the ratios of
single pairs; processor is the median of the pairs' ratios of processor time, which other
programs disturb less; p99 is that of the times between tokens; estimated is the ratio that the engine finds from predicted times of
steps, as it shows it in its metrics.`,
		Example: `  ridge lab spec smollm2 --data spec_bench.jsonl --per-category 5
  ridge lab spec smollm2 --data spec_bench.jsonl --batch 8 --mixed --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	o.modelFlags.add(c)
	o.modelFlags.addSpeculative(c)
	fs := c.Flags()
	fs.Lookup("speculative").DefValue = "ngram"
	o.how = "ngram"
	fs.StringVar(&o.data, "data", "", "file of prompts, such as Spec-Bench's question.jsonl")
	fs.IntVar(&o.most, "per-category", 0, "prompts of each category (default: all)")
	fs.IntVarP(&o.tokens, "tokens", "n", 128, "tokens of an answer, at most")
	fs.IntVar(&o.batch, "batch", 1, "prompts that are answered at the same time")
	fs.IntVar(&o.rounds, "rounds", 1, "pairs of each prompt: answered either way, in turns")
	fs.BoolVar(&o.mixed, "mixed", false, "batches of all kinds of prompts, not of one")
	fs.BoolVar(&o.always, "always", false, "verify every guess, also where that is expected to lose")
	fs.Float32Var(&o.temp, "temp", 0, "temperature")
	fs.BoolVar(&o.json, "json", false, "print JSON, one object a line, instead of Markdown")
	return c
}

func (o *labSpecOptions) run(c *cobra.Command, name string) error {
	if o.tokens < 2 || o.batch < 1 || o.rounds < 1 || o.most < 0 {
		return fmt.Errorf("--tokens, --batch, --rounds, --per-category: expected at least 2, 1, 1 and 0, found %d, %d, %d and %d", o.tokens, o.batch, o.rounds, o.most)
	}
	asked, err := readSpecBench(o.data, o.most)
	if err != nil {
		return err
	}
	o.speculativeFlags.always = o.always
	m, err := o.open(c, name, "")
	if err != nil {
		return err
	}
	defer m.Close()
	var prompts []drafts.Prompt
	for _, q := range asked {
		tokens, err := m.ChatTokens(chat.Input{Messages: []chat.Message{{Role: "user", Content: q.turn}}})
		if err != nil {
			return err
		}
		if len(tokens)+o.tokens > m.Context() {
			fmt.Fprintf(c.ErrOrStderr(), "ridge: a prompt of %d tokens (%s) is left out: it does not fit\n", len(tokens), q.category)
			continue
		}
		prompts = append(prompts, drafts.Prompt{Category: q.category, Tokens: tokens})
	}
	if len(prompts) == 0 {
		return fmt.Errorf("--data: expected prompts that fit, found none")
	}
	bars := newProgress(os.Stderr)
	cfg := drafts.Config{Tokens: o.tokens, Batch: o.batch, Rounds: o.rounds, Mixed: o.mixed, Stops: endsOf(m)}
	cfg.Sampling.Temperature = o.temp
	bar := bars.count("measuring", len(prompts))
	cfg.Each = func(done int) { bar.Set(int64(done)) }
	rows, err := drafts.Measure(c.Context(), m.Engine(), prompts, cfg)
	bar.Done(err)
	bars.close()
	if err != nil {
		return err
	}
	if o.json {
		return drafts.WriteJSON(c.OutOrStdout(), rows)
	}
	return drafts.WriteMarkdown(c.OutOrStdout(), rows)
}

// question is a prompt of Spec-Bench.
type question struct{ category, turn string }

// readSpecBench reads at most so many prompts of each category.
func readSpecBench(path string, most int) (out []question, err error) {
	if path == "" {
		return builtinQuestions, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<24)
	seen := map[string]int{}
	for n := 1; in.Scan(); n++ {
		var q struct {
			Category string   `json:"category"`
			Turns    []string `json:"turns"`
		}
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			return nil, fmt.Errorf("--data: %s: line %d: %w", path, n, err)
		}
		if len(q.Turns) == 0 || q.Category == "" {
			return nil, fmt.Errorf("--data: %s: line %d: expected category and turns", path, n)
		}
		if seen[q.Category]++; most == 0 || seen[q.Category] <= most {
			out = append(out, question{q.Category, q.Turns[0]})
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("--data: %s: %w", path, err)
	}
	slices.SortStableFunc(out, func(a, b question) int { return strings.Compare(a.category, b.category) })
	return out, nil
}

// builtinQuestions show the command without a file.
var builtinQuestions = []question{
	{"question", "Why is the sky blue?"},
	{"list", "Count from one to thirty in words, separated by commas."},
	{"copy", "Repeat this text without changes: The mill stood at the river, and the river turned the mill. Who came to the mill brought corn, and who left the mill carried flour. When the river was low the mill stood still, and when the river was high the mill ran day and night."},
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
