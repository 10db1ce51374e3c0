package llama

import (
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	"ridge/server/fault"
	"ridge/server/openai"
	"ridge/server/probs"
	"ridge/server/run"
	"ridge/server/wire"
)

// request is the body of llama-server's own POST /completion.
type request struct {
	Prompt       wire.Prompts  `json:"prompt"`
	NProbs       *wire.Integer `json:"n_probs"`
	Choices      *wire.Integer `json:"n_cmpl"` // as n
	ReturnTokens bool          `json:"return_tokens"`
	Fields       []string      `json:"response_fields"`
	Images       wire.Refused  `json:"image_data"`
	wire.SamplingFields
	openai.Common
	openai.Structured
}

// maxFields bounds the fields that an answer is asked for.
const maxFields = 64

// reply is its answer.
type reply struct {
	Index     int            `json:"index"`
	Content   string         `json:"content"`
	Tokens    []int32        `json:"tokens"`
	Slot      int            `json:"id_slot"`
	Stop      bool           `json:"stop"`
	Model     string         `json:"model"`
	Predicted int            `json:"tokens_predicted"`
	Evaluated int            `json:"tokens_evaluated"`
	Settings  map[string]any `json:"generation_settings"`
	Prompt    string         `json:"prompt"`
	NewLine   bool           `json:"has_new_line"`
	Truncated bool           `json:"truncated"`
	StopType  string         `json:"stop_type"`
	StopWord  string         `json:"stopping_word"`
	Cached    int            `json:"tokens_cached"` // of the prompt
	Timings   *wire.Timings  `json:"timings"`
	Probs     any            `json:"completion_probabilities,omitempty"`
}

// piece is a part of an answer in a stream.
type piece struct {
	Index     int     `json:"index"`
	Content   string  `json:"content"`
	Tokens    []int32 `json:"tokens"`
	Stop      bool    `json:"stop"`
	Slot      int     `json:"id_slot"`
	Model     string  `json:"model,omitempty"`
	Predicted int     `json:"tokens_predicted"`
	Evaluated int     `json:"tokens_evaluated"`
	Probs     any     `json:"completion_probabilities,omitempty"`

	Progress *wire.Progress `json:"prompt_progress,omitempty"`
}

func (s *API) completion(w http.ResponseWriter, r *http.Request) error {
	var b request
	m, err := s.Lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	return s.answer(w, r, m.Model, &b)
}

// plans turns the body into a plan for each prompt.
func (b *request) plans(r *http.Request, m *run.Model) ([]*run.Plan, error) {
	if b.Choices != nil {
		b.N = b.Choices
	}
	c := &run.Completion{Prompts: b.Prompt, Sampling: b.Sampling(), Defaults: wire.Defaults, Options: b.Options()}
	var err error
	if c.Format, err = b.Structured.Format(); err != nil {
		return nil, err
	}
	c.Top = b.NProbs.Value(0)
	if c.Probs = c.Top > 0; c.Top < 0 || c.Top > run.MaxTopProbs {
		return nil, fault.BadRequest("n_probs", "expected 0 to %d, found %d", run.MaxTopProbs, c.Top)
	}
	if len(b.Fields) > maxFields {
		return nil, fault.BadRequest("response_fields", "expected at most %d, found %d", maxFields, len(b.Fields))
	}
	return c.Plans(r.Context(), m)
}

// answer answers with an object, or with a list of them for several prompts or
// several answers to one.
func (s *API) answer(w http.ResponseWriter, r *http.Request, m *run.Model, b *request) error {
	plans, err := b.plans(r, m)
	if err != nil {
		return err
	}
	wire.NoteUnenforced(w, r, plans[0])
	n := max(1, plans[0].Request.N)
	e := s.Events(w, r)
	o := &output{m: m, b: b, plans: plans, n: n, answers: make([]run.Answer, n*len(plans)), totals: make([]run.Totals, len(plans)), clocks: make([]wire.PromptClock, len(plans))}
	var live *wire.Events
	if b.Stream {
		live = e
		for _, p := range plans {
			p.Request.Progress = b.ReturnProgress
		}
	}
	var t run.Totals
	err = s.RunAll(r.Context(), plans, &t, func(i int, d *run.Delta) error {
		o.answers[i*n+d.Choice].Add(d)
		if d.Prompt != nil {
			o.prompts(i, d)
		}
		if !b.Stream {
			return nil
		}
		return e.Data(o.piece(i, d))
	}, s.Wait(live, m))
	if err != nil {
		return openai.StreamError(e, r, err)
	}
	out := make([]any, len(o.answers))
	for i := range out {
		rep, err := o.reply(i, &t)
		if err != nil {
			return openai.StreamError(e, r, err)
		}
		if b.Stream {
			if e.Data(rep) != nil {
				return nil // a client that is gone is noticed by others
			}
		}
		out[i] = rep
	}
	switch {
	case b.Stream:
	case len(out) == 1:
		wire.WriteJSON(w, http.StatusOK, out[0])
	default:
		wire.WriteJSON(w, http.StatusOK, out)
	}
	return nil
}

