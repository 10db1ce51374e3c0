package sim

import (
	"testing"
	"time"

	"ridge/sched"
)

// come is when agents come to chats.
const come = 5 * time.Second

// visit runs chats, and from the fifth second on ten agents with long prompts, of a worse
// class. It returns p99 of the times between the chats' tokens before and while there are
// agents, and when the last agent is answered. Without a slowdown there are no classes.
func visit(t *testing.T, m Machine, slowdown float64, chats []Job, prompt int) (before, while, agent time.Duration) {
	t.Helper()
	var agents []Job
	for i := range 10 {
		agents = append(agents, Job{Arrive: come + time.Duration(i)*time.Millisecond, Prompt: prompt, Answer: 40, Priority: 1})
	}
	cfg, err := sched.Preset("ridge")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.ClassSlowdown = slowdown; slowdown > 0 {
		if err := cfg.UsePolicy("priority"); err != nil {
			t.Fatal(err)
		}
	}
	var b, w []time.Duration
	seen := map[uint64]time.Duration{}
	r := do(t, cfg, Merge(chats, agents), Options{Machine: m, Pages: 1 << 14, Until: 90 * time.Second, Calibrate: true, Each: func(r *Run) {
		running := false
		for _, l := range r.jobs[:r.next] {
			running = running || l.Priority > 0 && !l.r.Done
		}
		for _, l := range r.jobs[:r.next] {
			if l.Priority > 0 || l.r.Tokens == 0 || l.last == seen[l.ID] {
				continue
			}
			if at, ok := seen[l.ID]; ok {
				if gap := l.last - at; l.last < come {
					b = append(b, gap)
				} else if running {
					w = append(w, gap)
				}
			}
			seen[l.ID] = l.last
		}
	}})
	for i := range r.Results {
		if x := &r.Results[i]; x.Priority > 0 {
			if !x.Done {
				t.Errorf("slowdown %g: agent %d has %d tokens after %v", slowdown, i, x.Tokens, r.Now)
			}
			agent = max(agent, x.Total)
		}
	}
	return Percentile(b, 99), Percentile(w, 99), agent
}

// Beside four chats that always have an answer under way the time between the chats'
// tokens stays within 1.3 times of what it was, and the agents get on.
func TestAgentsBesideChats(t *testing.T) {
	chats := Load{Jobs: 4, Seed: 1, Prompt: Lengths{Median: 32}, Answer: Lengths{Median: 20000}}.Make()
	noisy := Small
	noisy.Noise = 0.02
	before, while, agent := visit(t, noisy, 1.25, chats, 1000)
	t.Logf("p99 between tokens of chats: %v, beside ten agents %v; the last agent is answered after %v", before, while, agent)
	if while > before*13/10 {
		t.Errorf("p99 between tokens of chats: %v, beside agents %v", before, while)
	}
	before, while, agent = visit(t, noisy, 0, chats, 1000)
	t.Logf("without the bound: %v, %v; %v", before, while, agent)
	if while < before*13/10 {
		t.Errorf("without the bound: %v, beside agents %v: this test shows nothing", before, while)
	}
}

// Where chats send prompts now and then, the longest steps are those with them: guests
// add nothing there, and make other steps no longer, though a key costs so much that the
// least of them is beyond the bound.
func TestAgentsBesidePrompts(t *testing.T) {
	var chats []Job
	for i := range 300 {
		chats = append(chats, Job{Arrive: time.Duration(i) * 325 * time.Millisecond, Prompt: 32, Answer: 60})
	}
	slow := Small
	slow.Noise, slow.Key = 0.02, 500*time.Microsecond
	before, while, agent := visit(t, slow, 1.25, chats, 1500)
	t.Logf("p99 between tokens of chats: %v, beside ten agents %v; the last agent is answered after %v", before, while, agent)
	if while > before*13/10 {
		t.Errorf("p99 between tokens of chats: %v, beside agents %v", before, while)
	}
}

// Where the keys of a guest alone take longer than the bound allows, and hosts have no
// longer steps anyway, steps beyond the bound are few: they add no more than those within
// it, and the guest gets on.
func TestGuestsPayForLongSteps(t *testing.T) {
	cfg, err := sched.Preset("ridge")
	if err != nil {
		t.Fatal(err)
	}
	jobs := Load{Jobs: 4, Seed: 1, Prompt: Lengths{Median: 8}, Answer: Lengths{Median: 4000}}.Make()
	jobs = append(jobs, Job{Arrive: come, Prompt: 9000, Answer: 1, Priority: 1})
	m := Small
	m.Key, m.Noise = 3*time.Millisecond, 0.02
	var took, alone, most time.Duration
	r := do(t, cfg, jobs, Options{Machine: m, Pages: 1 << 14, Until: come + 60*time.Second, Calibrate: true, Factor: func(p *sched.Plan) float64 {
		hosts, guests := sched.Shape{}, false
		for _, r := range p.Runs {
			if r.Seq.Priority == 0 {
				hosts = hosts.With(r.Start, r.N, r.Outputs)
			} else {
				guests = guests || r.Start > 1000
			}
		}
		if guests || alone > 0 && len(p.Runs) == 4 {
			took, alone = took+m.Time(p.Shape), alone+m.Time(hosts)
		}
		if guests {
			most = max(most, m.Time(p.Shape)-m.Time(hosts))
		}
		return 1
	}})
	t.Logf("%v of steps in place of %v, at most %v more in one; %d tokens of prompts", took, alone, most, r.Sched.Stats().PromptTokens)
	if took > alone*15/10 || took < alone*115/100 || r.Sched.Stats().PromptTokens < 1500 {
		t.Errorf("%v of steps in place of %v, %d tokens of prompts", took, alone, r.Sched.Stats().PromptTokens)
	}
}

