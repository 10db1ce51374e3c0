package run

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"strings"
	"time"

	"ridge/engine"
	"ridge/server/adapters"
	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/text/chat"
	"ridge/text/tokenizer"
)

// Options are what chats and completions share, beside sampling and format. What
// is nil was not said.
type Options struct {
	Stream    bool // the answer is shown while it comes
	MaxTokens *int // -1 for as many as fit
	N, BestOf *int
	Stop      []string // nil: the model's own

	StopTokens     []int32
	IncludeStop    bool // the stop string stays in the text
	IgnoreEOS      bool
	EndLoops       *bool // an answer ends that only repeats itself; nil: as the server has it
	MinTokens      int
	Beam           bool
	LengthPenalty  *float64
	EarlyStopping  bool
	PromptLogProbs *int
	ProbIDs        []int32 // whose log-probabilities are listed in place of the most probable tokens'
	Drawn          bool    // probabilities are those of what is drawn from, after all steps
	Trace          bool    // tell what each token was drawn from
	AllowedTokens  []int32
	BadWords       []string
	ShowSpecial    bool   // control tokens are written out
	AddSpecial     *bool  // BOS and the like around the prompt
	Truncate       *int   // tokens of the prompt that are kept, -1 for as many as fit; nil: all
	TruncateSide   string // that is cut: left, right; "": left
	Slot           *int   // whose last sequence this is, see Model.Slot; nil and -1: the first
	Priority       int    // lower first
	CacheSalt      string
	RequestID      string
	Deadline       *time.Duration   // of the first token, after the request's arrival; 0 for none; nil: as the server has it
	TimeLimit      time.Duration    // see Plan
	Adapters       []adapters.Scale // in place of those that the model has for all; nil: none is named
	MaxDraft       *int             // tokens that are guessed behind each one, at most, 0 for none; nil: as the server has it
}

// Chat is a conversation to be continued, in whatever dialect it came.
type Chat struct {
	Messages      []chat.Message
	Tools         []Tool
	Choice        ToolChoice
	Parallel      bool
	Format        Format
	Args          map[string]any // for the template
	Template      string         // in place of the model's
	NoGenerate    bool           // do not begin the assistant's turn
	Continue      bool           // continue the last message
	PinOpening    bool           // system messages and tools will come again
	PinPrompt     bool           // and so will the whole prompt
	KeepReasoning bool           // reasoning stays in the text
	Budget        *int           // tokens of reasoning, after which it is closed; nil or below 0: any
	Probs         bool
	Top           int
	Sampling      Sampling
	Defaults      Sampling     // of the API
	Left          []fault.Left // what of the request the model does not get
	Options

	omitted []string // patterns of lines that were left out of the prompt
}

// Limits of requests.
const (
	// MaxPrompts bounds the prompts of one request.
	MaxPrompts = 4096
	// MaxTopProbs bounds the most probable tokens that are listed with a token.
	MaxTopProbs = 20
	// MaxText bounds the bytes of texts that clients want to have as tokens, or of
	// tokens as text.
	MaxText = 16 << 20
	// traceTop is how many tokens a trace lists.
	traceTop = 10

	maxStops     = 64
	maxStopBytes = 4096
)

