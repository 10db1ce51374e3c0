package server

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"ridge/model"
	"ridge/weights/tensor"
)

// recommended copies a tiny checkpoint and puts files beside it.
func recommended(t *testing.T, files map[string]string) *model.Model {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"} {
		b, err := os.ReadFile(filepath.Join("../internal/tinymodel/testdata/llama", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := model.Open(dir, model.Options{KV: tensor.F16, Workers: 1, PageTokens: 16, KVBytes: 1 << 20, Context: 64})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// What a model's files recommend is shown, and is what requests of every dialect
// get that say nothing: here a top-k of 1, greedy at any temperature.
func TestRecommendedSampling(t *testing.T) {
	srv := serve(t, recommended(t, map[string]string{"generation_config.json": `{"do_sample": true, "temperature": 3.5, "top_k": 1, "eos_token_id": [2, 77]}`}), "tiny")
	o := get(t, srv.URL+"/props", 200)
	equal(t, "props", []any{o.at("default_generation_settings", "params", "temperature"), o.at("default_generation_settings", "params", "top_k")}, []any{3.5, 1})
	o = post(t, srv.URL+"/api/show", `{"model":"tiny"}`, 200)
	equal(t, "show", o["parameters"], "temperature 3.5\ntop_k 1\n")
	for path, body := range map[string]string{
		"/v1/completions":      `{"prompt":"ab cd","max_tokens":12}`,
		"/completion":          `{"prompt":"ab cd","n_predict":12}`,
		"/api/generate":        `{"model":"tiny","prompt":"ab cd","raw":true,"stream":false,"options":{"num_predict":12}}`,
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"ab cd"}],"max_tokens":12}`,
		"/v1/messages":         `{"model":"tiny","messages":[{"role":"user","content":"ab cd"}],"max_tokens":12}`,
	} {
		text := func() any {
			o := post(t, srv.URL+path, body, 200)
			for _, at := range [][]any{{"choices", 0, "text"}, {"choices", 0, "message", "content"}, {"content", 0, "text"}, {"content"}, {"response"}} {
				if v, ok := o.at(at...).(string); ok {
					return v
				}
			}
			t.Fatalf("%s: no text in %v", path, o)
			return nil
		}
		first := text()
		for range 3 {
			equal(t, path, text(), first)
		}
	}
}

func TestOwnPooling(t *testing.T) {
	vector := func(url, pooling string) []any {
		return post(t, url+"/v1/embeddings", `{"input":"ab cd ef"`+pooling+`}`, 200).at("data", 0, "embedding").([]any)
	}
	const file = "1_Pooling/config.json"
	srv := serve(t, recommended(t, map[string]string{file: `{"pooling_mode_lasttoken": true}`}), "tiny")
	own, last, mean := vector(srv.URL, ""), vector(srv.URL, `,"pooling":"last"`), vector(srv.URL, `,"pooling":"mean"`)
	equal(t, "the model's own", own, last)
	if math.Abs(own[0].(float64)-mean[0].(float64)) < 1e-3 {
		t.Errorf("last and mean begin alike: %v, %v", own[0], mean[0])
	}
	srv = serve(t, recommended(t, map[string]string{file: `{"pooling_mode_max_tokens": true}`}), "tiny")
	o := post(t, srv.URL+"/v1/embeddings", `{"input":"ab"}`, 400)
	equal(t, "error", o.at("error", "message"), `pooling: expected mean, last or cls: the model's own, "max_tokens", cannot be computed`)
	vector(srv.URL, `,"pooling":"mean"`)
}
