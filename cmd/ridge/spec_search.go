package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ridge/model"
	"ridge/spec/skip"
	"ridge/text/tokenizer"
)

// specSearchFlags are the flags of `ridge spec search`.
type specSearchFlags struct {
	hubFlags
	out       string
	force     bool
	tokens    int
	size      int
	exchanges int
	seed      uint64
}

func specSearchCommand() *cobra.Command {
	var f specSearchFlags
	c := &cobra.Command{
		Use:   "search MODEL TEXT... -o FILE",
		Short: "Find parts of layers that guesses do without",
		Long: `Look for mixers and FFNs of a model without which its most probable tokens stay the
same, and write those to a file with which --speculative skip=FILE has the model guess for
itself. Part after part is left out, of those that change least for the bytes that they
read; then some are exchanged. The table has for each number of parts how many of the
model's own tokens are guessed, what a guess costs, and how fast both together are
expected to be, in plain decoding's speed. Below 1 they lose, and nothing is guessed by
run and serve. Beside the best set, five drawn at random are looked at.`,
		Example: `  ridge spec search smollm2 answers.txt -o parts.json
  ridge run smollm2 --speculative skip=parts.json`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0], args[1:]) },
	}
	f.hubFlags.add(c)
	fs := c.Flags()
	fs.StringVarP(&f.out, "output", "o", "parts.json", "file to write")
	fs.BoolVar(&f.force, "force", false, "replace a file that is there")
	fs.IntVar(&f.tokens, "tokens", 64, "tokens of each text, its last ones, that are guessed")
	fs.IntVar(&f.size, "parts", 0, "parts that are left out (default: the number that is expected to be fastest)")
	fs.IntVar(&f.exchanges, "exchanges", 32, "exchanges that are tried")
	fs.Uint64Var(&f.seed, "seed", 1, "of the exchanges")
	return c
}

func (f *specSearchFlags) run(c *cobra.Command, name string, texts []string) (err error) {
	if _, err := os.Stat(f.out); err == nil && !f.force {
		return fmt.Errorf("%s is there already: --force replaces it", f.out)
	}
	if f.tokens < 1 || f.size < 0 || f.exchanges < 0 {
		return fmt.Errorf("--tokens, --parts, --exchanges: expected at least 1, 0 and 0, found %d, %d and %d", f.tokens, f.size, f.exchanges)
	}
	bars := newProgress(os.Stderr)
	defer bars.close()
	paths, err := f.find(c, []string{name}, bars)
	if err != nil {
		return err
	}
	o := model.DefaultOptions()
	const context = 1024 // texts are cut to it
	o.Context = context
	o.KVBytes = int64(len(texts)+1) * 256 << 20
	m, err := model.Open(paths[0], o)
	if err != nil {
		return err
	}
	defer m.Close()
	tok := m.Tokenizer()
	if tok == nil {
		return fmt.Errorf("%s: expected a tokenizer in the file, found none", paths[0])
	}
	var all [][]int32
	for _, text := range texts {
		b, err := os.ReadFile(text)
		if err != nil {
			return err
		}
		ids := tok.Encode(nil, string(b), tokenizer.EncodeOptions{})
		all = append(all, ids[:min(len(ids), context-f.tokens)])
	}
	s, err := skip.NewSearcher(m, all, f.tokens)
	if err != nil {
		return err
	}
	defer s.Close()
	bar := bars.count("sets looked at", 0)
	s.Each = func(n int) { bar.Set(int64(n)) }
	found, err := s.Search(f.size, f.exchanges, f.seed)
	bar.Done(err)
	bars.close()
	if err != nil {
		return err
	}
	return f.report(c, m, s, found)
}

// report writes the best of what was found to the file, and all of it as a table.
func (f *specSearchFlags) report(c *cobra.Command, m *model.Model, s *skip.Searcher, found []skip.Finding) error {
	best := &found[len(found)-1]
	if f.size == 0 {
		for i := range found {
			if found[i].Speed > best.Speed {
				best = &found[i]
			}
		}
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "parts\tagree\tcost\tspeed\t\n")
	row := func(f *skip.Finding, note string) {
		fmt.Fprintf(w, "%d\t%.0f%%\t%.2f\t%.2f\t  %s\n", f.Left(), 100*f.Share, f.Cost, f.Speed, note)
	}
	for i := range found {
		row(&found[i], "")
	}
	row(best, "written")
	const draws = 5
	for seed := range uint64(draws) {
		r, err := s.Look(s.Random(best.Left(), seed))
		if err != nil {
			return err
		}
		row(&r, "at random")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	out, err := os.Create(f.out + ".part")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	err = skip.Write(out, m, best)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(out.Name(), f.out)
	}
	return err
}