// Plan makes a plan of a conversation. The work on schemas ends when ctx does.
func (c *Chat) Plan(ctx context.Context, m *Model) (*Plan, error) {
	p := &Plan{Model: m, Probs: c.Probs, top: c.Top, Left: c.Left}
	tools, err := c.Choice.choose(c.Tools)
	if err != nil {
		return nil, err
	}
	prompt, err := c.prompt(ctx, m, tools)
	if err != nil {
		return nil, err
	}
	p.text, p.omitted, p.Request.Tokens = prompt.Text, c.omitted, prompt.Tokens
	if c.AddSpecial != nil {
		tok := m.fits(c.Truncate != nil)
		p.Request.Tokens = prompt.Encode(tok, *c.AddSpecial)
		if err := tok.err(); err != nil {
			return nil, err
		}
	}
	p.opening = prompt.Opening(m.syntax, c.Continue)
	p.parse = &chat.ParseOptions{Prompt: p.opening, KeepReasoning: c.KeepReasoning, Continue: c.Continue}
	for _, t := range tools {
		p.parse.Tools = append(p.parse.Tools, t.raw)
	}
	if err := c.Options.fill(p, c.Sampling, c.Defaults); err != nil {
		return nil, err
	}
	f := c.Format.resolve(m, &c.Options)
	if len(tools) > 0 {
		p.oneCall = !c.Parallel
		if f.Kind != "" && c.Choice.Mode != "required" {
			err = p.calls(ctx, tools, c.Parallel, f)
		} else {
			err = p.constrainTools(ctx, tools, c.Choice, f, c.Parallel)
		}
	} else if f.Kind != "" {
		err = p.setFormat(ctx, f)
	}
	if err == nil {
		err = p.jumpAhead(f, c.Format.Jump != nil, &c.Options)
	}
	if err != nil {
		return nil, err
	}
	if c.Budget != nil && *c.Budget >= 0 && !p.held {
		if budget := m.hold.Budget(*c.Budget, p.opening); budget != nil {
			p.addMasker(func() engine.Masker { return budget() })
		}
	}
	if err := p.finish(ctx, &c.Options); err != nil {
		return nil, err
	}
	p.Request.Breakpoints = c.breakpoints(m, tools, p.Request.Tokens)
	return p, nil
}

// setFormat holds a plan's text to a format.
func (p *Plan) setFormat(ctx context.Context, f Format) error {
	g, err := f.compile(ctx, p.Model)
	if err != nil {
		return err
	}
	return p.constrain(g)
}

// Prompt is what the model reads of the conversation.
func (c *Chat) Prompt(ctx context.Context, m *Model) (chat.Prompt, error) {
	tools, err := c.Choice.choose(c.Tools)
	if err != nil {
		return chat.Prompt{}, err
	}
	return c.prompt(ctx, m, tools)
}

// prompt turns the conversation into what the model reads.
func (c *Chat) prompt(ctx context.Context, m *Model, tools []Tool) (chat.Prompt, error) {
	if len(c.Messages) == 0 {
		return chat.Prompt{}, fault.BadRequest("messages", "expected at least one message, found none")
	}
	var msgs []chat.Message
	msgs, c.omitted = m.omit.from(c.Messages)
	in := chat.Input{Messages: m.opening(msgs), AddGenerationPrompt: !c.NoGenerate && !c.Continue, Continue: c.Continue, Extra: m.templateArgs(c.Args), Now: time.Now()}
	for _, t := range tools {
		in.Tools = append(in.Tools, t.raw)
	}
	tok := m.fits(c.Truncate != nil)
	var p chat.Prompt
	var err error
	if c.Template != "" || m.foreign {
		if err := m.Admit(); err != nil {
			return p, err
		}
		p, err = c.ownPrompt(ctx, m, in, tok)
	} else {
		p, err = m.tmpl.Prompt(in, tok)
	}
	if err != nil {
		return p, promptError(err)
	}
	return p, tok.err()
}

// templateArgs are the variables of a template: those of a request, then those that
// requests get.
func (m *Model) templateArgs(asked map[string]any) map[string]any {
	if len(m.args) == 0 {
		return asked
	}
	out := maps.Clone(m.args)
	maps.Copy(out, asked)
	return out
}

