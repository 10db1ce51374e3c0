package server

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"ridge/internal/testdata"
	"ridge/model"
)

// behaviour is something that vLLM's own tests of its API (tests/entrypoints) want
// of a server: a request and what its answer must be like.
type behaviour struct {
	name, path, body string
	status           int                          // 0: 200
	holds            func(o object) bool          // of an answer
	differs          string                       // why it does not hold here
	streams          func(evs, all []object) bool // of a stream: events with choices, all events but [DONE]
}

// say is a chat completion with more fields.
func say(more string) string {
	return `{"model":"tiny","messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"What is one plus one?"}],"temperature":0,` + more + `}`
}

// write is a completion with more fields.
func write(more string) string {
	return `{"model":"tiny","prompt":"Hello, my name is","temperature":0,` + more + `}`
}

// num is a number of an answer, NaN for none.
func num(v any) float64 {
	if f, ok := v.(float64); ok {
		return f
	}
	return math.NaN()
}

// text is the text of a choice.
func (o object) text(i int) string {
	if s, ok := o.at("choices", i, "text").(string); ok {
		return s
	}
	s, _ := o.at("choices", i, "message", "content").(string)
	return s
}

// count is the length of a list of an answer, -1 for none.
func (o object) count(path ...any) int {
	switch v := o.at(path...).(type) {
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	}
	return -1
}

// isError reports whether an answer is an error in OpenAI's form.
func isError(o object) bool {
	m, _ := o.at("error", "message").(string)
	kind, _ := o.at("error", "type").(string)
	return m != "" && kind != ""
}

const weatherTool = `"tools":[{"type":"function","function":{"name":"get_weather","description":"The weather of a city.","parameters":{"type":"object","properties":{"city":{"type":"string","enum":["Paris","Rome"]},"unit":{"type":"string","enum":["C","F"]}},"required":["city","unit"],"additionalProperties":false}}}]`

const personSchema = `{"type":"object","properties":{"name":{"type":"string","maxLength":8},"age":{"type":"integer","minimum":0,"maximum":99}},"required":["name","age"],"additionalProperties":false}`

// isPerson reports whether a text meets personSchema.
func isPerson(s string) bool {
	var o object
	age := math.NaN()
	if json.Unmarshal([]byte(s), &o) == nil {
		age = num(o["age"])
	}
	_, named := o["name"].(string)
	return named && age >= 0 && age <= 99 && len(o) == 2
}

