package server

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/internal/otlp"
)

// TracesFromEnv returns what OpenTelemetry's environment variables ask for
// (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES,
// OTEL_TRACES_SAMPLER, ...), and a function that sends what is left and ends
// it. The provider is nil if they name no endpoint.
func TracesFromEnv(ctx context.Context, version string) (trace.TracerProvider, func(context.Context) error, error) {
	e, err := otlp.FromEnv(os.Getenv)
	if err != nil || e == nil {
		return nil, func(context.Context) error { return nil }, err
	}
	res, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "ridge"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("server: traces: %w", err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(e), sdktrace.WithResource(res))
	return p, p.Shutdown, nil
}

// tracer is the tracer of a provider, which may be nil.
func tracer(p trace.TracerProvider) trace.Tracer {
	if p == nil {
		p = noop.NewTracerProvider()
	}
	return p.Tracer("ridge/server")
}

// traced begins the span of a request, as part of the client's trace if it
// sent one.
func (s *Server) traced(ctx context.Context, r *http.Request) (context.Context, trace.Span) {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	return s.tracer.Start(ctx, r.Method+" "+r.URL.Path, trace.WithSpanKind(trace.SpanKindServer))
}

// operations are the names that the conventions for generative AI have for what
// routes do.
var operations = map[string]string{
	"POST /v1/chat/completions": "chat", "POST /v1/messages": "chat", "POST /v1/responses": "chat", "POST /api/chat": "chat",
	"POST /v1/completions": "text_completion", "POST /api/generate": "text_completion", "POST /completion": "text_completion", "POST /infill": "text_completion",
	"POST /v1/embeddings": "embeddings", "POST /embeddings": "embeddings", "POST /api/embed": "embeddings", "POST /api/embeddings": "embeddings", "POST /embedding": "embeddings",
}

// endTrace completes a request's span with what is known in the end, and adds
// spans for the stages of a generation.
func (s *Server) endTrace(span trace.Span, r *http.Request, status int, l *caller.Record) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String("http.request.method", r.Method), attribute.String("http.route", r.Pattern), attribute.Int("http.response.status_code", status),
		attribute.String("url.path", r.URL.Path), attribute.String("ridge.request.id", l.ID))
	if status >= 500 {
		span.SetStatus(codes.Error, http.StatusText(status))
	}
	if l.Err != nil {
		span.SetAttributes(attribute.String("error.type", fault.As(l.Err).Type))
	}
	op := operations[r.Pattern]
	if op == "" || l.Model == "" {
		return
	}
	span.SetName(op + " " + l.Model)
	span.SetAttributes(attribute.String("gen_ai.operation.name", op), attribute.String("gen_ai.provider.name", "ridge"), attribute.String("gen_ai.request.model", l.Model), attribute.String("gen_ai.response.model", l.Model),
		attribute.Int("gen_ai.usage.input_tokens", l.Prompt), attribute.Int("gen_ai.usage.cache_read.input_tokens", l.Cached), attribute.Int("gen_ai.usage.output_tokens", l.Tokens))
	if len(l.Finishes) > 0 {
		span.SetAttributes(attribute.StringSlice("gen_ai.response.finish_reasons", l.Finishes))
	}
	if l.Begun.IsZero() {
		return
	}
	span.SetAttributes(attribute.Float64("gen_ai.server.time_to_first_token", l.TTFT.Seconds()))
	ctx := trace.ContextWithSpan(r.Context(), span)
	at := l.Begun
	for _, stage := range []struct {
		name string
		took time.Duration
	}{{"queue", l.Queue}, {"prefill", l.TTFT - l.Queue}, {"decode", l.Decode}} {
		if stage.took <= 0 {
			continue
		}
		_, child := s.tracer.Start(ctx, stage.name, trace.WithTimestamp(at))
		at = at.Add(stage.took)
		child.End(trace.WithTimestamp(at))
	}
}
