package server

import (
	"context"
	"net/http"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"holdfast/ident"
)

func TestTracingIsAskedForByTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		environ []string
		want    bool
	}{
		{nil, false},
		{[]string{"OTEL_SERVICE_NAME=x", "PATH=/bin"}, false},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT="}, false},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318"}, true},
		{[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://localhost:4318"}, true},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318", "OTEL_SDK_DISABLED=true"}, false},
	} {
		if got := TracingWanted(c.environ); got != c.want {
			t.Errorf("%v: %v", c.environ, got)
		}
	}
}

func TestOneSpanPerRequest(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracer := newTracer(sdktrace.WithSyncer(spans))
	r := start(t, Options{Tracer: tracer}, nil)
	req, err := http.NewRequest("GET", r.url+"/v1/tenants/north/jobs/web/capsules/hero/spec?secret=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+operatorKey)
	req.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	res, _ := r.send(req)
	r.do("GET", "/health", "", "")
	if err := tracer.provider.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := spans.GetSpans()
	if len(got) != 1 {
		t.Fatalf("%d spans, want one: infra routes have none", len(got))
	}
	s := got[0]
	if s.Name != "capsule.spec" || s.SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" || s.Parent.SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("%s %s %s", s.Name, s.SpanContext.TraceID(), s.Parent.SpanID())
	}
	want := map[string]string{
		"http.route": "/v1/tenants/{tenant}/jobs/{job}/capsules/{capsule}/spec", "http.request.method": "GET",
		"http.response.status_code": "200", "request.id": res.Header.Get("X-Request-Id"),
		"tenant": "north", "job": "web", "capsule": "hero",
	}
	for _, a := range s.Attributes {
		if want[string(a.Key)] != a.Value.String() {
			t.Errorf("%s is %q, want %q", a.Key, a.Value.String(), want[string(a.Key)])
		}
		delete(want, string(a.Key))
	}
	if len(want) != 0 {
		t.Errorf("missing: %v", want)
	}
}

// stuck is an exporter whose far end does not answer.
type stuck struct{ release chan struct{} }

func (s stuck) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	<-s.release
	return nil
}

func (stuck) Shutdown(context.Context) error { return nil }

func TestAStuckExporterDelaysNobody(t *testing.T) {
	far := stuck{make(chan struct{})}
	tracer := newTracer(sdktrace.WithBatcher(far, sdktrace.WithMaxQueueSize(4), sdktrace.WithMaxExportBatchSize(2), sdktrace.WithBatchTimeout(time.Millisecond)))
	r := start(t, Options{Tracer: tracer}, nil)
	for range 50 {
		if res, _ := r.do("GET", "/v1/auth/whoami", operatorKey, ""); res.StatusCode != 200 {
			t.Fatal(res.Status)
		}
	}
	if got := r.count("whoami", "200"); got != 50 {
		t.Errorf("%d answered", got)
	}
	close(far.release)
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAFailureIsMarked(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracer := newTracer(sdktrace.WithSyncer(spans))
	r := start(t, Options{Tracer: tracer}, func(t *Table) {
		t.Routes = append(t.Routes, Route{Method: "GET", Path: "/v1/fails", Label: "fails", Access: Credential, Handler: func(w http.ResponseWriter, _ *http.Request, _ *ident.Call) {
			w.WriteHeader(http.StatusInternalServerError)
		}})
	})
	r.do("GET", "/v1/fails", operatorKey, "")
	if got := spans.GetSpans(); len(got) != 1 || got[0].Status.Code.String() != "Error" {
		t.Errorf("a failed request is not marked: %+v", got)
	}
}
