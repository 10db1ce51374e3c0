package engine

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"ridge/engine/trace"
	"ridge/kvcache"
	"ridge/model"
	"ridge/sample"
	"ridge/sched"
	"ridge/spec"
)

var negInf = float32(math.Inf(-1))

// loop is what only the goroutine of Engine.run touches.
type loop struct {
	pool     *kvcache.Pool
	tree     *kvcache.Tree     // nil for none
	reserved *sched.Contiguous // the memory, if it is the baseline without pages, else nil
	sched    *sched.Scheduler
	groups   map[*group]struct{}
	seqs     map[*sched.Seq]*sequence // those that are in the scheduler
	nextID   uint64
	page     int

	commands []command // taken from the inbox
	held     []*group  // paused for their readers
	onIdle   []chan struct{}
	closing  bool
	endErr   error
	timer    *time.Timer

	// Of the step at hand.
	batch   model.Step
	runs    []runState
	jobs    []job
	draw    drawTask
	forks   []fork
	removes []*sequence
	beams   []*group

	book    *spec.Book // what has become of all guesses
	depths  *spec.Book // of slow drafters, by their places
	offers  []spec.Offer
	drafted []*sequence // that offers are of
	tapped  [][]float32 // of a row, see tell
	control spec.Controller
	weights [3][]float64 // see weigh
	won     float64      // tokens that guesses of the step at hand have saved, by what they are worth
	// drafting is how long making guesses for the step at hand took.
	drafting time.Duration

	inject func() // of tests: called before the model computes
	logits int    // held at a time where prompts are scored

	blame string // part of the model that gave the first numbers that are none, once they came up

	chunk    int // pages that are asked for before they are needed
	prefixes prefixes
	saved    time.Duration // when the last of them was written
	readings []reading     // snapshots, the oldest first

	leastRead, readShare time.Duration // see there
	readPart             int

	ring     *trace.Ring
	rows     []trace.Row // of the step at hand
	inserted bool        // the tree has got something since sequences were matched with it
	counts   counters
	took     time.Duration // by the last step
	ends     time.Duration // when the last request ended
	kept     time.Duration // when the last figures were kept, see note
}

// fork is a sequence to be made like another one.
type fork struct{ parent, child *sequence }

func (e *Engine) init(cfg sched.Config) error {
	e.pool = e.m.Pool()
	if !e.o.NoPrefixCache {
		if e.tree = e.pool.Tree(); e.tree == nil {
			e.tree = kvcache.NewTree(e.pool)
		}
	}
	if err := e.checkDrafts(); err != nil {
		return err
	}
	e.book, e.depths = spec.NewBook(nil), spec.NewDepths(nil)
	if e.o.Draft != nil {
		e.control.Stretch = e.o.Draft.Stretch
	}
	e.groups = map[*group]struct{}{}
	e.seqs = map[*sched.Seq]*sequence{}
	e.page, e.logits = e.pool.PageTokens(), maxLogits
	e.leastRead, e.readShare, e.readPart = leastRead, readShare, readPart
	mem, paged := newMemory(e.pool, e.tree, &e.o, func(s *sched.Seq) *sequence { return e.seqs[s] }, e.m.RopeLength)
	e.reserved, _ = mem.(*sched.Contiguous)
	e.chunk = e.pool.Chunk()
	e.pool.OnClaim(e.wakeUp)
	var err error
	if e.sched, err = sched.New(cfg, mem); err != nil {
		return err
	}
	e.limits.seqs = e.sched.Config().MaxSeqs
	e.ring = trace.New(e.limits.seqs)
	if cfg := e.sched.Config(); cfg.Split { // else prompts are computed at once
		paged.Step = cfg.MaxTokens
	}
	e.limits.pool = e.pool.Tokens(e.pool.Sure(), paged.Step)
	for range e.m.Workers() {
		s, err := sample.New(sample.Params{}, e.limits.vocab)
		if err != nil {
			return err
		}
		e.draw.scorers = append(e.draw.scorers, s)
	}
	e.timer = time.NewTimer(time.Hour)
	e.timer.Stop()
	e.counts.finished = map[Finish]int64{}
	return nil
}

// run is the loop.
func (e *Engine) run() {
	defer close(e.done)
	defer e.end()
	for {
		e.drainInbox()
		if e.closing {
			return
		}
		now := e.now()
		e.tick(now)
		e.resume(now)
		e.share()
		e.rotateAnew()
		e.pinPrefixes()
		e.guess()
		plan := e.sched.Next(now)
		e.pool.Ask()
		e.planned(plan, now)
		if len(plan.Runs) > 0 {
			e.step(plan)
			e.savePrefixes(e.now(), false)
			e.readSnapshots()
			// The pool keeps all processors: now those who read streams get one.
			runtime.Gosched()
			continue
		}
		e.sched.Done(0, now)
		if read := e.readSnapshots(); !e.savePrefixes(now, false) && !read {
			e.sleep(plan, now)
		}
	}
}

