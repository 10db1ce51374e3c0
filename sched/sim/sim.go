// Package sim replays workloads against a scheduler and a simple machine, with
// a clock of its own: what takes a day on a server takes a second. The
// scheduler and the bookkeeping of memory are the real ones; only the model is
// replaced, by a formula for the time of a step.
package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"ridge/kvcache"
	"ridge/sched"
	"ridge/weights/tensor"
)

// Machine says how long steps take.
type Machine struct {
	Step   time.Duration // each step: the weights are read once
	Row    time.Duration // each token
	Output time.Duration // each row of logits
	Key    time.Duration // each thousand keys that attention reads
	Swap   time.Duration // each token written out and read back
	Noise  float64       // standard deviation of a factor, log-normal
}

// Small is about what a model of 135M parameters does on two cores.
var Small = Machine{Step: 8 * time.Millisecond, Row: 600 * time.Microsecond, Output: 300 * time.Microsecond, Key: 20 * time.Microsecond, Swap: 12 * time.Microsecond}

// Time returns how long a step takes without noise.
func (m Machine) Time(s sched.Shape) time.Duration {
	return m.Step + time.Duration(s.Rows)*m.Row + time.Duration(s.Outputs)*m.Output + time.Duration(s.Context)*m.Key/1000
}

// Job is a request of a workload.
type Job struct {
	Arrive         time.Duration
	Prompt, Answer int
	MaxNew         int // 0 means twice the answer
	Tenant         string
	Priority       int
	Deadline       time.Duration // for the first token, after arrival; 0 for none
}

// Options says what a run does.
type Options struct {
	Machine    Machine
	Pages      int // of 16 tokens; 0 means 4096
	Contiguous int // tokens that each sequence reserves; 0 for paged memory
	SwapBytes  int64
	Until      time.Duration // stop then; 0 means when all jobs are done
	Seed       uint64
	Check      bool // verify all books after each step

	// Learned steps of the cost model before the run starts.
	Calibrate bool
	// Each, if set, is called after each step.
	Each func(r *Run)
	// Factor, if set, is of a step's time, beyond what Machine says.
	Factor func(p *sched.Plan) float64
}

// Result is what became of a job; times are durations since its arrival.
type Result struct {
	Job
	Done   bool
	Shed   bool
	First  time.Duration // to the first token
	Total  time.Duration // to the last
	MaxGap time.Duration // longest time between two tokens
	Tokens int
}

// Run is a run of a workload.
type Run struct {
	Sched   *sched.Scheduler
	Now     time.Duration
	Results []Result
	Busy    time.Duration // time in steps
	Gaps    []time.Duration
	Steps   []int // tokens of each step
	Waste   int   // mean, in thousandths
	Served  map[string]int64

	opts   Options
	pool   *kvcache.Pool
	mem    sched.Memory
	space  *sched.Contiguous
	rng    *rand.Rand
	jobs   []*live
	next   int
	seqs   map[uint64]*live
	wasted int64
}

// live is a job that was started.
type live struct {
	sched.Seq
	r    *Result
	last time.Duration
}

