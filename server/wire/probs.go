package wire

import (
	"unicode/utf8"

	"ridge/server/run"
)

// ChatProbs are log-probabilities in a chat.
type ChatProbs struct {
	Content []ChatProb `json:"content"`
	Refusal []ChatProb `json:"refusal"`
}

// ChatProb is a token with the most probable ones in its place.
type ChatProb struct {
	TopProb
	Top []TopProb `json:"top_logprobs"`
}

// TopProb is a token with its log-probability.
type TopProb struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// LogProb is a log-probability as JSON can hold it: OpenAI writes -9999 for
// what is impossible.
func LogProb(p float32) float32 {
	if !(p > -9999) {
		return -9999
	}
	return p
}

// NewTopProb is a token with its log-probability.
func NewTopProb(m *run.Model, id int32, p float32) TopProb {
	b := m.Tokenizer().Piece(id)
	bytes := make([]int, len(b))
	for i, c := range b {
		bytes[i] = int(c)
	}
	text := string(b)
	if !utf8.Valid(b) {
		text = string([]rune(text)) // what is no character becomes U+FFFD
	}
	return TopProb{Token: text, Logprob: LogProb(p), Bytes: bytes}
}

// NewChatProbs are the log-probabilities of some tokens.
func NewChatProbs(m *run.Model, tokens []run.Token) *ChatProbs {
	out := &ChatProbs{Content: []ChatProb{}}
	for _, t := range tokens {
		p := ChatProb{NewTopProb(m, t.ID, t.Prob), []TopProb{}}
		for _, o := range t.Top {
			p.Top = append(p.Top, NewTopProb(m, o.Token, o.LogProb))
		}
		out.Content = append(out.Content, p)
	}
	return out
}

// IDs are the ids of some tokens.
func IDs(tokens []run.Token) []int32 {
	out := []int32{}
	for _, t := range tokens {
		out = append(out, t.ID)
	}
	return out
}
