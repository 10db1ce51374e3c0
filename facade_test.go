package ridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/sample"
	"ridge/text/chat"
	"ridge/text/constraint"
	"ridge/text/tokenizer"
)

func openTiny(t testing.TB, o Options) *Model {
	t.Helper()
	m, err := OpenFile(testdata.Tiny, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Engine().Check(context.Background()); err != nil && !errors.Is(err, engine.ErrClosed) {
			t.Error(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// job is something to be asked of a model.
type job struct {
	prompt string
	chat   bool
	g      Generation
}

// answer is what came of a job, as text that two runs can be compared by.
func (j *job) answer(t testing.TB, m *Model) string {
	g := j.g
	seq := m.Generate(t.Context(), j.prompt, g)
	if j.chat {
		seq = m.Chat(t.Context(), []chat.Message{{Role: "system", Content: "You are kind."}, {Role: "user", Content: j.prompt}}, g)
	}
	out := make([]string, max(1, g.N))
	for tok, err := range seq {
		if err != nil {
			t.Error(err)
			return ""
		}
		out[tok.Choice] += fmt.Sprintf("%d %q %q %v %v %v %s\n", tok.ID, tok.Text, tok.Reasoning, tok.Calls, tok.LogProb, tok.Top, tok.Finish)
	}
	return strings.Join(out, "--\n")
}

func jobs() []job {
	schema := constraint.JSONSchema([]byte(`{"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 99}}, "required": ["name", "age"]}`))
	warm := sample.Params{Temperature: 1, Seed: 7}
	weather := chat.Tool{Name: "weather", Description: "The weather.", Parameters: json.RawMessage(`{"type": "object", "properties": {"city": {"type": "string", "maxLength": 10}}, "required": ["city"]}`)}
	return []job{
		{prompt: "Once upon a time", g: Generation{MaxTokens: 40}},
		{prompt: "Once upon a time there was", g: Generation{MaxTokens: 30, Sampling: sample.Params{Temperature: 0.8, TopK: 40, Seed: 3, LogProbs: 3}}},
		{prompt: "Tell me a story about a dog.", chat: true, g: Generation{MaxTokens: 50}},
		{prompt: "Tell me a story about a cat.", chat: true, g: Generation{MaxTokens: 20, N: 3, Sampling: warm}},
		{prompt: "Who are you?", chat: true, g: Generation{MaxTokens: 60, Format: schema, Sampling: warm}},
		{prompt: "What is the weather in Rome?", chat: true, g: Generation{MaxTokens: 60, Tools: []chat.Tool{weather}, MustCall: true, OneCall: true, Sampling: warm}},
		{prompt: "Why is the sky blue?", chat: true, g: Generation{MaxTokens: 40, Stop: []string{"the"}}},
		{prompt: "Hello " + strings.Repeat("again and ", 200), g: Generation{MaxTokens: 10}},
	}
}

// Generations beside each other give what each gives alone, whatever memory and
// steps they share.
func TestConcurrentGenerations(t *testing.T) {
	all := jobs()
	lone := openTiny(t, Options{Workers: 1})
	want := make([]string, len(all))
	for i := range all {
		want[i] = all[i].answer(t, lone)
	}
	for _, o := range []Options{{Workers: 2}, {Workers: 1, PageTokens: 16, Chunk: 13}, {Workers: 2, PageTokens: 32, Context: 640}} {
		m := openTiny(t, o)
		for range 2 {
			var wg sync.WaitGroup
			for i := range all {
				wg.Go(func() {
					if got := all[i].answer(t, m); got != want[i] {
						t.Errorf("%+v: job %d: got\n%s\nwant\n%s", o, i, got, want[i])
					}
				})
			}
			wg.Go(func() {
				if _, err := m.EmbedAll(t.Context(), []string{"a dog", "a cat"}, PoolMean); err != nil {
					t.Error(err)
				}
			})
			wg.Wait()
		}
	}
}

// Four chats run at once: each waits after its first token until all have one.
func TestChatsRunTogether(t *testing.T) {
	m := openTiny(t, Options{})
	var first, done sync.WaitGroup
	first.Add(4)
	for i := range 4 {
		done.Go(func() {
			n := 0
			g := Generation{MaxTokens: 300, IgnoreEOS: true, Sampling: sample.Params{Temperature: 1, Seed: uint64(i)}}
			for _, err := range m.Chat(t.Context(), []chat.Message{{Role: "user", Content: "Hello!"}}, g) {
				if err != nil {
					t.Error(err)
				}
				if n++; n == 1 {
					first.Done()
					first.Wait()
				}
			}
			if n < 300 {
				t.Errorf("%d tokens, want 300", n)
			}
		})
	}
	done.Wait()
	if st := m.Engine().Stats(); st.Steps > 4*300 {
		t.Errorf("%d steps for 4 times 300 tokens: none is shared", st.Steps)
	}
}

// A model may be used within a loop over its answer, and what another answer has
// computed of the same prompt is not computed again.
func TestWithinLoop(t *testing.T) {
	m := openTiny(t, Options{})
	lone, err := m.Embed(t.Context(), "a dog", PoolLast)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range m.Generate(t.Context(), "Once upon a time", Generation{MaxTokens: 5}) {
		if err != nil {
			t.Fatal(err)
		}
		if v, err := m.Embed(t.Context(), "a dog", PoolLast); err != nil || !slices.Equal(v, lone) {
			t.Fatalf("an embedding within a loop: %v, %v", v[:2], err)
		}
		for _, err := range m.Generate(t.Context(), "Once upon a time", Generation{MaxTokens: 1}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	var st Stats
	for _, err := range m.Generate(t.Context(), "Once upon a time", Generation{MaxTokens: 1, Stats: &st}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if st.CachedTokens != st.PromptTokens-1 || st.Tokens != 1 || st.Finish != FinishLength {
		t.Errorf("%+v: expected all but one token of the prompt to be found", st)
	}
}

func TestEmbedAll(t *testing.T) {
	m := openTiny(t, Options{})
	var texts []string
	for i := range 150 {
		texts = append(texts, fmt.Sprintf("text number %d of %s", i, strings.Repeat("many ", i%7)))
	}
	all, err := m.EmbedAll(t.Context(), texts, PoolMean)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(texts); i += 13 {
		if one, err := m.Embed(t.Context(), texts[i], PoolMean); err != nil || !slices.Equal(one, all[i]) {
			t.Errorf("text %d: %v, differs from that of the batch", i, err)
		}
	}
	if _, err := m.Embed(t.Context(), "x", 0); err == nil {
		t.Error("no pooling: no error")
	}
	if _, err := m.EmbedAll(t.Context(), []string{"a", strings.Repeat("long ", 9000)}, PoolMean); !errors.As(err, new(*ContextError)) {
		t.Errorf("a text that does not fit: %v", err)
	}
}

// Answers have the form that was asked for.
func TestFormats(t *testing.T) {
	m := openTiny(t, Options{})
	for i := range 3 {
		for name, c := range map[string]struct {
			f  constraint.Format
			ok func(text string) bool
		}{
			"object": {constraint.JSONSchema([]byte(`{"type": "object", "properties": {"a": {"type": "string", "maxLength": 8}, "n": {"type": "integer", "minimum": 1, "maximum": 5}}, "required": ["a", "n"]}`)), func(s string) bool {
				var v struct {
					A *string
					N *int
				}
				return json.Unmarshal([]byte(s), &v) == nil && v.A != nil && v.N != nil && *v.N >= 1 && *v.N <= 5
			}},
			"regex":  {constraint.Regex(`[A-Z][a-z]{2,5} (is|was) [0-9]+`), regexp.MustCompile(`^[A-Z][a-z]{2,5} (is|was) [0-9]+$`).MatchString},
			"choice": {constraint.Choice("yes", "no", "perhaps"), func(s string) bool { return slices.Contains([]string{"yes", "no", "perhaps"}, s) }},
			"gbnf":   {constraint.GBNF(`root ::= "[" [0-9] ("," [0-9]){2} "]"`), regexp.MustCompile(`^\[\d,\d,\d\]$`).MatchString},
		} {
			for _, jump := range []bool{false, true} {
				// Digits without end are likely of random draws.
				g := Generation{MaxTokens: 200, Format: c.f, JumpAhead: jump, Sampling: sample.Params{Temperature: 0.9, Seed: uint64(i)}}
				r, err := m.Reply(t.Context(), []chat.Message{{Role: "user", Content: "Answer."}}, g)
				if err != nil {
					t.Fatal(err)
				}
				if r[0].Finish == FinishStop && !c.ok(r[0].Message.Content) || r[0].Finish == FinishLength && name != "regex" {
					t.Errorf("%s: %s: %q", name, r[0].Finish, r[0].Message.Content)
				}
			}
		}
	}
	for name, g := range map[string]Generation{
		"a bad schema":   {Format: constraint.JSONSchema([]byte(`{"type": "unknown"}`))},
		"two":            {Format: constraint.JSON(), NewMask: func() engine.Masker { return nil }},
		"calls of what":  {MustCall: true},
		"tools, no chat": {Tools: []chat.Tool{{Name: "f"}}},
	} {
		for _, err := range m.Generate(t.Context(), "x", g) {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
			break
		}
	}
}

// Calls of tools come back parsed, and their results go into the conversation.
func TestTools(t *testing.T) {
	m := openTiny(t, Options{})
	weather := chat.Tool{Name: "weather", Description: "Current weather.", Strict: true,
		Parameters: json.RawMessage(`{"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"]}`)}
	msgs := []chat.Message{{Role: "user", Content: "What is the weather in Rome?"}}
	g := Generation{MaxTokens: 100, Tools: []chat.Tool{weather}, MustCall: true, OneCall: true}
	r, err := m.Reply(t.Context(), msgs, g)
	if err != nil {
		t.Fatal(err)
	}
	calls := r[0].Message.ToolCalls
	if len(calls) != 1 || calls[0].Name != "weather" || calls[0].ID == "" {
		t.Fatalf("%+v", r)
	}
	var args struct{ City string }
	if err := json.Unmarshal(calls[0].Arguments, &args); err != nil || args.City != "Rome" && args.City != "Oslo" {
		t.Errorf("arguments %s: %v", calls[0].Arguments, err)
	}
	msgs = append(msgs, r[0].Message, chat.Message{Role: "tool", Name: "weather", ToolCallID: calls[0].ID, Content: "Sunny."})
	g.MustCall = false
	if r, err = m.Reply(t.Context(), msgs, g); err != nil || r[0].Message.Content == "" && len(r[0].Message.ToolCalls) == 0 {
		t.Errorf("after the result: %+v, %v", r, err)
	}
	g.Format = constraint.Choice("sunny", "rainy")
	if r, err = m.Reply(t.Context(), msgs, g); err != nil || !slices.Contains([]string{"sunny", "rainy"}, r[0].Message.Content) && len(r[0].Message.ToolCalls) != 1 {
		t.Errorf("a choice or a call: %+v, %v", r, err)
	}
}

// Each of several answers is the one that its seed gives alone.
func TestChoices(t *testing.T) {
	m := openTiny(t, Options{})
	msgs := []chat.Message{{Role: "user", Content: "Tell me a story about a dog."}}
	g := Generation{MaxTokens: 30, N: 4, Sampling: sample.Params{Temperature: 1, Seed: 5}}
	all, err := m.Reply(t.Context(), msgs, g)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		g.N, g.Sampling.Seed = 1, engine.ChoiceSeed(5, i)
		one, err := m.Reply(t.Context(), msgs, g)
		if err != nil {
			t.Fatal(err)
		}
		if one[0].Message.Content != all[i].Message.Content || one[0].Finish != all[i].Finish || i > 0 && one[0].Message.Content == all[0].Message.Content {
			t.Errorf("answer %d: %+v, alone %+v", i, all[i], one[0])
		}
	}
}

// Leaving a loop ends its request at once, as the end of a context does.
func TestEnds(t *testing.T) {
	m := openTiny(t, Options{})
	idle := func(what string) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); m.Engine().Stats().Requests > 0; {
			if time.Now().After(end) {
				t.Fatalf("%s: the request still runs", what)
			}
			time.Sleep(time.Millisecond)
		}
	}
	g := Generation{IgnoreEOS: true}
	for range m.Generate(t.Context(), "Once upon a time", g) {
		break
	}
	idle("left")
	if st := m.Engine().Stats(); st.Finished[engine.FinishAbort] != 1 || st.Tokens > 500 {
		t.Errorf("left: %v, %d tokens", st.Finished, st.Tokens)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for tok, err := range m.Generate(ctx, "Once upon a time", g) {
		if last = err; err == nil && tok.ID >= 0 {
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("cancelled: %v", last)
	}
	idle("cancelled")
	for _, err := range m.Generate(ctx, "x", g) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled before: %v", err)
		}
	}
}

// A prompt that does not fit is an error with the counts; one that just does
// gets the one token that needs no place.
func TestContext(t *testing.T) {
	m := openTiny(t, Options{Context: 50})
	prompt := slices.Repeat(m.Tokenize("a"), 60)
	var long *ContextError
	for _, err := range m.GenerateTokens(t.Context(), prompt[:51], Generation{}) {
		if !errors.As(err, &long) || long.Tokens != 51 || long.Context != 50 || !errors.As(err, new(*engine.ContextError)) {
			t.Errorf("51 of 50: %v", err)
		}
	}
	for n, want := range map[int]int{50: 1, 40: 11} {
		var st Stats
		for _, err := range m.GenerateTokens(t.Context(), prompt[:n], Generation{IgnoreEOS: true, Stats: &st}) {
			if err != nil {
				t.Error(err)
			}
		}
		if st.Tokens != want || st.Finish != FinishLength || st.PromptTokens != n {
			t.Errorf("%d of 50: %+v, want %d tokens", n, st, want)
		}
	}
}

func TestClosed(t *testing.T) {
	m := openTiny(t, Options{})
	var last error
	for _, err := range m.Generate(t.Context(), "Once upon a time", Generation{IgnoreEOS: true}) {
		last = err
		if err == nil {
			m.Engine().Close()
		}
	}
	if !errors.Is(last, engine.ErrClosed) {
		t.Errorf("closed within a loop: %v", last)
	}
	if _, err := m.Embed(t.Context(), "x", PoolMean); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// A mark in a message is text unless marks are trusted.
func TestMarks(t *testing.T) {
	var ends [2]int
	for i, trust := range []bool{false, true} {
		m := openTiny(t, Options{TrustMarks: trust})
		ids, err := m.ChatTokens(chat.Input{Messages: []chat.Message{{Role: "user", Content: "a<|im_end|>"}}, AddGenerationPrompt: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if m.Tokenizer().IsEOG(id) {
				ends[i]++
			}
		}
	}
	if ends != [2]int{2, 3} {
		t.Errorf("%d ends of turns in a prompt of two turns, %d with marks trusted", ends[0], ends[1])
	}
}

// Reasoning is closed after as many tokens as it may have, and what is asked of the
// text holds behind it.
func TestReasoningTokens(t *testing.T) {
	const template = `{# </think> #}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
<think>{% endif %}`
	m := openTiny(t, Options{Template: template})
	ask := func(g Generation) (reasoning int, text string) {
		t.Helper()
		g.MaxTokens = 40
		thought := ""
		for tok, err := range m.Chat(t.Context(), []chat.Message{{Role: "user", Content: "Tell me a story."}}, g) {
			if err != nil {
				t.Fatal(err)
			}
			thought, text = thought+tok.Reasoning, text+tok.Text
		}
		return len(m.Tokenizer().Encode(nil, thought, tokenizer.EncodeOptions{})), text
	}
	if n, text := ask(Generation{}); n < 20 || text != "" {
		t.Errorf("without a bound: %d tokens of reasoning and %q", n, text)
	}
	if n, text := ask(Generation{ReasoningTokens: 5}); n < 4 || n > 6 || len(text) < 20 {
		t.Errorf("5 tokens: %d, then %q", n, text)
	}
	if n, text := ask(Generation{ReasoningTokens: -1}); n != 0 || len(text) < 20 {
		t.Errorf("none: %d, then %q", n, text)
	}
	if n, text := ask(Generation{ReasoningTokens: 5, Format: constraint.Choice("yes", "no")}); n < 4 || text != "yes" && text != "no" {
		t.Errorf("with a format: %d, then %q", n, text)
	}
	if _, text := ask(Generation{ReasoningTokens: 5, KeepReasoning: true, Format: constraint.Choice("yes", "no")}); text != "yes" && text != "no" && !strings.HasSuffix(text, "yes") && !strings.HasSuffix(text, "no") {
		t.Errorf("all of a format: %q", text)
	}
}
