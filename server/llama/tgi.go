package llama

import (
	"encoding/json"
	"net/http"

	"ridge/server/fault"
	"ridge/server/run"
	"ridge/server/wire"
)

// tgiRequest is the body of a generation in the form of Hugging Face's Text
// Generation Inference.
type tgiRequest struct {
	Inputs     *string `json:"inputs"`
	Stream     bool    `json:"stream"`
	Model      string  `json:"model"`
	Parameters struct {
		MaxNewTokens *int          `json:"max_new_tokens"`
		Temperature  *float64      `json:"temperature"`
		TopK         *int          `json:"top_k"`
		TopP         *float64      `json:"top_p"`
		TypicalP     *float64      `json:"typical_p"`
		Repetition   *float64      `json:"repetition_penalty"`
		Frequency    *float64      `json:"frequency_penalty"`
		Seed         *uint64       `json:"seed"`
		Sample       bool          `json:"do_sample"`
		Stop         []string      `json:"stop"`
		FullText     bool          `json:"return_full_text"`
		Details      bool          `json:"details"`
		Truncate     *int          `json:"truncate"`
		BestOf       *int          `json:"best_of"`
		Watermark    *wire.Refused `json:"watermark"`
		Adapter      *wire.Refused `json:"adapter_id"`
		Grammar      *struct {
			Type  string          `json:"type"`
			Value json.RawMessage `json:"value"`
		} `json:"grammar"`
	} `json:"parameters"`
}

// tgiMaxTokens is how many tokens an answer has at most that says nothing.
const tgiMaxTokens = 100

type tgiToken struct {
	ID      int32   `json:"id"`
	Text    string  `json:"text"`
	LogProb float32 `json:"logprob"`
	Special bool    `json:"special"`
}

type tgiDetails struct {
	Finish string     `json:"finish_reason"`
	Tokens int        `json:"generated_tokens"`
	Seed   *uint64    `json:"seed"`
	Input  int        `json:"input_length,omitempty"`
	Prompt []tgiToken `json:"prefill,omitempty"`
	List   []tgiToken `json:"tokens,omitempty"`
}

type tgiReply struct {
	Text    string      `json:"generated_text"`
	Details *tgiDetails `json:"details,omitempty"`
}

// completion turns the body into what all dialects share.
func (b *tgiRequest) completion(m *run.Model) (*run.Completion, error) {
	p := &b.Parameters
	if b.Inputs == nil || *b.Inputs == "" {
		return nil, fault.BadRequest("inputs", "expected a text, found nothing")
	}
	c := &run.Completion{Prompts: []run.Prompt{{Text: *b.Inputs}}, Probs: true,
		Sampling: run.Sampling{Temperature: p.Temperature, TopK: p.TopK, TopP: p.TopP, TypicalP: p.TypicalP, RepetitionPenalty: p.Repetition, FrequencyPenalty: p.Frequency, Seed: p.Seed},
		Options:  run.Options{Stream: b.Stream, MaxTokens: p.MaxNewTokens, Stop: p.Stop, Truncate: p.Truncate, BestOf: p.BestOf}}
	drawn := p.Sample || p.Temperature != nil || p.TopK != nil || p.TopP != nil || p.TypicalP != nil
	switch {
	case !drawn:
		c.Sampling.Temperature = new(0.0) // greedy, whatever the files recommend
	case p.Temperature == nil:
		c.Sampling.Temperature = new(1.0)
	}
	if p.MaxNewTokens == nil && m.MaxTokens() == nil {
		c.MaxTokens = new(tgiMaxTokens)
	}
	if g := p.Grammar; g != nil {
		c.Format = run.Format{Field: "parameters.grammar", Source: g.Value}
		switch g.Type {
		case "json", "json_schema":
			c.Format.Kind = "schema"
		case "regex":
			var expr string
			if json.Unmarshal(g.Value, &expr) != nil {
				return nil, fault.BadRequest("parameters.grammar.value", "expected a regular expression, a text")
			}
			c.Format.Kind, c.Format.Source = "regex", []byte(expr)
		default:
			return nil, fault.BadRequest("parameters.grammar.type", "expected json or regex, found %q", g.Type)
		}
	}
	return c, nil
}

