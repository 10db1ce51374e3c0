package main

import (
	"bufio"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"ridge/model"
	"ridge/spec"
	"ridge/text/tokenizer"
)

func specCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "spec",
		Short: "Prepare guesses of next tokens",
	}
	c.AddCommand(specBuildCommand(), specSearchCommand())
	return c
}

// specBuildFlags are the flags of `ridge spec build`.
type specBuildFlags struct {
	hubFlags
	out   string
	force bool
}

func specBuildCommand() *cobra.Command {
	var f specBuildFlags
	c := &cobra.Command{
		Use:   "build MODEL TEXT... -o FILE",
		Short: "Store texts that answers are likely to repeat pieces of",
		Long: `Write the tokens of texts and the order of their suffixes to a file. With
--speculative rest=FILE, run and serve look up what comes after the last tokens of an
answer in these texts, and guess that it goes on like that (REST). Take texts like the
answers to come: earlier answers, code, documents that are quoted. The file takes 8 bytes
for each token, and suits models with the vocabulary of MODEL.`,
		Example: `  ridge spec build smollm2 answers.txt manual.txt -o texts.rest
  ridge serve smollm2 --speculative rest=texts.rest`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0], args[1:]) },
	}
	f.hubFlags.add(c)
	fs := c.Flags()
	fs.StringVarP(&f.out, "output", "o", "texts.rest", "file to write")
	fs.BoolVar(&f.force, "force", false, "replace a file that is there")
	return c
}

func (f *specBuildFlags) run(c *cobra.Command, name string, texts []string) (err error) {
	if _, err := os.Stat(f.out); err == nil && !f.force {
		return fmt.Errorf("%s is there already: --force replaces it", f.out)
	}
	bars := newProgress(os.Stderr)
	defer bars.close()
	paths, err := f.find(c, []string{name}, bars)
	if err != nil {
		return err
	}
	m, err := model.Open(paths[0], model.DefaultOptions())
	if err != nil {
		return err
	}
	defer m.Close()
	tok := m.Tokenizer()
	if tok == nil {
		return fmt.Errorf("%s: expected a tokenizer in the file, found none", paths[0])
	}
	begin, n := time.Now(), 0
	var all [][]int32
	for _, text := range texts {
		b, err := os.ReadFile(text)
		if err != nil {
			return err
		}
		all = append(all, tok.Encode(nil, string(b), tokenizer.EncodeOptions{}))
		n += len(all[len(all)-1])
	}
	out, err := os.Create(f.out + ".part")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	w := bufio.NewWriter(out)
	err = spec.BuildDatastore(w, all, spec.Vocabulary(tok.VocabSize(), tok.Piece))
	if err == nil {
		err = w.Flush()
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(out.Name(), f.out)
	}
	if err != nil {
		return err
	}
	bars.close()
	fmt.Fprintf(c.OutOrStdout(), "%s: %d tokens of %d texts in %.1f s\n", f.out, n, len(texts), time.Since(begin).Seconds())
	return nil
}
