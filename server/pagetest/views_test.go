package pagetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// shoot keeps a picture of the page for the docs, if PAGE_SHOTS names a folder.
func (b *tab) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("PAGE_SHOTS")
	if dir == "" {
		return
	}
	var png []byte
	b.do(chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// Two settings beside each other, from one seed: the same ones give the same
// text, others are marked where they differ.
func TestSideBySide(t *testing.T) {
	url := start(t)
	b := browse(t, url+"/#compare", 1200, 800)
	b.until(`[...document.querySelectorAll(".column select")].length === 2 && [...document.querySelectorAll(".column select")].every((s) => s.value)`)
	compare := func() {
		b.do(chromedp.SetValue("form.stack textarea", "Tell me about cats."), chromedp.Click("form.stack .primary"))
		b.until(`document.querySelector("form.stack .primary").textContent === "Compare" && document.querySelectorAll(".column .facts b").length === 6`)
	}
	compare()
	texts := `[...document.querySelectorAll(".column .tokens")].map((e) => e.innerText)`
	if got := value[[]string](b, texts); got[0] == "" || got[0] != got[1] {
		t.Errorf("the same settings give %q", got)
	}
	value[any](b, `(() => { const e = document.querySelectorAll(".column")[1].querySelector("#set-temperature"); e.value = "0"; e.dispatchEvent(new Event("input")) })()`)
	compare()
	if got := value[[]string](b, texts); got[0] == got[1] {
		t.Errorf("other settings give %q, too", got[0])
	}
	b.shoot("compare")
	b.clean(url)
}

// The view of tokens gives what /tokenize gives.
func TestTokenizer(t *testing.T) {
	url := start(t)
	b := browse(t, url+"/#tokens", 1200, 800)
	b.until(`document.querySelectorAll(".ids .token").length > 3`)
	text := "Grüße, 42 <b>\n\tend"
	value[any](b, fmt.Sprintf(`(() => { const e = document.querySelector(".page textarea"); e.value = %q; e.dispatchEvent(new Event("input")) })()`, text))
	b.until(`document.querySelector(".page [role=status]").innerText.includes("20 bytes")`)
	var want struct{ Tokens []int }
	r, err := http.Post(url+"/tokenize", "application/json", strings.NewReader(fmt.Sprintf(`{"content":%q}`, text)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(&want); err != nil {
		t.Fatal(err)
	}
	if got := value[[]int](b, `[...document.querySelectorAll(".ids small")].map((e) => Number(e.textContent))`); fmt.Sprint(got) != fmt.Sprint(want.Tokens) {
		t.Errorf("tokens %v, the API gives %v", got, want.Tokens)
	}
	b.clean(url)
}
