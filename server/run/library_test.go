package run

import (
	"context"
	"sync"
	"testing"

	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/kvcache"
	"ridge/model"
	"ridge/weights/tensor"
)

// A model that is in use stays the same for all who ask for it, however often
// others list what is loaded at that very time.
func TestLoadedForgetsNobody(t *testing.T) {
	path := testdata.Tiny
	load := func(_ context.Context, _ string, n *kvcache.Budget) (*model.Model, engine.Options, error) {
		m, err := model.Open(path, model.Options{KV: tensor.F16, Workers: 1, PageTokens: 16, KVBudget: n})
		return m, engine.Options{}, err
	}
	reg, err := engine.NewRegistry(load, engine.RegistryOptions{PageBytes: 1 << 20, KeepAlive: 1})
	if err != nil {
		t.Fatal(err)
	}
	l := NewLibrary(nil, &Source{Registry: reg, Find: func(string) (ModelConfig, bool) { return ModelConfig{Name: "m", Path: path}, true }}, nil)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					l.Loaded()
				}
			}
		})
	}
	for range 30 {
		a, err := l.Acquire(t.Context(), "m")
		if err != nil {
			t.Fatal(err)
		}
		s, err := a.backend.Submit(t.Context(), engine.Request{Tokens: []int32{1, 2, 3}, MaxTokens: 8})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			b, err := l.Acquire(t.Context(), "m")
			if err != nil {
				t.Fatal(err)
			}
			if a.Model != b.Model {
				t.Error("another model of the same engine")
			}
			if _, err := NewModel(ModelConfig{Name: "x", Path: path, Engine: b.Engine()}); err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		s.Close()
		a.Release()
	}
	close(stop)
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
