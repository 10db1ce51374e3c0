package sim

import (
	"testing"
	"time"

	"ridge/sched"
)

// Four chats that always have an answer under way, and from the fifth second on ten
// agents with long prompts, of a worse class: the time between the chats' tokens stays
// within 1.3 times of what it was, and the agents get on.
func TestAgentsBesideChats(t *testing.T) {
	const come = 5 * time.Second
	chat := Load{Jobs: 4, Seed: 1, Prompt: Lengths{Median: 32}, Answer: Lengths{Median: 20000}}.Make()
	var agents []Job
	for i := range 10 {
		agents = append(agents, Job{Arrive: come + time.Duration(i)*time.Millisecond, Prompt: 1000, Answer: 40, Priority: 1})
	}
	noisy := Small
	noisy.Noise = 0.02
	gaps := func(slowdown float64) (before, while, agent time.Duration) {
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
		r := do(t, cfg, Merge(chat, agents), Options{Machine: noisy, Pages: 1 << 14, Until: 90 * time.Second, Calibrate: true, Each: func(r *Run) {
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
	before, while, agent := gaps(1.25)
	t.Logf("p99 between tokens of chats: %v, beside ten agents %v; the last agent is answered after %v", before, while, agent)
	if while > before*13/10 {
		t.Errorf("p99 between tokens of chats: %v, beside agents %v", before, while)
	}
	before, while, agent = gaps(0)
	t.Logf("without the bound: %v, %v; %v", before, while, agent)
	if while < before*13/10 {
		t.Errorf("without the bound: %v, beside agents %v: this test shows nothing", before, while)
	}
}
