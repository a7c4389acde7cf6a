package lab

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"holdfast/fault"
	"holdfast/lab/load"
	"holdfast/lab/report"
)

// LearnOptions is the plan of Learn.
type LearnOptions struct {
	Data    string // CSV file with a header, gzipped or not
	Label   string // the column that holds the right answer
	Rounds  int    // at least 10
	Seed    uint64 // of the order of rows and of the capsule's draws
	URL     string // a running server; empty starts one on a throwaway store
	Key     string // credential for the running server: operator or an administrator of its tenant
	Capsule string // tenant/job/capsule; empty makes a fresh name under lab/learn
	Spec    string // merge patch laid over the capsule's spec, such as {"exploration":{"floor":0.02}}; may be empty
}

// learning is a run of Learn in progress.
type learning struct {
	plan    LearnOptions
	data    *dataset
	control *control
	dial    func(context.Context) (net.Conn, error)
	conn    *load.Conn
	target  load.Target
	path    string // of the capsule, with the prefix of the server's URL
	spare   []byte
	marks   []bool // whether each round's answer was right
	right   int
}

// Learn plays a labelled table as a bandit over HTTP: each round sends a row as context, takes the action that was chosen
// as the answer, and rewards it with 1 when it is the row's label, else 0, before the next round begins. It shows the share
// of right answers while it learns.
func Learn(ctx context.Context, o Options, plan LearnOptions) error {
	if plan.Rounds < 10 {
		return fault.New("lab.Learn", fault.Invalid, "%d rounds: use at least 10", plan.Rounds)
	}
	data, err := readDataset(plan.Data, plan.Label)
	if err != nil {
		return err
	}
	r := start(o, "Holdfast lab: learn from "+filepath.Base(plan.Data), time.Duration(plan.Rounds))
	return r.conclude(r.learn(ctx, &learning{plan: plan, data: data}))
}

func (r *run) learn(ctx context.Context, l *learning) error {
	if l.plan.URL == "" {
		r.step("start: a server on a throwaway store")
		c, err := r.serve(ctx, raisedLimit)
		if err != nil {
			return err
		}
		defer c.stop()
		l.plan.URL, l.plan.Key = "http://"+c.addr, c.key
	}
	if err := l.connect(); err != nil {
		return err
	}
	defer l.hangUp()
	if err := l.create(ctx); err != nil {
		return err
	}
	r.screen.Line("learning " + strconv.Itoa(len(l.data.labels)) + " labels from " + strconv.Itoa(len(l.data.contexts)) +
		" rows as capsule " + l.plan.Capsule)
	begin := time.Now()
	order := rand.New(rand.NewPCG(l.plan.Seed, 0)).Perm(len(l.data.contexts))
	every := max(1, l.plan.Rounds/20)
	for round := range l.plan.Rounds {
		if err := l.round(ctx, order[round%len(order)]); err != nil {
			return err
		}
		r.done = time.Duration(round + 1)
		if (round+1)%250 == 0 {
			r.step("learning: round %d, %.0f rounds/s, right %.3f overall, %.3f lately", round+1,
				float64(round+1)/time.Since(begin).Seconds(), l.overall(), l.lately(every))
		}
		if (round+1)%every == 0 {
			r.screen.Line(l.progress(every))
		}
	}
	r.describe(l, time.Since(begin))
	return nil
}

