package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/weights/gguf"
)

// write makes a folder of files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDefaultsOfFolders(t *testing.T) {
	const generation, config, modules = "generation_config.json", "config.json", "modules.json"
	for _, c := range []struct {
		name     string
		files    map[string]string
		sampling string
		pooling  Pooling
		err      string
	}{
		{name: "nothing"},
		{name: "sampled", files: map[string]string{generation: `{"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.05}`},
			sampling: "temperature 0.6, top-k 20, top-p 0.95, min-p 0.05"},
		{name: "sampled, no temperature", files: map[string]string{generation: `{"do_sample": true, "top_p": 0.9, "top_k": 50.0}`}, sampling: "temperature 1, top-k 50, top-p 0.9"},
		{name: "greedy", files: map[string]string{generation: `{"do_sample": false, "temperature": 0.6, "repetition_penalty": 1.1}`}, sampling: "repeat-penalty 1.1, repeat-last-n -1"},
		{name: "unsaid", files: map[string]string{generation: `{"temperature": 0.6, "max_length": Infinity}`}},
		{name: "bad", files: map[string]string{generation: `{"do_sample": true, "top_p": 7}`}, err: "generation_config.json: sampling: top_p: expected 0 to 1, found 7"},
		{name: "no number", files: map[string]string{generation: `{"do_sample": true, "top_p": NaN}`}, err: "generation_config.json"},
		{name: "mean", files: map[string]string{"1_Pooling/config.json": `{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}`}, pooling: PoolingMean},
		{name: "last", files: map[string]string{"1_Pooling/config.json": `{"pooling_mode_lasttoken": true}`}, pooling: PoolingLast},
		{name: "newer", files: map[string]string{"1_Pooling/config.json": `{"pooling_mode": "lasttoken"}`}, pooling: PoolingLast},
		{name: "cls", files: map[string]string{"1_Pooling/config.json": `{"pooling_mode_cls_token": true}`}, pooling: PoolingCLS},
		{name: "max", files: map[string]string{"1_Pooling/config.json": `{"pooling_mode_max_tokens": true}`}, pooling: "max_tokens"},
		{name: "two", files: map[string]string{"1_Pooling/config.json": `{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}`}, pooling: "cls_token+mean_tokens"},
		{name: "elsewhere", files: map[string]string{modules: `[{"path": "", "type": "sentence_transformers.models.Transformer"}, {"path": "pool", "type": "sentence_transformers.models.Pooling"},
			{"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]`, "pool/config.json": `{"pooling_mode_lasttoken": true}`}, pooling: PoolingLast},
		{name: "other part", files: map[string]string{modules: `[{"path": "2_WordWeights", "type": "sentence_transformers.models.WordWeights"}]`}, pooling: "WordWeights"},
		{name: "dense without description", files: map[string]string{modules: `[{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]`}, err: "2_Dense: expected its config.json, found none"},
		{name: "dense of another function", files: map[string]string{modules: `[{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]`, "2_Dense/config.json": `{"activation_function": "torch.nn.modules.activation.ReLU"}`},
			err: `activation_function: expected Identity or Tanh, found "torch.nn.modules.activation.ReLU"`},
		{name: "no such prompt", files: map[string]string{"config_sentence_transformers.json": `{"prompts": {"query": "q: "}, "default_prompt_name": "passage"}`}, err: `default_prompt_name: expected one of ["query"], found "passage"`},
		{name: "out of the folder", files: map[string]string{modules: `[{"path": "../x", "type": "sentence_transformers.models.Pooling"}]`}, err: `modules.json: path: expected a folder in it, found "../x"`},
	} {
		d, err := ReadDefaults(write(t, c.files), nil)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %s", c.name, err, c.err)
			}
		case err != nil || d.Sampling.String() != c.sampling || d.Pooling != c.pooling:
			t.Errorf("%s: %v, %q, %v, want %q, %q", c.name, &d.Sampling, d.Pooling, err, c.sampling, c.pooling)
		}
	}
}

