package server

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"ridge/engine"
	"ridge/text/chat"
)

// call is a tool call of an answer.
type call struct {
	id, name string
	args     strings.Builder
	valid    bool
	raw      string // all that the model wrote for it
}

// answer is a choice put together from its deltas.
type answer struct {
	text, reasoning strings.Builder
	calls           []*call
	tokens          []tokenInfo
	finish          string
	stopText        string
	stopToken       int32
	ender           *tokenInfo
	prompt          *engine.PromptInfo
	embedding       []float32
}

// add takes the next delta.
func (a *answer) add(d *delta) {
	a.tokens = append(a.tokens, d.tokens...)
	if d.prompt != nil {
		a.prompt = d.prompt
	}
	if d.embedding != nil {
		a.embedding = d.embedding
	}
	for _, p := range d.parts {
		switch p.Kind {
		case chat.PartText:
			a.text.WriteString(p.Text)
		case chat.PartReasoning:
			a.reasoning.WriteString(p.Text)
		case chat.PartCall:
			a.calls = append(a.calls, &call{name: p.Name, id: p.ID})
		case chat.PartArguments:
			a.calls[len(a.calls)-1].args.WriteString(p.Text)
		case chat.PartCallEnd:
			c := a.calls[len(a.calls)-1]
			c.valid, c.raw = p.Valid, p.Text
			if !c.valid && d.finish != finishLength && c.raw != "" {
				// Not a call after all: nothing was shown yet, so it can be text.
				a.calls = a.calls[:len(a.calls)-1]
				a.text.WriteString(c.raw)
			}
		}
	}
	if d.finish != "" {
		a.finish, a.stopText, a.stopToken, a.ender = d.finish, d.stopText, d.stopToken, d.ender
		if a.finish == finishToolCalls && len(a.calls) == 0 {
			a.finish = finishStop
		}
	}
}

// totals are the sums over the generations of a request.
type totals struct {
	prompt, cached, tokens, reasoning, forced int
	queued, prefill, decode, ttft             time.Duration
	begun                                     time.Time // the first one
	joules                                    float64
	meter                                     *meter
	finishes                                  []string
}

// run runs a plan and calls each for its deltas, from one goroutine. wait, if
// not nil, is called when nothing has come for a while. An error of theirs
// ends the generation and is returned.
func (s *Server) run(ctx context.Context, p *plan, t *totals, each func(*delta) error, wait func() error) error {
	defer t.note(ctx)
	return s.runOne(ctx, p, t, each, wait)
}

// note puts the sums into the log.
func (t *totals) note(ctx context.Context) {
	note(ctx, func(l *requestLog) {
		l.prompt, l.cached, l.tokens, l.queue, l.ttft, l.decode, l.begun = t.prompt, t.cached, t.tokens, t.queued, t.ttft, t.decode, t.begun
		l.finishes = t.finishes[:min(len(t.finishes), 8)]
	})
}

func (s *Server) runOne(ctx context.Context, p *plan, t *totals, each func(*delta) error, wait func() error) error {
	p.charge(ctx)
	if s.o.LogPrompts {
		answers := make([]answer, max(1, p.req.N))
		tell := each
		each = func(d *delta) error {
			answers[d.choice].add(d)
			return tell(d)
		}
		defer s.logAnswers(ctx, p, answers)
	}
	began := s.meter.read()
	g, err := p.start(ctx)
	if err != nil {
		return err
	}
	var finishes []string
	defer func() {
		g.close()
		t.meter, t.joules = s.meter, t.joules+s.meter.share(began, g.prompt.Tokens-g.prompt.Cached+g.tokens)
		s.account(ctx, g, finishes, t)
	}()
	itl := s.metrics.itl.of(p.m.name)
	g.itl = func(d time.Duration) { itl(d.Seconds()) }
	patience := time.Duration(0)
	if wait != nil {
		patience = s.o.Ping
	}
	for {
		d, ok, err := g.next(patience)
		if errors.Is(err, errWait) {
			err = wait()
			if err == nil {
				continue
			}
		}
		if err != nil || !ok {
			return err
		}
		if d.finish != "" {
			finishes = append(finishes, d.finish)
		}
		if d.prompt != nil {
			s.meter.add(d.prompt.Tokens - d.prompt.Cached)
		}
		s.meter.add(len(d.tokens))
		if err := each(&d); err != nil {
			return err
		}
	}
}

