package run

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"ridge/engine"
	"ridge/internal/aside"
	"ridge/server/caller"
	"ridge/text/chat"
)

// Runner runs plans, and tells those who want to know what they did.
type Runner struct {
	Watch      Watcher
	Meter      *Meter        // nil if there is nothing to measure energy with
	Patience   time.Duration // before a wait of Run is called. What came before may have shown nothing: a client hears nothing for twice that
	LogPrompts bool          // write prompts and answers into Log
	Log        *slog.Logger
	// Reads begins to watch how fast a model reads memory, and returns what tells the
	// part of the machine's limit that it has reached since; nil for nobody.
	Reads func(m *Model) func() float64
	// Deadline is when the first token of a request is due that does not say it
	// itself, after its arrival; 0 for at no time. Requests of patient accounts
	// have none.
	Deadline time.Duration

	omitted sync.Map // patterns that the log has named
}

// Watcher is told what generations do. Its methods may be called at the same
// time.
type Watcher interface {
	// TokenTimes returns what is told the times between the tokens of an answer of
	// a model.
	TokenTimes(model string) func(time.Duration)
	// Generation is told of each generation at its end, complete or not.
	Generation(o *Outcome)
}

// Outcome is what a generation did.
type Outcome struct {
	Model       string
	Prompt      engine.PromptInfo
	Choices     int
	Tokens      int // of all choices
	Submitted   time.Time
	First, Last time.Time // of its tokens, if there are some
	Finishes    []string  // how each choice ended; "abort" for those that did not
}

// Answer is a choice put together from its deltas.
type Answer struct {
	Text, Reasoning strings.Builder
	Calls           []*Call
	Parts           []chat.Part // texts, reasoning and beginnings of Calls, in the order in which they came
	Tokens          []Token
	Finish          string
	StopText        string
	StopToken       int32
	Ender           *Token
	Prompt          *engine.PromptInfo
	embedding       []float32
}

// Add takes the next delta.
func (a *Answer) Add(d *Delta) {
	a.Tokens = append(a.Tokens, d.Tokens...)
	if d.Prompt != nil {
		a.Prompt = d.Prompt
	}
	if d.embedding != nil {
		a.embedding = d.embedding
	}
	for _, p := range d.Parts {
		switch p.Kind {
		case chat.PartText:
			a.Text.WriteString(p.Text)
			a.Parts = append(a.Parts, p)
		case chat.PartReasoning:
			a.Reasoning.WriteString(p.Text)
			a.Parts = append(a.Parts, p)
		case chat.PartCall:
			a.Calls = append(a.Calls, &Call{Name: p.Name, ID: p.ID})
			a.Parts = append(a.Parts, p)
		case chat.PartArguments:
			a.Calls[len(a.Calls)-1].Args.WriteString(p.Text)
		case chat.PartCallEnd:
			c := a.Calls[len(a.Calls)-1]
			c.Valid, c.Raw = p.Valid, p.Text
		}
	}
	if d.Finish != "" {
		a.Finish, a.StopText, a.StopToken, a.Ender = d.Finish, d.StopText, d.StopToken, d.Ender
	}
}

// Totals are the sums over the generations of a request.
type Totals struct {
	Prompt, Cached, Tokens, Reasoning, Forced int
	Guessed, Right                            int // tokens that were guessed and computed, and those of them that came true
	Known                                     int // of Prompt, see engine.PromptInfo
	Truncated                                 int // tokens that were cut off prompts, not among Prompt
	Queued, Prefill, Decode, TTFT             time.Duration
	begun                                     time.Time // the first one
	Joules                                    float64
	Meter                                     *Meter
	finishes                                  []string

	Seed *uint64 // that answers were drawn with, nil if there were several plans
	// Read is the rate at which the steps that computed next tokens read memory, as a
	// part of what the machine can; 0 if that is not known.
	Read float64
}

// Run runs a plan and calls each for its deltas, from one goroutine. wait, if
// not nil, is called when nothing has come for a while. An error of theirs
// ends the generation and is returned.
func (s *Runner) Run(ctx context.Context, p *Plan, t *Totals, each func(*Delta) error, wait func() error) error {
	defer t.note(ctx)
	t.Seed = &p.Request.Sampling.Seed
	return aside.Back(ctx, func() error { return s.runOne(ctx, p, t, each, wait) })
}