// vllmCompletions are of tests/entrypoints of completions.
var vllmCompletions = []behaviour{
	{name: "one completion has a text, a reason and counts", body: write(`"max_tokens":5`), holds: func(o object) bool {
		return o.count("choices") == 1 && o.text(0) != "" && o.at("choices", 0, "finish_reason") == "length" && o.at("usage", "completion_tokens") == 5.0 &&
			num(o.at("usage", "total_tokens")) == num(o.at("usage", "prompt_tokens"))+5
	}},
	{name: "a prompt of tokens", body: `{"prompt":[1,4093,198,504],"max_tokens":5,"temperature":0}`, holds: func(o object) bool { return o.at("usage", "prompt_tokens") == 4.0 && o.text(0) != "" }},
	{name: "several prompts, in order", body: `{"prompt":["Hello, my name is","Hello, my name is","The sky"],"max_tokens":5,"temperature":0}`, holds: func(o object) bool {
		return o.count("choices") == 3 && o.text(0) == o.text(1) && o.text(0) != o.text(2) && o.at("choices", 2, "index") == 2.0
	}},
	{name: "several prompts of tokens, n each", body: `{"prompt":[[1,4093],[1,504]],"n":2,"max_tokens":3,"seed":1}`, holds: func(o object) bool { return o.count("choices") == 4 && o.at("choices", 3, "index") == 3.0 }},
	{name: "no logprobs unless asked for", body: write(`"max_tokens":2`), holds: func(o object) bool { return o.at("choices", 0, "logprobs") == nil }},
	{name: "logprobs 0 has those of the chosen tokens", body: write(`"max_tokens":5,"logprobs":0`), holds: func(o object) bool {
		return o.count("choices", 0, "logprobs", "token_logprobs") == 5 && o.count("choices", 0, "logprobs", "tokens") == 5 && o.count("choices", 0, "logprobs", "text_offset") == 5 && o.count("choices", 0, "logprobs", "top_logprobs", 0) <= 1
	}},
	{name: "logprobs 5 has five, with the chosen one among them", body: write(`"max_tokens":5,"logprobs":5`), holds: func(o object) bool {
		token, _ := o.at("choices", 0, "logprobs", "tokens", 0).(string)
		n := o.count("choices", 0, "logprobs", "top_logprobs", 0)
		return n >= 5 && n <= 6 && o.at("choices", 0, "logprobs", "top_logprobs", 0, token) == o.at("choices", 0, "logprobs", "token_logprobs", 0)
	}},
	{name: "too many logprobs are refused", body: write(`"max_tokens":5,"logprobs":5000`), status: 400, holds: isError},
	{name: "echo", body: write(`"max_tokens":3,"echo":true`), holds: func(o object) bool { return strings.HasPrefix(o.text(0), "Hello, my name is") && len(o.text(0)) > 18 }},
	{name: "echo of the prompt alone, with its logprobs", body: write(`"max_tokens":0,"echo":true,"logprobs":1`), holds: func(o object) bool {
		return o.text(0) == "Hello, my name is" && o.at("choices", 0, "logprobs", "token_logprobs", 0) == nil && num(o.at("choices", 0, "logprobs", "token_logprobs", 1)) < 0 && o.at("usage", "completion_tokens") == 0.0
	}},
	{name: "prompt_logprobs", body: write(`"max_tokens":1,"prompt_logprobs":1`), holds: func(o object) bool {
		n := int(num(o.at("usage", "prompt_tokens")))
		if o.count("choices", 0, "prompt_logprobs") != n || o.at("choices", 0, "prompt_logprobs", 0) != nil {
			return false
		}
		entry, _ := o.at("choices", 0, "prompt_logprobs", 1).(map[string]any)
		for id, v := range entry {
			e := object(v.(map[string]any))
			if regexp.MustCompile(`^\d+$`).MatchString(id) && num(e["logprob"]) <= 0 && num(e["rank"]) >= 1 && e["decoded_token"] != nil {
				return true
			}
		}
		return false
	}},
	{name: "negative prompt_logprobs are refused", body: write(`"max_tokens":1,"prompt_logprobs":-5`), status: 400, holds: isError},
	{name: "prompt_logprobs in a stream are refused", differs: "the first event of a choice has them", body: write(`"max_tokens":1,"prompt_logprobs":1,"stream":true`), status: 400, holds: isError},
	{name: "a stop text is left out", body: write(`"max_tokens":40,"stop":["e"]`), holds: func(o object) bool {
		return !strings.Contains(o.text(0), "e") && o.at("choices", 0, "finish_reason") == "stop" && o.at("choices", 0, "stop_reason") == "e"
	}},
	{name: "include_stop_str_in_output", body: write(`"max_tokens":40,"stop":"e","include_stop_str_in_output":true`), holds: func(o object) bool {
		return strings.HasSuffix(o.text(0), "e") && strings.Count(o.text(0), "e") == 1
	}},
	{name: "min_tokens", body: write(`"max_tokens":30,"min_tokens":20,"stop":["e"]`), holds: func(o object) bool { return num(o.at("usage", "completion_tokens")) >= 20 }},
	{name: "min_tokens above max_tokens are refused", body: write(`"max_tokens":3,"min_tokens":20`), status: 400, holds: isError},
	{name: "ignore_eos", body: write(`"max_tokens":60,"ignore_eos":true`), holds: func(o object) bool { return o.at("usage", "completion_tokens") == 60.0 }},
	{name: "allowed_token_ids", body: write(`"max_tokens":6,"allowed_token_ids":[504,1],"return_token_ids":true`), holds: func(o object) bool {
		ids, _ := o.at("choices", 0, "token_ids").([]any)
		for _, id := range ids {
			if id != 504.0 && id != 1.0 {
				return false
			}
		}
		return len(ids) > 0
	}},
	{name: "no allowed_token_ids at all are refused", body: write(`"max_tokens":6,"allowed_token_ids":[]`), status: 400, holds: isError},
	{name: "logit_bias", body: write(`"max_tokens":4,"logit_bias":{"504":100},"return_token_ids":true`), holds: func(o object) bool {
		return fmt.Sprint(o.at("choices", 0, "token_ids")) == "[504 504 504 504]"
	}},
	{name: "a logit_bias outside of the vocabulary is refused", body: write(`"max_tokens":4,"logit_bias":{"99999999":1}`), status: 400, holds: isError},
	{name: "return_tokens_as_token_ids", body: write(`"max_tokens":3,"logprobs":1,"return_tokens_as_token_ids":true`), holds: func(o object) bool {
		s, _ := o.at("choices", 0, "logprobs", "tokens", 0).(string)
		return regexp.MustCompile(`^token_id:\d+$`).MatchString(s)
	}},
	{name: "beam search", body: write(`"max_tokens":4,"n":2,"use_beam_search":true`), holds: func(o object) bool { return o.count("choices") == 2 && o.text(0) != o.text(1) }},
	{name: "a prompt that is too long is refused", body: `{"prompt":"` + strings.Repeat("word ", 900) + `","max_tokens":1}`, status: 400, holds: func(o object) bool {
		m, _ := o.at("error", "message").(string)
		return isError(o) && strings.Contains(m, "maximum context length")
	}},
	{name: "truncate_prompt_tokens", body: `{"prompt":"` + strings.Repeat("word ", 900) + `","max_tokens":1,"truncate_prompt_tokens":10}`, holds: func(o object) bool { return o.at("usage", "prompt_tokens") == 10.0 }},
	{name: "an empty prompt of tokens is refused", body: `{"prompt":[],"max_tokens":1}`, status: 400, holds: isError},
	{name: "a structure of choice", body: write(`"max_tokens":10,"structured_outputs":{"choice":["Python","Java"]}`), holds: func(o object) bool { return o.text(0) == "Python" || o.text(0) == "Java" }},
	{name: "a structure of regex", body: write(`"max_tokens":30,"structured_outputs":{"regex":"((25[0-5]|[0-9]{1,2})\\.){3}[0-9]{1,2}"}`), holds: func(o object) bool {
		return regexp.MustCompile(`^((25[0-5]|[0-9]{1,2})\.){3}[0-9]{1,2}$`).MatchString(o.text(0))
	}},
	{name: "a structure of grammar", body: write(`"max_tokens":30,"structured_outputs":{"grammar":"root ::= \"SELECT \" column \" FROM table\"\ncolumn ::= \"a\" | \"b\""}`), holds: func(o object) bool {
		return o.text(0) == "SELECT a FROM table" || o.text(0) == "SELECT b FROM table"
	}},
	{name: "a structure of JSON", body: write(`"max_tokens":60,"structured_outputs":{"json":` + personSchema + `}`), holds: func(o object) bool { return isPerson(o.text(0)) }},
	{name: "two structures at once are refused", body: write(`"max_tokens":6,"structured_outputs":{"regex":"a","choice":["b"]}`), status: 400, holds: isError},
	{name: "a stream gives the text of the whole answer", body: write(`"max_tokens":6,"stream":true`), streams: func(evs, all []object) bool {
		last := evs[len(evs)-1]
		return len(evs) >= 3 && last.at("choices", 0, "finish_reason") == "length" && evs[0].at("choices", 0, "finish_reason") == nil && all[0]["usage"] == nil
	}},
	{name: "include_usage", body: write(`"max_tokens":6,"stream":true,"stream_options":{"include_usage":true}`), streams: func(evs, all []object) bool {
		last := all[len(all)-1]
		return last.count("choices") == 0 && last.at("usage", "completion_tokens") == 6.0 && evs[0]["usage"] == nil
	}},
	{name: "continuous_usage_stats", body: write(`"max_tokens":6,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`), streams: func(evs, _ []object) bool {
		for _, e := range evs {
			if num(e.at("usage", "total_tokens")) != num(e.at("usage", "prompt_tokens"))+num(e.at("usage", "completion_tokens")) {
				return false
			}
		}
		return true
	}},
	{name: "stream_options without a stream are refused", differs: "they change nothing, as with llama-server", body: write(`"max_tokens":2,"stream_options":{"include_usage":true}`), status: 400, holds: isError},
}