// output writes the answers of a completion.
type output struct {
	m       *run.Model
	b       *request
	plans   []*run.Plan
	n       int // answers for each prompt
	answers []run.Answer
	totals  []run.Totals // of prompts
	clocks  []wire.PromptClock
}

// prompts notes what is known of prompt i.
func (o *output) prompts(i int, d *run.Delta) {
	o.totals[i].Prompt, o.totals[i].Cached = d.Prompt.Tokens, d.Prompt.Cached
}

func (o *output) slot() int { return max(0, o.b.Slot.Value(0)) }

// piece is what a delta of prompt i adds to a stream.
func (o *output) piece(i int, d *run.Delta) *piece {
	at := i*o.n + d.Choice
	x := &piece{Index: at, Content: d.Text(), Tokens: wire.IDs(d.Tokens), Slot: o.slot(), Model: o.m.Info().Name, Predicted: len(o.answers[at].Tokens), Evaluated: o.totals[i].Prompt}
	if d.Progress != nil {
		x.Progress = o.clocks[i].Tell(d.Progress.Tokens, d.Progress.Cached, d.Progress.Computed)
		x.Evaluated = d.Progress.Tokens
	}
	if o.plans[i].Probs && len(d.Tokens) > 0 {
		x.Probs = newProbs(o.plans[i], d.Tokens)
	}
	return x
}

// reply is answer i whole; in a stream its text and tokens were sent before.
func (o *output) reply(i int, t *run.Totals) (any, error) {
	p, a, in := o.plans[i/o.n], &o.answers[i], &o.totals[i/o.n]
	text := a.Text.String()
	rep := &reply{Index: i, Tokens: []int32{}, Slot: o.slot(), Stop: true, Model: o.m.Info().Name, Predicted: len(a.Tokens), Evaluated: in.Prompt, Settings: settings(p, o.b), Prompt: p.PromptText(),
		NewLine: strings.Contains(text, "\n"), Truncated: p.Truncated > 0, StopType: "eos", StopWord: a.StopText, Cached: in.Cached, Timings: wire.NewTimings(t)}
	switch {
	case a.Finish == run.FinishLength:
		rep.StopType = "limit"
	case a.StopText != "":
		rep.StopType = "word"
	}
	if !o.b.Stream {
		rep.Content = text
		if o.b.ReturnTokens {
			rep.Tokens = wire.IDs(a.Tokens)
		}
		if p.Probs && len(a.Tokens) > 0 {
			rep.Probs = newProbs(p, a.Tokens)
		}
	}
	if len(o.b.Fields) == 0 {
		return rep, nil
	}
	return pick(rep, o.b.Fields)
}

// pick leaves the fields of an answer that were asked for, each under the path that
// names it, such as generation_settings/n_predict. Those that are not there are left
// out.
func pick(rep *reply, paths []string) (map[string]json.RawMessage, error) {
	whole, err := wire.EncodeJSON(rep)
	if err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	for _, path := range paths {
		at, ok := json.RawMessage(whole), true
		for _, key := range strings.Split(path, "/") {
			var o map[string]json.RawMessage
			if ok = json.Unmarshal(at, &o) == nil; ok {
				at, ok = o[key]
			}
			if !ok {
				break
			}
		}
		if ok {
			out[path] = at
		}
	}
	return out, nil
}

// settings are how an answer was made, with llama-server's names.
func settings(p *run.Plan, b *request) map[string]any {
	o := wire.Settings(p.Sampling)
	n := p.Request.MaxTokens
	if n == 0 {
		n = -1 // as many as fit
	}
	biases := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(p.Request.Sampling.LogitBias)) {
		biases = append(biases, map[string]any{"token": id, "bias": max(-math.MaxFloat32, p.Request.Sampling.LogitBias[id])})
	}
	maps.Copy(o, map[string]any{
		"n_predict": n, "max_tokens": n, "stop": append([]string{}, b.Stop...), "ignore_eos": p.Request.IgnoreEOS, "stream": b.Stream, "n_probs": b.NProbs.Value(0), "post_sampling_probs": b.PostSampling, "logit_bias": biases,
	})
	return o
}

// topToken is a token among llama-server's log-probabilities, which have its id.
type topToken struct {
	ID int32 `json:"id"`
	probs.Entry
}

type tokenProb struct {
	topToken
	Top []topToken `json:"top_logprobs"`
}

// newProbs are the log-probabilities of some tokens of p, or the probabilities of what
// they were drawn from.
func newProbs(p *run.Plan, tokens []run.Token) any {
	m := p.Model
	if p.Request.Sampling.Drawn {
		return probs.NewDrawn(m, tokens)
	}
	out := make([]tokenProb, len(tokens))
	for i, t := range tokens {
		out[i] = tokenProb{topToken{t.ID, probs.NewEntry(m, t.ID, t.Prob)}, []topToken{}}
		for _, o := range t.Top {
			out[i].Top = append(out[i].Top, topToken{o.Token, probs.NewEntry(m, o.Token, o.LogProb)})
		}
	}
	return out
}
