// Package clienttest checks that the official clients work with the server,
// unchanged.
package clienttest

import (
	"net/http/httptest"
	"testing"

	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/model"
	"ridge/server"
	"ridge/server/run"
)

// start serves a small real model and returns the server's address.
func start(t *testing.T, change ...func(*server.ModelConfig)) string {
	t.Helper()
	return open(t, "smollm2", testdata.Model(t, "smollm2"), change...)
}

// open serves the model at path and returns the server's address.
func open(t *testing.T, name, path string, change ...func(*server.ModelConfig)) string {
	t.Helper()
	o := model.DefaultOptions()
	o.MaxContext, o.KVBytes = 2048, 64<<20
	m, err := model.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := server.ModelConfig{Name: name, Path: path, Engine: e}
	for _, f := range change {
		f(&c)
	}
	sm, err := run.NewModel(c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{Models: []*server.Model{sm}, DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		srv.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv.URL
}

var citySchema = map[string]any{
	"type":       "object",
	"properties": map[string]any{"city": map[string]any{"type": "string", "enum": []string{"Paris", "Rome"}}},
	"required":   []string{"city"},
}