// fill puts the common fields into a plan.
func (c *Options) fill(p *Plan, s, defaults Sampling) error {
	r := &p.Request
	if err := s.settle(p, defaults); err != nil {
		return err
	}
	if err := c.fillProbs(p); err != nil {
		return err
	}
	if c.Trace {
		r.Sampling.LogProbs, r.Sampling.Trace = min(max(r.Sampling.LogProbs, traceTop), p.Model.tok.VocabSize()), true
	}
	limit := cmp.Or(c.MaxTokens, p.Model.maxTokens)
	if c.Stop == nil {
		c.Stop = p.Model.stops
	}
	switch {
	case limit == nil || *limit == -1:
	case *limit < 0:
		return fault.BadRequest("max_tokens", "expected 1 or more, found %d", *limit)
	case *limit == 0:
		r.MaxTokens = -1
	default:
		r.MaxTokens = *limit
	}
	if r.MinTokens = c.MinTokens; r.MinTokens < 0 || r.MaxTokens > 0 && r.MinTokens > r.MaxTokens {
		return fault.BadRequest("min_tokens", "expected 0 to max_tokens, found %d", r.MinTokens)
	}
	if r.N = 1; c.N != nil {
		r.N = *c.N
	}
	if r.N < 1 || r.N > engine.MaxChoices {
		return fault.BadRequest("n", "expected 1 to %d, found %d", engine.MaxChoices, r.N)
	}
	if c.BestOf != nil {
		if r.BestOf = *c.BestOf; r.BestOf < r.N || r.BestOf > engine.MaxChoices {
			return fault.BadRequest("best_of", "expected n to %d, found %d", engine.MaxChoices, r.BestOf)
		}
		if c.Stream && r.BestOf > r.N {
			return fault.BadRequest("best_of", "cannot be combined with stream: the best answers are known at the end")
		}
	}
	if len(c.Stop) > maxStops {
		return fault.BadRequest("stop", "expected at most %d, found %d", maxStops, len(c.Stop))
	}
	for _, s := range c.Stop {
		if len(s) > maxStopBytes {
			return fault.BadRequest("stop", "expected strings of at most %d bytes, found one of %d", maxStopBytes, len(s))
		}
	}
	if id := c.RequestID; id != "" && caller.CleanID(id) != id { // people see it on their terminals
		return fault.BadRequest("request_id", "expected at most 128 letters, digits and -_.:/, found %s", fault.Excerpt([]byte(id)))
	}
	if c.Slot != nil && *c.Slot != -1 {
		if err := p.Model.CheckSlot("id_slot", *c.Slot); err != nil {
			return err
		}
		p.slot = *c.Slot
	}
	if err := c.fillAdapters(p); err != nil {
		return err
	}
	p.stops, p.includeStop = c.Stop, c.IncludeStop
	r.Priority, r.CacheSalt, r.ID = c.Priority, c.CacheSalt, c.RequestID
	p.special = c.ShowSpecial
	if n := c.MaxDraft; n != nil {
		if *n < 0 {
			return fault.BadRequest("speculative.n_max", "expected 0 or more, found %d", *n)
		}
		if r.MaxDraft = *n; *n == 0 {
			r.MaxDraft = -1
		}
	}
	return c.fillEnds(p)
}

// maxProbIDs bounds the tokens whose log-probabilities are asked for by name.
const maxProbIDs = 128

// fillProbs says which log-probabilities are wanted.
func (c *Options) fillProbs(p *Plan) error {
	s := &p.Request.Sampling
	if len(c.ProbIDs) > maxProbIDs {
		return fault.BadRequest("logprob_token_ids", "expected at most %d, found %d", maxProbIDs, len(c.ProbIDs))
	}
	if err := p.Model.CheckIDs("logprob_token_ids", c.ProbIDs); err != nil {
		return err
	}
	if len(c.ProbIDs) > 0 {
		p.Probs, p.top, s.ProbIDs = true, len(c.ProbIDs), c.ProbIDs
	}
	if !p.Probs {
		return nil
	}
	s.LogProbs, s.Drawn = max(1, p.top), c.Drawn
	var field string
	switch {
	case c.Drawn && s.ProbIDs != nil:
		return fault.BadRequest("post_sampling_probs", "cannot be combined with logprob_token_ids: each lists other numbers")
	case c.Drawn:
		field = "post_sampling_probs"
	case s.ProbIDs != nil:
		field = "logprob_token_ids"
	default:
		return nil
	}
	if c.Trace {
		return fault.BadRequest(field, "cannot be combined with ridge_trace: each lists other numbers")
	}
	if c.Beam {
		return fault.BadRequest(field, "cannot be combined with use_beam_search: a search draws no tokens")
	}
	return nil
}

