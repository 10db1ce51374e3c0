package ridge

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"ridge/engine"
	"ridge/model"
	"ridge/sample"
	"ridge/text/chat"
	"ridge/text/constraint"
)

// Generation says how text is generated, until the model ends its answer or the
// context is full.
type Generation struct {
	MaxTokens int // 0 means as many as the context holds
	MinTokens int // an answer does not end before it has so many
	// Sampling says how tokens are chosen. Where it has no temperature and cuts
	// nothing off, and where it has no repetition penalty, it is what the model's
	// files recommend, see Model.Recommended; greedy if they recommend nothing. With
	// a TopK of 1 it is greedy whatever they say.
	Sampling sample.Params
	// Exact has Sampling taken as it is: what the files recommend does not count.
	Exact bool
	// Breakers are the texts that become Sampling.DRY.Breakers where those are nil: nil
	// for sample.DefaultBreakers, none if it is empty. See Model.Breakers.
	Breakers  []string
	Stop      []string // texts that end the answer; they are not part of it
	IgnoreEOS bool     // go on after end-of-answer tokens
	// EndLoops ends an answer that only repeats itself, with FinishLoop: the same
	// text eight times or more over at least 400 tokens (see sample.Loop).
	EndLoops bool

	// N is how many answers are drawn, 0 means 1. The prompt is computed once;
	// answer i is the one that the seed engine.ChoiceSeed(Sampling.Seed, i) gives.
	N int

	// Format is what the text of an answer must look like, for instance
	// constraint.JSONSchema(schema). In a chat it holds after the reasoning.
	Format constraint.Format
	// JumpAhead takes text that a format or a tool's schema forces without
	// drawing it: fewer steps, for an answer that can differ in spacing.
	JumpAhead bool
	// NewMask makes a constraint of the caller's own, one for each answer. It
	// cannot be combined with Format or with tools whose calls are constrained. Its
	// methods are called on the threads that compute, which may be ahead of the
	// loop over the answer by some tokens.
	NewMask func() engine.Masker

	// Tools are functions that the model may call in a chat; see Token.Calls.
	Tools    []chat.Tool
	MustCall bool // the answer is calls and nothing else
	OneCall  bool // the answer ends after one call

	// KeepReasoning leaves the reasoning of a chat's answer in its text, with
	// its tags.
	KeepReasoning bool
	// ReasoningTokens bounds the reasoning of a chat's answer: after so many tokens
	// it is closed, and the answer goes on behind it. 0: any number; below 0: none.
	// It does nothing where the text is all of a Format, reasoning too
	// (KeepReasoning), and for models that do not reason between marks.
	ReasoningTokens int

	// Adapter is a fine-tune that answers in the model's place, see Model.ReadAdapter;
	// nil for none.
	Adapter *model.Adapter

	Stats *Stats // filled while generating, when not nil
}

// Finish says why an answer ended.
type Finish = engine.Finish

// The reasons. An answer whose context ends, whose model is closed or which fails
// ends with an error.
const (
	FinishStop   = engine.FinishStop   // the model ended its answer, a stop text came, or Format is complete
	FinishLength = engine.FinishLength // MaxTokens or the context
	FinishLoop   = engine.FinishLoop   // the answer only repeated itself, see Generation.EndLoops
)

// ContextError says that a prompt does not fit, with the counts. It is never cut
// silently.
type ContextError struct{ *engine.ContextError }

func (e *ContextError) Error() string {
	return fmt.Sprintf("ridge: prompt: expected at most %d tokens, the context, found %d", e.Context, e.Tokens)
}

// Unwrap returns the engine's error.
func (e *ContextError) Unwrap() error { return e.ContextError }

// Stats are counts and times of a generation.
type Stats struct {
	PromptTokens int // tokens of the prompt
	CachedTokens int // of these, tokens whose keys and values were there already
	Tokens       int // tokens generated, in all answers
	Guessed      int // tokens that were guessed and computed, see Options.Speculative
	Accepted     int // of these, those that became part of an answer
	Queued       time.Duration
	Prefill      time.Duration
	Decode       time.Duration
	Finish       Finish // of the answer that ended last
	// Unenforced is what of the schemas of Format and Tools answers were not held
	// to: keywords that nobody knows, and of tools that are not strict what cannot
	// be enforced.
	Unenforced []string
}

// Token is a piece of an answer.
type Token struct {
	Choice    int             // of which answer, 0 to N-1
	ID        int32           // -1 for what is left when an answer ends
	Text      string          // complete characters only: may be empty, may hold text of earlier tokens
	Reasoning string          // the model's thinking, in a chat
	Calls     []chat.ToolCall // calls of tools that are complete now
	LogProb   float32         // natural logarithm of the probability, before temperature and cuts
	Top       []sample.TokenProb
	Finish    Finish // in the last token of each answer
}

// Generate continues prompt. The sequence ends after the answers or after an
// error, which is context.Canceled or the like if ctx ended. Leaving the loop
// ends the generation at once.
func (m *Model) Generate(ctx context.Context, prompt string, g Generation) iter.Seq2[Token, error] {
	return m.GenerateTokens(ctx, m.Tokenize(prompt), g)
}

