package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A request's spans arrive at a collector, as part of the client's trace.
func TestTraces(t *testing.T) {
	got := make(chan object, 4)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o object
		b, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(b, &o); err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("X-Team") != "a b" {
			t.Errorf("%v: %s %v: %s", err, r.URL, r.Header, b)
		}
		got <- o
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "X-Team=a%20b")
	t.Setenv("OTEL_SERVICE_NAME", "here")
	p, shutdown, err := TracesFromEnv(context.Background(), "1")
	if err != nil {
		t.Fatal(err)
	}
	srv, _ := scripted(t, "abc", func(o *Options, b *script) { o.Traces, b.delay = p, time.Millisecond })
	post(t, srv.URL+"/v1/chat/completions", `{`+hello+`}`, 200, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if err := shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	o := <-got
	spans := map[string]map[string]any{}
	for _, s := range o.at("resourceSpans", 0, "scopeSpans", 0, "spans").([]any) {
		m := s.(map[string]any)
		spans[m["name"].(string)] = m
	}
	root := spans["chat fake"]
	if root == nil || root["traceId"] != "0af7651916cd43dd8448eb211c80319c" || root["parentSpanId"] != "b7ad6b7169203331" || root["kind"] != 2.0 {
		t.Fatalf("got %v", spans)
	}
	attrs, _ := json.Marshal(root["attributes"])
	for _, want := range []string{`{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}}`, `{"key":"gen_ai.usage.output_tokens","value":{"intValue":"3"}}`, `"gen_ai.response.finish_reasons"`, `{"key":"http.response.status_code","value":{"intValue":"200"}}`} {
		if !strings.Contains(string(attrs), want) {
			t.Errorf("no %s in %s", want, attrs)
		}
	}
	for _, name := range []string{"queue", "decode"} {
		if s := spans[name]; s == nil || s["parentSpanId"] != root["spanId"] {
			t.Errorf("span %s: %v", name, s)
		}
	}
	if res, _ := json.Marshal(o.at("resourceSpans", 0, "resource")); !strings.Contains(string(res), `"here"`) {
		t.Errorf("resource %s", res)
	}
}

func TestTracesOff(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
	if p, _, err := TracesFromEnv(context.Background(), ""); p != nil || err != nil {
		t.Errorf("got %v, %v", p, err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4317")
	if _, _, err := TracesFromEnv(context.Background(), ""); err == nil {
		t.Error("no error for an endpoint without a scheme")
	}
}
