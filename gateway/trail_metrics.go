package gateway

import "github.com/prometheus/client_golang/prometheus"

// trailMetrics counts what the trail did. post touches none of it.
type trailMetrics struct {
	events  *prometheus.CounterVec
	writes  prometheus.Counter
	latency prometheus.Histogram
	lost    prometheus.Counter
	dropped prometheus.CounterFunc
	waiting prometheus.GaugeFunc
}

func newTrailMetrics(t *trail) *trailMetrics {
	return &trailMetrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "analytics_events_total", Help: "Events stored, by kind."},
			[]string{"flow_type"}),
		writes: prometheus.NewCounter(prometheus.CounterOpts{Name: "analytics_sink_writes_total", Help: "Bundles of events handed to the store."}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "analytics_sink_write_latency_seconds",
			Help: "From handing a bundle over to its being on disk.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12)}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{Name: "analytics_events_lost_total",
			Help: "Events that left the queue and were not stored: the store refused them, or their merchant does not exist."}),
		dropped: prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "analytics_events_dropped_total",
			Help: "Events dropped because the queue was full."}, func() float64 { return float64(t.dropped.Load()) }),
		waiting: prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "analytics_events_waiting", Help: "Events in the queue."},
			func() float64 { return float64(t.waiting.Load()) }),
	}
}

func (m *trailMetrics) parts() []prometheus.Collector {
	return []prometheus.Collector{m.events, m.writes, m.latency, m.lost, m.dropped, m.waiting}
}

// Describe sends the description of every metric.
func (m *trailMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, p := range m.parts() {
		p.Describe(out)
	}
}

// Collect sends every metric.
func (m *trailMetrics) Collect(out chan<- prometheus.Metric) {
	for _, p := range m.parts() {
		p.Collect(out)
	}
}

// flows are the kinds of event that have a series; others, which this service does not make, share one.
var flows = [...]Flow{FlowDecision, FlowRuleHit, FlowDecideError, FlowUpdate, FlowScoreSnapshot, FlowUpdateError, FlowEvaluateSingle,
	FlowEvaluatePriority, FlowEvaluateSplit, FlowEvaluateAdvanced, FlowEvaluatePreview, FlowEvaluateError}

// stored counts the events of a bundle.
func (m *trailMetrics) stored(events []Event, order []keyed) {
	var counts [len(flows) + 1]int
	for _, o := range order {
		at := len(flows)
		for i, f := range flows {
			if f == events[o.at].Flow {
				at = i
				break
			}
		}
		counts[at]++
	}
	for i, n := range counts {
		switch {
		case n > 0 && i < len(flows):
			m.events.WithLabelValues(string(flows[i])).Add(float64(n))
		case n > 0:
			m.events.WithLabelValues("other").Add(float64(n))
		}
	}
}
