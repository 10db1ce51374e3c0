// Package bench measures how fast a model runs, as llama-bench does: reading
// prompts, generating, both, at a depth, for several sequences at once. Each
// speed is put beside what the machine could do at best, measured between the
// repetitions, and on request beside another program's speed at the same work,
// measured in turns with it.
package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"ridge/internal/cpu"
	"ridge/kvcache"
	"ridge/measure/machine"
	"ridge/measure/roofline"
	"ridge/model"
	"ridge/weights/tensor"
)

// Options say what is measured: every work, with every thread count and every
// type of keys and values and of activations, on every model.
type Options struct {
	Models  []string // files or directories
	Works   []roofline.Work
	Threads []int          // 0 means as many as were measured to be best here, or one per core given to the process
	Batch   int            // threads for steps of more than 8 rows; 0 means the same
	Pin     bool           // bind each thread to a core of its own
	KV      []tensor.DType // F16, F32
	Act     []model.Act    // activations that quantized matrices read; none means the default
	Repeat  int            // measurements of each work
	NoWarm  bool           // do not run a little of the work first
	Delay   time.Duration  // pause before each work
	Probe   time.Duration  // how long the machine's limits are measured after each repetition; 0 for not at all
	Seed    uint64         // of the tokens
	Peers   []*Peer        // programs to compare with, measured in turns
	Build   string         // version of this program, for the results

	// Progress, when not nil, is told what comes next.
	Progress func(what string)
}

// minPairs is the least number of measurements when peers are compared: below
// it a median says little.
const minPairs = 5

// probeCap bounds the buffer of the read probe: larger ones are no slower.
const probeCap = 1 << 30