// end is the last thing that the loop does. If it ends by a panic, which would
// be a defect in the books, no request hangs.
func (e *Engine) end() {
	fault := recover()
	e.mu.Lock()
	e.refuse = ErrClosed
	rest := e.inbox
	e.inbox = nil
	e.mu.Unlock()
	if fault != nil {
		e.broken.Store(true)
		e.endErr = fmt.Errorf("engine: the loop failed: %v\n%s", fault, debug.Stack())
		for g := range e.groups {
			g.fail(e.endErr)
		}
		for _, c := range append(e.commands, rest...) {
			if _, known := e.groups[c.g]; c.kind == submitGroup && c.g != nil && !known {
				c.g.fail(e.endErr)
			}
		}
		return
	}
	for _, c := range rest {
		e.handle(c)
	}
	for g := range e.groups {
		e.abort(g, FinishAbort, nil)
	}
	e.endReadings(ErrClosed)
	e.saveAll()
	e.endErr = e.check()
	if e.tree != nil {
		e.tree.Clear()
	}
}

// fail ends a request's stream without regard to its sequences.
func (g *group) fail(err error) {
	g.unwatch()
	g.stream.push(&Event{Token: -1, StopToken: -1, Finish: FinishError, Err: err})
	g.stream.end(nil, nil)
}

// drainInbox does what the inbox asks for.
func (e *Engine) drainInbox() {
	e.mu.Lock()
	e.inbox, e.commands = e.commands[:0], e.inbox
	e.mu.Unlock()
	for i := range e.commands {
		e.handle(e.commands[i])
		e.commands[i] = command{} // what is left when the loop fails was not done
	}
}

func (e *Engine) handle(c command) {
	switch c.kind {
	case submitGroup:
		e.submit(c.g)
	case abortGroup:
		switch {
		case !c.g.known: // its context ended before it came here
			c.g.dead = true
		case !c.g.removed:
			e.abort(c.g, FinishAbort, nil)
		}
	case stopChoice:
		e.stop(c.g, c.choice)
	case callFunc:
		c.call()
	case closeEngine:
		e.closing = true
	}
}

// submit takes a new request.
func (e *Engine) submit(g *group) {
	g.known = true
	e.groups[g] = struct{}{}
	e.counts.submitted++
	if g.dead {
		e.abort(g, FinishAbort, nil)
		return
	}
	if !e.load(g) {
		e.begin(g)
	}
}

// begin gives the sequences of a new request to the scheduler.
func (e *Engine) begin(g *group) {
	first := g.seqs
	if !e.o.Contiguous {
		first = first[:1] // the others are forks of it
	}
	for _, q := range first {
		q.begin(g.req.Tokens)
		if err := e.enqueue(q); err != nil {
			e.abort(g, FinishError, err)
			return
		}
	}
}

// enqueue puts a sequence into the scheduler's queue.
func (e *Engine) enqueue(q *sequence) error {
	e.register(q)
	return e.sched.Add(&q.Seq, e.now())
}

func (e *Engine) register(q *sequence) {
	if q.ID == 0 {
		e.nextID++
		q.ID = e.nextID
	}
	e.seqs[&q.Seq] = q
}

// remove takes a sequence out of the scheduler, wherever it is.
func (e *Engine) remove(q *sequence) {
	if e.seqs[&q.Seq] != nil {
		e.sched.Remove(&q.Seq, e.now())
		delete(e.seqs, &q.Seq)
	}
}

// abort ends all choices of a request. It must not be called between Next and
// Done.
func (e *Engine) abort(g *group, why Finish, err error) {
	for _, q := range g.seqs {
		e.remove(q)
	}
	g.kept = nil
	last := func(choice int) {
		e.counts.finished[why]++
		e.send(g, &Event{Choice: choice, Token: -1, StopToken: -1, Finish: why, Err: err})
	}
	for i := range g.req.N {
		if g.silent() || !g.seqs[i].done {
			last(i)
		}
	}
	e.complete(g)
}

// stop ends a choice on request of its reader.
func (e *Engine) stop(g *group, choice int) {
	if g.removed || g.silent() || choice < 0 || choice >= len(g.seqs) || g.seqs[choice].done {
		return
	}
	q := g.seqs[choice]
	if !g.forked && len(g.seqs) > 1 && !e.o.Contiguous {
		q.stop = true // the others are made of its computation
		return
	}
	e.remove(q)
	e.finish(q, &Event{Token: -1, StopToken: -1, Finish: FinishStop})
}

