package server

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/model"
	"ridge/server/watch"
	"ridge/text/tokenizer"
)

// encoder serves a tiny encoder: see internal/tinymodel/gen/encoders.py.
func encoder(t *testing.T, name string) (*httptest.Server, *model.Model) {
	t.Helper()
	dir := filepath.Join("../internal/tinymodel/encoders", name)
	m, err := model.Open(dir, model.Options{Workers: 2, PageTokens: 16, KVBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, m, dir), m
}

// encoderGolden is what transformers computed for it.
func encoderGolden(t *testing.T, name string) (g struct {
	Tokens    []int32
	Embedding []float64
	Scores    []float64
}) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../internal/tinymodel/encoders", name, "golden.json"))
	if err == nil {
		err = json.Unmarshal(b, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Embeddings of encoders are those of transformers, through every route, alone and
// among others, and an encoder writes no text.
func TestEncoderEmbeddings(t *testing.T) {
	for _, name := range []string{"bert", "gemma3-both", "modernbert"} {
		t.Run(name, func(t *testing.T) {
			srv, _ := encoder(t, name)
			if l := fetch[watch.Models](t, srv.URL+"/ridge/models", "").Models; len(l) != 1 || !l[0].ReadsOnly {
				t.Errorf("listed as %+v", l)
			}
			g := encoderGolden(t, name)
			ids, _ := json.Marshal(g.Tokens)
			if name == "bert" {
				g.Embedding = nil // it is of two texts
			}
			one := post(t, srv.URL+"/v1/embeddings", fmt.Sprintf(`{"input":%s}`, ids), 200).at("data", 0, "embedding").([]any)
			for i, want := range g.Embedding {
				if got := one[i].(float64); math.Abs(got-want) > 1e-4 {
					t.Fatalf("number %d: %v, want %v", i, got, want)
				}
			}
			o := post(t, srv.URL+"/v1/embeddings", fmt.Sprintf(`{"input":[%s,[5,6,7],%s,[9]]}`, ids, ids), 200)
			equal(t, "in a batch", o.at("data", 2, "embedding"), one)
			var list [][]any // in the form of text-embeddings-inference
			if _, _, b := send(t, "POST", srv.URL+"/embed", fmt.Sprintf(`{"inputs":%s,"truncate":true}`, ids)); json.Unmarshal(b, &list) != nil || len(list) != 1 || !slices.Equal(list[0], one) {
				t.Errorf("/embed: %s", b)
			}
			o = post(t, srv.URL+"/v1/embeddings", fmt.Sprintf(`{"input":%s,"dimensions":8,"normalize":false}`, ids), 200)
			equal(t, "dimensions", len(o.at("data", 0, "embedding").([]any)), 8)
			for route, body := range map[string]string{"/v1/completions": `{"prompt":"a"}`, "/v1/chat/completions": `{"messages":[{"role":"user","content":"a"}]}`} {
				o = post(t, srv.URL+route, body, 400)
				if text := fmt.Sprint(o["error"]); !strings.Contains(text, "the model writes none") {
					t.Errorf("%s: %s", route, text)
				}
			}
		})
	}
}

// A cross-encoder answers for pairs in every form of request, and a classifier for
// texts.
func TestCrossEncoder(t *testing.T) {
	srv, _ := encoder(t, "xlm-roberta-class")
	docs := []string{"the sand", "a hand", "it is here", "other"}
	list, _ := json.Marshal(docs)
	scores := map[int]float64{}
	o := post(t, srv.URL+"/v1/rerank", fmt.Sprintf(`{"query":"the land","documents":%s}`, list), 200)
	last := 2.0
	for i := range docs {
		at, score := int(o.at("results", i, "index").(float64)), o.at("results", i, "relevance_score").(float64)
		if score > last || score <= 0 || score >= 1 {
			t.Errorf("score %d: %v after %v", i, score, last)
		}
		last, scores[at] = score, score
	}
	if len(scores) != len(docs) {
		t.Fatalf("scores of %v", scores)
	}
	o = post(t, srv.URL+"/v1/score", fmt.Sprintf(`{"text_1":"the land","text_2":%s}`, list), 200)
	for i := range docs {
		equal(t, "score", o.at("data", i, "score"), scores[i])
	}
	var raw []struct {
		Index int
		Score float64
	}
	_, _, b := send(t, "POST", srv.URL+"/rerank", fmt.Sprintf(`{"query":"the land","texts":%s,"raw_scores":true}`, list))
	if err := json.Unmarshal(b, &raw); err != nil || len(raw) != len(docs) {
		t.Fatalf("%v: %s", err, b)
	}
	for _, r := range raw {
		if got := 1 / (1 + math.Exp(-r.Score)); math.Abs(got-scores[r.Index]) > 1e-9 {
			t.Errorf("text %d: sigmoid %v, want %v", r.Index, got, scores[r.Index])
		}
	}
	for i, x := range post(t, srv.URL+"/v1/score", fmt.Sprintf(`{"text_1":"the land","text_2":%s,"use_activation":false}`, list), 200)["data"].([]any) {
		if got := 1 / (1 + math.Exp(-object(x.(map[string]any)).at("score").(float64))); math.Abs(got-scores[i]) > 1e-9 {
			t.Errorf("text %d: sigmoid %v, want %v", i, got, scores[i])
		}
	}
	post(t, srv.URL+"/v1/embeddings", `{"input":"x"}`, 400)
	long := strings.Repeat("the sand ", 100)
	if o := post(t, srv.URL+"/v1/rerank", fmt.Sprintf(`{"query":"x","documents":[%q]}`, long), 400); !strings.Contains(fmt.Sprint(o["error"]), "96") {
		t.Errorf("a long text: %v", o)
	}
	post(t, srv.URL+"/v1/rerank", fmt.Sprintf(`{"query":"x","documents":[%q],"truncate_prompt_tokens":-1}`, long), 200)

	srv, _ = encoder(t, "bert-class")
	o = post(t, srv.URL+"/classify", `{"input":["the sand","a"]}`, 200)
	sum := 0.0
	for _, p := range o.at("data", 0, "probs").([]any) {
		sum += p.(float64)
	}
	equal(t, "classes", o.at("data", 1, "num_classes"), 3)
	classifyFields.check(t, srv.URL, &script{})
	logits := post(t, srv.URL+"/classify", `{"input":["the sand"],"use_activation":false}`, 200).at("data", 0, "probs").([]any)
	top, all := o.at("data", 0, "probs", 0).(float64), 0.0
	for _, x := range logits {
		all += math.Exp(x.(float64) - logits[0].(float64))
	}
	if math.Abs(1/all-top) > 1e-9 {
		t.Errorf("logits %v, of probability %v", logits, top)
	}
	if math.Abs(sum-1) > 1e-9 || !strings.HasPrefix(o.at("data", 0, "label").(string), "LABEL_") {
		t.Errorf("data %v", o["data"])
	}
	post(t, srv.URL+"/v1/rerank", `{"query":"x","documents":["y"]}`, 400)
}

// A causal model that is a reranker reads both texts as its template has them, with the
// instruction of a request, and its score is the probability of yes.
func TestRerankerTemplate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "judge")
	if err := os.CopyFS(dir, os.DirFS("../internal/tinymodel/encoders/qwen3-judge")); err != nil {
		t.Fatal(err)
	}
	template := `<s>{% if messages[0].role == 'system' %}{{ messages[0].content }}.{% endif %}{% for m in messages %}{% if m.role == 'query' %}Q:{{ m.content }}{% elif m.role == 'document' %} D:{{ m.content }}{% endif %}{% endfor %}</s>?`
	if err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() *model.Model {
		m, err := model.Open(dir, model.Options{Workers: 2, PageTokens: 16, KVBytes: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	srv := serve(t, open(), dir)
	m := open() // computes beside the server's
	defer m.Close()
	score := func(text string) float64 {
		t.Helper()
		ids := m.Tokenizer().Encode(nil, text, tokenizer.EncodeOptions{ParseSpecial: true})
		seq := m.Pool().NewSeq()
		defer m.Pool().Free(seq)
		if err := m.Forward(&model.Step{NoLogits: true, Runs: []model.Run{{Seq: seq, Tokens: ids, Outputs: 1}}}); err != nil {
			t.Fatal(err)
		}
		s := m.Classify(slices.Clone(m.Hidden(0)))
		return float64(s[0]) - float64(s[1])
	}
	sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	near := func(got any, want float64) {
		t.Helper()
		if math.Abs(got.(float64)-want) > 1e-9 {
			t.Errorf("score %v, want %v", got, want)
		}
	}
	yes, no := score("<s>Q:the land D:the sand</s>?"), score("<s>Q:the land D:a hand</s>?")
	o := post(t, srv.URL+"/v1/score", `{"text_1":"the land","text_2":["the sand","a hand"]}`, 200)
	near(o.at("data", 0, "score"), sigmoid(yes))
	near(o.at("data", 1, "score"), sigmoid(no))
	o = post(t, srv.URL+"/v1/score", `{"text_1":"the land","text_2":"the sand","use_activation":false,"instruction":"near"}`, 200)
	near(o.at("data", 0, "score"), score("<s>near.Q:the land D:the sand</s>?"))
	o = post(t, srv.URL+"/v1/rerank", `{"query":"the land","documents":["the sand","a hand"]}`, 200)
	near(o.at("results", 0, "relevance_score"), sigmoid(max(yes, no)))
	// A mark in a text is text, and what does not fit is refused, or cut in the text alone.
	post(t, srv.URL+"/v1/rerank", `{"query":"a","documents":["b</s>?"]}`, 200)
	long := strings.Repeat("x", 200)
	if o := post(t, srv.URL+"/v1/rerank", fmt.Sprintf(`{"query":"a","documents":[%q]}`, long), 400); !strings.Contains(fmt.Sprint(o["error"]), "96") {
		t.Errorf("a long text: %v", o)
	}
	for side, text := range map[string]string{"right": "y" + long, "left": long + "y"} {
		ids := m.Tokenizer().Encode(nil, "<s>Q:a D:</s>?", tokenizer.EncodeOptions{ParseSpecial: true})
		kept := text[:96-len(ids)]
		if side == "left" {
			kept = text[len(text)-(96-len(ids)):]
		}
		o = post(t, srv.URL+"/v1/score", fmt.Sprintf(`{"text_1":"a","text_2":%q,"truncate_prompt_tokens":-1,"truncation_side":%q}`, text, side), 200)
		near(o.at("data", 0, "score"), sigmoid(score("<s>Q:a D:"+kept+"</s>?")))
	}
	if o := post(t, srv.URL+"/v1/rerank", fmt.Sprintf(`{"query":%q,"documents":["a"],"truncate_prompt_tokens":-1}`, long), 400); !strings.Contains(fmt.Sprint(o["error"]), "96") {
		t.Errorf("a long query: %v", o)
	}
	post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}]}`, 400)

	// Where nobody is told what makes a text relevant, saying it is an error.
	srv, _ = encoder(t, "xlm-roberta-class")
	if o := post(t, srv.URL+"/v1/rerank", `{"query":"a","documents":["b"],"instruction":"near"}`, 400); !strings.Contains(fmt.Sprint(o["error"]), "instruction") {
		t.Errorf("an instruction: %v", o)
	}
}

// What a model wants before queries and documents comes from its files.
func TestPrompts(t *testing.T) {
	m := recommended(t, map[string]string{
		"1_Pooling/config.json":             `{"pooling_mode_mean_tokens": true}`,
		"config_sentence_transformers.json": `{"prompts":{"query":"find: ","document":""},"default_prompt_name":"document"}`,
	})
	srv := serve(t, m, "tiny")
	vector := func(body string) []any {
		return post(t, srv.URL+"/v1/embeddings", body, 200).at("data", 0, "embedding").([]any)
	}
	want := vector(`{"input":"find: it"}`)
	for _, field := range []string{`"prompt_name":"query"`, `"input_type":"query"`, `"input_type":"search_query"`} {
		if got := vector(`{"input":"it",` + field + `}`); !slices.Equal(got, want) {
			t.Errorf("%s: another embedding", field)
		}
	}
	if slices.Equal(vector(`{"input":"it"}`), want) {
		t.Error("documents have the prompt of queries")
	}
	o := post(t, srv.URL+"/v1/embeddings", `{"input":"it","prompt_name":"title"}`, 400)
	equal(t, "error", o.at("error", "message"), `prompt_name: expected one of ["document" "query"], found "title"`)
}
