package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"ridge/model"
)

func itoa(n int) string { return strconv.Itoa(n) }

// openAICompletion is the body of a completion.
type openAICompletion struct {
	Prompt   prompts  `json:"prompt"`
	Suffix   string   `json:"suffix"`
	Echo     bool     `json:"echo"`
	Logprobs *integer `json:"logprobs"`
	NProbs   *integer `json:"n_probs"`
	sampling
	common
	structured
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
}

type completionReply struct {
	ID          string             `json:"id"`
	Object      string             `json:"object"`
	Created     int64              `json:"created"`
	Model       string             `json:"model"`
	Fingerprint string             `json:"system_fingerprint"`
	Choices     []completionChoice `json:"choices"`
	Usage       json.RawMessage    `json:"usage,omitempty"`
	Timings     *timings           `json:"timings,omitempty"`
}

// request turns the body into what all dialects share.
func (b *openAICompletion) request(m *Model) (*completionRequest, error) {
	c := &completionRequest{prompts: b.Prompt, echo: b.Echo, sampling: b.sampling, defaults: openAIDefaults, common: b.common}
	var err error
	if c.format, err = b.structured.format(); err != nil {
		return nil, err
	}
	set(&b.Logprobs, b.NProbs)
	if b.Logprobs != nil {
		c.probs, c.top = true, b.Logprobs.value(0)
		if c.top < 0 || c.top > maxTopProbs {
			return nil, badRequest("logprobs", "expected 0 to %d, found %d", maxTopProbs, c.top)
		}
	}
	set(&c.MaxTokens, c.NPredict)
	if c.MaxTokens == nil {
		n := integer(defaultMaxTokens)
		c.MaxTokens = &n
	}
	if b.Suffix != "" {
		for i := range c.prompts {
			if c.prompts[i].tokens != nil {
				return nil, badRequest("suffix", "expected a prompt that is text")
			}
			if c.prompts[i].tokens, err = m.fill(c.prompts[i].text, b.Suffix); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// completions is POST /v1/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) error {
	var b openAICompletion
	m, err := s.lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.release()
	c, err := b.request(m.Model)
	if err != nil {
		return err
	}
	plans, err := c.plans(m.Model)
	if err != nil {
		return err
	}
	o := &completionOutput{s: s, r: r, m: m.Model, c: c, plans: plans, n: max(1, plans[0].req.N),
		reply: completionReply{ID: newID("cmpl-"), Object: "text_completion", Created: time.Now().Unix(), Model: m.name, Fingerprint: m.fingerprint()}}
	if b.Stream {
		if b.StreamOptions != nil {
			o.usage = b.StreamOptions.IncludeUsage
		}
		return o.stream(w)
	}
	return o.whole(w)
}

// completionOutput writes the answer of a completion.
type completionOutput struct {
	s     *Server
	r     *http.Request
	m     *Model
	c     *completionRequest
	plans []*plan
	n     int // choices per prompt
	reply completionReply
	usage bool
	t     totals
	probs []probWriter // in a stream, per choice
	begun []bool       // in a stream, per prompt
}

func (o *completionOutput) whole(w http.ResponseWriter) error {
	answers := make([]answer, len(o.plans)*o.n)
	err := o.s.runAll(o.r.Context(), o.plans, &o.t, func(i int, d *delta) error {
		answers[i*o.n+d.choice].add(d)
		if d.prompt != nil { // comes with one choice, counts for all
			for j := range o.n {
				answers[i*o.n+j].prompt = d.prompt
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
	o.reply.Timings = o.t.timings()
	if o.reply.Usage, err = encodeJSON(o.t.usage()); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, &o.reply)
	return nil
}

func (o *completionOutput) choice(i int, a *answer) completionChoice {
	p := o.plans[i/o.n]
	ch := completionChoice{Index: i, Text: a.text.String(), Finish: &a.finish, StopReason: p.stopReason(a.stopText, a.stopToken)}
	if o.c.echo {
		ch.Text = p.promptText() + ch.Text
	}
	if o.c.probs {
		ch.Logprobs = &legacyProbs{Tokens: []string{}, Probs: []*float32{}, Top: []map[string]float32{}, Offsets: []int{}}
		w := probWriter{m: o.m, asIDs: o.c.TokensAsIDs}
		if o.c.echo && a.prompt != nil {
			w.addPrompt(ch.Logprobs, p, a.prompt, o.c.top)
		}
		for _, t := range a.tokens {
			w.add(ch.Logprobs, t.id, &t.prob, t.top)
		}
		if o.lists(a.ender) {
			w.add(ch.Logprobs, a.ender.id, &a.ender.prob, a.ender.top)
		}
	}
	if o.c.TokenIDs {
		ch.TokenIDs, ch.PromptTokenIDs = ids(a.tokens), p.req.Tokens
	}
	if o.c.PromptLogprobs != nil && a.prompt != nil {
		ch.PromptLogprobs = o.m.promptProbs(p, a.prompt)
	}
	return ch
}

// lists reports whether the token that ended an answer is listed among the
// log-probabilities. With echo it is, as in vLLM: who scores a prompt asks for
// one token more and leaves out the last one of the list, lm-eval for one.
func (o *completionOutput) lists(ender *tokenInfo) bool {
	return o.c.probs && o.c.echo && ender != nil
}

func (o *completionOutput) stream(w http.ResponseWriter) error {
	e := o.s.newEvents(w, o.r)
	o.probs = make([]probWriter, len(o.plans)*o.n)
	o.begun = make([]bool, len(o.plans))
	for i := range o.probs {
		o.probs[i] = probWriter{m: o.m, asIDs: o.c.TokensAsIDs}
	}
	err := o.s.runAll(o.r.Context(), o.plans, &o.t, func(i int, d *delta) error { return o.delta(e, i, d) }, func() error { return o.s.alive(e, o.r, o.m) })
	if err == nil && o.usage {
		rep := o.reply
		rep.Choices, rep.Timings = []completionChoice{}, o.t.timings()
		if rep.Usage, err = encodeJSON(o.t.usage()); err == nil {
			err = e.data(&rep)
		}
	}
	return o.s.endStream(e, o.r, err)
}

// tellsPrompt reports whether the first chunk of a choice is about its prompt.
func (o *completionOutput) tellsPrompt() bool {
	return o.c.echo || o.c.TokenIDs || o.c.PromptLogprobs != nil
}

// delta writes a chunk.
func (o *completionOutput) delta(e *events, i int, d *delta) error {
	p := o.plans[i]
	if o.tellsPrompt() && !o.begun[i] && d.prompt != nil {
		o.begun[i] = true
		for j := range o.n {
			ch := completionChoice{Index: i*o.n + j}
			if o.c.TokenIDs {
				ch.PromptTokenIDs = p.req.Tokens
			}
			if o.c.PromptLogprobs != nil {
				ch.PromptLogprobs = o.m.promptProbs(p, d.prompt)
			}
			if o.c.echo {
				ch.Text = p.promptText()
			}
			if o.c.echo && o.c.probs {
				ch.Logprobs = &legacyProbs{}
				o.probs[ch.Index].addPrompt(ch.Logprobs, p, d.prompt, o.c.top)
			}
			if err := o.chunk(e, ch); err != nil {
				return err
			}
		}
	}
	ch := completionChoice{Index: i*o.n + d.choice, Text: d.text()}
	tokens := d.tokens
	if o.lists(d.ender) {
		tokens = append(tokens[:len(tokens):len(tokens)], *d.ender)
	}
	if o.c.probs && len(tokens) > 0 {
		ch.Logprobs = &legacyProbs{}
		for _, t := range tokens {
			o.probs[ch.Index].add(ch.Logprobs, t.id, &t.prob, t.top)
		}
	}
	if o.c.TokenIDs && len(d.tokens) > 0 {
		ch.TokenIDs = ids(d.tokens)
	}
	if d.finish != "" {
		ch.Finish, ch.StopReason = &d.finish, p.stopReason(d.stopText, d.stopToken)
	} else if ch.Text == "" && ch.Logprobs == nil && ch.TokenIDs == nil {
		return nil
	}
	return o.chunk(e, ch)
}

func (o *completionOutput) chunk(e *events, ch completionChoice) error {
	rep := o.reply
	rep.Choices = []completionChoice{ch}
	if o.usage {
		rep.Usage = json.RawMessage("null")
	}
	return e.data(&rep)
}

// fingerprint names the model's file, and what was asked for that changes its
// answers, for the worse or, as exact activations, for the better.
func (m *Model) fingerprint() string {
	fp := "fp_" + m.info.Digest[:min(12, len(m.info.Digest))]
	if m.info.Lossy != "" {
		fp += "_" + m.info.Lossy
	}
	if m.info.Act != model.ActInt8 {
		fp += "_act-" + m.info.Act.String()
	}
	return fp
}
