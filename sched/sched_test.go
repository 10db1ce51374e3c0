package sched

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ridge/kvcache"
	"ridge/weights/tensor"
)

// testMemory returns a memory of pages of 16 tokens.
func testMemory(t testing.TB, pages int) *Paged {
	t.Helper()
	pool, err := kvcache.New(kvcache.Config{Layers: []kvcache.LayerShape{{Heads: 1, KDim: 1, VDim: 1}}, PageTokens: 16, DType: tensor.F16, MaxBytes: int64(pages) * 128})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	return &Paged{Pool: pool}
}

func newTest(t testing.TB, c Config, pages int) *Scheduler {
	t.Helper()
	s, err := New(c, testMemory(t, pages))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// compute does what p plans: every row that can be extends its sequence by one
// token.
func compute(t testing.TB, s *Scheduler, p *Plan) {
	t.Helper()
	for i := range p.Runs {
		r := &p.Runs[i]
		if err := s.mem.(*Paged).Pool.Grow(r.Seq.KV, r.N); err != nil {
			t.Fatal(err)
		}
		if r.Outputs > 0 {
			r.New = 1
			r.Finished = r.Seq.Generated()+1 >= r.Seq.MaxNew
		}
	}
}

// advance runs one step of the given length.
func advance(t testing.TB, s *Scheduler, now *time.Duration, elapsed time.Duration) *Plan {
	t.Helper()
	p := s.Next(*now)
	if err := s.checkPlan(); err != nil {
		t.Fatal(err)
	}
	compute(t, s, p)
	*now += elapsed
	s.Done(elapsed, *now)
	return p
}

func TestConfigRefuses(t *testing.T) {
	for want, c := range map[string]Config{
		"sequences in a step": {MaxSeqs: -1},
		"tokens in a step":    {MaxSeqs: 8, MaxTokens: 4},
		"watermark":           {Watermark: 1001},
		"time between tokens": {ITLTarget: time.Second},
		"no negative limits":  {Chunk: -1},
		"may not be split":    {Chunk: 8},
		"come first":          {Apart: true, Order: ByRank},
	} {
		if _, err := New(c, testMemory(t, 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	if err := new(Config).UsePolicy("lifo"); err == nil || !strings.Contains(err.Error(), "mlfq") {
		t.Errorf("UsePolicy: %v", err)
	}
	if _, err := Preset("turbo"); err == nil || !strings.Contains(err.Error(), "sarathi") {
		t.Errorf("Preset: %v", err)
	}
}

func TestAddRefuses(t *testing.T) {
	s := newTest(t, Config{MaxQueue: 2}, 4)
	for _, q := range []*Seq{{Prompt: 0, MaxNew: 1}, {Prompt: 1}, {Prompt: 1, MaxNew: 1, Computed: 1}} {
		if err := s.Add(q, 0); err == nil {
			t.Errorf("%+v was added", q)
		}
	}
	if err := s.Add(&Seq{Prompt: 60, MaxNew: 5}, 0); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "need 5 pages, there are 4") {
		t.Errorf("too large: %v", err)
	}
	q := &Seq{Prompt: 60, MaxNew: 4}
	if err := s.Add(q, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(q, 0); err == nil {
		t.Error("added twice")
	}
	if err := s.Add(&Seq{ID: 2, Prompt: 1, MaxNew: 1}, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(&Seq{ID: 3, Prompt: 1, MaxNew: 1}, 0); !errors.Is(err, ErrQueueFull) {
		t.Errorf("full: %v", err)
	}
	if s.Position(q, 0) != 0 || s.Position(&Seq{}, 0) != -1 {
		t.Errorf("positions %d and %d", s.Position(q, 0), s.Position(&Seq{}, 0))
	}
}

// A row of guesses: the tokens before the last new one were right.
func TestDrafts(t *testing.T) {
	s := newTest(t, Config{Split: true}, 16)
	q := &Seq{Prompt: 10, MaxNew: 20}
	if err := s.Add(q, 0); err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	advance(t, s, &now, time.Millisecond)
	q.Draft = 4
	p := s.Next(now)
	if r := p.Runs[0]; r.Start != 10 || r.N != 5 || r.Draft != 4 || r.Outputs != 5 {
		t.Fatalf("row %+v", r)
	}
	p.Runs[0].New = 3 // two guesses were right
	s.Done(time.Millisecond, now)
	if q.Computed != 13 || q.Wanted != 14 {
		t.Errorf("%d computed of %d, want 13 of 14", q.Computed, q.Wanted)
	}
}

// Guesses take no memory that a token needs, and nobody loses any for them: neither
// one who is planned later, nor one who waits.
func TestDraftsGiveWay(t *testing.T) {
	now := time.Duration(0)
	begin := func(prompts ...int) (*Scheduler, []*Seq) {
		s := newTest(t, Config{Split: true}, 4)
		var seqs []*Seq
		for i, n := range prompts {
			seqs = append(seqs, &Seq{ID: uint64(i), Prompt: n, MaxNew: 20})
			if err := s.Add(seqs[i], now); err != nil {
				t.Fatal(err)
			}
		}
		advance(t, s, &now, time.Millisecond)
		return s, seqs
	}
	judge := func(s *Scheduler, rows ...int) {
		t.Helper()
		p := s.Next(now)
		var got []int
		for _, r := range p.Runs {
			got = append(got, r.N)
		}
		if err := s.checkPlan(); err != nil || len(p.Preempted) > 0 || !slices.Equal(got, rows) {
			t.Errorf("rows %v, want %v; preempted %v; %v", got, rows, p.Preempted, err)
		}
	}
	// There is one page: the first needs it for guesses only, the second for a token.
	s, seqs := begin(17, 16)
	seqs[0].Draft, seqs[1].Draft = 16, 4
	judge(s, 1, 1)
	// Of two sequences that need none for a token, the first gets it.
	s, seqs = begin(17, 15)
	seqs[0].Draft, seqs[1].Draft = 16, 4
	judge(s, 17, 1)
	// Another one waits that needs two pages.
	s, seqs = begin(17)
	seqs[0].Draft = 16
	if err := s.Add(&Seq{ID: 3, Prompt: 30, MaxNew: 1}, now); err != nil {
		t.Fatal(err)
	}
	judge(s, 1, 30)
}

// Tokens that are forced are computed with the one before them, as answers are:
// before prompts, however short the step. A long piece takes its turn with them.
func TestForced(t *testing.T) {
	s := newTest(t, Config{Split: true, MaxTokens: 24, MaxSeqs: 4}, 64)
	q, other := &Seq{ID: 1, Prompt: 10, MaxNew: 100}, &Seq{ID: 2, Prompt: 300, MaxNew: 9}
	if err := s.Add(q, 0); err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	p := s.Next(now)
	q.Forced, p.Runs[0].New = 5, 6
	s.Done(time.Millisecond, now)
	if q.Computed != 10 || q.Wanted != 16 {
		t.Fatalf("%d computed of %d, want 10 of 16", q.Computed, q.Wanted)
	}
	if err := s.Add(other, 0); err != nil {
		t.Fatal(err)
	}
	p = s.Next(now)
	if r := p.Runs; len(r) != 2 || r[0].Seq != q || r[0].N != 6 || r[0].Outputs != 1 || r[1].N != 18 {
		t.Fatalf("rows %+v", r)
	}
	// Guesses may be right before what is forced.
	p.Runs[0].New, q.Forced = 4, 3
	s.Done(time.Millisecond, now)
	q.Draft = 2
	if p = s.Next(now); p.Runs[0].N != 6 || p.Runs[0].Draft != 2 {
		t.Fatalf("row %+v", p.Runs[0])
	}
	p.Runs[0].New, q.Forced = 2+40, 40 // one guess was right
	s.Done(time.Millisecond, now)
	if q.Draft = 0; q.Computed != 21 || q.Wanted != 62 {
		t.Fatalf("%d computed of %d, want 21 of 62", q.Computed, q.Wanted)
	}
	for rows := 0; q.Computed < 61; rows++ {
		if p = s.Next(now); rows > 2 || len(p.Runs) == 0 || p.Runs[0].Seq != q || p.Runs[0].N != min(24, q.Wanted-q.Computed) {
			t.Fatalf("rows %+v, %d computed", p.Runs, q.Computed)
		}
		p.Runs[0].New, q.Forced = 1, 0
		s.Done(time.Millisecond, now)
	}
}

// A static batch waits to be full, or for its time, and then for its last.
func TestStaticBatch(t *testing.T) {
	s := newTest(t, Config{Static: true, Apart: true, Split: true, MaxSeqs: 2, BatchWait: 50 * time.Millisecond}, 16)
	a, b, c := &Seq{ID: 1, Prompt: 4, MaxNew: 1}, &Seq{ID: 2, Prompt: 4, MaxNew: 3, Arrived: 10 * time.Millisecond}, &Seq{ID: 3, Prompt: 4, MaxNew: 1, Arrived: 20 * time.Millisecond}
	if err := s.Add(a, 0); err != nil {
		t.Fatal(err)
	}
	now := 5 * time.Millisecond
	if p := s.Next(now); len(p.Runs) != 0 || p.Wake != 50*time.Millisecond || p.Blocked {
		t.Fatalf("%+v, want to wait", p)
	}
	s.Done(0, now)
	for _, q := range []*Seq{b, c} {
		if err := s.Add(q, now); err != nil {
			t.Fatal(err)
		}
	}
	var sizes []int
	for !s.Idle() {
		p := s.Next(now)
		sizes = append(sizes, len(p.Runs))
		compute(t, s, p)
		now += 10 * time.Millisecond
		s.Done(10*time.Millisecond, now)
	}
	// Both prompts, b twice, a wait until c is due, c.
	if got := sizes; len(got) < 4 || got[0] != 2 || got[1] != 1 || got[2] != 1 || got[len(got)-1] != 1 {
		t.Errorf("rows by step: %v", got)
	}
	if st := s.Stats(); st.IdleSlots != 2 {
		t.Errorf("%d idle slots, want those of the one that was finished first", st.IdleSlots)
	}
}

// A sequence that is preempted when it already had a run in the plan loses the
// run, and the plan fits what is left.
func TestPreemptionTakesTheRunBack(t *testing.T) {
	taken := 0
	for warm := range 16 { // how near the short ones are to the ends of their pages
		s := newTest(t, Config{Policy: Priority(time.Hour), Split: true, MaxSeqs: 4, MaxTokens: 20}, 10)
		now := time.Duration(0)
		for i := range uint64(3) {
			if err := s.Add(&Seq{ID: i, Priority: 1, Prompt: 3 + int(i), MaxNew: 90}, now); err != nil {
				t.Fatal(err)
			}
		}
		for range warm {
			advance(t, s, &now, time.Millisecond)
		}
		high := &Seq{ID: 9, Prompt: 100, MaxNew: 50, Arrived: now}
		if err := s.Add(high, now); err != nil {
			t.Fatal(err)
		}
		for !s.Idle() {
			p := advance(t, s, &now, time.Millisecond)
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			if high.Computed < high.Prompt {
				taken += len(p.Preempted)
			}
		}
		if st := s.Stats(); st.Finished != 4 {
			t.Errorf("%+v", st)
		}
	}
	if taken == 0 {
		t.Error("nobody was preempted for the prompt")
	}
}

// A prompt that may not be split and has no room in a step is not overtaken by
// a shorter one.
func TestNobodyOvertakesForTokens(t *testing.T) {
	s := newTest(t, Config{Preemptive: true, MaxTokens: 28, MaxSeqs: 4}, 16)
	for i, n := range []int{18, 16, 7} {
		if err := s.Add(&Seq{ID: uint64(i), Prompt: n, MaxNew: 9}, 0); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Duration(0)
	for step, want := range [][]uint64{{0}, {0, 1, 2}} {
		p := s.Next(now)
		var got []uint64
		for _, r := range p.Runs {
			got = append(got, r.Seq.ID)
		}
		compute(t, s, p)
		if !slices.Equal(got, want) {
			t.Errorf("step %d has rows of %v, want %v", step, got, want)
		}
		s.Done(time.Millisecond, now)
	}
}

// Admission with a prefix that ends within a page counts the copy of that page,
// and does without when there is no room for it.
func TestAdmissionCountsTheCopy(t *testing.T) {
	tokens := make([]int32, 200)
	admit := func(pages, wanted, keep int) (computed int, ok bool) {
		m := testMemory(t, pages)
		m.Tree = kvcache.NewTree(m.Pool)
		m.Tokens = func(*Seq) (string, []int32) { return "", tokens }
		kv := m.Pool.NewSeq()
		if err := m.Pool.Grow(kv, 24); err != nil {
			t.Fatal(err)
		}
		m.Tree.Insert("", tokens[:24], kv)
		m.Pool.Free(kv)
		return m.Allocate(&Seq{ID: 1, Prompt: wanted, Wanted: wanted}, keep)
	}
	for _, c := range []struct {
		pages, wanted, keep, computed int
		ok                            bool
	}{
		{5, 64, 0, 24, true}, // four pages and a copy
		{4, 64, 0, 16, true}, // without the copy
		{4, 64, 1, 0, false}, // one must stay
		{5, 64, 1, 16, true},
		{5, 64, 2, 0, false},
		{3, 64, 0, 0, false},
	} {
		computed, ok := admit(c.pages, c.wanted, c.keep)
		if ok != c.ok || computed != c.computed {
			t.Errorf("%d tokens, %d pages, %d to keep: %d computed, %v, want %d, %v", c.wanted, c.pages, c.keep, computed, ok, c.computed, c.ok)
		}
	}
}

// A model of step times that has seen answers only does not let a prompt take a
// step of a size that it knows nothing of.
func TestChunksGrowWithKnowledge(t *testing.T) {
	for name, c := range map[string]Config{
		"time between tokens": {Split: true, MaxTokens: 512, ITLTarget: 100 * time.Millisecond},
		"time of a step":      {Split: true, MaxTokens: 512, StepTime: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) { chunksGrow(t, newTest(t, c, 1000)) })
	}
}

func chunksGrow(t *testing.T, s *Scheduler) {
	now := time.Duration(0)
	add := func(q *Seq) {
		if err := s.Add(q, now); err != nil {
			t.Fatal(err)
		}
	}
	add(&Seq{ID: 1, Prompt: 1, MaxNew: 500})
	real := func() (chunk int, took time.Duration) {
		p := s.Next(now)
		for i := range p.Runs {
			r := &p.Runs[i]
			if err := s.mem.(*Paged).Pool.Grow(r.Seq.KV, r.N); err != nil {
				t.Fatal(err)
			}
			if r.Seq.ID == 2 {
				chunk = r.N
			}
			if r.Outputs > 0 {
				r.New = 1
			}
		}
		took = truth(p.Shape, 1)
		now += took
		s.Done(took, now)
		return chunk, took
	}
	for range 50 {
		real()
	}
	add(&Seq{ID: 2, Prompt: 5000, MaxNew: 1})
	largest := 0
	for range 30 {
		chunk, took := real()
		if took > 110*time.Millisecond {
			t.Errorf("a chunk of %d took %v", chunk, took)
		}
		largest = max(largest, chunk)
	}
	if largest < 100 {
		t.Errorf("the largest chunk was %d, there is time for more", largest)
	}
}

// Answers that are slow by themselves keep nobody out and do not starve a
// prompt: its steps may take twice as long.
func TestStepTimeOfSlowAnswers(t *testing.T) {
	s := newTest(t, Config{Split: true, MaxTokens: 512, StepTime: time.Millisecond}, 1000)
	for n := range 100 {
		shape := Shape{}.With(0, 1+5*n, 1)
		s.Cost().Observe(shape, truth(shape, 1))
	}
	alone := truth(Shape{}.With(1, 1, 1), 1)
	if alone < s.Config().StepTime {
		t.Fatalf("answers that take %v are not slow", alone)
	}
	for id, prompt := range []int{1, 5000} {
		if err := s.Add(&Seq{ID: uint64(id + 1), Prompt: prompt, MaxNew: 500}, 0); err != nil {
			t.Fatal(err)
		}
		p := s.Next(0)
		compute(t, s, p)
		sequences, rows, took := len(p.Runs), p.Shape.Rows, truth(p.Shape, 1)
		s.Done(took, 0)
		switch {
		case sequences != id+1:
			t.Fatalf("%d sequences in the step, want %d", sequences, id+1)
		case id == 1 && rows-1 < minChunk:
			t.Errorf("the prompt got %d rows, want at least %d", rows-1, minChunk)
		case id == 1 && took > 3*alone:
			t.Errorf("the step takes %v, the answers alone %v", took, alone)
		}
	}
}

// A prompt whose first token takes longer than the first quanta skips them.
func TestSkipJoin(t *testing.T) {
	cost := NewCostModel()
	for n := range 100 {
		s := Shape{}.With(0, 1+5*n, 1)
		cost.Observe(s, truth(s, 1))
	}
	p := MLFQ(50*time.Millisecond, 0, cost, 512)
	for prompt, level := range map[int]int{10: 0, 60: 0, 100: 1, 200: 2, 500: 3} {
		q := &Seq{Prompt: prompt}
		if p.Arrive(q, 0); p.Lane(q) != level {
			t.Errorf("a prompt of %d tokens joins level %d, want %d", prompt, p.Lane(q), level)
		}
	}
}

// Next and Done allocate nothing once their buffers have grown.
func TestNoAllocations(t *testing.T) {
	for _, name := range Presets() {
		for policy, p := range map[string]Policy{
			"fcfs": FCFS(), "vtc": VTC(0, 0), "mlfq": MLFQ(time.Hour, time.Hour, nil, 0), "short mlfq": MLFQ(0, 0, nil, 0), "priority": Priority(0),
			"deadline": Deadline(0, nil, 512), "shortest": ShortestFirst(func(q *Seq) int { return q.Generated() + 1 }, 0, 0),
		} {
			c, err := Preset(name)
			if err != nil {
				t.Fatal(err)
			}
			c.Policy = p
			c.MaxSeqs = 16
			c.ITLTarget = 0
			s := newTest(t, c, 1024)
			var now time.Duration
			for i := range uint64(24) { // some wait
				if err := s.Add(&Seq{ID: i, Tenant: string(rune('a' + i%3)), Prompt: 40, MaxNew: 500}, 0); err != nil {
					t.Fatal(err)
				}
			}
			step := func() {
				p := s.Next(now)
				compute(t, s, p)
				now += time.Millisecond
				s.Done(time.Millisecond, now)
			}
			for range 60 {
				step()
			}
			// The page tables grow now and then, by doubling.
			if n := testing.AllocsPerRun(200, step); n > 0.9 {
				t.Errorf("%s, %s: %v allocations a step", name, policy, n)
			}
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for name, waiting := range map[string]int{"none waits": 0, "10000 wait": 10_000} {
		b.Run(name, func(b *testing.B) {
			c, _ := Preset("ridge")
			s := newTest(b, c, 1<<14)
			var now time.Duration
			for i := range uint64(64 + waiting) {
				if err := s.Add(&Seq{ID: i, Prompt: 40, MaxNew: 2000}, 0); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				p := s.Next(now)
				for i := range p.Runs {
					r := &p.Runs[i]
					if r.Seq.KV.Len() < 1900 {
						_ = s.mem.(*Paged).Pool.Grow(r.Seq.KV, r.N)
					}
					if r.Outputs > 0 {
						r.New = 1
					}
				}
				now += time.Millisecond
				s.Done(time.Millisecond, now)
			}
		})
	}
}
