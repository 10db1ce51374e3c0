package pagetest

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"ridge/server"
	"ridge/server/adapters"
)

// The adapters of the view are the API's, with rank and size; one is loaded from the
// folder for them, answers when it is chosen as a model, and is unloaded.
func TestAdaptersView(t *testing.T) {
	const folder = "../../internal/tinymodel/adapters"
	set := adapters.New()
	set.Dir = folder
	if err := set.Configure([]adapters.Config{{Name: "sql", Path: folder + "/llama", Base: "tiny", Scale: 1}}); err != nil {
		t.Fatal(err)
	}
	s := openModel(t, "../../internal/tinymodel/testdata/llama/llama.gguf", func(o *server.Options) { o.Adapters = set })
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	if err := s.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	type list struct {
		Adapters []struct {
			Name, Source string
			Rank         int
			Bytes        int64
		}
	}
	b := browse(t, srv.URL+"/#models", 1200, 900)
	b.until(`document.querySelector("[data-adapter=sql]")`)
	same := func(names ...string) {
		t.Helper()
		want := fetch[list](t, srv.URL+"/ridge/adapters").Adapters
		if len(want) != len(names) {
			t.Fatalf("the API has %d adapters, want %q", len(want), names)
		}
		for i, w := range want {
			got := value[[]string](b, fmt.Sprintf(`[...document.querySelector("[data-adapter=%s]").children].map((e) => e.innerText)`, names[i]))
			if w.Name != names[i] || !strings.Contains(got[0], w.Name) || !strings.Contains(got[0], w.Source) || got[1] != "tiny" || w.Rank == 0 || got[2] != fmt.Sprint(w.Rank) ||
				got[3] != fmt.Sprintf("%d kB", (w.Bytes+500)/1000) || got[4] != "nobody now" || got[5] != "in memory" {
				t.Errorf("the page shows %q, the API has %+v", got, w)
			}
		}
	}
	same("sql")
	b.until(`document.querySelectorAll(".adapters form select")[0].value && document.querySelectorAll(".adapters form select")[1].value === "tiny"`)
	b.do(chromedp.SetValue(".adapters form select", "llama-rs"), chromedp.SetValue(".adapters form input", "other"), chromedp.Click(".adapters form .primary"))
	b.until(`document.querySelector("[data-adapter=other] .loaded")`)
	same("sql", "other")
	b.shoot("adapters")
	// What does not suit the model is said, and nothing is listed.
	b.do(chromedp.SetValue(".adapters form select", "gpt2"), chromedp.SetValue(".adapters form input", "wrong"), chromedp.Click(".adapters form .primary"))
	b.until(`document.querySelector(".toast.error")?.innerText.includes("wrong")`)
	same("sql", "other")
	value[any](b, `document.querySelector(".toast.error button").click(); location.hash = "chat"`)
	b.until(`[...document.querySelectorAll("select[aria-label=Model] option")].some((o) => o.innerText === "other (adapter of tiny)")`)
	value[any](b, `(() => { const e = document.querySelector("select[aria-label=Model]"); e.value = "other"; e.dispatchEvent(new Event("change")); const n = document.querySelector("#set-max_tokens"); n.value = "8"; n.dispatchEvent(new Event("input")) })()`)
	b.ask("abc")
	type requests struct{ Requests []struct{ Model string } }
	if r := fetch[requests](t, srv.URL+"/ridge/requests").Requests; len(r) == 0 || r[0].Model != "other" {
		t.Errorf("requests: %+v", r)
	}
	value[any](b, `location.hash = "models"`)
	b.press("[data-adapter=other]", "Unload")
	b.until(`document.querySelector("[data-adapter=sql]") && !document.querySelector("[data-adapter=other]")`)
	same("sql")
}

// Where clients may load none the view says how adapters are given.
func TestNoAdapters(t *testing.T) {
	url := start(t)
	b := browse(t, url+"/#models", 1200, 800)
	b.until(`document.querySelector(".adapters [role=status]").innerText.includes("--lora-dir")`)
	if !value[bool](b, `document.querySelector(".adapters form").hidden && document.querySelector(".page > form").hidden`) {
		t.Error("what cannot be done is offered")
	}
	b.clean(url)
}
