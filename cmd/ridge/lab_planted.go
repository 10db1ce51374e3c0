package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"ridge/lab/drafts"
	"ridge/measure/bench"
	"ridge/model"
)

// labPlantedOptions are the flags of `ridge lab planted`.
type labPlantedOptions struct {
	hubFlags
	drafts.Planting
	synthetic string
}

func labPlantedCommand() *cobra.Command {
	var o labPlantedOptions
	c := &cobra.Command{
		Use:   "planted [MODEL]",
		Short: "What guesses gain that are right as often as they are told to be",
		Long: `Have a model, or with --synthetic one of random weights, answer random prompts, and
again with guesses that are right with a planted chance. Beside tokens a step and the gain
stand those that follow from the chance and from the time of steps whose guesses are all
wrong.`,
		Example: `  ridge lab planted smollm2 --agreement 0.5,0.7,0.9
  ridge lab planted --synthetic 1.1b:Q4_0 --guesses 4 -n 64`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	o.hubFlags.add(c)
	fs := c.Flags()
	fs.StringVar(&o.synthetic, "synthetic", "", "SHAPE[:QUANT]: a model of random weights, as of ridge bench")
	fs.Float64SliceVar(&o.Agreements, "agreement", []float64{.5, .7, .9}, "how often guesses are right, each if those before it are")
	fs.IntVar(&o.Guesses, "guesses", 4, "guesses behind each token")
	fs.IntVar(&o.Batch, "batch", 1, "answers at the same time")
	fs.IntVarP(&o.Prompt, "prompt", "p", 64, "tokens of a prompt")
	fs.IntVarP(&o.Tokens, "tokens", "n", 128, "tokens of an answer")
	fs.IntVar(&o.Rounds, "rounds", 3, "pairs, with guesses and without")
	return c
}

func (o *labPlantedOptions) run(c *cobra.Command, args []string) error {
	switch {
	case (len(args) > 0) == (o.synthetic != ""):
		return fmt.Errorf("lab planted: expected a model or --synthetic, found %d models and %q", len(args), o.synthetic)
	case slices.ContainsFunc(o.Agreements, func(a float64) bool { return !(a >= 0 && a <= 1) }):
		return fmt.Errorf("--agreement: expected 0 to 1, found %v", o.Agreements)
	case o.Guesses < 1 || o.Batch < 1 || o.Prompt < 1 || o.Tokens < 2 || o.Rounds < 1:
		return fmt.Errorf("--guesses, --batch, --prompt, --tokens, --rounds: expected at least 1, 1, 1, 2 and 1, found %d, %d, %d, %d and %d", o.Guesses, o.Batch, o.Prompt, o.Tokens, o.Rounds)
	}
	bars := newProgress(os.Stderr)
	defer bars.close()
	path := ""
	if o.synthetic != "" {
		dir, err := os.MkdirTemp("", "ridge-planted-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		path = dir + "/synthetic.gguf"
		if err := bench.Synthetic(path, o.synthetic, 1); err != nil {
			return err
		}
	} else {
		paths, err := o.find(c, args, bars)
		if err != nil {
			return err
		}
		path = paths[0]
	}
	m, err := model.Open(path, model.DefaultOptions())
	if err != nil {
		return err
	}
	bar := bars.count("measuring", len(o.Agreements))
	o.Each = func(done int) { bar.Set(int64(done)) }
	rows, err := drafts.Plant(c.Context(), m, o.Planting)
	bar.Done(err)
	bars.close()
	if err != nil {
		return err
	}
	return drafts.WritePlanted(c.OutOrStdout(), rows)
}
