package store_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/store"
	"holdfast/store/storetest"
)

func TestRebind(t *testing.T) {
	tests := []struct{ text, numbered string }{
		{"SELECT 1", "SELECT 1"},
		{"SELECT a FROM t WHERE b = ? AND c = ?", "SELECT a FROM t WHERE b = $1 AND c = $2"},
		{"SELECT '?', \"?\" FROM t WHERE a = 'it''s ?' AND b = ?", "SELECT '?', \"?\" FROM t WHERE a = 'it''s ?' AND b = $1"},
		{"VALUES (" + strings.Repeat("?, ", 10) + "?)", "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"},
	}
	for _, test := range tests {
		if got := store.PostgreSQL().Rebind(test.text); got != test.numbered {
			t.Errorf("%q became %q, want %q", test.text, got, test.numbered)
		}
		if got := store.SQLite().Rebind(test.text); got != test.text {
			t.Errorf("%q became %q", test.text, got)
		}
	}
}

func TestUpsert(t *testing.T) {
	keys, columns := []string{"a", "b"}, []string{"c", "d"}
	want := "INSERT INTO t (a, b, c, d) VALUES (?, ?, ?, ?) ON CONFLICT (a, b) DO UPDATE SET c = excluded.c, d = excluded.d " +
		"WHERE t.c IS NOT excluded.c OR t.d IS NOT excluded.d"
	if got := store.SQLite().Upsert("t", keys, columns); got != want {
		t.Errorf("%s", got)
	}
	want = "INSERT INTO t (a, b, c, d) VALUES ($1, $2, $3, $4) ON CONFLICT (a, b) DO UPDATE SET c = excluded.c, d = excluded.d " +
		"WHERE t.c IS DISTINCT FROM excluded.c OR t.d IS DISTINCT FROM excluded.d"
	if got := store.PostgreSQL().Upsert("t", keys, columns); got != want {
		t.Errorf("%s", got)
	}
	want = "INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT (a, b) DO NOTHING"
	if got := store.SQLite().Upsert("t", keys, nil); got != want {
		t.Errorf("%s", got)
	}
	want = "INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4)"
	if got := store.PostgreSQL().Insert("t", keys, 2); got != want {
		t.Errorf("%s", got)
	}
}

func TestMetricsTellWhatHappened(t *testing.T) {
	b := newBench(t, store.Options{})
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(b.Collector()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := b.Write(t.Context(), item(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Write(t.Context(), item(1)); err == nil {
		t.Error("a second row with one key was taken")
	}
	storedIn(t, b.DB)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if len(m.GetLabel()) != 1 || m.GetLabel()[0].GetValue() != "items" {
				t.Errorf("%s has labels %v", f.GetName(), m.GetLabel())
			}
			got[f.GetName()] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	want := map[string]float64{"jobs_total": 3, "jobs_failed_total": 1, "jobs_refused_total": 0, "rows_total": 4, "reads_total": 1,
		"queue_depth": 0, "batch_jobs": 4, "commit_seconds": 4, "checkpoint_seconds": 0, "disk_full_total": 0}
	for name, v := range want {
		if got["holdfast_store_"+name] != v {
			t.Errorf("%s is %v, want %v", name, got["holdfast_store_"+name], v)
		}
	}
	syncs := b.disk.Count(storetest.SyncLog) + b.disk.Count(storetest.SyncData)
	if n := int(got["holdfast_store_syncs_total"]); n != syncs {
		t.Errorf("%d syncs counted, the disk saw %d", n, syncs)
	}
	if got["holdfast_store_written_bytes_total"] == 0 {
		t.Error("no bytes counted")
	}
}
