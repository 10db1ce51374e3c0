package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ridge"
	"ridge/hub"
	"ridge/measure/eval"
	"ridge/text/tokenizer"
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
	ids := m.Tokenizer().Encode(nil, string(b), tokenizer.EncodeOptions{AddSpecial: true})
	if f.tokens > 0 {
		ids = ids[:min(f.tokens, len(ids))]
	}
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
	c.AddCommand(perplexityCommand(), divergenceCommand(), choicesCommand(), answersCommand(), firstCommand())
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
	c.Flags().StringVar(&b.act, "base-act", "int8", "--act of BASE")
}

// open opens the base model, args[0], and the model that is compared with it,
// args[1], which f describes.
func (b *baseFlags) open(c *cobra.Command, f modelFlags, args []string) (base, m *ridge.Model, err error) {
	bf := f
	bf.kv, bf.act = b.kv, b.act
	if base, err = bf.open(c, args[0], ""); err != nil {
		return nil, nil, err
	}
	if m, err = f.open(c, args[1], ""); err != nil {
		base.Close()
		return nil, nil, err
	}
	return base, m, nil
}

func divergenceCommand() *cobra.Command {
	var f evalFlags
	var b baseFlags
	c := &cobra.Command{
		Use:   "kl BASE MODEL --file TEXT",
		Short: "How far a model's predictions are from those of a base model",
		Example: `  ridge eval kl model-f16.gguf model-q4_k_m.gguf -f wiki.txt
  ridge eval kl model.gguf model.gguf --kv q8_0 -f wiki.txt   # what keys and values as bytes change`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			base, m, err := b.open(c, f.modelFlags, args)
			if err != nil {
				return err
			}
			defer base.Close()
			defer m.Close()
			bars := newProgress(os.Stderr)
			ids, w, err := f.read(base, bars)
			if err != nil {
				return err
			}
			d, err := eval.Compare(c.Context(), base.Engine(), m.Engine(), ids, w)
			if err != nil {
				return err
			}
			bars.close()
			if f.json {
				return writeJSON(c.OutOrStdout(), d)
			}
			return writeDivergence(c.OutOrStdout(), d)
		},
	}
	f.add(c)
	b.add(c)
	return c
}

func writeDivergence(w io.Writer, d eval.Divergence) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "mean KL divergence\t%.6f ± %.6f nats\n", d.Mean, d.StdErr)
	fmt.Fprintf(tw, "median, 99%%, largest\t%.6f, %.6f, %.6f\n", d.Median, d.P99, d.Max)
	fmt.Fprintf(tw, "same top token\t%.2f %%\n", 100*d.SameTop)
	fmt.Fprintf(tw, "perplexity\t%.4f ± %.4f, base %.4f ± %.4f\n", d.Model.Perplexity, d.Model.StdErr, d.Base.Perplexity, d.Base.StdErr)
	fmt.Fprintf(tw, "tokens\t%d in %d windows\n", d.Tokens, d.Windows)
	return tw.Flush()
}
