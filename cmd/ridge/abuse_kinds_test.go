//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
)

// act is what a client does to a server.
type act func(a *abuse, r *rand.Rand)

// one returns one of several.
func one(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// same is a body that is made once: the machine has the server to run.
func same(body func() string) func(*rand.Rand) string {
	body = sync.OnceValue(body)
	return func(*rand.Rand) string { return body() }
}

// posting is an act that posts a body.
func posting(kind, path string, body func(r *rand.Rand) string) act {
	return func(a *abuse, r *rand.Rand) { a.send(kind, path, body(r)) }
}

// chatWith is the body of a chat completion with more fields.
func chatWith(more string) func(*rand.Rand) string {
	return func(*rand.Rand) string {
		return `{"messages":[{"role":"user","content":"Hello."}],"max_tokens":8,` + more + `}`
	}
}

// held is the body of a chat completion held to a schema.
func held(schema string) func(*rand.Rand) string {
	return chatWith(`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + schema + `}}`)
}

// ordinary is what clients of all dialects do.
var ordinary = []act{
	posting("chat", "/v1/chat/completions", func(r *rand.Rand) string {
		return fmt.Sprintf(`{"messages":[{"role":"user","content":"Say %d."}],"max_tokens":%d,"stream":%v%s}`, r.IntN(99), 1+r.IntN(16), r.IntN(2) == 0,
			one(r, ``, `,"logprobs":true,"top_logprobs":3`, `,"n":2`, `,"stop":["a"]`, `,"response_format":{"type":"json_object"}`, `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"type":"integer"}}}}}],"tool_choice":"required"`))
	}),
	posting("completion", "/v1/completions", func(r *rand.Rand) string {
		return fmt.Sprintf(`{"prompt":"Once upon a time %d","max_tokens":%d,"stream":%v%s}`, r.IntN(99), 1+r.IntN(16), r.IntN(2) == 0, one(r, ``, `,"echo":true,"logprobs":1`, `,"regex":"[a-z ]+"`, `,"top_k":4`))
	}),
	posting("messages", "/v1/messages", func(r *rand.Rand) string {
		return fmt.Sprintf(`{"model":"tiny","max_tokens":%d,"messages":[{"role":"user","content":"Say %d."}],"stream":%v}`, 1+r.IntN(16), r.IntN(99), r.IntN(2) == 0)
	}),
	posting("ollama", "/api/chat", func(r *rand.Rand) string {
		return fmt.Sprintf(`{"model":"tiny","messages":[{"role":"user","content":"Say %d."}],"options":{"num_predict":%d},"stream":%v}`, r.IntN(99), 1+r.IntN(16), r.IntN(2) == 0)
	}),
	posting("generate", "/api/generate", func(r *rand.Rand) string {
		return fmt.Sprintf(`{"model":"tiny","prompt":"Say %d.","options":{"num_predict":%d}}`, r.IntN(99), 1+r.IntN(16))
	}),
	posting("responses", "/v1/responses", func(r *rand.Rand) string {
		return fmt.Sprintf(`{"input":"Say %d.","max_output_tokens":%d,"stream":%v}`, r.IntN(99), 1+r.IntN(16), r.IntN(2) == 0)
	}),
	posting("llama", "/completion", func(r *rand.Rand) string {
		return fmt.Sprintf(`{"prompt":"Say %d.","n_predict":%d,"stream":%v}`, r.IntN(99), 1+r.IntN(16), r.IntN(2) == 0)
	}),
	posting("embeddings", "/v1/embeddings", func(r *rand.Rand) string {
		return fmt.Sprintf(`{"input":["a cat","%d dogs"],"pooling":"mean"}`, r.IntN(99))
	}),
	posting("rerank", "/v1/rerank", func(r *rand.Rand) string { return `{"query":"a cat","documents":["cats","dogs"],"pooling":"mean"}` }),
	posting("tokenize", "/tokenize", func(r *rand.Rand) string { return `{"content":"a cat and a dog"}` }),
	posting("bad", "/v1/chat/completions", func(r *rand.Rand) string {
		return one(r, `{`, `[]`, `{"messages":1}`, `{"messages":[]}`, `{"messages":[{"role":"user","content":"x"}],"temperature":-1}`, `{"model":"none","messages":[{"role":"user","content":"x"}]}`, "\x00", `{"messages":[{"role":"user","content":"x"}],"grammar":"root ::= ("}`)
	}),
}

// largeBytes is what a large body has.
var largeBytes = 3_000_000

// large is so much of a text.
func large(s string) string { return strings.Repeat(s, largeBytes/len(s)) }

// hostile is what means harm.
var hostile = []act{
	// programs in place of templates: endless, wide, deep
	posting("template-loop", "/v1/chat/completions", chatWith(`"chat_template":"{% for a in range(100000) %}{% for b in range(100000) %}{{ a }}{% endfor %}{% endfor %}"`)),
	posting("template-double", "/v1/chat/completions", chatWith(`"chat_template":"{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}"`)),
	posting("template-deep", "/apply-template", chatWith(`"chat_template":"{% macro f(x) %}{{ f(x + 1) }}{% endmacro %}{{ f(0) }}"`)),
	posting("template-nested", "/v1/chat/completions", chatWith(`"chat_template":"`+strings.Repeat("{% if true %}", 15000)+strings.Repeat("{% endif %}", 15000)+`"`)),
	// large texts, in every place that takes one
	posting("large-prompt", "/v1/completions", same(func() string { return `{"prompt":"` + large("many words ") + `","max_tokens":4}` })),
	posting("large-message", "/v1/chat/completions", same(func() string {
		return `{"messages":[{"role":"user","content":"` + large("ab") + `"}],"max_tokens":4}`
	})),
	posting("large-turns", "/v1/messages", same(func() string {
		return `{"max_tokens":4,"messages":[` + strings.TrimSuffix(large(`{"role":"user","content":"x"},`), ",") + `]}`
	})),
	posting("large-tokenize", "/tokenize", same(func() string { return `{"content":"` + large("日本") + `"}` })),
	posting("large-detokenize", "/detokenize", same(func() string { return `{"tokens":[` + large("11,") + `1]}` })),
	posting("large-tokens", "/v1/completions", same(func() string { return `{"prompt":[` + large("11,") + `1]}` })),
	posting("large-prompts", "/v1/completions", same(func() string { return `{"prompt":[` + large(`"a",`) + `"b"]}` })),
	posting("large-embeddings", "/v1/embeddings", same(func() string { return `{"input":[` + large(`"a",`) + `"b"],"pooling":"mean"}` })),
	posting("large-rerank", "/v1/rerank", same(func() string {
		return `{"query":"a","documents":[` + large(`"a",`) + `"b"],"pooling":"mean"}`
	})),
	posting("large-ollama", "/api/generate", same(func() string { return `{"model":"tiny","prompt":"` + large(" ") + `"}` })),
	posting("large-input", "/v1/responses", same(func() string { return `{"input":"` + large("x") + `"}` })),
	posting("large-stop", "/v1/completions", chatWith(`"prompt":"x","stop":["`+strings.Repeat("x", 1<<20)+`"]`)),
	posting("large-bias", "/v1/completions", same(func() string {
		var b strings.Builder
		for i := range 200000 {
			fmt.Fprintf(&b, `"%d":1,`, i)
		}
		return `{"prompt":"x","max_tokens":2,"logit_bias":{` + strings.TrimSuffix(b.String(), ",") + `}}`
	})),
	posting("deep", "/v1/chat/completions", same(func() string { return `{"messages":` + large("[") })),
	func(a *abuse, r *rand.Rand) {
		a.send("bomb", "/v1/chat/completions", bomb(r), "Content-Encoding", "gzip")
	},
	// schemas, patterns and grammars that cost more than they say
	posting("schema-allof", "/v1/chat/completions", held(allOf(24))),
	posting("schema-enum", "/v1/chat/completions", held(`{"enum":[`+list(100000, `"v%d"`)+`]}`)),
	posting("schema-optional", "/v1/chat/completions", held(`{"type":"object","properties":{`+list(4000, `"p%d":{"type":"integer"}`)+`}}`)),
	posting("schema-anyof", "/v1/chat/completions", held(`{"allOf":[`+list(14, `{"anyOf":[{"properties":{"a%[1]d":{"type":"string"}},"required":["a%[1]d"]},{"properties":{"b%[1]d":{"type":"string"}},"required":["b%[1]d"]}]}`)+`]}`)),
	posting("schema-length", "/v1/chat/completions", held(`{"type":"array","items":{"type":"string","minLength":100000,"maxLength":1000000},"minItems":100000}`)),
	posting("schema-ref", "/v1/chat/completions", held(`{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/a"}]},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`)),
	posting("schema-unique", "/v1/chat/completions", held(`{"type":"array","items":{"type":"string","maxLength":40},"uniqueItems":true,"maxItems":1000}`)),
	posting("tools", "/v1/chat/completions", chatWith(`"tool_choice":"required","tools":[`+list(1000, `{"type":"function","function":{"name":"f%d","parameters":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"number"}}}}}}`)+`]`)),
	posting("regex", "/v1/completions", func(r *rand.Rand) string {
		return `{"prompt":"x","max_tokens":4,"regex":"` + one(r, `((a{1,1000}){1,1000}){1,1000}`, `(a|b)*a(a|b){40}`, `(.*)*(.*)*(.*)*x`, strings.Repeat(`(`, 50000), `[\\u0000-\\uffff]{5000}`, `(?=.*a)(?=.*b)(?=.*c)(?=.*d)(?=.*e)(?=.*f).{8,400}`) + `"}`
	}),
	posting("choice", "/v1/completions", func(*rand.Rand) string {
		return `{"prompt":"x","max_tokens":4,"structured_outputs":{"choice":[` + list(100000, `"choice %d"`) + `]}}`
	}),
	posting("gbnf", "/v1/completions", func(r *rand.Rand) string {
		return `{"prompt":"x","max_tokens":4,"grammar":"` + one(r, `root ::= root root | \"a\"`, `root ::= (\"a\"{1000}){1000}`, `root ::= a a\na ::= b b\nb ::= c c\nc ::= d d\nd ::= e e\ne ::= f f\nf ::= [a-z]* [a-z]*`, `root ::= `+strings.Repeat(`(\"a\" | `, 20000)) + `"}`
	}),
	// those who leave
	func(a *abuse, r *rand.Rand) {
		body := fmt.Sprintf(`{"prompt":"x %d","max_tokens":500,"ignore_eos":true,"stream":true,"n":2}`, r.IntN(1e6))
		a.raw(r, fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body), int64(r.IntN(3000)))
	},
	func(a *abuse, r *rand.Rand) {
		a.raw(r, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000000\r\n\r\n{\"messages\":[{\"role\":\"user\",\"content\":\""+strings.Repeat("x", r.IntN(1<<20)), 10)
	},
	func(a *abuse, r *rand.Rand) {
		body := held(allOf(20))(r)
		a.raw(r, fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body), 10)
	},
	func(a *abuse, r *rand.Rand) {
		noise := make([]byte, r.IntN(5000))
		for i := range noise {
			noise[i] = byte(r.Uint32())
		}
		a.raw(r, one(r, "", "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "GET / HTTP/1.1\r\n"+strings.Repeat("A: b\r\n", 5000))+string(noise), 100)
	},
}

// bomb is a quarter of a gigabyte of zeros, packed.
var bomb = same(func() string {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	_, _ = io.CopyN(z, zeros{}, 1<<28)
	_ = z.Close() // into memory
	return b.String()
})

// list is n numbered items with commas between.
func list(n int, item string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, item, i)
	}
	return b.String()
}

// allOf is a schema whose allOf doubles n times.
func allOf(n int) string {
	var b strings.Builder
	b.WriteString(`{"$defs":{"d0":{"type":"object","properties":{"a":{"type":"string"}}}`)
	for i := range n {
		fmt.Fprintf(&b, `,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i, i)
	}
	fmt.Fprintf(&b, `},"$ref":"#/$defs/d%d"}`, n)
	return b.String()
}

// zeros is an endless text.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
