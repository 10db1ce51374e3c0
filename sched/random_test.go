package sched

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ridge/kvcache"
	"ridge/weights/tensor"
)

// world runs a scheduler, a pool and a tree as an engine would, with a model
// that is a hash: the next token of a sequence depends on its tokens and on
// nothing else, and is read from the cache, so that a sequence that gets other
// keys than its own gives another answer than it would alone.
type world struct {
	s    *Scheduler
	pool *kvcache.Pool
	mem  *Paged
	pick func(int) int
	now  time.Duration
	id   uint64
	live []*actor
	cfg  Config

	served  []uint64 // in the order in which they were served first
	stepped int
	held    bool // some sequence was on hold
}

// actor is a sequence of the world.
type actor struct {
	Seq
	tokens []int32
	end    int // length at which it is finished
	begun  bool
	forked bool
}

const vocabulary = 5

// next returns the token that follows tokens.
func next(tokens []int32) int32 {
	h := uint32(2166136261)
	for _, t := range tokens {
		h = (h ^ uint32(t)) * 16777619
	}
	return int32((h >> 7) % vocabulary)
}

func newWorld(pick func(int) int) (*world, error) {
	pool, err := newPool(5+pick(12), worldShapes[pick(len(worldShapes))])
	if err != nil {
		return nil, err
	}
	w := &world{pool: pool, pick: pick, mem: &Paged{Pool: pool}}
	if pick(4) > 0 {
		w.mem.Tree = kvcache.NewTree(pool)
		w.mem.Tokens = func(q *Seq) (string, []int32) { return q.Tenant, w.find(q).tokens }
	}
	if pick(2) == 0 {
		w.mem.Store = &flaky{RAM: RAM{Limit: int64(pick(4)) * 500}, pick: pick}
	}
	cost, lengths := NewCostModel(), NewLengthModel()
	w.cfg = Config{
		Policy:  []Policy{FCFS(), Priority(time.Second), Deadline(0, cost, 32), ShortestFirst(lengths.Expect, 0, 0), MLFQ(0, time.Second, cost, 32), VTC(0, 0)}[pick(6)],
		MaxSeqs: 1 + pick(6), MaxTokens: 8 + pick(40), Order: Order(pick(3)), Apart: pick(3) == 0, Split: pick(3) > 0,
		Preemptive: pick(2) == 0, Static: pick(8) == 0, Admission: Admission(pick(3)), Recovery: Recovery(pick(3)), Cost: cost, Lengths: lengths,
	}
	w.cfg.Apart = w.cfg.Apart && w.cfg.Order != ByRank
	if w.cfg.Split && pick(2) == 0 {
		w.cfg.ITLTarget = 5 * time.Millisecond
	}
	if w.cfg.Split {
		w.mem.Step = w.cfg.MaxTokens
	}
	w.s, err = New(w.cfg, w.mem)
	return w, err
}

// worldShapes are the layers of worlds. Half of them see all tokens.
var worldShapes = [][]kvcache.LayerShape{
	{{Heads: 1, KDim: 1, VDim: 1}}, {{Heads: 1, KDim: 1, VDim: 1}}, {{Heads: 1, KDim: 1, VDim: 1}}, {{Heads: 1, KDim: 1, VDim: 1}},
	{{Heads: 1, KDim: 1, VDim: 1, Window: 20}},
	{{Heads: 1, KDim: 1, VDim: 1}, {Heads: 1, KDim: 1, VDim: 1, Window: 7}, {Heads: 1, KDim: 1, VDim: 1, Window: 7}},
	{{Heads: 1, KDim: 1, VDim: 1}, {State: 8}},
	{{Heads: 1, KDim: 1, VDim: 1, Window: 20}, {State: 256, Parts: 4}},
}

// newPool returns a pool with so many pages for each group of layers, and for
// some states.
func newPool(pages int, layers []kvcache.LayerShape) (*kvcache.Pool, error) {
	cfg := kvcache.Config{Layers: layers, PageTokens: 16, DType: tensor.F16, MaxBytes: 1, Checkpoints: 1}
	p, err := kvcache.New(cfg)
	if err != nil {
		return nil, err
	}
	st := p.Stats()
	cfg.MaxBytes = int64(pages*st.Groups+8*st.StatePages) * st.PageBytes
	if err := p.Close(); err != nil {
		return nil, err
	}
	return kvcache.New(cfg)
}

// flaky is a store that fails at times.
type flaky struct {
	RAM
	pick func(int) int
}

