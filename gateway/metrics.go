package gateway

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// ruleLabels bounds how many rule names have a series of their own; the others share one.
const ruleLabels = 1_000

// metrics counts decisions and what the ledger and the trail lose.
type metrics struct {
	decisions *prometheus.CounterVec
	rules     *prometheus.CounterVec
	bound     sync.Map // decisionLabel to prometheus.Counter
	hits      sync.Map // rule name to prometheus.Counter
	names     atomic.Int64
	extra     []prometheus.Collector
	committed atomic.Int64 // outcomes
	trail     *trailMetrics
}

type decisionLabel struct {
	approach Approach
	ok       bool
}

func newMetrics(s *Service) *metrics {
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
	}
	counter := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read)
	}
	m := &metrics{
		trail: newTrailMetrics(s.trail),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "routing_decisions_total",
			Help: "Decisions by approach and outcome."}, []string{"approach", "status"}),
		rules: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "routing_rule_hits_total",
			Help: "Decisions that a rule steered, by the rule's name; beyond 1,000 names they share the name other."}, []string{"rule_name"}),
		extra: []prometheus.Collector{
			gauge("gateway_merchants_resident", "Merchants in memory.", func() float64 { return float64(s.merchants.count()) }),
			counter("gateway_decisions_forgotten_total", "Decisions forgotten before their time because too many were remembered.",
				func() float64 { return float64(s.ledger.early.Load()) }),
			counter("gateway_decisions_unsaved_total", "Decisions that the store did not take: a restart forgets them.",
				func() float64 { return float64(s.ledger.unsaved.Load()) }),
		},
	}
	m.extra = append(m.extra, counter("gateway_outcomes_committed_total", "Outcomes of feedback that are on disk and in the scores.",
		func() float64 { return float64(m.committed.Load()) }))
	return m
}

// decided counts one decision.
func (m *metrics) decided(a Approach, ok bool) {
	label := decisionLabel{a, ok}
	if c, bound := m.bound.Load(label); bound {
		c.(prometheus.Counter).Inc()
		return
	}
	status := "success"
	if !ok {
		status = "failure"
	}
	c := m.decisions.WithLabelValues(string(a), status)
	m.bound.Store(label, c)
	c.Inc()
}

// ruleHit counts one decision that a rule steered.
func (m *metrics) ruleHit(rule string) {
	if c, bound := m.hits.Load(rule); bound {
		c.(prometheus.Counter).Inc()
		return
	}
	if m.names.Load() >= ruleLabels {
		m.rules.WithLabelValues("other").Inc()
		return
	}
	c := m.rules.WithLabelValues(rule)
	if _, there := m.hits.LoadOrStore(rule, c); !there {
		m.names.Add(1)
	}
	c.Inc()
}

// collector is the service's metrics for the registry.
type collector struct{ m *metrics }

// Collector returns the service's metrics.
func (s *Service) Collector() prometheus.Collector { return collector{s.metrics} }

func (c collector) all() []prometheus.Collector {
	return append([]prometheus.Collector{c.m.decisions, c.m.rules, c.m.trail}, c.m.extra...)
}

// Describe sends the metrics' descriptions.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, one := range c.all() {
		one.Describe(out)
	}
}

// Collect sends the metrics.
func (c collector) Collect(out chan<- prometheus.Metric) {
	for _, one := range c.all() {
		one.Collect(out)
	}
}
