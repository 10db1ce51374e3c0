package clienttest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollama/ollama/api"
)

// ollamaClient is Ollama's own client of a small real model.
func ollamaClient(t *testing.T) (*api.Client, context.Context) {
	t.Helper()
	base, err := url.Parse(start(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return api.NewClient(base, http.DefaultClient), ctx
}

// cold are options for the likeliest answer, of so many tokens.
func cold(tokens int) map[string]any { return map[string]any{"temperature": 0, "num_predict": tokens} }

func user(text string) api.Message { return api.Message{Role: "user", Content: text} }

func TestOllama(t *testing.T) {
	c, ctx := ollamaClient(t)
	whole := false
	chat := func(r *api.ChatRequest) (msg api.Message, last api.ChatResponse, pieces int) {
		t.Helper()
		r.Model = "smollm2"
		if err := c.Chat(ctx, r, func(x api.ChatResponse) error {
			msg.Content += x.Message.Content
			msg.ToolCalls = append(msg.ToolCalls, x.Message.ToolCalls...)
			last = x
			pieces++
			return nil
		}); err != nil {
			t.Errorf("chat: %v", err)
		}
		if !last.Done || last.Model != "smollm2" || last.CreatedAt.IsZero() {
			t.Errorf("the last piece is %+v", last)
		}
		return msg, last, pieces
	}
	said := ""
	t.Run("chat", func(t *testing.T) {
		msg, last, pieces := chat(&api.ChatRequest{Messages: []api.Message{user("Say hi")}, Options: cold(8), Stream: &whole})
		if said = msg.Content; said == "" || pieces != 1 || last.DoneReason != "length" || last.EvalCount != 8 || last.PromptEvalCount < 5 || last.TotalDuration <= 0 || last.EvalDuration <= 0 {
			t.Errorf("%d pieces, %q, %+v", pieces, said, last)
		}
	})
	t.Run("stream", func(t *testing.T) {
		msg, last, pieces := chat(&api.ChatRequest{Messages: []api.Message{user("Say hi")}, Options: cold(8)})
		if msg.Content != said || pieces < 4 || last.DoneReason != "length" || last.EvalCount != 8 {
			t.Errorf("%d pieces, %q, want %q, %+v", pieces, msg.Content, said, last)
		}
	})
	t.Run("log-probabilities", func(t *testing.T) {
		_, last, _ := chat(&api.ChatRequest{Messages: []api.Message{user("Say hi")}, Options: cold(3), Stream: &whole, Logprobs: true, TopLogprobs: 2})
		if lp := last.Logprobs; len(lp) != 3 || len(lp[0].TopLogprobs) != 2 || lp[0].Logprob != lp[0].TopLogprobs[0].Logprob {
			t.Errorf("got %+v", lp)
		}
	})
	t.Run("generate", func(t *testing.T) {
		text := func(r *api.GenerateRequest) (text string, last api.GenerateResponse) {
			t.Helper()
			r.Model, r.Options = "smollm2", cold(8)
			if err := c.Generate(ctx, r, func(x api.GenerateResponse) error {
				text += x.Response
				last = x
				return nil
			}); err != nil || !last.Done {
				t.Errorf("%v: %+v", err, last)
			}
			return text, last
		}
		a, last := text(&api.GenerateRequest{Prompt: "Say hi"})
		if a != said || last.DoneReason != "length" || last.EvalCount != 8 || len(last.Context) < 8 {
			t.Errorf("%q, want %q, %+v", a, said, last)
		}
		if a, _ := text(&api.GenerateRequest{Prompt: "Say hi", Stream: &whole}); a != said {
			t.Errorf("whole: %q, want %q", a, said)
		}
		if more, _ := text(&api.GenerateRequest{Prompt: "Go on", Context: last.Context}); more == "" {
			t.Error("nothing comes after a context")
		}
		if raw, _ := text(&api.GenerateRequest{Prompt: "One, two, three,", Raw: true}); !strings.Contains(raw, "four") {
			t.Errorf("raw: %q", raw)
		}
	})
	t.Run("structured output", func(t *testing.T) {
		schema, err := json.Marshal(citySchema)
		if err != nil {
			t.Fatal(err)
		}
		for format, check := range map[string]func(map[string]any) bool{
			string(schema): func(o map[string]any) bool { return o["city"] == "Paris" || o["city"] == "Rome" },
			`"json"`:       func(map[string]any) bool { return true },
		} {
			msg, last, _ := chat(&api.ChatRequest{Messages: []api.Message{user("Which city? Answer in JSON.")}, Options: cold(60), Format: json.RawMessage(format)})
			var o map[string]any
			if last.DoneReason == "stop" && (json.Unmarshal([]byte(msg.Content), &o) != nil || !check(o)) || last.DoneReason != "stop" && format == string(schema) {
				t.Errorf("%s: %q, %s", format, msg.Content, last.DoneReason)
			}
		}
	})
	t.Run("tools", func(t *testing.T) { ollamaTools(t, chat) })
	t.Run("cancellation", func(t *testing.T) {
		stop := errors.New("enough")
		n := 0
		err := c.Chat(ctx, &api.ChatRequest{Model: "smollm2", Messages: []api.Message{user("Write a long story")}, Options: cold(1500)}, func(api.ChatResponse) error {
			if n++; n == 3 {
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) || n != 3 {
			t.Errorf("after %d pieces: %v", n, err)
		}
		ctx, cancel := context.WithCancel(ctx)
		n = 0
		err = c.Generate(ctx, &api.GenerateRequest{Model: "smollm2", Prompt: "Write a long story", Options: cold(1500)}, func(x api.GenerateResponse) error {
			n++
			cancel()
			if x.Done {
				t.Error("the answer came to its end")
			}
			return nil
		})
		if err != nil && !errors.Is(err, context.Canceled) || n > 1000 { // the client says nothing of a stream that breaks
			t.Errorf("after %d pieces: %v", n, err)
		}
	})
	t.Run("errors", func(t *testing.T) {
		for name, x := range map[string]struct {
			r      api.ChatRequest
			status int
			says   string
		}{
			"no such model": {api.ChatRequest{Model: "none", Messages: []api.Message{user("x")}}, 404, "none"},
			"too long":      {api.ChatRequest{Model: "smollm2", Messages: []api.Message{user(strings.Repeat("x ", 5000))}}, 400, "context"},
			"bad format":    {api.ChatRequest{Model: "smollm2", Messages: []api.Message{user("x")}, Format: json.RawMessage(`{"type":"what"}`)}, 400, "what"},
			"an image":      {api.ChatRequest{Model: "smollm2", Messages: []api.Message{{Role: "user", Content: "x", Images: []api.ImageData{{1}}}}}, 400, "image"},
		} {
			for _, streams := range []bool{true, false} {
				x.r.Stream = &streams
				err := c.Chat(ctx, &x.r, func(api.ChatResponse) error { return errors.New("an answer to a bad request") })
				var e api.StatusError
				if !errors.As(err, &e) || e.StatusCode != x.status || !strings.Contains(e.ErrorMessage, x.says) {
					t.Errorf("%s: got %v", name, err)
				}
			}
		}
	})
}

// ollamaTools has a model call a tool: after two turns that do, the next one
// does. Then it answers to what the tool said.
func ollamaTools(t *testing.T, chat func(*api.ChatRequest) (api.Message, api.ChatResponse, int)) {
	p := api.NewToolPropertiesMap()
	p.Set("city", api.ToolProperty{Type: api.PropertyType{"string"}, Enum: []any{"Paris", "Rome"}})
	tools := api.Tools{{Type: "function", Function: api.ToolFunction{Name: "get_weather", Description: "The weather in a city", Parameters: api.ToolFunctionParameters{Type: "object", Required: []string{"city"}, Properties: p}}}}
	var turns []api.Message
	for _, city := range []string{"Paris", "Rome", "Paris"} {
		args := api.NewToolCallFunctionArguments()
		args.Set("city", city)
		turns = append(turns, user("What is the weather in "+city+"?"), api.Message{Role: "assistant", ToolCalls: []api.ToolCall{{Function: api.ToolCallFunction{Name: "get_weather", Arguments: args}}}},
			api.Message{Role: "tool", ToolName: "get_weather", Content: "sunny"}, api.Message{Role: "assistant", Content: "It is sunny in " + city + "."})
	}
	turns = append(turns, user("What is the weather in Rome?"))
	for _, streams := range []bool{true, false} {
		msg, last, _ := chat(&api.ChatRequest{Messages: turns, Tools: tools, Options: cold(60), Stream: &streams})
		if len(msg.ToolCalls) != 1 || msg.ToolCalls[0].Function.Name != "get_weather" || last.DoneReason != "stop" {
			t.Fatalf("stream %v: %q, %+v, %s", streams, msg.Content, msg.ToolCalls, last.DoneReason)
		}
		args := msg.ToolCalls[0].Function.Arguments
		if city, ok := args.Get("city"); !ok || city != "Rome" {
			t.Errorf("stream %v: arguments %v", streams, args.ToMap())
		}
		msg, _, _ = chat(&api.ChatRequest{Messages: append(slices.Clone(turns), api.Message{Role: "assistant", ToolCalls: msg.ToolCalls}, api.Message{Role: "tool", ToolName: "get_weather", Content: "rainy"}), Tools: tools, Options: cold(20), Stream: &streams})
		if !strings.Contains(msg.Content, "Rome") {
			t.Errorf("stream %v: after the tool's answer: %q", streams, msg.Content)
		}
	}
}

// What clients ask of models rather than of their answers.
func TestOllamaModels(t *testing.T) {
	c, ctx := ollamaClient(t)
	if err := c.Heartbeat(ctx); err != nil {
		t.Error(err)
	}
	if v, err := c.Version(ctx); err != nil || v == "" {
		t.Errorf("version %q, %v", v, err)
	}
	r, err := c.Embed(ctx, &api.EmbedRequest{Model: "smollm2", Input: []string{"a", "b"}})
	if err != nil || len(r.Embeddings) != 2 || len(r.Embeddings[1]) != 576 || r.PromptEvalCount < 2 {
		t.Errorf("embed: %v", err)
	}
	if r, err := c.Embeddings(ctx, &api.EmbeddingRequest{Model: "smollm2", Prompt: "a"}); err != nil || len(r.Embedding) != 576 {
		t.Errorf("embeddings: %v", err)
	}
	var e api.StatusError
	if _, err := c.Embed(ctx, &api.EmbedRequest{Model: "none", Input: "a"}); !errors.As(err, &e) || e.StatusCode != 404 {
		t.Errorf("embed of no model: %v", err)
	}
	show, err := c.Show(ctx, &api.ShowRequest{Model: "smollm2"})
	if err != nil || show.Details.Family != "llama" || !strings.Contains(show.Template, "im_start") || show.ModelInfo["general.architecture"] != "llama" || !slices.Contains(show.Capabilities, "completion") {
		t.Errorf("show: %v: %+v", err, show)
	}
	running, err := c.ListRunning(ctx)
	if err != nil || len(running.Models) != 1 || running.Models[0].Name != "smollm2" || running.Models[0].ContextLength != 2048 || time.Until(running.Models[0].ExpiresAt) < time.Minute {
		t.Errorf("ps: %v: %+v", err, running)
	}
	steps := 0
	if err := c.Create(ctx, &api.CreateRequest{Model: "mario", From: "smollm2", System: "You are Mario.", Parameters: map[string]any{"temperature": 0}}, func(p api.ProgressResponse) error {
		steps++
		return nil
	}); err != nil || steps < 3 {
		t.Errorf("create: %v after %d steps", err, steps)
	}
	if err := c.Copy(ctx, &api.CopyRequest{Source: "mario", Destination: "luigi"}); err != nil {
		t.Errorf("copy: %v", err)
	}
	if err := c.Copy(ctx, &api.CopyRequest{Source: "none", Destination: "luigi"}); !errors.As(err, &e) || e.StatusCode != 404 {
		t.Errorf("copy of no model: %v", err)
	}
	if show, err := c.Show(ctx, &api.ShowRequest{Model: "luigi"}); err != nil || show.System != "You are Mario." || !strings.Contains(show.Parameters, "temperature") {
		t.Errorf("show of the copy: %v: %+v", err, show)
	}
	if err := c.Delete(ctx, &api.DeleteRequest{Model: "mario"}); err != nil {
		t.Errorf("delete: %v", err)
	}
	tags, err := c.List(ctx)
	var names []string
	for _, m := range tags.Models {
		names = append(names, m.Name)
	}
	if err != nil || !slices.Equal(names, []string{"smollm2", "luigi"}) || tags.Models[0].Size < 1<<20 || len(tags.Models[0].Digest) != 64 {
		t.Errorf("tags: %v: %v", err, names)
	}
}