// Do runs jobs, which must be in the order of their arrival, through a
// scheduler with the given configuration.
func Do(cfg sched.Config, jobs []Job, o Options) (*Run, error) {
	if o.Pages == 0 {
		o.Pages = 4096
	}
	pool, err := kvcache.New(kvcache.Config{Layers: []kvcache.LayerShape{{Heads: 1, KDim: 1, VDim: 1}}, PageTokens: 16, DType: tensor.F16, MaxBytes: int64(o.Pages) * 128})
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	r := &Run{opts: o, pool: pool, rng: rand.New(rand.NewPCG(o.Seed, 7)), seqs: map[uint64]*live{}, Served: map[string]int64{}}
	paged := sched.Paged{Pool: pool}
	if o.SwapBytes > 0 {
		paged.Store = &sched.RAM{Limit: o.SwapBytes}
	}
	r.mem = &paged
	if o.Contiguous > 0 {
		r.space = &sched.Contiguous{Paged: paged, Space: kvcache.NewContiguous(o.Pages * 16), Length: func(*sched.Seq) int { return o.Contiguous }}
		r.mem = r.space
	}
	if r.Sched, err = sched.New(cfg, r.mem); err != nil {
		return nil, err
	}
	if o.Calibrate {
		for _, s := range sched.Shapes(r.Sched.Config().MaxTokens, 4096) {
			shape := sched.Shape{Rows: s.N, Outputs: 1, Context: int64(s.N)*int64(s.Start) + int64(s.N)*int64(s.N+1)/2}
			for range 2 {
				r.Sched.Cost().Observe(shape, r.time(shape))
			}
		}
	}
	r.Results = make([]Result, len(jobs))
	for i, j := range jobs {
		if j.MaxNew == 0 {
			j.MaxNew = 2 * j.Answer
		}
		r.Results[i].Job = j
		l := &live{r: &r.Results[i]}
		l.Seq = sched.Seq{ID: uint64(i), Tenant: j.Tenant, Priority: j.Priority, Prompt: j.Prompt, MaxNew: j.MaxNew, Arrived: j.Arrive}
		if j.Deadline > 0 {
			l.Deadline = j.Arrive + j.Deadline
		}
		r.jobs = append(r.jobs, l)
		r.seqs[uint64(i)] = l
	}
	if err := r.loop(); err != nil {
		return nil, err
	}
	r.Waste = int(r.wasted / max(int64(len(r.Steps)), 1))
	return r, nil
}

// time returns how long a step takes.
func (r *Run) time(s sched.Shape) time.Duration {
	t := r.opts.Machine.Time(s)
	if n := r.opts.Machine.Noise; n > 0 {
		t = time.Duration(float64(t) * math.Exp(n*r.rng.NormFloat64()))
	}
	return t
}

func (r *Run) loop() error {
	for r.next < len(r.jobs) || !r.Sched.Idle() {
		if r.opts.Until > 0 && r.Now >= r.opts.Until {
			return nil
		}
		for ; r.next < len(r.jobs) && r.jobs[r.next].Arrived <= r.Now; r.next++ {
			if err := r.Sched.Add(&r.jobs[r.next].Seq, r.Now); err != nil {
				return err
			}
		}
		if err := r.step(); err != nil {
			return err
		}
	}
	if free := r.pool.Stats().Free; r.opts.Until == 0 && free != r.pool.Stats().Pages {
		return fmt.Errorf("sim: %d of %d pages are free at the end", free, r.pool.Stats().Pages)
	}
	return nil
}

// step plans a step, lets it take its time, and books it.
func (r *Run) step() error {
	p := r.Sched.Next(r.Now)
	for _, q := range p.Shed {
		r.seqs[q.ID].r.Shed = true
	}
	if len(p.Runs) == 0 {
		at := p.Wake
		if r.next < len(r.jobs) && (at == 0 || r.jobs[r.next].Arrived < at) {
			at = r.jobs[r.next].Arrived
		}
		if at <= r.Now && !r.Sched.Idle() {
			return fmt.Errorf("sim: at %v nothing can run: %+v", r.Now, r.Sched.Stats())
		}
		r.Sched.Done(0, max(at, r.Now))
		r.Now = max(at, r.Now)
		return nil
	}
	for i := range p.Runs {
		if err := r.compute(&p.Runs[i]); err != nil {
			return err
		}
	}
	elapsed := r.time(p.Shape)
	if r.opts.Factor != nil {
		elapsed = time.Duration(float64(elapsed) * r.opts.Factor(p))
	}
	for _, v := range p.Preempted {
		if v.Swapped {
			elapsed += time.Duration(v.Seq.Computed) * r.opts.Machine.Swap
		}
	}
	r.Now += elapsed
	r.Busy += elapsed
	r.Steps = append(r.Steps, p.Shape.Rows)
	for i := range p.Runs {
		r.emit(&p.Runs[i])
	}
	r.usage()
	r.Sched.Done(elapsed, r.Now)
	if r.opts.Each != nil {
		r.opts.Each(r)
	}
	if r.opts.Check {
		return r.check()
	}
	return nil
}

