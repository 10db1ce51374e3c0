package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ridge/sched"
)

func preset(t testing.TB, name string, change func(*sched.Config)) sched.Config {
	t.Helper()
	c, err := sched.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&c)
	}
	return c
}

func do(t testing.TB, cfg sched.Config, jobs []Job, o Options) *Run {
	t.Helper()
	if o.Machine == (Machine{}) {
		o.Machine = Small
	}
	r, err := Do(cfg, jobs, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every preset finishes every job of a hard workload, with all books right
// after each step: small memory, so that sequences are preempted all the time.
func TestPresetsFinish(t *testing.T) {
	jobs := ShareGPT(60, 20, 1)
	for _, name := range sched.Presets() {
		t.Run(name, func(t *testing.T) {
			o := Options{Pages: 190, Check: true}
			if name == "static" || name == "orca" {
				o.Contiguous, o.Pages = 3072, 640
			}
			if name == "ridge" {
				o.SwapBytes = 1 << 16
			}
			r := do(t, preset(t, name, nil), jobs, o)
			for i, x := range r.Results {
				if !x.Done || x.Tokens != x.Answer {
					t.Errorf("job %d: %+v", i, x)
				}
			}
			t.Logf("%v, %.0f tokens/s, TTFT %v, JCT %v, %+v", r.Now, r.Throughput(), r.Mean(TTFT, nil), r.Mean(JCT, nil), r.Sched.Stats())
		})
	}
}

// Continuous batching gains when lengths vary, and nothing when they do not.
func TestContinuousBeatsStatic(t *testing.T) {
	gpu := Machine{Step: 20 * time.Millisecond, Row: 100 * time.Microsecond} // bound by the weights
	gain := func(answer Lengths) float64 {
		jobs := Load{Jobs: 200, Seed: 3, Prompt: Lengths{Median: 32}, Answer: answer}.Make()
		limit := func(c *sched.Config) { c.MaxSeqs, c.BatchWait = 8, 0 }
		static := do(t, preset(t, "static", limit), jobs, Options{Machine: gpu})
		orca := do(t, preset(t, "orca", limit), jobs, Options{Machine: gpu})
		st := static.Sched.Stats()
		t.Logf("static %.0f tokens/s, %d%% of its slots idle; continuous %.0f tokens/s", static.Throughput(), 100*st.IdleSlots/st.SlotSteps, orca.Throughput())
		return orca.Throughput() / static.Throughput()
	}
	if g := gain(Lengths{Median: 40, Sigma: 1.5, Max: 1024}); g < 2 {
		t.Errorf("gain of %.2f on varied lengths, want at least 2", g)
	}
	if g := gain(Lengths{Median: 100}); g < 0.95 || g > 1.1 {
		t.Errorf("gain of %.2f on equal lengths, want about 1", g)
	}
}

// The ladder: paged memory admits more sequences than reserved memory, and
// continuous batching uses them.
func TestLadder(t *testing.T) {
	jobs := ShareGPT(150, 0, 5)
	throughput := map[string]float64{}
	for _, name := range []string{"static", "orca", "vllm", "sarathi", "fastgen", "lightllm", "ridge"} {
		o := Options{Pages: 640}
		if name == "static" || name == "orca" {
			o.Contiguous = 2048 + 1024
		}
		r := do(t, preset(t, name, nil), jobs, o)
		throughput[name] = r.Throughput()
		t.Logf("%-9s %4.0f tokens/s, JCT %5.1fs, p99 between tokens %4dms, waste %2d%%, %d preempted", name, r.Throughput(), r.Mean(JCT, nil).Seconds(),
			Percentile(r.Gaps, 99).Milliseconds(), r.Waste/10, r.Sched.Stats().Recomputes)
	}
	if throughput["static"] >= throughput["orca"] || throughput["orca"] >= throughput["vllm"] {
		t.Errorf("tokens/s: %v", throughput)
	}
}

// While a prompt of 8000 tokens enters, running answers stall under
// prefill-first and keep their target with chunks.
func TestLongPromptDoesNotStall(t *testing.T) {
	jobs := Load{Jobs: 8, Seed: 1, Prompt: Lengths{Median: 32}, Answer: Lengths{Median: 400}}.Make()
	jobs = Merge(jobs, []Job{{Arrive: 2 * time.Second, Prompt: 8000, Answer: 10}})
	const target = 60 * time.Millisecond
	noisy := Small
	noisy.Noise = 0.05
	p99 := map[string]time.Duration{}
	for name, cfg := range map[string]sched.Config{
		"vllm":    preset(t, "vllm", nil),
		"sarathi": preset(t, "sarathi", nil),
		"ridge":   preset(t, "ridge", func(c *sched.Config) { c.ITLTarget = target }),
	} {
		r := do(t, cfg, jobs, Options{Machine: noisy, Calibrate: true, Seed: 4})
		p99[name] = Percentile(r.Gaps, 99.9)
		e := r.Sched.Cost().Accuracy().Mean
		t.Logf("%-8s p99.9 between tokens %v, long prompt's first token after %v, error of predicted times %.1f%%", name, p99[name], r.Results[len(jobs)-1].First, 100*e)
		if name == "ridge" && e > 0.1 {
			t.Errorf("predictions are off by %.1f%%", 100*e)
		}
	}
	if p99["ridge"] > target*5/4 || p99["vllm"] < 10*p99["ridge"] || p99["sarathi"] < p99["ridge"] {
		t.Errorf("%v, the target is %v", p99, target)
	}
}

// Where answers take all the time that the target leaves, prompts still come to
// their end in a small multiple of what they would take alone, one after the
// other, and answers have their target as long as no prompt is late.
func TestPromptsProgressUnderTarget(t *testing.T) {
	const alone = 5600 * time.Millisecond // of 8000 tokens
	for seed, c := range []struct {
		answers int
		target  time.Duration
	}{{50, 60 * time.Millisecond}, {55, 60 * time.Millisecond}, {20, 28 * time.Millisecond}, {3, 15 * time.Millisecond}} {
		jobs := Load{Jobs: c.answers, Prompt: Lengths{Median: 32}, Answer: Lengths{Median: 3000}}.Make()
		const came = 5 * time.Second
		jobs = Merge(jobs, []Job{{Arrive: came, Prompt: 8000, Answer: 2}, {Arrive: came, Prompt: 4000, Answer: 2}})
		cfg := preset(t, "ridge", func(c_ *sched.Config) { c_.ITLTarget = c.target })
		cfg.MaxSeqs = c.answers + 2
		early := 0 // tokens whose times are those of before any prompt was late
		r := do(t, cfg, jobs, Options{Calibrate: true, Seed: uint64(seed), Until: 2 * time.Minute, Each: func(r *Run) {
			if r.Now < came+alone {
				early = len(r.Gaps)
			}
		}})
		long, next := &r.Results[c.answers], &r.Results[c.answers+1]
		t.Logf("%d answers at %v: 8000 tokens after %v, 4000 behind them after %v; p99 between tokens %v before they are late, %v in all", c.answers, c.target,
			long.First, next.First, Percentile(r.Gaps[:early], 99), Percentile(r.Gaps, 100))
		if long.First == 0 || long.First > 4*alone || next.First == 0 || next.First > 6*alone {
			t.Errorf("%d answers at %v: the prompts took %v and %v, alone it would be %v and half of it", c.answers, c.target, long.First, next.First, alone)
		}
		// 16 tokens of a prompt are in each step, be there time for them or not.
		if p := Percentile(r.Gaps[:early], 99); p > c.target+20*time.Millisecond {
			t.Errorf("%d answers at %v: p99 between tokens %v while no prompt was late", c.answers, c.target, p)
		}
		if p := Percentile(r.Gaps[early:], 100); p > 5*c.target {
			t.Errorf("%d answers at %v: %v between tokens", c.answers, c.target, p)
		}
	}
}

// Decode-first lets new prompts wait, prefill-first lets answers wait.
func TestDecodeFirstAgainstPrefillFirst(t *testing.T) {
	jobs := Load{Jobs: 150, Rate: 3, Seed: 2, Prompt: Lengths{Median: 300, Sigma: 0.5}, Answer: Lengths{Median: 60, Sigma: 0.5}}.Make()
	run := func(o sched.Order) *Run {
		return do(t, sched.Config{Order: o, Split: true, MaxSeqs: 24, MaxTokens: 64}, jobs, Options{})
	}
	d, p := run(sched.DecodeFirst), run(sched.PrefillFirst)
	t.Logf("decode first: first token %v, p99 between tokens %v; prefill first: %v, %v", d.Mean(TTFT, nil), Percentile(d.Gaps, 99), p.Mean(TTFT, nil), Percentile(p.Gaps, 99))
	if Percentile(d.Gaps, 99)*2 > Percentile(p.Gaps, 99) {
		t.Error("prefill-first does not stall answers")
	}
	if p.Mean(TTFT, nil) > d.Mean(TTFT, nil) {
		t.Error("decode-first does not delay prompts")
	}
}

// SplitFuse: steps have about the same number of tokens.
func TestFastGenStepsAreEven(t *testing.T) {
	jobs := Load{Jobs: 400, Seed: 2, Prompt: Lengths{Median: 400, Sigma: 1, Max: 3000}, Answer: Lengths{Median: 30, Sigma: 0.5}}.Make()
	spread := func(name string) float64 {
		r := do(t, preset(t, name, func(c *sched.Config) { c.MaxSeqs, c.MaxTokens = 64, 768 }), jobs, Options{Pages: 8192})
		steps := r.Steps[:len(r.Steps)/2] // until arrivals end
		mean, square := 0.0, 0.0
		for _, n := range steps {
			mean += float64(n)
		}
		mean /= float64(len(steps))
		for _, n := range steps {
			square += (float64(n) - mean) * (float64(n) - mean)
		}
		return square / float64(len(steps)) / mean / mean
	}
	even, odd := spread("fastgen"), spread("vllm")
	t.Logf("variance of a step's tokens over the mean squared: %.4f split and fused, %.4f whole prompts", even, odd)
	if even > 0.05 || odd < 5*even {
		t.Errorf("variance %.4f and %.4f", even, odd)
	}
}

// Admission by the peak: nobody is preempted where optimism preempts.
func TestPeakAdmission(t *testing.T) {
	jobs := ShareGPT(150, 0, 9)
	r := do(t, preset(t, "lightllm", nil), jobs, Options{Pages: 300})
	if n := r.Sched.Stats().Recomputes; n != 0 {
		t.Errorf("%d sequences preempted", n)
	}
	opt := do(t, preset(t, "fastgen", nil), jobs, Options{Pages: 300})
	exp := do(t, preset(t, "lightllm", func(c *sched.Config) { c.Admission = sched.PeakExpected }), jobs, Options{Pages: 300})
	for name, r := range map[string]*Run{"peak": r, "optimistic": opt, "expected peak": exp} {
		t.Logf("%-13s %.0f tokens/s, %d preempted, %d tokens lost", name, r.Throughput(), r.Sched.Stats().Recomputes, r.Sched.Stats().LostTokens)
	}
	if opt.Sched.Stats().Recomputes == 0 {
		t.Error("optimistic admission preempted nobody: the memory is too large for this test")
	}
}

// The peak is exact enough: whatever the lengths, nobody is preempted.
func TestPeakAdmissionNeverPreempts(t *testing.T) {
	for seed := range uint64(40) {
		jobs := Load{Jobs: 60, Rate: 20, Seed: seed, Prompt: Lengths{Median: 20, Sigma: 1.2, Max: 150}, Answer: Lengths{Median: 30, Sigma: 1.2, Max: 150}}.Make()
		for i := range jobs {
			jobs[i].MaxNew = jobs[i].Answer
		}
		r := do(t, preset(t, "lightllm", nil), jobs, Options{Pages: 20 + int(seed)})
		if st := r.Sched.Stats(); st.Recomputes != 0 {
			t.Errorf("seed %d: %+v", seed, st)
		}
	}
}

// Swapping and recomputing both finish; what was written out is not lost.
func TestSwap(t *testing.T) {
	jobs := ShareGPT(80, 0, 9)
	for _, c := range []struct {
		r    sched.Recovery
		room int64
	}{{sched.Recompute, 0}, {sched.Swap, 1 << 20}, {sched.Swap, 4000}, {sched.Cheaper, 1 << 20}} {
		r := do(t, preset(t, "fastgen", func(cfg *sched.Config) { cfg.Recovery = c.r }), jobs, Options{Pages: 200, SwapBytes: c.room, Check: true, Calibrate: true})
		st := r.Sched.Stats()
		t.Logf("recovery %d with %d bytes: %v, %d recomputed with %d tokens, %d swapped", c.r, c.room, r.Now, st.Recomputes, st.LostTokens, st.SwapOuts)
		if st.SwapIns != st.SwapOuts || st.Swapped != 0 || c.room == 1<<20 && st.Recomputes > st.SwapOuts || c.room == 4000 && (st.SwapOuts == 0 || st.Recomputes == 0) {
			t.Errorf("recovery %d with %d bytes: %+v", c.r, c.room, st)
		}
	}
}

// Random configurations and workloads: nothing is lost, no plan exceeds the
// memory, and the books are right after each step.
func TestRandomConfigurations(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		c := sched.Config{
			MaxSeqs: 1 + rng.IntN(12), MaxTokens: 16 + rng.IntN(100), Order: sched.Order(rng.IntN(3)),
			Apart: rng.IntN(3) == 0, Split: rng.IntN(3) > 0, Static: rng.IntN(8) == 0,
			Admission: sched.Admission(rng.IntN(3)), Watermark: rng.IntN(50), Recovery: sched.Recovery(rng.IntN(3)),
		}
		c.Apart = c.Apart && c.Order != sched.ByRank
		if c.Split {
			c.Chunk, c.Quantum = rng.IntN(40), rng.IntN(20)
			c.ITLTarget = time.Duration(rng.IntN(2)*40) * time.Millisecond
		}
		if err := c.UsePolicy(sched.Policies()[rng.IntN(6)]); err != nil {
			t.Fatal(err)
		}
		c.Preemptive = rng.IntN(2) == 0
		jobs := Load{Jobs: 40, Rate: []float64{0, 1, 10}[rng.IntN(3)], Seed: seed, Prompt: Lengths{Median: 20, Sigma: 1.5, Max: 150}, Answer: Lengths{Median: 20, Sigma: 1, Max: 90}}.Make()
		for i := range jobs {
			jobs[i].Tenant, jobs[i].Priority = fmt.Sprint(rng.IntN(3)), rng.IntN(3)
		}
		o := Options{Machine: Small, Pages: 22 + rng.IntN(60), Check: true, Seed: seed, SwapBytes: int64(rng.IntN(3) * 5000), Calibrate: rng.IntN(2) == 0}
		if rng.IntN(4) == 0 {
			o.Contiguous, o.Pages = 340, 66+rng.IntN(60)
		}
		o.Machine.Noise = 0.1
		r, err := Do(c, jobs, o)
		if err != nil {
			t.Fatalf("seed %d: %v\n%+v", seed, err, c)
		}
		for i, x := range r.Results {
			if !x.Done || x.Tokens != x.Answer {
				t.Errorf("seed %d: job %d: %+v", seed, i, x)
			}
		}
		if i := slices.IndexFunc(r.Steps, func(n int) bool { return n > max(c.MaxTokens, 150+90) }); i >= 0 || c.Split && slices.Max(r.Steps) > c.MaxTokens {
			t.Errorf("seed %d: a step of %d tokens, the budget is %d", seed, slices.Max(r.Steps), c.MaxTokens)
		}
	}
}
