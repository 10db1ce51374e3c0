package roofline

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"ridge/internal/atomicfile"
	"ridge/weights/tensor"
)

// Machine is what a computer can do: measured here, or taken from what its
// makers publish. All rates are per second.
type Machine struct {
	Name   string `json:"name"`
	Source string `json:"source"` // "measured" or "published"
	Note   string `json:"note,omitempty"`
	Arch   string `json:"arch"`
	Tier   string `json:"kernels"` // tier of kernels: "avx512", "avx2", "generic"
	Cores  int    `json:"cores"`
	L2     int64  `json:"l2_bytes"`     // of a core
	L3     int64  `json:"l3_bytes"`     // of all cores
	Memory int64  `json:"memory_bytes"` // 0 if it varies

	Taken time.Time `json:"taken,omitzero"`
	Load  float64   `json:"load_average,omitempty"` // while measuring
	// Disturbed says that other programs took processor time while the machine
	// was measured: its rates are too low.
	Disturbed bool   `json:"disturbed,omitempty"`
	Build     string `json:"build,omitempty"` // of the program that measured

	Threads []ThreadRates `json:"threads"` // by thread count, rising
	// Kernels are rates of one thread with weights in its cache. A published
	// machine has none: they are estimated from the peaks.
	Kernels []KernelRate `json:"kernel_rates,omitempty"`
}

// The sources of a machine's numbers.
const (
	Measured  = "measured"
	Published = "published"
)

// ThreadRates is what a number of threads do together.
type ThreadRates struct {
	Threads  int         `json:"threads"`
	Read     []ReadPoint `json:"read"`           // by size, rising
	IntOps   float64     `json:"int8_ops_per_s"` // multiplications and additions
	FloatOps float64     `json:"f32_ops_per_s"`  //
	Region   float64     `json:"region_s"`       // seconds that an empty parallel region takes

	// BrainOps is of bfloat16 products, FloatOps where the processor has none,
	// and 0 where it was not measured.
	BrainOps float64 `json:"bf16_ops_per_s,omitempty"`
}

// ReadPoint is the rate at which buffers of so many bytes in all are read again
// and again.
type ReadPoint struct {
	Bytes int64   `json:"bytes"`
	Rate  float64 `json:"bytes_per_s"`
}

// KernelRate is the rate of a matrix kernel on one thread.
type KernelRate struct {
	Type   string  `json:"type"`
	Rows   int     `json:"rows"` // of activations
	OpRate float64 `json:"ops_per_s"`
}

// machineFormat is the version of the JSON form of Machine.
const machineFormat = 2

type machineFile struct {
	Format  int      `json:"ridge_machine"`
	Machine *Machine `json:"machine"`
}

// LoadMachine reads a machine from a file that Save wrote.
func LoadMachine(path string) (*Machine, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("roofline: machine: %w", err)
	}
	m, err := parseMachine(b)
	if err != nil {
		return nil, fmt.Errorf("roofline: machine: %s: %w", path, err)
	}
	return m, nil
}

func parseMachine(b []byte) (*Machine, error) {
	var f machineFile
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("expected JSON: %w", err)
	}
	if f.Format != machineFormat || f.Machine == nil {
		return nil, fmt.Errorf("ridge_machine: expected %d, found %d", machineFormat, f.Format)
	}
	return f.Machine, f.Machine.validate()
}