func (o *Options) defaults() error {
	if len(o.Threads) == 0 {
		o.Threads = []int{0}
	}
	if len(o.KV) == 0 {
		o.KV = []tensor.DType{tensor.F16}
	}
	if len(o.Act) == 0 {
		o.Act = []model.Act{0}
	}
	if o.Repeat <= 0 {
		o.Repeat = 5
	}
	if len(o.Peers) > 0 {
		o.Repeat = max(o.Repeat, minPairs)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	for _, w := range o.Works {
		if w.Prompt < 0 || w.Gen < 0 || w.Depth < 0 || w.Seqs < 0 || w.Chunk < 0 || w.Tokens() == 0 {
			return fmt.Errorf("bench: expected at least one token to compute, found %+v", w)
		}
	}
	if len(o.Works) == 0 {
		return errors.New("bench: expected at least one thing to measure, found none")
	}
	return nil
}

// Run measures and gives each result to yield as it is there. It stops at the
// first error, of its own, of yield or of ctx.
func Run(ctx context.Context, o Options, yield func(*Result) error) error {
	if err := o.defaults(); err != nil {
		return err
	}
	for _, path := range o.Models {
		for _, threads := range o.Threads {
			for _, kv := range o.KV {
				for _, act := range o.Act {
					if err := runModel(ctx, &o, path, threads, kv, act, yield); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func runModel(ctx context.Context, o *Options, path string, threads int, kv tensor.DType, act model.Act, yield func(*Result) error) error {
	shape, err := roofline.Read(path, kv)
	if err != nil {
		return err
	}
	shape.Act = act
	o.Progress("load " + path)
	s, err := openSession(o, path, shape, threads)
	if err != nil {
		return err
	}
	defer s.close()
	for _, w := range o.Works {
		if err := sleep(ctx, o.Delay); err != nil {
			return err
		}
		o.Progress(w.String())
		r, err := s.measure(ctx, w)
		if err != nil {
			return fmt.Errorf("bench: %s: %s: %w", path, w, err)
		}
		if err := yield(r); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return ctx.Err()
	}
}

// session is one open model and what measures beside it.
type session struct {
	o      *Options
	path   string
	m      *model.Model
	shape  *roofline.Shape
	prober *machine.Prober // nil if nothing is probed
	load   time.Duration

	tokens []int32 // random; a step takes as many as it has rows
	seqs   []*kvcache.Seq
	next   model.Step
}

func openSession(o *Options, path string, shape *roofline.Shape, threads int) (*session, error) {
	s := &session{o: o, path: path, shape: shape}
	mo := model.DefaultOptions()
	mo.Workers, mo.BatchWorkers, mo.Measured, mo.Pin, mo.KV = threads, o.Batch, machine.Known(), o.Pin, shape.KV
	mo.Act = shape.Act
	rows, probe := 0, int64(0)
	for _, w := range o.Works {
		mo.Context = max(mo.Context, w.Context())
		mo.KVBytes = max(mo.KVBytes, shape.KVMemory(w.Context(), w.Seqs))
		for st := range w.Steps() {
			rows = max(rows, st.Rows())
			probe = max(probe, shape.Cost(st).Bytes())
		}
		if w.Depth > 0 {
			for st := range w.Fill().Steps() {
				rows = max(rows, st.Rows())
			}
		}
	}
	start := time.Now()
	var err error
	if s.m, err = model.Open(path, mo); err != nil {
		return nil, err
	}
	s.load = time.Since(start)
	rng := rand.New(rand.NewPCG(o.Seed, 1))
	s.tokens = make([]int32, rows)
	for i := range s.tokens {
		s.tokens[i] = rng.Int32N(int32(s.m.Config().Vocab))
	}
	if o.Probe > 0 {
		s.prober, err = machine.NewProber(s.m.Workers(), int(min(probe, probeCap)))
		if err != nil {
			s.close()
			return nil, err
		}
	}
	runtime.GC() // what loading left must not be collected while measuring
	return s, nil
}

func (s *session) close() {
	if s.prober != nil {
		s.prober.Close()
	}
	s.m.Close()
}

// measure runs a work again and again, in turns with the peers.
func (s *session) measure(ctx context.Context, w roofline.Work) (*Result, error) {
	defer s.free()
	if err := s.start(ctx, w); err != nil {
		return nil, err
	}
	r := s.result(w)
	r.LoadBefore = machine.LoadAverage()
	size := int(r.Cost.Bytes() / int64(max(r.Steps, 1)))
	var peers []*Peer
	for _, p := range s.o.Peers {
		if err := p.can(w); err != nil {
			r.LeftOut = append(r.LeftOut, fmt.Sprintf("%s is left out of %s: %v", p.Name, w, err))
			continue
		}
		peers = append(peers, p)
	}
	for i := range s.o.Repeat {
		for _, who := range turn(i, len(peers)+1) {
			if who > 0 {
				if err := r.askPeer(ctx, peers[who-1]); err != nil {
					return nil, err
				}
				continue
			}
			if err := s.once(ctx, w, r); err != nil {
				return nil, err
			}
			if s.prober != nil {
				r.probe(s.prober, min(size, probeCap), s.o.Probe)
			}
		}
	}
	r.LoadAfter = machine.LoadAverage()
	r.finish()
	return r, nil
}

// turn returns the order of n competitors in round i: each is first in turn,
// and whoever was last in one round is not always last.
func turn(i, n int) []int {
	order := make([]int, n)
	for j := range order {
		order[j] = (i + j) % n
	}
	return order
}

// start makes the sequences, brings them to their depth and warms up.
func (s *session) start(ctx context.Context, w roofline.Work) error {
	for range max(w.Seqs, 1) {
		s.seqs = append(s.seqs, s.m.Pool().NewSeq())
	}
	if w.Depth > 0 {
		for st := range w.Fill().Steps() {
			if err := s.step(ctx, st); err != nil {
				return err
			}
		}
	}
	if s.o.NoWarm {
		return nil
	}
	prompt, gen := 1, warmTokens
	for st := range w.Steps() {
		left := &prompt
		if w.Generates(st) {
			left = &gen
		}
		if *left--; *left < 0 {
			continue
		}
		if w.Prompt > 0 && w.Gen > 0 && left == &gen {
			break // it would start behind a prompt that is not there
		}
		if err := s.step(ctx, st); err != nil {
			return err
		}
	}
	s.rewind(w)
	return nil
}

// warmTokens is how many tokens are generated before measuring.
const warmTokens = 4

func (s *session) rewind(w roofline.Work) {
	for _, q := range s.seqs {
		s.m.Pool().Truncate(q, w.Depth)
	}
}

func (s *session) free() {
	for _, q := range s.seqs {
		s.m.Pool().Free(q)
	}
	s.seqs = s.seqs[:0]
}

// once runs the work and notes the time of all of it and of each step that
// generates.
func (s *session) once(ctx context.Context, w roofline.Work, r *Result) error {
	defer s.rewind(w)
	pauses := machine.ReadPauses()
	start, used := time.Now(), cpu.Time()
	for st := range w.Steps() {
		at := time.Now()
		if err := s.step(ctx, st); err != nil {
			return err
		}
		if took := time.Since(at).Seconds(); w.Generates(st) {
			r.stepSeconds = append(r.stepSeconds, took)
		} else if st.Rows() == r.Work.Chunk {
			c := s.shape.Cost(st)
			r.chunks = append(r.chunks, chunk{c.AttnOps + c.BrainAttn, took})
		}
	}
	t := time.Since(start).Seconds()
	r.Seconds = append(r.Seconds, t)
	if now := cpu.Time(); now > 0 {
		r.shares = append(r.shares, min(1, (now-used).Seconds()/(t*float64(r.Threads))))
	}
	n, longest := machine.ReadPauses().Since(pauses)
	r.Pauses, r.PauseMax = r.Pauses+n, max(r.PauseMax, longest.Seconds())
	return nil
}

func (s *session) step(ctx context.Context, st roofline.Step) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.next.Runs = s.next.Runs[:0]
	row := 0
	for _, g := range st {
		s.next.Runs = append(s.next.Runs, model.Run{Seq: s.seqs[g.Seq], Tokens: s.tokens[row : row+g.Rows], Outputs: g.Outputs})
		row += g.Rows
	}
	return s.m.Forward(&s.next)
}

// threads returns how many threads compute a work, or most of it.
func (s *session) threads(w roofline.Work) int {
	narrow, wide := s.m.Widths()
	if w.Prompt > 0 || w.Seqs > 8 {
		return wide
	}
	return narrow
}

func (s *session) result(w roofline.Work) *Result {
	o := s.shape.Outline
	r := &Result{
		Build: s.o.Build, CPU: machine.Read().CPU, Tier: cpu.Current().String(),
		File: s.path, Model: s.shape.Name(), Size: s.shape.PackedBytes, Parameters: o.Parameters,
		Threads: s.threads(w), KV: s.shape.KV, Act: s.shape.Act, Work: w, Time: time.Now(), Load: s.load.Seconds(),
	}
	if r.Work.Seqs == 0 {
		r.Work.Seqs = 1
	}
	if r.Work.Chunk == 0 {
		r.Work.Chunk = roofline.DefaultChunk
	}
	for st := range w.Steps() {
		r.Cost.Add(s.shape.Cost(st))
		r.Steps++
	}
	return r
}