// compute takes the memory of a run.
func (r *Run) compute(run *sched.Run) error {
	q := run.Seq
	if q.KV.Len() != q.Computed || run.Start != q.Computed || run.N < 1 || run.Start+run.N-run.Draft > q.Wanted {
		return fmt.Errorf("sim: sequence %d: tokens %d to %d planned, %d in memory, %d wanted", q.ID, run.Start, run.Start+run.N, q.KV.Len(), q.Wanted)
	}
	if err := r.pool.Grow(q.KV, run.N); err != nil {
		return fmt.Errorf("sim: the plan does not fit: %w", err)
	}
	return nil
}

// emit ends a row: a new token, if it wanted logits.
func (r *Run) emit(run *sched.Run) {
	l := r.seqs[run.Seq.ID]
	prompt := max(min(run.N, l.Prompt-run.Start), 0)
	r.Served[l.Tenant] += int64(prompt)
	if run.Outputs == 0 {
		return
	}
	run.New = 1
	l.r.Tokens++
	r.Served[l.Tenant] += 2
	if l.r.Tokens == 1 {
		l.r.First = r.Now - l.Arrived
	} else {
		gap := r.Now - l.last
		l.r.MaxGap = max(l.r.MaxGap, gap)
		r.Gaps = append(r.Gaps, gap)
	}
	l.last = r.Now
	if l.r.Tokens == l.r.Answer {
		run.Finished = true
		l.r.Done = true
		l.r.Total = r.Now - l.Arrived
	}
}

// usage adds to the measured waste of memory.
func (r *Run) usage() {
	u := r.pool.Usage()
	if r.space != nil {
		u = r.space.Usage(r.Sched.RunningSeqs(), r.opts.Contiguous)
	}
	r.wasted += int64(u.Waste())
}

func (r *Run) check() error {
	if err := r.Sched.Check(); err != nil {
		return err
	}
	var held []*kvcache.Seq
	for _, l := range r.jobs {
		if l.KV != nil {
			held = append(held, l.KV)
		}
		if (l.KV != nil) != l.Running() {
			return fmt.Errorf("sim: sequence %d has memory: %v, runs: %v", l.ID, l.KV != nil, l.Running())
		}
	}
	return r.pool.Check(held...)
}

// Tokens returns the tokens of all answers so far.
func (r *Run) Tokens() int {
	n := 0
	for i := range r.Results {
		n += r.Results[i].Tokens
	}
	return n
}

// Throughput returns answer tokens per second, over the whole run.
func (r *Run) Throughput() float64 { return float64(r.Tokens()) / r.Now.Seconds() }

// Mean returns the mean of a time over the jobs that want selects and that are
// done; nil selects all.
func (r *Run) Mean(of func(*Result) time.Duration, want func(*Result) bool) time.Duration {
	var sum time.Duration
	n := 0
	for i := range r.Results {
		if x := &r.Results[i]; x.Done && (want == nil || want(x)) {
			sum += of(x)
			n++
		}
	}
	return sum / time.Duration(max(n, 1))
}

// JCT is the time a job takes to complete.
func JCT(x *Result) time.Duration { return x.Total }

// TTFT is the time to a job's first token.
func TTFT(x *Result) time.Duration { return x.First }

// Percentile returns a percentile of d.
func Percentile(d []time.Duration, percent float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Clone(d)
	slices.Sort(d)
	return d[min(int(float64(len(d))*percent/100), len(d)-1)]
}
