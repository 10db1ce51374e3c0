package server

import (
	"encoding/json"
	"math"
	"unicode/utf8"

	"ridge/text/chat"
)

// chatMessage is a message of an answer, and a piece of one in a stream.
type chatMessage struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Alias     string     `json:"reasoning,omitempty"` // the same, for clients that ask for it
	Refusal   *string    `json:"refusal"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`
}

// chatDelta is a message in a stream, where what is absent did not change.
type chatDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Alias     string     `json:"reasoning,omitempty"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`
}

type chatCall struct {
	Index    *int         `json:"index,omitempty"` // in streams only
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type chatChoice struct {
	Index      int          `json:"index"`
	Message    *chatMessage `json:"message,omitempty"`
	Delta      *chatDelta   `json:"delta,omitempty"`
	Logprobs   *chatProbs   `json:"logprobs"`
	Finish     *string      `json:"finish_reason"`
	StopReason any          `json:"stop_reason,omitempty"` // vLLM: the stop string or token
	TokenIDs   []int32      `json:"token_ids,omitempty"`
}

type chatReply struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"`
	Model       string       `json:"model"`
	Fingerprint string       `json:"system_fingerprint"`
	Choices     []chatChoice `json:"choices"`
	// Usage is absent, null or there, as the client asked for it.
	Usage          json.RawMessage `json:"usage,omitempty"`
	Timings        *timings        `json:"timings,omitempty"`
	PromptLogprobs any             `json:"prompt_logprobs,omitempty"`
	PromptTokenIDs []int32         `json:"prompt_token_ids,omitempty"`
}

// chatProbs are log-probabilities in a chat.
type chatProbs struct {
	Content []chatProb `json:"content"`
	Refusal []chatProb `json:"refusal"`
}

type chatProb struct {
	topProb
	Top []topProb `json:"top_logprobs"`
}