// vllmOthers are of chats and of the other routes.
var vllmOthers = []behaviour{
	{name: "chat", path: "/v1/chat/completions", body: say(`"max_completion_tokens":5`), holds: func(o object) bool {
		return o.at("choices", 0, "message", "role") == "assistant" && o.text(0) != "" && o.at("usage", "completion_tokens") == 5.0 && strings.HasPrefix(o["id"].(string), "chatcmpl-")
	}},
	{name: "chat: logprobs with top_logprobs", path: "/v1/chat/completions", body: say(`"max_tokens":5,"logprobs":true,"top_logprobs":5`), holds: func(o object) bool {
		return o.count("choices", 0, "logprobs", "content") == 5 && o.count("choices", 0, "logprobs", "content", 0, "top_logprobs") == 5 && o.at("choices", 0, "logprobs", "content", 0, "bytes") != nil
	}},
	{name: "chat: logprobs with top_logprobs 0", path: "/v1/chat/completions", body: say(`"max_tokens":5,"logprobs":true,"top_logprobs":0`), holds: func(o object) bool {
		return o.count("choices", 0, "logprobs", "content") == 5 && o.count("choices", 0, "logprobs", "content", 0, "top_logprobs") == 0
	}},
	{name: "chat: too many top_logprobs are refused", path: "/v1/chat/completions", body: say(`"max_tokens":5,"logprobs":true,"top_logprobs":2100`), status: 400, holds: isError},
	{name: "chat: response_format json_schema", path: "/v1/chat/completions", body: say(`"max_tokens":60,"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":` + personSchema + `}}`), holds: func(o object) bool { return isPerson(o.text(0)) }},
	{name: "chat: a structure and logprobs", path: "/v1/chat/completions", body: say(`"max_tokens":10,"logprobs":true,"top_logprobs":5,"structured_outputs":{"choice":["Python","Java"]}`), holds: func(o object) bool {
		return (o.text(0) == "Python" || o.text(0) == "Java") && num(o.at("choices", 0, "logprobs", "content", 0, "logprob")) <= 0
	}},
	{name: "chat: a named tool", path: "/v1/chat/completions", body: say(`"max_tokens":200,` + weatherTool + `,"tool_choice":{"type":"function","function":{"name":"get_weather"}}`), holds: func(o object) bool {
		s, _ := o.at("choices", 0, "message", "tool_calls", 0, "function", "arguments").(string)
		return regexp.MustCompile(`^\{\s*"city":\s*"(Paris|Rome)",\s*"unit":\s*"[CF]"\s*\}$`).MatchString(s) && o.at("choices", 0, "message", "tool_calls", 0, "function", "name") == "get_weather"
	}},
	{name: "chat: a tool is required", path: "/v1/chat/completions", body: say(`"max_tokens":200,` + weatherTool + `,"tool_choice":"required","parallel_tool_calls":false`), holds: func(o object) bool {
		return o.count("choices", 0, "message", "tool_calls") >= 1 && o.at("choices", 0, "finish_reason") == "tool_calls"
	}},
	{name: "chat: a tool that is not there is refused", path: "/v1/chat/completions", body: say(`"max_tokens":200,` + weatherTool + `,"tool_choice":{"type":"function","function":{"name":"nothing"}}`), status: 400, holds: isError},
	{name: "chat: the first event has the role, later ones none", path: "/v1/chat/completions", body: say(`"max_tokens":5,"stream":true`), streams: func(evs, _ []object) bool {
		return evs[0].at("choices", 0, "delta", "role") == "assistant" && evs[1].at("choices", 0, "delta", "role") == nil && evs[len(evs)-1].at("choices", 0, "finish_reason") == "length"
	}},
	{name: "tokenize and back", path: "/tokenize", body: `{"model":"tiny","prompt":"This is a test prompt.","add_special_tokens":false,"return_token_strs":true}`, holds: func(o object) bool {
		return o.count("tokens") == int(num(o["count"])) && o.count("tokens") == o.count("token_strs") && num(o["max_model_len"]) > 0
	}},
	{name: "tokenize a chat", path: "/tokenize", body: say(`"add_generation_prompt":true`), holds: func(o object) bool { return num(o["count"]) > 10 }},
	{name: "detokenize", path: "/detokenize", body: `{"model":"tiny","tokens":[504]}`, holds: func(o object) bool { return o["prompt"] == "The" }},
	{name: "embeddings in base64 are those in floats", path: "/v1/embeddings", body: `{"input":["a cat"],"pooling":"mean","encoding_format":"base64"}`, holds: func(o object) bool {
		s, _ := o.at("data", 0, "embedding").(string)
		b, err := base64.StdEncoding.DecodeString(s)
		return err == nil && len(b) > 0 && len(b)%4 == 0
	}},
	{name: "an unknown model is not found", path: "/v1/chat/completions", body: `{"model":"none","messages":[{"role":"user","content":"x"}]}`, status: 404, holds: isError},
}