func TestDefaultsOfGGUF(t *testing.T) {
	w := gguf.NewBuilder()
	for key, v := range map[string]any{
		"general.architecture": "llama", "general.sampling.temp": float32(0.25), "general.sampling.top_k": int32(30),
		"general.sampling.penalty_last_n": int32(-1), "llama.pooling_type": uint32(2),
	} {
		if err := w.Set(key, v); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "x.gguf")
	if err := w.Save(path); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := ReadDefaults(path, f)
	if s := d.Sampling; err != nil || s.String() != "temperature 0.25, top-k 30, repeat-last-n -1" || s.From != "x.gguf" || d.Pooling != "cls" {
		t.Errorf("%v from %s, %q, %v", &s, s.From, d.Pooling, err)
	}
}

// What ends an answer is what any of the files says.
func TestEndsOfFolders(t *testing.T) {
	tok, err := os.ReadFile(filepath.Join(tinyModels, "llama", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		generation, config string
		want               []int32
	}{
		{`{}`, `{}`, nil},
		{`{"eos_token_id": 7}`, `{"eos_token_id": 9}`, []int32{7, 9}},
		{`{"eos_token_id": [7, 8, 8000000]}`, `{"text_config": {"eos_token_id": [9]}}`, []int32{7, 8, 9}},
		{`{"eos_token_id": null}`, `{"eos_token_id": -1}`, nil},
	} {
		got, err := OpenTokenizer(write(t, map[string]string{"tokenizer.json": string(tok), "generation_config.json": c.generation, "config.json": c.config}))
		if err != nil {
			t.Fatal(err)
		}
		own, err := OpenTokenizer(write(t, map[string]string{"tokenizer.json": string(tok)}))
		if err != nil {
			t.Fatal(err)
		}
		more := slices.DeleteFunc(got.Ends(), own.IsEOG)
		if !slices.Equal(more, c.want) {
			t.Errorf("%s and %s: ends %v beside %v, want %v", c.generation, c.config, more, own.Ends(), c.want)
		}
	}
	_, err = OpenTokenizer(write(t, map[string]string{"tokenizer.json": string(tok), "generation_config.json": `{"eos_token_id": "x"}`}))
	if err == nil || !strings.Contains(err.Error(), "generation_config.json: eos_token_id: expected an integer or a list of them, found x") {
		t.Errorf("error %v", err)
	}
}

// Python writes numbers that are none: they do no harm where nobody reads them.
func TestNumbersThatAreNone(t *testing.T) {
	const in = `{"a": Infinity, "b": [-Infinity, NaN], "c": "NaN \" Infinity", "NaN": 1e5}`
	const want = `{"a": "Infinity", "b": ["-Infinity", "NaN"], "c": "NaN \" Infinity", "NaN": 1e5}`
	if got := strictJSON([]byte(in)); string(got) != want || !json.Valid(got) {
		t.Errorf("%s, want %s", got, want)
	}
	files := map[string]string{}
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"} {
		b, err := os.ReadFile(filepath.Join(tinyModels, "llama", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	config := files["config.json"]
	for _, name := range []string{"config.json", "tokenizer_config.json"} {
		files[name] = strings.Replace(files[name], "{", `{"x_limit": Infinity,`, 1)
	}
	m, err := Open(write(t, files), Options{Context: 16})
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	files["config.json"] = strings.Replace(config, `"rope_theta": 10000.0`, `"rope_theta": Infinity`, 1)
	if _, err = Open(write(t, files), Options{Context: 16}); err == nil || !strings.Contains(err.Error(), "config.json: rope_theta: expected a number, found Infinity") {
		t.Errorf("error %v", err)
	}
}

// A checkpoint that is quantized in a way that is not known is refused by the
// method's name.
func TestQuantizedCheckpointIsNamed(t *testing.T) {
	config, err := os.ReadFile(filepath.Join(tinyModels, "llama", "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"aqlm", "torchao"} {
		text := strings.Replace(string(config), "{", `{"quantization_config": {"quant_method": "`+method+`"},`, 1)
		_, err = Open(write(t, map[string]string{"config.json": text}), Options{})
		want := `found quantization method "` + method + `"`
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", method, err, want)
		}
	}
}
