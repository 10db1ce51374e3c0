package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ridge"
	"ridge/hub"
	"ridge/internal/cpu"
	"ridge/model"
)

// hubFlags are the flags of commands that may fetch a model.
type hubFlags struct {
	offline bool
	limit   string
}

func (f *hubFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.offline, "offline", false, "do not use the network (also RIDGE_OFFLINE=1)")
	c.Flags().StringVar(&f.limit, "limit-rate", "", "bound the download speed, in bytes a second (suffixes K, M, G)")
}

func (f *hubFlags) options(bars *progress) (hub.Options, error) {
	o := hub.Options{Offline: f.offline, Progress: bars.hub(), Notify: func(s string) { bars.note(s) }}
	if f.limit != "" {
		n, err := parseSize(f.limit)
		if err != nil {
			return o, fmt.Errorf("--limit-rate: %w", err)
		}
		o.LimitRate = n
	}
	return o, nil
}

// parseSize reads a number of bytes such as 500K or 2M.
func parseSize(s string) (int64, error) {
	var n float64
	var unit string
	if c, err := fmt.Sscanf(s, "%g%s", &n, &unit); c == 0 || n <= 0 {
		return 0, fmt.Errorf("expected a number of bytes such as 500K or 2M, found %q: %w", s, err)
	}
	i := strings.Index("KMG", strings.ToUpper(strings.TrimSuffix(strings.TrimSuffix(unit, "B"), "i")))
	if unit != "" && (i < 0 || len(unit) > 3) {
		return 0, fmt.Errorf("expected a suffix K, M or G, found %q", unit)
	}
	if unit != "" {
		for range i + 1 {
			n *= 1024
		}
	}
	return int64(n), nil
}

// kvHelp explains --kv.
const kvHelp = "element type of keys and values: f16, f32, bf16, faster for long prompts where the processor has AMX, or q8_0, half the memory of f16; with the last two answers can differ from those with f16"

// actHelp explains --act.
const actHelp = "activations that quantized matrices are multiplied with, from the quickest to the most exact: int8, mixed, fine, or int16, nearly exact, for up to twice the time of prompts; bf16: as int8, and matrices in bfloat16 with activations rounded to that; bf16x2: as int8, and matrices of floats as sums of two bfloat16, nearly exact and for encoders on processors with AMX"

// defaultAct is the setting of --act where nothing is said.
var defaultAct = model.Act(0).String()

// trustMarksHelp explains --trust-marks.
const trustMarksHelp = "let marks that messages spell out, such as <|im_end|>, be control tokens, as other programs do; by default they are text"

// modelFlags are the flags of commands that open a model.
type modelFlags struct {
	hubFlags
	threadFlags
	packFlag
	speculativeFlags
	context, chunk, page int
	kv, act              string
	ref, trustMarks      bool
}

func (f *modelFlags) add(c *cobra.Command) {
	f.hubFlags.add(c)
	f.threadFlags.add(c.Flags())
	f.packFlag.add(c.Flags())
	f.how = "off"
	c.Flags().IntVarP(&f.context, "ctx", "c", 0, fmt.Sprintf("tokens of context (default: the model's own, at most %d)", ridge.DefaultContext))
	c.Flags().IntVar(&f.chunk, "chunk", 0, "tokens of a prompt computed at once (default 512)")
	c.Flags().IntVar(&f.page, "page-size", 0, "tokens in a page of keys and values, a multiple of 16 (default 64)")
	c.Flags().StringVar(&f.kv, "kv", "f16", kvHelp)
	c.Flags().StringVar(&f.act, "act", defaultAct, actHelp)
	c.Flags().BoolVar(&f.ref, "ref", false, "run on the readable reference code instead of the fast kernels")
	earlierNames(c.Flags(), map[string]string{"page": "page-size"})
}

// addSpeculative adds the flags of commands whose answers can be guessed.
func (f *modelFlags) addSpeculative(c *cobra.Command) {
	f.speculativeFlags.add(c.Flags())
	earlierNames(c.Flags(), map[string]string{"page": "page-size"}, speculativeNames)
}

// earlierNames lets flags be given by names that they had before, or have elsewhere.
func earlierNames(fs *pflag.FlagSet, now ...map[string]string) {
	all := map[string]string{}
	for _, names := range now {
		maps.Copy(all, names)
	}
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(all[name], name))
	})
}

// parseKV reads the value of --kv.
func parseKV(name string) (ridge.KV, error) {
	t, err := ridge.ParseKV(name)
	if err != nil {
		return 0, fmt.Errorf("--kv: expected f16, f32, bf16 or q8_0, found %q", name)
	}
	return t, nil
}

// parseAct reads the value of --act.
func parseAct(name string) (model.Act, error) {
	a, err := model.ParseAct(name)
	if err != nil {
		return 0, fmt.Errorf("--act: expected bf16, bf16x2, int8, mixed, fine or int16, found %q", name)
	}
	return a, nil
}

// open finds and opens a model. template is a file with a chat template, or "".
func (f *modelFlags) open(c *cobra.Command, name, template string) (*ridge.Model, error) {
	if f.context < 0 || f.chunk < 0 || f.page < 0 {
		return nil, fmt.Errorf("--ctx, --chunk and --page-size: expected positive numbers")
	}
	if err := f.threadFlags.check(); err != nil {
		return nil, err
	}
	if f.packErr != nil {
		return nil, f.packErr
	}
	if f.ref {
		cpu.Set(cpu.Ref)
	}
	bars := newProgress(os.Stderr)
	defer bars.close()
	ho, err := f.hubFlags.options(bars)
	if err != nil {
		return nil, err
	}
	o := ridge.Options{PackCache: f.packCache, Workers: f.threads, BatchWorkers: f.batch, Pin: f.pin, Context: f.context, Chunk: f.chunk, PageTokens: f.page, TrustMarks: f.trustMarks, Hub: ho}
	if o.KV, err = parseKV(f.kv); err != nil {
		return nil, err
	}
	if o.Speculative, err = f.speculativeFlags.setting(); err != nil {
		return nil, err
	}
	if o.Act, err = parseAct(f.act); err != nil {
		return nil, err
	}
	if template != "" {
		b, err := os.ReadFile(template)
		if err != nil {
			return nil, fmt.Errorf("--template: %w", err)
		}
		o.Template = string(b)
	}
	if o.Memory, err = f.memory(); err != nil {
		return nil, err
	}
	f.measured(c.Context()) // kept where Open finds it
	o.Progress = bars.load(name)
	m, err := ridge.Open(c.Context(), name, o)
	if err != nil {
		return nil, hintMemory(err)
	}
	if b := m.Beyond(); b != nil {
		bars.note("ridge: " + beyondText(b))
	}
	return m, tellQuantized(m.Engine().Model(), nil, func(n string) { fmt.Fprintf(c.ErrOrStderr(), "ridge: %s: %s\n", m.Name, n) })
}
