package pagetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"ridge/server"
)

// text is what the page shows.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return value[string](b, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector))
}

func TestChat(t *testing.T) {
	url := start(t)
	b := browse(t, url, 1200, 800)
	if title := value[string](b, `document.title`); title != "Chat · ridge" {
		t.Errorf("the title is %q", title)
	}
	b.ask("Hello")
	if b.text(".message.assistant .markdown") == "" {
		t.Error("no answer")
	}
	facts := b.text(".message.assistant .facts")
	for _, want := range []string{"to the first token", "tokens/s", "% of the read limit", "prompt", "seed"} {
		if !strings.Contains(facts, want) {
			t.Errorf("below the answer: %q, want %q in it", facts, want)
		}
	}
	// Another answer and another question are branches; the first ones stay.
	first := b.text(".message.assistant .markdown")
	b.press(".message.assistant", "Again")
	b.until(`document.querySelector(".message.assistant .branch")?.innerText.includes("2/2") && document.querySelector(".message.assistant").getAttribute("aria-busy") === "false"`)
	value[any](b, `document.querySelector(".message.assistant .branch button").click()`)
	b.until(`document.querySelector(".message.assistant .branch").innerText.includes("1/2")`)
	if got := b.text(".message.assistant .markdown"); got != first {
		t.Errorf("the first branch reads %q, want %q", got, first)
	}
	b.press(".message.user", "Edit")
	b.do(chromedp.SetValue("dialog textarea", "What is a cat?"), chromedp.Click("dialog .primary"))
	b.until(`document.querySelector(".message.user .text").innerText === "What is a cat?" && document.querySelector(".message.assistant")?.getAttribute("aria-busy") === "false"`)
	b.ask("And a dog?")
	// All is there after a reload, from the list at the side.
	before := value[string](b, `document.querySelector(".log").innerText`)
	b.until(`document.querySelectorAll(".conversations li").length === 1`)
	time.Sleep(400 * time.Millisecond) // the browser keeps it a moment later
	b.do(chromedp.Reload())
	b.until(`document.querySelectorAll(".conversations li").length === 1`)
	b.do(chromedp.Click(".conversations .title"))
	b.until(`document.querySelectorAll(".message").length === 4`)
	if after := value[string](b, `document.querySelector(".log").innerText`); after != before {
		t.Errorf("after a reload: %q, want %q", after, before)
	}
	b.clean(url)
}

// A key press sends, another one stops.
func TestStop(t *testing.T) {
	url := start(t)
	b := browse(t, url, 1200, 800)
	b.until(`document.querySelector(".bar select")?.value`)
	b.do(chromedp.SetValue(".composer textarea", "Tell me a long story about a cat, a dog and a bird."), chromedp.Focus(".composer textarea"),
		input.DispatchKeyEvent(input.KeyDown).WithKey("Enter").WithWindowsVirtualKeyCode(13))
	b.until(`document.querySelector(".message.assistant[aria-busy=true] .markdown")?.innerText.length > 20`)
	b.do(chromedp.Focus(".composer textarea"), input.DispatchKeyEvent(input.KeyDown).WithKey("Escape").WithWindowsVirtualKeyCode(27))
	b.until(`document.querySelector(".message.assistant[aria-busy=false]")`)
	if facts := b.text(".message.assistant .facts"); !strings.Contains(facts, "stopped") {
		t.Errorf("below the answer: %q", facts)
	}
	b.press(".message.assistant", "Continue")
	b.until(`document.querySelector(".message.assistant[aria-busy=false] .facts")?.innerText.includes("to the first token")`)
	// What was stopped before its first token is begun anew.
	b.send("And another one?")
	b.do(chromedp.Click(".composer .primary"))
	b.until(`document.querySelectorAll(".message.assistant[aria-busy=false]").length === 2`)
	b.press(".message.assistant", "Continue")
	b.until(`[...document.querySelectorAll(".message.assistant[aria-busy=false] .facts")].at(-1)?.innerText.includes("to the first token") && document.querySelectorAll(".message.assistant[aria-busy=false] .markdown").length === 2`)
	b.clean(url)
}

// scripted answers chats whose question begins with "script" by parts; the rest
// is the server's.
func scripted(t *testing.T, parts func() []string) string {
	t.Helper()
	var all []map[string]any
	for _, p := range parts() {
		all = append(all, map[string]any{"content": p})
	}
	return scriptedEvents(t, all)
}

