package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"ridge/engine"
	"ridge/hub"
	"ridge/kvcache"
	"ridge/model"
	"ridge/server/run"
	"ridge/weights/tensor"
)

// onDemand is a server with two models that are loaded when they are asked for.
func onDemand(t *testing.T, change func(*Options)) *httptest.Server {
	t.Helper()
	const path = "../internal/tinymodel/testdata/llama/llama.gguf"
	load := func(_ context.Context, _ string, n *kvcache.Budget) (*model.Model, engine.Options, error) {
		m, err := model.Open(path, model.Options{KV: tensor.F16, Workers: 1, PageTokens: 16, KVBudget: n})
		return m, engine.Options{}, err
	}
	reg, err := engine.NewRegistry(load, engine.RegistryOptions{PageBytes: 1 << 20, MaxModels: 2, KeepAlive: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	models := []run.ModelConfig{{Name: "one", Path: path, Size: 7, Quant: "F32"}, {Name: "two", Path: path, Aliases: []string{"zwei"}}}
	find := func(name string) (run.ModelConfig, bool) {
		for _, c := range models {
			if c.Name == name {
				return c, true
			}
		}
		return run.ModelConfig{}, false
	}
	o := Options{Source: &run.Source{Registry: reg, Find: find, List: func() []run.ModelConfig { return models }}}
	if change != nil {
		change(&o)
	}
	_, srv := listen(t, o)
	return srv
}

// Clients see the models that they may name, whether or not they are loaded.
func TestModelsThatAreNotLoaded(t *testing.T) {
	srv := onDemand(t, nil)
	for _, loaded := range []bool{false, true} {
		o := get(t, srv.URL+"/v1/models", 200)
		equal(t, "models", len(o.at("data").([]any)), 3)
		for i, name := range []string{"one", "two", "zwei"} {
			equal(t, "model", []any{o.at("data", i, "id"), o.at("data", i, "loaded")}, []any{name, loaded && i > 0})
		}
		equal(t, "model", get(t, srv.URL+"/v1/models/TWO:latest", 200).at("id"), "two")
		o = get(t, srv.URL+"/api/tags", 200)
		equal(t, "tags", []any{len(o.at("models").([]any)), o.at("models", 0, "name"), o.at("models", 1, "name")}, []any{2, "one", "two"})
		equal(t, "size", o.at("models", 0, "size"), 7)
		post(t, srv.URL+"/v1/completions", `{"model":"two","prompt":"a","max_tokens":1}`, 200)
	}
}

// A client deletes what it may: names that it gave, and models that only clients
// asked for, be they loaded.
func TestDelete(t *testing.T) {
	srv := onDemand(t, func(o *Options) { o.Hub = &hub.Options{Dir: t.TempDir(), Offline: true} })
	remove := func(name string) int {
		status, _, _ := send(t, http.MethodDelete, srv.URL+"/api/delete", `{"model":"`+name+`"}`)
		return status
	}
	if status, _, b := send(t, http.MethodPost, srv.URL+"/api/copy", `{"source":"one","destination":"uno"}`); status != 200 {
		t.Fatalf("copy: status %d: %s", status, b)
	}
	post(t, srv.URL+"/v1/completions", `{"model":"uno","prompt":"a","max_tokens":1}`, 200)
	equal(t, "a name", remove("uno"), 200)
	equal(t, "it again", remove("uno"), 404)
	post(t, srv.URL+"/v1/completions", `{"model":"uno","prompt":"a","max_tokens":1}`, 404)
	// The folder has no such model: it gets as far as there, though it is loaded.
	equal(t, "a loaded model", remove("one"), 404)
	post(t, srv.URL+"/api/generate", `{"model":"two","keep_alive":-1}`, 200)
	equal(t, "a model that stays", remove("two"), 409)
}

// A client that asks about a model does not have it loaded, and is told the same
// as of one that is.
func TestShowDoesNotLoad(t *testing.T) {
	srv := onDemand(t, func(o *Options) { o.DataDir = t.TempDir() })
	send(t, http.MethodPost, srv.URL+"/api/create", `{"model":"three","from":"two","system":"Be brief."}`)
	send(t, http.MethodPost, srv.URL+"/api/copy", `{"source":"two","destination":"deux"}`)
	post(t, srv.URL+"/api/generate", `{"model":"two","keep_alive":0}`, 200)
	loaded := func() int { return len(get(t, srv.URL+"/api/ps", 200).at("models").([]any)) }
	until(t, "the model is unloaded", func() bool { return loaded() == 0 })
	names := []string{"two", "two:latest", "three", "deux"}
	before := map[string]object{}
	for _, name := range names {
		before[name] = post(t, srv.URL+"/api/show", `{"model":"`+name+`"}`, 200)
	}
	equal(t, "models loaded", loaded(), 0)
	equal(t, "system", before["three"].at("system"), "Be brief.")
	post(t, srv.URL+"/v1/completions", `{"model":"two","prompt":"a","max_tokens":1}`, 200)
	for _, name := range names {
		after := post(t, srv.URL+"/api/show", `{"model":"`+name+`"}`, 200)
		for _, key := range []string{"template", "parameters", "modelfile", "system", "capabilities", "model_info", "license", "modified_at"} {
			if !reflect.DeepEqual(before[name].at(key), after.at(key)) {
				t.Errorf("%s: %s: %v, and once it is loaded %v", name, key, before[name].at(key), after.at(key))
			}
		}
	}
	post(t, srv.URL+"/api/show", `{"model":"four"}`, 404)
}
