package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ridge/compress"
	"ridge/model"
)

// calibrateFlags are the flags of `ridge calibrate`.
type calibrateFlags struct {
	hubFlags
	threadFlags
	out    string
	chunk  int
	tokens int
	force  bool
}

func calibrateCommand() *cobra.Command {
	var f calibrateFlags
	c := &cobra.Command{
		Use:   "calibrate MODEL TEXT -o FILE.gguf",
		Short: "Measure which columns of a model's matrices matter, for ridge quantize",
		Long: `Compute a text and write, for each column of each matrix, the mean square of what it
meets: an importance matrix, in llama.cpp's form (GGUF, or its earlier form if FILE ends
in .dat). ridge quantize --imatrix makes errors small where they count. Take a text like
those that the model is for, and not the one that it is then measured on.`,
		Example: `  ridge calibrate model-bf16.gguf calibration.txt -o imatrix.gguf
  ridge quantize model-bf16.gguf Q3_K_M --imatrix imatrix.gguf -o model-q3.gguf`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0], args[1]) },
	}
	f.hubFlags.add(c)
	f.threadFlags.add(c.Flags())
	fs := c.Flags()
	fs.StringVarP(&f.out, "output", "o", "imatrix.gguf", "file to write")
	fs.IntVar(&f.chunk, "chunk", 512, "tokens computed as a sequence of their own")
	fs.IntVar(&f.tokens, "tokens", 0, "use only the first tokens of the text (default: all)")
	fs.BoolVar(&f.force, "force", false, "replace a file that is there")
	return c
}

func (f *calibrateFlags) run(c *cobra.Command, name, text string) error {
	if _, err := os.Stat(f.out); err == nil && !f.force {
		return fmt.Errorf("%s is there already: --force replaces it", f.out)
	}
	b, err := os.ReadFile(text)
	if err != nil {
		return err
	}
	if err := f.threadFlags.check(); err != nil {
		return err
	}
	bars := newProgress(os.Stderr)
	defer bars.close()
	paths, err := f.find(c, []string{name}, bars)
	if err != nil {
		return err
	}
	o := model.DefaultOptions()
	o.Workers, o.BatchWorkers, o.Pin = f.threads, f.batch, f.pin
	m, err := model.Open(paths[0], o)
	if err != nil {
		return err
	}
	defer m.Close()
	switch {
	case m.GGUF() == nil:
		return fmt.Errorf("%s: expected a GGUF file, found a folder: ridge convert makes one of it", paths[0])
	case m.Tokenizer() == nil:
		return fmt.Errorf("%s: expected a tokenizer in the file, found none", paths[0])
	}
	ids := textTokens(m.Tokenizer(), b, f.tokens)
	cal := compress.Calibration{Chunk: min(f.chunk, m.Context()), Dataset: filepath.Base(text), Progress: countBar(bars, "layers")}
	im, missed, err := compress.Calibrate(c.Context(), m, m.GGUF(), ids, cal)
	if err != nil {
		return err
	}
	bars.close()
	if err := im.Save(f.out); err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "%s: %d matrices, %d chunks of %d tokens\n", f.out, im.Entries(), im.Chunks, im.ChunkTokens)
	if len(missed) > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "nothing was collected for %d matrices, such as %s\n", len(missed), missed[0])
	}
	return nil
}
