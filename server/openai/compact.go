package openai

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"ridge/server/caller"
	"ridge/server/run"
	"ridge/server/wire"
	"ridge/text/chat"
)

// compactPrompt asks a model for what a conversation is to be replaced by.
const compactPrompt = `Summarize the conversation so far for an assistant that will continue it without seeing it. State the user's goal and constraints, what was done and found (with names of files, commands and values), what is left to do, and the next step. Write only the summary.`

// compact is POST /v1/responses/compact: it has the model sum up a conversation, and
// answers with the user's messages and an item that stands for all the rest.
func (s *API) compact(w http.ResponseWriter, r *http.Request) error {
	var b responsesRequest
	if err := wire.DecodeBody(r, &b); err != nil {
		return err
	}
	if !wire.Present(b.Input) {
		b.Input = json.RawMessage("[]")
	}
	b.Tools, b.ToolChoice, b.Text, b.Stream = nil, toolChoiceField{}, nil, false
	p, err := s.responsesPlan(r, &b, func(c *run.Chat) {
		c.Tools = nil
		c.Messages = append(c.Messages, chat.Message{Role: "user", Content: compactPrompt})
	})
	if err != nil {
		return err
	}
	defer p.model.Release()
	wire.NoteUnenforced(w, r, p.Plan)
	var t run.Totals
	answers, err := s.Collect(r.Context(), p.Plan, &t)
	if err != nil {
		return err
	}
	out := []any{}
	for _, item := range b.kept() {
		var x inputItem
		if json.Unmarshal(item, &x) == nil && x.Type == "message" && x.Role == "user" {
			out = append(out, item)
		}
	}
	summary := base64.StdEncoding.EncodeToString([]byte(answers[0].Text.String()))
	out = append(out, map[string]string{"type": "compaction", "id": caller.NewID("cmp_"), "encrypted_content": compactPrefix + summary})
	wire.WriteJSON(w, http.StatusOK, map[string]any{
		"id": caller.NewID("resp_"), "object": "response.compaction", "created_at": time.Now().Unix(), "output": out, "usage": responseUsage(&t),
	})
	return nil
}
