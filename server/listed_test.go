package server

import (
	"slices"
	"strings"
	"testing"

	"ridge/server/run"
)

// A copy is listed under its name, whether or not the server keeps created models,
// and each name once.
func TestCopiesAreListed(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		srv, _ := scripted(t, "x", func(o *Options, _ *script) { o.DataDir = dir })
		for _, name := range []string{"mine", "MINE:latest"} {
			if code, _, answer := send(t, "POST", srv.URL+"/api/copy", `{"source":"fake","destination":"`+name+`"}`); code != 200 && dir == "" {
				t.Fatalf("%d %s", code, answer)
			}
		}
		var tags, ids []string
		for _, m := range get(t, srv.URL+"/api/tags", 200)["models"].([]any) {
			tags = append(tags, m.(map[string]any)["name"].(string))
		}
		for _, m := range get(t, srv.URL+"/v1/models", 200)["data"].([]any) {
			ids = append(ids, m.(map[string]any)["id"].(string))
		}
		if dir == "" {
			equal(t, "tags", tags, []string{"fake", "mine"})
			equal(t, "models", ids, []string{"fake", "mine"})
		} else if len(tags) != 2 || !slices.Equal(tags, ids) {
			t.Errorf("with a folder: %q, %q", tags, ids)
		}
	}
}

// A model that is listed has its other names beside it, under each of its names.
func TestAliasesAreListed(t *testing.T) {
	srv, _ := scripted(t, "x")
	url := srv.URL + "/v1/models"
	equal(t, "alone", get(t, url, 200).at("data", 0, "aliases"), []any{})
	for _, name := range []string{"b", "a"} {
		if code, _, answer := send(t, "POST", srv.URL+"/api/copy", `{"source":"fake","destination":"`+name+`"}`); code != 200 {
			t.Fatalf("%d %s", code, answer)
		}
	}
	o := get(t, url, 200)
	equal(t, "of the model", o.at("data", 0, "aliases"), []any{"a", "b"})
	equal(t, "of an alias", o.at("data", 1, "aliases"), []any{"fake", "b"})
	equal(t, "alone by its name", get(t, url+"/b", 200)["aliases"], []any{"fake", "a"})
}

// Of no texts there are no embeddings, in Ollama's API.
func TestEmbedNothing(t *testing.T) {
	srv := tiny(t)
	for _, input := range []string{`""`, `[]`} {
		o := post(t, srv.URL+"/api/embed", `{"model":"tiny","input":`+input+`}`, 200)
		equal(t, input, o["embeddings"], []any{})
	}
}

// Models that are not loaded are listed with what the headers of their files say.
func TestOutline(t *testing.T) {
	l := run.NewLibrary(nil, nil, nil)
	for range 2 {
		x, err := l.Outline(&run.ModelConfig{Path: tinyPath})
		if err != nil || x.Arch != "llama" || x.Parameters == 0 || x.Hidden != 32 || x.Context != 128 {
			t.Errorf("%+v, %v", x, err)
		}
	}
	for name, reads := range map[string]bool{"encoders/bert": true, "encoders/llama-class": true, "encoders/bert-class": true, "testdata/llama/llama.gguf": false} {
		if x, err := l.Outline(&run.ModelConfig{Path: "../internal/tinymodel/" + name}); err != nil || x.ReadsOnly != reads {
			t.Errorf("%s: %+v, %v", name, x, err)
		}
	}
	if _, err := l.Outline(&run.ModelConfig{Path: "none.gguf"}); err == nil {
		t.Error("a file that is not there has an outline")
	}
}

// Text Generation Inference's form of a generation is answered in its form.
func TestTGI(t *testing.T) {
	srv, b := scripted(t, "Hello")
	const ask = `{"inputs":"Say it: ","parameters":{"max_new_tokens":3,"details":true}`
	o := post(t, srv.URL+"/generate", ask+`}`, 200)
	equal(t, "generate", []any{o["generated_text"], o.at("details", "finish_reason"), o.at("details", "generated_tokens")}, []any{"Hel", "length", 3})
	if p := b.last().Sampling; p.Temperature != 0 {
		t.Errorf("not greedy: %+v", p)
	}
	code, _, answer := send(t, "POST", srv.URL+"/", `{"inputs":"Say it: ","parameters":{"do_sample":true,"return_full_text":true,"stop":["lo"]}}`)
	if code != 200 || strings.TrimSpace(string(answer)) != `[{"generated_text":"Say it: Hel"}]` {
		t.Errorf("/: %d %s", code, answer)
	}
	if p := b.last().Sampling; p.Temperature != 1 {
		t.Errorf("not drawn: %+v", p)
	}
	for path, body := range map[string]string{"/generate_stream": ask + `}`, "/": ask + `,"stream":true}`} {
		_, data := sse(t, srv.URL+path, body)
		text, last := "", data[len(data)-1]
		for _, d := range data {
			text += d.at("token", "text").(string)
		}
		equal(t, path, []any{text, last["generated_text"], last.at("details", "finish_reason"), data[0]["generated_text"]}, []any{"Hel", "Hel", "length", nil})
	}
	post(t, srv.URL+"/generate", `{"inputs":"a","parameters":{"grammar":{"type":"regex","value":"x+"}}}`, 200)
	if b.last().NewMasker == nil {
		t.Error("no grammar")
	}
	post(t, srv.URL+"/generate", `{"inputs":""}`, 400)
	post(t, srv.URL+"/generate", `{"inputs":"a","parameters":{"grammar":{"type":"x"}}}`, 400)
}
