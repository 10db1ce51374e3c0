package probs

import (
	"math"

	"ridge/sample"
	"ridge/server/run"
)

// Trace says what a token of an answer was drawn from.
type Trace struct {
	ID int32 `json:"id"`
	Text
	Prob    float64    `json:"prob"`          // in the model's own distribution
	Entropy float64    `json:"entropy"`       // of that distribution, in nats
	Top     []TraceTop `json:"top"`           // the most probable tokens
	Kept    int        `json:"kept"`          // tokens that could be drawn, after masks and cuts
	Forced  bool       `json:"forced"`        // a grammar left one token
	Drafted bool       `json:"drafted"`       // it was guessed before it was drawn, or known without being drawn
	End     bool       `json:"end,omitempty"` // it ended the answer and is no part of it
}

// Text is what a token spells.
type Text struct {
	Text  string `json:"text"`
	Bytes []int  `json:"bytes"`
}

// TraceTop is a token that could have come.
type TraceTop struct {
	ID   int32   `json:"id"`
	Text string  `json:"text"`
	Prob float64 `json:"prob"`
	Cut  *string `json:"cut"` // what took it out, null if it could be drawn
}

// NewTraces are the traces of the tokens of an answer, and of the one that ended it
// unless that is nil. Tokens without a trace have none.
func NewTraces(m *run.Model, tokens []run.Token, ender *run.Token) []Trace {
	var out []Trace
	add := func(t *run.Token, end bool) {
		if t.Trace == nil {
			return
		}
		e := NewEntry(m, t.ID, t.Prob)
		x := Trace{ID: t.ID, Text: Text{e.Token, e.Bytes}, Prob: prob(t.Prob), Entropy: t.Trace.Entropy, Top: []TraceTop{},
			Kept: t.Trace.Kept, Forced: t.Trace.Forced, Drafted: t.Forced || t.Drafted, End: end}
		for i, o := range t.Seen {
			x.Top = append(x.Top, newTop(m, o, t.Trace.Cuts[i]))
		}
		out = append(out, x)
	}
	for i := range tokens {
		add(&tokens[i], false)
	}
	if ender != nil {
		add(ender, true)
	}
	return out
}

func newTop(m *run.Model, o sample.TokenProb, cut string) TraceTop {
	x := TraceTop{ID: o.Token, Text: NewEntry(m, o.Token, o.LogProb).Token, Prob: prob(o.LogProb)}
	if cut != "" {
		x.Cut = &cut
	}
	return x
}

func prob(logProb float32) float64 { return math.Exp(float64(logProb)) }
