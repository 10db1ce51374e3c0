package openai

import (
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/probs"
	"ridge/server/run"
	"ridge/server/wire"
)

// completionRequest is the body of a completion.
type completionRequest struct {
	Prompt   wire.Prompts  `json:"prompt"`
	Suffix   string        `json:"suffix"`
	Echo     bool          `json:"echo"`
	Logprobs *wire.Integer `json:"logprobs"`
	NProbs   *wire.Integer `json:"n_probs"`
	wire.SamplingFields
	Common
	Structured
}

// defaultMaxTokens is OpenAI's for completions.
const defaultMaxTokens = 16

type completionChoice struct {
	Index          int          `json:"index"`
	Text           string       `json:"text"`
	Logprobs       *legacyProbs `json:"logprobs"`
	Finish         *string      `json:"finish_reason"`
	StopReason     any          `json:"stop_reason,omitempty"`
	TokenIDs       []int32      `json:"token_ids,omitempty"`
	PromptTokenIDs []int32      `json:"prompt_token_ids,omitempty"`
	PromptLogprobs any          `json:"prompt_logprobs,omitempty"`

	Trace []probs.Trace `json:"ridge_trace,omitempty"`
}

type completionReply struct {
	ID          string             `json:"id"`
	Object      string             `json:"object"`
	Created     int64              `json:"created"`
	Model       string             `json:"model"`
	Fingerprint string             `json:"system_fingerprint"`
	Choices     []completionChoice `json:"choices"`
	Usage       json.RawMessage    `json:"usage,omitempty"`
	Timings     *wire.Timings      `json:"timings,omitempty"`
	Progress    *wire.Progress     `json:"prompt_progress,omitempty"`
}

