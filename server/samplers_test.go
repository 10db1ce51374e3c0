package server

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"ridge/sample"
)

// sampled are fields that choose tokens, with llama-server's names.
const sampled = `"temperature":0.7,"top_n_sigma":1.5,"xtc_probability":0.5,"xtc_threshold":0.2,"dynatemp_range":0.3,"dynatemp_exponent":2,"dry_multiplier":0.8,"dry_base":2,` +
	`"dry_allowed_length":3,"dry_penalty_last_n":-1,"dry_sequence_breakers":["\n","z"],"mirostat":0,"mirostat_tau":4,"mirostat_eta":0.2,"samplers":["dry","top_k","xtc","temperature"],"repeat_last_n":7,"seed":9`

// What a request says of samplers reaches the engine through every door.
func TestSamplersOfRequests(t *testing.T) {
	srv, b := scripted(t, "x")
	want := sample.Params{
		Temperature: 0.7, TopNSigma: 1.5, XTCProbability: 0.5, XTCThreshold: 0.2, TemperatureRange: 0.3, TemperatureExponent: 2, MirostatTau: 4, MirostatEta: 0.2,
		DRY: sample.DRY{Multiplier: 0.8, Base: 2, AllowedLength: 3, LastN: -1}, PenaltyLastN: 7, Seed: 9,
		Order: []sample.Step{sample.StepDRY, sample.StepTopK, sample.StepXTC, sample.StepTemperature},
	}
	for _, c := range []struct{ path, body string }{
		{"/completion", `{"prompt":"a",%s}`},
		{"/infill", `{"input_prefix":"a","input_suffix":"b",%s}`},
		{"/v1/completions", `{"prompt":"a",%s}`},
		{"/v1/chat/completions", `{` + hello + `,%s}`},
		{"/api/chat", `{"model":"fake",` + hello + `,"top_k":1,"options":{"top_k":0,"top_p":1,%s}}`},
		{"/api/generate", `{"model":"fake","prompt":"a","options":{"top_k":0,"top_p":1,%s}}`},
	} {
		b.requests = nil
		status, h, raw := send(t, http.MethodPost, srv.URL+c.path, fmt.Sprintf(c.body, sampled))
		if status != http.StatusOK || len(b.requests) != 1 {
			t.Errorf("%s: status %d: %s", c.path, status, raw)
			continue
		}
		got := b.requests[0].Sampling
		broken := map[byte]bool{}
		for _, c := range []byte("\nz:") {
			s, err := sample.New(sample.Params{DRY: sample.DRY{Multiplier: 1, AllowedLength: 1, Breakers: got.DRY.Breakers}}, 266)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []byte("ab" + string(c) + "ab" + string(c)) {
				s.Accept(int32(id))
			}
			logits := make([]float32, 266)
			logits['a'] = 0.5 // goes on with what was there before, unless c breaks it
			broken[c] = s.Sample(logits).Token == 'a'
		}
		equal(t, c.path+": breakers", fmt.Sprint(broken), fmt.Sprint(map[byte]bool{'\n': true, 'z': true, ':': false}))
		got.DRY.Breakers = nil
		if strings.HasPrefix(c.path, "/api") {
			got.TopP = 0 // 1 is as good
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", c.path, got, want)
		}
		if ignored := h.Values("X-Ridge-Ignored"); c.path != "/api/chat" && len(ignored) > 0 {
			t.Errorf("%s: ignored %q", c.path, ignored)
		}
	}
}

