package decision

import "github.com/prometheus/client_golang/prometheus"

// metrics counts what the service did. The hot path touches none of it but the refusals: committed records are counted when
// their batch is.
type metrics struct {
	decisions, rewards, batches   prometheus.Counter
	refused, lost, refusedLate    prometheus.Counter
	uploaded, rejected, defaulted prometheus.Counter
	backlog                       prometheus.GaugeFunc
	version                       *prometheus.Desc
	service                       *Service
}

func newMetrics(s *Service) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "syntra_" + name, Help: help})
	}
	return &metrics{
		service:   s,
		decisions: counter("decisions_committed_total", "Decisions on disk."),
		rewards:   counter("rewards_committed_total", "Rewards on disk."),
		batches:   counter("decision_batches_total", "Batches of decisions on disk."),
		refused:   counter("decisions_rejected_backlog_total", "Decides refused because the queue was full, or the disk."),
		lost:      counter("events_lost_total", "Queued decisions that never reached the disk."),
		// A reward is applied after its commit, so that this can only stay 0; dashboards of the format expect the name.
		refusedLate: counter("rewards_refused_after_apply_total", "Rewards learned from but not stored."),
		uploaded:    counter("uploaded_decisions_accepted_total", "Uploaded decisions accepted."),
		rejected:    counter("uploaded_decisions_rejected_total", "Uploaded decisions rejected."),
		defaulted:   counter("default_rewards_total", "Default rewards given."),
		backlog: prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "syntra_decision_log_backlog",
			Help: "Decisions that wait for the disk."}, func() float64 { return float64(s.queue.backlog()) }),
		version: prometheus.NewDesc("syntra_model_version", "Rewards the model has learned from.",
			[]string{"tenant", "job", "capsule"}, nil),
	}
}

// Collector returns the service's metrics, to be registered once.
func (s *Service) Collector() prometheus.Collector { return s.metrics }

func (m *metrics) parts() []prometheus.Collector {
	return []prometheus.Collector{m.decisions, m.rewards, m.batches, m.refused, m.lost, m.refusedLate, m.uploaded,
		m.rejected, m.defaulted, m.backlog}
}

// Describe sends the description of every metric.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, p := range m.parts() {
		p.Describe(out)
	}
	out <- m.version
}

// Collect sends every metric, with one model version for each loaded capsule.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	for _, p := range m.parts() {
		p.Collect(out)
	}
	m.service.table.all(func(c *Capsule) {
		out <- prometheus.MustNewConstMetric(m.version, prometheus.GaugeValue, float64(c.Version()),
			c.id.Tenant, c.id.Job, c.id.Capsule)
	})
}
