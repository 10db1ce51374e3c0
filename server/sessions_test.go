package server

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ridge/engine"
	"ridge/server/run"
)

// What one server computed of a prompt, another has after reading it.
func TestSessions(t *testing.T) {
	dir := t.TempDir()
	ids := "[[" + "5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40" + "]]"
	first := tiny(t, func(o *Options) { o.DataDir = dir })
	body := `{"prompt":` + ids + `,"max_tokens":4,"temperature":0}`
	want := post(t, first.URL+"/v1/completions", body, 200).at("choices", 0, "text")
	o := post(t, first.URL+"/slots/0?action=save", `{"filename":"a.session","prompt":`+ids+`}`, 200)
	if n, ok := o["n_saved"].(float64); !ok || n < 32 {
		t.Fatalf("got %v", o)
	}
	second := tiny(t, func(o *Options) { o.DataDir = dir })
	o = post(t, second.URL+"/slots/0?action=save", `{"filename":"b.session","prompt":`+ids+`}`, 400)
	equal(t, "nothing to save", o.at("error", "param"), "prompt")
	post(t, second.URL+"/slots/0?action=restore", `{"filename":"b.session"}`, 404)
	o = post(t, second.URL+"/slots/0?action=restore", `{"filename":"a.session"}`, 200)
	if n, ok := o["n_restored"].(float64); !ok || n < 32 {
		t.Fatalf("got %v", o)
	}
	o = post(t, second.URL+"/v1/completions", body, 200)
	equal(t, "text", o.at("choices", 0, "text"), want)
	if n := o.at("usage", "prompt_tokens_details", "cached_tokens").(float64); n < 32 {
		t.Errorf("%v cached tokens", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "sessions", "bad"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	post(t, second.URL+"/slots/0?action=restore", `{"filename":"bad"}`, 400)
	post(t, second.URL+"/slots/0?action=restore", `{"filename":"none"}`, 404)
	post(t, second.URL+"/slots/0?action=restore", `{"filename":"../a"}`, 400)
	post(t, second.URL+"/slots/0?action=juggle", `{"filename":"a"}`, 400)
	post(t, second.URL+"/slots/7?action=save", `{"filename":"a"}`, 400)
	post(t, second.URL+"/slots/0?action=erase", `{"filename":"a.session"}`, 200)
	post(t, second.URL+"/slots/0?action=erase", `{"filename":"a.session"}`, 404)
}

// A session is refused when the weights are not those that it was computed with:
// the file was replaced in place by one of the same shape, size and time, and
// what the server had been told of it is of before. A copy of the file will do.
func TestSessionOfOtherWeights(t *testing.T) {
	b, err := os.ReadFile(tinyPath)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "m.gguf")
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	write := func(path string, b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
	write(path, b)
	told := run.ModelConfig{Path: path, Digest: strings.Repeat("d", 64), Size: int64(len(b)), Modified: then}
	load := func(c run.ModelConfig) string {
		t.Helper()
		_, srv := serveAs(t, openTiny(t, c.Path, 1), c, engine.Options{}, func(o *Options) { o.DataDir = filepath.Join(dir, "data") })
		return srv.URL
	}
	digest := func(url string) any { return get(t, url+"/api/tags", 200).at("models", 0, "digest") }
	url := load(told)
	equal(t, "digest", digest(url), told.Digest)
	const prompt = `"prompt":"the cat and the dog and the bird and the mouse"`
	post(t, url+"/v1/completions", `{`+prompt+`,"max_tokens":4}`, 200)
	post(t, url+"/slots/0?action=save", `{"filename":"a",`+prompt+`}`, 200)

	told.Path = filepath.Join(dir, "copy.gguf")
	write(told.Path, b)
	post(t, load(told)+"/slots/0?action=restore", `{"filename":"a"}`, 200)

	other := bytes.Clone(b)
	half := other[len(other)/2:] // numbers, no names
	for i := range half[:len(half)-64] {
		half[i] ^= 1 // of finite numbers other finite ones
	}
	told.Path = path
	// In place would be ErrChanged for the server that still has the file.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write(path, other)
	url = load(told)
	o := post(t, url+"/slots/0?action=restore", `{"filename":"a"}`, 400)
	if msg, _ := o.at("error", "message").(string); !strings.Contains(msg, "weights") || !strings.Contains(msg, "session") {
		t.Errorf("got %v", o)
	}
	later := then.Add(time.Minute)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if d := digest(load(told)); d == told.Digest {
		t.Errorf("a file that was written to has the digest %v of before", d)
	}
}

// As llama-server's test_slot_save.py: slots are named by number alone.
func TestSlotsByNumber(t *testing.T) {
	dir := t.TempDir()
	srv := tiny(t, func(o *Options) { o.DataDir = dir })
	list := func(first, n int) string {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = strconv.Itoa(first + i)
		}
		return "[" + strings.Join(ids, ",") + "]"
	}
	complete := func(ids, slot string) (computed any) {
		o := post(t, srv.URL+"/completion", `{"prompt":`+ids+`,"n_predict":8,"temperature":0`+slot+`}`, 200)
		return o.at("timings", "prompt_n")
	}
	france := list(5, 40)
	equal(t, "all is computed", complete(france, `,"id_slot":1`), 40)
	o := post(t, srv.URL+"/slots/1?action=save", `{"filename":"slot1.bin"}`, 200)
	equal(t, "saved", []any{o["id_slot"], o["filename"], o["n_saved"].(float64) >= 40, o["n_written"].(float64) > 1000, o.at("timings", "save_ms") != nil}, []any{1, "slot1.bin", true, true, true})
	saved := o["n_saved"]
	equal(t, "the same again", complete(france, `,"id_slot":1`), 1)
	o = post(t, srv.URL+"/slots/1?action=erase", ``, 200)
	equal(t, "erased", []any{o["id_slot"], o["n_erased"]}, []any{1, saved})
	equal(t, "all is computed again", complete(france, `,"id_slot":1`), 40)
	post(t, srv.URL+"/slots/1?action=erase", ``, 200)
	equal(t, "erased twice", post(t, srv.URL+"/slots/1?action=erase", ``, 200)["n_erased"], 0)
	o = post(t, srv.URL+"/slots/0?action=restore", `{"filename":"slot1.bin"}`, 200)
	equal(t, "restored", []any{o["id_slot"], o["n_restored"], o.at("timings", "restore_ms") != nil}, []any{0, saved, true})
	equal(t, "found", complete(france, ``), 1)
	o = post(t, srv.URL+"/slots/0?action=save", `{"filename":"slot0.bin"}`, 200)
	equal(t, "requests that name none count for the first", o["n_saved"], saved)

	o = post(t, srv.URL+"/slots/7?action=save", `{"filename":"x"}`, 400)
	equal(t, "not used", o.at("error", "param"), "prompt")
	for path, param := range map[string]string{"/slots/70000?action=erase": "id_slot", "/slots/-1?action=erase": "id_slot", "/slots/x?action=erase": "id_slot"} {
		equal(t, path, post(t, srv.URL+path, ``, 400).at("error", "param"), param)
	}
	equal(t, "no such slot", post(t, srv.URL+"/completion", `{"prompt":"a","id_slot":70000}`, 400).at("error", "param"), "id_slot")
}
