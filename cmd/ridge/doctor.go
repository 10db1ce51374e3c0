package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ridge/hub"
	"ridge/internal/cpu"
	"ridge/internal/machine"
	"ridge/internal/pool"
)

// doctorReport is what doctor found.
type doctorReport struct {
	machine.Info
	Features  []string `json:"cpu_features"`
	Tier      string   `json:"kernels"`
	Workers   int      `json:"workers"`
	ReadOne   float64  `json:"read_bytes_per_second_1_thread"`
	ReadAll   float64  `json:"read_bytes_per_second_all_workers"`
	BufferMiB int      `json:"read_buffer_mib"`
	ModelsDir string   `json:"models_dir"`
	Models    int      `json:"models"`
	Advice    []string `json:"advice,omitempty"`
}

func doctorCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine: processor, cores given, memory, measured bandwidth",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			r := examine()
			if asJSON {
				return writeJSON(c.OutOrStdout(), r)
			}
			return r.write(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// doctorBuffer is read for the bandwidth: larger than most caches.
const doctorBuffer = 1 << 30

func examine() doctorReport {
	r := doctorReport{Info: machine.Read(), Features: cpu.Features(), Tier: cpu.Current().String(), Workers: pool.DefaultWorkers(), ModelsDir: hub.DefaultDir()}
	if models, err := hub.List(hub.Options{Offline: true}); err == nil {
		r.Models = len(models)
	}
	size := int64(doctorBuffer)
	if r.MemoryFree > 0 {
		size = min(size, r.MemoryFree/4)
	}
	r.BufferMiB = int(size >> 20)
	r.ReadOne = machine.ReadBandwidth(1, int(size)/2, 250*time.Millisecond)
	r.ReadAll = machine.ReadBandwidth(r.Workers, int(size), 250*time.Millisecond)
	if r.CoresGiven < r.Cores {
		r.Advice = append(r.Advice, fmt.Sprintf("%d of %d cores are given to this process", r.CoresGiven, r.Cores))
	}
	if r.HugePages == "never" {
		r.Advice = append(r.Advice, "transparent huge pages are off: weights are read faster from huge pages (set /sys/kernel/mm/transparent_hugepage/enabled to madvise)")
	}
	if cpu.Current() <= cpu.Generic {
		r.Advice = append(r.Advice, "the kernels in use are plain Go: this processor has no AVX2, or RIDGE_CPU="+os.Getenv("RIDGE_CPU")+" forces it")
	}
	return r
}

func (r *doctorReport) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(tw, name+"\t"+format+"\n", args...) }
	row("processor", "%s (%s)", r.CPU, r.Arch)
	row("features", "%s", strings.Join(r.Features, " "))
	row("kernels", "%s", r.Tier)
	row("cores", "%d of %d given to this process, %d workers", r.CoresGiven, r.Cores, r.Workers)
	row("caches", "L2 %s, L3 %s", bytesText(r.L2), bytesText(r.L3))
	row("memory", "%s available of %s", bytesText(r.MemoryFree), bytesText(r.MemoryTotal))
	if r.MemoryLimit > 0 {
		row("", "the cgroup allows %s", bytesText(r.MemoryLimit))
	}
	row("huge pages", "%s", r.HugePages)
	row("reads", "%.1f GB/s with one thread, %.1f GB/s with %d (buffer of %d MiB)", r.ReadOne/1e9, r.ReadAll/1e9, r.Workers, r.BufferMiB)
	row("models", "%d in %s and other programs' caches", r.Models, r.ModelsDir)
	for _, a := range r.Advice {
		row("note", "%s", a)
	}
	return tw.Flush()
}
