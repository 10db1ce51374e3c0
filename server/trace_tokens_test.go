package server

import (
	"encoding/json"
	"math"
	"testing"

	"ridge/server/probs"
)

// traced is a choice as far as these tests read it.
type traced struct {
	Trace    []probs.Trace `json:"ridge_trace"`
	Finish   *string       `json:"finish_reason"`
	Logprobs *struct {
		Content []probs.ChatToken `json:"content"`
	} `json:"logprobs"`
}

func choicesOf(t testing.TB, o object) (out []traced) {
	t.Helper()
	b, _ := json.Marshal(o["choices"])
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The trace of an answer has the probabilities of its log-probabilities, in a stream
// the same as in one piece, and its cuts are those of the request.
func TestTraceTokens(t *testing.T) {
	srv := tiny(t)
	const body = `{"messages":[{"role":"user","content":"the cat"}],"max_tokens":12,"ignore_eos":true,"temperature":1.5,"top_k":6,"top_p":0.9,"seed":7,` +
		`"logprobs":true,"top_logprobs":10,"ridge_trace":true`
	whole := post(t, srv.URL+"/v1/chat/completions", body+"}", 200)
	c := choicesOf(t, whole)[0]
	if len(c.Trace) != 12 || len(c.Logprobs.Content) != 12 {
		t.Fatalf("%d tokens are traced, %d have log-probabilities", len(c.Trace), len(c.Logprobs.Content))
	}
	for i, x := range c.Trace {
		p := c.Logprobs.Content[i]
		if math.Abs(x.Prob-math.Exp(float64(p.Logprob))) > 1e-6 || x.Text.Text != p.Token || len(x.Top) != 10 || x.Forced || x.Drafted || x.Entropy <= 0 {
			t.Errorf("token %d: %+v, log-probabilities %+v", i, x, p)
		}
		kept, sum := 0, 0.0
		for k, o := range x.Top {
			if math.Abs(o.Prob-math.Exp(float64(p.Top[k].Logprob))) > 1e-6 || o.Text != p.Top[k].Token {
				t.Errorf("token %d: %+v, want %+v", i, o, p.Top[k])
			}
			switch {
			case o.Cut == nil:
				if kept++; k >= 6 {
					t.Errorf("token %d: the %dth is kept of 6", i, k+1)
				}
				sum += o.Prob
			case *o.Cut != "top_p" && k < 6 || *o.Cut != "top_k" && k >= 6:
				t.Errorf("token %d: the %dth is cut by %s", i, k+1, *o.Cut)
			}
		}
		if kept != x.Kept {
			t.Errorf("token %d: %d are kept, %d are told", i, x.Kept, kept)
		}
	}
	if got := whole.at("timings", "seed"); got != 7.0 {
		t.Errorf("seed %v", got)
	}
	_, chunks := sse(t, srv.URL+"/v1/chat/completions", body+`,"stream":true,"stream_options":{"include_usage":true}}`)
	var streamed []probs.Trace
	for _, o := range chunks {
		for _, c := range choicesOf(t, o) {
			streamed = append(streamed, c.Trace...)
		}
	}
	a, _ := json.Marshal(c.Trace)
	b, _ := json.Marshal(streamed)
	if string(a) != string(b) {
		t.Errorf("in one piece %s\nin a stream %s", a, b)
	}
	best := choicesOf(t, post(t, srv.URL+"/v1/completions", `{"prompt":"the cat","max_tokens":4,"ignore_eos":true,"temperature":1,"seed":7,"best_of":3,"ridge_trace":true}`, 200))
	if len(best[0].Trace) != 4 || best[0].Trace[3].Kept < 100 {
		t.Errorf("the best of three: %+v", best)
	}
	plain, _ := json.Marshal(post(t, srv.URL+"/v1/chat/completions", body[:len(body)-len(`,"ridge_trace":true`)]+"}", 200).at("choices", 0, "logprobs"))
	if traced, _ := json.Marshal(whole.at("choices", 0, "logprobs")); string(plain) != string(traced) {
		t.Error("a trace changes the answer")
	}
	post(t, srv.URL+"/v1/completions", `{"prompt":"the cat","n":2,"use_beam_search":true,"ridge_trace":true}`, 400)
}

// Where a grammar leaves one token, the trace says so, whether it was drawn or not.
func TestTraceForced(t *testing.T) {
	srv := tiny(t)
	for _, jump := range []string{"false", "true"} {
		o := post(t, srv.URL+"/v1/completions", `{"prompt":"the cat","max_tokens":40,"temperature":1,"seed":3,"structured_outputs":{"regex":"abcabc[xyz]"},"jump_ahead":`+jump+`,"ridge_trace":true}`, 200)
		c := choicesOf(t, o)[0]
		if len(c.Trace) < 2 {
			t.Fatalf("%+v", o)
		}
		drafted := 0
		for _, x := range c.Trace {
			if x.Drafted {
				drafted++
			}
			if x.Drafted && (!x.Forced || x.Kept != 1) {
				t.Errorf("%+v", x)
			}
			for _, o := range x.Top {
				if (o.Cut == nil) != (o.ID == x.ID) && x.Kept == 1 {
					t.Errorf("%+v: %+v", x, o)
				}
			}
		}
		if (drafted > 0) != (jump == "true") {
			t.Errorf("jump_ahead %s: %d tokens were not drawn", jump, drafted)
		}
	}
}

// What ends an answer too early is named.
func TestTraceMinTokens(t *testing.T) {
	srv := tiny(t)
	var all []int
	for i := range 100 {
		all = append(all, i)
	}
	stops, _ := json.Marshal(all)
	c := choicesOf(t, post(t, srv.URL+"/v1/completions", `{"prompt":"the cat","max_tokens":3,"min_tokens":1,"temperature":0,"stop_token_ids":`+string(stops)+`,"ridge_trace":true}`, 200))[0]
	if len(c.Trace) == 0 {
		t.Fatal("no trace")
	}
	found := false
	for _, o := range c.Trace[0].Top {
		found = found || o.Cut != nil && *o.Cut == "min_tokens"
	}
	if !found {
		t.Errorf("%+v", c.Trace[0])
	}
}
