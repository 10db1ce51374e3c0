package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ridge/internal/pool"
	"ridge/kvcache"
	"ridge/measure/bench"
	"ridge/measure/roofline"
	"ridge/model"
	"ridge/weights/tensor"
)

// planFlags say for which machine and which use a model is planned.
type planFlags struct {
	hubFlags
	use           roofline.Use
	threads       int
	kv, act       string
	machine, save string
	renew         bool
	check, asJSON bool
	checkRepeat   int
	against       string
	fit, fill     bool
}

func planCommand() *cobra.Command {
	var f planFlags
	c := &cobra.Command{
		Use:   "plan [MODEL]",
		Short: "Predict speed and memory of a model on this machine or another",
		Long: `Predict, from the headers of a model's files, how fast it will run, what limits
it, and what memory it takes. Nothing is loaded. This machine is measured the
first time, in some seconds, and again after a week or with --measure; a short
look each time tells how fast it is at the moment.

--machine takes a file that --save wrote on another machine, or one of these,
which are computed from published figures and not measured:
  ` + strings.Join(roofline.PublishedNames(), ", ") + `

--check runs "ridge bench" as well and prints how far off the predictions are; a
process of its own fills the contexts and tells the most memory that it had.
--against does the same for what "ridge bench -o json" printed before.`,
		Example: `  ridge plan smollm2 --ctx 8192 --batch 4
  ridge plan model.gguf --machine epyc-9654 --threads 32
  ridge plan smollm2 --check
  ridge plan --against bench.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case f.against != "" && len(args) == 0:
				return f.compare(c)
			case f.against != "" || f.fit || len(args) == 0:
				return errors.New("plan: expected a model, or --against FILE without one")
			}
			return f.run(c, args[0])
		},
	}
	fs := c.Flags()
	f.hubFlags.add(c)
	fs.IntVarP(&f.use.Context, "ctx", "c", 0, "tokens of a sequence (default: the model's own, at most 4096)")
	fs.IntVar(&f.use.Seqs, "batch", 1, "sequences at once")
	fs.IntVar(&f.use.Chunk, "chunk", 0, "rows of prompts computed at once (default 512)")
	fs.IntVarP(&f.threads, "threads", "t", 0, "threads (default: all of the machine)")
	fs.StringVar(&f.kv, "kv", "f16", kvHelp)
	fs.StringVar(&f.act, "act", defaultAct, actHelp)
	fs.StringVar(&f.machine, "machine", "", "file or name of another machine")
	fs.StringVar(&f.save, "save", "", "write the machine's numbers to a file, for --machine")
	fs.BoolVar(&f.renew, "measure", false, "measure this machine again")
	fs.BoolVar(&f.check, "check", false, "measure the model too, and print the error")
	fs.IntVar(&f.checkRepeat, "repetitions", 5, "measurements of each test for --check")
	fs.StringVar(&f.against, "against", "", "FILE that ridge bench -o json printed: print how far off predictions are")
	fs.BoolVar(&f.fit, "fit", false, "with --against: find the constants that fit best, and print them too")
	fs.BoolVar(&f.asJSON, "json", false, "print JSON")
	fs.BoolVar(&f.fill, "fill", false, "fill the contexts and print the memory of this process")
	_ = fs.MarkHidden("fill") // of --check
	return c
}

func (f *planFlags) run(c *cobra.Command, name string) error {
	if f.use.Context < 0 || f.use.Seqs < 1 || f.use.Chunk < 0 || f.threads < 0 || f.checkRepeat < 1 {
		return errors.New("--ctx, --batch, --chunk, --threads and --repetitions: expected positive numbers")
	}
	if f.check && f.machine != "" {
		return errors.New("--check measures this machine: it cannot be used with --machine")
	}
	kv, err := parseKV(f.kv)
	if err != nil {
		return err
	}
	act, err := parseAct(f.act)
	if err != nil {
		return err
	}
	bars := newProgress(os.Stderr)
	defer bars.close()
	paths, err := f.find(c, []string{name}, bars)
	if err != nil {
		return err
	}
	if f.fill {
		return f.usedMemory(c, paths[0], act)
	}
	s, err := roofline.Read(paths[0], kv.DType())
	if err != nil {
		return err
	}
	s.Act = act
	if s.Program, err = loadedMemory(paths[0]); err != nil {
		return err
	}
	m, available, err := f.theMachine(c, s.Types(), bars)
	if err != nil {
		return err
	}
	if f.save != "" {
		if err := m.Save(f.save); err != nil {
			return err
		}
	}
	threads := f.threads
	if threads == 0 {
		threads = m.MaxThreads()
	}
	if f.machine == "" { // another one cannot be looked at
		m = m.Now(c.Context(), s, threads)
	}
	r := roofline.NewReport(s, m, f.use, threads, available)
	r.File = paths[0]
	if f.check {
		if err := f.measure(c, s, m, r); err != nil {
			return err
		}
		if err := f.checkMemory(c, r); err != nil {
			return err
		}
	}
	if f.asJSON {
		return writeJSON(c.OutOrStdout(), r)
	}
	return r.Write(c.OutOrStdout())
}

// theMachine returns the machine to plan for and its memory in bytes, 0 if not
// known.
func (f *planFlags) theMachine(c *cobra.Command, types []tensor.DType, bars *progress) (*roofline.Machine, int64, error) {
	if f.machine != "" {
		m, err := otherMachine(f.machine)
		if err != nil {
			return nil, 0, err
		}
		return m, m.Memory, nil
	}
	o := roofline.MeasureOptions{Types: types, Build: version()}
	if f.threads > 0 && f.threads != 1 && f.threads != pool.DefaultWorkers() {
		o.Threads = []int{1, f.threads}
	}
	note := func(what string) {
		if bars.tty {
			bars.note(what)
		}
	}
	m, err := roofline.Here(c.Context(), o, roofline.CachePath(), f.renew, note)
	if err != nil {
		return nil, 0, err
	}
	return m, kvcache.ReadLimits().Left(), nil
}

func otherMachine(name string) (*roofline.Machine, error) {
	if _, err := os.Stat(name); err == nil {
		return roofline.LoadMachine(name)
	}
	return roofline.PublishedMachine(name)
}

// measure runs the works that were predicted and adds the errors.
func (f *planFlags) measure(c *cobra.Command, s *roofline.Shape, m *roofline.Machine, r *roofline.Report) error {
	o := bench.Options{Models: []string{r.File}, Threads: []int{r.Threads}, KV: []tensor.DType{s.KV}, Act: []model.Act{s.Act}, Repeat: f.checkRepeat, Seed: 1, Probe: checkProbe}
	for _, p := range r.Predictions {
		o.Works = append(o.Works, p.Work)
	}
	err := bench.Run(c.Context(), o, func(b *bench.Result) error {
		seen := roofline.Observation{
			Shape: s, Work: b.Work, Threads: b.Threads, Seconds: float64(b.Work.Tokens()) / b.Speed.Median, Read: b.ReadRate, Int: b.IntRate, Float: b.FloatRate,
		}
		r.Checks = append(r.Checks, m.NewCheck(seen, b.Speed.Min, b.Speed.Max))
		return nil
	})
	if err != nil {
		return fmt.Errorf("--check: %w", err)
	}
	return nil
}

// checkProbe is how long the machine's rates are measured after a repetition.
const checkProbe = 30 * time.Millisecond

// compare predicts what was measured before.
func (f *planFlags) compare(c *cobra.Command) error {
	obs, busy, err := roofline.ReadObservations(f.against)
	if err != nil {
		return err
	}
	if busy > 0 {
		fmt.Fprintf(os.Stderr, "%d tests are left out: other programs ran during all of their repetitions\n", busy)
	}
	var types []tensor.DType
	for _, o := range obs {
		for _, t := range o.Shape.Types() {
			if !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
		f.threads = max(f.threads, o.Threads)
	}
	bars := newProgress(os.Stderr)
	defer bars.close()
	m, _, err := f.theMachine(c, types, bars)
	if err != nil {
		return err
	}
	w := c.OutOrStdout()
	constants := roofline.Fitted()
	if f.fit {
		constants = roofline.FitConstants(obs, m.During, constants)
		fmt.Fprintf(w, "constants that fit best: %+v\n\n", constants)
	}
	list := m.Against(obs, constants)
	if f.asJSON {
		return writeJSON(w, list)
	}
	return roofline.WriteComparisons(w, list, obs)
}
