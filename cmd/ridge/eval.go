package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ridge"
	"ridge/engine"
	"ridge/hub"
	"ridge/measure/eval"
)

// evalFlags are what the measurements on texts share.
type evalFlags struct {
	modelFlags
	file           string
	window, stride int
	tokens         int
	json           bool
}

func (f *evalFlags) add(c *cobra.Command) {
	f.modelFlags.add(c)
	c.Flags().StringVarP(&f.file, "file", "f", "", "text to predict")
	c.Flags().IntVar(&f.window, "window", 512, "tokens of a window")
	c.Flags().IntVar(&f.stride, "stride", 0, "move windows by so many tokens and score the new ones (default: windows side by side, second half scored)")
	c.Flags().IntVar(&f.tokens, "tokens", 0, "use only the first tokens of the text (default: all)")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	c.MarkFlagRequired("file")
}

// read tokenizes the text and says how it is cut.
func (f *evalFlags) read(m *ridge.Model, bars *progress) ([]int32, eval.Windows, error) {
	w := eval.Windows{Context: f.window, Stride: f.stride, BOS: -1, Progress: windowBar(bars)}
	b, err := os.ReadFile(f.file)
	if err != nil {
		return nil, w, fmt.Errorf("--file: %w", err)
	}
	if f.window > m.Context() {
		return nil, w, fmt.Errorf("--window: expected at most %d, the context, found %d", m.Context(), f.window)
	}
	ids := textTokens(m.Tokenizer(), b, f.tokens)
	if m.Tokenizer().AddsBOS() && f.stride == 0 {
		w.BOS = m.Tokenizer().BOS()
	}
	return ids, w, nil
}

// windowBar shows the windows done.
func windowBar(p *progress) func(done, total int) { return countBar(p, "windows") }

// countBar shows how many of something are done.
func countBar(p *progress, name string) func(done, total int) {
	var b hub.Bar
	return func(done, total int) {
		if !p.tty {
			return
		}
		if b == nil {
			b = p.count(name, total)
		}
		b.Set(int64(done))
		if done == total {
			b.Done(nil)
		}
	}
}

func evalCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "eval",
		Short: "Measure the quality of models on texts and questions",
	}
	c.AddCommand(perplexityCommand(), divergenceCommand(), choicesCommand(), taskCommand(), answersCommand(), firstCommand())
	return c
}

func perplexityCommand() *cobra.Command {
	var f evalFlags
	c := &cobra.Command{
		Use:     "ppl MODEL --file TEXT",
		Short:   "Perplexity of a text, computed as llama.cpp's tool does",
		Example: "  ridge eval ppl smollm2 --file wiki.txt --tokens 20000",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			m, err := f.open(c, args[0], "")
			if err != nil {
				return err
			}
			defer m.Close()
			bars := newProgress(os.Stderr)
			ids, w, err := f.read(m, bars)
			if err != nil {
				return err
			}
			r, err := eval.Predict(c.Context(), m.Engine(), ids, w)
			if err != nil {
				return err
			}
			bars.close()
			if f.json {
				return writeJSON(c.OutOrStdout(), r)
			}
			fmt.Fprintf(c.OutOrStdout(), "perplexity %.4f ± %.4f over %d tokens in %d windows\n", r.Perplexity, r.StdErr, r.Tokens, r.Windows)
			return nil
		},
	}
	f.add(c)
	return c
}

// baseFlags are the flags of the base model that another one is compared with.
type baseFlags struct{ kv, act string }

func (b *baseFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&b.kv, "base-kv", "f16", "--kv of BASE")
	c.Flags().StringVar(&b.act, "base-act", defaultAct, "--act of BASE")
}

// open opens the base model, args[0], and those that are compared with it, which f
// describes. close ends them all.
func (b *baseFlags) open(c *cobra.Command, f modelFlags, args []string) (base *ridge.Model, others []*ridge.Model, closeAll func(), err error) {
	var opened []*ridge.Model
	closeAll = func() {
		for _, m := range opened {
			m.Close()
		}
	}
	for i, name := range args {
		mf := f
		if i == 0 {
			mf.kv, mf.act = b.kv, b.act
		}
		m, err := mf.open(c, name, "")
		if err != nil {
			closeAll()
			return nil, nil, nil, err
		}
		opened = append(opened, m)
	}
	return opened[0], opened[1:], closeAll, nil
}

