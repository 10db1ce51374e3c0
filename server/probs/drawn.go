package probs

import "ridge/server/run"

// Drawn is a token with its probability after all steps of sampling, as llama-server
// writes it with post_sampling_probs.
type Drawn struct {
	ID    int32   `json:"id"`
	Token string  `json:"token"`
	Bytes []int   `json:"bytes"`
	Prob  float64 `json:"prob"` // in (0, 1]
}

// DrawnToken is a token of an answer with those that could have come in its place, most
// probable first.
type DrawnToken struct {
	Drawn
	Top []Drawn `json:"top_probs"`
}

// NewDrawn are the probabilities of some tokens, whose request asked for those of what
// they were drawn from.
func NewDrawn(m *run.Model, tokens []run.Token) []DrawnToken {
	entry := func(id int32, p float32) Drawn {
		e := NewEntry(m, id, p)
		return Drawn{id, e.Token, e.Bytes, prob(p)}
	}
	out := make([]DrawnToken, len(tokens))
	for i, t := range tokens {
		out[i] = DrawnToken{entry(t.ID, t.Prob), []Drawn{}}
		for _, o := range t.Top {
			out[i].Top = append(out[i].Top, entry(o.Token, o.LogProb))
		}
	}
	return out
}