// scriptedEvents is scripted with whole pieces of a message.
func scriptedEvents(t *testing.T, pieces []map[string]any) string {
	t.Helper()
	h := open(t).Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" {
			h.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), "script") {
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, p := range pieces {
			c, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": p}}})
			if _, err := fmt.Fprintf(w, "data: %s\n\n", c); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// What a model writes stays text.
func TestHostileAnswer(t *testing.T) {
	table := "| a | b |\n|---|---|\n" + strings.Repeat("| x | y |\n", 3000)
	hostile := []string{"<script>window.hit = 1</script>\n\n<img src=x onerror=\"window.hit = 2\">\n\n", "[a link](javascript:window.hit=3) ![picture](http://elsewhere.invalid/x.png)\n\n",
		"<svg onload='window.hit=4'></svg><iframe src='http://elsewhere.invalid'></iframe><style>*{display:none}</style>\n\n", "file\u202egpj.exe\n\n", "<a href=\"data:text/html,x\">y</a>\n\n",
		"```html\"onmouseover=\"window.hit=5\n</code></pre><script>window.hit = 6</script>\n```\n\n", "costs $5 and $10; $a_b_c$ and **bold**\n\n", table}
	url := scripted(t, func() []string { return hostile })
	b := browse(t, url, 1200, 800)
	b.ask("script")
	if hit := value[any](b, `window.hit ?? null`); hit != nil {
		t.Errorf("the answer ran a script: %v", hit)
	}
	if n := value[int](b, `document.querySelectorAll(".markdown :is(script,img,svg,iframe,style,[onerror],[onload],[onmouseover],[style])").length`); n != 0 {
		t.Errorf("%d elements of the answer are more than text", n)
	}
	if bad := value[string](b, `[...document.querySelectorAll(".markdown a")].map((a) => a.protocol).filter((p) => !["http:", "https:"].includes(p)).join()`); bad != "" && bad != ":" {
		t.Errorf("links with %s", bad)
	}
	text := value[string](b, `document.querySelector(".markdown").innerText`)
	for _, want := range []string{"<script>window.hit = 1</script>", "⟦U+202E⟧", "$a_b_c$", "(2800 more rows)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the answer reads %.400q…, want %q in it", text, want)
		}
	}
	if n := value[int](b, `document.querySelectorAll(".markdown tr").length`); n > 201 {
		t.Errorf("%d rows of a table", n)
	}
	// Code is copied as it was written.
	value[any](b, `navigator.clipboard.writeText = async (t) => { window.copied = t }`)
	value[any](b, `document.querySelector(".markdown .code button").click()`)
	b.until(`window.copied`)
	if got := value[string](b, `window.copied`); strings.TrimSuffix(got, "\n") != "</code></pre><script>window.hit = 6</script>" {
		t.Errorf("copied: %q", got)
	}
	b.clean(url)
}

// An answer of 8,000 tokens does not slow the page: what one more part costs at
// the end is bounded by what it costs at the beginning.
func TestLongAnswer(t *testing.T) {
	var parts []string
	for i := range 8000 {
		p := fmt.Sprintf("word%d ", i)
		if i%40 == 39 {
			p += "\n\n"
		}
		parts = append(parts, p)
	}
	url := scripted(t, func() []string { return parts })
	b := browse(t, url, 1200, 800)
	b.ask("script")
	if n := value[int](b, `document.querySelectorAll(".markdown .block").length`); n != 200 {
		t.Errorf("%d blocks, want 200", n)
	}
	if text := b.text(".markdown"); !strings.Contains(text, "word7999") || strings.Count(text, "word") != 8000 {
		t.Errorf("%d words of 8000", strings.Count(text, "word"))
	}
	b.clean(url)
}

func TestKey(t *testing.T) {
	url := start(t, func(o *server.Options) { o.Keys = []string{"sk-right"} })
	b := browse(t, url, 1200, 800)
	b.until(`document.querySelector("dialog[open] input")`)
	b.do(chromedp.SetValue("dialog input", "sk-wrong"), chromedp.Click("dialog .primary"))
	b.until(`document.querySelector("dialog[open] .bad")?.innerText.includes("not accepted")`)
	b.do(chromedp.SetValue("dialog input", "sk-right"), chromedp.Click("dialog .primary"))
	b.ask("Hello")
	if b.text(".message.assistant .markdown") == "" {
		t.Error("no answer with the right key")
	}
}

// A server that goes in mid-answer leaves what was said, and the page works again
// when it is back.
func TestServerRestarts(t *testing.T) {
	var down atomic.Bool
	h := open(t).Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	b := browse(t, srv.URL, 1200, 800)
	b.until(`document.querySelector(".bar select")?.value`)
	b.send("Tell me a long story about a cat, a dog and a bird.")
	b.until(`document.querySelector(".message.assistant[aria-busy=true] .markdown")?.innerText.length > 20`)
	down.Store(true)
	srv.CloseClientConnections()
	b.until(`document.querySelector(".message.assistant[aria-busy=false] > .bad")?.innerText`)
	if b.text(".message.assistant .markdown") == "" {
		t.Error("what was said is gone")
	}
	down.Store(false)
	b.press(".message.assistant", "Again")
	b.until(`document.querySelector(".message.assistant[aria-busy=false] .facts")?.innerText.includes("tokens/s")`)
}

// Who goes to another conversation while an answer comes finds what came when
// he is back; a deleted conversation stays away.
func TestLeaveAnswer(t *testing.T) {
	url := start(t)
	b := browse(t, url, 1200, 800)
	b.until(`document.querySelector(".bar select")?.value`)
	b.send("Tell me a long story about a cat, a dog and a bird.")
	b.until(`document.querySelector(".message.assistant[aria-busy=true] .markdown")?.innerText.length > 20`)
	b.do(chromedp.Click(".side .primary"))
	b.until(`document.querySelector(".empty") && document.querySelectorAll(".conversations li").length === 1`)
	b.do(chromedp.Click(".conversations .title"))
	b.until(`document.querySelector(".message.assistant .markdown")?.innerText.length > 20 && document.querySelector(".message.assistant .facts").innerText.includes("stopped")`)
	b.press(".message.assistant", "Again")
	b.until(`document.querySelector(".message.assistant[aria-busy=true] .markdown")?.innerText.length > 20`)
	b.do(chromedp.Click(`.conversations [aria-label^="Delete"]`), chromedp.Click("dialog .primary"))
	b.until(`document.querySelector(".empty") && document.querySelectorAll(".conversations li").length === 0`)
	b.ask("Hello")
	b.until(`document.querySelectorAll(".conversations li").length === 1`)
	if title := b.text(".conversations .title"); title != "Hello" {
		t.Errorf("the conversation that is left is %q", title)
	}
	b.clean(url)
}