// finish ends a choice with its last event. The sequence must not be in the
// scheduler any more, or be marked finished in the plan.
func (e *Engine) finish(q *sequence, last *Event) {
	g := q.g
	q.done = true
	last.Choice = q.choice
	q.drafts.tell(last)
	q.drafts.close()
	const least = 16 // tokens of an answer whose place says something: short ones end while others of their kind begin
	if q.n >= least {
		e.control.Ended(e.counts.steps)
	}
	if g.silent() {
		g.kept = append(g.kept, result{tokens: q.tokens[q.Prompt : q.Prompt+q.n], probs: q.probs, tops: q.tops, traces: q.traces, forced: q.given, last: *last, score: q.score()})
	} else {
		e.counts.finished[last.Finish]++
		e.send(g, last)
	}
	if g.live--; g.live == 0 {
		e.complete(g)
	}
}

// complete ends a request.
func (e *Engine) complete(g *group) {
	if g.removed {
		return
	}
	g.removed = true
	g.unwatch()
	for _, q := range g.seqs {
		q.drafts.close()
	}
	if !g.admitted {
		e.waiting.Add(-1)
	}
	e.move(trace.Finished, g, 0)
	g.stream.end(e.deliver(g))
	delete(e.groups, g)
	if i := slices.Index(e.held, g); i >= 0 {
		e.held = slices.Delete(e.held, i, i+1)
	}
	now := e.now()
	const weight = 8
	e.pace.Add((int64(now-e.ends) - e.pace.Load()) / weight)
	e.ends = now
	if len(e.groups) == 0 {
		for _, c := range e.onIdle {
			close(c)
		}
		e.onIdle = nil
	}
}

// send puts an event into the request's stream.
func (e *Engine) send(g *group, ev *Event) {
	if !g.told {
		g.told = true
		info := g.info
		ev.Prompt = &info
	}
	if full := g.stream.push(ev); full && !g.held && !g.removed {
		e.pause(g)
	}
}

// planned notes what the scheduler has done with sequences.
func (e *Engine) planned(p *sched.Plan, now time.Duration) {
	for i, s := range p.Admitted {
		q := e.seqs[s]
		e.move(trace.Admitted, q.g, q.choice)
		e.control.Began(e.counts.steps, i == 0 && len(p.Admitted) == len(e.sched.RunningSeqs()))
		q.published, q.rope = s.Computed, e.m.RopeLength(s.Prompt, s.Wanted)
		if g := q.g; !g.admitted {
			g.admitted, g.begun = true, now
			g.info.Cached = s.Computed
			e.compare(q)
			g.info.Queued = now - g.arrived
			e.waiting.Add(-1)
			g.progress(s.Computed)
		}
	}
	for _, s := range p.Preempted {
		if q := e.seqs[s.Seq]; q != nil {
			e.move(trace.Preempted, q.g, q.choice)
		}
	}
	for _, s := range p.Shed {
		if q := e.seqs[s]; q != nil {
			delete(e.seqs, s)
			e.abort(q.g, FinishError, ErrDeadline)
		}
	}
}

// progress tells who asked for it that so many tokens of the prompt are there.
func (g *group) progress(computed int) {
	if g.req.Progress && !g.told {
		g.stream.progress(Progress{Tokens: g.info.Tokens, Cached: g.info.Cached, Computed: computed})
	}
}

// insteadTokens is how many tokens PromptInfo.Instead has at most.
const insteadTokens = 8

// compare notes where the prompt of q leaves what the prefix tree knows.
func (e *Engine) compare(q *sequence) {
	if e.tree == nil {
		return
	}
	info := &q.g.info
	info.Known, info.Instead = e.tree.Known(q.salt(), q.tokens[:q.Prompt], insteadTokens)
	info.Known = max(info.Known, info.Cached)
}

// sleep waits until something happens.
func (e *Engine) sleep(p *sched.Plan, now time.Duration) {
	until := time.Duration(math.MaxInt64)
	if p.Wake > 0 {
		until = p.Wake
	}
	for _, g := range e.held {
		until = min(until, g.heldAt+e.o.DropAfter)
	}
	if p.Blocked && len(e.held) == 0 {
		until = min(until, now+blockedPoll)
	}
	if at := e.trim(now); at > 0 {
		until = min(until, at)
	}
	if until == math.MaxInt64 {
		<-e.wake
		return
	}
	e.timer.Reset(max(until-now, time.Millisecond))
	select {
	case <-e.wake:
		e.timer.Stop()
	case <-e.timer.C:
	}
}

// blockedPoll is how often the loop looks again when nothing can run and
// nobody is on hold.
const blockedPoll = 50 * time.Millisecond
