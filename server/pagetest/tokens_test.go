package pagetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"ridge/engine"
	"ridge/internal/builtin"
	"ridge/model"
	"ridge/spec"
)

// Under an answer the tokens are those of the API, with their probabilities; what
// a cut removed is named, and an alternative can be taken. Tokens that were guessed
// ahead are marked. Settings that are not set tell what the model does by itself.
func TestTokenView(t *testing.T) {
	o := model.DefaultOptions()
	o.KVBytes = 64 << 20
	guess := &spec.Drafting{New: func(n int) spec.Drafter { return spec.NewNGram(n) }, Always: true}
	srv := httptest.NewServer(openWith(t, builtin.Prefix+"tiny", o, engine.Options{Draft: guess}).Handler())
	t.Cleanup(srv.Close)
	url := srv.URL
	b := browse(t, url, 1200, 900)
	b.until(`document.querySelector(".bar select")?.value && document.querySelector("#set-seed").placeholder`)
	type props struct {
		Settings struct{ Params map[string]any } `json:"default_generation_settings"`
	}
	own := fetch[props](t, url+"/props").Settings.Params
	for name, want := range map[string]string{"temperature": fmt.Sprint(own["temperature"]), "top_k": fmt.Sprint(own["top_k"]), "repeat_penalty": fmt.Sprint(own["repeat_penalty"]), "max_tokens": "none", "seed": "by chance"} {
		if got := value[string](b, fmt.Sprintf(`document.querySelector("#set-%s").placeholder`, name)); got != want {
			t.Errorf("%s that is not set reads %q, want %q", name, got, want)
		}
	}
	value[any](b, `(() => { for (const [k, v] of [["temperature", 0.8], ["top_k", 5], ["seed", 7], ["max_tokens", 24]]) { const e = document.querySelector("#set-" + k); e.value = v; e.dispatchEvent(new Event("input")) } })()`)
	b.ask("What is a cat?")
	b.press(".message.assistant .tools", "Tokens")
	b.until(`document.querySelectorAll(".tokens .token").length > 0`)

	// The same request, from a client.
	body := `{"messages":[{"role":"user","content":"What is a cat?"}],"temperature":0.8,"top_k":5,"seed":7,"max_tokens":24,"logprobs":true,"top_logprobs":10}`
	r, err := http.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var answer struct {
		Choices []struct {
			Logprobs struct {
				Content []struct {
					Token   string
					Logprob float64
				}
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	want := answer.Choices[0].Logprobs.Content
	got := value[[][2]string](b, `[...document.querySelectorAll(".tokens .token")].map((e) => [e.textContent, e.title])`)
	if len(got) < len(want) || len(want) == 0 {
		t.Fatalf("%d tokens, the API gives %d", len(got), len(want))
	}
	for i, w := range want {
		var percent float64
		if strings.HasPrefix(got[i][1], "<") {
			percent = 0.005
		} else if _, err := fmt.Sscanf(got[i][1], "%f%%", &percent); err != nil {
			t.Fatalf("token %d has the title %q", i, got[i][1])
		}
		if got[i][0] != w.Token || math.Abs(percent-100*math.Exp(w.Logprob)) > 0.06 {
			t.Errorf("token %d: %q with %s, the API gives %q with %.2f%%", i, got[i][0], got[i][1], w.Token, 100*math.Exp(w.Logprob))
		}
	}
	// Ten alternatives, of which five are left by top k.
	b.do(chromedp.Click(".tokens .token:nth-child(4)"))
	b.until(`document.querySelectorAll(".alternatives tbody tr").length === 10`)
	if cut := value[[]string](b, `[...document.querySelectorAll(".alternatives tbody tr")].map((r) => r.children[2].textContent)`); strings.Join(cut, ",") != ",,,,,top k,top k,top k,top k,top k" {
		t.Errorf("removed by: %q", cut)
	}
	b.shoot("tokens-of-an-answer")
	// Another token: a branch with the same beginning.
	prefix := value[string](b, `[...document.querySelectorAll(".tokens .token")].slice(0, 3).map((e) => e.textContent).join("")`)
	other := value[string](b, `[...document.querySelectorAll(".alternatives tbody tr")].find((r) => !r.classList.contains("taken")).querySelector("code").textContent.replaceAll("·", " ")`)
	value[any](b, `[...document.querySelectorAll(".alternatives button")][0].click()`)
	b.until(`document.querySelector(".message.assistant .branch")?.innerText.includes("2/2") && document.querySelector(".message.assistant").getAttribute("aria-busy") === "false"`)
	text := value[string](b, `document.querySelector(".message.assistant .markdown").innerText`)
	if !strings.HasPrefix(text, strings.TrimSpace(prefix+other)) || len(text) <= len(prefix+other) {
		t.Errorf("the branch reads %q, want more behind %q", text, prefix+other)
	}
	// An answer that repeats itself is guessed: what came true is marked, and counted
	// below the answer.
	value[any](b, `(() => { for (const [k, v] of [["temperature", 0], ["max_tokens", 120]]) { const e = document.querySelector("#set-" + k); e.value = v; e.dispatchEvent(new Event("input")) } })()`)
	b.ask("cat dog cat dog cat dog cat dog cat dog")
	b.press(".message.assistant .tools", "Tokens")
	const last = `[...document.querySelectorAll(".message.assistant")].at(-1)`
	b.until(last + `.querySelector(".tokens .token")`)
	marked := value[int](b, last+`.querySelectorAll(".tokens .token.drafted").length`)
	facts := value[string](b, last+`.querySelector(".facts").innerText`)
	if marked == 0 || !strings.Contains(facts, fmt.Sprintf("%d of ", marked)) || !strings.Contains(facts, "guessed tokens right") {
		t.Errorf("%d tokens are marked as guessed, below the answer: %q", marked, facts)
	}
	value[any](b, last+`.querySelector(".tokens .token.drafted").click()`)
	b.until(last + `.querySelector(".token-detail").innerText.includes("drafted, then verified")`)
	b.clean(url)
}
