package server

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// endpointBounds are the bucket bounds of the endpoints' latencies, in seconds: ten, from half a millisecond, each twice the last.
var endpointBounds = prometheus.ExponentialBuckets(0.0005, 2, 10)

// Endpoints count answers under the names of the gateway dialect, where a label names an endpoint and not a route.
type Endpoints struct {
	requests *prometheus.CounterVec
	statuses *prometheus.CounterVec
	latency  *prometheus.HistogramVec
}

// NewEndpoints registers the metrics. It panics when they are registered already, as prometheus does.
func NewEndpoints(registry prometheus.Registerer) *Endpoints {
	e := &Endpoints{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "api_requests_total", Help: "Answers by endpoint.",
		}, []string{"endpoint"}),
		statuses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "api_requests_by_status", Help: "Answers by endpoint and by the status that was sent.",
		}, []string{"endpoint", "status"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "api_latency_seconds", Help: "Time from the head of a request to the status of its answer.", Buckets: endpointBounds,
		}, []string{"endpoint"}),
	}
	registry.MustRegister(e.requests, e.statuses, e.latency)
	return e
}

// Tally returns what counts the answers of one endpoint. Its series are bound: after the first answer with a status it takes
// no lock that others share, and allocates nothing.
func (e *Endpoints) Tally(endpoint string) Tally {
	requests, latency := e.requests.WithLabelValues(endpoint), e.latency.WithLabelValues(endpoint)
	var slots [highStatus - lowStatus + 1]atomic.Pointer[prometheus.Counter]
	return func(status int, took time.Duration) {
		requests.Inc()
		latency.Observe(took.Seconds())
		if status < lowStatus || status > highStatus {
			status = http.StatusInternalServerError // nobody sends such a status
		}
		slot := &slots[status-lowStatus]
		c := slot.Load()
		if c == nil {
			fresh := e.statuses.WithLabelValues(endpoint, strconv.Itoa(status))
			slot.Store(&fresh) // every racer finds the same counter
			c = &fresh
		}
		(*c).Inc()
	}
}
