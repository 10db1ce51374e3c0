package server

import (
	"math"
	"net/http/httptest"
	"strings"
	"testing"

	"ridge/engine"
	"ridge/server/run"
	"ridge/text/tokenizer"
)

// obedient lets a script's answers be what their maskers allow: where a masker
// forces a token, that comes, and then the script goes on.
func obedient(b *script) {
	text := b.reply
	b.reply = func(r *engine.Request, choice int) string {
		if r.NewMasker == nil {
			return text(r, choice)
		}
		m := r.NewMasker()
		want := b.tok.Encode(nil, text(r, choice), tokenizer.EncodeOptions{ParseSpecial: true})
		var ids []int32
		logits := make([]float32, b.tok.VocabSize())
		for len(want) > 0 {
			clear(logits)
			m.Mask(logits)
			id, allowed := int32(-1), 0
			for i, l := range logits {
				if !math.IsInf(float64(l), -1) {
					id = int32(i)
					allowed++
				}
			}
			if allowed != 1 {
				id = want[0]
			}
			if id == want[0] {
				want = want[1:]
			}
			ids = append(ids, id)
			if m.Accept(id) != nil {
				break
			}
		}
		return b.tok.DecodeSpecial(ids)
	}
}

func budgeted(t *testing.T, reply string) *httptest.Server {
	srv, _ := scripted(t, reply, func(_ *Options, b *script) { obedient(b) })
	return srv
}

// Budgets of reasoning close it, in every dialect, by each name that they have.
func TestReasoningBudget(t *testing.T) {
	srv := budgeted(t, "<think>abcdefgh")
	for _, field := range []string{"thinking_token_budget", "reasoning_budget", "reasoning_budget_tokens", "thinking_budget_tokens"} {
		o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"`+field+`":3}`, 200)
		equal(t, field, o.at("choices", 0, "message", "reasoning_content"), "abc")
		equal(t, field, o.at("choices", 0, "message", "content"), "defgh")
	}
	o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"reasoning_budget":-1}`, 200)
	equal(t, "any", o.at("choices", 0, "message", "reasoning_content"), "abcdefgh")
	o = post(t, srv.URL+"/v1/messages", `{"max_tokens":100,`+hello+`,"thinking":{"type":"enabled","budget_tokens":2}}`, 200)
	equal(t, "anthropic", o.at("content", 0, "thinking"), "ab")
	equal(t, "anthropic", o.at("content", 1, "text"), "cdefgh")
	post(t, srv.URL+"/v1/messages", `{"max_tokens":100,`+hello+`,"thinking":{"type":"enabled","budget_tokens":-2}}`, 400)
	o = post(t, srv.URL+"/v1/responses", `{"input":"a","reasoning_budget":4}`, 200)
	equal(t, "responses", o.at("output", 1, "content", 0, "text"), "efgh")
	o = post(t, srv.URL+"/api/chat", `{"stream":false,`+hello+`,"think":true,"thinking_token_budget":1}`, 200)
	equal(t, "ollama", o.at("message", "thinking"), "a")
	equal(t, "ollama", o.at("message", "content"), "bcdefgh")
	_, data := sse(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"reasoning_budget":3,"stream":true}`)
	streamed := ""
	for _, d := range data {
		for _, k := range []string{"reasoning_content", "content"} {
			if s, ok := d.at("choices", 0, "delta", k).(string); ok {
				streamed += s
			}
		}
	}
	equal(t, "streamed", streamed, "abcdefgh")
	// With a format the text that follows is of it.
	o = post(t, budgeted(t, `<think>abc{"a":1}`).URL+"/v1/chat/completions", `{`+hello+`,"reasoning_budget":3,"response_format":{"type":"json_object"}}`, 200)
	equal(t, "with a format", o.at("choices", 0, "message", "content"), `{"a":1}`)
	// With the reasoning left in the text all of it is of the format: there is
	// nothing to close.
	o = post(t, budgeted(t, `{"a":1}`).URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"<think>Hm"}],`+
		`"continue_final_message":true,"reasoning_format":"none","reasoning_budget":2,"response_format":{"type":"json_object"}}`, 200)
	equal(t, "all of a format", o.at("choices", 0, "message", "content"), `{"a":1}`)
}