// Where every step has prompts of hosts, guests get on with those.
func TestGuestsBesideManyPrompts(t *testing.T) {
	cfg, err := sched.Preset("ridge")
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.UsePolicy("priority"); err != nil {
		t.Fatal(err)
	}
	cfg.Chunk = 16
	hosts := Load{Jobs: 150, Rate: 3.2, Seed: 1, Prompt: Lengths{Median: 400}, Answer: Lengths{Median: 20}}.Make()
	guest := []Job{{Arrive: come, Prompt: 3000, Answer: 2, Priority: 1}}
	with, prompts := 0, 0
	r := do(t, cfg, Merge(hosts, guest), Options{Machine: Small, Pages: 1 << 14, Until: come + 40*time.Second, Calibrate: true, Factor: func(p *sched.Plan) float64 {
		answers, prompt, visits := false, false, false
		for _, r := range p.Runs {
			answers = answers || r.Seq.Priority == 0 && r.Decodes
			prompt = prompt || r.Seq.Priority == 0 && !r.Decodes
			visits = visits || r.Seq.Priority > 0
		}
		if answers && prompt {
			prompts++
			if visits {
				with++
			}
		}
		return 1
	}})
	for i := range r.Results {
		if x := &r.Results[i]; x.Priority > 0 && (!x.Done || with == 0) {
			t.Errorf("%d steps with prompts of hosts, a guest in %d of them; it has %d tokens after %v", prompts, with, x.Tokens, r.Now)
		}
	}
	t.Logf("%d steps with prompts of hosts, guests in %d; %v", prompts, with, r.Mean(JCT, func(x *Result) bool { return x.Priority > 0 }))
}

// The bound is of steps as they are, and not as the terms of their times say: where
// guests make them half as long again as these can tell, they get fewer rows.
func TestGuestsFollowMeasuredTimes(t *testing.T) {
	const odd = 1.4
	cfg, err := sched.Preset("ridge")
	if err != nil {
		t.Fatal(err)
	}
	jobs := Load{Jobs: 4, Seed: 1, Prompt: Lengths{Median: 32}, Answer: Lengths{Median: 4000}}.Make()
	jobs = append(jobs, Job{Arrive: come, Prompt: 9000, Answer: 1, Priority: 1})
	m := Small
	m.Step, m.Noise = 30*time.Millisecond, 0.02
	var ratios []time.Duration // thousandths
	do(t, cfg, jobs, Options{Machine: m, Pages: 1 << 14, Until: come + 10*time.Second, Calibrate: true, Factor: func(p *sched.Plan) float64 {
		alone, rows := sched.Shape{}, 0
		for _, r := range p.Runs {
			if r.Seq.Priority == 0 {
				alone = alone.With(r.Start, r.N, r.Outputs)
			} else {
				rows += r.N
			}
		}
		if rows == 0 {
			return 1
		}
		f := 1 + odd*float64(rows)*float64(m.Row)/float64(m.Time(p.Shape))
		ratios = append(ratios, time.Duration(1000*f*float64(m.Time(p.Shape))/float64(m.Time(alone))))
		return f
	}})
	if p := Percentile(ratios, 99); len(ratios) < 100 || p > 1300 {
		t.Errorf("%d steps with guests, the 99th percentile %d thousandths of what answers alone take, want at most 1300", len(ratios), p)
	}
}

// Guests whose answers fill what the bound leaves keep no other guest's prompt from being
// computed.
func TestGuestsTakeTurns(t *testing.T) {
	cfg, err := sched.Preset("ridge")
	if err != nil {
		t.Fatal(err)
	}
	jobs := Load{Jobs: 4, Seed: 1, Prompt: Lengths{Median: 32}, Answer: Lengths{Median: 4000}}.Make()
	for range 8 {
		jobs = append(jobs, Job{Arrive: come, Prompt: 32, Answer: 4000, Priority: 1})
	}
	jobs = append(jobs, Job{Arrive: come + 5*time.Second, Prompt: 600, Answer: 1, Priority: 1})
	r := do(t, cfg, jobs, Options{Machine: Small, Pages: 1 << 14, Until: come + 25*time.Second, Calibrate: true})
	if last := r.Results[len(jobs)-1]; !last.Done || last.Total > 10*time.Second {
		t.Errorf("the prompt was answered after %v of %v", last.Total, r.Now)
	}
}
