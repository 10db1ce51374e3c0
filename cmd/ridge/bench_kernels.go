package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ridge/internal/cpu"
	"ridge/measure/bench"
	"ridge/weights/tensor"
)

func benchKernelsCommand() *cobra.Command {
	var o bench.KernelOptions
	var types, shapes, rows, tiers string
	var asJSON bool
	c := &cobra.Command{
		Use:   "kernels",
		Short: "Measure the matrix kernels: type, shape, rows and tier",
		Long: `Multiply weights that lie outside of the core's caches with rows of activations.
Each time stands beside a loop that only reads as many bytes and one of products
alone, run in turns with the kernel: the limit is whichever takes longer.`,
		Example: `  ridge bench kernels --types Q4_0,Q6_K --rows 1-16*2,512
  ridge bench kernels --tiers avx2,avx512 --shapes 576x1536`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := readKernelFlags(&o, types, shapes, rows, tiers); err != nil {
				return err
			}
			var all []*bench.KernelResult
			err := bench.Kernels(c.Context(), o, func(r *bench.KernelResult) error {
				all = append(all, r)
				return nil
			})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), all)
			}
			return bench.WriteKernels(c.OutOrStdout(), all)
		},
	}
	fs := c.Flags()
	fs.StringVar(&types, "types", "Q8_0,Q4_0,Q4_K,Q5_K,Q6_K,F16,BF16,F32", "types of weights")
	fs.StringVar(&shapes, "shapes", "2048x2048", "ROWSxCOLUMNS of weights")
	fs.StringVar(&rows, "rows", "1,2,4,8,16,512", "rows of activations")
	fs.StringVar(&tiers, "tiers", cpu.Current().String(), "tiers of kernels: generic, neon, avx2, avx512, amx")
	fs.IntVarP(&o.Threads, "threads", "t", 1, "threads")
	fs.DurationVar(&o.Time, "time", 200*time.Millisecond, "for each kernel")
	fs.Uint64Var(&o.Seed, "seed", 1, "seed of weights and activations")
	fs.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func readKernelFlags(o *bench.KernelOptions, types, shapes, rows, tiers string) error {
	for _, name := range strings.Split(types, ",") {
		t, err := tensor.ParseDType(strings.TrimSpace(name))
		if err != nil {
			return fmt.Errorf("--types: %w", err)
		}
		o.Types = append(o.Types, t)
	}
	for _, s := range strings.Split(shapes, ",") {
		shape, err := bench.ParseShape(strings.TrimSpace(s))
		if err != nil {
			return fmt.Errorf("--shapes: %w", err)
		}
		o.Shapes = append(o.Shapes, shape)
	}
	var err error
	if o.Rows, err = bench.ParseInts(rows); err != nil {
		return fmt.Errorf("--rows: %w", err)
	}
	for _, name := range strings.Split(tiers, ",") {
		tier, err := parseTier(name)
		if err != nil {
			return err
		}
		o.Tiers = append(o.Tiers, tier)
	}
	return nil
}

func parseTier(name string) (cpu.Tier, error) {
	t, err := cpu.Parse(strings.TrimSpace(name))
	if err != nil {
		return 0, fmt.Errorf("--tiers: %w", err)
	}
	return t, nil
}