// due is when the first token of a plan must be there, the zero time for at no
// time. The body's word counts before the header's, and that before the server's.
func (s *Runner) due(ctx context.Context, p *Plan) time.Time {
	arrived, after := time.Now(), s.Deadline
	if a := caller.AccountOf(ctx); a != nil && a.Patient {
		after = 0
	}
	caller.Note(ctx, func(l *caller.Record) {
		if !l.Arrived.IsZero() {
			arrived = l.Arrived
		}
		if l.Deadline != nil {
			after = *l.Deadline
		}
	})
	if p.deadline != nil {
		after = *p.deadline
	}
	if after <= 0 {
		return time.Time{}
	}
	return arrived.Add(after)
}

// charge says in a plan whose request it is.
func (p *Plan) charge(ctx context.Context) {
	if a := caller.AccountOf(ctx); a != nil {
		p.Request.Tenant, p.Request.Weight, p.Request.Priority = a.Name, a.Weight, a.Priority(p.Request.Priority)
	}
	if p.Request.ID == "" {
		p.Request.ID = caller.RequestID(ctx)
	}
}

// note puts the sums into the log.
func (t *Totals) note(ctx context.Context) {
	caller.Note(ctx, func(l *caller.Record) {
		l.Prompt, l.Cached, l.Known, l.Tokens, l.Queue, l.TTFT, l.Decode, l.Begun = t.Prompt, t.Cached, t.Known, t.Tokens, t.Queued, t.TTFT, t.Decode, t.begun
		l.Forced, l.Guessed, l.Right = t.Forced, t.Guessed, t.Right
		l.Finishes = t.finishes[:min(len(t.finishes), 8)]
	})
}

func (s *Runner) runOne(ctx context.Context, p *Plan, t *Totals, each func(*Delta) error, wait func() error) error {
	p.charge(ctx)
	for _, pattern := range p.omitted {
		if _, known := s.omitted.LoadOrStore(pattern, true); !known {
			s.Log.Info("lines of system messages are no text for the model and left out of prompts; --omit none keeps them", "pattern", pattern, "request", p.Request.ID)
		}
	}
	p.Request.Deadline = s.due(ctx, p)
	if s.LogPrompts {
		answers := make([]Answer, max(1, p.Request.N))
		tell := each
		each = func(d *Delta) error {
			answers[d.Choice].Add(d)
			return tell(d)
		}
		defer s.logAnswers(ctx, p, answers)
	}
	adapter, release, err := p.adapter(ctx)
	if err != nil {
		return err
	}
	defer release()
	p.Request.Adapter = adapter
	began := s.Meter.read()
	g, err := p.start(ctx)
	if err != nil {
		return err
	}
	var finishes []string
	var reads func() float64
	defer func() {
		g.close()
		if reads != nil {
			t.Read = reads()
		}
		t.Meter, t.Joules = s.Meter, t.Joules+s.Meter.share(began, g.prompt.Tokens-g.prompt.Cached+g.tokens)
		s.account(ctx, g, finishes, t)
		if p.Request.Embed == engine.NoPooling {
			p.Model.slots.put(slotKey{p.Request.Tenant, p.slot}, slot{p.Request.Tokens, g.answer[:max(0, len(g.answer)-1)], p.Request.CacheSalt, adapterID(p.Request.Adapter)})
		}
	}()
	g.itl = s.Watch.TokenTimes(p.Model.info.Name)
	patience := time.Duration(0)
	if wait != nil {
		patience = s.Patience
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
		if d.Finish != "" {
			finishes = append(finishes, d.Finish)
		}
		if d.Prompt != nil {
			s.Meter.add(d.Prompt.Tokens - d.Prompt.Cached)
			s.logLeft(ctx, p, d.Prompt)
		}
		s.Meter.add(len(d.Tokens))
		if len(d.Tokens) > 0 && reads == nil && s.Reads != nil {
			reads = s.Reads(p.Model)
		}
		if err := each(&d); err != nil {
			return err
		}
	}
}

