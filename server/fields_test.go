package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// What becomes of a field that a peer's API has.
type fate int

const (
	followed fate = iota // the engine or the client sees something else
	refused              // a 400 that names it
	named                // the header X-Ridge-Ignored names it
	noMatter             // no answer depends on it
)

func (f fate) String() string { return [...]string{"followed", "refused", "named", "idle"}[f] }

// field is a field of a peer's requests with a value that asks for something.
type field struct {
	name, value string
	want        fate
	with        string // other fields that it needs, as in a body
}

// peerFields are the fields that a route's peers read.
type peerFields struct {
	route, base string
	under       string // the object in which the fields are, "" for the body
	fields      []field
}

// varying are parts of an answer that are different each time.
var varying = regexp.MustCompile(`"(id|created|created_at|request_id|_?[a-z]*_duration|load_duration|total_duration|eval_duration|prompt_eval_duration)":("[^"]*"|[0-9.]+)|"timings":\{[^}]*\}|[0-9a-f]{24}`)

// try sends a request and returns what the engine and the client saw of it.
func (p *peerFields) try(t *testing.T, url string, b *script, extra string) (status int, h http.Header, seen, answer string) {
	t.Helper()
	b.mu.Lock()
	b.requests = nil
	b.mu.Unlock()
	body := p.base
	if p.under != "" {
		body += `,"` + p.under + `":{` + extra + `}`
	} else if extra != "" {
		body += "," + extra
	}
	status, h, raw := send(t, http.MethodPost, url+p.route, "{"+body+"}")
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, r := range b.requests {
		masked, due := r.NewMasker != nil, !r.Deadline.IsZero()
		r.NewMasker, r.Deadline = nil, time.Time{}
		breakers := r.Sampling.DRY.Breakers
		r.Sampling.DRY.Breakers = nil
		if strings.HasPrefix(r.ID, "req_") {
			r.ID = ""
		}
		if !strings.Contains(extra, `"seed"`) {
			r.Sampling.Seed = 0 // a random one
		}
		beam := r.Beam
		r.Beam = nil
		all = append(all, fmt.Sprintf("%v %v %+v %+v %v\n", masked, due, beam, r, breakers))
	}
	slices.Sort(all) // the requests of one call come at once, in any order
	return status, h, strings.Join(all, ""), varying.ReplaceAllString(string(raw), "")
}

// Every field that a peer's clients may send is followed, refused, named in a
// header as ignored, or one that no answer depends on.
func TestPeerFields(t *testing.T) {
	srv, b := scripted(t, "one two three")
	for _, p := range allPeerFields {
		t.Run(strings.Trim(p.route, "/"), func(t *testing.T) { p.check(t, srv.URL, b) })
	}
}

// check tries all fields.
func (p *peerFields) check(t *testing.T, url string, b *script) {
	for _, f := range p.fields {
		status, _, seen, answer := p.try(t, url, b, f.with)
		if status != http.StatusOK {
			t.Fatalf("%s: without it: status %d: %s", f.name, status, answer)
		}
		own := fmt.Sprintf("%q:%s", f.name, f.value)
		if f.with != "" {
			own = f.with + "," + own
		}
		got, h, nowSeen, nowAnswer := p.try(t, url, b, own)
		path := f.name
		if p.under != "" {
			path = p.under + "." + f.name
		}
		is := noMatter
		switch {
		case got >= 500:
			t.Errorf("%s: status %d: %s", f.name, got, nowAnswer)
		case got != http.StatusOK:
			if is = refused; !strings.Contains(nowAnswer, f.name) {
				t.Errorf("%s: a %d that does not name it: %s", f.name, got, nowAnswer)
			}
		case strings.Contains(strings.Join(h.Values("X-Ridge-Ignored"), ", "), path):
			is = named
		case seen != nowSeen || answer != nowAnswer:
			is = followed
		}
		if is != f.want {
			t.Errorf("%s: %s is %v, want %v\n%s%s", f.name, f.value, is, f.want, nowSeen, nowAnswer)
		}
	}
}

// Fields that the body knows inside are looked into, those that read themselves are
// not; a null asks for nothing; a name comes as a client may write it.
func TestIgnoredFields(t *testing.T) {
	srv, _ := scripted(t, "x")
	for body, want := range map[string]string{
		`{` + hello + `}`: "",
		`{` + hello + `,"Temperature":0.5,"STREAM_OPTIONS":{"Include_Usage":true},"stream":true}`: "",
		`{` + hello + `,"one":1,"two":null,"three":{"a":[1,2,{"b":"}"}]},"user":"u"}`:             "one, three",
		`{"zero" : "a\"b" ,` + hello + `,"stream_options":{"include_usage":false,"deep":{}}}`:     "zero, stream_options.deep",
		`{` + hello + `,"chat_template_kwargs":{"x":1},"logit_bias":{"7":1}}`:                     "",
		`{` + hello + `,"with\nbreak":1,"é":2}`:                                                   `with\nbreak, \u00e9`,
	} {
		status, h, raw := send(t, http.MethodPost, srv.URL+"/v1/chat/completions", body)
		if got := strings.Join(h.Values("X-Ridge-Ignored"), ", "); status != http.StatusOK || got != want {
			t.Errorf("%s: status %d, ignored %q, want %q: %s", body, status, got, want, raw)
		}
	}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf(`"f%d":1`, i))
	}
	_, h, _ := send(t, http.MethodPost, srv.URL+"/v1/chat/completions", `{`+hello+`,`+strings.Join(many, ",")+`}`)
	if names := h.Values("X-Ridge-Ignored"); len(names) != 16 || names[15] != "..." {
		t.Errorf("names of a hundred: %q", names)
	}
	// What this server cannot do is refused unless it asks for nothing.
	post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"lora":[],"kv_transfer_params":null}`, 200)
	o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`,"lora":[{"id":0,"scale":1}]}`, 400)
	equal(t, "refused", []any{o.at("error", "param"), o.at("error", "code")}, []any{"lora", "unsupported"})
}

// num_ctx cannot be followed beyond the context that the server was started with.
func TestNumCtx(t *testing.T) {
	srv, _ := scripted(t, "x")
	chat := func(n string) (int, http.Header, []byte) {
		return send(t, http.MethodPost, srv.URL+"/api/chat", `{"model":"fake","stream":false,`+hello+`,"options":{"num_ctx":`+n+`}}`)
	}
	if status, h, b := chat("4096"); status != 200 || h.Get("X-Ridge-Ignored") != "" {
		t.Errorf("as many as there are: %d %v %s", status, h, b)
	}
	status, h, _ := chat("8192")
	equal(t, "more", []any{status, h.Get("X-Ridge-Ignored")}, []any{200, "options.num_ctx=8192 (this server gives fake a context of 4096 tokens)"})
	status, _, raw := chat("0")
	var o object
	_ = json.Unmarshal(raw, &o)
	equal(t, "none", []any{status, o["error"]}, []any{400, "options.num_ctx: expected 1 or more, found 0"})
}
