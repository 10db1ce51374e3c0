package pagetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// fetch reads the JSON that the API gives to any client.
func fetch[T any](t testing.TB, url string) T {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var v T
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Under sixteen clients the numbers of the engine's view are those of the API.
func TestEngineView(t *testing.T) {
	url := start(t)
	b := browse(t, url+"/#engine", 1200, 1400)
	b.until(`document.querySelector(".page select")?.value === "tiny"`)
	// The clients go on until the page has seen them: how fast they are does not
	// matter.
	var wg sync.WaitGroup
	seen := make(chan struct{})
	for i := range 16 {
		wg.Go(func() {
			for {
				body := fmt.Sprintf(`{"messages":[{"role":"user","content":"Tell me story number %d about a cat."}],"max_tokens":100,"ignore_eos":true}`, i)
				r, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				r.Body.Close()
				if r.StatusCode != http.StatusOK {
					t.Errorf("status %d", r.StatusCode)
				}
				select {
				case <-seen:
					return
				default:
				}
			}
		})
	}
	b.until(`Number(document.querySelector("[data-number='running'] dd")?.innerText) > 4 && document.querySelector("svg .dot.decode")`)
	b.shoot("engine")
	close(seen)
	wg.Wait()
	b.until(`document.querySelector("[data-number='running'] dd").innerText === "0"`)
	type status struct {
		Models []struct {
			Steps        int
			PromptTokens int `json:"prompt_tokens"`
			Generated    int `json:"generated_tokens"`
		}
	}
	st := fetch[status](t, url+"/ridge/status").Models[0]
	plain := func(k string) string {
		return strings.ReplaceAll(b.text("[data-number='"+k+"'] dd"), ",", "")
	}
	for k, want := range map[string]int{"steps": st.Steps, "prompt tokens": st.PromptTokens, "generated tokens": st.Generated} {
		if got := plain(k); got != fmt.Sprint(want) {
			t.Errorf("%s: %s, the API says %d", k, got, want)
		}
	}
	if st.Generated < 1600 || st.Generated%100 != 0 {
		t.Errorf("%d tokens of 16 clients and more with 100 each", st.Generated)
	}
	// The batch has painted: sequences are rows, in the colours of their work.
	if n := value[int](b, `(() => { const c = document.querySelector("canvas"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, s = new Set(); for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i+1] << 8 | d[i+2]); return s.size })()`); n < 4 {
		t.Errorf("the picture of the batch has %d colours", n)
	}
	// The map of pages and the roofline are those of the API, too.
	type kv struct {
		Pages      int
		PageTokens int `json:"page_tokens"`
		State      string
	}
	m := fetch[kv](t, url+"/ridge/kv?model=tiny")
	b.until(fmt.Sprintf(`document.querySelectorAll(".card .tip")[1].innerText.includes("%s pages of %d tokens") && document.querySelectorAll(".card .tip")[1].innerText.includes("%s cached")`, grouped(m.Pages), m.PageTokens, grouped(strings.Count(m.State, "c"))))
	b.clean(url)
}

// grouped writes a number as the page does.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Ten thousand pages are painted thirty times a second and more, and each of them tells
// what it is.
func TestManyPages(t *testing.T) {
	const pages = 10_000
	h := open(t).Handler()
	kinds := "fucsp"
	var state strings.Builder
	fill, owner, owners, age := make([]int, pages), make([]int, pages), make([]int, pages), make([]int, pages)
	for i := range pages {
		state.WriteByte(kinds[i*7%len(kinds)])
		fill[i], owner[i], owners[i], age[i] = 16-i%3, -1, i%5, 600*i
		switch state.String()[i] {
		case 'f':
			fill[i], owners[i] = 0, 0
		case 'u', 's':
			owner[i] = i % 200
		}
	}
	var seqs []map[string]any
	for i := range 200 {
		seqs = append(seqs, map[string]any{"id": fmt.Sprintf("r%d", i), "choice": 0, "tenant": "anna", "tokens": 800, "pages": 50})
	}
	big, err := json.Marshal(map[string]any{"page_tokens": 16, "page_bytes": 4096, "pages": pages, "state": state.String(), "owner": owner, "owners": owners, "tokens": fill, "age": age, "swapped": 3, "sequences": seqs, "tree": []any{}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ridge/kv" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(big)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	b := browse(t, srv.URL+"/#engine", 1200, 900)
	b.until(`document.querySelectorAll(".card .tip")[1]?.innerText.includes("10,000 pages of 16 tokens: 2,000 free, 2,000 used, 2,000 shared, 2,000 cached, 2,000 pinned; 3 sequences are swapped out.")`)
	// Each width paints the map anew. What it takes is taken at the canvas: the
	// rest of a frame is the browser's, which has no graphics processor here.
	value[any](b, `(() => { const p = CanvasRenderingContext2D.prototype, create = p.createImageData, put = p.putImageData; window.took = []; let at;
		p.createImageData = function (...a) { at = performance.now(); return create.apply(this, a) };
		p.putImageData = function (...a) { const r = put.apply(this, a); window.took.push(performance.now() - at); return r } })()`)
	frame := value[float64](b, `(async () => { const c = document.querySelectorAll("canvas")[1], n = 30, t = performance.now(); for (let i = 0; i < n; i++) { c.parentElement.style.width = 900 + i + "px"; await new Promise(requestAnimationFrame) } return (performance.now() - t) / n })()`)
	b.until(`window.took.length > 0`)
	ms := value[float64](b, `window.took.toSorted((a, b) => a - b)[window.took.length >> 1]`)
	if shown := value[int](b, `document.querySelectorAll("canvas")[1].clientWidth`); shown > 930 {
		t.Errorf("the map is %d pixels wide: it was not painted anew", shown)
	}
	t.Logf("a map of 10,000 pages is painted in %.1f ms (median); %.1f ms from frame to frame while the page changes its width", ms, frame)
	// The arrow keys go from page to page, the pointer to any.
	const tip = `document.querySelectorAll(".card .tip")[1].innerText`
	b.do(chromedp.Focus(`canvas[aria-label^="Pages"]`))
	for _, want := range []string{"Page 1: cached, 15 of 16 tokens, last used 10 min ago.", "Page 2: pinned, 14 of 16 tokens, 2 owners, last used 20 min ago.", "Page 3: used, 16 of 16 tokens, of r3 (anna), 3 owners, last used 30 min ago."} {
		b.do(input.DispatchKeyEvent(input.KeyDown).WithKey("ArrowRight"))
		if got := value[string](b, tip); got != want {
			t.Errorf("the page that the keys are at: %q, want %q", got, want)
		}
	}
	const side = 5 // pixels of a square
	value[any](b, `document.querySelectorAll("canvas")[1].scrollIntoView({block: "center"})`)
	at := value[[2]float64](b, `(() => { const r = document.querySelectorAll("canvas")[1].getBoundingClientRect(); return [r.x, r.y] })()`)
	for i, want := range map[int]string{4: "Page 4: shared, 15 of 16 tokens, of r4 (anna), 4 owners, last used 40 min ago.", 5: "Page 5: free, 0 of 16 tokens."} {
		b.do(input.DispatchMouseEvent(input.MouseMoved, at[0]+(float64(i)+0.5)*side, at[1]+2))
		b.until(fmt.Sprintf(`%s === %q`, tip, want))
	}
	b.clean(srv.URL)
}

// What nobody sees is not asked for: a map below the edge of the screen, and anything
// while the tab is hidden. When it is seen again it goes on.
func TestNobodyLooks(t *testing.T) {
	url := start(t)
	b := browse(t, url+"/#engine", 1200, 1400)
	b.until(`document.querySelector("[data-number='running'] dd")?.innerText === "0" && document.querySelectorAll(".card .tip")[1].innerText.includes("pages of")`)
	hide := func(hidden bool) {
		value[any](b, fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %v, configurable: true}), document.dispatchEvent(new Event("visibilitychange"))`, hidden))
	}
	// What the page asks for is counted where it asks.
	value[any](b, `(() => { const ask = window.fetch; window.asked = []; window.fetch = (...a) => { window.asked.push(String(a[0])); return ask(...a) } })()`)
	asked := func(path string) int {
		return value[int](b, fmt.Sprintf(`window.asked.filter((p) => p.startsWith(%q)).length`, path))
	}
	complete := func() {
		r, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"A cat","max_tokens":20,"ignore_eos":true}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
	}
	generated := `document.querySelector("[data-number='generated tokens'] dd").innerText`
	hide(true)
	complete()
	time.Sleep(1500 * time.Millisecond)
	if got := value[string](b, generated); got != "0" || asked("/ridge/") != 0 {
		t.Errorf("hidden, the page shows %s tokens and has asked for %q", got, value[[]string](b, `window.asked`))
	}
	hide(false)
	b.until(generated + ` === "20"`)
	b.until(`window.asked.some((p) => p.startsWith("/ridge/kv"))`)
	if asked("/ridge/events") != 1 {
		t.Errorf("seen again: %d streams", asked("/ridge/events"))
	}
	b.do(chromedp.EmulateViewport(1200, 250))
	value[any](b, `new Promise((r) => setTimeout(r, 300)).then(() => { window.asked = [] })`)
	complete()
	b.until(generated + ` === "40"`)
	time.Sleep(1500 * time.Millisecond)
	if n := asked("/ridge/kv") + asked("/ridge/roofline"); n != 0 {
		t.Errorf("out of sight, the map and the roofline were asked for %d times", n)
	}
	b.clean(url)
}
