package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ridge/engine"
	"ridge/kvcache"
	"ridge/model"
	"ridge/server/run"
	"ridge/server/watch"
)

// The map of pages has the figures of the status, and the prefix tree what requests
// published; who has a key sees its own.
func TestInsidePages(t *testing.T) {
	srv := tiny(t, func(o *Options) { o.LogPrompts = true }, keyed(t, "k-alice name=alice\nk-bob name=bob\nk-root name=root admin=1\n"))
	many(t, srv.URL, 16, 5, func(i int) []string {
		return []string{"Authorization", "Bearer k-" + []string{"alice", "bob"}[i%2], "X-Request-Id", fmt.Sprintf("id-%d", i)}
	})
	k := fetch[Status](t, srv.URL+"/ridge/status", "k-root").Models[0].Memory
	p := fetch[watch.Pages](t, srv.URL+"/ridge/kv?model=tiny", "k-root")
	count := func(letters string) (pages, tokens int) {
		for i, c := range p.State {
			if strings.ContainsRune(letters, c) {
				pages++
				tokens += int(p.Tokens[i])
			}
		}
		return pages, tokens
	}
	free, none := count("f")
	cached, _ := count("cp")
	if p.Pages != k.Pages || len(p.State) != k.Pages || len(p.Owner) != k.Pages || free*16 != k.Free || none != 0 || cached*16 != k.Cached || cached == 0 || p.PageTokens != 16 || len(p.Windows) == 0 || len(p.Sequences) != 0 {
		t.Errorf("%d free and %d cached of %d; the status has %+v", free, cached, p.Pages, k)
	}
	total := 0
	for _, n := range p.Tree {
		total += n.Tokens
		if n.Text == "" || n.Start == 0 && n.Parent != -1 {
			t.Errorf("%+v", n)
		}
	}
	part := 0
	for _, who := range []string{"k-alice", "k-bob"} {
		for _, n := range fetch[watch.Pages](t, srv.URL+"/ridge/kv", who).Tree {
			part += n.Tokens
		}
	}
	if total == 0 || part != total {
		t.Errorf("the tree has %d tokens, those of the tenants %d", total, part)
	}
	past := fetch[watch.Requests](t, srv.URL+"/ridge/requests", "k-root").Requests
	own := fetch[watch.Requests](t, srv.URL+"/ridge/requests?last=300", "k-bob").Requests
	if len(past) != 16 || len(own) != 16 {
		t.Fatalf("%d and %d requests", len(past), len(own))
	}
	for i, x := range past {
		if x.State != "done" || x.Status != 200 || x.Generated != 5 || x.Finish != "length" || x.Route != "/v1/completions" || !strings.HasPrefix(x.ID, "id-") || x.Total < x.First || x.Answer == "" || !strings.HasPrefix(x.Text, "the cat") || x.Client == "" {
			t.Errorf("%+v", x)
		}
		if y := own[i]; (y.Tenant == "bob") != (x.Tenant == "bob") || y.Tenant == "" && (y.ID == x.ID || y.Text+y.Answer+y.Client != "") || y.Generated != 5 {
			t.Errorf("bob is told %+v", y)
		}
	}
	keys := fetch[watch.Keys](t, srv.URL+"/ridge/keys", "k-root").Keys
	if len(keys) != 3 || keys[0].Name != "alice" || keys[0].Requests != 8 || keys[0].Generated != 40 || keys[0].Prompt == 0 || keys[0].Today != keys[0].Prompt+40 || !keys[2].Admin || keys[0].Admin {
		t.Errorf("%+v", keys)
	}
	if mine := fetch[watch.Keys](t, srv.URL+"/ridge/keys", "k-bob").Keys; len(mine) != 1 || mine[0].Name != "bob" {
		t.Errorf("bob is told %+v", mine)
	}
	if code, _, _ := send(t, http.MethodPost, srv.URL+"/ridge/unload", `{"model":"tiny"}`, "Authorization", "Bearer k-bob"); code != http.StatusForbidden {
		t.Errorf("status %d for who does not administer the server", code)
	}
}