// account counts what a generation took.
func (s *Server) account(ctx context.Context, g *generation, finishes []string, t *totals) {
	for len(finishes) < len(g.choices) {
		finishes = append(finishes, "abort")
	}
	s.metrics.generation(g, finishes)
	t.prompt += g.prompt.Tokens
	t.cached += g.prompt.Cached
	t.tokens += g.tokens
	t.reasoning += g.reasoning
	t.forced += g.forced
	t.queued = max(t.queued, g.prompt.Queued)
	if t.begun.IsZero() || g.submitted.Before(t.begun) {
		t.begun = g.submitted
	}
	t.prefill += g.prompt.Computed
	if g.tokens > 0 {
		t.decode += g.last.Sub(g.first)
		t.ttft = max(t.ttft, g.first.Sub(g.submitted))
	}
	t.finishes = append(t.finishes, finishes...)
	if k := keyOf(ctx); k != nil {
		k.Use(time.Now(), g.prompt.Tokens+g.tokens)
	}
}

// collect runs a plan and returns its answers whole.
func (s *Server) collect(ctx context.Context, p *plan, t *totals) ([]answer, error) {
	answers := make([]answer, max(1, p.req.N))
	err := s.run(ctx, p, t, func(d *delta) error {
		answers[d.choice].add(d)
		return nil
	}, nil)
	return answers, err
}

// maxAtOnce bounds the prompts of one request that the engine gets at one time.
const maxAtOnce = 32

// runAll runs several plans at once and calls each for their deltas, from one
// goroutine at a time. The first error ends them all.
func (s *Server) runAll(ctx context.Context, plans []*plan, t *totals, each func(i int, d *delta) error, wait func() error) error {
	if len(plans) == 1 {
		return s.run(ctx, plans[0], t, func(d *delta) error { return each(0, d) }, wait)
	}
	defer t.note(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		mu    sync.Mutex // of each, wait, t and the error
		wg    sync.WaitGroup
		slots = make(chan struct{}, maxAtOnce)
		first error
	)
	for i, p := range plans {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			var own totals
			err := s.patient(ctx, p, &own, func(d *delta) error {
				mu.Lock()
				defer mu.Unlock()
				return each(i, d)
			}, func() error {
				if wait == nil {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				return wait()
			}, len(slots) > 1)
			mu.Lock()
			defer mu.Unlock()
			t.add(&own)
			if err != nil && first == nil {
				first = err
				cancel(err)
			}
		})
	}
	wg.Wait()
	if first == nil {
		first = context.Cause(ctx)
	}
	return first
}

// patient runs a plan. If the queue is full while others of the same request
// run, their end makes room: it tries again.
func (s *Server) patient(ctx context.Context, p *plan, t *totals, each func(*delta) error, wait func() error, others bool) error {
	for {
		err := s.runOne(ctx, p, t, each, wait)
		var full *engine.QueueFullError
		if !others || !errors.As(err, &full) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (t *totals) add(o *totals) {
	t.prompt += o.prompt
	t.cached += o.cached
	t.tokens += o.tokens
	t.reasoning += o.reasoning
	t.forced += o.forced
	t.joules, t.meter = t.joules+o.joules, o.meter
	t.queued, t.ttft = max(t.queued, o.queued), max(t.ttft, o.ttft)
	t.prefill, t.decode = t.prefill+o.prefill, max(t.decode, o.decode)
	t.finishes = append(t.finishes, o.finishes...)
	if t.begun.IsZero() || !o.begun.IsZero() && o.begun.Before(t.begun) {
		t.begun = o.begun
	}
}

// logAnswers writes prompt and answers into the log.
func (s *Server) logAnswers(ctx context.Context, p *plan, answers []answer) {
	var texts []string
	for i := range answers {
		text := answers[i].reasoning.String() + answers[i].text.String()
		for _, c := range answers[i].calls {
			text += c.name + c.args.String()
		}
		texts = append(texts, text)
	}
	s.log.Info("answer", "request", requestID(ctx), "prompt", p.promptText(), "answers", texts)
}
