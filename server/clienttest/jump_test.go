package clienttest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/ollama/ollama/api"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"ridge/server"
)

// The clients take answers that say how many tokens were not drawn, of which
// their protocols know nothing.
func TestJumpAhead(t *testing.T) {
	base := start(t, func(c *server.ModelConfig) { c.JumpAhead = true })
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	const question = "Which city? Answer in JSON."
	city := func(text string) bool {
		var o struct{ City string }
		return json.Unmarshal([]byte(text), &o) == nil && (o.City == "Rome" || o.City == "Paris")
	}

	ac := anthropic.NewClient(anthropicoption.WithBaseURL(base), anthropicoption.WithAPIKey("x"), anthropicoption.WithMaxRetries(0))
	s := ac.Messages.NewStreaming(ctx, anthropic.MessageNewParams{
		Model: "smollm2", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))},
		Tools:      []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "get_weather", InputSchema: anthropic.ToolInputSchemaParam{Properties: citySchema["properties"], Required: []string{"city"}}}}},
		ToolChoice: anthropic.ToolChoiceParamOfTool("get_weather"),
	})
	var acc anthropic.Message
	forced := 0
	for s.Next() {
		ev := s.Current()
		if err := acc.Accumulate(ev); err != nil {
			t.Fatal(err)
		}
		if ev.Type == "message_delta" {
			var u struct {
				Usage struct {
					Forced int `json:"jump_ahead_tokens"`
				}
			}
			if err := json.Unmarshal([]byte(ev.RawJSON()), &u); err != nil {
				t.Error(err)
			}
			forced = u.Usage.Forced
		}
	}
	if s.Err() != nil || len(acc.Content) == 0 || !city(string(acc.Content[0].Input)) || forced == 0 || forced >= int(acc.Usage.OutputTokens) {
		t.Errorf("Anthropic: %v, %d forced: %+v", s.Err(), forced, acc)
	}

	oc := openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey("x"), option.WithMaxRetries(0))
	p := openai.ChatCompletionNewParams{Model: "smollm2", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)}}
	p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "city", Schema: citySchema, Strict: openai.Bool(true)}}
	o, err := oc.Chat.Completions.New(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := o.Usage.CompletionTokensDetails.JSON.ExtraFields["jump_ahead_tokens"]; !ok || !city(o.Choices[0].Message.Content) {
		t.Errorf("OpenAI: %s", o.RawJSON())
	}

	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	format, err := json.Marshal(citySchema)
	if err != nil {
		t.Fatal(err)
	}
	text, done := "", false
	err = api.NewClient(u, http.DefaultClient).Chat(ctx, &api.ChatRequest{Model: "smollm2", Messages: []api.Message{user(question)}, Options: cold(60), Format: format}, func(r api.ChatResponse) error {
		text += r.Message.Content
		done = r.Done && r.EvalCount > 0
		return nil
	})
	if err != nil || !done || !city(text) {
		t.Errorf("Ollama: %v: %q", err, text)
	}
}
