package server

import (
	"encoding/json"
	"math"
	"net/http/httptest"
	"testing"

	"ridge/engine"
	"ridge/server/run"
)

// Scores are the cosines of what the route of embeddings returns, and the best
// text comes first.
func TestRerank(t *testing.T) {
	srv := tiny(t)
	docs := []string{"the dog", "a cat and the cat", "the cat", "the dog"}
	input, _ := json.Marshal(append([]string{"the cat"}, docs...))
	e := post(t, srv.URL+"/v1/embeddings", `{"input":`+string(input)+`}`, 200)
	vector := func(i int) (v []float32) {
		for _, x := range e.at("data", i, "embedding").([]any) {
			v = append(v, float32(x.(float64)))
		}
		return v
	}
	list, _ := json.Marshal(docs)
	o := post(t, srv.URL+"/v1/rerank", `{"query":"the cat","documents":`+string(list)+`,"pooling":"mean"}`, 200)
	results := o.at("results").([]any)
	if len(results) != len(docs) {
		t.Fatalf("%d results", len(results))
	}
	last := 2.0
	for i := range results {
		at := int(o.at("results", i, "index").(float64))
		score := o.at("results", i, "relevance_score").(float64)
		if want := angle(vector(0), vector(1+at)); math.Abs(score-want) > 1e-6 {
			t.Errorf("text %d: score %v, want %v", at, score, want)
		}
		if score > last {
			t.Errorf("result %d has a higher score than the one before", i)
		}
		last = score
		equal(t, "document", o.at("results", i, "document", "text"), docs[at])
	}
	equal(t, "the same text first", o.at("results", 0, "index"), 2)
	if o.at("results", 0, "relevance_score").(float64) < 1-1e-6 {
		t.Errorf("a text does not equal itself: %v", o.at("results", 0))
	}
	if o.at("usage", "total_tokens").(float64) == 0 || o.at("usage", "completion_tokens") != 0.0 {
		t.Errorf("usage %v", o["usage"])
	}
	// Cohere's form: objects, a number of results, no documents.
	o = post(t, srv.URL+"/v2/rerank", `{"query":{"text":"the cat"},"documents":[{"text":"the dog"},{"text":"the cat"}],"top_n":1,"pooling":"last"}`, 200)
	equal(t, "results", len(o.at("results").([]any)), 1)
	equal(t, "index", o.at("results", 0, "index"), 1)
	equal(t, "document", o.at("results", 0, "document"), nil)

	o = post(t, srv.URL+"/score", `{"text_1":"the cat","text_2":`+string(list)+`,"pooling":"mean"}`, 200)
	for i := range docs {
		equal(t, "object", o.at("data", i, "object"), "score")
		if got, want := o.at("data", i, "score").(float64), angle(vector(0), vector(1+i)); math.Abs(got-want) > 1e-6 {
			t.Errorf("pair %d: %v, want %v", i, got, want)
		}
	}
	o = post(t, srv.URL+"/v1/score", `{"queries":["the cat","the dog"],"documents":["a cat and the cat","the cat"],"pooling":"mean"}`, 200)
	if got, want := o.at("data", 1, "score").(float64), angle(vector(1), vector(3)); math.Abs(got-want) > 1e-6 {
		t.Errorf("side by side: %v, want %v", got, want)
	}
}

// A model whose file says how states become an embedding needs no further
// word; one whose labels say nothing of relevance is refused.
func TestRerankByModel(t *testing.T) {
	tok := byteTokenizer(t)
	b := &script{tok: tok, reply: func(*engine.Request, int) string { return "" }}
	m := fakeModel(t, tok, b)
	s, err := New(Options{Models: []*run.Model{m}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	srv := httptest.NewServer(s.Handler())
	defer srv.Close()
	ask := func(status int) object {
		t.Helper()
		return post(t, srv.URL+"/rerank", `{"query":"x","documents":["a","b"]}`, status)
	}
	equal(t, "code", ask(400).at("error", "code"), "unsupported")
	m.Info().Pooling = engine.PoolingLast
	equal(t, "score", ask(200).at("results", 0, "relevance_score"), 1)
	equal(t, "pooling", b.last().Embed, engine.PoolingLast)
	m.Info().Labels = []string{"a", "b", "c"} // of no relevance
	equal(t, "code", ask(400).at("error", "code"), "unsupported")
}

// angle is the cosine of the angle between two vectors.
func angle(a, b []float32) float64 {
	dot := func(a, b []float32) (sum float64) {
		for i, x := range a {
			sum += float64(x) * float64(b[i])
		}
		return sum
	}
	return dot(a, b) / math.Sqrt(dot(a, a)*dot(b, b))
}