func divergenceCommand() *cobra.Command {
	var f evalFlags
	var b baseFlags
	c := &cobra.Command{
		Use:   "kl BASE MODEL [MODEL...] --file TEXT",
		Short: "How far a model's predictions are from those of a base model",
		Long: `Compare the predictions of a model with those of a base model, token by token. With
several models, those after the first are also compared with the first, as pairs on the
same tokens: which of two files is nearer to the base shows in far less text than their
own standard errors let expect. Intervals of differences hold in 95 of 100 cases; tokens
of one window count as one observation, because they depend on each other.`,
		Example: `  ridge eval kl model-f16.gguf plain.gguf gptq.gguf -f wiki.txt   # and gptq against plain
  ridge eval kl model-f16.gguf model-q4_k_m.gguf -f wiki.txt
  ridge eval kl model.gguf model.gguf --kv q8_0 -f wiki.txt   # what keys and values as bytes change`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			base, others, closeAll, err := b.open(c, f.modelFlags, args)
			if err != nil {
				return err
			}
			defer closeAll()
			bars := newProgress(os.Stderr)
			ids, w, err := f.read(base, bars)
			if err != nil {
				return err
			}
			var engines []*engine.Engine
			for _, m := range others {
				engines = append(engines, m.Engine())
			}
			d, pairs, err := eval.CompareAll(c.Context(), base.Engine(), engines, ids, w)
			if err != nil {
				return err
			}
			bars.close()
			return writeDivergences(c.OutOrStdout(), args[1:], d, pairs, f.json)
		},
	}
	f.add(c)
	b.add(c)
	return c
}

// writeDivergences prints the divergences of models called names, and how those after
// the first differ from the first.
func writeDivergences(w io.Writer, names []string, each []eval.Divergence, pairs []eval.Paired, asJSON bool) error {
	switch {
	case asJSON && len(each) == 1:
		return writeJSON(w, each[0])
	case asJSON:
		type model struct {
			Name string `json:"name"`
			eval.Divergence
			AgainstFirst *eval.Paired `json:"against_first,omitempty"`
		}
		var models []model
		for i, d := range each {
			m := model{Name: names[i], Divergence: d}
			if i > 0 {
				m.AgainstFirst = &pairs[i-1]
			}
			models = append(models, m)
		}
		return writeJSON(w, models)
	}
	for i, d := range each {
		if len(each) > 1 {
			fmt.Fprintf(w, "%s\n", names[i])
		}
		if err := writeDivergence(w, d); err != nil {
			return err
		}
		if i > 0 {
			p := pairs[i-1]
			fmt.Fprintf(w, "against %s, 95%% intervals over %d windows\n", names[0], p.Windows)
			fmt.Fprintf(w, "KL divergence          %+.6f, from %+.6f to %+.6f nats: %s\n", p.KL.Mean, p.KL.Low, p.KL.High, p.KL.Verdict())
			fmt.Fprintf(w, "log-likelihood loss    %+.6f, from %+.6f to %+.6f nats: %s\n", p.NLL.Mean, p.NLL.Low, p.NLL.High, p.NLL.Verdict())
		}
	}
	return nil
}

func writeDivergence(w io.Writer, d eval.Divergence) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "mean KL divergence\t%.6f ± %.6f nats\n", d.Mean, d.StdErr)
	fmt.Fprintf(tw, "median, 99%%, largest\t%.6f, %.6f, %.6f\n", d.Median, d.P99, d.Max)
	fmt.Fprintf(tw, "same top token\t%.2f %%\n", 100*d.SameTop)
	fmt.Fprintf(tw, "perplexity\t%.4f ± %.4f, base %.4f ± %.4f\n", d.Model.Perplexity, d.Model.StdErr, d.Base.Perplexity, d.Base.StdErr)
	if n := d.NLL; d.Windows > 1 {
		percent := func(nats float64) float64 { return 100 * math.Expm1(nats) }
		fmt.Fprintf(tw, "perplexity against base\t%+.3f %%, from %+.3f to %+.3f %% (95%%)\n", percent(n.Mean), percent(n.Low), percent(n.High))
	}
	fmt.Fprintf(tw, "tokens\t%d in %d windows\n", d.Tokens, d.Windows)
	return tw.Flush()
}
