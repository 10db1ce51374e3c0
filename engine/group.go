package engine

import (
	"slices"
	"strconv"
	"time"

	"ridge/sample"
	"ridge/sched"
)

// group is a request and its sequences. After Submit it belongs to the loop.
type group struct {
	req     Request
	salt    string
	stream  *Stream
	arrived time.Duration
	unwatch func() bool

	seqs     []*sequence // one per choice, or per beam
	live     int         // of seqs, those not ended
	forked   bool        // the prompt is computed, choices go their own ways
	admitted bool
	begun    time.Duration // when it was admitted
	info     PromptInfo
	told     bool // info was sent
	stored   storedPrefix
	noted    bool // its breakpoints are known

	scored int       // prompt tokens whose next one was scored, or whose state was taken
	fault  error     // of Request.PromptLogits
	pool   Pooling   // of the states that become an embedding or scores
	sum    []float64 // of states, if it is PoolingMean, or the first
	beams  *beamSearch
	kept   []result // complete answers that are not sent yet

	held    bool          // paused for its reader
	heldAt  time.Duration // since when
	known   bool          // the loop has it
	dead    bool          // it ended before the loop had it
	removed bool
}

// silent says whether answers are kept back until all are complete.
func (g *group) silent() bool { return g.req.Beam != nil || g.req.BestOf > g.req.N }

// scores says whether tokens of the prompt are scored.
func (g *group) scores() bool { return g.req.PromptLogProbs > 0 || g.req.PromptLogits != nil }

// rowsToScore returns how many tokens before the prompt's last one are still to be
// scored.
func (g *group) rowsToScore() int {
	if !g.scores() {
		return 0
	}
	return len(g.req.Tokens) - 1 - g.scored
}

// whole says whether every token of the prompt from g.scored on must be
// computed: when each gives something, and until it did.
func (g *group) whole() bool {
	switch {
	case g.pools():
		return g.scored < len(g.req.Tokens)
	case g.scores():
		return g.scored < len(g.req.Tokens)-1
	}
	return false
}

// sequence is one continuation of a prompt.
type sequence struct {
	sched.Seq
	g       *group
	choice  int
	tokens  []int32 // the prompt and what came after it, as many as Wanted
	sampler *sample.Sampler
	mask    maskChain
	ahead   ahead
	drafts  drafts
	loop    *sample.Loop // nil if loops do not matter
	done    bool
	stop    bool // Stream.Stop was called

	rope      int     // length that its memory is rotated for, see model.RopeLength
	published int     // tokens of it that the tree was given
	lookup    []int32 // see findable

	n     int     // tokens of the answer
	total float64 // of their log-probabilities, with the end token's
	// What is kept of the tokens of a silent group.
	probs  []float32
	tops   [][]sample.TokenProb
	traces []*sample.Trace
	given  []bool // whether they were forced, if any may be

	cands []sample.TokenProb // of a beam: what may come next
	ready bool               // a beam has its candidates
}

// maskChain forbids what the request's masker does, and stop tokens as long as
// an answer is too short.
type maskChain struct {
	inner Masker
	stops []int32 // nil when the answer is long enough
}

// Mask forbids tokens.
func (m *maskChain) Mask(logits []float32) {
	if m.inner != nil {
		m.inner.Mask(logits)
	}
	for _, id := range m.stops {
		if id >= 0 && int(id) < len(logits) {
			logits[id] = negInf
		}
	}
}

// explain names the stop tokens that an answer is too short for among what the mask
// takes out.
func (m *maskChain) explain(r *sample.Result) {
	for i, x := range r.Top {
		if r.Trace.Cuts[i] != "" && slices.Contains(m.stops, x.Token) {
			r.Trace.Cuts[i] = "min_tokens"
		}
	}
}

// salt is what prefixes are shared under: different for different tenants,
// whatever salts they choose.
func salt(tenant, cacheSalt string) string {
	if tenant == "" && cacheSalt == "" {
		return ""
	}
	return strconv.Itoa(len(tenant)) + ":" + tenant + cacheSalt
}

