package server

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"ridge/engine"
	"ridge/text/chat"
	"ridge/text/tokenizer"
)

// common are the fields that chat completions and completions share, beside
// those of sampling and structured output.
type common struct {
	Model         string     `json:"model"`
	Stream        bool       `json:"stream"`
	StreamOptions *streamOpt `json:"stream_options"`
	MaxTokens     *integer   `json:"max_tokens"`
	NPredict      *integer   `json:"n_predict"`
	N             *integer   `json:"n"`
	BestOf        *integer   `json:"best_of"`
	Stop          stringList `json:"stop"`
	User          string     `json:"user"`

	StopTokenIDs   []int32  `json:"stop_token_ids"`
	IncludeStop    bool     `json:"include_stop_str_in_output"`
	IgnoreEOS      bool     `json:"ignore_eos"`
	MinTokens      *integer `json:"min_tokens"`
	UseBeam        bool     `json:"use_beam_search"`
	LengthPenalty  *float64 `json:"length_penalty"`
	EarlyStopping  bool     `json:"early_stopping"`
	PromptLogprobs *integer `json:"prompt_logprobs"`
	AllowedTokens  []int32  `json:"allowed_token_ids"`
	BadWords       []string `json:"bad_words"`
	SkipSpecial    *bool    `json:"skip_special_tokens"`
	AddSpecial     *bool    `json:"add_special_tokens"`
	Truncate       *integer `json:"truncate_prompt_tokens"`
	Priority       *integer `json:"priority"`
	CacheSalt      string   `json:"cache_salt"`
	RequestID      string   `json:"request_id"`
	TokenIDs       bool     `json:"return_token_ids"`
	TokensAsIDs    bool     `json:"return_tokens_as_token_ids"`
	TimeLimit      *integer `json:"t_max_predict_ms"`
}

// streamOpt is OpenAI's stream_options.
type streamOpt struct {
	IncludeUsage    bool `json:"include_usage"`
	ContinuousUsage bool `json:"continuous_usage_stats"`
}

// chatRequest is a conversation to be continued, in whatever dialect it came.
type chatRequest struct {
	messages   []chat.Message
	tools      []tool
	choice     toolChoice
	parallel   bool
	format     format
	args       map[string]any // for the template
	template   string         // in place of the model's
	noGenerate bool           // do not begin the assistant's turn
	goOn       bool           // continue the last message
	noParse    bool           // reasoning stays in the text
	probs      bool
	top        int
	sampling   sampling
	defaults   sampling
	common
}

// limits of requests.
const (
	maxStops     = 64
	maxStopBytes = 4096
	maxTopProbs  = 20
)

// plan makes a plan of a conversation.
func (c *chatRequest) plan(m *Model) (*plan, error) {
	p := &plan{m: m, probs: c.probs, top: c.top}
	tools, err := c.choice.choose(c.tools)
	if err != nil {
		return nil, err
	}
	prompt, err := c.prompt(m, tools)
	if err != nil {
		return nil, err
	}
	p.text, p.req.Tokens = prompt.Text, prompt.Tokens
	if c.common.AddSpecial != nil {
		p.req.Tokens = m.encode(p.text, *c.common.AddSpecial)
	}
	p.parse = &chat.ParseOptions{Prompt: tail(p.text), KeepReasoning: c.noParse}
	for _, t := range tools {
		p.parse.Tools = append(p.parse.Tools, t.raw)
	}
	if err := c.common.fill(p, c.sampling, c.defaults); err != nil {
		return nil, err
	}
	c.format = c.format.resolve(m, &c.common)
	if len(tools) > 0 {
		p.oneCall = !c.parallel
		if c.format.kind != "" && c.choice.mode != "required" {
			err = p.formatOrTools(c.format, tools, c.parallel)
		} else {
			err = p.constrainTools(tools, c.choice, c.format, c.parallel)
		}
	} else if c.format.kind != "" {
		err = p.setFormat(c.format)
	}
	if err == nil {
		err = p.jumpAhead(c.format, &c.common)
	}
	if err != nil {
		return nil, err
	}
	return p, p.finish(&c.common)
}