// Zeros and ends of ranges mean what llama-server means by them.
func TestSamplersAtTheirEnds(t *testing.T) {
	srv, b := scripted(t, "x")
	const least = 1e-40 // what a zero is where the sampler's 0 means a default
	for fields, is := range map[string]func(p *sample.Params) bool{
		`"dry_multiplier":1,"dry_penalty_last_n":0`: func(p *sample.Params) bool { return p.DRY.Multiplier == 0 },
		`"dry_multiplier":1,"dry_allowed_length":0`: func(p *sample.Params) bool {
			return p.DRY.AllowedLength == -1 && p.DRY.LastN == 0 && p.DRY.Breakers != nil
		},
		`"dry_multiplier":1,"dry_sequence_breakers":[]`: func(p *sample.Params) bool { return p.DRY.Breakers == nil },
		`"top_n_sigma":-1`: func(p *sample.Params) bool { return p.TopNSigma == 0 },
		`"mirostat":2,"mirostat_tau":0,"mirostat_eta":0`: func(p *sample.Params) bool {
			return p.MirostatTau > 0 && p.MirostatTau < least && p.MirostatEta > 0 && p.MirostatEta < least
		},
		`"xtc_probability":1,"xtc_threshold":0,"dynatemp_exponent":0`: func(p *sample.Params) bool {
			return p.XTCThreshold > 0 && p.XTCThreshold < least && p.TemperatureExponent > 0
		},
		`"samplers":"kpt"`: func(p *sample.Params) bool {
			return reflect.DeepEqual(p.Order, []sample.Step{sample.StepTopK, sample.StepTopP, sample.StepTemperature})
		},
		`"samplers":[]`:   func(p *sample.Params) bool { return p.Order != nil && len(p.Order) == 0 },
		`"samplers":null`: func(p *sample.Params) bool { return p.Order == nil },
	} {
		b.requests = nil
		post(t, srv.URL+"/completion", `{"prompt":"a",`+fields+`}`, 200)
		if p := &b.requests[0].Sampling; !is(p) {
			t.Errorf("%s: %+v", fields, *p)
		}
	}
}

func TestBadSamplers(t *testing.T) {
	srv, _ := scripted(t, "x")
	var many []string
	for i := range 5000 {
		many = append(many, fmt.Sprintf(`"b%d"`, i))
	}
	for fields, want := range map[string]string{
		`"top_n_sigma":-2`:                             "top_n_sigma: expected -1 to 1000, found -2",
		`"xtc_probability":1.5`:                        "xtc_probability: expected 0 to 1, found 1.5",
		`"xtc_threshold":-0.1`:                         "xtc_threshold: expected 0 to 1, found -0.1",
		`"dynatemp_range":-1`:                          "dynatemp_range: expected 0 to 100, found -1",
		`"dynatemp_exponent":-1`:                       "dynatemp_exponent: expected 0 to 100, found -1",
		`"dry_multiplier":-1`:                          "dry_multiplier: expected 0 to 1000, found -1",
		`"dry_base":0.5`:                               "dry_base: expected 1 to 1000, found 0.5",
		`"dry_allowed_length":-1`:                      "dry_allowed_length: expected 0 to 16777216, found -1",
		`"dry_penalty_last_n":-2`:                      "dry_penalty_last_n: expected -1 to 16777216, found -2",
		`"repeat_last_n":-2`:                           "repeat_last_n: expected -1 to 16777216, found -2",
		`"mirostat":3`:                                 "mirostat: expected 0 to 2, found 3",
		`"mirostat_tau":-1`:                            "mirostat_tau: expected 0 to 1000, found -1",
		`"mirostat_eta":"x"`:                           "mirostat_eta: expected a number in range, found string",
		`"samplers":["top_k","infill"]`:                `samplers: expected penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temperature, found "infill"`,
		`"samplers":"kq"`:                              `samplers: expected letters of edskypmxt, found "kq"`,
		`"samplers":7`:                                 "samplers: expected a list of names, or a string of letters, found 7",
		`"samplers":"` + strings.Repeat("k", 33) + `"`: "samplers: expected at most 32, found 33",
		`"dry_sequence_breakers":[` + strings.Join(many, ",") + `]`:     "dry_sequence_breakers: expected at most 32, found 5000",
		`"dry_sequence_breakers":[""]`:                                  "dry_sequence_breakers: expected texts of 1 to 40 bytes, found one of 0",
		`"dry_sequence_breakers":["` + strings.Repeat("x", 9000) + `"]`: "dry_sequence_breakers: expected texts of 1 to 40 bytes, found one of 9000",
		`"dry_sequence_breakers":{}`:                                    "dry_sequence_breakers: expected a string or a list of strings, found {}",
	} {
		o := post(t, srv.URL+"/completion", `{"prompt":"a",`+fields+`}`, 400)
		if got := o.at("error", "message"); got != want {
			t.Errorf("%.60s: got %v, want %s", fields, got, want)
		}
	}
}

