package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ridge"
	"ridge/hub"
	"ridge/internal/atomicfile"
	"ridge/lab/drafts"
	"ridge/measure/machine"
	"ridge/text/chat"
)

type labSpecOptions struct {
	modelFlags
	data     string
	category int // prompts of each
	tokens   int
	batches  []int
	guesses  []int
	settings []string
	rounds   int
	always   bool
	json     bool
	html     string
	mixed    bool
	temp     float32
	keep     string
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

accepted is the part of the computed guesses that came true, and of places that of the
places of the text where something was guessed (the chance of a guess in a chain); a
guessing step is one of a sequence that computes guesses, and a step any.
expected is the ratio of speeds that the engine finds from predicted times of steps, as it
shows it in its metrics; speed that of all times that were measured; median and lower
quartile are those of the ratios of single pairs; processor is the ratio of processor
times, which other programs disturb less; p99 is that of the times between tokens;
guessing is the part of the time that making guesses took, and build what making the
drafter ready took.

--batch and --guesses take lists, and --settings a list of what --speculative takes: all
combinations are measured. With --rounds 0 answers are compared and not timed. --keep FILE keeps what was
measured, and goes on from what is in it; plain answers in it are those of all settings.`,
		Example: `  ridge lab spec smollm2 --data spec_bench.jsonl --per-category 5
  ridge lab spec smollm2 --data spec_bench.jsonl --batch 1,8 --mixed --html spec.html
  ridge lab spec smollm2 --data spec_bench.jsonl --settings ngram,recycle,draft=tiny --always --rounds 0 --batch 16 --mixed --keep spec.kept`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	o.modelFlags.add(c)
	o.modelFlags.addSpeculative(c)
	fs := c.Flags()
	fs.Lookup("speculative").DefValue = "ngram"
	o.how = "ngram"
	fs.StringVar(&o.data, "data", "", "file of prompts, such as Spec-Bench's question.jsonl")
	fs.IntVar(&o.category, "per-category", 0, "prompts of each category (default: all)")
	fs.IntVarP(&o.tokens, "tokens", "n", 128, "tokens of an answer, at most")
	fs.IntSliceVar(&o.batches, "batch", []int{1}, "prompts that are answered at the same time")
	fs.IntSliceVar(&o.guesses, "guesses", []int{0}, "guesses that are computed for each of them in a step, at most, in chains (default: as many as pay)")
	fs.StringSliceVar(&o.settings, "settings", nil, "who guesses: several of what --speculative takes, instead of that")
	fs.IntVar(&o.rounds, "rounds", 1, "pairs of each prompt: answered either way, in turns; 0 to compare answers only")
	fs.BoolVar(&o.mixed, "mixed", false, "batches of all kinds of prompts, not of one")
	fs.BoolVar(&o.always, "always", false, "verify every guess, also where that is expected to lose")
	fs.Float32Var(&o.temp, "temp", 0, "temperature")
	fs.StringVar(&o.keep, "keep", "", "file for what was measured; what is in it is not measured again")
	fs.BoolVar(&o.json, "json", false, "print JSON, one object a line, instead of Markdown")
	fs.StringVar(&o.html, "html", "", "file for a page with plots, too")
	return c
}

func (o *labSpecOptions) run(c *cobra.Command, name string) error {
	small := func(least int) func(int) bool { return func(n int) bool { return n < least } }
	if o.tokens < 2 || slices.ContainsFunc(o.batches, small(1)) || slices.ContainsFunc(o.guesses, small(0)) || o.rounds < 0 || o.category < 0 {
		return fmt.Errorf("--tokens, --batch, --guesses, --rounds, --per-category: expected at least 2, 1, 0, 0 and 0, found %d, %d, %d, %d and %d", o.tokens, o.batches, o.guesses, o.rounds, o.category)
	}
	asked, err := readSpecBench(o.data, o.category)
	if err != nil {
		return err
	}
	o.speculativeFlags.always = o.always
	switch {
	case len(o.settings) > 0 && o.model != "":
		return fmt.Errorf("--settings, --draft-model: expected one of them, found both")
	case o.model != "":
		o.settings, o.model = []string{"draft=" + o.model}, ""
	case len(o.settings) == 0:
		o.settings = []string{o.how}
	}
	var keep *drafts.Keep
	if o.keep != "" {
		if keep, err = drafts.OpenKeep(o.keep); err != nil {
			return fmt.Errorf("--keep: %w", err)
		}
		defer keep.Close()
	}
	var rows []drafts.Row
	for _, how := range o.settings {
		o.how = how
		got, err := o.setting(c, name, asked, keep)
		if err != nil {
			return err
		}
		rows = append(rows, got...)
	}
	if o.html != "" {
		i := machine.Read()
		note := fmt.Sprintf("%s, %s, %d processors, ridge %s, %s", name, i.CPU, i.CoresGiven, version(), time.Now().Format(time.DateOnly))
		if err := atomicfile.Write(o.html, func(w io.Writer) error { return drafts.WriteHTML(w, "What guesses gain", note, rows) }); err != nil {
			return err
		}
	}
	if o.json {
		return drafts.WriteJSON(c.OutOrStdout(), rows)
	}
	return drafts.WriteMarkdown(c.OutOrStdout(), rows)
}

// setting measures one way to guess, with each number of answers at a time and of
// guesses.
func (o *labSpecOptions) setting(c *cobra.Command, name string, asked []question, keep *drafts.Keep) (rows []drafts.Row, err error) {
	m, err := o.open(c, name, "")
	if err != nil {
		return nil, err
	}
	defer m.Close()
	build, err := o.build(c, m)
	if err != nil {
		return nil, err
	}
	var prompts []drafts.Prompt
	for _, q := range asked {
		tokens, err := m.ChatTokens(chat.Input{Messages: []chat.Message{{Role: "user", Content: q.turn}}})
		if err != nil {
			return nil, err
		}
		if len(tokens)+o.tokens > m.Context() {
			fmt.Fprintf(c.ErrOrStderr(), "ridge: a prompt of %d tokens (%s) is left out: it does not fit\n", len(tokens), q.category)
			continue
		}
		prompts = append(prompts, drafts.Prompt{Category: q.category, Tokens: tokens})
	}
	if len(prompts) == 0 {
		return nil, fmt.Errorf("--data: expected prompts that fit, found none")
	}
	for _, batch := range o.batches {
		for _, most := range o.guesses {
			got, err := o.measure(c, m, prompts, drafts.Config{Batch: batch, Most: most, Keep: keep})
			if err != nil {
				return nil, err
			}
			for i := range got {
				got[i].Build = build.Seconds()
			}
			rows = append(rows, got...)
		}
	}
	return rows, nil
}

// measure measures one table.
func (o *labSpecOptions) measure(c *cobra.Command, m *ridge.Model, prompts []drafts.Prompt, cfg drafts.Config) ([]drafts.Row, error) {
	cfg.Tokens, cfg.Rounds, cfg.Mixed, cfg.Stops = o.tokens, o.rounds, o.mixed, endsOf(m)
	cfg.Sampling.Temperature = o.temp
	cfg.Setting = o.how
	for _, x := range []struct {
		is   bool
		text string
	}{
		{o.most > 0, fmt.Sprintf(", depth %d", o.most)}, {o.width > 0, fmt.Sprintf(", width %d", o.width)},
		{o.stretch > 0, fmt.Sprintf(", stretch %g", o.stretch)}, {o.always, ", always"},
	} {
		if x.is {
			cfg.Setting += x.text
		}
	}
	cfg.Model = fmt.Sprint(m.Path, o.kv, o.act)
	if st, err := os.Stat(m.Path); err == nil { // a model inside the program has none
		cfg.Model += fmt.Sprint(st.Size(), st.ModTime().UnixNano())
	}
	bars := newProgress(os.Stderr)
	defer bars.close()
	bar := bars.count(fmt.Sprintf("%s, %d at a time", cfg.Setting, cfg.Batch), len(prompts))
	cfg.Each = func(done int) { bar.Set(int64(done)) }
	rows, err := drafts.Measure(c.Context(), m.Engine(), prompts, cfg)
	bar.Done(err)
	return rows, err
}

// build returns how long making the drafter ready takes: it is made a second time.
func (o *labSpecOptions) build(c *cobra.Command, m *ridge.Model) (time.Duration, error) {
	s, err := o.speculativeFlags.setting()
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	d, err := ridge.Drafting(c.Context(), s, m.Engine().Model(), hub.Options{Offline: true})
	took := time.Since(begin)
	if err == nil && d != nil && d.Close != nil {
		err = d.Close()
	}
	return took, err
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
