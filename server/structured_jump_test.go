package server

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/model"
	"ridge/sched"
	"ridge/server/run"
	"ridge/weights/tensor"
)

// randomSchema returns a schema of values of bounded size, with names of many
// tokens.
func randomSchema(r *rand.Rand, depth int) string {
	kind := r.IntN(8)
	if depth == 0 {
		kind = 2 + r.IntN(6)
	}
	switch kind {
	case 0, 1:
		names := []string{"first_name_of_customer", "größe", "a", "total price (EUR)", "日本語のキー", "isVerified", "x\\\"y", "created_at"}
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		var props, required []string
		for _, n := range names[:1+r.IntN(4)] {
			props = append(props, fmt.Sprintf(`"%s":%s`, n, randomSchema(r, depth-1)))
			if r.IntN(4) > 0 {
				required = append(required, `"`+n+`"`)
			}
		}
		return fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}`, strings.Join(props, ","), strings.Join(required, ","))
	case 2:
		return fmt.Sprintf(`{"type":"array","items":%s,"maxItems":%d}`, randomSchema(r, max(depth-1, 0)), 1+r.IntN(2))
	case 3:
		return `{"type":"string","maxLength":6}`
	case 4:
		return `{"type":"integer","minimum":-5,"maximum":1200}`
	case 5:
		return `{"enum":["in progress","in preparation","été",null,17]}`
	case 6:
		return `{"const":{"version":"1.0","kind of thing":["long text that is forced",true]}}`
	}
	return `{"type":"boolean"}`
}

// jumpCase is a request with jump-ahead and what it got alone.
type jumpCase struct{ schema, body, text, tokens string }

func askJump(t *testing.T, srv *httptest.Server, c *jumpCase) object {
	t.Helper()
	return post(t, srv.URL+"/v1/completions", c.body, 200)
}

// Every document meets its schema, and is the same alone and among others, in
// small steps, with a small memory and with a warm cache.
func TestJumpAheadDocuments(t *testing.T) { jumpDocuments(t, testdata.Tiny, 40) }
func TestJumpAheadDocumentsOfRealModel(t *testing.T) {
	jumpDocuments(t, testdata.Model(t, "smollm2"), 8)
}

func jumpDocuments(t *testing.T, path string, n int) {
	page := int64(0) // bytes
	open := func(memory int64, eo engine.Options) (*Server, *httptest.Server) {
		mm, err := model.Open(path, model.Options{KV: tensor.F16, MaxContext: 1024, KVBytes: memory, PageTokens: 16})
		if err != nil {
			t.Fatal(err)
		}
		page = mm.Pool().Stats().PageBytes
		return serveAs(t, mm, run.ModelConfig{Path: path}, eo)
	}
	s, srv := open(32<<20, engine.Options{})
	r := rand.New(rand.NewPCG(8, 1))
	cases, complete := make([]*jumpCase, n), 0
	for i := range cases {
		schema := randomSchema(r, 3)
		for !strings.Contains(schema, "properties") {
			schema = randomSchema(r, 3)
		}
		body, _ := json.Marshal(map[string]any{
			"prompt": "Customer record in JSON:\n", "seed": i, "temperature": float64(i%3) / 2, "max_tokens": 160, "return_token_ids": true, "frequency_penalty": float64(i%2) / 4,
			"structured_outputs": map[string]any{"json": json.RawMessage(schema), "jump_ahead": true},
		})
		c := &jumpCase{schema: schema, body: string(body)}
		o := askJump(t, srv, c)
		c.text, c.tokens = o.at("choices", 0, "text").(string), fmt.Sprint(o.at("choices", 0, "token_ids"))
		cases[i] = c
		if o.at("choices", 0, "finish_reason") == "stop" {
			complete++
			if err := validate(schema, c.text); err != nil {
				t.Errorf("%s: %q: %v", schema, c.text, err)
			}
		}
	}
	st := s.o.Models[0].Stats()
	t.Logf("%d of %d complete; %d tokens, %d of them forced, %d steps", complete, n, st.Tokens, st.Forced, st.Steps)
	if complete*2 < n || st.Forced*4 < st.Tokens || st.Steps > st.Tokens-st.Forced/2 {
		t.Errorf("%d of %d complete; %d tokens, %d of them forced, %d steps", complete, n, st.Tokens, st.Forced, st.Steps)
	}
	cfg := sched.Config{Split: true, MaxTokens: 11, MaxSeqs: 8, Recovery: sched.Recompute}
	s, srv = open(13*page, engine.Options{Sched: &cfg})
	var wg sync.WaitGroup
	for round := range 2 {
		for i, c := range cases {
			wg.Go(func() {
				if got := fmt.Sprint(askJump(t, srv, c).at("choices", 0, "token_ids")); got != c.tokens {
					t.Errorf("round %d, case %d: got %s, want %s", round, i, got, c.tokens)
				}
			})
		}
		wg.Wait()
	}
	if st := s.o.Models[0].Stats().Sched; st.Recomputes == 0 && path == testdata.Tiny {
		t.Errorf("nobody was preempted: %+v", st)
	}
}

// validate checks a document with an independent implementation.
func validate(schema, text string) error {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///s", doc); err != nil {
		return err
	}
	sch, err := c.Compile("mem:///s")
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return sch.Validate(v)
}

// Where the text is forced as a whole it is the same with jump-ahead, in fewer
// steps, and the response says how many tokens were not drawn.
func TestJumpAheadOfConst(t *testing.T) {
	s, srv := serveAs(t, openTiny(t, tinyPath, 1), run.ModelConfig{Path: tinyPath}, engine.Options{})
	body := func(extra string) string {
		return `{"prompt":"x","temperature":0,"max_tokens":100,"response_format":{"type":"json_schema","json_schema":{"name":"c","schema":{"const":{"name":"a cat and a dog","n":12}}}}` + extra + `}`
	}
	ask := func(extra string) (text string, tokens, forced float64, steps int64) {
		before := s.o.Models[0].Stats().Steps
		o := post(t, srv.URL+"/v1/completions", body(extra), 200)
		forced, _ = o.at("usage", "completion_tokens_details", "jump_ahead_tokens").(float64)
		equal(t, "finish", o.at("choices", 0, "finish_reason"), "stop")
		return o.at("choices", 0, "text").(string), o.at("usage", "completion_tokens").(float64), forced, s.o.Models[0].Stats().Steps - before
	}
	var want any = map[string]any{"name": "a cat and a dog", "n": 12.0}
	plain, _, none, slow := ask("")
	text, tokens, forced, steps := ask(`,"jump_ahead":true`)
	for _, s := range []string{plain, text} {
		var v any
		if err := json.Unmarshal([]byte(s), &v); err != nil || fmt.Sprint(v) != fmt.Sprint(want) {
			t.Errorf("got %q: %v", s, err)
		}
	}
	if none != 0 || forced != tokens || steps != 1 || slow < 20 {
		t.Errorf("%v and %v of %v tokens forced, in %d and %d steps", none, forced, tokens, slow, steps)
	}
	// Log-probabilities need a step more, in which no token is drawn.
	if again, _, _, steps := ask(`,"jump_ahead":true,"logprobs":1`); again != text || steps != 2 {
		t.Errorf("%q in %d steps", again, steps)
	}
	_, _, b := send(t, "GET", srv.URL+"/metrics", "")
	if want := fmt.Sprintf("ridge_jump_ahead_tokens_total{model=\"tiny\"} %v", 2*forced); !strings.Contains(string(b), want) {
		t.Errorf("metrics have no %q", want)
	}
}

// Every protocol says how many tokens were not drawn, where its counts are, and
// says nothing of it where all were.
func TestJumpAheadCounts(t *testing.T) {
	_, srv := serveAs(t, openTiny(t, tinyPath, 1), run.ModelConfig{Path: tinyPath, JumpAhead: true}, engine.Options{})
	const schema = `{"const":{"name":"a cat and a dog"}}`
	for _, c := range []struct {
		path, body, format, usage string
		tokens, forced            []any
	}{
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"x"}],"max_tokens":60,"stream_options":{"include_usage":true}`, `"response_format":{"type":"json_schema","json_schema":{"name":"c","schema":` + schema + `}}`, "usage",
			[]any{"completion_tokens"}, []any{"completion_tokens_details", "jump_ahead_tokens"}},
		{"/v1/responses", `"input":"x","max_output_tokens":60`, `"text":{"format":{"type":"json_schema","name":"c","schema":` + schema + `}}`, "usage",
			[]any{"output_tokens"}, []any{"output_tokens_details", "jump_ahead_tokens"}},
		{"/v1/messages", `"messages":[{"role":"user","content":"x"}],"max_tokens":60`, `"output_format":{"type":"json_schema","schema":` + schema + `}`, "usage",
			[]any{"output_tokens"}, []any{"jump_ahead_tokens"}},
		{"/api/chat", `"messages":[{"role":"user","content":"x"}],"options":{"num_predict":60}`, `"format":` + schema, "", []any{"eval_count"}, []any{"jump_ahead_tokens"}},
		{"/api/generate", `"prompt":"x","options":{"num_predict":60}`, `"format":` + schema, "", []any{"eval_count"}, []any{"jump_ahead_tokens"}},
		{"/completion", `"prompt":"x","n_predict":60`, `"json_schema":` + schema, "timings", []any{"predicted_n"}, []any{"jump_ahead_n"}},
	} {
		for _, stream := range []bool{false, true} {
			for _, format := range []string{c.format, `"seed":1`} {
				body := fmt.Sprintf(`{"model":"tiny","stream":%v,%s,%s}`, stream, c.body, format)
				var last object // what has the counts
				switch {
				case !stream:
					last = post(t, srv.URL+c.path, body, 200)
				case strings.HasPrefix(c.path, "/api/"):
					all := lines(t, srv.URL+c.path, body)
					last = all[len(all)-1]
				default:
					_, all := sse(t, srv.URL+c.path, body)
					for _, o := range all {
						if r, ok := o["response"].(map[string]any); ok {
							o = r
						}
						if o[c.usage] != nil {
							last = o
						}
					}
				}
				if c.usage != "" {
					last, _ = last[c.usage].(map[string]any)
				}
				tokens, forced := last.at(c.tokens...), last.at(c.forced...)
				if format == c.format && (forced == nil || forced != tokens) || format != c.format && (forced != nil || tokens == nil) {
					t.Errorf("%s, stream %v, %s: %v of %v tokens forced in %v", c.path, stream, format, forced, tokens, last)
				}
			}
		}
	}
}