// newGroup makes a group of a checked request. It does the work that needs no
// loop: samplers, and what they know of the prompt.
func (e *Engine) newGroup(r *Request) (*group, error) {
	if !e.m.Has(r.Adapter) {
		return nil, badRequest("adapter", "expected one that was read for the model, found another model's")
	}
	g := &group{req: *r, salt: adaptedSalt(adapterID(r.Adapter), salt(r.Tenant, r.CacheSalt)), arrived: e.now()}
	g.info.Tokens = len(r.Tokens)
	if g.scores() {
		g.scored = max(r.ScoreFrom-1, 0)
	}
	if r.IgnoreEOS {
		if tok := e.m.Tokenizer(); tok != nil {
			g.req.StopTokens = slices.DeleteFunc(slices.Clone(r.StopTokens), tok.IsEOG)
		}
	}
	if r.PromptLogProbs > 0 {
		g.info.LogProbs = make([]sample.Result, len(r.Tokens))
		g.info.LogProbs[0].Token = r.Tokens[0]
	}
	if g.pool = r.Embed; r.Embed == PoolingScores {
		g.pool = poolingOf(e.m.Net().Classes.Pool)
	}
	if g.pools() {
		g.sum = make([]float64, e.m.Config().Hidden)
	}
	g.stream = newStream(e, g, e.o.Events*r.N)
	n := r.BestOf
	if r.Beam != nil {
		g.beams = &beamSearch{}
		n = 1
	}
	for i := range n {
		q, err := e.newSequence(g, i)
		if err != nil {
			return nil, err
		}
		g.seqs = append(g.seqs, q)
	}
	g.live = n
	g.stored = e.storedFor(g)
	return g, nil
}

func (e *Engine) newSequence(g *group, choice int) (*sequence, error) {
	r := &g.req
	q := &sequence{g: g, choice: choice}
	p := r.Sampling
	p.Seed = ChoiceSeed(p.Seed, choice)
	switch {
	case r.Beam != nil:
		// The stop tokens may be the first candidates of every beam.
		p = sample.Params{LogProbs: min(max(2, 1+len(r.StopTokens))*r.Beam.Width, e.limits.vocab)}
		p.LogProbs = max(p.LogProbs, r.Sampling.LogProbs)
	case g.silent():
		p.LogProbs = max(p.LogProbs, 1)
	}
	var err error
	if q.sampler, err = sample.New(p, e.limits.vocab); err != nil {
		return nil, &RequestError{Field: "sampling", Err: err}
	}
	for _, id := range r.Tokens {
		q.sampler.Accept(id)
	}
	if r.NewMasker != nil {
		q.mask.inner = r.NewMasker()
		if r.JumpAhead {
			q.ahead.by, _ = q.mask.inner.(Jumper)
			if wanted := p; wanted.LogProbs > 0 {
				q.ahead.params = &wanted
			}
		}
	}
	if r.MinTokens > 0 {
		q.mask.stops = r.StopTokens
	}
	if r.EndLoops {
		q.loop = new(sample.Loop)
	}
	q.setMask()
	q.drafts.off = e.o.Draft == nil || r.MaxDraft < 0
	q.drafts.straight = e.pool.Stateful()
	q.Seq = sched.Seq{
		Tenant: r.Tenant, Weight: r.Weight, Priority: r.Priority,
		Prompt: len(r.Tokens), MaxNew: max(r.MaxTokens, 1), Arrived: g.arrived,
	}
	q.Scored = g.rowsToScore()
	for _, b := range r.Breakpoints {
		q.Cuts = append(q.Cuts, b.Tokens)
	}
	if !r.Deadline.IsZero() {
		// 0 means none, and the deadline may be before the start of the engine.
		q.Deadline = max(r.Deadline.Sub(e.start), 1)
	}
	return q, nil
}

// setMask gives the sampler a mask only where there is something to forbid:
// with one it works on a copy of the logits.
func (q *sequence) setMask() {
	if q.mask.inner != nil || len(q.mask.stops) > 0 {
		q.sampler.SetMasker(&q.mask)
	} else {
		q.sampler.SetMasker(nil)
	}
}

// loops reports whether the answer only repeats itself, the token that was drawn
// last included.
func (q *sequence) loops() bool {
	if q.loop == nil {
		return false
	}
	return q.loop.Add(q.tokens[len(q.tokens)-1]) > 0
}

// begin gives q its tokens: those of the prompt, with room for an answer.
func (q *sequence) begin(known []int32) {
	q.tokens = append(make([]int32, 0, len(known)+min(q.MaxNew, 256)), known...)
}

// findable returns what may be looked up in the prefix tree for q, which has no
// memory yet: its tokens, but of a prompt that must be computed from a token on
// none from there on. No prompt has a token -1.
func (q *sequence) findable() []int32 {
	if !q.g.whole() {
		return q.tokens
	}
	q.lookup = append(q.lookup[:0], q.tokens...)
	q.lookup[q.g.scored] = -1
	return q.lookup
}

// accept tells the sampler and the masker of a token that was drawn. It may run
// on any thread.
func (q *sequence) accept(token int32) (done bool, err error) {
	q.sampler.Accept(token)
	if q.mask.inner == nil {
		return false, nil
	}
	if err := q.mask.inner.Accept(token); err != nil {
		return false, err
	}
	d, ok := q.mask.inner.(interface{ Done() bool })
	return ok && d.Done(), nil
}
