package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"ridge/sched"
)

// with returns a configuration for a policy, by name.
func with(name string, maxSeqs int) sched.Config {
	c := sched.Config{Split: true, MaxSeqs: maxSeqs, MaxTokens: 512}
	if err := c.UsePolicy(name); err != nil {
		panic(err)
	}
	return c
}

// gap runs two clients and returns the largest difference between what they are
// served while both have requests waiting.
func gap(t *testing.T, name string, pages int, until time.Duration, one, two []Job) int64 {
	t.Helper()
	var worst int64
	start, from := false, int64(0)
	r := do(t, with(name, 16), Merge(one, two), Options{Pages: pages, Until: until, Each: func(r *Run) {
		waiting := map[string]bool{}
		for _, l := range r.jobs[:r.next] {
			if !l.Running() && !l.r.Done {
				waiting[l.Tenant] = true
			}
		}
		d := r.Served["one"] - r.Served["two"]
		if both := waiting["one"] && waiting["two"]; !both {
			start = false
		} else if !start {
			start, from = true, d
		}
		if start {
			worst = max(worst, d-from, from-d)
		}
	}})
	t.Logf("%-5s served %v, largest gap %d", name, r.Served, worst)
	return worst
}

// While two clients both have requests waiting, VTC serves them alike, within
// the bound of its paper; first come first served serves who asks more.
func TestVTCBoundsTheGap(t *testing.T) {
	const pages = 256
	// Twice the larger of the longest prompt and two for each token that the
	// memory holds.
	const bound = 2 * max(256, 2*pages*16)
	even := Lengths{Median: 60, Sigma: 0.5, Max: 256}
	short, long := Lengths{Median: 10, Sigma: 0.5, Max: 256}, Lengths{Median: 120, Sigma: 0.5, Max: 256}
	for name, loads := range map[string][2]Load{
		"more requests":        {{Jobs: 600, Rate: 12, Prompt: even, Answer: even}, {Jobs: 200, Rate: 4, Prompt: even, Answer: even}},
		"longer answers":       {{Jobs: 300, Rate: 6, Prompt: even, Answer: long}, {Jobs: 600, Rate: 9, Prompt: even, Answer: short}},
		"prompts, not answers": {{Jobs: 600, Rate: 9, Prompt: long, Answer: short}, {Jobs: 300, Rate: 6, Prompt: short, Answer: long}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				one, two := loads[0], loads[1]
				one.Tenant, one.Seed, two.Tenant, two.Seed = "one", seed, "two", seed+100
				if fair := gap(t, "vtc", pages, 40*time.Second, one.Make(), two.Make()); fair > bound/4 {
					t.Errorf("a gap of %d, the bound is %d", fair, bound)
				}
			}
			one, two := loads[0], loads[1]
			one.Tenant, two.Tenant = "one", "two"
			if g := gap(t, "fcfs", pages, 40*time.Second, one.Make(), two.Make()); name == "more requests" && g <= bound {
				t.Errorf("in order of arrival the gap is only %d: this test shows nothing", g)
			}
		})
	}
}

// Who comes back after a pause has not saved up.
func TestVTCForgetsPauses(t *testing.T) {
	l := Lengths{Median: 60, Sigma: 0.3}
	one := Load{Jobs: 600, Rate: 12, Seed: 1, Tenant: "one", Prompt: l, Answer: l}.Make()
	two := Load{Jobs: 1, Tenant: "two", Prompt: l, Answer: l}.Make()
	for _, j := range (Load{Jobs: 400, Rate: 12, Seed: 2, Tenant: "two", Prompt: l, Answer: l}).Make() {
		j.Arrive += 25 * time.Second
		two = append(two, j)
	}
	if g := gap(t, "vtc", 256, 50*time.Second, one, two); g > 2000 {
		t.Errorf("a gap of %d after a pause", g)
	}
}

// A polite client that asks for less than its share waits little under VTC,
// whatever the other does.
func TestVTCProtectsThePolite(t *testing.T) {
	flood := Load{Jobs: 400, Rate: 20, Seed: 1, Tenant: "flood", Prompt: Lengths{Median: 60}, Answer: Lengths{Median: 60}}
	polite := Load{Jobs: 20, Rate: 0.5, Seed: 2, Tenant: "polite", Prompt: Lengths{Median: 60}, Answer: Lengths{Median: 60}}
	wait := map[string]time.Duration{}
	for _, name := range []string{"fcfs", "vtc"} {
		r := do(t, with(name, 16), Merge(flood.Make(), polite.Make()), Options{})
		wait[name] = r.Mean(TTFT, func(x *Result) bool { return x.Tenant == "polite" })
	}
	t.Logf("mean time to the first token of the polite client: %v", wait)
	if wait["vtc"]*10 > wait["fcfs"] {
		t.Errorf("%v", wait)
	}
}