// Stop strings and limits end an answer within forced text, and a stream has the
// same text in pieces.
func TestJumpAheadLimits(t *testing.T) {
	srv := tiny(t)
	const format = `"prompt":"x","temperature":0,"structured_outputs":{"regex":"(the cat and the dog, ){3}[ab]{3}","jump_ahead":true}`
	text := func(extra string) (string, any) {
		o := post(t, srv.URL+"/v1/completions", `{`+format+extra+`}`, 200)
		return o.at("choices", 0, "text").(string), o.at("choices", 0, "finish_reason")
	}
	whole, why := text(`,"max_tokens":100`)
	if !strings.HasPrefix(whole, "the cat and the dog, the cat") || len(whole) != 66 || why != "stop" {
		t.Errorf("got %q, %v", whole, why)
	}
	if got, why := text(`,"max_tokens":100,"stop":[" dog, the"]`); got != "the cat and the" || why != "stop" {
		t.Errorf("with a stop string: %q, %v", got, why)
	}
	if got, why := text(`,"max_tokens":3`); why != "length" || got == "" || !strings.HasPrefix(whole, got) {
		t.Errorf("of 3 tokens: %q, %v", got, why)
	}
	_, evs := sse(t, srv.URL+"/v1/completions", `{`+format+`,"max_tokens":100,"stream":true}`)
	streamed := ""
	for _, e := range evs[:len(evs)-1] {
		streamed += e.at("choices", 0, "text").(string)
	}
	equal(t, "streamed", streamed, whole)
}

