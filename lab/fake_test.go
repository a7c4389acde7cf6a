package lab

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/lab/report"
)

// TestMain lets the test binary be its own children: a small server that speaks the wire format, or the null server.
func TestMain(m *testing.M) {
	if mode := os.Getenv("LAB_FAKE"); mode != "" {
		os.Exit(fakeMain(mode, os.Args[1:]))
	}
	os.Exit(m.Run())
}

func fakeMain(mode string, args []string) int {
	if args[0] == "null" {
		size, _ := strconv.Atoi(args[2])
		fmt.Fprintln(os.Stderr, Null(context.Background(), args[1], size))
		return 1
	}
	if mode == "dies" {
		fmt.Fprintln(os.Stderr, "the disk is on fire")
		return 3
	}
	f := newFake(mode, os.Getenv("HOLDFAST_ADMIN_KEY"))
	f.rate, _ = strconv.ParseFloat(os.Getenv("SYNTRA_RATE_LIMIT_RPS"), 64)
	f.burst, _ = strconv.ParseFloat(os.Getenv("SYNTRA_RATE_LIMIT_BURST"), 64)
	if err := f.restore(args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server := &http.Server{Addr: args[1], Handler: f, ReadHeaderTimeout: time.Second}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	return 1
}

// options start children from this test binary.
func options(t *testing.T, mode string) Options {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return Options{Executable: program, Env: append(os.Environ(), "LAB_FAKE="+mode), Out: out, Screen: report.NewPlain(io.Discard),
		Serve: func(data, addr string) []string { return []string{"serve", addr, data} },
		Null:  func(addr string, size int) []string { return []string{"null", addr, strconv.Itoa(size)} }, Command: "holdfast test"}
}

// printed returns what a run wrote to its output.
func printed(t *testing.T, o Options) string {
	t.Helper()
	raw, err := os.ReadFile(o.Out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// fake is a decision server that learns by heart: for a context it has been rewarded on it repeats the right action, else
// it tries the next one.
type fake struct {
	mode, key   string
	rate, burst float64

	mu       sync.Mutex // guards all below
	counts   map[route]uint64
	decides  uint64
	buckets  map[string]*bucket
	actions  map[string][]string // capsule path to actions
	version  map[string]uint64
	known    map[string]string // context to right action
	tried    map[string]int    // context to the next action to try
	open     map[string][2]string
	patches  []string
	nth      uint64
	rewarded map[string]int
	order    []string // decision ids
	store    *os.File // what survives in the modes durable and twice: one line per decision or reward
}

// remember puts a line on disk, in the modes that keep anything.
func (f *fake) remember(what, id string) {
	if f.store != nil {
		_, _ = f.store.WriteString(what + " " + id + "\n")
	}
}

// restore reads what an earlier process of this store remembered.
func (f *fake) restore(data string) error {
	if f.mode != "durable" && f.mode != "twice" {
		return nil
	}
	var err error
	if f.store, err = os.OpenFile(data, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600); err != nil {
		return err
	}
	raw, err := io.ReadAll(f.store)
	if err != nil {
		return err
	}
	if len(raw) > 0 {
		f.actions[capsulePath("crash")] = []string{"fast"}
	}
	for line := range strings.Lines(string(raw)) {
		what, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		if what == "decided" {
			f.order = append(f.order, id)
			f.open[id] = [2]string{}
			continue
		}
		f.rewarded[id]++
	}
	if f.mode == "twice" && len(f.order) > 0 {
		f.rewarded[f.order[len(f.order)/2]]++
	}
	return nil
}

// look answers the log's reading routes.
func (f *fake) look(w http.ResponseWriter, r *http.Request, last string) {
	if last == "decisions" {
		from := 0
		if after := r.URL.Query().Get("after"); after != "" {
			from = slices.Index(f.order, after) + 1
		}
		to := min(len(f.order), from+1000)
		page := `{"decisions":[`
		for i, id := range f.order[from:to] {
			page += map[bool]string{true: ",", false: ""}[i > 0] + `{"decisionId":"` + id + `"}`
		}
		next := "null"
		if to-from == 1000 {
			next = `"` + f.order[to-1] + `"`
		}
		f.answer(w, "capsule.decisions", http.StatusOK, page+`],"next":`+next+`}`)
		return
	}
	if _, known := f.open[last]; !known {
		f.answer(w, "capsule.decision", http.StatusNotFound, `{"error":"decision not found"}`)
		return
	}
	rewards := strings.TrimSuffix(strings.Repeat(`{"seq":1},`, f.rewarded[last]), ",")
	f.answer(w, "capsule.decision", http.StatusOK, `{"rewards":[`+rewards+`]}`)
}

type bucket struct {
	tokens float64
	last   time.Time
}

func newFake(mode, key string) *fake {
	return &fake{mode: mode, key: key, rate: 1e9, burst: 1e9, counts: map[route]uint64{}, buckets: map[string]*bucket{},
		actions: map[string][]string{}, version: map[string]uint64{}, known: map[string]string{}, tried: map[string]int{},
		open: map[string][2]string{}, rewarded: map[string]int{}}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	last := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case last == "ready":
		return
	case last == "metrics":
		f.metrics(w)
		return
	case key != f.key && !strings.HasPrefix(key, "tok"):
		f.answer(w, "unauthorized", http.StatusUnauthorized, `{"error":"unauthorized"}`)
		return
	case !f.admits(key):
		w.Header().Set("Retry-After", "1")
		f.answer(w, "rate_limited", http.StatusTooManyRequests, `{"error":"rate limit exceeded","retryAfterSeconds":1}`)
		return
	}
	capsule := strings.TrimSuffix(r.URL.Path, "/"+last)
	switch r.Method + " " + last {
	case "POST tokens":
		f.nth++
		f.answer(w, "tokens", http.StatusOK, fmt.Sprintf(`{"token":"tok%d"}`, f.nth))
	case "POST install":
		f.actions[capsule] = []string{"fast", "balanced", "safe"}
		f.answer(w, "capsule.install", http.StatusOK, `{"ok":true}`)
	case "PUT spec":
		f.spec(w, capsule, body)
	case "POST decide":
		f.decide(w, capsule, body)
	case "POST reward":
		f.reward(w, capsule, body)
	default:
		if last == "decisions" || strings.Contains(r.URL.Path, "/decisions/") {
			f.look(w, r, last)
			return
		}
		if _, is := f.actions[r.URL.Path]; is {
			f.answer(w, "capsule", http.StatusOK, fmt.Sprintf(`{"modelVersion":%d}`, f.version[r.URL.Path]))
			return
		}
		f.answer(w, "capsule", http.StatusNotFound, `{"error":"capsule not found"}`)
	}
}

func (f *fake) admits(key string) bool {
	if key == f.key {
		return true
	}
	b, now := f.buckets[key], time.Now()
	if b == nil {
		b = &bucket{f.burst, now}
		f.buckets[key] = b
	}
	b.tokens = min(f.burst, b.tokens+now.Sub(b.last).Seconds()*f.rate)
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

func (f *fake) answer(w http.ResponseWriter, label string, status int, body string) {
	if f.mode != "miscount" || label != "capsule.decide" || f.counts[route{label, status}]%100 != 99 || f.nth == 0 {
		f.counts[route{label, status}]++
	} else {
		f.nth, f.counts[route{label, status}] = 0, f.counts[route{label, status}]+2
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func (f *fake) metrics(w io.Writer) {
	fmt.Fprintln(w, "# TYPE syntra_requests_total counter")
	for r, n := range f.counts {
		fmt.Fprintf(w, "syntra_requests_total{route=%q,status=\"%d\"} %d\n", r.label, r.status, n)
	}
	fmt.Fprintf(w, "syntra_decide_latency_seconds_count %d\nsyntra_decide_latency_seconds_sum %g\n", f.decides, float64(f.decides)*2e-6)
	fmt.Fprintf(w, "syntra_decisions_committed_total %d\nsyntra_events_lost_total 0\n", f.decides)
}

func (f *fake) spec(w http.ResponseWriter, capsule string, body []byte) {
	var spec struct {
		Actions []struct {
			ID string `json:"id"`
		} `json:"actions"`
	}
	if err := json.Unmarshal(body, &spec); err != nil {
		f.answer(w, "capsule.spec.put", http.StatusBadRequest, `{"error":"invalid spec"}`)
		return
	}
	f.patches = append(f.patches, string(body))
	if spec.Actions != nil {
		f.actions[capsule] = nil
		for _, a := range spec.Actions {
			f.actions[capsule] = append(f.actions[capsule], a.ID)
		}
	}
	f.answer(w, "capsule.spec.put", http.StatusCreated, string(body))
}

func (f *fake) decide(w http.ResponseWriter, capsule string, body []byte) {
	actions := f.actions[capsule]
	if actions == nil {
		f.answer(w, "capsule.decide", http.StatusNotFound, `{"error":"capsule not found"}`)
		return
	}
	context := string(body)
	action, sure := f.known[context]
	if !sure {
		action = actions[f.tried[context]%len(actions)]
		f.tried[context]++
	}
	f.decides++
	id := fmt.Sprintf("dec_%011x", f.decides)
	if _, after, found := strings.Cut(context, `"eventId":"`); found {
		id, _, _ = strings.Cut(after, `"`)
	}
	f.open[id] = [2]string{context, action}
	f.order = append(f.order, id)
	f.remember("decided", id)
	f.answer(w, "capsule.decide", http.StatusOK, fmt.Sprintf(`{"decisionId":%q,"action":%q,"probability":1}`, id, action))
}

func (f *fake) reward(w http.ResponseWriter, capsule string, body []byte) {
	var reward struct {
		DecisionID string  `json:"decisionId"`
		Reward     float64 `json:"reward"`
	}
	if err := json.Unmarshal(body, &reward); err != nil {
		f.answer(w, "capsule.reward", http.StatusBadRequest, `{"error":"bad body"}`)
		return
	}
	made, known := f.open[reward.DecisionID]
	if !known {
		f.answer(w, "capsule.reward", http.StatusNotFound, `{"error":"decision not found"}`)
		return
	}
	if f.rewarded[reward.DecisionID] > 0 {
		f.answer(w, "capsule.reward", http.StatusOK, `{"ok":true,"applied":false,"duplicate":true}`)
		return
	}
	f.rewarded[reward.DecisionID]++
	f.remember("rewarded", reward.DecisionID)
	if reward.Reward == 1 {
		f.known[made[0]] = made[1]
	}
	f.version[capsule]++
	learned := strconv.FormatBool(f.mode != "frozen")
	f.answer(w, "capsule.reward", http.StatusOK, `{"ok":true,"applied":true,"learned":`+learned+`}`)
}
