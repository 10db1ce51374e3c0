package bench

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"ridge/measure/machine"
	"ridge/measure/roofline"
	"ridge/model"
	"ridge/weights/tensor"
)

// Result is one work measured.
type Result struct {
	Build      string
	CPU, Tier  string
	File       string
	Model      string // architecture, size and quantization
	Size       int64  // bytes of packed matrices
	Parameters int64
	Threads    int
	KV         tensor.DType
	Act        model.Act
	Work       roofline.Work
	Time       time.Time
	Load       float64 // seconds that opening the model took

	// Seconds has the duration of each repetition; Speed is tokens per second.
	Seconds []float64
	Speed   Spread
	// StepMin, StepP50 and StepP99 are the least and percentiles of the seconds
	// of a step that generates one token for each sequence; 0 for prompts.
	StepMin, StepP50, StepP99 float64

	// Pauses is how often the garbage collector stopped the process in all
	// repetitions, and PauseMax the most seconds that it did.
	Pauses   int
	PauseMax float64

	Cost  roofline.Cost // of one repetition
	Steps int           // forward passes of one repetition

	// What the machine did between the repetitions: bytes per second of reads
	// from a buffer as large as what a step reads, and integer and float
	// operations per second of products alone; BrainRate is of bfloat16 values.
	// Medians; 0 if not probed, and where the processor has no such products.
	ReadRate, IntRate, FloatRate, BrainRate float64
	// Bound is the time that the work takes at those rates, over the time that
	// it took: the part of the machine's limit that was reached. Limit says
	// which rate that is: "read", "int8", "bf16" or "f32".
	Bound float64
	Limit string
	// Attn is how many operations a second attention does, from how the seconds of a
	// prompt's steps grow with the keys that they read; 0 where too few steps tell.
	Attn float64

	LoadBefore, LoadAfter float64 // load average of the system
	// Share is the part of the processor time of its threads that a repetition
	// got, median: workers that wait for each other watch, and use it, so less
	// than 0.9 means that other programs ran. 0 if the system does not tell.
	Share float64

	Peers   []*PeerResult // those that can do the work, in the order of Options.Peers
	LeftOut []string      // why others are not here

	stepSeconds                 []float64
	chunks                      []chunk // of prompts, of all repetitions
	reads, ints, floats, brains []float64
	shares                      []float64
}

// probe measures the machine's limits once.
func (r *Result) probe(p *machine.Prober, size int, d time.Duration) {
	r.reads = append(r.reads, p.Read(size, d))
	r.floats = append(r.floats, p.Ops(false, d))
	if r.Cost.IntOps > 0 {
		r.ints = append(r.ints, p.Ops(true, d))
	}
	if r.Cost.Brains() > 0 {
		r.brains = append(r.brains, p.BrainOps(d))
	}
}

// finish computes what follows from the measurements.
func (r *Result) finish() {
	r.Speed = SpreadOf(perSecond(r.Work.Tokens(), r.Seconds))
	r.StepMin, r.StepP50, r.StepP99 = quantile(r.stepSeconds, 0), quantile(r.stepSeconds, 0.5), quantile(r.stepSeconds, 0.99)
	r.ReadRate, r.IntRate = quantile(r.reads, 0.5), quantile(r.ints, 0.5)
	r.FloatRate, r.BrainRate = quantile(r.floats, 0.5), quantile(r.brains, 0.5)
	r.Bound, r.Limit = r.bound()
	r.Attn = attention(r.chunks)
	r.Share = quantile(r.shares, 0.5)
	for _, p := range r.Peers {
		p.finish(r)
	}
}