func (f *flaky) Put(id uint64, size int64, write func(io.Writer) error) error {
	if f.pick(8) == 0 {
		return io.ErrShortWrite
	}
	return f.RAM.Put(id, size, write)
}

func (f *flaky) Get(id uint64, read func(io.Reader) error) error {
	if f.pick(8) == 0 {
		f.Drop(id)
		return io.ErrUnexpectedEOF
	}
	return f.RAM.Get(id, read)
}

func (w *world) find(q *Seq) *actor {
	for _, a := range w.live {
		if &a.Seq == q {
			return a
		}
	}
	panic("no such sequence")
}

func (w *world) op() error {
	w.now += time.Duration(w.pick(2000)) * time.Microsecond
	var err error
	switch op := w.pick(10); {
	case op == 0 && len(w.live) < 12:
		err = w.add()
	case op == 1 && len(w.live) > 0:
		w.remove(w.pick(len(w.live)))
	case op == 2 && len(w.live) > 0:
		a := w.live[w.pick(len(w.live))]
		a.Hold = !a.Hold && w.pick(2) == 0
		w.held = w.held || a.Hold
	case op == 3 && len(w.live) > 0 && len(w.live) < 12:
		err = w.fork(w.live[w.pick(len(w.live))])
	default:
		err = w.step()
	}
	if err != nil {
		return err
	}
	if err := w.s.Check(); err != nil {
		return err
	}
	var held []*kvcache.Seq
	for _, a := range w.live {
		if (a.KV != nil) != a.Running() {
			return fmt.Errorf("sequence %d has memory: %v, runs: %v", a.ID, a.KV != nil, a.Running())
		}
		if a.KV != nil {
			held = append(held, a.KV)
			if a.KV.Len() != a.Computed {
				return fmt.Errorf("sequence %d: %d tokens computed, %d in memory", a.ID, a.Computed, a.KV.Len())
			}
		}
	}
	return w.pool.Check(held...)
}

func (w *world) add() error {
	a := &actor{tokens: make([]int32, 1+w.pick(40))}
	for i := range a.tokens {
		a.tokens[i] = int32(i / 8 % 2)
	}
	a.tokens[w.pick(len(a.tokens))] = int32(w.pick(vocabulary))
	a.end = len(a.tokens) + 1 + w.pick(30)
	w.id++
	a.Seq = Seq{ID: w.id, Tenant: []string{"a", "b"}[w.pick(2)], Priority: w.pick(3), Prompt: len(a.tokens), MaxNew: a.end - len(a.tokens) + w.pick(10), Arrived: w.now}
	err := w.s.Add(&a.Seq, w.now)
	if fits := w.pool.PagesInSteps(nil, a.Prompt+a.MaxNew, w.mem.Step) <= w.pool.Stats().Pages; fits != (err == nil) || err != nil && !errors.Is(err, ErrTooLarge) {
		return fmt.Errorf("Add: %v", err)
	}
	if err == nil {
		w.live = append(w.live, a)
	}
	return nil
}

func (w *world) remove(i int) {
	w.s.Remove(&w.live[i].Seq, w.now)
	w.live = slices.Delete(w.live, i, i+1)
}

func (w *world) fork(a *actor) error {
	if !a.Running() || a.Computed == 0 {
		return nil
	}
	kv := w.pool.Fork(a.KV)
	w.id++
	f := &actor{tokens: slices.Clone(a.tokens), end: a.end, begun: true, forked: true}
	f.Seq = Seq{ID: w.id, Tenant: a.Tenant, Prompt: a.Prompt, MaxNew: a.MaxNew, Arrived: a.Arrived, KV: kv}
	w.live = append(w.live, f)
	return w.s.Fork(&a.Seq, &f.Seq, w.now)
}

