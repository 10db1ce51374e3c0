package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ridge/hub"
	"ridge/measure/bench"
)

// benchFlags are what is measured, spelled as llama-bench spells it where its
// names can be kept.
type benchFlags struct {
	hubFlags
	threadFlags
	prompts, gens, depths, chunks, counts, seqs string
	pairs, synthetic, peers                     []string
	kv, act, output, keep                       string
	html, figures                               string
	repeat                                      int
	noWarm                                      bool
	delay, probe                                time.Duration
	seed                                        uint64
}

func benchCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench MODEL...",
		Short: "Measure speed: prompts, generation, at a depth, for many sequences",
		Long: `Measure how fast models run, with the cases and the table of llama-bench. Beside
each speed stand the bytes and operations per second that it means, and which
part that is of what this machine can do, measured between the repetitions.

A test is named as llama-bench names it: pp512 reads a prompt of 512 tokens,
tg128 generates 128, "@ d4096" does so behind 4096 tokens, x8 for 8 sequences at
once. Numbers can be lists (1,2,4) and ranges (1-8, 128-512+128, 1-32*2).

--peer runs another program at the same work, in turns with ridge, at least five
times each: llama-bench, llama-batched-bench, or any command with {model} {pp}
{tg} {depth} {seqs} {threads} {batch} {kv} {ctx} in it that prints their JSON.`,
		Example: `  ridge bench smollm2
  ridge bench smollm2 -p 0 -n 64 -d 0,4096 -t 1,2 -o csv
  ridge bench --synthetic 1.1b:Q4_0 --npl 1-32*2 -p 0 -n 32 -d 128
  ridge bench smollm2 --peer "llama.cpp=llama-bench -fa on"
  ridge bench kernels --types Q4_K,Q8_0 --rows 1,16,512
  ridge bench suite docs/bench/speed.json --peer "llama.cpp=llama-bench -fa on"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	fs := c.Flags()
	f.hubFlags.add(c)
	fs.StringVarP(&f.prompts, "n-prompt", "p", "512", "tokens of a prompt; 0 for no such test")
	fs.StringVarP(&f.gens, "n-gen", "n", "128", "tokens to generate; 0 for no such test")
	fs.StringArrayVar(&f.pairs, "pg", nil, "PROMPT,GENERATED: read a prompt and then generate; may be repeated")
	fs.StringVarP(&f.depths, "n-depth", "d", "0", "tokens that a sequence holds before")
	fs.StringVarP(&f.chunks, "batch", "b", "512", "rows of prompts computed at once")
	fs.StringVar(&f.seqs, "npl", "1", "sequences at once")
	fs.StringVarP(&f.counts, "threads", "t", "0", "threads (0: as many as ridge doctor measured to be best, or one per core given to the process)")
	f.addBatch(fs)
	fs.StringVar(&f.kv, "kv", "f16", "element types of keys and values: f16, f32, bf16, q8_0")
	fs.StringVar(&f.act, "act", defaultAct, "activations that quantized matrices are multiplied with: bf16 (as int8; those of bfloat16 matrices rounded to that), int8, mixed, fine, int16")
	fs.IntVarP(&f.repeat, "repetitions", "r", 5, "times that each test is repeated")
	fs.StringVarP(&f.output, "output", "o", "md", "format: "+strings.Join(bench.Formats, ", "))
	fs.StringArrayVar(&f.synthetic, "synthetic", nil, "SHAPE[:QUANT]: a model of random weights, shape one of "+strings.Join(bench.SyntheticShapes(), ", ")+"; may be repeated")
	fs.StringVar(&f.keep, "keep", "", "folder in which synthetic models are kept (default: removed at the end)")
	fs.StringArrayVar(&f.peers, "peer", nil, "[NAME=]COMMAND of a program to compare with; may be repeated")
	fs.BoolVar(&f.noWarm, "no-warmup", false, "measure at once, without a little work before")
	fs.DurationVar(&f.delay, "delay", 0, "pause before each test")
	fs.DurationVar(&f.probe, "probe", 30*time.Millisecond, "how long the machine's limits are measured after each repetition; 0 for not at all")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of tokens and of synthetic weights")
	fs.StringVar(&f.html, "html", "", "file for a report with plots")
	fs.StringVar(&f.figures, "figures", "", "folder for the plots as SVG files")
	c.AddCommand(benchKernelsCommand(), benchServeCommand(), benchSuiteCommand())
	return c
}

func (f *benchFlags) run(c *cobra.Command, args []string) error {
	if len(args)+len(f.synthetic) == 0 {
		return errors.New("bench: expected a model, or --synthetic SHAPE, found none")
	}
	o, err := f.benchOptions()
	if err != nil {
		return err
	}
	out, err := bench.NewWriter(c.OutOrStdout(), f.output)
	if err != nil {
		return err
	}
	if err := writable(f.html); err != nil { // a run is long, and its page comes last
		return fmt.Errorf("--html: %w", err)
	}
	bars := newProgress(os.Stderr)
	defer bars.close()
	if o.Models, err = f.find(c, args, bars); err != nil {
		return err
	}
	made, remove, err := f.synthesize(bars)
	if err != nil {
		return err
	}
	defer remove()
	o.Models = append(o.Models, made...)
	if bars.tty {
		o.Progress = func(what string) { fmt.Fprintf(os.Stderr, "\r\x1b[K%s", what) }
		defer fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	var all []*bench.Result
	err = bench.Run(c.Context(), o, func(r *bench.Result) error {
		all = append(all, r)
		return out.Write(r)
	})
	return errors.Join(err, out.Close(), f.plot(all))
}

// plot writes the page and the plots that are asked for.
func (f *benchFlags) plot(all []*bench.Result) error {
	if f.html != "" && len(all) > 0 {
		page, err := os.Create(f.html)
		if err != nil {
			return fmt.Errorf("--html: %w", err)
		}
		if err = errors.Join(bench.HTML(page, all), page.Close()); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	if f.figures != "" && len(all) > 0 {
		if err := bench.WriteFigures(f.figures, all); err != nil {
			return fmt.Errorf("--figures: %w", err)
		}
	}
	return nil
}

// benchOptions reads the flags.
func (f *benchFlags) benchOptions() (bench.Options, error) {
	if err := f.threadFlags.check(); err != nil {
		return bench.Options{}, err
	}
	o := bench.Options{Batch: f.batch, Pin: f.pin, Repeat: f.repeat, NoWarm: f.noWarm, Delay: f.delay, Probe: f.probe, Seed: f.seed, Build: version()}
	if f.repeat < 1 || f.delay < 0 || f.probe < 0 {
		return o, errors.New("--repetitions, --delay and --probe: expected positive values")
	}
	var g bench.Grid
	for _, list := range []struct {
		flag, value string
		to          *[]int
	}{
		{"n-prompt", f.prompts, &g.Prompts}, {"n-gen", f.gens, &g.Gens}, {"n-depth", f.depths, &g.Depths},
		{"batch", f.chunks, &g.Chunks}, {"npl", f.seqs, &g.Seqs}, {"threads", f.counts, &o.Threads},
	} {
		n, err := bench.ParseInts(list.value)
		if err != nil {
			return o, fmt.Errorf("--%s: %w", list.flag, err)
		}
		*list.to = n
	}
	for _, p := range f.pairs {
		pair, err := bench.ParsePair(p)
		if err != nil {
			return o, fmt.Errorf("--pg: %w", err)
		}
		g.Pairs = append(g.Pairs, pair)
	}
	o.Works = g.Works()
	for _, name := range strings.Split(f.kv, ",") {
		t, err := parseKV(name)
		if err != nil {
			return o, err
		}
		o.KV = append(o.KV, t.DType())
	}
	for _, name := range strings.Split(f.act, ",") {
		a, err := parseAct(name)
		if err != nil {
			return o, err
		}
		o.Act = append(o.Act, a)
	}
	for _, cmd := range f.peers {
		p, err := bench.ParsePeer(cmd)
		if err != nil {
			return o, err
		}
		o.Peers = append(o.Peers, p)
	}
	return o, nil
}

// find returns the files of models, which may be fetched first.
func (f *hubFlags) find(c *cobra.Command, names []string, bars *progress) ([]string, error) {
	ho, err := f.options(bars)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range names {
		m, err := hub.Resolve(c.Context(), name, ho)
		if err != nil {
			return nil, err
		}
		paths = append(paths, m.Path())
	}
	return paths, nil
}

// synthesize writes the synthetic models that are not kept from before.
func (f *benchFlags) synthesize(bars *progress) (paths []string, remove func(), err error) {
	remove = func() {}
	dir := f.keep
	if dir == "" && len(f.synthetic) > 0 {
		if dir, err = os.MkdirTemp("", "ridge-bench-"); err != nil {
			return nil, remove, err
		}
		remove = func() { os.RemoveAll(dir) }
	}
	for _, spec := range f.synthetic {
		path, err := synthesize(dir, spec, f.seed, bars)
		if err != nil {
			remove()
			return nil, func() {}, err
		}
		paths = append(paths, path)
	}
	return paths, remove, nil
}

// synthesize writes a synthetic model into dir, if it is not there.
func synthesize(dir, spec string, seed uint64, bars *progress) (path string, err error) {
	path = filepath.Join(dir, fmt.Sprintf("synthetic-%s-%d.gguf", strings.NewReplacer(":", "-", "/", "-").Replace(strings.ToLower(spec)), seed))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if bars.tty {
		bars.note("writing a model of random weights: " + spec)
	}
	return path, bench.Synthetic(path, spec, seed)
}