// A tenant with twice the weight is served twice as much.
func TestVTCWeights(t *testing.T) {
	var jobs []Job
	for i := range 300 {
		jobs = append(jobs, Job{Prompt: 50, Answer: 50, Tenant: []string{"one", "two"}[i%2]})
	}
	var r *Run
	cfg := with("vtc", 16)
	cfg.Policy = heavier{cfg.Policy, "two"}
	r = do(t, cfg, jobs, Options{Until: 20 * time.Second})
	ratio := float64(r.Served["two"]) / float64(r.Served["one"])
	if ratio < 1.7 || ratio > 2.3 {
		t.Errorf("served %v, a ratio of %.2f, want 2", r.Served, ratio)
	}
}

// heavier gives one tenant a weight of 2.
type heavier struct {
	sched.Policy
	tenant string
}

func (h heavier) Arrive(q *sched.Seq, now time.Duration) {
	if q.Tenant == h.tenant {
		q.Weight = 2
	}
	h.Policy.Arrive(q, now)
}

// bimodal has many short answers and a few very long ones.
func bimodal(seed uint64) []Job {
	return Load{Jobs: 200, Rate: 6, Seed: seed, Prompt: Lengths{Median: 40, Sigma: 0.5}, Answer: Lengths{Median: 20, Sigma: 0.3, Long: 600, LongEvery: 8}}.Make()
}

// MLFQ does not know the lengths, and its jobs are done sooner than in order of
// arrival, where short ones wait behind long ones.
func TestMLFQLowersCompletionTimes(t *testing.T) {
	run := func(name string) *Run {
		cfg := with(name, 8)
		return do(t, cfg, bimodal(4), Options{Calibrate: true})
	}
	fcfs, mlfq := run("fcfs"), run("mlfq")
	short := func(x *Result) bool { return x.Answer < 600 }
	for name, r := range map[string]*Run{"fcfs": fcfs, "mlfq": mlfq} {
		t.Logf("%s: mean completion %v, short jobs %v, worst %v, blocked for slots %v", name, r.Mean(JCT, nil), r.Mean(JCT, short), worst(r), r.Sched.Stats().BlockedSlots)
	}
	if mlfq.Mean(JCT, nil)*5 > fcfs.Mean(JCT, nil)*4 {
		t.Errorf("mean completion %v, in order of arrival %v", mlfq.Mean(JCT, nil), fcfs.Mean(JCT, nil))
	}
	if mlfq.Mean(JCT, short)*4 > fcfs.Mean(JCT, short) {
		t.Errorf("short jobs: %v, in order of arrival %v", mlfq.Mean(JCT, short), fcfs.Mean(JCT, short))
	}
}

func worst(r *Run) time.Duration {
	var w time.Duration
	for i := range r.Results {
		w = max(w, r.Results[i].Total)
	}
	return w
}