// step plans, computes and books a step.
func (w *world) step() error {
	for _, a := range w.live {
		a.Draft = 0
		if w.pick(3) == 0 {
			a.Draft = w.pick(min(4, a.end-len(a.tokens)) + 1)
			a.Draft = min(a.Draft, a.end-len(a.tokens)-1)
		}
		if a.Draft > 0 && a.KV != nil && w.pick(4) > 0 {
			w.pool.Checkpoint(a.KV) // else a wrong guess costs all that it has
		}
	}
	p := w.s.Next(w.now)
	if err := w.judge(p); err != nil {
		return err
	}
	var done []*actor
	for i := range p.Runs {
		a := w.find(p.Runs[i].Seq)
		if err := w.compute(a, &p.Runs[i]); err != nil {
			return err
		}
		if p.Runs[i].Finished {
			done = append(done, a)
		}
	}
	elapsed := time.Millisecond + time.Duration(p.Shape.Rows)*100*time.Microsecond
	w.now += elapsed
	if len(p.Runs) > 0 {
		w.stepped++
	}
	w.s.Done(elapsed, w.now)
	for _, a := range w.live {
		if a.KV != nil && a.KV.Len() < a.Computed { // behind a wrong guess its state is lost
			a.Computed = a.KV.Len()
		}
		if w.pick(4) == 0 {
			w.mem.Publish(&a.Seq)
		}
		if a.KV != nil && w.mem.Step > 0 {
			w.pool.Slide(a.KV, a.Computed-1)
		}
	}
	for _, a := range done {
		if a.KV != nil || a.Running() {
			return fmt.Errorf("sequence %d is finished and still there", a.ID)
		}
		w.live = slices.DeleteFunc(w.live, func(x *actor) bool { return x == a })
	}
	return nil
}

// checkPlan compares what is left for a step with its rows.
func (s *Scheduler) checkPlan() error {
	tokens, pages := 0, 0
	for _, r := range s.plan.Runs {
		tokens += r.N
		pages += r.Seq.pages
	}
	if left := max(s.cfg.MaxTokens-tokens, 0); s.left != left || s.reserved != pages {
		return fmt.Errorf("%d tokens and %d pages planned, %d left and %d reserved", tokens, pages, s.left, s.reserved)
	}
	return nil
}

// judge looks whether a plan keeps the rules.
func (w *world) judge(p *Plan) error {
	if err := w.s.checkPlan(); err != nil {
		return err
	}
	total, prompts := 0, 0
	seen := map[*Seq]bool{}
	var shape Shape
	for _, r := range p.Runs {
		q := r.Seq
		if seen[q] || q.Hold || r.N < 1 || r.Start != q.Computed || r.Draft > q.Draft || r.Start+r.N > q.Wanted+r.Draft {
			return fmt.Errorf("row %+v of sequence %+v", r, *q)
		}
		if want := r.Start+r.N >= q.Wanted; want != (r.Outputs == 1+r.Draft) || !want && r.Outputs != 0 {
			return fmt.Errorf("row %+v with %d outputs", r, r.Outputs)
		}
		if !w.cfg.Split && q.Computed+r.N < q.Wanted && !q.decodes() {
			return fmt.Errorf("row %+v splits a prompt of %d", r, q.Wanted)
		}
		if !q.decodes() {
			prompts++
		}
		seen[q] = true
		total += r.N
		shape = shape.With(r.Start, r.N, r.Outputs)
		if a := w.find(q); !a.begun {
			a.begun = true
			w.served = append(w.served, a.ID)
		}
	}
	if shape != p.Shape {
		return fmt.Errorf("shape %+v, rows have %+v", p.Shape, shape)
	}
	if total > w.cfg.MaxTokens && (w.cfg.Split || prompts > 1) || len(p.Runs) > w.cfg.MaxSeqs {
		return fmt.Errorf("%d tokens of %d sequences, %d of them prompts", total, len(p.Runs), prompts)
	}
	if w.cfg.Apart && prompts > 0 && prompts < len(p.Runs) {
		return fmt.Errorf("%d prompts in a step of %d rows", prompts, len(p.Runs))
	}
	if p.Blocked && !slices.ContainsFunc(w.live, func(a *actor) bool { return a.Hold }) {
		return fmt.Errorf("nothing can run: %+v", w.s.Stats())
	}
	if _, ok := w.cfg.Policy.(fcfs); ok && !w.held && !slices.IsSorted(w.served) {
		return fmt.Errorf("served first in the order %v", w.served)
	}
	return nil
}

// compute stores a row's tokens and extends its sequence.
func (w *world) compute(a *actor, r *Run) error {
	guessed := slices.Clone(a.tokens)
	for range r.Draft {
		t := next(guessed)
		if w.pick(3) == 0 {
			t = (t + 1) % vocabulary
		}
		guessed = append(guessed, t)
	}
	if err := w.pool.Grow(a.KV, r.N); err != nil {
		return fmt.Errorf("the plan does not fit: %w", err)
	}
	if err := w.write(a, r, guessed); err != nil || r.Outputs == 0 {
		return err
	}
	for {
		t := next(a.tokens)
		a.tokens = append(a.tokens, t)
		r.New++
		if len(a.tokens) >= a.end {
			r.Finished = true
			break
		}
		if n := len(a.tokens); n > len(guessed) || guessed[n-1] != t {
			break
		}
	}
	w.pool.Truncate(a.KV, r.Start+r.N-r.Draft+min(r.New-1, r.Draft))
	for a.Forced = 0; !r.Finished && len(a.tokens) < a.end-1 && w.pick(3) == 0; a.Forced++ {
		a.tokens = append(a.tokens, next(a.tokens))
		r.New++
	}
	return nil
}

