package lab

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"holdfast/lab/load"
	"holdfast/lab/report"
)

// tally makes a client's counts by really sending: a server on an in-memory connection answers with the given statuses;
// 0 breaks the connection off.
func tally(t *testing.T, kind string, statuses ...int) *load.Result {
	t.Helper()
	next := 0
	result, err := load.Run(t.Context(), load.Plan{Workers: 1, Kinds: []string{kind},
		Dial: func(context.Context) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				buf := make([]byte, 1024)
				for {
					if _, err := far.Read(buf); err != nil {
						return
					}
					status := statuses[next]
					next++
					if status == 0 {
						return
					}
					answer := fmt.Sprintf("HTTP/1.1 %d X\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n", status)
					if _, err := far.Write([]byte(answer)); err != nil {
						return
					}
				}
			}()
			return near, nil
		},
		Traffic: func(int) load.Traffic { return &counted{left: len(statuses)} }})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

type counted struct{ left int }

func (c *counted) Next() ([]byte, int) {
	if c.left--; c.left < 0 {
		return nil, 0
	}
	return []byte("GET / HTTP/1.1\r\n\r\n"), 0
}

func (c *counted) Seen(int, load.Answer) {}

func TestReconcile(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		client  []int
		server  map[route]uint64
		decides uint64
		want    []string // parts of the error; none means agreement
	}{
		{"agreement", []int{200, 200, 429, 404}, map[route]uint64{{"capsule.decide", 200}: 2, {"rate_limited", 429}: 1, {"capsule.decide", 404}: 1}, 2, nil},
		{"other routes do not matter", []int{200}, map[route]uint64{{"capsule.decide", 200}: 1, {"metrics", 200}: 5, {"health", 200}: 1}, 1, nil},
		{"an early refusal counts wherever it is", []int{429, 401}, map[route]uint64{{"capsule.decide", 429}: 1, {"unauthorized", 401}: 1}, 0, nil},
		{"one accepted is missing", []int{200, 200}, map[route]uint64{{"capsule.decide", 200}: 1}, 2,
			[]string{"capsule.decide 200: the client counted 2, the server 1"}},
		{"one accepted too many", []int{200}, map[route]uint64{{"capsule.decide", 200}: 2}, 1,
			[]string{"capsule.decide 200: the client counted 1, the server 2"}},
		{"another status than was sent", []int{500}, map[route]uint64{{"capsule.decide", 200}: 1}, 0,
			[]string{"capsule.decide 200: the client counted 0, the server 1", "capsule.decide 500: the client counted 1, the server 0"}},
		{"a refusal that was not counted", []int{429, 429}, map[route]uint64{{"rate_limited", 429}: 1}, 0,
			[]string{"status 429: the client counted 2, the server 1"}},
		{"the histogram holds a refusal", []int{200, 429}, map[route]uint64{{"capsule.decide", 200}: 1, {"rate_limited", 429}: 1}, 2,
			[]string{"decide latency histogram: the client counted 1, the server 2"}},
		{"an unknown outcome may be counted", []int{200, 0}, map[route]uint64{{"capsule.decide", 200}: 2}, 2, nil},
		{"or not", []int{200, 0}, map[route]uint64{{"capsule.decide", 200}: 1}, 1, nil},
		{"but only once", []int{200, 0}, map[route]uint64{{"capsule.decide", 200}: 3}, 3,
			[]string{"the server 3 (1 requests of unknown outcome)", "histogram"}},
	} {
		result := tally(t, "decide", tc.client...)
		err := reconcile(sample{requests: tc.server, decides: tc.decides}, result.Tally)
		if (err == nil) != (tc.want == nil) {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		for _, part := range tc.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v does not say %q", tc.name, err, part)
			}
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		client  []int
		ceiling float64 // as a multiple of the measured rate
		want    verdict
	}{
		{"far below the ceiling", []int{200, 200, 200}, 2, serverBound},
		{"as fast as the client can", []int{200, 200, 200}, 1.05, clientBound},
		{"no ceiling known", []int{200, 200, 200}, 0, serverBound},
		{"refusals decide even at the ceiling", []int{200, 429, 200}, 1, limiterBound},
		{"errors are the server's", []int{500, 500, 500}, 3, serverBound},
	} {
		m := &measured{Result: tally(t, "decide", tc.client...)}
		m.Elapsed = time.Second
		if got := judge(m, tc.ceiling*float64(len(tc.client))); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestAdmitted(t *testing.T) {
	t.Parallel()
	limit := Limit{Rate: 1, Burst: 0.5}
	for _, tc := range []struct {
		elapsed time.Duration
		want    report.Grade
	}{{1500 * time.Millisecond, report.Met}, {1510 * time.Millisecond, report.Met}, {1400 * time.Millisecond, report.Missed}, {1600 * time.Millisecond, report.Missed}} {
		m := &measured{Result: tally(t, "decide", 200, 200, 429)}
		if got, off := admitted(m, limit, tc.elapsed); got != tc.want {
			t.Errorf("2 accepted in %v at 1/s + 0.5: %v (%+.3f), want %v", tc.elapsed, got, off, tc.want)
		}
	}
}

func TestPromisesOfEveryCell(t *testing.T) {
	t.Parallel()
	r := start(options(t, "fair"), "x", 0)
	r.doc.Findings = nil // the machine may be busy
	r.note("fine", &measured{Result: tally(t, "decide", 200, 429)})
	if r.doc.Worst() != report.Note {
		t.Errorf("a refusal with Retry-After is no breach: %v", r.doc.Findings)
	}
	r.note("errors", &measured{Result: tally(t, "decide", 200, 500, 0)})
	if len(r.doc.Findings) != 2 || r.doc.Worst() != report.Broken {
		t.Errorf("a 500 and a cut connection are two breaches: %v", r.doc.Findings)
	}
}

func TestReadMetrics(t *testing.T) {
	t.Parallel()
	text := "# HELP syntra_requests_total Responses.\n" +
		`syntra_requests_total{route="capsule.decide",status="200"} 41` + "\n" +
		`syntra_requests_total{status="429",route="rate_limited"} 1e3 1700000000000` + "\n" +
		`syntra_requests_total{route="odd \"}\\ name",status="404"} 2` + "\n" +
		"syntra_decide_latency_seconds_bucket{le=\"+Inf\"} 9\nsyntra_decide_latency_seconds_sum 0.5\nsyntra_decide_latency_seconds_count 41\n" +
		"syntra_decisions_committed_total 40\nsyntra_events_lost_total 1\nnonsense\n{} 3\n"
	s, err := readMetrics(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := map[route]uint64{{"capsule.decide", 200}: 41, {"rate_limited", 429}: 1000, {`odd "}\ name`, 404}: 2}
	for r, n := range want {
		if s.requests[r] != n {
			t.Errorf("%v: %d, want %d", r, s.requests[r], n)
		}
	}
	if len(s.requests) != len(want) || s.decides != 41 || s.seconds != 0.5 || s.logged != 40 || s.lost != 1 {
		t.Errorf("read %+v", s)
	}
	delta := s.since(sample{requests: map[route]uint64{{"capsule.decide", 200}: 40, {"rate_limited", 429}: 1000}, decides: 40, seconds: 0.25})
	if delta.requests[route{"capsule.decide", 200}] != 1 || len(delta.requests) != 2 || delta.mean() != 250*time.Millisecond {
		t.Errorf("difference %+v, mean %v", delta, delta.mean())
	}
	if _, err := readMetrics(strings.NewReader(`syntra_requests_total{route="x",status="ok"} 1`)); err == nil {
		t.Error("a status that is no number was read")
	}
}

func FuzzSeries(f *testing.F) {
	f.Add(`a{b="c\"",d="e"} 1 2`)
	f.Add(`a{b="`)
	f.Fuzz(func(t *testing.T, line string) {
		name, _, _, ok := series(line)
		if ok && strings.ContainsAny(name, "{ ") {
			t.Errorf("name %q", name)
		}
	})
}
