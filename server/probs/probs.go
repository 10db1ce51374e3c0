// Package probs has the forms of log-probabilities that the dialects share.
package probs

import (
	"unicode/utf8"

	"ridge/server/run"
)

// Chat are log-probabilities in a chat.
type Chat struct {
	Content []ChatToken `json:"content"`
	Refusal []ChatToken `json:"refusal"`
}

// ChatToken is a token with the most probable ones in its place.
type ChatToken struct {
	Entry
	Top []Entry `json:"top_logprobs"`
}

// Entry is a token with its log-probability.
type Entry struct {
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

// NewEntry is a token with its log-probability.
func NewEntry(m *run.Model, id int32, p float32) Entry {
	b := m.Tokenizer().Piece(id)
	bytes := make([]int, len(b))
	for i, c := range b {
		bytes[i] = int(c)
	}
	text := string(b)
	if !utf8.Valid(b) {
		text = string([]rune(text)) // what is no character becomes U+FFFD
	}
	return Entry{Token: text, Logprob: LogProb(p), Bytes: bytes}
}

// NewChat are the log-probabilities of some tokens.
func NewChat(m *run.Model, tokens []run.Token) *Chat {
	out := &Chat{Content: []ChatToken{}}
	for _, t := range tokens {
		p := ChatToken{NewEntry(m, t.ID, t.Prob), []Entry{}}
		for _, o := range t.Top {
			p.Top = append(p.Top, NewEntry(m, o.Token, o.LogProb))
		}
		out.Content = append(out.Content, p)
	}
	return out
}