type topProb struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// usage counts tokens as OpenAI does.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	PromptMore struct {
		Cached int `json:"cached_tokens"`
		Audio  int `json:"audio_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionMore struct {
		Reasoning int `json:"reasoning_tokens"`
		Audio     int `json:"audio_tokens"`
		Accepted  int `json:"accepted_prediction_tokens"`
		Rejected  int `json:"rejected_prediction_tokens"`
		Forced    int `json:"jump_ahead_tokens,omitempty"` // that were not drawn
	} `json:"completion_tokens_details"`
}

func (t *totals) usage() usage {
	u := usage{Prompt: t.prompt, Completion: t.tokens, Total: t.prompt + t.tokens}
	u.PromptMore.Cached = t.cached
	u.CompletionMore.Reasoning, u.CompletionMore.Forced = t.reasoning, t.forced
	return u
}

// timings are llama-server's, with the time in the queue.
type timings struct {
	CacheN         int     `json:"cache_n"`
	PromptN        int     `json:"prompt_n"`
	PromptMS       float64 `json:"prompt_ms"`
	PromptTokenMS  float64 `json:"prompt_per_token_ms"`
	PromptPerSec   float64 `json:"prompt_per_second"`
	PredictedN     int     `json:"predicted_n"`
	PredictedMS    float64 `json:"predicted_ms"`
	PredictedTokMS float64 `json:"predicted_per_token_ms"`
	PredictedSec   float64 `json:"predicted_per_second"`
	ForcedN        int     `json:"jump_ahead_n,omitempty"` // of predicted_n, not drawn
	QueueMS        float64 `json:"queue_ms"`
	FirstMS        float64 `json:"first_token_ms"`
	// Energy is an estimate: the request's share, by tokens, in what the
	// processor used meanwhile.
	Joules       *float64 `json:"energy_joules,omitempty"`
	EnergySource string   `json:"energy_source,omitempty"`
}

func (t *totals) timings() *timings {
	n := t.prompt - t.cached
	x := &timings{
		CacheN: t.cached, PromptN: n, PromptMS: ms(t.prefill.Seconds()), PredictedN: t.tokens, PredictedMS: ms(t.decode.Seconds()),
		ForcedN: t.forced, QueueMS: ms(t.queued.Seconds()), FirstMS: ms(t.ttft.Seconds()),
	}
	x.PromptTokenMS, x.PromptPerSec = per(x.PromptMS, n), rate(n, x.PromptMS)
	if t.meter != nil {
		x.Joules, x.EnergySource = &t.joules, t.meter.source()
	}
	// The first token comes with the prompt.
	x.PredictedTokMS, x.PredictedSec = per(x.PredictedMS, t.tokens-1), rate(t.tokens-1, x.PredictedMS)
	return x
}

func ms(s float64) float64 { return math.Round(s*1e6) / 1e3 }

func per(ms float64, n int) float64 {
	if n <= 0 {
		return 0
	}
	return ms / float64(n)
}

func rate(n int, ms float64) float64 {
	if ms <= 0 || n <= 0 {
		return 0
	}
	return float64(n) / ms * 1e3
}

// logProb is a log-probability as JSON can hold it: OpenAI writes -9999 for
// what is impossible.
func logProb(p float32) float32 {
	if !(p > -9999) {
		return -9999
	}
	return p
}

func (m *Model) topProb(id int32, p float32) topProb {
	b := m.tok.Piece(id)
	bytes := make([]int, len(b))
	for i, c := range b {
		bytes[i] = int(c)
	}
	text := string(b)
	if !utf8.Valid(b) {
		text = string([]rune(text)) // what is no character becomes U+FFFD
	}
	return topProb{Token: text, Logprob: logProb(p), Bytes: bytes}
}

// chatProbs are the log-probabilities of some tokens.
func (m *Model) chatProbs(tokens []tokenInfo) *chatProbs {
	out := &chatProbs{Content: []chatProb{}}
	for _, t := range tokens {
		p := chatProb{m.topProb(t.id, t.prob), []topProb{}}
		for _, o := range t.top {
			p.Top = append(p.Top, m.topProb(o.Token, o.LogProb))
		}
		out.Content = append(out.Content, p)
	}
	return out
}

// message is an answer as a message.
func (a *answer) message() *chatMessage {
	text := a.text.String()
	m := &chatMessage{Role: "assistant", Content: &text, Reasoning: a.reasoning.String()}
	if text == "" && len(a.calls) > 0 {
		m.Content = nil
	}
	for _, c := range a.calls {
		m.ToolCalls = append(m.ToolCalls, chatCall{ID: callID(c.id), Type: "function", Function: chatFunction{Name: c.name, Arguments: c.args.String()}})
	}
	return m
}

// callID is the model's id for a call, or a new one.
func callID(id string) string {
	if id != "" {
		return id
	}
	return newID("call_")
}

// stopReason is what vLLM reports: the string or the token that ended an
// answer, if the client named it.
func (p *plan) stopReason(stopText string, stopToken int32) any {
	if stopText != "" {
		return stopText
	}
	if stopToken >= 0 && !p.m.tok.IsEOG(stopToken) {
		return stopToken
	}
	return nil
}

// deltaOf turns parts of a stream into a message. calls is the number of calls
// before.
func deltaOf(parts []chat.Part, calls *int) *chatDelta {
	d := &chatDelta{}
	text := ""
	for _, p := range parts {
		switch p.Kind {
		case chat.PartText:
			text += p.Text
		case chat.PartReasoning:
			d.Reasoning += p.Text
		case chat.PartCall:
			i := *calls
			*calls++
			d.ToolCalls = append(d.ToolCalls, chatCall{Index: &i, ID: callID(p.ID), Type: "function", Function: chatFunction{Name: p.Name}})
		case chat.PartArguments:
			i := *calls - 1
			d.ToolCalls = append(d.ToolCalls, chatCall{Index: &i, Function: chatFunction{Arguments: p.Text}})
		}
	}
	if text != "" {
		d.Content = &text
	}
	return d
}