// How tokens are chosen is shown, with llama-server's names: what requests get that
// say nothing, and what an answer was made with.
func TestSamplingIsShown(t *testing.T) {
	srv, b := scripted(t, "x")
	def := get(t, srv.URL+"/props", 200).at("default_generation_settings", "params")
	for name, want := range map[string]any{
		"temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0, "typical_p": 1, "top_n_sigma": -1, "xtc_probability": 0, "xtc_threshold": 0.1, "dynatemp_range": 0, "dynatemp_exponent": 1,
		"repeat_penalty": 1, "repeat_last_n": -1, "presence_penalty": 0, "frequency_penalty": 0, "dry_multiplier": 0, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": 64,
		"dry_sequence_breakers": []string{"\n", ":", "\"", "*"}, "mirostat": 0, "mirostat_tau": 5, "mirostat_eta": 0.1, "seed": 4294967295.0, "n_predict": -1, "max_tokens": -1,
		"samplers": []string{"penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"},
	} {
		equal(t, "default of "+name, def.(map[string]any)[name], want)
	}
	o := post(t, srv.URL+"/completion", `{"prompt":"a",`+sampled+`,"n_predict":3,"stop":["y"],"logit_bias":[[7,false]]}`, 200)
	for name, want := range map[string]any{
		"temperature": 0.7, "top_n_sigma": 1.5, "xtc_probability": 0.5, "dynatemp_exponent": 2, "repeat_last_n": 7, "dry_multiplier": 0.8, "dry_penalty_last_n": -1,
		"dry_sequence_breakers": []string{"\n", "z"}, "samplers": []string{"dry", "top_k", "xtc", "temperature"}, "seed": 9, "n_predict": 3, "stop": []string{"y"},
	} {
		equal(t, "setting "+name, o.at("generation_settings", name), want)
	}
	equal(t, "bias", o.at("generation_settings", "logit_bias", 0, "token"), 7)
	// A client that sends back what it was shown gets the same.
	b.requests = nil
	o = post(t, srv.URL+"/completion", `{"prompt":"a"}`, 200)
	if seed := o.at("generation_settings", "seed").(float64); seed != float64(b.requests[0].Sampling.Seed) {
		t.Errorf("the seed that was drawn is not shown: %v", seed)
	}
}

// Mirostat takes the place of filters and penalties, as in llama.cpp, and the answer
// says so.
func TestMirostatTakesThePlaceOfOthers(t *testing.T) {
	srv, _ := scripted(t, "x")
	_, h, _ := send(t, http.MethodPost, srv.URL+"/v1/chat/completions", `{`+hello+`,"mirostat":2,"temperature":0.8,"top_p":0.9,"top_k":5,"dry_multiplier":1}`)
	equal(t, "ignored", fmt.Sprint(h.Values("X-Ridge-Ignored")), "[top_p (mirostat takes its place) dry_multiplier (mirostat takes its place) top_k (mirostat takes its place)]")
	_, h, _ = send(t, http.MethodPost, srv.URL+"/v1/chat/completions", `{`+hello+`,"mirostat":0,"top_p":0.9,"top_k":5}`)
	equal(t, "ignored", len(h.Values("X-Ridge-Ignored")), 0)
}