// Save writes the machine to a file, whole or not at all.
func (m *Machine) Save(path string) error {
	b, err := json.MarshalIndent(machineFile{machineFormat, m}, "", "  ")
	if err == nil {
		err = atomicfile.Write(path, func(w io.Writer) error {
			_, err := w.Write(append(b, '\n'))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("roofline: machine: %w", err)
	}
	return nil
}

// validate checks that predictions can be computed: positive finite rates, in
// rising order.
func (m *Machine) validate() error {
	good := func(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
	if len(m.Threads) == 0 {
		return fmt.Errorf("threads: expected at least one entry, found none")
	}
	last := 0
	for _, t := range m.Threads {
		if t.Threads <= last || t.Threads > 1<<16 {
			return fmt.Errorf("threads: expected rising counts, found %d after %d", t.Threads, last)
		}
		last = t.Threads
		if len(t.Read) == 0 || !good(t.IntOps) || !good(t.FloatOps) || t.BrainOps != 0 && !good(t.BrainOps) || !(t.Region >= 0 && t.Region < 1) {
			return fmt.Errorf("threads: %d: expected rates of reads and operations and the time of a region, found %+v", t.Threads, t)
		}
		size := int64(0)
		for _, r := range t.Read {
			if r.Bytes <= size || !good(r.Rate) {
				return fmt.Errorf("threads: %d: read: expected rising sizes and positive rates, found %+v", t.Threads, r)
			}
			size = r.Bytes
		}
	}
	for _, k := range m.Kernels {
		if _, err := tensor.ParseDType(k.Type); err != nil || k.Rows < 1 || !good(k.OpRate) {
			return fmt.Errorf("kernel_rates: expected a type, rows and a rate, found %+v", k)
		}
	}
	return nil
}

// MaxThreads returns the largest number of threads that the machine's numbers
// are for.
func (m *Machine) MaxThreads() int { return m.Threads[len(m.Threads)-1].Threads }

// rates returns the rates for a number of threads, interpolated between those
// that are known: reads by the logarithm of the size, everything linearly in
// the threads.
func (m *Machine) rates(threads int) ThreadRates {
	i, found := slices.BinarySearchFunc(m.Threads, threads, func(t ThreadRates, n int) int { return t.Threads - n })
	if found {
		return m.Threads[i]
	}
	if i == len(m.Threads) {
		t := m.Threads[i-1]
		t.Threads = threads // more threads than cores do not help
		return t
	}
	if i == 0 {
		return m.Threads[0].scaled(float64(threads)/float64(m.Threads[0].Threads), threads)
	}
	a, b := m.Threads[i-1], m.Threads[i]
	f := float64(threads-a.Threads) / float64(b.Threads-a.Threads)
	mid := func(x, y float64) float64 { return x + f*(y-x) }
	out := ThreadRates{Threads: threads, IntOps: mid(a.IntOps, b.IntOps), FloatOps: mid(a.FloatOps, b.FloatOps), BrainOps: mid(a.BrainOps, b.BrainOps), Region: mid(a.Region, b.Region)}
	for _, r := range b.Read {
		out.Read = append(out.Read, ReadPoint{r.Bytes, mid(a.read(r.Bytes), r.Rate)})
	}
	return out
}

// scaled is t for another number of threads where only one number is known.
func (t ThreadRates) scaled(f float64, threads int) ThreadRates {
	out := ThreadRates{Threads: threads, IntOps: t.IntOps * f, FloatOps: t.FloatOps * f, BrainOps: t.BrainOps * f, Region: t.Region}
	for _, r := range t.Read {
		out.Read = append(out.Read, ReadPoint{r.Bytes, r.Rate * f})
	}
	return out
}

// read returns the rate at which a working set of so many bytes is read.
func (t *ThreadRates) read(bytes int64) float64 {
	r := t.Read
	i, found := slices.BinarySearchFunc(r, bytes, func(p ReadPoint, n int64) int { return int(max(-1, min(1, p.Bytes-n))) })
	switch {
	case found:
		return r[i].Rate
	case i == 0:
		return r[0].Rate
	case i == len(r):
		return r[i-1].Rate
	}
	f := math.Log(float64(bytes)/float64(r[i-1].Bytes)) / math.Log(float64(r[i].Bytes)/float64(r[i-1].Bytes))
	return r[i-1].Rate + f*(r[i].Rate-r[i-1].Rate)
}

// ownTimes is how many times the size of the cores' own caches a buffer must
// have to be read from behind them.
const ownTimes = 4

// cached returns the part of a working set of so many bytes that is read from
// the cache that the cores share, l2 being the bytes of a core's own: the part
// with which the rate of that cache and the rate of memory make the rate for
// this size. It is 0 where the rates show no such cache.
func (t *ThreadRates) cached(bytes, l2 int64) float64 {
	own := ownTimes * l2 * int64(t.Threads)
	i := slices.IndexFunc(t.Read, func(p ReadPoint) bool { return p.Bytes >= own })
	if own <= 0 || i < 0 {
		return 0
	}
	hit, miss := 1/t.Read[i].Rate, 1/t.Read[len(t.Read)-1].Rate // seconds of a byte
	if hit >= miss {
		return 0
	}
	return min(max((miss-1/t.read(bytes))/(miss-hit), 0), 1)
}