// Of 51 things that vLLM's tests of its API want of a server all hold here but
// those that say why not.
func TestVLLMBehaviours(t *testing.T) {
	mm, err := model.Open(testdata.Tiny, model.Options{Workers: 1, PageTokens: 16, KVBytes: 8 << 20, MaxContext: 512})
	if err != nil {
		t.Fatal(err)
	}
	srv := serve(t, mm, testdata.Tiny)
	rows := append(append([]behaviour{}, vllmCompletions...), vllmOthers...)
	if len(rows) != 51 {
		t.Errorf("%d behaviours, want 51", len(rows))
	}
	held := 0
	for _, b := range rows {
		if b.path == "" {
			b.path = "/v1/completions"
		}
		if b.status == 0 {
			b.status = http.StatusOK
		}
		status, _, answer := send(t, http.MethodPost, srv.URL+b.path, b.body)
		var o object
		ok := status == b.status
		switch {
		case !ok:
		case b.streams != nil:
			var evs, all []object
			_, got := eventsOf(t, answer)
			for _, e := range got {
				if e == nil {
					continue
				}
				all = append(all, e)
				if e.count("choices") > 0 {
					evs = append(evs, e)
				}
			}
			ok = len(evs) > 1 && got[len(got)-1] == nil && b.streams(evs, all)
		default:
			ok = json.Unmarshal(answer, &o) == nil && b.holds(o)
		}
		switch {
		case ok:
			held++
		case b.differs != "":
			t.Logf("%s: not here: %s", b.name, b.differs)
		default:
			t.Errorf("%s: %s: status %d: %.600s", b.name, b.body, status, answer)
		}
		if ok && b.differs != "" {
			t.Errorf("%s: it holds, and is said not to", b.name)
		}
	}
	t.Logf("%d of %d", held, len(rows))
}
