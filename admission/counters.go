package admission

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// counters are kept for each class. Every arrival adds to exactly one of admitted, refused and gaveUp.
type counters struct {
	arrived, admitted, refused, gaveUp, waited atomic.Int64
	_                                          [24]byte // keeps the classes on cache lines of their own
}

// Counts is what became of the arrivals of one class. Arrived = Admitted + Refused + GaveUp when nobody is on the way;
// Waited counts those that stood in a line, whatever became of them.
type Counts struct {
	Arrived, Admitted, Refused, GaveUp, Waited int64
}

// Counts returns the counters of one class.
func (g *Gate) Counts(c Class) Counts {
	n := &g.counts[c]
	return Counts{n.arrived.Load(), n.admitted.Load(), n.refused.Load(), n.gaveUp.Load(), n.waited.Load()}
}

// State is what a gate is doing at the moment.
type State struct {
	InFlight, Limit, Waiting int // of the guard; 0 without one
	Principals               int // whose buckets are remembered
}

// State returns what the gate is doing at the moment.
func (g *Gate) State() State {
	var s State
	if g.accounts != nil {
		s.Principals = g.accounts.size()
	}
	if g.guard != nil {
		s.InFlight, s.Limit, s.Waiting = int(g.guard.inFlight.Load()), int(g.guard.limit.Load()), int(g.guard.waiting.Load())
	}
	return s
}

// Collector exports a gate's counters under a name of its own.
type Collector struct {
	gate                                *Gate
	arrivals, waited                    *prometheus.Desc
	inFlight, limit, queued, principals *prometheus.Desc
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns the metrics of g with the label gate set to name.
func NewCollector(g *Gate, name string) *Collector {
	label := prometheus.Labels{"gate": name}
	desc := func(metric, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("holdfast_admission_"+metric, help, labels, label)
	}
	return &Collector{
		gate:       g,
		arrivals:   desc("arrivals_total", "Requests that arrived, by class and by what became of them.", "class", "outcome"),
		waited:     desc("waited_total", "Requests that stood in a line, by class.", "class"),
		inFlight:   desc("in_flight", "Requests that run now."),
		limit:      desc("in_flight_limit", "Requests that may run at once now."),
		queued:     desc("waiting", "Requests that wait for a place now."),
		principals: desc("principals", "Principals whose rate is remembered now."),
	}
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{c.arrivals, c.waited, c.inFlight, c.limit, c.queued, c.principals} {
		out <- d
	}
}

// Collect sends the current values.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	for class := range classes {
		n, name := c.gate.Counts(class), class.String()
		count := func(d *prometheus.Desc, value int64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
		}
		count(c.arrivals, n.Admitted, name, "admitted")
		count(c.arrivals, n.Refused, name, "refused")
		count(c.arrivals, n.GaveUp, name, "gave_up")
		count(c.waited, n.Waited, name)
	}
	s := c.gate.State()
	gauge := func(d *prometheus.Desc, value int) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value))
	}
	gauge(c.inFlight, s.InFlight)
	gauge(c.limit, s.Limit)
	gauge(c.queued, s.Waiting)
	gauge(c.principals, s.Principals)
}
