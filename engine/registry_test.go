package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ridge/kvcache"
	"ridge/model"
	"ridge/sample"
	"ridge/weights/tensor"
)

// loader opens tiny models and counts.
type loader struct {
	loads atomic.Int64
	gate  chan struct{} // nil, or a load waits for a value
}

func (l *loader) load(ctx context.Context, name string, pages *kvcache.Budget) (*model.Model, Options, error) {
	l.loads.Add(1)
	if l.gate != nil {
		select {
		case <-l.gate:
		case <-ctx.Done():
			return nil, Options{}, ctx.Err()
		}
	}
	if name == "greedy" {
		name, pages = "llama", nil
	}
	m, err := model.Open(filepath.Join(tinyModels, name), model.Options{KV: tensor.F16, Workers: 1, PageTokens: 16, KVBudget: pages})
	return m, Options{}, err
}

func newRegistry(t *testing.T, load LoadFunc, o RegistryOptions) *Registry {
	t.Helper()
	before := runtime.NumGoroutine()
	r, err := NewRegistry(load, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
		goroutinesEnd(t, before)
	})
	return r
}

func acquire(t *testing.T, r *Registry, name string) *Lease {
	t.Helper()
	l, err := r.Acquire(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func names(r *Registry) []string {
	var out []string
	for _, m := range r.Loaded() {
		out = append(out, m.Name)
	}
	return out
}

func TestRegistryLoadsAndUnloads(t *testing.T) {
	l := &loader{}
	r := newRegistry(t, l.load, RegistryOptions{PageBytes: 1 << 20, MaxModels: 2, KeepAlive: 20 * time.Millisecond})
	a := acquire(t, r, "llama")
	if got, _ := ask(t, a.Engine, long(5)); len(got[0].tokens) != 5 {
		t.Errorf("%d tokens", len(got[0].tokens))
	}
	b := acquire(t, r, "llama")
	if b.Engine != a.Engine || l.loads.Load() != 1 {
		t.Errorf("%d loads for two leases", l.loads.Load())
	}
	if m := r.Loaded(); len(m) != 1 || m[0].Leases != 2 || !m[0].Expires.IsZero() {
		t.Errorf("loaded: %+v", m)
	}
	a.Release()
	a.Release()
	time.Sleep(50 * time.Millisecond)
	if !slices.Equal(names(r), []string{"llama"}) {
		t.Error("it was unloaded while in use")
	}
	b.KeepAlive(time.Hour) // it is looked at before it goes, however slow that is
	b.Release()
	if m := r.Loaded(); len(m) != 1 || m[0].Expires.IsZero() {
		t.Errorf("loaded: %+v", m)
	}
	if err := r.Unload(t.Context(), "llama"); err != nil {
		t.Error(err)
	}
	acquire(t, r, "llama").Release()
	until(t, "it is unloaded", func() bool { return len(r.Loaded()) == 0 })

	c := acquire(t, r, "llama")
	c.KeepAlive(0)
	c.Release()
	until(t, "it is unloaded at once", func() bool { return len(r.Loaded()) == 0 })

	d := acquire(t, r, "llama")
	d.KeepAlive(-1)
	d.Release()
	time.Sleep(50 * time.Millisecond)
	if len(r.Loaded()) != 1 {
		t.Error("it was unloaded though it should stay")
	}
	if err := r.Unload(t.Context(), "llama"); err != nil || len(r.Loaded()) != 0 {
		t.Errorf("unload: %v, loaded: %v", err, names(r))
	}
	if err := r.Unload(t.Context(), "no such"); err != nil {
		t.Errorf("unload of what is not there: %v", err)
	}
}

func TestRegistryMakesRoom(t *testing.T) {
	l := &loader{}
	r := newRegistry(t, l.load, RegistryOptions{PageBytes: 1 << 20, MaxModels: 2})
	acquire(t, r, "llama").Release()
	acquire(t, r, "gemma3").Release()
	acquire(t, r, "llama").Release()
	acquire(t, r, "qwen2").Release() // gemma3's last use is longest ago
	if got := names(r); !slices.Equal(got, []string{"llama", "qwen2"}) {
		t.Errorf("loaded: %v", got)
	}
	if st := r.Pages().Stats(); st.Used > 1<<20 || st.Pools != 2 || st.Share != 1<<19 {
		t.Errorf("pages: %+v", st)
	}

	// All are in use: the third waits, and gets the place of the one that was
	// loaded first when that is released.
	a, b := acquire(t, r, "llama"), acquire(t, r, "qwen2")
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.Acquire(short, "gemma3"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("acquire: %v", err)
	}
	got := make(chan *Lease)
	go func() {
		l, err := r.Acquire(context.Background(), "gemma3")
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	time.Sleep(10 * time.Millisecond)
	a.Release()
	c := <-got
	if got := names(r); !slices.Equal(got, []string{"gemma3", "qwen2"}) {
		t.Errorf("loaded: %v", got)
	}
	b.Release()
	c.Release()
}

func TestRegistryFailures(t *testing.T) {
	l := &loader{}
	r := newRegistry(t, l.load, RegistryOptions{PageBytes: 1 << 20})
	if _, err := r.Acquire(t.Context(), "no such model"); err == nil {
		t.Error("a model that does not exist was loaded")
	}
	if _, err := r.Acquire(t.Context(), "greedy"); err == nil {
		t.Error("a model with memory of its own was loaded")
	}
	acquire(t, r, "llama").Release()

	l.gate = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := r.Acquire(ctx, "gemma3")
		failed <- err
	}()
	until(t, "it is being loaded", func() bool { return l.loads.Load() == 4 })
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("acquire: %v", err)
	}
	l.gate <- struct{}{}
	until(t, "it is loaded for those who come later", func() bool { return slices.Equal(names(r), []string{"gemma3"}) })
	go func() {
		_, err := r.Acquire(context.Background(), "llama")
		failed <- err
	}()
	until(t, "it is being loaded", func() bool { return l.loads.Load() == 5 })
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("a lease of a closed registry")
	}
	if _, err := r.Acquire(t.Context(), "llama"); !errors.Is(err, ErrClosed) {
		t.Errorf("acquire: %v", err)
	}
}

