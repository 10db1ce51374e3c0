// Package pagetest tries the page in a real browser: Chromium, without a screen.
package pagetest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"ridge/engine"
	"ridge/internal/builtin"
	"ridge/model"
	"ridge/server"
	"ridge/server/run"
)

// start serves tiny, the model in the program, and returns the server's address.
func start(t testing.TB, change ...func(*server.Options)) string {
	t.Helper()
	srv := httptest.NewServer(open(t, change...).Handler())
	t.Cleanup(srv.Close)
	return srv.URL
}

// open makes a server of tiny.
func open(t testing.TB, change ...func(*server.Options)) *server.Server {
	t.Helper()
	return openModel(t, builtin.Prefix+"tiny", change...)
}

// openModel makes a server of a model's file under the name tiny.
func openModel(t testing.TB, path string, change ...func(*server.Options)) *server.Server {
	t.Helper()
	o := model.DefaultOptions()
	o.KVBytes = 64 << 20
	return openWith(t, path, o, engine.Options{}, change...)
}

// openWith is openModel with settings of the model and of its engine.
func openWith(t testing.TB, path string, o model.Options, eo engine.Options, change ...func(*server.Options)) *server.Server {
	t.Helper()
	m, err := model.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(m, eo)
	if err != nil {
		t.Fatal(err)
	}
	sm, err := run.NewModel(server.ModelConfig{Name: "tiny", Path: path, Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	so := server.Options{Models: []*server.Model{sm}, DataDir: t.TempDir()}
	for _, f := range change {
		f(&so)
	}
	s, err := server.New(so)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// chromium returns the path of the browser. Without one the tests cannot run.
func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no Chromium, and CI=true")
	}
	t.Skip("no Chromium: apt-get install chromium")
	return ""
}

// tab is a page of a browser, and what went wrong in it.
type tab struct {
	context.Context
	t testing.TB

	mu     sync.Mutex
	errors []string // of the console
	said   []byte   // what the browser printed last
	hosts  []string // that it asked for something
}

// browse opens an address in a new browser of a size in pixels.
func browse(t testing.TB, url string, width, height int) *tab {
	t.Helper()
	b := &tab{t: t}
	alloc, cancel := chromedp.NewExecAllocator(t.Context(), append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.CombinedOutput(b),
		// Else the browser ends with the thread that has started it, and the threads of a
		// model's pool end with that.
		chromedp.ModifyCmdFunc(func(*exec.Cmd) {}), chromedp.WindowSize(width, height), chromedp.WSURLReadTimeout(time.Minute))...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	b.Context = ctx
	chromedp.ListenTarget(ctx, b.listen)
	b.do(network.Enable(), log.Enable(), chromedp.EmulateViewport(int64(width), int64(height)), chromedp.Navigate(url))
	return b
}

// Write keeps the end of what the browser prints.
func (b *tab) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, p...)
	b.said = b.said[max(0, len(b.said)-2000):]
	return len(p), nil
}

// listen notes what the browser tells.
func (b *tab) listen(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError {
			b.errors = append(b.errors, fmt.Sprint(e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError {
			b.errors = append(b.errors, e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		b.hosts = append(b.hosts, e.Request.URL)
	}
}

// do runs actions, and fails the test if one fails.
func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.Context, actions...); err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.t.Fatalf("%v; console: %q; the browser: %s", err, b.errors, b.said)
	}
}

func (b *tab) console() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.errors)
}

// clean fails the test if the console has errors, or another host was asked.
func (b *tab) clean(url string) {
	b.t.Helper()
	if e := b.console(); len(e) > 0 {
		b.t.Errorf("console: %q", e)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.hosts {
		if !strings.HasPrefix(h, url) && !strings.HasPrefix(h, "blob:") && !strings.HasPrefix(h, "data:") {
			b.t.Errorf("the page asked another host: %s", h)
		}
	}
}

// value evaluates an expression of JavaScript.
func value[T any](b *tab, expression string) T {
	b.t.Helper()
	var v T
	b.do(chromedp.Evaluate(expression, &v, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return v
}

// until waits for an expression to be true.
func (b *tab) until(expression string) {
	b.t.Helper()
	if err := chromedp.Run(b.Context, chromedp.Poll(expression, nil, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(time.Minute))); err != nil {
		b.t.Fatalf("waiting for %s: %v; the page: %.2000s; console: %q", expression, err, value[string](b, "document.body.innerText"), b.console())
	}
}

// send sends a message in the chat.
func (b *tab) send(text string) {
	b.t.Helper()
	b.do(chromedp.SetValue(".composer textarea", text), chromedp.Click(".composer .primary"))
}

// press clicks the button with a label in the last element that a selector finds.
func (b *tab) press(within, label string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`[...[...document.querySelectorAll(%q)].at(-1)?.querySelectorAll("button") ?? []].some((x) => x.textContent === %q && !x.disabled)`, within, label))
	value[any](b, fmt.Sprintf(`[...[...document.querySelectorAll(%q)].at(-1).querySelectorAll("button")].find((x) => x.textContent === %q).click()`, within, label))
}

// ask sends a message in the chat and waits for the whole answer.
func (b *tab) ask(text string) {
	b.t.Helper()
	b.until(`document.querySelector(".bar select")?.value`)
	n := value[int](b, `document.querySelectorAll(".message.assistant").length`)
	b.send(text)
	b.until(fmt.Sprintf(`document.querySelectorAll(".message.assistant[aria-busy=false]").length > %d`, n))
}
