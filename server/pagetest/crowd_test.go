package pagetest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"ridge/engine"
	"ridge/internal/builtin"
	"ridge/model"
	"ridge/sched"
	"ridge/weights/tensor"
)

// slow is a client that reads nothing until it is released.
type slow struct {
	*httptest.ResponseRecorder
	release chan struct{}
}

func (w slow) Write(b []byte) (int, error) {
	<-w.release
	return len(b), nil
}

func (w slow) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// Where more wants to be computed than there is memory for, the engine's view shows who
// waits, who was preempted and lies swapped out, and whose client does not read.
func TestCrowdedEngine(t *testing.T) {
	cfg := sched.Config{Policy: sched.Priority(0), Split: true, MaxTokens: 32, MaxSeqs: 4, Preemptive: true, Recovery: sched.Swap}
	o := model.Options{KV: tensor.F16, MaxContext: 256, PageTokens: 16, KVBytes: 1 << 20}
	first, err := model.Open(builtin.Prefix+"tiny", o)
	if err != nil {
		t.Fatal(err)
	}
	o.KVBytes = 13 * first.Pool().Stats().PageBytes
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	space := engine.NewSwapSpace(1<<30, 0, "")
	h := openWith(t, builtin.Prefix+"tiny", o, engine.Options{Sched: &cfg, Swap: space.Store(), NoPrefixCache: true, Events: 16}).Handler()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	b := browse(t, srv.URL+"/#engine", 1200, 1400)
	b.until(`document.querySelector(".page select")?.value === "tiny"`)

	type requests struct {
		Requests []struct{ State, Route, Client string }
	}
	var wg sync.WaitGroup
	seen := make(chan struct{})
	reader := slow{httptest.NewRecorder(), seen}
	wg.Go(func() {
		body := `{"prompt":"A cat","max_tokens":100,"ignore_eos":true,"stream":true}`
		r := httptest.NewRequest(http.MethodPost, srv.URL+"/v1/completions", strings.NewReader(body))
		r.Header.Set("User-Agent", "snail/1")
		h.ServeHTTP(reader, r)
		if reader.Code != http.StatusOK {
			t.Errorf("status %d", reader.Code)
		}
	})
	b.until(`document.querySelector("[data-number=paused] dd").innerText === "1"`)
	// Who it is can be seen before it is over.
	if r := fetch[requests](t, srv.URL+"/ridge/requests").Requests; len(r) != 1 || r[0].State != "paused" || r[0].Route != "/v1/completions" || r[0].Client != "snail/1" {
		t.Errorf("requests: %+v", r)
	}
	for i := range 6 {
		wg.Go(func() {
			for n := 0; ; n++ {
				body := fmt.Sprintf(`{"prompt":"Story %d of a cat","max_tokens":80,"ignore_eos":true,"priority":%d}`, i, (i+n)%6)
				r, err := http.Post(srv.URL+"/v1/completions", "application/json", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
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
	release := sync.OnceFunc(func() { close(seen); wg.Wait() })
	t.Cleanup(release)
	// has says whether the batch has pixels of a colour of the style sheet, at its right
	// edge, where the rows' states are, or before that.
	value[any](b, `window.has = (name, edge) => {
		const c = document.querySelector("canvas"), one = Object.assign(document.createElement("canvas"), {width: 1, height: 1}).getContext("2d");
		one.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
		one.fillRect(0, 0, 1, 1);
		const [r, g, b] = one.getImageData(0, 0, 1, 1).data;
		const d = edge ? c.getContext("2d").getImageData(c.width - 2, 70, 1, c.height - 70).data : c.getContext("2d").getImageData(150, 70, c.width - 170, c.height - 70).data;
		for (let i = 0; i < d.length; i += 4) if (d[i] === r && d[i + 1] === g && d[i + 2] === b) return true;
		return false;
	}`)
	for _, want := range []string{
		`Number(document.querySelector("[data-number=waiting] dd").innerText) > 0`,
		`Number(document.querySelector("[data-number=preemptions] dd").innerText.replaceAll(",", "")) > 0`,
		`has("waiting", true)`, `has("paused", true)`, `has("bad", true)`, `has("bad", false)`,
		`/; [1-9]\d* wait, 1 are paused\.$/.test(document.querySelector(".card .tip").innerText)`,
		`/; [1-9]\d* sequences are swapped out\.$/.test(document.querySelectorAll(".card .tip")[1].innerText)`,
	} {
		b.until(want)
	}
	b.shoot("crowded")
	release()
	b.until(`document.querySelector("[data-number='running'] dd").innerText === "0" && document.querySelector("[data-number='paused'] dd").innerText === "0"`)
	b.clean(srv.URL)
}