// GenerateTokens continues a prompt given as token ids.
func (m *Model) GenerateTokens(ctx context.Context, prompt []int32, g Generation) iter.Seq2[Token, error] {
	return m.generate(ctx, &g, func(r *run) error {
		if len(g.Tools) > 0 {
			return errors.New("ridge: tools: expected them in a chat, found a prompt")
		}
		r.req.Tokens = prompt
		return r.constrain(ctx, "")
	})
}

// run is a generation under way.
type run struct {
	m   *Model
	g   *Generation
	req engine.Request
	o   chat.AnswerOptions

	answers []reading
	live    int // answers that have not ended
	first   time.Time
}

// reading is an answer and the call that it is in.
type reading struct {
	*chat.Answer
	call  chat.ToolCall
	calls int
	ended bool

	guessed, right int // tokens so far
}

// generate runs what prepare fills in.
func (m *Model) generate(ctx context.Context, g *Generation, prepare func(r *run) error) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		g := *g // the sequence may be used again
		if g.Stats == nil {
			g.Stats = new(Stats)
		}
		*g.Stats = Stats{}
		r := run{m: m, g: &g, o: chat.AnswerOptions{Stops: g.Stop, MinTokens: g.MinTokens, OneCall: g.OneCall}}
		sampling, err := m.sampling(&g)
		if err != nil {
			yield(Token{ID: -1}, err)
			return
		}
		r.req = engine.Request{Sampling: sampling, MaxTokens: g.MaxTokens, MinTokens: g.MinTokens, StopTokens: m.ends, N: g.N, EndLoops: g.EndLoops, Adapter: g.Adapter}
		if g.IgnoreEOS {
			r.req.StopTokens = nil
		}
		err = prepare(&r)
		if err == nil {
			err = r.read(ctx, yield)
		}
		if err != nil {
			yield(Token{ID: -1}, err)
		}
	}
}

// read submits the request and gives its answers out.
func (r *run) read(ctx context.Context, yield func(Token, error) bool) error {
	r.g.Stats.PromptTokens = len(r.req.Tokens)
	s, err := r.m.submit(ctx, r.req)
	if err != nil {
		return err
	}
	defer s.Close()
	r.answers = make([]reading, max(1, r.req.N))
	r.live = len(r.answers)
	for i := range r.answers {
		a := chat.NewAnswer(r.m.tok, r.o)
		defer a.Close()
		r.answers[i].Answer = a
	}
	defer r.clock()
	for r.live > 0 {
		ev, ok := s.Next(ctx)
		switch {
		case ev.Err != nil:
			return ev.Err
		case ctx.Err() != nil && (!ok || ev.Finish == engine.FinishAbort):
			return ctx.Err()
		case !ok || ev.Finish == engine.FinishAbort:
			return engine.ErrClosed
		}
		t, says := r.event(&ev)
		if t.Finish != "" && ev.Finish == "" {
			s.Stop(ev.Choice)
		}
		if says && !yield(t, nil) {
			return nil
		}
	}
	return nil
}

// submit hands a request to the engine.
func (m *Model) submit(ctx context.Context, r engine.Request) (*engine.Stream, error) {
	s, err := m.e.Submit(ctx, r)
	var long *engine.ContextError
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &long):
		return nil, &ContextError{long}
	}
	return s, err
}

// clock takes the time that the answers have taken.
func (r *run) clock() {
	if !r.first.IsZero() {
		r.g.Stats.Decode = time.Since(r.first)
	}
}

// event turns an event into a token, if it says something.
func (r *run) event(ev *engine.Event) (t Token, says bool) {
	st, a := r.g.Stats, &r.answers[ev.Choice]
	st.Guessed, st.Accepted = st.Guessed+ev.Guessed-a.guessed, st.Accepted+ev.Right-a.right
	a.guessed, a.right = ev.Guessed, ev.Right
	if p := ev.Prompt; p != nil {
		st.CachedTokens, st.Queued, st.Prefill = p.Cached, p.Queued, p.Computed
		r.first = time.Now()
	}
	if a.ended {
		return t, false // came while the stop was on its way
	}
	t = Token{Choice: ev.Choice, ID: ev.Token}
	var parts []chat.Part
	if ev.Token >= 0 {
		st.Tokens++
		t.LogProb, t.Top = ev.LogProb, ev.Top
		if parts, a.ended = a.Add(ev.Token); a.ended {
			t.Finish = FinishStop
		}
	}
	if ev.Finish != "" && !a.ended {
		a.ended, t.Finish = true, ev.Finish
		if ev.Finish == FinishLength {
			parts = append(parts, a.Cut()...)
		}
		parts = append(parts, a.End()...)
	}
	if a.ended {
		r.live--
		st.Finish = t.Finish
	}
	a.fill(&t, parts)
	return t, true
}

// fill puts the parts of an answer into a token.
func (a *reading) fill(t *Token, parts []chat.Part) {
	for _, p := range parts {
		switch p.Kind {
		case chat.PartText:
			t.Text += p.Text
		case chat.PartReasoning:
			t.Reasoning += p.Text
		case chat.PartCall:
			a.call = chat.ToolCall{ID: p.ID, Name: p.Name}
		case chat.PartArguments:
			a.call.Arguments = append(a.call.Arguments, p.Text...)
		case chat.PartCallEnd:
			if !p.Valid { // not a call after all
				t.Text += p.Text
				continue
			}
			a.calls++
			if a.call.ID == "" {
				a.call.ID = callID(a.calls)
			}
			t.Calls = append(t.Calls, a.call)
		}
	}
}
