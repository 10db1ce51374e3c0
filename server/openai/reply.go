package openai

import (
	"encoding/json"

	"ridge/server/probs"
	"ridge/server/run"
	"ridge/server/wire"
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
	// Function is the one call of an answer to deprecated functions.
	Function *chatFunction `json:"function_call,omitempty"`
}

// asFunction turns the calls into the form that requests with functions know.
func (m *chatMessage) asFunction() {
	if len(m.ToolCalls) > 0 {
		m.Function, m.ToolCalls = &m.ToolCalls[0].Function, nil
	}
}

// chatDelta is a message in a stream, where what is absent did not change.
type chatDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Alias     string     `json:"reasoning,omitempty"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`

	Function *chatFunction `json:"function_call,omitempty"`
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
	Logprobs   *probs.Chat  `json:"logprobs"`
	Finish     *string      `json:"finish_reason"`
	StopReason any          `json:"stop_reason,omitempty"` // vLLM: the stop string or token; run.LoopText
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
	Timings        *wire.Timings   `json:"timings,omitempty"`
	PromptLogprobs any             `json:"prompt_logprobs,omitempty"`
	PromptTokenIDs []int32         `json:"prompt_token_ids,omitempty"`
}

// usage counts tokens as OpenAI does.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	PromptMore struct {
		Cached int `json:"cached_tokens"`
		Audio  int `json:"audio_tokens"`
		Cut    int `json:"truncated_tokens,omitempty"` // off the prompt, not among its tokens
	} `json:"prompt_tokens_details"`
	CompletionMore struct {
		Reasoning int `json:"reasoning_tokens"`
		Audio     int `json:"audio_tokens"`
		Accepted  int `json:"accepted_prediction_tokens"`
		Rejected  int `json:"rejected_prediction_tokens"`
		Forced    int `json:"jump_ahead_tokens,omitempty"` // that were not drawn
	} `json:"completion_tokens_details"`
}

func newUsage(t *run.Totals) usage {
	u := usage{Prompt: t.Prompt, Completion: t.Tokens, Total: t.Prompt + t.Tokens}
	u.PromptMore.Cached, u.PromptMore.Cut = t.Cached, t.Truncated
	u.CompletionMore.Reasoning, u.CompletionMore.Forced = t.Reasoning, t.Forced
	return u
}

// message is an answer as a message.
func newMessage(a *run.Answer) *chatMessage {
	text := a.Text.String()
	m := &chatMessage{Role: "assistant", Content: &text, Reasoning: a.Reasoning.String()}
	if text == "" && len(a.Calls) > 0 {
		m.Content = nil
	}
	for _, c := range a.Calls {
		m.ToolCalls = append(m.ToolCalls, chatCall{ID: wire.CallID(c.ID), Type: "function", Function: chatFunction{Name: c.Name, Arguments: c.Args.String()}})
	}
	return m
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
			d.ToolCalls = append(d.ToolCalls, chatCall{Index: &i, ID: wire.CallID(p.ID), Type: "function", Function: chatFunction{Name: p.Name}})
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

// stopReason is what vLLM reports: the string or the token that ended an
// answer, if the client named it.
func stopReason(p *run.Plan, stopText string, stopToken int32) any {
	if stopText != "" {
		return stopText
	}
	if stopToken >= 0 && !p.Model.Tokenizer().IsEOG(stopToken) {
		return stopToken
	}
	return nil
}
