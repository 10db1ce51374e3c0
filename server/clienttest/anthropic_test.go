package clienttest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

func TestAnthropic(t *testing.T) {
	c := anthropic.NewClient(option.WithBaseURL(start(t)), option.WithAPIKey("x"), option.WithMaxRetries(0))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	ask := func(text string, max int64) anthropic.MessageNewParams {
		return anthropic.MessageNewParams{Model: "smollm2", MaxTokens: max, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))}}
	}
	cold := option.WithJSONSet("temperature", 0)
	m, err := c.Messages.New(ctx, ask("Say hi", 8), cold)
	if err != nil {
		t.Fatal(err)
	}
	whole := m.Content[0].Text
	if whole == "" || m.StopReason != "max_tokens" || m.Usage.OutputTokens != 8 {
		t.Errorf("got %s", m.RawJSON())
	}

	s := c.Messages.NewStreaming(ctx, ask("Say hi", 8), cold)
	var acc anthropic.Message
	for s.Next() {
		if err := acc.Accumulate(s.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if s.Err() != nil || acc.Content[0].Text != whole || acc.StopReason != "max_tokens" || acc.Usage.OutputTokens != 8 || acc.Usage.CacheReadInputTokens == 0 {
		t.Errorf("%v: %+v", s.Err(), acc)
	}

	p := ask("What is the weather in Rome?", 100)
	p.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "get_weather", InputSchema: anthropic.ToolInputSchemaParam{Properties: citySchema["properties"], Required: []string{"city"}}}}}
	p.ToolChoice = anthropic.ToolChoiceParamOfTool("get_weather")
	s = c.Messages.NewStreaming(ctx, p, cold)
	acc = anthropic.Message{}
	for s.Next() {
		if err := acc.Accumulate(s.Current()); err != nil {
			t.Fatal(err)
		}
	}
	var in struct{ City string }
	if s.Err() != nil || acc.StopReason != "tool_use" || acc.Content[0].Name != "get_weather" || json.Unmarshal(acc.Content[0].Input, &in) != nil || in.City != "Rome" && in.City != "Paris" {
		t.Fatalf("%v: %+v", s.Err(), acc)
	}
	p.Messages = append(p.Messages, acc.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(acc.Content[0].ID, "sunny", false)))
	p.ToolChoice = anthropic.ToolChoiceUnionParam{}
	p.MaxTokens = 8
	if m, err = c.Messages.New(ctx, p, cold); err != nil {
		t.Error(err)
	}

	n, err := c.Messages.CountTokens(ctx, anthropic.MessageCountTokensParams{Model: "smollm2", Messages: ask("Say hi", 8).Messages})
	if err != nil || n.InputTokens < 5 {
		t.Errorf("%v: %+v", err, n)
	}
	bad := ask("x", 5)
	bad.Model = "none"
	var e *anthropic.Error
	if _, err := c.Messages.New(ctx, bad); !errors.As(err, &e) || e.StatusCode != 404 {
		t.Errorf("got %v", err)
	}
}
