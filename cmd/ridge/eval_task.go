package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ridge"
	"ridge/measure/eval"
	"ridge/sample"
)

// taskFlags are the flags of `ridge eval task`.
type taskFlags struct {
	modelFlags
	bos, json              bool
	delimiter, keep, shots string
	stop                   []string
	shot, most, maxTokens  int
	lengths                []int
	depths, samples        int
	seed                   uint64
}

func taskCommand() *cobra.Command {
	var f taskFlags
	c := &cobra.Command{
		Use:   "task MODEL FILE|needle|copy|recall",
		Short: "Score a task: choices, what comes next, written answers, or text made for it",
		Long: `Score a model on a task in one of lm-eval's forms, a JSON object a line:

  {"query": "The capital of France is", "choices": ["Paris", "Rome"], "gold": 0}
  {"context": "The sky is", "continuation": " blue"}
  {"text": "a passage whose last word is to be guessed, as in LAMBADA"}
  {"question": "What is 6 times 7?", "answer": "6 times 7 is 42.\n#### 42"}

Choices give acc, acc_norm and acc_bytes, continuations acc (greedy decoding would write
them) and perplexity, questions exact_match, as lm-eval defines them for multiple choice,
LAMBADA and GSM8K. "group" in a line has a part scored alone too.

needle hides a number in texts of --lengths tokens at --depths places, copy has a text of
--lengths words go on that has begun again, recall asks for one of --lengths pairs; the same
--seed gives the same texts.

--keep FILE keeps outcomes as they come, and goes on from those that are in it.`,
		Example: `  ridge eval task smollm2 lambada_test.jsonl --max-items 500 --bos=false
  ridge eval task smollm2 gsm8k_test.jsonl --shots gsm8k_train.jsonl --keep gsm8k.kept
  ridge eval task smollm2 needle --lengths 512,1024,2048`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0], args[1]) },
	}
	f.modelFlags.add(c)
	fs := c.Flags()
	fs.StringVar(&f.delimiter, "delimiter", " ", "text between a query and a choice")
	fs.BoolVar(&f.bos, "bos", true, "begin with the token that the tokenizer puts first, if it does; false is what lm-eval does over HTTP")
	fs.StringVar(&f.keep, "keep", "", "file for outcomes; those that are in it are not computed again")
	fs.StringVar(&f.shots, "shots", "", "solved problems that stand before each problem")
	fs.IntVar(&f.shot, "num-shots", 5, "how many of them")
	fs.IntVar(&f.most, "max-items", 0, "use only the first items (default: all)")
	fs.IntVarP(&f.maxTokens, "max-tokens", "n", 256, "tokens of a written answer at most")
	fs.StringArrayVar(&f.stop, "stop", []string{"Question:", "</s>", "<|im_end|>"}, "texts that end a written answer")
	fs.IntSliceVar(&f.lengths, "lengths", nil, "of needle, copy and recall (default: 256,512,1024 tokens, 8,32,128 words, 4,16,32 pairs)")
	fs.IntVar(&f.depths, "depths", 5, "places of the needle, from the beginning to the end")
	fs.IntVar(&f.samples, "samples", 4, "items of each length and depth")
	fs.Uint64Var(&f.seed, "seed", 1, "of what is made")
	fs.BoolVar(&f.json, "json", false, "print JSON, with all outcomes")
	return c
}

// made are the tasks that are no files.
var made = []string{"needle", "copy", "recall"}

// items reads or makes the items of a task.
func (f *taskFlags) items(stdin io.Reader, m *ridge.Model, name string) ([]eval.Item, error) {
	if !slices.Contains(made, name) {
		items, err := readItems(stdin, name)
		if f.most > 0 && len(items) > f.most {
			items = items[:f.most]
		}
		return items, err
	}
	if f.depths < 1 || f.samples < 1 || slices.ContainsFunc(f.lengths, func(n int) bool { return n < 1 }) {
		return nil, fmt.Errorf("--lengths, --depths, --samples: expected 1 or more, found %v, %d, %d", f.lengths, f.depths, f.samples)
	}
	lengths := f.lengths
	if len(lengths) == 0 {
		lengths = map[string][]int{"needle": {256, 512, 1024}, "copy": {8, 32, 128}, "recall": {4, 16, 32}}[name]
	}
	switch name {
	case "copy":
		return eval.Copies(lengths, f.samples, f.seed), nil
	case "recall":
		return eval.Recalls(lengths, f.samples, f.seed), nil
	}
	if most := slices.Max(lengths); most > m.Context() {
		return nil, fmt.Errorf("--lengths: expected at most %d, the context, found %d", m.Context(), most)
	}
	var depths []float64
	for i := range f.depths {
		depths = append(depths, float64(i)/float64(max(f.depths-1, 1)))
	}
	count := func(s string) int { return len(textTokens(m.Tokenizer(), []byte(s), 0)) }
	return eval.Needles(count, lengths, depths, f.samples, f.seed), nil
}

