package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Tracer makes one span per request, infra routes excepted. A nil Tracer is tracing switched off and costs one comparison.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	incoming propagation.TraceContext
}

// TracingWanted reports whether the environment, as os.Environ gives it, asks for spans to be exported.
func TracingWanted(environ []string) bool {
	wanted := false
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case name == "OTEL_SDK_DISABLED" && strings.EqualFold(value, "true"):
			return false
		case strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") && value != "":
			wanted = true
		}
	}
	return wanted
}

// NewTracer exports spans over OTLP/HTTP to where the OTEL_EXPORTER_OTLP_* variables say. When the exporter cannot keep up
// its queue fills and further spans are dropped; no request ever waits for it.
func NewTracer(ctx context.Context, version string) (*Tracer, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "holdfast"), attribute.String("service.version", version)),
		resource.WithFromEnv()) // later ones win: OTEL_SERVICE_NAME may rename it
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	return newTracer(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about)), nil
}

func newTracer(options ...sdktrace.TracerProviderOption) *Tracer {
	p := sdktrace.NewTracerProvider(options...)
	return &Tracer{provider: p, tracer: p.Tracer("holdfast/server")}
}

// Close exports what is queued and stops, within ctx.
func (t *Tracer) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// trace runs answer inside a span. Names and attributes are templates and ids: never a raw path, never a credential.
func (t *Tracer) trace(w *response, answer func(*response, *http.Request)) {
	r := w.request
	ctx := t.incoming.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, w.entry.route.Label, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(w.start))
	defer span.End()
	r = r.WithContext(ctx)
	w.request = r
	e := w.entry
	answer(w, r)
	if !span.IsRecording() {
		return
	}
	attributes := append(make([]attribute.KeyValue, 0, 8),
		attribute.String("http.route", e.route.Path), attribute.String("http.request.method", e.route.Method),
		attribute.Int("http.response.status_code", w.status), attribute.String("request.id", w.call.RequestID))
	for _, at := range [...]struct {
		name  string
		index int
	}{{"tenant", e.tenant}, {"job", e.job}, {"capsule", e.capsule}} {
		if at.index >= 0 && at.index < len(w.call.Params) {
			attributes = append(attributes, attribute.String(at.name, w.call.Params[at.index]))
		}
	}
	span.SetAttributes(attributes...)
	if w.status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
}