// write stores the keys and the state of a row, and looks whether what its
// tokens see is there.
func (w *world) write(a *actor, r *Run, tokens []int32) error {
	for l, shape := range w.pool.Layers() {
		if shape.State > 0 {
			b := w.pool.State(l, max(shape.Parts, 1)-1, a.KV)
			if got := int(binary.LittleEndian.Uint64(b)); got != sum(tokens[:r.Start]) {
				return fmt.Errorf("sequence %d: state %d behind %d tokens, want %d", a.ID, got, r.Start, sum(tokens[:r.Start]))
			}
			binary.LittleEndian.PutUint64(b, uint64(sum(tokens[:r.Start+r.N])))
			continue
		}
		from := 0
		if shape.Window > 0 {
			from = max(0, r.Start+1-shape.Window)
		}
		for at := from; at < r.Start+r.N; at++ {
			k, _ := w.pool.Tile(l, 0, a.KV, at/16)
			if k = k[2*(at%16):]; at >= r.Start {
				binary.LittleEndian.PutUint16(k, uint16(tokens[at]))
			} else if got := int32(binary.LittleEndian.Uint16(k)); got != tokens[at] {
				return fmt.Errorf("sequence %d: token %d is %d in layer %d of the cache, want %d", a.ID, at, got, l, tokens[at])
			}
		}
	}
	return nil
}

// sum is the state behind tokens.
func sum(tokens []int32) (n int) {
	for _, t := range tokens {
		n = 31*n + int(t) + 1
	}
	return n & 0xffffffff
}

// settle ends all holds and runs until every sequence is finished.
func (w *world) settle() error {
	for _, a := range w.live {
		a.Hold = false
	}
	for range 20_000 {
		if len(w.live) == 0 {
			if st := w.pool.Stats(); st.InUse != 0 {
				return fmt.Errorf("idle, and %d pages are in use", st.InUse)
			}
			if st := w.s.Stats(); st.Running != 0 || st.Waiting != 0 || st.Swapped != 0 || st.Added != st.Finished+st.Removed {
				return fmt.Errorf("idle, and %+v", st)
			}
			return nil
		}
		if err := w.step(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d sequences are never finished: %+v", len(w.live), w.s.Stats())
}

func (w *world) run(ops int) error {
	defer w.pool.Close()
	for i := range ops {
		if err := w.op(); err != nil {
			return fmt.Errorf("operation %d: %w\n%+v", i, err, w.cfg)
		}
	}
	if err := w.settle(); err != nil {
		return fmt.Errorf("%w\n%+v", err, w.cfg)
	}
	return nil
}

// Any order of operations under any configuration: the plans fit, the books
// are right, each sequence reads its own tokens, and all are finished.
func TestRandomOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, err := newWorld(func(n int) int {
			if n <= 1 {
				return 0
			}
			return rapid.IntRange(0, n-1).Draw(t, "pick")
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.run(rapid.IntRange(1, 30).Draw(t, "operations")); err != nil {
			t.Fatal(err)
		}
	})
}

// The same for long: RIDGE_LONG=1 runs a million operations and more.
func TestManyOperations(t *testing.T) {
	worlds := uint64(100)
	if os.Getenv("RIDGE_LONG") != "" {
		worlds = 5000
	}
	steps, preempted := 0, int64(0)
	for seed := range worlds {
		rng := rand.New(rand.NewPCG(seed, 3))
		w, err := newWorld(func(n int) int { return rng.IntN(max(n, 1)) })
		if err != nil {
			t.Fatal(err)
		}
		if err := w.run(300); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		steps += w.stepped
		preempted += w.s.Stats().Recomputes + w.s.Stats().SwapOuts
	}
	t.Logf("%d steps, %d preemptions", steps, preempted)
	if preempted < int64(worlds) {
		t.Errorf("only %d preemptions", preempted)
	}
}