func readItems(stdin io.Reader, name string) ([]eval.Item, error) {
	in, name, err := openInput(stdin, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return eval.ReadItems(in, name)
}

func (f *taskFlags) run(c *cobra.Command, name, task string) error {
	o := eval.TaskOptions{ChoiceOptions: eval.ChoiceOptions{Delimiter: f.delimiter, BOS: f.bos}}
	if f.shots != "" {
		var err error
		if o.Examples, err = readItems(nil, f.shots); err != nil {
			return err
		}
		if f.shot < 1 || len(o.Examples) < f.shot {
			return fmt.Errorf("--num-shots: expected 1 to %d, those of %s, found %d", len(o.Examples), f.shots, f.shot)
		}
		o.Examples = o.Examples[:f.shot]
	}
	m, err := f.open(c, name, "")
	if err != nil {
		return err
	}
	defer m.Close()
	items, err := f.items(c.InOrStdin(), m, task)
	if err != nil {
		return err
	}
	greedy := ridge.Generation{MaxTokens: f.maxTokens, Stop: f.stop, Exact: true, Sampling: sample.Params{TopK: 1}}
	o.Write = func(ctx context.Context, prompt string) (string, error) {
		var b strings.Builder
		for t, err := range m.Generate(ctx, prompt, greedy) {
			if err != nil {
				return "", err
			}
			b.WriteString(t.Text)
		}
		return b.String(), nil
	}
	if f.keep != "" {
		kept, err := f.openKept(&o, items, m)
		if err != nil {
			return err
		}
		defer kept.Close()
	}
	bars := newProgress(os.Stderr)
	o.Progress = countBar(bars, "items")
	outcomes, err := eval.RunTask(c.Context(), m.Engine(), items, o)
	bars.close()
	if err != nil {
		return err
	}
	return f.write(c.OutOrStdout(), items, outcomes)
}

// openKept reads the outcomes that are kept and has further ones added.
func (f *taskFlags) openKept(o *eval.TaskOptions, items []eval.Item, m *ridge.Model) (io.Closer, error) {
	parts := []any{items, o.Examples, o.Delimiter, o.BOS, f.stop, f.maxTokens, m.Path, f.kv, f.act}
	if st, err := os.Stat(m.Path); err == nil { // a model inside the program has none
		parts = append(parts, st.Size(), st.ModTime())
	}
	b, err := json.Marshal(parts)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	key := hex.EncodeToString(sum[:8])
	old, err := os.ReadFile(f.keep)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("--keep: %w", err)
	}
	done, whole, err := eval.ReadOutcomes(old, key)
	if err != nil {
		return nil, fmt.Errorf("--keep %s: %w", f.keep, err)
	}
	file, err := os.OpenFile(f.keep, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("--keep: %w", err)
	}
	enc := json.NewEncoder(file)
	if err = file.Truncate(int64(whole)); err == nil {
		if _, err = file.Seek(int64(whole), io.SeekStart); err == nil && whole == 0 {
			err = enc.Encode(map[string]string{"key": key})
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("--keep: %w", err)
	}
	o.Done, o.Each = done, func(x eval.Outcome) error { return enc.Encode(x) }
	return file, nil
}

// write prints the metrics of all items and of groups.
func (f *taskFlags) write(w io.Writer, items []eval.Item, outcomes []eval.Outcome) error {
	type group struct {
		Name    string        `json:"name"`
		Items   int           `json:"items"`
		Metrics []eval.Metric `json:"metrics"`
	}
	var groups []group
	for i, t := range items {
		if t.Group == "" || slices.ContainsFunc(groups, func(g group) bool { return g.Name == t.Group }) {
			continue
		}
		var part []eval.Item
		var made []eval.Outcome
		for k := i; k < len(items); k++ {
			if items[k].Group == t.Group {
				part, made = append(part, items[k]), append(made, outcomes[k])
			}
		}
		groups = append(groups, group{t.Group, len(part), eval.ScoreItems(part, made)})
	}
	all := eval.ScoreItems(items, outcomes)
	if f.json {
		return writeJSON(w, map[string]any{"form": items[0].Form(), "items": len(items), "metrics": all, "groups": groups, "outcomes": outcomes})
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, g := range append(groups, group{"all", len(items), all}) {
		for _, m := range g.Metrics {
			fmt.Fprintf(tw, "%s\t%s\t%.4f ± %.4f\t%d items\n", g.Name, m.Name, m.Value, m.StdErr, g.Items)
		}
	}
	return tw.Flush()
}