// Reasoning that a request begins and has continued counts too, in the format of
// gpt-oss as in others; a mark that the user wrote begins none.
func TestBudgetOfContinuedReasoning(t *testing.T) {
	const ossTemplate = `{% for m in messages %}<|start|>{{ m.role }}{% if m.role == 'user' %}<|message|>{{ m.content }}<|end|>{% elif m.thinking %}<|channel|>analysis<|message|>{{ m.thinking }}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}`
	oss, _ := scripted(t, "ABCDEFGH", func(o *Options, b *script) {
		obedient(b)
		m, err := run.ModelOf(b, b.tok, *o.Models[0].Info(), ossTemplate)
		if err != nil {
			t.Fatal(err)
		}
		o.Models = []*run.Model{m}
	})
	const ask = `,"continue_final_message":true,"reasoning_budget":3}`
	message := func(url, user, last string) object {
		return post(t, url+"/v1/chat/completions", `{"messages":[{"role":"user","content":"`+user+`"},{"role":"assistant",`+last+`}]`+ask, 200)
	}
	o := message(oss.URL, "Hi", `"content":"","reasoning_content":"Hm"`)
	equal(t, "gpt-oss", []any{o.at("choices", 0, "message", "reasoning_content"), o.at("choices", 0, "message", "content")}, []any{"ABC", "DEFGH"})
	srv := budgeted(t, "ABCDEFGH")
	o = message(srv.URL, "Hi", `"content":"<think>Hm"`)
	equal(t, "tags", []any{o.at("choices", 0, "message", "reasoning_content"), o.at("choices", 0, "message", "content")}, []any{"ABC", "DEFGH"})
	o = message(srv.URL, "<think>", `"content":"i"`)
	equal(t, "a mark of the user", []any{o.at("choices", 0, "message", "reasoning_content"), o.at("choices", 0, "message", "content")}, []any{nil, "ABCDEFGH"})
}

// The last turn of the assistant is continued.
func TestPrefill(t *testing.T) {
	srv, b := scripted(t, "!")
	turns := `"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"We%s"}]`
	end := func() string {
		s := b.tok.DecodeSpecial(b.last().Tokens)
		return s[strings.LastIndex(s, "<|im_start|>"):]
	}
	with := func(s string) string { return strings.Replace(turns, "%s", s, 1) }
	o := post(t, srv.URL+"/v1/messages", `{"max_tokens":9,`+with("ll")+`}`, 200)
	equal(t, "anthropic", end(), "<|im_start|>assistant\nWell")
	equal(t, "anthropic", o.at("content", 0, "text"), "!")
	post(t, srv.URL+"/v1/messages", `{"max_tokens":9,`+with(`ll \n`)+`}`, 400)
	post(t, srv.URL+"/v1/messages", `{"max_tokens":9,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":""}]}`, 200)
	equal(t, "an empty turn", end(), "<|im_start|>assistant\n")
	post(t, srv.URL+"/v1/chat/completions", `{`+with(`ll, \n`)+`,"continue_final_message":true,"add_generation_prompt":false}`, 200)
	equal(t, "white space", end(), "<|im_start|>assistant\nWell, \n")
	post(t, srv.URL+"/v1/chat/completions", `{`+with(`ll`)+`,"continue_final_message":true}`, 200)
	equal(t, "one flag", end(), "<|im_start|>assistant\nWell")
	post(t, srv.URL+"/v1/chat/completions", `{`+with(`ll`)+`,"continue_final_message":true,"add_generation_prompt":true}`, 400)
	post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"<think>"},{"role":"assistant","content":"i"}],"continue_final_message":true}`, 200)
	equal(t, "a short text", end(), "<|im_start|>assistant\ni")
	o = post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"<think>Hm"}],"continue_final_message":true}`, 200)
	equal(t, "within reasoning", o.at("choices", 0, "message", "reasoning_content"), "!")
}
