package server

import (
	"net/http"
	"strings"
	"testing"

	"ridge/internal/testdata"
	"ridge/model"
	"ridge/weights/tensor"
)

// Keys and values as bytes change answers, and answers and metrics say so.
func TestLossyIsNamed(t *testing.T) {
	for _, kv := range []tensor.DType{tensor.F16, tensor.Q8_0} {
		t.Run(kv.String(), func(t *testing.T) {
			mm, err := model.Open(testdata.Tiny, model.Options{KV: kv, Workers: 1, PageTokens: 16, KVBytes: 1 << 20, Context: 128})
			if err != nil {
				t.Fatal(err)
			}
			srv := serve(t, mm, "tiny")
			lossy := kv == tensor.Q8_0
			o := post(t, srv.URL+"/v1/completions", `{"prompt":"one two","max_tokens":2}`, 200)
			if fp := o.at("system_fingerprint").(string); strings.HasSuffix(fp, "_kv-q8_0") != lossy {
				t.Errorf("fingerprint %q", fp)
			}
			_, _, b := send(t, http.MethodGet, srv.URL+"/metrics", "")
			want := `kv="F16",lossy=""`
			if lossy {
				want = `kv="Q8_0",lossy="kv-q8_0"`
			}
			if !strings.Contains(string(b), want) {
				t.Errorf("the metrics lack %s", want)
			}
			if got := get(t, srv.URL+"/ridge/status", 200).at("models", 0, "kv", "type"); got != kv.String() {
				t.Errorf("status: type %v, want %v", got, kv)
			}
		})
	}
}

// So do activations that are not those of the default.
func TestActIsNamed(t *testing.T) {
	for _, act := range model.Acts() {
		mm, err := model.Open(testdata.Tiny, model.Options{KV: tensor.F16, Act: act, Workers: 1, PageTokens: 16, KVBytes: 1 << 20, Context: 128})
		if err != nil {
			t.Fatal(err)
		}
		srv := serve(t, mm, "tiny")
		o := post(t, srv.URL+"/v1/completions", `{"prompt":"one two","max_tokens":2}`, 200)
		if fp := o.at("system_fingerprint").(string); strings.HasSuffix(fp, "_act-"+act.String()) != (act != model.ActMixed) {
			t.Errorf("%v: fingerprint %q", act, fp)
		}
		_, _, b := send(t, http.MethodGet, srv.URL+"/metrics", "")
		if want := `activations="` + act.String() + `"`; !strings.Contains(string(b), want) {
			t.Errorf("the metrics lack %s", want)
		}
		if got := get(t, srv.URL+"/ridge/status", 200).at("models", 0, "activations"); got != act.String() {
			t.Errorf("status: %v, want %v", got, act)
		}
	}
}
