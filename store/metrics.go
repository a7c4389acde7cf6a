package store

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Stats is what a store has done since it was opened.
type Stats struct {
	Depth       int   // jobs accepted and not yet settled
	Batches     int64 // transactions tried
	Jobs        int64 // jobs that became durable
	Failed      int64 // jobs that were accepted and did not
	Refused     int64 // jobs that were not accepted
	Rows        int64 // rows announced by the jobs of all batches
	Syncs       int64 // file syncs, those of checkpoints included
	Bytes       int64 // bytes written to the files, log and checkpoints included
	DiskFull    int64 // batches the file system had no room for
	Reads       int64 // read transactions
	Checkpoints int64 // copies of the log into the database file
}

// metrics are the counters behind Stats and the two distributions.
type metrics struct {
	db                                   *DB
	batches, jobs, failed, refused, rows atomic.Int64
	diskFull, reads, checkpoints         atomic.Int64
	batchJobs                            prometheus.Histogram
	commitSeconds, checkpointSeconds     prometheus.Histogram
	described                            []described
}

type described struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(Stats) float64
}

func newMetrics(db *DB) *metrics {
	name := strings.TrimSuffix(filepath.Base(db.opts.Path), filepath.Ext(db.opts.Path))
	labels := prometheus.Labels{"db": name}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets, ConstLabels: labels})
	}
	m := &metrics{db: db,
		batchJobs: histogram("holdfast_store_batch_jobs", "Jobs per transaction.", prometheus.ExponentialBuckets(1, 2, 14)),
		commitSeconds: histogram("holdfast_store_commit_seconds", "Seconds from the start of a transaction to its sync.",
			prometheus.ExponentialBuckets(0.0001, 2, 16)),
		checkpointSeconds: histogram("holdfast_store_checkpoint_seconds", "Seconds per checkpoint.",
			prometheus.ExponentialBuckets(0.0001, 2, 16)),
	}
	add := func(kind prometheus.ValueType, name, help string, value func(Stats) float64) {
		m.described = append(m.described, described{prometheus.NewDesc("holdfast_store_"+name, help, nil, labels), kind, value})
	}
	counter := prometheus.CounterValue
	add(prometheus.GaugeValue, "queue_depth", "Jobs accepted and not yet settled.", func(s Stats) float64 { return float64(s.Depth) })
	add(counter, "jobs_total", "Jobs that became durable.", func(s Stats) float64 { return float64(s.Jobs) })
	add(counter, "jobs_failed_total", "Jobs accepted that did not become durable.", func(s Stats) float64 { return float64(s.Failed) })
	add(counter, "jobs_refused_total", "Jobs that were not accepted.", func(s Stats) float64 { return float64(s.Refused) })
	add(counter, "rows_total", "Rows announced by jobs.", func(s Stats) float64 { return float64(s.Rows) })
	add(counter, "syncs_total", "File syncs.", func(s Stats) float64 { return float64(s.Syncs) })
	add(counter, "written_bytes_total", "Bytes written to the files.", func(s Stats) float64 { return float64(s.Bytes) })
	add(counter, "disk_full_total", "Batches the disk had no room for.", func(s Stats) float64 { return float64(s.DiskFull) })
	add(counter, "reads_total", "Read transactions.", func(s Stats) float64 { return float64(s.Reads) })
	return m
}

func (m *metrics) observeBatch(jobs, rows int) {
	m.batches.Add(1)
	m.rows.Add(int64(rows))
	m.batchJobs.Observe(float64(jobs))
}

func (m *metrics) observeCommit(d time.Duration) { m.commitSeconds.Observe(d.Seconds()) }

func (m *metrics) observeCheckpoint(d time.Duration) {
	m.checkpoints.Add(1)
	m.checkpointSeconds.Observe(d.Seconds())
}

func (m *metrics) settled(done, failed int) {
	m.jobs.Add(int64(done))
	m.failed.Add(int64(failed))
}

// Stats returns the counters; they are read one by one, not at one instant.
func (db *DB) Stats() Stats {
	m := db.metrics
	return Stats{Depth: db.Depth(), Batches: m.batches.Load(), Jobs: m.jobs.Load(), Failed: m.failed.Load(),
		Refused: m.refused.Load(), Rows: m.rows.Load(), Syncs: db.meter.syncs.Load(), Bytes: db.meter.bytes.Load(),
		DiskFull: m.diskFull.Load(), Reads: m.reads.Load(), Checkpoints: m.checkpoints.Load()}
}

// Collector returns the store's metrics, labelled with the database's file name without its ending.
func (db *DB) Collector() prometheus.Collector { return db.metrics }

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, ch) }

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	stats := m.db.Stats()
	for _, d := range m.described {
		ch <- prometheus.MustNewConstMetric(d.desc, d.kind, d.value(stats))
	}
	m.batchJobs.Collect(ch)
	m.commitSeconds.Collect(ch)
	m.checkpointSeconds.Collect(ch)
}
