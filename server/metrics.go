package server

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// decideBounds are the published bucket bounds of the decide histogram, in seconds.
var decideBounds = []float64{5e-6, 10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3}

// Metrics counts what was answered. Each answer is counted once, when its status is sent; a series is looked up the first
// time that its route sends its status, and is then bound: counting takes no lock and allocates nothing.
type Metrics struct {
	requests *prometheus.CounterVec
	decide   [2]prometheus.Histogram // the same observations under both published names
	mu       sync.Mutex              // guards bound
	bound    map[string]*series      // by route label
}

// NewMetrics registers the server's metrics. It panics when they are registered already, as prometheus does.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "syntra_requests_total", Help: "Answers by route and by the status that was sent.",
		}, []string{"route", "status"}),
		bound: make(map[string]*series),
	}
	for i, name := range [...]string{"syntra_decide_latency_seconds", "syntra_decide_seconds"} {
		m.decide[i] = prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: name, Help: "Time from parsed body to queued record of decides answered with 2xx.", Buckets: decideBounds,
		})
		registry.MustRegister(m.decide[i])
	}
	start := time.Now()
	registry.MustRegister(m.requests, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "syntra_uptime_seconds", Help: "Seconds since the server started.",
	}, func() float64 { return time.Since(start).Seconds() }))
	return m
}

// Exposition answers a scrape of gatherer in Prometheus text format 0.0.4.
func Exposition(gatherer prometheus.Gatherer) http.Handler {
	inner := promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{DisableCompression: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		plain := r.Clone(r.Context())
		plain.Header.Del("Accept") // other formats are negotiated by it; this one is promised
		inner.ServeHTTP(w, plain)
	})
}

// The statuses that have a slot of their own in a series.
const (
	lowStatus  = 100
	highStatus = 599
)

// series are the counters of one route label.
type series struct {
	vec   *prometheus.CounterVec
	label string
	slots [highStatus - lowStatus + 1]atomic.Pointer[prometheus.Counter]
}

// series returns the counters of a label, one set however many routes share it.
func (m *Metrics) series(label string) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.bound[label]
	if s == nil {
		s = &series{vec: m.requests, label: label}
		m.bound[label] = s
	}
	return s
}

// count notes one answer.
func (s *series) count(status int) {
	if status < lowStatus || status > highStatus {
		s.vec.WithLabelValues(s.label, strconv.Itoa(status)).Inc()
		return
	}
	slot := &s.slots[status-lowStatus]
	c := slot.Load()
	if c == nil {
		fresh := s.vec.WithLabelValues(s.label, strconv.Itoa(status))
		slot.Store(&fresh) // every racer finds the same counter
		c = &fresh
	}
	(*c).Inc()
}

// observe notes how long one decide took.
func (m *Metrics) observe(nanoseconds int64) {
	seconds := float64(nanoseconds) / 1e9
	for _, h := range m.decide {
		h.Observe(seconds)
	}
}