// Requests to more models than there is room for all get their answers.
func TestRegistryCrowd(t *testing.T) {
	l := &loader{}
	r := newRegistry(t, l.load, RegistryOptions{PageBytes: 1 << 20, MaxModels: 2, KeepAlive: time.Millisecond})
	models := []string{"llama", "gemma3", "qwen2", "phi3-swa"}
	want := map[string]answer{}
	for _, name := range models {
		want[name] = alone(t, openTiny(t, name, 20), long(10))
	}
	var wg sync.WaitGroup
	for i := range 40 {
		name := models[rand.IntN(len(models))]
		wg.Go(func() {
			lease, err := r.Acquire(context.Background(), name)
			if err != nil {
				t.Error(err)
				return
			}
			defer lease.Release()
			if i%5 == 0 {
				lease.KeepAlive(0)
			}
			w := want[name]
			if got, _ := ask(t, lease.Engine, long(10)); !same(&got[0], &w) {
				t.Errorf("%s: got %v, want %v", name, got[0].tokens, w.tokens)
			}
		})
	}
	wg.Wait()
	t.Log(fmt.Sprint(l.loads.Load(), " loads"))
}

// A model whose file is written over is loaded again, from what the file holds
// now, and stays as long as it was meant to. Requests under way fail with the
// reason.
func TestRegistryLoadsChangedFilesAgain(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(tinyModels, "llama", "llama.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	write := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(b)
	r := newRegistry(t, func(_ context.Context, _ string, n *kvcache.Budget) (*model.Model, Options, error) {
		m, err := model.Open(path, model.Options{KV: tensor.F16, Workers: 2, PageTokens: 16, KVBudget: n})
		return m, Options{}, err
	}, RegistryOptions{PageBytes: 1 << 20})
	lease, err := r.Acquire(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	lease.KeepAlive(-1)
	want, _ := ask(t, lease.Engine, long(20))
	s := submit(t, lease.Engine, Request{Tokens: []int32{1, 2}, MaxTokens: 100, Sampling: sample.Params{Temperature: 1}})
	if _, ok := s.Next(t.Context()); !ok {
		t.Fatal("no token")
	}
	write(b[:len(b)/3])
	end := Event{}
	for {
		ev, ok := s.Next(t.Context())
		if !ok {
			break
		}
		end = ev
	}
	if end.Finish != FinishLength && !errors.Is(end.Err, model.ErrChanged) { // it may have been as fast
		t.Errorf("ended with %+v", end)
	}
	got, _ := ask(t, lease.Engine, long(20))
	if !errors.Is(got[0].last.Err, model.ErrChanged) || !errors.Is(lease.Engine.Healthy(), model.ErrChanged) {
		t.Errorf("after the change: %+v, health %v", got[0].last, lease.Engine.Healthy())
	}
	if err := lease.Engine.Check(t.Context()); err != nil {
		t.Error(err)
	}
	lease.Release()
	if _, err := r.Acquire(t.Context(), "m"); err == nil {
		t.Fatal("half a file was loaded")
	}
	write(b)
	if lease, err = r.Acquire(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	if got, _ := ask(t, lease.Engine, long(20)); !same(&got[0], &want[0]) {
		t.Errorf("loaded again: got %v, want %v", got[0].tokens, want[0].tokens)
	}
	lease.Release()
	if l := r.Loaded(); len(l) != 1 || !l[0].Expires.IsZero() {
		t.Errorf("loaded: %+v", l)
	}
}