// setFormat holds a plan's text to a format.
func (p *plan) setFormat(f format) error {
	g, err := f.compile(p.m)
	if err != nil {
		return err
	}
	return p.constrain(g)
}

// tail is the end of a prompt, all that a parser wants to know of it.
func tail(s string) string { return s[max(0, len(s)-256):] }

// prompt turns the conversation into what the model reads.
func (c *chatRequest) prompt(m *Model, tools []tool) (chat.Prompt, error) {
	if len(c.messages) == 0 {
		return chat.Prompt{}, badRequest("messages", "expected at least one message, found none")
	}
	tmpl := m.tmpl
	if c.template != "" {
		var err error
		if tmpl, err = chat.Compile(c.template, chat.OptionsFor("chat_template", m.tok)); err != nil {
			return chat.Prompt{}, badRequest("chat_template", "%v", err)
		}
	}
	in := chat.Input{Messages: m.opening(c.messages), AddGenerationPrompt: !c.noGenerate && !c.goOn, Continue: c.goOn, Extra: c.args, Now: time.Now()}
	for _, t := range tools {
		in.Tools = append(in.Tools, t.raw)
	}
	p, err := tmpl.Prompt(in, m.tok)
	switch {
	case err == nil:
	case errors.Is(err, chat.ErrContinue):
		err = badRequest("continue_final_message", "%v", chat.ErrContinue)
	case errors.Is(err, chat.ErrRefused):
		err = badRequest("messages", "%v", err)
	default:
		err = badRequest("messages", "the chat template does not take this conversation: %v", err)
	}
	return p, err
}

// fill puts the common fields into a plan.
func (c *common) fill(p *plan, s, defaults sampling) error {
	var err error
	r := &p.req
	if r.Sampling, err = s.params(p.m, defaults); err != nil {
		return err
	}
	if p.probs {
		r.Sampling.LogProbs = max(1, p.top)
	}
	set(&c.MaxTokens, c.NPredict)
	set(&c.MaxTokens, p.m.maxTokens)
	if c.Stop == nil {
		c.Stop = p.m.stops
	}
	switch n := c.MaxTokens.value(-1); {
	case c.MaxTokens == nil || n == -1:
	case n < 0:
		return badRequest("max_tokens", "expected 1 or more, found %d", n)
	default:
		r.MaxTokens = n
		if n == 0 {
			r.MaxTokens = -1
		}
	}
	if r.MinTokens = c.MinTokens.value(0); r.MinTokens < 0 || r.MaxTokens > 0 && r.MinTokens > r.MaxTokens {
		return badRequest("min_tokens", "expected 0 to max_tokens, found %d", r.MinTokens)
	}
	if r.N = c.N.value(1); r.N < 1 || r.N > engine.MaxChoices {
		return badRequest("n", "expected 1 to %d, found %d", engine.MaxChoices, r.N)
	}
	if c.BestOf != nil {
		if r.BestOf = c.BestOf.value(1); r.BestOf < r.N || r.BestOf > engine.MaxChoices {
			return badRequest("best_of", "expected n to %d, found %d", engine.MaxChoices, r.BestOf)
		}
		if c.Stream && r.BestOf > r.N {
			return badRequest("best_of", "cannot be combined with stream: the best answers are known at the end")
		}
	}
	if len(c.Stop) > maxStops {
		return badRequest("stop", "expected at most %d, found %d", maxStops, len(c.Stop))
	}
	for _, s := range c.Stop {
		if len(s) > maxStopBytes {
			return badRequest("stop", "expected strings of at most %d bytes, found one of %d", maxStopBytes, len(s))
		}
	}
	if id := c.RequestID; id != "" && cleanID(id) != id { // people see it on their terminals
		return badRequest("request_id", "expected at most 128 letters, digits and -_.:/, found %s", excerpt([]byte(id)))
	}
	p.stops, p.includeStop = c.Stop, c.IncludeStop
	r.Priority, r.CacheSalt, r.ID = c.Priority.value(0), c.CacheSalt, c.RequestID
	p.special = c.SkipSpecial != nil && !*c.SkipSpecial
	return c.fillEnds(p)
}

