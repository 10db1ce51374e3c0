package pagetest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"ridge/hub"
	"ridge/server"
)

// A download shows how far it is, and ends when it is cancelled.
func TestPull(t *testing.T) {
	h := open(t, func(o *server.Options) { o.Hub = &hub.Options{Dir: t.TempDir(), Offline: true} }).Handler()
	left := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/pull" {
			h.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = fmt.Fprintln(w, `{"status":"pulling","total":100000000,"completed":25000000}`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(left)
	}))
	t.Cleanup(srv.Close)
	b := browse(t, srv.URL+"/#models", 1200, 800)
	b.until(`document.querySelector("[data-model=tiny] .loaded")`)
	b.until(`!document.querySelector(".page > form").hidden`)
	b.do(chromedp.SendKeys(".page > form input", "smollm2"), chromedp.Click(".page > form .primary"))
	b.until(`document.querySelector(".page > [role=status]").innerText.startsWith("pulling: 25 MB of 100 MB") && document.querySelector(".page progress").value === 0.25`)
	b.press(".page > form", "Cancel")
	b.until(`document.querySelector(".page > [role=status]").innerText.includes("cancelled")`)
	select {
	case <-left:
	case <-time.After(time.Minute):
		t.Error("the server was not told")
	}
	b.clean(srv.URL)
}

// The list of requests is the API's.
func TestRequestsView(t *testing.T) {
	url := start(t)
	b := browse(t, url, 1200, 800)
	b.ask("Hello")
	value[any](b, `location.hash = "requests"`)
	b.until(`document.querySelector("tr[data-request] td:nth-child(2)")?.innerText.includes("/v1/chat/completions")`)
	type list struct {
		Requests []struct {
			ID        string
			Prompt    int `json:"prompt_tokens"`
			Generated int `json:"generated_tokens"`
		}
	}
	want := fetch[list](t, url+"/ridge/requests?last=200").Requests
	if shown, now := value[string](b, `document.querySelector("tr[data-request] time").title`), time.Now(); !strings.Contains(shown, now.Format("2006")) {
		t.Errorf("a request of today is said to have come at %s", shown)
	}
	for _, w := range want {
		got := value[[]string](b, fmt.Sprintf(`[...document.querySelector('tr[data-request=%q]')?.children ?? []].map((e) => e.innerText)`, w.ID))
		if len(got) == 0 {
			continue // came after the page asked
		}
		if w.Prompt > 0 && (got[5] != grouped(w.Prompt) || got[7] != grouped(w.Generated)) {
			t.Errorf("%s: %q, the API says %d and %d tokens", w.ID, got, w.Prompt, w.Generated)
		}
	}
	if len(want) == 0 {
		t.Error("the API lists nothing")
	}
	b.clean(url)
}
