package ollama

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"ridge/engine"
	"ridge/hub"
	"ridge/internal/testdata"
	"ridge/model"
	"ridge/server/fault"
	"ridge/server/run"
	"ridge/weights/tensor"
)

// Another's model is neither replaced nor deleted.
func TestCreateByOwner(t *testing.T) {
	mm, err := model.Open(testdata.Tiny, model.Options{Workers: 1, PageTokens: 16, KVBytes: 1 << 20, KV: tensor.F16})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(mm, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := run.NewModel(run.ModelConfig{Name: "fake", Path: testdata.Tiny, Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var s Store
	if err := s.open(t.TempDir(), nil); err != nil {
		t.Fatal(err)
	}
	v := &variant{Name: "x", From: "fake", Owner: "alice"}
	if err := s.put(v); err != nil {
		t.Fatal(err)
	}
	if s.put(&variant{Name: "X:latest", From: "fake", Owner: "bob"}) == nil {
		t.Error("bob replaced alice's model")
	}
	if found, err := s.drop("x", "bob"); found || err != nil {
		t.Errorf("bob deleted it: %v", err)
	}
	a, err := s.dress(v, m)
	if b, _ := s.dress(v, m); err != nil || a != b {
		t.Errorf("derived twice, %v", err)
	}
	if found, err := s.drop("x", "alice"); !found || err != nil {
		t.Errorf("alice cannot delete it: %v", err)
	}
}

// Who pulls is told whether the source or the server's disk is at fault.
func TestPullError(t *testing.T) {
	for want, err := range map[int]error{
		http.StatusInsufficientStorage: fmt.Errorf("hub: x: disk of /m: %w: needed 2 GB more", hub.ErrNoSpace),
		http.StatusNotFound:            fmt.Errorf("hub: x: %w", hub.ErrNotFound),
		http.StatusBadGateway:          errors.New("hub: x: HTTP 500"),
		http.StatusTooManyRequests:     fault.TooMany(0, "busy"),
	} {
		if e := fault.As(pullError(err)); e.Status != want || !strings.Contains(e.Message, fault.WithoutPaths(err.Error())) || strings.Contains(e.Message, "/m:") {
			t.Errorf("%v: got %+v", err, e)
		}
	}
}