// fillEnds sets what ends an answer and what may not be in it.
func (c *common) fillEnds(p *plan) error {
	r, m := &p.req, p.m
	if r.IgnoreEOS = c.IgnoreEOS; !c.IgnoreEOS {
		r.StopTokens = append(r.StopTokens, m.ends...)
	}
	if err := errors.Join(m.checkIDs("stop_token_ids", c.StopTokenIDs), m.checkIDs("allowed_token_ids", c.AllowedTokens)); err != nil {
		return err
	}
	r.StopTokens = append(r.StopTokens, c.StopTokenIDs...)
	if n := c.PromptLogprobs; n != nil {
		if *n < 0 || *n > maxTopProbs {
			return badRequest("prompt_logprobs", "expected 0 to %d, found %d", maxTopProbs, *n)
		}
		r.PromptLogProbs = max(1, n.value(0))
	}
	if c.UseBeam {
		lp := 1.0
		if c.LengthPenalty != nil {
			lp = *c.LengthPenalty
		}
		if c.Stream {
			return badRequest("use_beam_search", "cannot be combined with stream: the answers are known at the end")
		}
		r.Beam = &engine.Beam{Width: max(r.BestOf, r.N), LengthPenalty: float32(lp), EarlyStop: c.EarlyStopping}
		r.BestOf = 0
		if math.Abs(lp) > 100 {
			return badRequest("length_penalty", "expected -100 to 100, found %g", lp)
		}
	}
	if t := c.TimeLimit; t != nil && *t > 0 {
		p.limit = time.Duration(*t) * time.Millisecond
	}
	return nil
}

// finish makes the last checks of a plan and adds the masks that are not
// grammars.
func (p *plan) finish(c *common) error {
	m := p.m
	if n := c.Truncate; n != nil && *n != -1 {
		if *n < 1 {
			return badRequest("truncate_prompt_tokens", "expected -1 or at least 1, found %d", *n)
		}
		p.req.Tokens = p.req.Tokens[max(0, len(p.req.Tokens)-int(*n)):]
	}
	if len(p.req.Tokens) == 0 {
		return badRequest("prompt", "expected at least one token, found none")
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
			ids := m.tok.Encode(nil, text, tokenizer.EncodeOptions{})
			if len(ids) == 0 || len(ids) > 32 {
				return badRequest("bad_words", "expected words of 1 to 32 tokens, found %q", w)
			}
			words = append(words, ids)
		}
	}
	if len(words) > 1024 {
		return badRequest("bad_words", "expected at most 512, found %d", len(c.BadWords))
	}
	if len(words) > 0 {
		p.addMasker(func() engine.Masker { return &badWords{words: words} })
	}
	return nil
}

// extra variables that templates know for a level of effort in reasoning.
func effortArgs(effort string, args map[string]any) (map[string]any, error) {
	switch effort {
	case "":
		return args, nil
	case "none", "minimal", "low", "medium", "high", "xhigh":
	default:
		return nil, badRequest("reasoning_effort", "expected none, minimal, low, medium, high or xhigh, found %q", effort)
	}
	out := map[string]any{"reasoning_effort": effort, "enable_thinking": effort != "none" && effort != "minimal"}
	for k, v := range args {
		out[k] = v
	}
	return out, nil
}

// templateArgs reads a client's extra variables for the template. Their order
// of keys is kept.
func templateArgs(raw map[string]json.RawMessage) map[string]any {
	if len(raw) == 0 {
		return nil
	}
	out := map[string]any{}
	for k, v := range raw {
		var x any
		var n int64
		switch {
		case json.Unmarshal(v, &n) == nil && string(v) != "null":
			out[k] = n
		case len(v) > 0 && v[0] != '{' && v[0] != '[' && json.Unmarshal(v, &x) == nil:
			out[k] = x
		default:
			out[k] = v
		}
	}
	return out
}
