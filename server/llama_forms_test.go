package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"ridge/server/wire"
)

// Prompts as llama-server's test_completion.py and test_tokenize.py have them:
// texts and token ids in one list are one prompt, and a text may be an object.
func TestMixedPrompts(t *testing.T) {
	srv := tiny(t)
	evaluated := func(prompt string) float64 {
		t.Helper()
		return post(t, srv.URL+"/completion", `{"n_predict":1,"prompt":`+prompt+`}`, 200).at("tokens_evaluated").(float64)
	}
	abc, x := evaluated(`"abc"`), evaluated(`"x"`)
	equal(t, "an object", evaluated(`{"prompt_string":"abc"}`), abc)
	equal(t, "texts and tokens", evaluated(`[5,"abc",6,7,"x"]`), abc+x+3)
	equal(t, "an object without pictures", evaluated(`{"prompt_string":"abc","multimodal_data":[]}`), abc)
	for path, list := range map[string]string{"/v1/completions": "choices", "/v1/embeddings": "data"} {
		o := post(t, srv.URL+path, `{"max_tokens":1,"pooling":"mean","prompt":[[5,"abc"],[6,7],"x",{"prompt_string":"y"}],"input":[[5,"abc"],[6,7],"x",{"prompt_string":"y"}]}`, 200)
		equal(t, path, len(o.at(list).([]any)), 4)
	}
	whole := post(t, srv.URL+"/v1/embeddings", `{"pooling":"mean","input":"abc"}`, 200)
	equal(t, "the same text", post(t, srv.URL+"/v1/embeddings", `{"pooling":"mean","input":[{"prompt_string":"abc"}]}`, 200).at("data", 0, "embedding"), whole.at("data", 0, "embedding"))
	equal(t, "the same text in parts", post(t, srv.URL+"/v1/embeddings", `{"pooling":"mean","input":{"content":[{"type":"text","text":"ab"},{"type":"text","text":"c"}]}}`, 200).at("data", 0, "embedding"), whole.at("data", 0, "embedding"))
	for _, bad := range []string{`{"content":[]}`, `{"content":"a"}`, `{"content":[{"type":"image_url"}]}`, `{"content":[{"text":"a"}]}`, `{"prompt_string":"a","content":[{"type":"text","text":"a"}]}`, `[5,null]`, `[null]`, `[]`, `[5,]`, `[99999999999]`, `[1.5]`, `[-1]`, `[["a"]]`, `[5,"a",[6]]`, `[[5,true]]`, `{"prompt":"a"}`, `{"prompt_string":3}`, `[5,"a",1.5]`, `[99999999,"a"]`, `{"prompt_string":"a","multimodal_data":["AAAA"]}`} {
		post(t, srv.URL+"/completion", `{"n_predict":1,"prompt":`+bad+`}`, 400)
	}
}

// Biases of texts, as llama-server takes them: in a list and as keys.
func TestBiasOfTexts(t *testing.T) {
	srv, b := scripted(t, "abc")
	post(t, srv.URL+"/v1/completions", `{"prompt":"x","logit_bias":[["abc",2.5]]}`, 200)
	want := b.last().Sampling.LogitBias
	post(t, srv.URL+"/v1/completions", `{"prompt":"x","logit_bias":{"abc":2.5}}`, 200)
	equal(t, "as a key", b.last().Sampling.LogitBias, want)
	if len(want) == 0 {
		t.Error("no token has a bias")
	}
	post(t, srv.URL+"/v1/completions", `{"prompt":"x","logit_bias":{"-1":2.5}}`, 400)
}

// How far a prompt is, in the streams of four routes, as llama-server's
// test_chat_completion.py looks at it.
func TestReturnProgress(t *testing.T) {
	srv := tiny(t)
	for path, body := range map[string]string{
		"/v1/chat/completions": `"messages":[{"role":"user","content":"` + strings.Repeat("abc ", 20) + `"}]`,
		"/v1/completions":      `"prompt":"` + strings.Repeat("def ", 30) + `"`,
		"/completion":          `"prompt":"` + strings.Repeat("ghi ", 30) + `"`,
		"/v1/responses":        `"input":"` + strings.Repeat("jkl ", 10) + `"`,
	} {
		for _, asked := range []bool{true, false} {
			extra := map[bool]string{true: `,"return_progress":true`}[asked]
			told, last := 0, 0.0
			_, events := sse(t, srv.URL+path, `{"stream":true,"max_tokens":2,`+body+extra+`}`)
			for _, ev := range events {
				p, ok := ev["prompt_progress"].(map[string]any)
				if !ok {
					continue
				}
				if told++; told == 1 && p["cache"] != p["processed"] {
					t.Errorf("%s: the first report: %v", path, p)
				}
				if n := p["processed"].(float64); n < last || n > p["total"].(float64) || p["time_ms"].(float64) < 0 {
					t.Errorf("%s: after %v: %v", path, last, p)
				} else {
					last = n
				}
			}
			if (told > 0) != asked {
				t.Errorf("%s%s: %d reports", path, extra, told)
			}
		}
	}
}

// What is said of a prompt that does not fit, and llama-server's own forms where its
// routes have no prefix.
func TestLlamaForms(t *testing.T) {
	srv := tiny(t)
	for _, path := range []string{"/v1/completions", "/completion", "/completions"} {
		o := post(t, srv.URL+path, `{"prompt":"`+strings.Repeat("a b ", 3000)+`"}`, 400)
		if n, c := o.at("error", "n_prompt_tokens"), o.at("error", "n_ctx"); n == nil || c == nil || n.(float64) <= c.(float64) {
			t.Errorf("%s: %v", path, o)
		}
	}
	equal(t, "other errors", post(t, srv.URL+"/v1/completions", `{"prompt":3}`, 400).at("error", "n_ctx"), nil)
	equal(t, "completions", post(t, srv.URL+"/completions", `{"prompt":"x","n_predict":1}`, 200).at("tokens_predicted"), 1)
	status, _, b := send(t, http.MethodPost, srv.URL+"/embeddings", `{"content":"x","pooling":"mean"}`)
	if status != 200 || !strings.HasPrefix(string(b), `[{"index":0,"embedding":[[`) {
		t.Errorf("embeddings: %d %.80s", status, b)
	}
	post(t, srv.URL+"/v1/chat/completions", `{"reasoning_effort":"max","messages":[{"role":"user","content":"x"}],"max_tokens":1}`, 200)
}

// A prompt of millions of token ids is read by a few passes over the body.
func BenchmarkTokenIDs(b *testing.B) {
	body := []byte("[" + strings.Repeat("12345,", 1<<20) + "1]")
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		var p wire.Prompts
		if err := json.Unmarshal(body, &p); err != nil || len(p) != 1 || len(p[0].Tokens) != 1<<20+1 {
			b.Fatal(err)
		}
	}
}
