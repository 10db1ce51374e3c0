package sched_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"ridge/kvcache"
	"ridge/sched"
	"ridge/weights/tensor"
)

// inTurn is a policy with books of its own: first whoever had the fewest steps.
type inTurn struct{}

type inTurnSeq struct{ steps int }

func (inTurn) Lane(*sched.Seq) int                   { return 0 }
func (inTurn) Rank(q *sched.Seq) int64               { return int64(q.State.(*inTurnSeq).steps) }
func (inTurn) Level(*sched.Seq, time.Duration) int64 { return 0 }
func (inTurn) Arrive(q *sched.Seq, _ time.Duration)  { q.State = &inTurnSeq{} }
func (inTurn) Enqueue(*sched.Seq)                    {}
func (inTurn) Admit(*sched.Seq, time.Duration)       {}
func (inTurn) Leave(q *sched.Seq, now time.Duration) { _ = q.State.(*inTurnSeq) }
func (inTurn) Serve(q *sched.Seq, _ *sched.Run, _, _ time.Duration) {
	q.State.(*inTurnSeq).steps++
}

func newScheduler(t *testing.T, c sched.Config) (*sched.Scheduler, *kvcache.Pool) {
	t.Helper()
	pool, err := kvcache.New(kvcache.Config{Layers: []kvcache.LayerShape{{Heads: 1, KDim: 1, VDim: 1}}, PageTokens: 16, DType: tensor.F16, MaxBytes: 64 * 128})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	s, err := sched.New(c, &sched.Paged{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	return s, pool
}

// serve runs s until nothing is left, for at most steps, and returns the IDs of
// the sequences that each step served.
func serve(t *testing.T, s *sched.Scheduler, pool *kvcache.Pool, steps int) (order []uint64) {
	t.Helper()
	now := time.Duration(0)
	for range steps {
		p := s.Next(now)
		for i := range p.Runs {
			r := &p.Runs[i]
			if err := pool.Grow(r.Seq.KV, r.N); err != nil {
				t.Fatal(err)
			}
			if order = append(order, r.Seq.ID); r.Outputs > 0 {
				r.New, r.Finished = 1, r.Seq.Generated()+1 >= r.Seq.MaxNew
			}
		}
		now += time.Millisecond
		s.Done(time.Millisecond, now)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		if s.Idle() {
			return order
		}
	}
	t.Fatalf("not finished after %d steps: served %v", steps, order)
	return nil
}

// A policy needs nothing but its own file: what it remembers of a sequence
// hangs on the sequence from its arrival to its end, and is gone after it.
func TestPolicyKeepsItsOwnBooks(t *testing.T) {
	s, pool := newScheduler(t, sched.Config{Policy: inTurn{}, Order: sched.ByRank, Split: true, Preemptive: true, MaxSeqs: 1})
	seqs := []*sched.Seq{{ID: 1, Prompt: 4, MaxNew: 3}, {ID: 2, Prompt: 4, MaxNew: 3}, {ID: 3, Prompt: 4, MaxNew: 1}}
	for _, q := range seqs {
		if err := s.Add(q, 0); err != nil {
			t.Fatal(err)
		}
	}
	// Each has its turn, the first to come first.
	if got := fmt.Sprint(serve(t, s, pool, 20)); got != "[1 2 3 1 2 1 2]" {
		t.Errorf("served in the order %v", got)
	}
	for _, q := range seqs {
		if q.State != nil {
			t.Errorf("sequence %d is finished and keeps %+v", q.ID, q.State)
		}
	}
}

// One scheduler after the other may have a sequence: what the policy of the
// first kept is not read by the next.
func TestSequencesChangePolicies(t *testing.T) {
	q := &sched.Seq{ID: 1, Tenant: "a", Prompt: 20, MaxNew: 3}
	for _, name := range sched.Policies() {
		c := sched.Config{Split: true}
		if err := c.UsePolicy(name); err != nil {
			t.Fatal(err)
		}
		s, pool := newScheduler(t, c)
		q.Wanted, q.Computed = 0, 0
		if err := s.Add(q, 0); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if name == "vtc" { // taken out while it runs
			s.Next(0)
			s.Done(0, 0)
			s.Remove(q, 0)
		} else if got := serve(t, s, pool, 20); len(got) != 3 {
			t.Errorf("%s: served %v", name, got)
		}
		if q.State != nil || !s.Idle() {
			t.Errorf("%s: keeps %+v, idle: %v", name, q.State, s.Idle())
		}
	}
}

// docs/scheduling.md says of each policy and preset what it is.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/scheduling.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(sched.Policies(), sched.Presets()...) {
		if !strings.Contains(string(text), "\n| `"+name+"` |") {
			t.Errorf("docs/scheduling.md has no row for %s", name)
		}
	}
}