// bound compares the median time with the least time in which the bytes can be
// read and the operations done; the two can overlap.
func (r *Result) bound() (part float64, limit string) {
	t := r.seconds()
	if t == 0 || r.ReadRate == 0 {
		return 0, ""
	}
	over := func(n, rate float64) float64 {
		if rate == 0 {
			return 0
		}
		return n / rate
	}
	read := float64(r.Cost.Bytes()) / r.ReadRate
	ints, floats, brains := over(r.Cost.IntOps, r.IntRate), over(r.Cost.Floats(), r.FloatRate), 0.0
	if r.BrainRate > 0 {
		brains = over(r.Cost.Brains(), r.BrainRate)
	} else { // float32 products in their place
		floats += over(r.Cost.Brains(), r.FloatRate)
	}
	all := ints + floats + brains
	switch {
	case read >= all:
		return read / t, "read"
	case ints >= max(floats, brains):
		return all / t, "int8"
	case brains >= floats:
		return all / t, "bf16"
	}
	return all / t, "f32"
}

// chunk is a step of a prompt.
type chunk struct{ attnOps, seconds float64 }

// leastSteps is how many steps of different depth must be there to tell what attention
// takes, and leastShare the part of the deepest one's seconds that must have grown.
const (
	leastSteps = 4
	leastShare = 0.2
)

// attention returns the operations a second of attention: all else in steps with as many
// rows takes as long at any depth, so seconds grow with the operations of attention
// alone. The slope is the median of those between all pairs of steps (Theil 1950,
// Sen 1968), which a step that something interrupted does not move.
func attention(all []chunk) float64 {
	seconds := map[float64][]float64{}
	for _, c := range all {
		seconds[c.attnOps] = append(seconds[c.attnOps], c.seconds)
	}
	if len(seconds) < leastSteps {
		return 0
	}
	ops := slices.Sorted(maps.Keys(seconds))
	var slopes []float64
	for i, x := range ops {
		for _, y := range ops[:i] {
			slopes = append(slopes, (quantile(seconds[x], 0.5)-quantile(seconds[y], 0.5))/(x-y))
		}
	}
	slope, last := quantile(slopes, 0.5), ops[len(ops)-1]
	if slope <= 0 || slope*last < leastShare*quantile(seconds[last], 0.5) {
		return 0
	}
	return 1 / slope
}

// AttnText is "attention of pp8192: 95 GOP/s, 48% of 198 f32 GOP/s", "" if that is not
// known.
func (r *Result) AttnText() string {
	if r.Attn == 0 {
		return ""
	}
	s := fmt.Sprintf("attention of %s: %.0f GOP/s", r.Work, r.Attn/1e9)
	peak, kind := r.FloatRate, "f32"
	if r.Cost.BrainAttn > r.Cost.AttnOps && r.BrainRate > 0 {
		peak, kind = r.BrainRate, "bf16"
	}
	if peak > 0 {
		s += fmt.Sprintf(", %.0f%% of %.0f %s GOP/s", 100*r.Attn/peak, peak/1e9, kind)
	}
	return s
}

// seconds returns the median duration of a repetition.
func (r *Result) seconds() float64 { return quantile(r.Seconds, 0.5) }

// Bytes returns how many bytes of weights, keys and values were read a second.
func (r *Result) Bytes() float64 { return rate(float64(r.Cost.Bytes()), r.seconds()) }

// Ops returns how many multiplications and additions were done a second.
func (r *Result) Ops() float64 { return rate(r.Cost.Ops(), r.seconds()) }

func rate(n, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return n / seconds
}

