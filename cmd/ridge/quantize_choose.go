package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ridge"
	"ridge/compress"
	"ridge/measure/eval"
	"ridge/model"
	"ridge/weights/gguf"
)

// chooseFlags say that types are chosen for each matrix by what they cost.
type chooseFlags struct {
	size  string
	maxKL float64
}

func (f *chooseFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.size, "size", "", "with the type auto: most bytes of the tensors, such as 4G; each matrix gets the type that keeps the divergence on --calibration small")
	fs.Float64Var(&f.maxKL, "max-kl", 0, "with the type auto: the smallest file whose divergence from MODEL on --calibration is at most so many nats")
}

// chooser measures candidates against the float model.
type chooser struct {
	base   *ridge.Model
	ids    []int32
	window int
	dir    string
}

// newChooser opens the model of file; dir is for files that are measured. close ends
// it.
func newChooser(file *gguf.File, text string, most int, dir string) (*chooser, error) {
	if text == "" {
		return nil, errors.New("type auto: expected --calibration TEXT, found none")
	}
	b, err := os.ReadFile(text)
	if err != nil {
		return nil, fmt.Errorf("--calibration: %w", err)
	}
	k := &chooser{}
	if k.base, err = ridge.OpenFile(file.Name(), ridge.Options{Act: model.ActInt16}); err != nil {
		return nil, err
	}
	k.ids = textTokens(k.base.Tokenizer(), b, most)
	k.window = min(256, k.base.Context(), len(k.ids))
	if k.dir, err = os.MkdirTemp(dir, ".quantize-"); err != nil {
		k.base.Close()
		return nil, err
	}
	return k, nil
}

func (k *chooser) close() {
	k.base.Close()
	os.RemoveAll(k.dir)
}

// divergence returns how far the model in a file is from the base.
func (k *chooser) divergence(ctx context.Context, path string) (eval.Divergence, error) {
	m, err := ridge.OpenFile(path, ridge.Options{Act: model.ActInt16})
	if err != nil {
		return eval.Divergence{}, err
	}
	defer m.Close()
	return eval.Compare(ctx, k.base.Engine(), m.Engine(), k.ids, eval.Windows{Context: k.window, BOS: -1})
}

// candidate is a choice of types that was measured.
type candidate struct {
	bytes uint64
	bits  float64 // of a weight
	kl    eval.Divergence
	taken bool
}

// auto sets o's types for the matrices of file. What was measured is printed.
func (f *quantizeFlags) auto(c *cobra.Command, file *gguf.File, o *compress.Options, scanned func(done, total int64)) error {
	if (f.choose.size == "") == (f.choose.maxKL <= 0) {
		return errors.New("type auto: expected one of --size and --max-kl")
	}
	k, err := newChooser(file, f.method.text, f.method.tokens, filepath.Dir(f.out))
	if err != nil {
		return err
	}
	defer k.close()
	scan := *o
	scan.Progress = scanned
	all, err := compress.Scan(c.Context(), file, scan, k.dir, func(path string) (float64, error) {
		d, err := k.divergence(c.Context(), path)
		return d.Mean, err
	})
	if err != nil {
		return err
	}
	var seen []candidate
	try := func(budget uint64) (candidate, error) {
		if err := deal(file, o, all, budget); err != nil {
			return candidate{}, err
		}
		plan, err := compress.NewPlan(file, *o)
		if err != nil {
			return candidate{}, err
		}
		path := filepath.Join(k.dir, "candidate.gguf")
		if _, err := plan.Write(c.Context(), path); err != nil {
			return candidate{}, err
		}
		d, err := k.divergence(c.Context(), path)
		_, size := plan.Size()
		seen = append(seen, candidate{bytes: size, bits: plan.BitsPerWeight(), kl: d})
		return seen[len(seen)-1], err
	}
	if f.choose.size != "" {
		budget, err := parseSize(f.choose.size)
		if err != nil {
			return fmt.Errorf("--size: %w", err)
		}
		if _, err := try(uint64(budget)); err != nil {
			return err
		}
	} else if err := f.smallest(file, o, all, try); err != nil {
		return err
	}
	seen[len(seen)-1].taken = true
	f.method.rounded = nil // of candidates
	return writeCandidates(c.ErrOrStderr(), seen)
}

// smallest halves the range of budgets until the smallest one whose divergence is at
// most the limit is known to a hundredth, and tries that last.
func (f *quantizeFlags) smallest(file *gguf.File, o *compress.Options, all []compress.Sensitive, try func(uint64) (candidate, error)) error {
	low, high := rest(file, all), rest(file, all)
	for _, s := range all {
		low, high = low+s.Bytes[0], high+s.Bytes[len(s.Bytes)-1]
	}
	got, err := try(high)
	if err != nil {
		return err
	}
	if got.kl.Mean > f.choose.maxKL {
		return fmt.Errorf("--max-kl %g: the largest types have a divergence of %.6f nats", f.choose.maxKL, got.kl.Mean)
	}
	best, last := got.bytes, got.bytes
	for high-low > high/100 {
		middle := low + (high-low)/2
		if got, err = try(middle); err != nil {
			return err
		}
		if last = got.bytes; got.kl.Mean <= f.choose.maxKL {
			high, best = middle, got.bytes
		} else {
			low = middle
		}
	}
	if last != best {
		_, err = try(best)
	}
	return err
}

// rest is the bytes of the tensors whose types are not chosen.
func rest(file *gguf.File, all []compress.Sensitive) (n uint64) {
	names := map[string]bool{}
	for _, s := range all {
		names[s.Name] = true
	}
	for _, t := range file.Tensors() {
		if !names[t.Name] {
			n += t.Size
		}
	}
	return n
}

// deal sets o's types for a budget of all tensors.
func deal(file *gguf.File, o *compress.Options, all []compress.Sensitive, budget uint64) error {
	others := rest(file, all)
	if budget < others {
		return fmt.Errorf("--size: expected more than the %d bytes of what is not quantized, found %d", others, budget)
	}
	pick, err := compress.Choose(all, budget-others)
	if err != nil {
		return err
	}
	o.Overrides = nil
	for i, s := range all {
		pattern := regexp.MustCompile("^" + regexp.QuoteMeta(s.Name) + "$")
		o.Overrides = append(o.Overrides, compress.Override{Pattern: pattern, Type: s.Types[pick[i]]})
	}
	return nil
}

func writeCandidates(w io.Writer, seen []candidate) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "bytes\tbits\tKL on the calibration text\t")
	for _, s := range seen {
		verdict := "rejected"
		if s.taken {
			verdict = "taken"
		}
		fmt.Fprintf(tw, "%d\t%.2f\t%.6f ± %.6f\t%s\n", s.bytes, s.bits, s.kl.Mean, s.kl.StdErr, verdict)
	}
	return tw.Flush()
}
