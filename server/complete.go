package server

import (
	"ridge/engine"
	"ridge/sample"
	"ridge/text/tokenizer"
)

// maxPrompts bounds the prompts of one request.
const maxPrompts = 4096

// completionRequest asks for continuations of prompts, in whatever dialect it
// came.
type completionRequest struct {
	prompts  prompts
	format   format
	probs    bool
	top      int
	echo     bool
	sampling sampling
	defaults sampling
	common
}

// plans makes a plan of each prompt.
func (c *completionRequest) plans(m *Model) ([]*plan, error) {
	if len(c.prompts) == 0 {
		return nil, badRequest("prompt", "expected at least one prompt, found none")
	}
	if len(c.prompts) > maxPrompts {
		return nil, badRequest("prompt", "expected at most %d prompts, found %d", maxPrompts, len(c.prompts))
	}
	var out []*plan
	for i := range c.prompts {
		p, err := c.plan(m, &c.prompts[i])
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func (c *completionRequest) plan(m *Model, in *prompt) (*plan, error) {
	p := &plan{m: m, text: in.text, probs: c.probs, top: c.top}
	if p.req.Tokens = in.tokens; in.tokens == nil {
		special := true
		if c.AddSpecial != nil {
			special = *c.AddSpecial
		}
		p.req.Tokens = m.encode(in.text, special)
		if len(p.req.Tokens) == 0 && m.tok.BOS() >= 0 {
			p.req.Tokens = []int32{m.tok.BOS()} // an empty prompt: the start of any text
		}
	}
	if err := m.checkIDs("prompt", in.tokens); err != nil {
		return nil, err
	}
	if err := c.common.fill(p, c.sampling, c.defaults); err != nil {
		return nil, err
	}
	if c.echo && c.probs {
		p.req.PromptLogProbs = max(1, c.top, p.req.PromptLogProbs)
	}
	c.format = c.format.resolve(m, &c.common)
	if c.format.kind != "" {
		if err := p.setFormat(c.format); err != nil {
			return nil, err
		}
	}
	if err := p.jumpAhead(c.format, &c.common); err != nil {
		return nil, err
	}
	return p, p.finish(&c.common)
}

// checkIDs refuses tokens that m does not have.
func (m *Model) checkIDs(field string, ids []int32) error {
	for _, id := range ids {
		if id < 0 || int(id) >= m.tok.VocabSize() {
			return badRequest(field, "expected token ids from 0 to %d, found %d", m.tok.VocabSize()-1, id)
		}
	}
	return nil
}

// promptText is the text of a plan's prompt.
func (p *plan) promptText() string {
	if p.text != "" {
		return p.text
	}
	return p.m.tok.DecodeSpecial(p.req.Tokens)
}

// fimTokens are the marks of a text to be filled in.
type fimTokens struct{ prefix, suffix, middle int32 }

// fimNames are the marks of known families.
var fimNames = [][3]string{
	{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
	{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
	{"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
	{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
	{"▁<PRE>", "▁<SUF>", "▁<MID>"},
	{"<PRE>", "<SUF>", "<MID>"},
}

// fim finds the model's marks.
func (m *Model) fim() (t fimTokens, ok bool) {
	for _, n := range fimNames {
		var found [3]int32
		all := true
		for i, name := range n {
			id, is := m.tok.ID(name)
			found[i], all = id, all && is
		}
		if !all {
			continue
		}
		return fimTokens{found[0], found[1], found[2]}, true
	}
	return t, false
}

// fill is the prompt for the text between prefix and suffix.
func (m *Model) fill(prefix, suffix string) ([]int32, error) {
	t, ok := m.fim()
	if !ok {
		return nil, unsupported("suffix", "this model was not trained to fill in text: it has no tokens for that")
	}
	plain := tokenizer.EncodeOptions{}
	var ids []int32
	if m.tok.AddsBOS() {
		ids = append(ids, m.tok.BOS())
	}
	ids = m.tok.Encode(append(ids, t.prefix), prefix, plain)
	ids = m.tok.Encode(append(ids, t.suffix), suffix, plain)
	return append(ids, t.middle), nil
}

// legacyProbs are log-probabilities of a completion.
type legacyProbs struct {
	Tokens  []string             `json:"tokens"`
	Probs   []*float32           `json:"token_logprobs"`
	Top     []map[string]float32 `json:"top_logprobs"`
	Offsets []int                `json:"text_offset"`
}

// probWriter writes log-probabilities token by token.
type probWriter struct {
	m     *Model
	asIDs bool
	dec   *tokenizer.Decoder
	at    int // characters so far
}

// tokenName names a token by its id, as vLLM does if it is asked to.
func tokenName(id int32) string { return "token_id:" + itoa(int(id)) }

func (w *probWriter) name(id int32) string {
	if w.asIDs {
		return tokenName(id)
	}
	return w.m.tokenText(id)
}

// add adds a token. A nil prob is that of a first token, which has none.
func (w *probWriter) add(out *legacyProbs, id int32, prob *float32, top []sample.TokenProb) {
	out.Tokens = append(out.Tokens, w.name(id))
	out.Offsets = append(out.Offsets, w.at)
	if w.dec == nil {
		w.dec = w.m.tok.NewDecoder()
		w.dec.Special = true
	}
	w.at += len([]rune(w.dec.Add(id)))
	if prob == nil {
		out.Probs, out.Top = append(out.Probs, nil), append(out.Top, nil)
		return
	}
	p := logProb(*prob)
	names := map[string]float32{}
	for _, t := range top {
		name := w.name(t.Token)
		if _, taken := names[name]; taken && t.Token != id {
			name = tokenName(t.Token) // another token of the same text
		}
		names[name] = logProb(t.LogProb)
	}
	names[w.name(id)] = p
	out.Probs, out.Top = append(out.Probs, &p), append(out.Top, names)
}

// addPrompt adds the tokens of a prompt.
func (w *probWriter) addPrompt(out *legacyProbs, p *plan, info *engine.PromptInfo, top int) {
	for i, id := range p.req.Tokens {
		if i == 0 || i >= len(info.LogProbs) {
			w.add(out, id, nil, nil)
			continue
		}
		prob, tops := info.LogProbs[i].LogProb, info.LogProbs[i].Top
		for _, t := range tops {
			if t.Token == id {
				prob = t.LogProb
			}
		}
		// With top 0 the best one still is there: who asks for the prompt's
		// log-probabilities wants to know whether each token was the best.
		w.add(out, id, &prob, tops[:min(len(tops), max(1, top))])
	}
}

// promptProbs are a prompt's log-probabilities in vLLM's form: for each token
// but the first an object of token ids.
func (m *Model) promptProbs(p *plan, info *engine.PromptInfo) any {
	type entry struct {
		Logprob float32 `json:"logprob"`
		Rank    *int    `json:"rank"`
		Token   string  `json:"decoded_token"`
	}
	out := make([]map[string]entry, len(p.req.Tokens))
	for i := range out {
		if i == 0 || i >= len(info.LogProbs) {
			continue
		}
		r := info.LogProbs[i]
		out[i] = map[string]entry{}
		id := p.req.Tokens[i]
		out[i][itoa(int(id))] = entry{logProb(r.LogProb), nil, m.tokenText(id)}
		for k, t := range r.Top {
			rank := k + 1
			out[i][itoa(int(t.Token))] = entry{logProb(t.LogProb), &rank, m.tokenText(t.Token)}
		}
	}
	return out
}
