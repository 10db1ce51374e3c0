package openai

import (
	"strconv"

	"ridge/engine"
	"ridge/sample"
	"ridge/server/probs"
	"ridge/server/run"
	"ridge/text/tokenizer"
)

// legacyProbs are log-probabilities of a completion.
type legacyProbs struct {
	Tokens  []string             `json:"tokens"`
	Probs   []*float32           `json:"token_logprobs"`
	Top     []map[string]float32 `json:"top_logprobs"`
	Offsets []int                `json:"text_offset"`
}

// probWriter writes log-probabilities token by token.
type probWriter struct {
	m     *run.Model
	asIDs bool
	dec   *tokenizer.Decoder
	at    int // characters so far
}

// tokenName names a token by its id, as vLLM does if it is asked to.
func tokenName(id int32) string { return "token_id:" + strconv.Itoa(int(id)) }

func (w *probWriter) name(id int32) string {
	if w.asIDs {
		return tokenName(id)
	}
	return w.m.TokenText(id)
}

// add adds a token. A nil prob is that of a first token, which has none.
func (w *probWriter) add(out *legacyProbs, id int32, prob *float32, top []sample.TokenProb) {
	out.Tokens = append(out.Tokens, w.name(id))
	out.Offsets = append(out.Offsets, w.at)
	if w.dec == nil {
		w.dec = w.m.Tokenizer().NewDecoder()
		w.dec.Special = true
	}
	w.at += len([]rune(w.dec.Add(id)))
	if prob == nil {
		out.Probs, out.Top = append(out.Probs, nil), append(out.Top, nil)
		return
	}
	p := probs.LogProb(*prob)
	names := map[string]float32{}
	for _, t := range top {
		name := w.name(t.Token)
		if _, taken := names[name]; taken && t.Token != id {
			name = tokenName(t.Token) // another token of the same text
		}
		names[name] = probs.LogProb(t.LogProb)
	}
	names[w.name(id)] = p
	out.Probs, out.Top = append(out.Probs, &p), append(out.Top, names)
}

// addPrompt adds the tokens of a prompt.
func (w *probWriter) addPrompt(out *legacyProbs, p *run.Plan, info *engine.PromptInfo, top int) {
	for i, id := range p.Request.Tokens {
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
		w.add(out, id, &prob, tops[:min(len(tops), top)])
	}
}

// promptProbs are a prompt's log-probabilities in vLLM's form: for each token
// but the first an object of token ids.
func promptProbs(m *run.Model, p *run.Plan, info *engine.PromptInfo) any {
	type entry struct {
		Logprob float32 `json:"logprob"`
		Rank    *int    `json:"rank"`
		Token   string  `json:"decoded_token"`
	}
	out := make([]map[string]entry, len(p.Request.Tokens))
	for i := range out {
		if i == 0 || i >= len(info.LogProbs) {
			continue
		}
		r := info.LogProbs[i]
		out[i] = map[string]entry{}
		id := p.Request.Tokens[i]
		out[i][strconv.Itoa(int(id))] = entry{probs.LogProb(r.LogProb), nil, m.TokenText(id)}
		for k, t := range r.Top {
			rank := k + 1
			out[i][strconv.Itoa(int(t.Token))] = entry{probs.LogProb(t.LogProb), &rank, m.TokenText(t.Token)}
		}
	}
	return out
}
