package openai

import (
	"encoding/json"

	"ridge/server/offer"
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
		m.Function, m.ToolCalls = m.ToolCalls[0].Function, nil
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
	Index    *int          `json:"index,omitempty"` // in streams only
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type,omitempty"`
	Function *chatFunction `json:"function,omitempty"`
	Custom   *chatCustom   `json:"custom,omitempty"` // of a custom tool, in place of Function
}

// chatCustom is a call of a custom tool.
type chatCustom struct {
	Name  string `json:"name,omitempty"`
	Input string `json:"input"`
}

type chatFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type chatChoice struct {
	Index      int          `json:"index"`
	Message    *chatMessage `json:"message,omitempty"`
	Delta      *chatDelta   `json:"delta,omitempty"`
	Logprobs   any          `json:"logprobs"`
	Finish     *string      `json:"finish_reason"`
	StopReason any          `json:"stop_reason,omitempty"` // vLLM: the stop string or token; run.LoopText
	TokenIDs   []int32      `json:"token_ids,omitempty"`

	Trace []probs.Trace `json:"ridge_trace,omitempty"`
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
	Progress       *wire.Progress  `json:"prompt_progress,omitempty"`
}

// usage counts tokens as OpenAI does.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	PromptMore struct {
		Cached int `json:"cached_tokens"`
		Known  int `json:"known_tokens,omitempty"` // that another prompt begins with, too
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
	u.PromptMore.Cached, u.PromptMore.Known, u.PromptMore.Cut = t.Cached, t.Known, t.Truncated
	u.CompletionMore.Reasoning, u.CompletionMore.Forced = t.Reasoning, t.Forced
	u.CompletionMore.Accepted, u.CompletionMore.Rejected = t.Right, t.Guessed-t.Right
	return u
}

// message is an answer as a message. offer knows what clients call the tools.
func newMessage(a *run.Answer, offered *offer.Tools) *chatMessage {
	text := a.Text.String()
	m := &chatMessage{Role: "assistant", Content: &text, Reasoning: a.Reasoning.String()}
	if text == "" && len(a.Calls) > 0 {
		m.Content = nil
	}
	for _, c := range a.Calls {
		t := offered.Client(c.Name)
		if t.Kind != customTool {
			m.ToolCalls = append(m.ToolCalls, chatCall{ID: wire.CallID(c.ID), Type: offer.Function, Function: &chatFunction{Name: c.Name, Arguments: c.Args.String()}})
			continue
		}
		var text offer.Text
		text.Add(c.Args.String())
		input, _ := text.End()
		m.ToolCalls = append(m.ToolCalls, chatCall{ID: wire.CallID(c.ID), Type: customTool, Custom: &chatCustom{t.Name, input}})
	}
	return m
}

// callStream is where the calls of a choice in a stream are.
type callStream struct {
	n    int         // calls before
	text *offer.Text // of a call of a custom tool, nil in others
}

// delta turns parts of a stream into a message.
func (c *callStream) delta(parts []chat.Part, offered *offer.Tools) *chatDelta {
	d := &chatDelta{}
	text := ""
	for _, p := range parts {
		switch p.Kind {
		case chat.PartText:
			text += p.Text
		case chat.PartReasoning:
			d.Reasoning += p.Text
		case chat.PartCall, chat.PartArguments, chat.PartCallEnd:
			if call := c.call(&p, offered); call != nil {
				d.ToolCalls = append(d.ToolCalls, *call)
			}
		}
	}
	if text != "" {
		d.Content = &text
	}
	return d
}

// call is what a part says of a call, nil for nothing.
func (c *callStream) call(p *chat.Part, offered *offer.Tools) *chatCall {
	i := c.n - 1
	input := ""
	switch p.Kind {
	case chat.PartCall:
		i, c.n, c.text = c.n, c.n+1, nil
		t := offered.Client(p.Name)
		if t.Kind == customTool {
			c.text = &offer.Text{}
			return &chatCall{Index: &i, ID: wire.CallID(p.ID), Type: customTool, Custom: &chatCustom{Name: t.Name}}
		}
		return &chatCall{Index: &i, ID: wire.CallID(p.ID), Type: offer.Function, Function: &chatFunction{Name: p.Name}}
	case chat.PartArguments:
		if c.text == nil {
			return &chatCall{Index: &i, Function: &chatFunction{Arguments: p.Text}}
		}
		input = c.text.Add(p.Text)
	case chat.PartCallEnd:
		if c.text != nil {
			_, input = c.text.End()
			c.text = nil
		}
	}
	if input == "" {
		return nil
	}
	return &chatCall{Index: &i, Custom: &chatCustom{Input: input}}
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