// highLimit is a limit of tokens that is none in practice. Coding agents set one, or
// no limit at all: an answer that only repeats itself would fill the context.
const highLimit = 8192

// fillEnds sets what ends an answer and what may not be in it.
func (c *Options) fillEnds(p *Plan) error {
	r, m := &p.Request, p.Model
	if r.IgnoreEOS = c.IgnoreEOS; !c.IgnoreEOS {
		r.StopTokens = append(r.StopTokens, m.ends...)
	}
	if err := errors.Join(m.CheckIDs("stop_token_ids", c.StopTokens), m.CheckIDs("allowed_token_ids", c.AllowedTokens)); err != nil {
		return err
	}
	r.StopTokens = append(r.StopTokens, c.StopTokens...)
	r.EndLoops = r.MaxTokens == 0 || r.MaxTokens >= highLimit
	if m.info.EndLoops != nil {
		r.EndLoops = *m.info.EndLoops
	}
	if r.EndLoops = r.EndLoops && !c.IgnoreEOS; c.EndLoops != nil {
		r.EndLoops = *c.EndLoops
	}
	if n := c.PromptLogProbs; n != nil {
		if *n < 0 || *n > MaxTopProbs {
			return fault.BadRequest("prompt_logprobs", "expected 0 to %d, found %d", MaxTopProbs, *n)
		}
		r.PromptLogProbs = max(1, *n)
	}
	if c.Beam {
		lp := 1.0
		if c.LengthPenalty != nil {
			lp = *c.LengthPenalty
		}
		if c.Stream {
			return fault.BadRequest("use_beam_search", "cannot be combined with stream: the answers are known at the end")
		}
		r.Beam = &engine.Beam{Width: max(r.BestOf, r.N), LengthPenalty: float32(lp), EarlyStop: c.EarlyStopping}
		r.BestOf = 0
		if math.Abs(lp) > 100 {
			return fault.BadRequest("length_penalty", "expected -100 to 100, found %g", lp)
		}
	}
	p.limit = c.TimeLimit
	if p.deadline = c.Deadline; p.deadline != nil && *p.deadline < 0 {
		return fault.BadRequest("deadline_ms", "expected 0 (none) or more, found %d", p.deadline.Milliseconds())
	}
	return nil
}

// finish makes the last checks of a plan and adds the masks that are not
// grammars.
func (p *Plan) finish(ctx context.Context, c *Options) error {
	m := p.Model
	answer := max(0, p.Request.MaxTokens)
	if p.Request.MaxTokens == 0 {
		answer = 1 // of as many as fit
	}
	if err := p.truncate(ctx, c.Truncate, cmp.Or(c.TruncateSide, "left"), m.info.Context-answer); err != nil {
		return err
	}
	if len(p.Request.Tokens) == 0 {
		return fault.BadRequest("prompt", "expected at least one token, found none")
	}
	if len(c.AllowedTokens) > 0 {
		a := allowed{map[int32]bool{}}
		for _, id := range c.AllowedTokens {
			a.tokens[id] = true
		}
		p.addMasker(func() engine.Masker { return a })
	}
	var words [][]int32
	for _, w := range c.BadWords {
		for _, text := range []string{w, " " + strings.TrimSpace(w)} {
			if len(text) > maxStopBytes {
				return fault.BadRequest("bad_words", "expected words of at most %d bytes, found one of %d", maxStopBytes, len(text))
			}
			ids := m.tok.Encode(nil, text, tokenizer.EncodeOptions{})
			if len(ids) == 0 || len(ids) > 32 {
				return fault.BadRequest("bad_words", "expected words of 1 to 32 tokens, found %q", w)
			}
			words = append(words, ids)
		}
	}
	if len(words) > 1024 {
		return fault.BadRequest("bad_words", "expected at most 512, found %d", len(c.BadWords))
	}
	if len(words) > 0 {
		p.addMasker(func() engine.Masker { return &badWords{words: words} })
	}
	return nil
}
