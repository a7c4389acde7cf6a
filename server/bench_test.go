package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/admission"
	"holdfast/ident"
	"holdfast/wire/reply"
)

const (
	benchBody   = `{"context":{"plan":"pro","basket":63.5},"excludedActions":["standard"]}`
	benchAnswer = `{"decisionId":"dec_0199e5f0a1b2c3d4e5f60718","action":"express","actionIndex":0,"probability":0.93,"ranking":[{"id":"express","probability":0.93},{"id":"slow","probability":0.07}],"mode":"learner","modelVersion":812}`
	benchPath   = "/v1/tenants/north/jobs/web/capsules/hero/decide"
)

// constant is a route whose handler does nothing, so that what is measured is the server.
func constant(t *Table) {
	gate, err := admission.New(admission.Options{Rate: &admission.Rate{PerSecond: 1e9, Burst: 1e9}, Guard: &admission.GuardOptions{}})
	if err != nil {
		panic(err)
	}
	answer := []byte(benchAnswer)
	t.Gate = gate
	t.Routes = []Route{{Method: "POST", Path: "/v1/tenants/{tenant}/jobs/{job}/capsules/{capsule}/decide", Label: "capsule.decide", Access: Readers,
		Handler: func(w http.ResponseWriter, _ *http.Request, c *ident.Call) {
			c.Handled = 1000
			reply.JSON(w, http.StatusOK, answer)
		}}}
}

// bare is the yardstick: net/http with a handler that reads the same body and writes the same answer.
func bare(b *testing.B) string {
	answer := []byte(benchAnswer)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var room [1024]byte
		_, _ = io.ReadFull(r.Body, room[:])
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = w.Write(answer)
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	b.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

// hammer sends n requests over each of the connections, as cheaply as a client can, and returns the wall and processor time.
func hammer(b *testing.B, address string, connections, n int) (wall, cpu time.Duration) {
	request := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", benchPath, operatorKey, len(benchBody), benchBody)
	var all sync.WaitGroup
	before, begun := processor(), time.Now()
	for range connections {
		c, err := net.Dial("tcp", address)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		all.Go(func() {
			in := bufio.NewReader(c)
			for range n {
				if _, err := c.Write(request); err != nil {
					b.Error(err)
					return
				}
				if err := skim(in); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(begun), processor() - before
}

// skim reads one answer.
func skim(in *bufio.Reader) error {
	length, first := 0, true
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
			return fmt.Errorf("answered with %s", line)
		}
		first = false
		if value, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
		if len(line) == 2 {
			_, err = in.Discard(length)
			return err
		}
	}
}

func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAgainstBare runs both in one process in ABBA order and reports the ratio of throughputs, processor time with
// the client's share in it, and allocations, of which the client makes none.
func BenchmarkAgainstBare(b *testing.B) {
	const connections, each = 8, 2000
	r := start(b, Options{}, constant)
	plain := bare(b)
	var wall, cpu [2]time.Duration
	var mallocs [2]uint64
	run := func(which int, address string) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w, c := hammer(b, address, connections, each)
		runtime.ReadMemStats(&after)
		mallocs[which] += after.Mallocs - before.Mallocs
		wall[which] += w
		cpu[which] += c
	}
	hammer(b, r.address, connections, each/4)
	hammer(b, plain, connections, each/4)
	for b.Loop() {
		run(0, plain)
		run(1, r.address)
		run(1, r.address)
		run(0, plain)
	}
	total := float64(b.N * 2 * connections * each)
	b.ReportMetric(wall[0].Seconds()/wall[1].Seconds(), "throughput-ratio")
	b.ReportMetric(float64(cpu[0].Microseconds())/total, "bare-cpu-µs")
	b.ReportMetric(float64(cpu[1].Microseconds())/total, "server-cpu-µs")
	b.ReportMetric(float64(mallocs[0])/total, "bare-allocs")
	b.ReportMetric(float64(mallocs[1])/total, "server-allocs")
}

// recorder is a response writer that costs nothing.
type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }

// fixture is one request that can be sent again and again.
type fixture struct {
	handler http.Handler
	request *http.Request
	body    *strings.Reader
	writer  recorder
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	r := build(t, Options{})
	table := testTable(slog.Default())
	constant(&table)
	h, err := r.Handler(table)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{handler: h, body: strings.NewReader(benchBody)}
	f.request = httptest.NewRequest("POST", benchPath, nil)
	f.request.URL, _ = url.Parse(benchPath)
	f.request.Header.Set("Authorization", "Bearer "+operatorKey)
	f.request.Body = io.NopCloser(f.body)
	f.request.ContentLength = int64(len(benchBody))
	f.writer.header = http.Header{}
	return f
}

func (f *fixture) send(t testing.TB) {
	f.body.Reset(benchBody)
	clear(f.writer.header)
	f.handler.ServeHTTP(&f.writer, f.request)
	if f.writer.status != http.StatusOK {
		t.Fatalf("answered with %d", f.writer.status)
	}
}

// Everything that is ours: router, keyring, admission, metrics, headers. net/http is not in it.
func BenchmarkOwnPart(b *testing.B) {
	f := newFixture(b)
	b.ReportAllocs()
	for b.Loop() {
		f.send(b)
	}
}

func TestOwnPartAllocatesNothing(t *testing.T) {
	if raced {
		t.Skip("the race detector makes sync.Pool forget at random")
	}
	f := newFixture(t)
	f.send(t)
	runtime.GC()
	if n := testing.AllocsPerRun(2000, func() { f.send(t) }); n > 0 {
		t.Errorf("%v allocations per request, want none", n)
	}
}