// request turns the body into what all dialects share.
func (b *completionRequest) request(m *run.Model) (*run.Completion, error) {
	c := &run.Completion{Prompts: b.Prompt, Echo: b.Echo, Sampling: b.Sampling(), Defaults: wire.Defaults, Options: b.Options()}
	err := b.check()
	if err != nil {
		return nil, err
	}
	if c.Format, err = b.Structured.Format(); err != nil {
		return nil, err
	}
	b.Logprobs = cmp.Or(b.Logprobs, b.NProbs)
	if b.Logprobs != nil {
		c.Probs, c.Top = true, b.Logprobs.Value(0)
		if c.Top < 0 || c.Top > run.MaxTopProbs {
			return nil, fault.BadRequest("logprobs", "expected 0 to %d, found %d", run.MaxTopProbs, c.Top)
		}
	}
	c.Probs = c.Probs || len(c.ProbIDs) > 0
	if c.MaxTokens == nil && m.MaxTokens() == nil {
		c.MaxTokens = new(defaultMaxTokens)
	}
	if b.Suffix != "" {
		for i := range c.Prompts {
			if c.Prompts[i].Tokens != nil || c.Prompts[i].Parts != nil {
				return nil, fault.BadRequest("suffix", "expected a prompt that is text")
			}
			if c.Prompts[i].Tokens, err = m.Fill(c.Prompts[i].Text, b.Suffix); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// completions is POST /v1/completions.
func (s *API) completions(w http.ResponseWriter, r *http.Request) error {
	var b completionRequest
	m, err := s.Lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	c, err := b.request(m.Model)
	if err != nil {
		return err
	}
	plans, err := c.Plans(r.Context(), m.Model)
	if err != nil {
		return err
	}
	wire.NoteUnenforced(w, r, plans[0])
	o := &completionOutput{s: s, r: r, m: m.Model, b: &b, c: c, plans: plans, n: max(1, plans[0].Request.N),
		reply: completionReply{ID: caller.NewID("cmpl-"), Object: "text_completion", Created: time.Now().Unix(), Model: m.Info().Name, Fingerprint: m.Fingerprint()}}
	if b.Stream {
		if b.StreamOptions != nil {
			o.usage, o.running = b.StreamOptions.IncludeUsage, b.StreamOptions.ContinuousUsage
		}
		return o.stream(w)
	}
	return o.whole(w)
}

// completionOutput writes the answer of a completion.
type completionOutput struct {
	s     *API
	r     *http.Request
	m     *run.Model
	b     *completionRequest
	c     *run.Completion
	plans []*run.Plan
	n     int // choices per prompt
	reply completionReply
	t     run.Totals
	probs []probWriter // in a stream, per choice
	begun []bool       // in a stream, per prompt
	clock []wire.PromptClock

	usage, running bool  // in a stream: at the end, and in every chunk
	live           []int // tokens so far, per choice
}

func (o *completionOutput) whole(w http.ResponseWriter) error {
	answers := make([]run.Answer, len(o.plans)*o.n)
	err := o.s.RunAll(o.r.Context(), o.plans, &o.t, func(i int, d *run.Delta) error {
		answers[i*o.n+d.Choice].Add(d)
		if d.Prompt != nil { // comes with one choice, counts for all
			for j := range o.n {
				answers[i*o.n+j].Prompt = d.Prompt
			}
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	for i := range answers {
		o.reply.Choices = append(o.reply.Choices, o.choice(i, &answers[i]))
	}
	o.reply.Timings = wire.NewTimings(&o.t)
	if o.reply.Usage, err = wire.EncodeJSON(newUsage(&o.t)); err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, &o.reply)
	return nil
}

func (o *completionOutput) choice(i int, a *run.Answer) completionChoice {
	p := o.plans[i/o.n]
	ch := completionChoice{Index: i, Text: a.Text.String(), Finish: &a.Finish, StopReason: stopReason(p, a.StopText, a.StopToken)}
	if o.c.Echo {
		ch.Text = p.PromptText() + ch.Text
	}
	if o.c.Probs {
		ch.Logprobs = &legacyProbs{Tokens: []string{}, Probs: []*float32{}, Top: []map[string]float32{}, Offsets: []int{}}
		w := probWriter{m: o.m, asIDs: o.b.TokensAsIDs}
		if o.c.Echo && a.Prompt != nil {
			w.addPrompt(ch.Logprobs, p, a.Prompt, o.c.Top)
		}
		for _, t := range a.Tokens {
			w.add(ch.Logprobs, t.ID, &t.Prob, t.Top)
		}
		if o.lists(a.Ender) {
			w.add(ch.Logprobs, a.Ender.ID, &a.Ender.Prob, a.Ender.Top)
		}
	}
	if o.b.TokenIDs {
		ch.TokenIDs, ch.PromptTokenIDs = wire.IDs(a.Tokens), p.Request.Tokens
	}
	ch.Trace = probs.NewTraces(o.m, a.Tokens, a.Ender)
	if o.c.PromptLogProbs != nil && a.Prompt != nil {
		ch.PromptLogprobs = promptProbs(o.m, p, a.Prompt)
	}
	return ch
}

// lists reports whether the token that ended an answer is listed among the
// log-probabilities. With echo it is, as in vLLM: who scores a prompt asks for
// one token more and leaves out the last one of the list, lm-eval for one.
func (o *completionOutput) lists(ender *run.Token) bool {
	return o.c.Probs && o.c.Echo && ender != nil
}

func (o *completionOutput) stream(w http.ResponseWriter) error {
	e := o.s.Events(w, o.r)
	o.probs = make([]probWriter, len(o.plans)*o.n)
	o.begun, o.live, o.clock = make([]bool, len(o.plans)), make([]int, len(o.probs)), make([]wire.PromptClock, len(o.plans))
	for _, p := range o.plans {
		p.Request.Progress = o.b.ReturnProgress
	}
	for i := range o.probs {
		o.probs[i] = probWriter{m: o.m, asIDs: o.b.TokensAsIDs}
	}
	err := o.s.RunAll(o.r.Context(), o.plans, &o.t, func(i int, d *run.Delta) error { return o.delta(e, i, d) }, func() error { return o.s.Alive(e, o.m) })
	if err == nil && o.usage {
		rep := o.reply
		rep.Choices, rep.Timings = []completionChoice{}, wire.NewTimings(&o.t)
		if rep.Usage, err = wire.EncodeJSON(newUsage(&o.t)); err == nil {
			err = e.Data(&rep)
		}
	}
	return endStream(e, o.r, err)
}

// tellsPrompt reports whether the first chunk of a choice is about its prompt.
func (o *completionOutput) tellsPrompt() bool {
	return o.c.Echo || o.b.TokenIDs || o.c.PromptLogProbs != nil
}

// delta writes a chunk.
func (o *completionOutput) delta(e *wire.Events, i int, d *run.Delta) error {
	p := o.plans[i]
	if d.Progress != nil {
		rep := o.reply
		rep.Choices = []completionChoice{{Index: i * o.n}}
		rep.Progress = o.clock[i].Tell(d.Progress.Tokens, d.Progress.Cached, d.Progress.Computed)
		return e.Data(&rep)
	}
	if o.tellsPrompt() && !o.begun[i] && d.Prompt != nil {
		o.begun[i] = true
		for j := range o.n {
			ch := completionChoice{Index: i*o.n + j}
			if o.b.TokenIDs {
				ch.PromptTokenIDs = p.Request.Tokens
			}
			if o.c.PromptLogProbs != nil {
				ch.PromptLogprobs = promptProbs(o.m, p, d.Prompt)
			}
			if o.c.Echo {
				ch.Text = p.PromptText()
			}
			if o.c.Echo && o.c.Probs {
				ch.Logprobs = &legacyProbs{}
				o.probs[ch.Index].addPrompt(ch.Logprobs, p, d.Prompt, o.c.Top)
			}
			if err := o.chunk(e, ch); err != nil {
				return err
			}
		}
	}
	ch := completionChoice{Index: i*o.n + d.Choice, Text: d.Text()}
	tokens := d.Tokens
	o.live[ch.Index] += len(tokens)
	if o.lists(d.Ender) {
		tokens = append(tokens[:len(tokens):len(tokens)], *d.Ender)
	}
	if o.c.Probs && len(tokens) > 0 {
		ch.Logprobs = &legacyProbs{}
		for _, t := range tokens {
			o.probs[ch.Index].add(ch.Logprobs, t.ID, &t.Prob, t.Top)
		}
	}
	if o.b.TokenIDs && len(d.Tokens) > 0 {
		ch.TokenIDs = wire.IDs(d.Tokens)
	}
	ch.Trace = probs.NewTraces(o.m, d.Tokens, d.Ender)
	if d.Finish != "" {
		ch.Finish, ch.StopReason = &d.Finish, stopReason(p, d.StopText, d.StopToken)
	} else if ch.Text == "" && ch.Logprobs == nil && ch.TokenIDs == nil && ch.Trace == nil {
		return nil
	}
	return o.chunk(e, ch)
}

func (o *completionOutput) chunk(e *wire.Events, ch completionChoice) error {
	rep := o.reply
	rep.Choices = []completionChoice{ch}
	switch {
	case o.usage && o.running: // of this choice alone, as in vLLM
		n, m := len(o.plans[ch.Index/o.n].Request.Tokens), o.live[ch.Index]
		b, err := wire.EncodeJSON(usage{Prompt: n, Completion: m, Total: n + m})
		if err != nil {
			return err
		}
		rep.Usage = b
	case o.usage:
		rep.Usage = json.RawMessage("null")
	}
	return e.Data(&rep)
}