func TestJumpAheadRequests(t *testing.T) {
	var m *run.Model
	srv, b := scripted(t, `{"sum":3}`, func(o *Options, _ *script) { m = o.Models[0] })
	for body, want := range map[string]string{
		`"jump_ahead":true`: "structured output",
		`"jump_ahead":true,` + sumFormat + `,"bad_words":["x"]`:         "bad_words",
		`"jump_ahead":true,` + sumFormat + `,"allowed_token_ids":[1,2]`: "allowed_token_ids",
	} {
		o := post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],`+body+`}`, 400)
		if msg := o.at("error", "message").(string); !strings.Contains(msg, "jump_ahead") || !strings.Contains(msg, want) {
			t.Errorf("%s: %s", body, msg)
		}
	}
	// With it there is one way to space JSON. While the model may choose to
	// reason first nothing is forced.
	for extra, forced := range map[string]string{
		sumFormat + `,"reasoning_effort":"none"`:                        `{"sum": `,
		addTool + `,"tool_choice":"required","reasoning_effort":"none"`: "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": ",
		sumFormat: "",
	} {
		post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"jump_ahead":true,`+extra+`}`, 200)
		r := b.last()
		j, ok := r.NewMasker().(engine.Jumper)
		if !ok || !r.JumpAhead {
			t.Fatalf("%s: no jump-ahead", extra)
		}
		equal(t, extra, b.tok.DecodeSpecial(j.Jump(nil)), forced)
	}
	post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],`+sumFormat+`}`, 200)
	if b.last().JumpAhead {
		t.Error("jump-ahead without being asked for")
	}
	// A model may have it as its default.
	m.Info().JumpAhead = true
	for body, want := range map[string]bool{sumFormat: true, sumFormat + `,"jump_ahead":false`: false, sumFormat + `,"bad_words":["x"]`: false, `"n":1`: false} {
		post(t, srv.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],`+body+`}`, 200)
		equal(t, body, b.last().JumpAhead, want)
	}
	// What forces nothing is no error for it, with several prompts either.
	post(t, srv.URL+"/v1/completions", `{"prompt":["x","y"]}`, 200)
	post(t, srv.URL+"/api/chat", `{"model":"fake","stream":false,"messages":[{"role":"user","content":"x"}],"format":{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}}`, 200)
	equal(t, "Ollama", b.last().JumpAhead, true)
}
