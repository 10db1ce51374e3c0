package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ridge/hub"
	"ridge/internal/cpu"
	"ridge/internal/pool"
	"ridge/measure/machine"
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

	Threads     *machine.Threads `json:"threads,omitempty"`
	ThreadFile  string           `json:"threads_kept_in,omitempty"`
	MemoryNodes int              `json:"memory_nodes"`

	ModelsDir string `json:"models_dir"`
	Models    int    `json:"models"`

	Packed packedInfo `json:"packed_weights"`

	Advice []string `json:"advice,omitempty"`
}

func doctorCommand() *cobra.Command {
	var asJSON, check bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine: processor, cores given, memory, measured bandwidth, best numbers of threads",
		Long: `Check this machine, and measure how fast it reads memory and how many threads
are best for generating tokens and for reading prompts: the fewest within 2% of
the best. These numbers are kept for this machine, the processors given to the
process and this version of the program; run, serve and bench take them unless
--threads is given. They are not kept when other programs disturbed the
measurement.

--check-packed reads all files with packed weights and compares their checksums.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			r := examine(c.Context(), check)
			if asJSON {
				return writeJSON(c.OutOrStdout(), r)
			}
			return r.write(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&check, "check-packed", false, "read the files with packed weights whole")
	return c
}

// doctorBuffer is read for the bandwidth: larger than most caches.
const doctorBuffer = 1 << 30

// doctorTune is how long the numbers of threads are measured.
const doctorTune = 2 * time.Second

func examine(ctx context.Context, checkPacked bool) doctorReport {
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
	r.MemoryNodes = pool.MemoryNodes()
	r.tune(ctx, size/2)
	r.Packed = listPacked(checkPacked)
	r.Advice = append(r.Advice, r.Packed.advice()...)
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

// tune measures how many threads are best, and keeps that.
func (r *doctorReport) tune(ctx context.Context, size int64) {
	t, err := machine.TuneThreads(ctx, machine.TuneOptions{Budget: doctorTune, Bytes: size})
	if err != nil {
		r.Advice = append(r.Advice, err.Error())
		return
	}
	r.Threads = t
	if t.Odd != "" {
		r.Advice = append(r.Advice, "the numbers of threads are not kept: "+t.Odd)
		return
	}
	path := machine.ThreadsPath()
	if path == "" {
		r.Advice = append(r.Advice, "the numbers of threads are not kept: there is no folder for caches (set XDG_CACHE_HOME or HOME)")
	} else if err := t.Save(path); err != nil {
		r.Advice = append(r.Advice, "the numbers of threads are not kept: "+err.Error())
	} else {
		r.ThreadFile = path
	}
}

// threadLine is what was measured with each number of threads.
func threadLine(t *machine.Threads) string {
	var b strings.Builder
	for i, p := range t.Points {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d: %.1f GB/s and %.0f GOP/s", p.Threads, p.Read/1e9, p.Ops/1e9)
	}
	return b.String()
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
	if t := r.Threads; t != nil {
		row("threads", "%d to generate, %d to read prompts (measured in %.1f s, %s)", t.Decode, t.Batch, t.Seconds, t.Taken.Format(time.DateOnly))
		row("", "%s", threadLine(t))
	}
	if r.MemoryNodes > 1 {
		row("memory nodes", "%d: a model that fits in one is kept there, with its threads", r.MemoryNodes)
	}
	row("models", "%d in %s and other programs' caches", r.Models, r.ModelsDir)
	if n := len(r.Packed.Files); n > 0 {
		row("packed weights", "%d files, %s in %s", n, bytesText(r.Packed.Bytes), r.Packed.Dir)
	}
	for _, a := range r.Advice {
		row("note", "%s", a)
	}
	return tw.Flush()
}