// tgiRoot is POST /, which streams if the body says so; else its answer is a list.
func (s *API) tgiRoot(w http.ResponseWriter, r *http.Request) error {
	return s.tgi(w, r, func(b *tgiRequest) bool { return b.Stream }, true)
}

func (s *API) tgiGenerate(w http.ResponseWriter, r *http.Request) error {
	return s.tgi(w, r, func(*tgiRequest) bool { return false }, false)
}

func (s *API) tgiStream(w http.ResponseWriter, r *http.Request) error {
	return s.tgi(w, r, func(*tgiRequest) bool { return true }, false)
}

func (s *API) tgi(w http.ResponseWriter, r *http.Request, streams func(*tgiRequest) bool, list bool) error {
	var b tgiRequest
	m, err := s.Lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	b.Stream = streams(&b)
	c, err := b.completion(m.Model)
	if err != nil {
		return err
	}
	p, err := c.Plan(r.Context(), m.Model, &c.Prompts[0])
	if err != nil {
		return err
	}
	wire.NoteUnenforced(w, r, p)
	o := &tgiOutput{b: &b}
	var t run.Totals
	if !b.Stream {
		if err := s.Run(r.Context(), p, &t, o.add, nil); err != nil {
			return err
		}
		reply := o.reply(t.Prompt)
		if !b.Parameters.Details {
			reply.Details = nil
		}
		if list {
			wire.WriteJSON(w, http.StatusOK, []tgiReply{reply})
		} else {
			wire.WriteJSON(w, http.StatusOK, reply)
		}
		return nil
	}
	e := s.Events(w, r)
	err = s.Run(r.Context(), p, &t, func(d *run.Delta) error {
		if err := o.add(d); err != nil || len(d.Tokens) == 0 && d.Finish == "" {
			return err
		}
		return e.Data(o.event(d, t.Prompt))
	}, s.Wait(e, m.Model))
	if err == nil {
		return nil
	}
	return e.Failed(err, func(f *fault.Error) error {
		return e.Data(map[string]string{"error": f.Message, "error_type": "generation"})
	})
}

// tgiOutput puts an answer together.
type tgiOutput struct {
	b      *tgiRequest
	text   string
	tokens []tgiToken
	finish string
}

func (o *tgiOutput) add(d *run.Delta) error {
	text := d.Text()
	o.text += text
	for _, t := range d.Tokens {
		o.tokens = append(o.tokens, tgiToken{ID: t.ID, Text: text, LogProb: t.Prob})
		text = ""
	}
	switch d.Finish {
	case "":
	case run.FinishLength:
		o.finish = "length"
	default:
		if o.finish = "eos_token"; d.StopText != "" {
			o.finish = "stop_sequence"
		}
	}
	return nil
}

// event is what a stream has of a delta: a token, and behind the last one all of the
// text.
func (o *tgiOutput) event(d *run.Delta, prompt int) map[string]any {
	token := tgiToken{ID: d.StopToken, Text: d.Text(), Special: true}
	if len(d.Tokens) > 0 {
		token = o.tokens[len(o.tokens)-1]
	}
	ev := map[string]any{"index": len(o.tokens), "token": token, "generated_text": nil, "details": nil}
	if d.Finish != "" {
		r := o.reply(prompt)
		r.Details.List = nil
		ev["generated_text"], ev["details"] = r.Text, r.Details
	}
	return ev
}

func (o *tgiOutput) reply(prompt int) tgiReply {
	r := tgiReply{Text: o.text, Details: &tgiDetails{Finish: o.finish, Tokens: len(o.tokens), Seed: o.b.Parameters.Seed, Input: prompt, List: o.tokens}}
	if o.b.Parameters.FullText {
		r.Text = *o.b.Inputs + r.Text
	}
	return r
}