// Shortest first with oracle, learned and noisy lengths, and without any.
func TestShortestFirst(t *testing.T) {
	// Who has a long answer can be told from the prompt.
	jobs := bimodal(6)
	for i := range jobs {
		if jobs[i].Answer == 600 {
			jobs[i].Prompt = 200
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	mean := map[string]time.Duration{}
	for name, expect := range map[string]func(*sched.Seq) int{
		"none":    func(*sched.Seq) int { return 100 },
		"oracle":  func(q *sched.Seq) int { return jobs[q.ID].Answer },
		"noisy":   func(q *sched.Seq) int { return int(float64(jobs[q.ID].Answer) * (0.3 + 3*rng.Float64())) },
		"learned": nil,
	} {
		cfg := with("shortest", 8)
		if expect != nil {
			cfg.Policy = sched.ShortestFirst(expect, 0, 0)
		}
		r := do(t, cfg, jobs, Options{})
		mean[name] = r.Mean(JCT, nil)
		if name == "learned" {
			deciles, n, off := r.Sched.Lengths().Calibration()
			t.Logf("lengths of %d answers: %d tokens off, by tenths of what was expected: %v", n, off, deciles)
		}
	}
	t.Logf("mean completion: %v", mean)
	if mean["oracle"] > mean["none"]*2/3 || mean["learned"] > mean["none"]*4/5 || mean["noisy"] > mean["none"] {
		t.Errorf("mean completion: %v", mean)
	}
}

// A stream that each policy prefers to the victim, faster than the machine can
// serve it, does not keep the victim waiting for ever. Without ageing it does.
func TestNobodyStarves(t *testing.T) {
	stream := Load{Jobs: 1600, Rate: 18, Seed: 3, Tenant: "stream", Prompt: Lengths{Median: 30, Sigma: 0.3}, Answer: Lengths{Median: 24, Sigma: 0.3}}.Make()
	for i := range stream {
		stream[i].Deadline = 100 * time.Millisecond
	}
	jobs := Merge(stream, []Job{{Arrive: 5 * time.Second, Prompt: 700, Answer: 200, Priority: 3, Tenant: "victim"}})
	took := func(cfg sched.Config) (first, total, all time.Duration) {
		r := do(t, cfg, jobs, Options{Calibrate: true})
		for _, x := range r.Results {
			if x.Tenant == "victim" {
				first, total = x.First, x.Total
			}
		}
		return first, total, r.Now
	}
	for _, name := range sched.Policies() {
		for _, order := range []sched.Order{sched.DecodeFirst, sched.PrefillFirst, sched.ByRank} {
			cfg := with(name, 8)
			cfg.Order = order
			first, total, all := took(cfg)
			t.Logf("%-8s order %d: the victim starts after %4.1fs and ends after %4.1fs of %3.0fs", name, order, first.Seconds(), total.Seconds(), all.Seconds())
			if total > 75*time.Second || all < 90*time.Second {
				t.Errorf("%s, order %d: the victim took %v of %v", name, order, total, all)
			}
		}
	}
	for name, p := range map[string]sched.Policy{"priority": sched.Priority(time.Hour), "mlfq": sched.MLFQ(0, time.Hour, nil, 0), "shortest": sched.ShortestFirst(func(*sched.Seq) int { return 200 }, time.Hour, 0)} {
		cfg := with(name, 8)
		cfg.Policy = p
		if _, total, all := took(cfg); total < 80*time.Second {
			t.Errorf("%s without ageing: the victim took only %v of %v: this test shows nothing", name, total, all)
		}
	}
}

// At twice the load that can be served, dropping those that are late leaves
// time for those that are not.
func TestDeadlinesAndShedding(t *testing.T) {
	jobs := Load{Jobs: 400, Rate: 12, Seed: 8, Prompt: Lengths{Median: 100, Sigma: 0.8, Max: 600}, Answer: Lengths{Median: 40, Sigma: 0.5}}.Make()
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range jobs {
		jobs[i].Deadline = time.Duration(500+rng.IntN(2500)) * time.Millisecond
	}
	good := func(r *Run) (n int) {
		for i := range r.Results {
			if x := &r.Results[i]; x.Done && x.First <= x.Deadline {
				n++
			}
		}
		return n
	}
	fcfs := do(t, with("fcfs", 16), jobs, Options{Calibrate: true})
	cfg := with("deadline", 16)
	cfg.Shed = true
	slo := do(t, cfg, jobs, Options{Calibrate: true})
	t.Logf("in time: %d of %d in order of arrival, %d by deadline with %d shed", good(fcfs), len(jobs), good(slo), slo.Sched.Stats().Shed)
	if good(slo) < 3*good(fcfs) {
		t.Error("shedding does not help")
	}
	late := 0
	for i := range slo.Results {
		if x := &slo.Results[i]; x.Done && x.First > x.Deadline {
			late++
		}
	}
	if late*10 > len(jobs) {
		t.Errorf("%d were served too late", late)
	}
	light := do(t, cfg, Load{Jobs: 50, Rate: 1, Seed: 8, Prompt: Lengths{Median: 100}, Answer: Lengths{Median: 20}}.Make(), Options{Calibrate: true})
	if n := light.Sched.Stats().Shed; n != 0 {
		t.Errorf("%d shed without load", n)
	}
}

// An urgent request that finds all slots taken runs in the next step.
func TestUrgentArrivalPreemptsAtOnce(t *testing.T) {
	jobs := Load{Jobs: 8, Seed: 1, Prompt: Lengths{Median: 20}, Answer: Lengths{Median: 200}}.Make()
	for i := range jobs {
		jobs[i].Priority = 1
	}
	jobs = Merge(jobs, []Job{{Arrive: time.Second, Prompt: 20, Answer: 5}})
	r := do(t, with("priority", 4), jobs, Options{Check: true})
	x := r.Results[len(jobs)-1]
	if limit := 2 * Small.Time(sched.Shape{Rows: 24, Outputs: 4}); x.First > limit {
		t.Errorf("the first token came after %v, want %v: the step at hand and its own", x.First, limit)
	}
}

// Fairness, throughput and completion times in one table.
func TestPolicyTable(t *testing.T) {
	flood := bimodal(11)
	polite := bimodal(12)[:60]
	for i := range flood {
		flood[i].Tenant = "flood"
	}
	for i := range polite {
		polite[i].Tenant = "polite"
		polite[i].Arrive *= 3
	}
	for _, name := range sched.Policies() {
		jobs := Merge(append([]Job(nil), flood...), append([]Job(nil), polite...))
		r := do(t, with(name, 8), jobs, Options{Calibrate: true})
		of := func(tenant string) func(*Result) bool { return func(x *Result) bool { return x.Tenant == tenant } }
		t.Logf("%-8s %4.0f tokens/s, mean completion %5.1fs, worst %5.1fs; flooding client %5.1fs, polite %5.1fs", name, r.Throughput(), r.Mean(JCT, nil).Seconds(), worst(r).Seconds(),
			r.Mean(JCT, of("flood")).Seconds(), r.Mean(JCT, of("polite")).Seconds())
	}
}