// connect takes the server's URL apart.
func (l *learning) connect() error {
	u, err := url.Parse(l.plan.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fault.New("lab.Learn", fault.Invalid, "%q is not the URL of a server; it looks like http://127.0.0.1:8787", l.plan.URL)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	addr := net.JoinHostPort(u.Hostname(), port)
	l.dial = load.Dialer(addr)
	if u.Scheme == "https" {
		l.dial = func(ctx context.Context) (net.Conn, error) {
			d := tls.Dialer{NetDialer: &net.Dialer{Timeout: 10 * time.Second}}
			return d.DialContext(ctx, "tcp", addr)
		}
	}
	l.path = strings.TrimRight(u.EscapedPath(), "/")
	l.target = load.Target{Host: u.Host, Key: l.plan.Key}
	l.control = newControl(u.Scheme+"://"+u.Host+l.path, l.plan.Key)
	return nil
}

// capsuleName is tenant/job/capsule.
var capsuleName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}(/[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}){2}$`)

// create makes the capsule with one action per label. A capsule that has learned before would be an unfair start.
func (l *learning) create(ctx context.Context) error {
	if l.plan.Capsule == "" {
		l.plan.Capsule = tenant + "/learn/" + time.Now().UTC().Format("run-20060102-150405.000")
	}
	if !capsuleName.MatchString(l.plan.Capsule) {
		return fault.New("lab.Learn", fault.Invalid, "%q does not name a capsule; write tenant/job/capsule", l.plan.Capsule)
	}
	parts := strings.Split(l.plan.Capsule, "/")
	route := "/v1/tenants/" + parts[0] + "/jobs/" + parts[1] + "/capsules/" + parts[2]
	var before struct {
		ModelVersion uint64 `json:"modelVersion"`
	}
	switch err := l.control.ask(ctx, "GET "+route, "", &before); {
	case err == nil && before.ModelVersion > 0:
		return fault.New("lab.Learn", fault.Conflict, "the capsule %s has learned from %d rewards already; choose another name",
			l.plan.Capsule, before.ModelVersion)
	case err != nil && fault.KindOf(err) != fault.NotFound:
		return err
	}
	spec, err := l.spec()
	if err != nil {
		return err
	}
	if err := l.control.ask(ctx, "PUT "+route+"/spec", spec, nil); err != nil {
		return err
	}
	if l.plan.Spec != "" {
		if err := l.control.ask(ctx, "PUT "+route+"/spec", l.plan.Spec, nil); err != nil {
			return err
		}
	}
	l.path += route
	return nil
}

// spec is the defaults with one action per label and a seed, so that a run can be repeated.
func (l *learning) spec() (string, error) {
	spec := []byte(`{"seed":` + strconv.FormatUint(l.plan.Seed, 10) + `,"actions":[`)
	for i, label := range l.data.labels {
		if i > 0 {
			spec = append(spec, ',')
		}
		var err error
		if spec, err = jsontext.AppendQuote(append(spec, `{"id":`...), label); err != nil {
			return "", fault.Wrap("lab.Learn", fault.Invalid, err, "the label "+strconv.Quote(label)+" is not UTF-8")
		}
		spec = append(spec, '}')
	}
	return string(append(spec, "]}"...)), nil
}

// round plays one row: decide, compare, reward.
func (l *learning) round(ctx context.Context, row int) error {
	body := append([]byte(`{"context":`), l.data.contexts[row]...)
	var choice struct {
		DecisionID string `json:"decisionId"`
		Action     string `json:"action"`
	}
	if err := l.post(ctx, "/decide", append(body, '}'), &choice); err != nil {
		return err
	}
	right := choice.Action == l.data.labels[l.data.right[row]]
	reward := `,"reward":0}`
	if right {
		reward = `,"reward":1}`
		l.right++
	}
	l.marks = append(l.marks, right)
	body, err := jsontext.AppendQuote([]byte(`{"decisionId":`), choice.DecisionID)
	if err != nil {
		return fault.Wrap("lab.Learn", fault.Internal, err, "the decision id is not UTF-8")
	}
	var applied struct {
		Applied bool `json:"applied"`
		Learned bool `json:"learned"`
	}
	if err := l.post(ctx, "/reward", append(body, reward...), &applied); err != nil {
		return err
	}
	if !applied.Applied || !applied.Learned {
		return fault.New("lab.Learn", fault.Internal, "the reward of round %d was not learned from; is the capsule frozen?", len(l.marks))
	}
	return nil
}

// patience bounds how often a refused request of one round is sent again.
const patience = 20

// post sends one request over the kept connection. A refusal waits as long as the server asks and is sent again.
func (l *learning) post(ctx context.Context, suffix string, body []byte, out any) error {
	for range patience {
		if l.conn == nil {
			c, err := l.dial(ctx)
			if err != nil {
				return fault.Wrap("lab.Learn", fault.Unavailable, err, "cannot reach "+l.plan.URL)
			}
			l.conn = load.NewConn(c, 30*time.Second)
		}
		l.spare = append(l.target.AppendHead(l.spare[:0], "POST "+l.path+suffix, len(body)), body...)
		answer, err := l.conn.Do(l.spare, time.Now())
		if err != nil {
			l.hangUp()
			return fault.Wrap("lab.Learn", fault.Unavailable, err, suffix+" got no answer; the run cannot go on, because nobody knows whether it counted")
		}
		text := bytes.TrimSpace(answer.Body)
		if answer.Close {
			l.hangUp()
		}
		switch load.ClassOf(answer.Status) {
		case load.Accepted:
			if err := json.Unmarshal(text, out); err != nil {
				return fault.Wrap("lab.Learn", fault.Internal, err, suffix+" was answered with JSON of another shape")
			}
			return ctx.Err()
		case load.Failed:
			return fault.New("lab.Learn", kindOf(answer.Status), "%s in round %d was answered with %d: %s", suffix, len(l.marks)+1,
				answer.Status, text[:min(len(text), 300)])
		}
		if err := pause(ctx, time.Duration(min(max(answer.RetryAfter, 1), 10))*time.Second); err != nil {
			return err
		}
	}
	return fault.New("lab.Learn", fault.Exhausted, "%s was refused %d times in a row; raise the server's rate limit", suffix, patience)
}

func (l *learning) hangUp() {
	if l.conn != nil {
		_ = l.conn.Close() // nothing is under way
		l.conn = nil
	}
}

// overall is the share of right answers so far.
func (l *learning) overall() float64 { return ratio(float64(l.right), float64(len(l.marks))) }

// lately is the share of right answers among the last n rounds.
func (l *learning) lately(n int) float64 {
	last := l.marks[max(0, len(l.marks)-n):]
	right := 0
	for _, m := range last {
		if m {
			right++
		}
	}
	return ratio(float64(right), float64(len(last)))
}

// progress is the line that stays after each twentieth of the run.
func (l *learning) progress(every int) string {
	share := l.lately(every)
	const cells = 40
	full := min(cells, int(share*cells+0.5))
	return strings.Join([]string{"round " + pad(strconv.Itoa(len(l.marks)), 7), "right " + strconv.FormatFloat(l.overall(), 'f', 3, 64),
		"lately " + strconv.FormatFloat(share, 'f', 3, 64), strings.Repeat("█", full) + strings.Repeat("·", cells-full)}, "  ")
}

func pad(text string, width int) string { return strings.Repeat(" ", max(0, width-len(text))) + text }

// describe puts the result into the report.
func (r *run) describe(l *learning, spent time.Duration) {
	tenth := max(1, len(l.marks)/10)
	table := report.Table{Name: "learn", Title: "Right answers", Columns: []report.Column{{Key: "rounds", Title: "rounds"},
		{Key: "rows", Title: "rows"}, {Key: "labels", Title: "labels"}, {Key: "overall", Title: "overall", Digits: 4},
		{Key: "last_tenth", Title: "last tenth", Digits: 4}, {Key: "seconds", Title: "seconds", Digits: 1},
		{Key: "rounds_per_s", Title: "rounds/s"}},
		Note: "Each round waits for its reward to be learned from and stored before the next begins."}
	table.Add(len(l.marks), len(l.data.contexts), len(l.data.labels), l.overall(), l.lately(tenth), spent.Seconds(),
		float64(len(l.marks))/spent.Seconds())
	r.doc.Tables = append(r.doc.Tables, table)
	window, total := report.Series{Name: "last twentieth"}, report.Series{Name: "overall"}
	every, right := max(1, len(l.marks)/20), 0
	recent := 0
	for i, m := range l.marks {
		if m {
			right++
			recent++
		}
		if i >= every && l.marks[i-every] {
			recent--
		}
		if (i+1)%max(1, every/4) == 0 {
			x := float64(i + 1)
			window.Points = append(window.Points, report.Point{X: x, Y: float64(recent) / float64(min(i+1, every))})
			total.Points = append(total.Points, report.Point{X: x, Y: float64(right) / x})
		}
	}
	r.doc.Charts = append(r.doc.Charts, report.Chart{Title: "Share of right answers", X: "rounds", Y: "share", Series: []report.Series{total, window}})
	r.doc.Find(report.Note, "Right answers: %.3f overall, %.3f in the last tenth; guessing gives %.3f.", l.overall(), l.lately(tenth),
		1/float64(len(l.data.labels)))
}
