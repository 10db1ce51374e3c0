// Package otlp sends spans to an OpenTelemetry collector: OTLP over HTTP in
// JSON (https://opentelemetry.io/docs/specs/otlp/). The exporters of the
// OpenTelemetry project do the same with protocol buffers, and bring gRPC
// along.
package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
)

// Exporter sends spans. It may be used by several goroutines.
type Exporter struct {
	url    string
	header http.Header
	client *http.Client
}

// timeout is how long a collector has to answer.
const timeout = 10 * time.Second

// FromEnv returns the exporter that the environment asks for with the variables
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or OTEL_EXPORTER_OTLP_ENDPOINT, and
// OTEL_EXPORTER_OTLP_HEADERS; nil if it asks for none.
func FromEnv(env func(string) string) (*Exporter, error) {
	endpoint := env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	name := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	if endpoint == "" {
		name = "OTEL_EXPORTER_OTLP_ENDPOINT"
		if endpoint = env(name); endpoint == "" {
			return nil, nil
		}
		endpoint = strings.TrimSuffix(endpoint, "/") + "/v1/traces"
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("otlp: %s: expected http:// or https:// and a host, found %q", name, endpoint)
	}
	e := &Exporter{url: endpoint, header: http.Header{}, client: &http.Client{Timeout: timeout}}
	for _, h := range strings.Split(env("OTEL_EXPORTER_OTLP_HEADERS"), ",") {
		if k, v, ok := strings.Cut(h, "="); ok {
			if dec, err := url.PathUnescape(strings.TrimSpace(v)); err == nil {
				e.header.Set(strings.TrimSpace(k), dec)
			}
		}
	}
	return e, nil
}

// Shutdown does nothing: there is nothing kept back.
func (e *Exporter) Shutdown(context.Context) error { return nil }

// ExportSpans sends spans.
func (e *Exporter) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	body, err := json.Marshal(encode(spans))
	if err != nil {
		return fmt.Errorf("otlp: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("otlp: %w", err)
	}
	r.Header = e.header.Clone()
	r.Header.Set("Content-Type", "application/json")
	resp, err := e.client.Do(r)
	if err != nil {
		return fmt.Errorf("otlp: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("otlp: %s: status %s", e.url, resp.Status)
	}
	return nil
}

type keyValue struct {
	Key   string         `json:"key"`
	Value map[string]any `json:"value"`
}

type status struct {
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

type span struct {
	TraceID    string     `json:"traceId"`
	SpanID     string     `json:"spanId"`
	Parent     string     `json:"parentSpanId,omitempty"`
	Name       string     `json:"name"`
	Kind       int        `json:"kind"`
	Start      string     `json:"startTimeUnixNano"`
	End        string     `json:"endTimeUnixNano"`
	Attributes []keyValue `json:"attributes,omitempty"`
	Status     status     `json:"status"`
}

type scopeSpans struct {
	Scope map[string]string `json:"scope"`
	Spans []span            `json:"spans"`
}

type resourceSpans struct {
	Resource   map[string]any `json:"resource"`
	ScopeSpans []scopeSpans   `json:"scopeSpans"`
}

func encode(spans []trace.ReadOnlySpan) any {
	out := scopeSpans{Scope: map[string]string{"name": "ridge"}}
	for _, s := range spans {
		x := span{
			TraceID: s.SpanContext().TraceID().String(), SpanID: s.SpanContext().SpanID().String(), Name: s.Name(), Kind: int(s.SpanKind()),
			Start: strconv.FormatInt(s.StartTime().UnixNano(), 10), End: strconv.FormatInt(s.EndTime().UnixNano(), 10), Attributes: attributes(s.Attributes()),
		}
		if s.Parent().SpanID().IsValid() {
			x.Parent = s.Parent().SpanID().String()
		}
		switch s.Status().Code {
		case codes.Ok:
			x.Status.Code = 1
		case codes.Error:
			x.Status = status{2, s.Status().Description}
		}
		out.Spans = append(out.Spans, x)
	}
	// All spans of a provider have its resource.
	res := map[string]any{"attributes": attributes(spans[0].Resource().Attributes())}
	return map[string]any{"resourceSpans": []resourceSpans{{res, []scopeSpans{out}}}}
}

func attributes(in []attribute.KeyValue) []keyValue {
	var out []keyValue
	for _, a := range in {
		out = append(out, keyValue{string(a.Key), value(a.Value)})
	}
	return out
}

func value(v attribute.Value) map[string]any {
	switch v.Type() {
	case attribute.BOOL:
		return map[string]any{"boolValue": v.AsBool()}
	case attribute.INT64:
		return map[string]any{"intValue": strconv.FormatInt(v.AsInt64(), 10)}
	case attribute.FLOAT64:
		return map[string]any{"doubleValue": v.AsFloat64()}
	case attribute.STRINGSLICE:
		var list []map[string]any
		for _, s := range v.AsStringSlice() {
			list = append(list, map[string]any{"stringValue": s})
		}
		return map[string]any{"arrayValue": map[string]any{"values": list}}
	}
	return map[string]any{"stringValue": v.String()}
}
