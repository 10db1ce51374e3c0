package clienttest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

func TestOpenAI(t *testing.T) {
	c := openai.NewClient(option.WithBaseURL(start(t)+"/v1"), option.WithAPIKey("x"), option.WithMaxRetries(0))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	ask := func(text string, max int64) openai.ChatCompletionNewParams {
		return openai.ChatCompletionNewParams{Model: "smollm2", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}, MaxCompletionTokens: openai.Int(max), Temperature: openai.Float(0)}
	}
	whole := ""
	t.Run("chat", func(t *testing.T) {
		p := ask("Say hi", 8)
		p.Logprobs, p.TopLogprobs, p.N, p.Seed = openai.Bool(true), openai.Int(2), openai.Int(2), openai.Int(1)
		r, err := c.Chat.Completions.New(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		whole = r.Choices[0].Message.Content
		if len(r.Choices) != 2 || whole == "" || r.Choices[1].Message.Content != whole || r.Usage.CompletionTokens != 16 || r.Choices[0].FinishReason != "length" {
			t.Errorf("got %s", r.RawJSON())
		}
		if lp := r.Choices[0].Logprobs.Content; len(lp) != 8 || len(lp[0].TopLogprobs) != 2 || lp[0].Logprob != lp[0].TopLogprobs[0].Logprob {
			t.Errorf("log-probabilities: %s", r.RawJSON())
		}
	})
	t.Run("stream", func(t *testing.T) {
		p := ask("Say hi", 8)
		p.StreamOptions.IncludeUsage = openai.Bool(true)
		s := c.Chat.Completions.NewStreaming(ctx, p)
		var acc openai.ChatCompletionAccumulator
		for s.Next() {
			if !acc.AddChunk(s.Current()) {
				t.Fatalf("a chunk does not fit: %s", s.Current().RawJSON())
			}
		}
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		if acc.Choices[0].Message.Content != whole || acc.Usage.CompletionTokens != 8 || acc.Choices[0].FinishReason != "length" {
			t.Errorf("got %+v", acc.ChatCompletion)
		}
	})
	t.Run("tools", func(t *testing.T) {
		p := ask("What is the weather in Rome?", 100)
		p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "get_weather", Parameters: citySchema, Strict: openai.Bool(true)})}
		p.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "get_weather"})
		check := func(calls []openai.ChatCompletionMessageToolCallUnion) {
			t.Helper()
			var args struct{ City string }
			if len(calls) != 1 || calls[0].Function.Name != "get_weather" || json.Unmarshal([]byte(calls[0].Function.Arguments), &args) != nil || args.City != "Paris" && args.City != "Rome" {
				t.Errorf("got %+v", calls)
			}
		}
		r, err := c.Chat.Completions.New(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		check(r.Choices[0].Message.ToolCalls)
		s := c.Chat.Completions.NewStreaming(ctx, p)
		var acc openai.ChatCompletionAccumulator
		finished := 0
		for s.Next() {
			acc.AddChunk(s.Current())
			if _, ok := acc.JustFinishedToolCall(); ok {
				finished++
			}
		}
		if s.Err() != nil || finished != 1 || acc.Choices[0].FinishReason != "tool_calls" {
			t.Errorf("%v, %d finished calls, %+v", s.Err(), finished, acc.Choices)
		}
		check(acc.Choices[0].Message.ToolCalls)
		p.Messages = append(p.Messages, r.Choices[0].Message.ToParam(), openai.ToolMessage("sunny", r.Choices[0].Message.ToolCalls[0].ID))
		p.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("none")}
		if r, err = c.Chat.Completions.New(ctx, p); err != nil || r.Choices[0].Message.Content == "" {
			t.Errorf("after a result: %v", err)
		}
	})
	t.Run("structured output", func(t *testing.T) {
		p := ask("Which city?", 60)
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "city", Schema: citySchema, Strict: openai.Bool(true)}}
		r, err := c.Chat.Completions.New(ctx, p)
		var got struct{ City string }
		if err != nil || json.Unmarshal([]byte(r.Choices[0].Message.Content), &got) != nil || got.City == "" {
			t.Errorf("%v: %+v", err, r)
		}
	})
	t.Run("completions", func(t *testing.T) {
		r, err := c.Completions.New(ctx, openai.CompletionNewParams{Model: "smollm2", Prompt: openai.CompletionNewParamsPromptUnion{OfArrayOfStrings: []string{"One, two,", "A, B,"}},
			MaxTokens: openai.Int(4), Echo: openai.Bool(true), Logprobs: openai.Int(1), Temperature: openai.Float(0)})
		if err != nil || len(r.Choices) != 2 || !strings.HasPrefix(r.Choices[0].Text, "One, two,") || len(r.Choices[0].Logprobs.Tokens) < 8 {
			t.Errorf("%v: %+v", err, r)
		}
	})
	t.Run("embeddings and models", func(t *testing.T) {
		r, err := c.Embeddings.New(ctx, openai.EmbeddingNewParams{Model: "smollm2", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b"}}})
		if err != nil || len(r.Data) != 2 || len(r.Data[1].Embedding) != 576 {
			t.Errorf("%v", err)
		}
		m, err := c.Models.Get(ctx, "smollm2")
		if err != nil || m.ID != "smollm2" {
			t.Errorf("%v: %+v", err, m)
		}
	})
	t.Run("responses", func(t *testing.T) {
		r, err := c.Responses.New(ctx, responses.ResponseNewParams{Model: "smollm2", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Say hi")}, MaxOutputTokens: openai.Int(16), Temperature: openai.Float(0)})
		if err != nil || !strings.HasPrefix(r.OutputText(), whole) {
			t.Fatalf("%v: %+v", err, r)
		}
		s := c.Responses.NewStreaming(ctx, responses.ResponseNewParams{Model: "smollm2", PreviousResponseID: openai.String(r.ID), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("More")}, MaxOutputTokens: openai.Int(16), Temperature: openai.Float(0)})
		text, last := "", ""
		for s.Next() {
			ev := s.Current()
			if ev.Type == "response.output_text.delta" {
				text += ev.Delta
			}
			last = ev.Type
		}
		if s.Err() != nil || text == "" || last != "response.incomplete" && last != "response.completed" {
			t.Errorf("%v, %q, %s", s.Err(), text, last)
		}
	})
	t.Run("batches", func(t *testing.T) {
		line := `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"messages":[{"role":"user","content":"Hi"}],"max_tokens":2}}`
		f, err := c.Files.New(ctx, openai.FileNewParams{File: openai.File(strings.NewReader(line), "in.jsonl", "application/jsonl"), Purpose: openai.FilePurposeBatch})
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.Batches.New(ctx, openai.BatchNewParams{InputFileID: f.ID, Endpoint: openai.BatchNewParamsEndpointV1ChatCompletions, CompletionWindow: openai.BatchNewParamsCompletionWindow24h})
		for err == nil && b.Status != openai.BatchStatusCompleted && b.Status != openai.BatchStatusFailed {
			time.Sleep(20 * time.Millisecond)
			b, err = c.Batches.Get(ctx, b.ID)
		}
		if err != nil || b.RequestCounts.Completed != 1 {
			t.Errorf("%v: %+v", err, b)
		}
	})
	t.Run("errors", func(t *testing.T) {
		for code, p := range map[string]openai.ChatCompletionNewParams{"model_not_found": {Model: "none", Messages: ask("x", 1).Messages}, "context_length_exceeded": ask(strings.Repeat("x ", 5000), 1)} {
			_, err := c.Chat.Completions.New(ctx, p)
			var e *openai.Error
			if !errors.As(err, &e) || e.Code != code {
				t.Errorf("want %s, got %v", code, err)
			}
			s := c.Chat.Completions.NewStreaming(ctx, p)
			for s.Next() {
				t.Error("a chunk of a bad request")
			}
			if !errors.As(s.Err(), &e) || e.Code != code {
				t.Errorf("in a stream: want %s, got %v", code, s.Err())
			}
		}
	})
	t.Run("cancellation", func(t *testing.T) {
		ctx, cancel := context.WithCancel(ctx)
		s := c.Chat.Completions.NewStreaming(ctx, ask("Write a long story", 1500))
		for n := 0; s.Next(); n++ {
			if n == 3 {
				cancel()
			}
		}
		if !errors.Is(s.Err(), context.Canceled) {
			t.Errorf("got %v", s.Err())
		}
		cancel()
	})
}