// account counts what a generation took.
func (s *Runner) account(ctx context.Context, g *generation, finishes []string, t *Totals) {
	for len(finishes) < len(g.choices) {
		finishes = append(finishes, "abort")
	}
	s.Watch.Generation(&Outcome{Model: g.p.Model.info.Name, Prompt: g.prompt, Choices: len(g.choices), Tokens: g.tokens,
		Submitted: g.submitted, First: g.first, Last: g.last, Finishes: finishes})
	t.Prompt += g.prompt.Tokens
	t.Cached += g.prompt.Cached
	t.Known += g.prompt.Known
	t.Tokens += g.tokens
	t.Reasoning += g.reasoning
	t.Forced += g.forced
	for _, x := range g.guessed {
		t.Guessed, t.Right = t.Guessed+x.all, t.Right+x.right
	}
	t.Truncated += g.p.Truncated
	t.Queued = max(t.Queued, g.prompt.Queued)
	if t.begun.IsZero() || g.submitted.Before(t.begun) {
		t.begun = g.submitted
	}
	t.Prefill += g.prompt.Computed
	if g.tokens > 0 {
		t.Decode += g.last.Sub(g.first)
		t.TTFT = max(t.TTFT, g.first.Sub(g.submitted))
	}
	t.finishes = append(t.finishes, finishes...)
	if a := caller.AccountOf(ctx); a != nil && a.Use != nil {
		a.Use(g.prompt.Tokens, g.tokens)
	}
}

// Collect runs a plan and returns its answers whole.
func (s *Runner) Collect(ctx context.Context, p *Plan, t *Totals) ([]Answer, error) {
	answers := make([]Answer, max(1, p.Request.N))
	err := s.Run(ctx, p, t, func(d *Delta) error {
		answers[d.Choice].Add(d)
		return nil
	}, nil)
	return answers, err
}

// maxAtOnce bounds the prompts of one request that the engine gets at one time.
const maxAtOnce = 32

// RunAll runs several plans at once and calls each for their deltas, from one
// goroutine at a time. The first error ends them all.
func (s *Runner) RunAll(ctx context.Context, plans []*Plan, t *Totals, each func(i int, d *Delta) error, wait func() error) error {
	if len(plans) == 1 {
		return s.Run(ctx, plans[0], t, func(d *Delta) error { return each(0, d) }, wait)
	}
	defer t.note(ctx)
	aside.Leave(ctx)
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
			var own Totals
			err := s.patient(ctx, p, &own, func(d *Delta) error {
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
func (s *Runner) patient(ctx context.Context, p *Plan, t *Totals, each func(*Delta) error, wait func() error, others bool) error {
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

func (t *Totals) add(o *Totals) {
	t.Prompt += o.Prompt
	t.Cached += o.Cached
	t.Known += o.Known
	t.Tokens += o.Tokens
	t.Reasoning += o.Reasoning
	t.Forced += o.Forced
	t.Guessed, t.Right = t.Guessed+o.Guessed, t.Right+o.Right
	t.Truncated += o.Truncated
	t.Joules, t.Meter = t.Joules+o.Joules, o.Meter
	t.Read = max(t.Read, o.Read)
	t.Queued, t.TTFT = max(t.Queued, o.Queued), max(t.TTFT, o.TTFT)
	t.Prefill, t.Decode = t.Prefill+o.Prefill, max(t.Decode, o.Decode)
	t.finishes = append(t.finishes, o.finishes...)
	if t.begun.IsZero() || !o.begun.IsZero() && o.begun.Before(t.begun) {
		t.begun = o.begun
	}
}

// logLeft writes into the log where a prompt leaves the longest beginning that
// another one has, too: what is before, and how both go on.
func (s *Runner) logLeft(ctx context.Context, p *Plan, info *engine.PromptInfo) {
	at, tokens := info.Known, p.Request.Tokens
	if !s.LogPrompts || at == 0 || at >= len(tokens) || len(info.Instead) == 0 {
		return
	}
	text := p.Model.tok.DecodeSpecial
	around := len(info.Instead)
	s.Log.Info("a prompt leaves what is known", "request", caller.RequestID(ctx), "token", at, "of", len(tokens),
		"before", text(tokens[max(at-around, 0):at]), "goes_on", text(tokens[at:min(at+around, len(tokens))]), "known", text(info.Instead))
}

// logAnswers writes prompt and answers into the log.
func (s *Runner) logAnswers(ctx context.Context, p *Plan, answers []Answer) {
	var texts []string
	for i := range answers {
		text := answers[i].Reasoning.String() + answers[i].Text.String()
		for _, c := range answers[i].Calls {
			text += c.Name + c.Args.String()
		}
		texts = append(texts, text)
	}
	caller.Note(ctx, func(l *caller.Record) {
		if l.PromptText == "" {
			l.PromptText, l.AnswerText = p.PromptText(), texts[0]
		}
	})
	s.Log.Info("answer", "request", caller.RequestID(ctx), "prompt", p.PromptText(), "answers", texts)
}
