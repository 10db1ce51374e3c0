package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"

	"github.com/spf13/cobra"

	"ridge"
	"ridge/internal/atomicfile"
	"ridge/lab/quant"
)

type labQuantOptions struct {
	hubFlags
	calibration, text, dir    string
	only, html                string
	calibrationTokens, tokens int
	window, threads           int
	speed, json               bool
}

func labQuantCommand() *cobra.Command {
	var o labQuantOptions
	c := &cobra.Command{
		Use:   "quant MODEL --calibration TEXT --file TEXT --dir DIR",
		Short: "What methods of quantization cost, by bits",
		Long: `Quantize a float model, a GGUF file, with every method and grid, and print a table:
divergence from the float model with its 95% interval, the paired difference from
another method at equal bytes, perplexity, bytes and, with --speed, tokens a second.
Embedding and output stay as they are in all rows; bytes are those of the matrices of
layers, with their steps, codebooks and what is kept apart.

Rows of types such as Q4_0 are files that kernels run. Rows of "3 bits" and "W8A8 a row"
are references: their values are floats, and their bytes are counted.

Rows that were measured stay in DIR: the same command goes on where it was ended. A row
that was not measured is empty.`,
		Example: "  ridge lab quant model-bf16.gguf --calibration train.txt --file test.txt --dir rows --only 'Q4_0|3 bits'",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	o.hubFlags.add(c)
	fs := c.Flags()
	fs.StringVar(&o.calibration, "calibration", "", "text that methods see")
	fs.IntVar(&o.calibrationTokens, "calibration-tokens", 16384, "use only the first tokens of it, 0 for all")
	fs.StringVarP(&o.text, "file", "f", "", "text to predict, another one")
	fs.IntVar(&o.tokens, "tokens", 16384, "use only the first tokens of it, 0 for all")
	fs.IntVar(&o.window, "window", 256, "tokens of a window")
	fs.StringVar(&o.dir, "dir", "", "folder for the rows that were measured")
	fs.StringVar(&o.only, "only", "", "measure only rows whose method and grid, such as \"gptq Q4_0\", match a regular expression")
	fs.BoolVar(&o.speed, "speed", false, "also time prompts of 512 tokens and answers of 64")
	fs.IntVarP(&o.threads, "threads", "t", runtime.GOMAXPROCS(0), "threads")
	fs.StringVar(&o.html, "html", "", "file for a page with plots, too")
	fs.BoolVar(&o.json, "json", false, "print JSON, one object a line, instead of Markdown")
	for _, name := range []string{"calibration", "file", "dir"} {
		c.MarkFlagRequired(name)
	}
	return c
}

func (o *labQuantOptions) run(c *cobra.Command, name string) error {
	cfg := quant.Config{Window: o.window, Dir: o.dir, Threads: o.threads, Speed: o.speed}
	if o.only != "" {
		re, err := regexp.Compile(o.only)
		if err != nil {
			return fmt.Errorf("--only: %w", err)
		}
		cfg.Only = re
	}
	if a, err := filepath.Abs(o.calibration); err == nil {
		if b, err := filepath.Abs(o.text); err == nil && a == b {
			return fmt.Errorf("--file: expected another text than --calibration, found the same")
		}
	}
	bars := newProgress(os.Stderr)
	defer bars.close()
	paths, err := o.find(c, []string{name}, bars)
	if err != nil {
		return err
	}
	cfg.Model = paths[0]
	m, err := ridge.OpenFile(cfg.Model, ridge.Options{})
	if err != nil {
		return err
	}
	for _, x := range []struct {
		path string
		most int
		ids  *[]int32
	}{{o.calibration, o.calibrationTokens, &cfg.Calibration}, {o.text, o.tokens, &cfg.Text}} {
		b, err := os.ReadFile(x.path)
		if err != nil {
			m.Close()
			return err
		}
		*x.ids = textTokens(m.Tokenizer(), b, x.most)
	}
	if err := m.Close(); err != nil {
		return err
	}
	cfg.Progress = countBar(bars, "rows")
	rows, err := quant.Measure(c.Context(), cfg)
	bars.close()
	if err != nil {
		return err
	}
	if o.html != "" {
		note := fmt.Sprintf("%s: %d tokens of %s, calibrated on %d of %s.", filepath.Base(cfg.Model), len(cfg.Text), filepath.Base(o.text), len(cfg.Calibration), filepath.Base(o.calibration))
		if err := atomicfile.Write(o.html, func(w io.Writer) error { return quant.WriteHTML(w, "What methods of quantization cost", note, rows) }); err != nil {
			return err
		}
	}
	if o.json {
		return quant.WriteJSON(c.OutOrStdout(), rows)
	}
	return quant.WriteMarkdown(c.OutOrStdout(), rows)
}