// The dots are of what ran, and the sentence says something of it.
func TestInsideRoofline(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // nothing was measured here before
	srv := tiny(t)
	idle := fetch[watch.Roofline](t, srv.URL+"/ridge/roofline", "")
	if idle.Dots.Decode != nil || idle.Dots.Prefill != nil || idle.Limit == "" || idle.Machine.Source != "estimated" || idle.Machine.Read <= 0 {
		t.Errorf("%+v", idle)
	}
	many(t, srv.URL, 2, 40, func(int) []string { return nil })
	r := fetch[watch.Roofline](t, srv.URL+"/ridge/roofline", "")
	for name, d := range map[string]*watch.Dot{"prefill": r.Dots.Prefill, "decode": r.Dots.Decode, "attention": r.Dots.Attention} {
		if d == nil || d.OpsPerByte <= 0 || d.Seconds <= 0 || d.Percent <= 0 || d.Read <= 0 || d.Estimated != (name == "attention") {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if !strings.HasSuffix(r.Limit, ".") || r.Limit == idle.Limit {
		t.Error(r.Limit)
	}
	o := post(t, srv.URL+"/v1/completions", `{"prompt":"the cat","max_tokens":8,"ignore_eos":true}`, 200)
	if p, ok := o.at("timings", "read_limit_percent").(float64); ok && p <= 0 {
		t.Errorf("%v", o["timings"])
	}
}

// unread is a client that reads nothing until it is released.
type unread struct {
	*httptest.ResponseRecorder
	release chan struct{}
}

func (w unread) Write(b []byte) (int, error) {
	<-w.release
	return len(b), nil
}

// A request that is under way has its route and, for who may see it, its client.
func TestInsideRunning(t *testing.T) {
	s, srv := serveAs(t, openTiny(t, tinyPath, 1), run.ModelConfig{Path: tinyPath}, engine.Options{Events: 4}, keyed(t, "k-alice name=alice\nk-bob name=bob\nk-root name=root admin=1\n"))
	w := unread{httptest.NewRecorder(), make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r := httptest.NewRequest("POST", srv.URL+"/v1/completions", strings.NewReader(`{"prompt":"the cat","max_tokens":80,"ignore_eos":true,"stream":true}`))
		r.Header.Set("Authorization", "Bearer k-alice")
		r.Header.Set("User-Agent", "snail/1")
		s.Handler().ServeHTTP(w, r)
	}()
	list := func(key string) []watch.Request {
		return fetch[watch.Requests](t, srv.URL+"/ridge/requests", key).Requests
	}
	until(t, "the request waits for its reader", func() bool { l := list("k-root"); return len(l) == 1 && l[0].State == "paused" })
	for key, client := range map[string]string{"k-alice": "snail/1", "k-root": "snail/1", "k-bob": ""} {
		if x := list(key)[0]; x.Route != "/v1/completions" || x.Client != client || (x.Tenant == "") != (client == "") {
			t.Errorf("%s is told %+v", key, x)
		}
	}
	close(w.release)
	<-done
	until(t, "the request is over", func() bool { return list("k-root")[0].State == "done" })
	if l := list("k-root"); len(l) != 1 || l[0].Client != "snail/1" {
		t.Errorf("afterwards: %+v", l)
	}
}

// Models are listed with what they need, and are loaded and unloaded on demand.
func TestInsideModels(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.gguf")
	if err := os.WriteFile(broken, []byte("GGUF?"), 0o600); err != nil {
		t.Fatal(err)
	}
	configs := []run.ModelConfig{{Name: "small", Path: tinyPath, Aliases: []string{"little"}}, {Name: "broken", Path: broken}}
	reg, err := engine.NewRegistry(func(_ context.Context, name string, _ *kvcache.Budget) (*model.Model, engine.Options, error) {
		return openTiny(t, configs[0].Path, 1), engine.Options{}, nil
	}, engine.RegistryOptions{KeepAlive: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) (run.ModelConfig, bool) {
		for _, c := range configs {
			if strings.EqualFold(c.Name, name) || len(c.Aliases) > 0 && c.Aliases[0] == name {
				return c, true
			}
		}
		return run.ModelConfig{}, false
	}
	_, srv := listen(t, Options{Source: &run.Source{Registry: reg, Find: find, List: func() []run.ModelConfig { return configs }}})
	list := func() (small, broken watch.Model) {
		m := fetch[watch.Models](t, srv.URL+"/ridge/models", "").Models
		if len(m) != 2 {
			t.Fatalf("%+v", m)
		}
		return m[0], m[1]
	}
	small, bad := list()
	if small.Loaded || !small.Fits || small.Needs <= 0 || small.Free <= small.Needs || small.Arch != "llama" || small.Source != "llama.gguf" || small.ReadsOnly || small.Reason != "" {
		t.Errorf("%+v", small)
	}
	if bad.Fits || bad.Reason == "" || strings.Contains(bad.Reason, dir) {
		t.Errorf("%+v", bad)
	}
	post(t, srv.URL+"/ridge/load", `{"model":"little"}`, 200)
	if small, _ = list(); !small.Loaded || small.Fixed {
		t.Errorf("%+v", small)
	}
	equal(t, "name", post(t, srv.URL+"/ridge/unload", `{"model":"little"}`, 200)["model"], "small")
	if small, _ = list(); small.Loaded {
		t.Errorf("%+v", small)
	}
	post(t, srv.URL+"/ridge/unload", `{"model":"small"}`, 200) // it is gone already
	post(t, srv.URL+"/ridge/unload", `{"model":"none"}`, 404)
	post(t, srv.URL+"/ridge/load", `{}`, 400)
	post(t, tiny(t).URL+"/ridge/unload", `{"model":"tiny"}`, 400)
}
