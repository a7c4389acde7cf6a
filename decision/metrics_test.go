package decision

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func counterValue(t testing.TB, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

func TestMetricsNames(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	b.reward(c, b.decide(c, request("{}", "")).ID, 1)
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(b.service.Collector()); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		m := f.Metric[0]
		got[f.GetName()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		if f.GetName() == "syntra_model_version" {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			if text := strings.Join(labels, ","); text != "capsule=hero,job=web,tenant=north" {
				t.Errorf("labels of the model version: %s", text)
			}
		}
	}
	want := map[string]float64{
		"syntra_decisions_committed_total": 1, "syntra_rewards_committed_total": 1, "syntra_decision_batches_total": 1,
		"syntra_decision_log_backlog": 0, "syntra_decisions_rejected_backlog_total": 0, "syntra_events_lost_total": 0,
		"syntra_rewards_refused_after_apply_total": 0, "syntra_uploaded_decisions_accepted_total": 0,
		"syntra_uploaded_decisions_rejected_total": 0, "syntra_default_rewards_total": 0, "syntra_model_version": 1,
	}
	for name, value := range want {
		if v, ok := got[name]; !ok || v != value {
			t.Errorf("%s is %v (there: %v), want %v", name, v, ok, value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d metrics, want %d: %v", len(got), len(want), got)
	}
}
