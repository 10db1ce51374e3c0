package pagetest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"ridge/engine"
	"ridge/hub"
	"ridge/internal/builtin"
	"ridge/kvcache"
	"ridge/model"
	"ridge/server"
	"ridge/server/run"
)

// Where only tiny is here the empty chat offers another model: it comes, is chosen and
// answers. A download shows how far it is, and ends when it is cancelled.
func TestPull(t *testing.T) {
	all := hub.Catalog()
	offered := all[slices.IndexFunc(all, func(e hub.Entry) bool { return e.Default })].Name
	var here atomic.Bool
	list := func() (c []run.ModelConfig) {
		if here.Load() { // the model in the program stands for what was pulled
			c = append(c, run.ModelConfig{Name: offered, Path: builtin.Prefix + "tiny"})
		}
		return c
	}
	reg, err := engine.NewRegistry(func(context.Context, string, *kvcache.Budget) (*model.Model, engine.Options, error) {
		o := model.DefaultOptions()
		o.KVBytes = 16 << 20
		m, err := model.Open(builtin.Prefix+"tiny", o)
		return m, engine.Options{}, err
	}, engine.RegistryOptions{KeepAlive: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) (run.ModelConfig, bool) {
		if l := list(); len(l) > 0 && name == offered {
			return l[0], true
		}
		return run.ModelConfig{}, false
	}
	h := open(t, func(o *server.Options) {
		o.Hub = &hub.Options{Dir: t.TempDir(), Offline: true}
		o.Source = &run.Source{Registry: reg, Find: find, List: list}
	}).Handler()
	whole, left := make(chan struct{}), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/pull" {
			h.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = fmt.Fprintln(w, `{"status":"pulling","total":100000000,"completed":25000000}`)
		w.(http.Flusher).Flush()
		if strings.Contains(string(body), offered) {
			<-whole
			here.Store(true)
			_, _ = fmt.Fprintln(w, `{"status":"success"}`)
			return
		}
		<-r.Context().Done()
		close(left)
	}))
	t.Cleanup(srv.Close)
	b := browse(t, srv.URL, 1200, 800)
	b.until(fmt.Sprintf(`document.querySelector(".empty .offer .primary")?.innerText.startsWith("Get %s (")`, offered))
	b.do(chromedp.Click(".offer .primary"))
	b.until(`document.querySelector(".offer [role=status]").innerText.startsWith("pulling: 25 MB of 100 MB") && document.querySelector(".offer progress").value === 0.25 && document.querySelector(".offer .primary").disabled`)
	close(whole)
	b.until(fmt.Sprintf(`document.querySelector(".bar select").value === %q && !document.querySelector(".offer")`, offered))
	b.ask("Hello")
	if b.text(".message.assistant .markdown") == "" {
		t.Error("the model that was pulled does not answer")
	}
	type requests struct{ Requests []struct{ Model string } }
	if r := fetch[requests](t, srv.URL+"/ridge/requests").Requests; len(r) != 1 || r[0].Model != offered {
		t.Errorf("requests: %+v, want one of %s", r, offered)
	}

	value[any](b, `location.hash = "models"`)
	b.until(`document.querySelector("[data-model=tiny] .loaded")`)
	b.until(`!document.querySelector(".page > form").hidden`)
	b.do(chromedp.SendKeys(".page > form input", "another"), chromedp.Click(".page > form .primary"))
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