// record is a result as llama-bench spells it in JSON, with what it does not
// have after that.
type record struct {
	Build      string    `json:"build_commit"`
	CPU        string    `json:"cpu_info"`
	Backends   string    `json:"backends"`
	File       string    `json:"model_filename"`
	Type       string    `json:"model_type"`
	Size       int64     `json:"model_size"`
	Parameters int64     `json:"model_n_params"`
	Batch      int       `json:"n_batch"`
	UBatch     int       `json:"n_ubatch"`
	Threads    int       `json:"n_threads"`
	TypeK      string    `json:"type_k"`
	TypeV      string    `json:"type_v"`
	Act        string    `json:"activations"`
	Prompt     int       `json:"n_prompt"`
	Gen        int       `json:"n_gen"`
	Depth      int       `json:"n_depth"`
	Time       string    `json:"test_time"`
	AvgNS      int64     `json:"avg_ns"`
	StdNS      int64     `json:"stddev_ns"`
	AvgTS      float64   `json:"avg_ts"`
	StdTS      float64   `json:"stddev_ts"`
	SamplesNS  []int64   `json:"samples_ns"`
	SamplesTS  []float64 `json:"samples_ts"`

	Tier       string        `json:"kernels"`
	Seqs       int           `json:"n_seqs"`
	MedianTS   float64       `json:"median_ts"`
	MinTS      float64       `json:"min_ts"`
	MaxTS      float64       `json:"max_ts"`
	StepMin    float64       `json:"step_min_ms"`
	StepP50    float64       `json:"step_p50_ms"`
	StepP99    float64       `json:"step_p99_ms"`
	Pauses     int           `json:"gc_pauses"`
	PauseMax   float64       `json:"gc_pause_max_ms"`
	LoadTime   float64       `json:"load_s"`
	Cost       roofline.Cost `json:"cost"`
	Bytes      float64       `json:"bytes_per_s"`
	Ops        float64       `json:"ops_per_s"`
	ReadRate   float64       `json:"probe_read_bytes_per_s"`
	IntRate    float64       `json:"probe_int8_ops_per_s"`
	FloatRate  float64       `json:"probe_f32_ops_per_s"`
	BrainRate  float64       `json:"probe_bf16_ops_per_s,omitempty"`
	Bound      float64       `json:"of_bound"`
	Limit      string        `json:"limit"`
	Attn       float64       `json:"attn_ops_per_s"`
	LoadBefore float64       `json:"load_average_before"`
	LoadAfter  float64       `json:"load_average_after"`
	Share      float64       `json:"cpu_share"`
	Shares     []float64     `json:"samples_cpu_share,omitempty"`
	Peers      []*PeerResult `json:"peers,omitempty"`
	LeftOut    []string      `json:"peers_left_out,omitempty"`
}

// MarshalJSON writes the result with llama-bench's names for what llama-bench
// has, so that programs that read one read the other.
func (r *Result) MarshalJSON() ([]byte, error) { return json.Marshal(r.record()) }

func (r *Result) record() record {
	ts := perSecond(r.Work.Tokens(), r.Seconds)
	ns := SpreadOf(r.Seconds)
	rec := record{
		Build: r.Build, CPU: r.CPU, Backends: "CPU", File: r.File, Type: r.Model, Size: r.Size, Parameters: r.Parameters,
		Batch: r.Work.Chunk, UBatch: r.Work.Chunk, Threads: r.Threads, TypeK: kvName(r.KV), TypeV: kvName(r.KV), Act: r.Act.String(),
		Prompt: r.Work.Prompt, Gen: r.Work.Gen, Depth: r.Work.Depth, Time: r.Time.UTC().Format(time.RFC3339),
		AvgNS: int64(1e9 * ns.Mean), StdNS: int64(1e9 * ns.StdDev), AvgTS: r.Speed.Mean, StdTS: r.Speed.StdDev, SamplesTS: ts,
		Tier: r.Tier, Seqs: r.Work.Seqs, MedianTS: r.Speed.Median, MinTS: r.Speed.Min, MaxTS: r.Speed.Max,
		StepMin: 1e3 * r.StepMin, StepP50: 1e3 * r.StepP50, StepP99: 1e3 * r.StepP99, Pauses: r.Pauses, PauseMax: 1e3 * r.PauseMax, LoadTime: r.Load, Cost: r.Cost, Bytes: r.Bytes(), Ops: r.Ops(),
		ReadRate: r.ReadRate, IntRate: r.IntRate, FloatRate: r.FloatRate, BrainRate: r.BrainRate, Bound: r.Bound, Limit: r.Limit, Attn: r.Attn,
		LoadBefore: r.LoadBefore, LoadAfter: r.LoadAfter, Share: r.Share, Shares: r.shares, Peers: r.Peers, LeftOut: r.LeftOut,
	}
	for _, s := range r.Seconds {
		rec.SamplesNS = append(rec.SamplesNS, int64(1e9*s))
	}
	return rec
}
