package ollama

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
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

// A file that is there under another name than its model's is left out, with a
// warning that says so.
func TestMisplacedVariant(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "copy.json"), []byte(`{"name":"x","from":"fake"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	s, err := OpenStore(dir, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || s.find("x") != nil {
		t.Errorf("%v, found %v", err, s.find("x"))
	}
	if !strings.Contains(log.String(), "copy.json") || !strings.Contains(log.String(), "file name") {
		t.Errorf("log: %s", log.String())
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
