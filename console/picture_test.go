package console

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"holdfast/decision"
	"holdfast/ident"
)

var operator = ident.Principal{Kind: ident.Operator, ID: "operator", Scope: ident.Scope{Role: ident.Admin}}

// fed is a trail that was given samples without a service.
type fed struct {
	*trail
	now   time.Time
	stats decision.Stats
}

func newFed() *fed {
	f := &fed{trail: newTrail(decision.CapsuleID{}), now: time.Unix(1_000_000_000, 5e8)}
	f.add(&seen{}, f.now)
	return f
}

// second passes one second in which the options were chosen that often and each reward came once.
func (f *fed) second(options map[string]int, rewards ...float64) {
	f.now = f.now.Add(time.Second)
	s := seen{}
	for name, n := range options {
		for range n {
			s.page = append(s.page, decision.Decision{TimeMS: f.now.UnixMilli() - 100, Actions: []decision.Action{{ID: name}}})
		}
		f.stats.Decisions += int64(n)
	}
	for _, v := range rewards {
		s.rewards = append(s.rewards, decision.Reward{TimeMS: f.now.UnixMilli() - 50, Value: v})
		f.stats.LastRewardSeq++
	}
	s.stats = f.stats
	f.add(&s, f.now)
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestPictureFollowsShares(t *testing.T) {
	f := newFed()
	if p := f.picture(f.now, 60); len(p.At) != 0 || !math.IsNaN(last(p.Rate)) {
		t.Fatalf("a picture of nothing: %+v", p)
	}
	for range 100 {
		f.second(map[string]int{"a": 10, "b": 10}, 0)
	}
	p := f.picture(f.now, 60)
	near(t, "share of a", last(p.Shares[f.slot("a")]), 0.5, 1e-9)
	near(t, "rate", last(p.Rate), 20, 1e-9)
	near(t, "reward", last(p.Reward), 0, 0)
	for range 60 {
		f.second(map[string]int{"a": 20}, 1, 1)
	}
	p = f.picture(f.now, 60)
	near(t, "share of a later", last(p.Shares[f.slot("a")]), 1, 0.02)
	near(t, "reward later", last(p.Reward), 1, 0.1)
	if p.Seconds < 155 || p.Seconds > 165 || len(p.At) < 40 || len(p.At) > 61 || p.At[0] < 0 || last(p.At) != 1 {
		t.Errorf("%d s in %d points from %v to %v", p.Seconds, len(p.At), p.At[0], last(p.At))
	}
	for i := range p.At {
		sum := 0.0
		for slot := range p.Shares {
			sum += p.Shares[slot][i]
		}
		near(t, "sum of shares", sum, 1, 1e-9)
	}
}

func TestPictureRemembersWhatAnIdleCapsuleDid(t *testing.T) {
	f := newFed()
	for range 5 {
		f.second(map[string]int{"a": 1, "b": 3}, 0.25)
	}
	for range 5000 {
		f.second(nil)
	}
	p := f.picture(f.now, 60)
	near(t, "share of b", last(p.Shares[f.slot("b")]), 0.75, 1e-6)
	near(t, "reward", last(p.Reward), 0.25, 1e-6)
	near(t, "rate", last(p.Rate), 0, 0)
	if p.Seconds < window-5 {
		t.Errorf("the picture spans %d s", p.Seconds)
	}
}

func TestOptionsBeyondTheColoursShareOne(t *testing.T) {
	f := newFed()
	many := map[string]int{}
	for i := range 20 {
		many[fmt.Sprintf("o%d", i)] = 20 - i
	}
	f.second(many)
	p := f.picture(f.now, 60)
	if len(p.Options) != slots || p.Options[0] != "o0" || p.Options[7] != "o7" {
		t.Fatalf("options %v", p.Options)
	}
	rest, total := 0, 0
	for i := range 20 {
		total += 20 - i
		if i >= slots {
			rest += 20 - i
		}
	}
	near(t, "the rest", last(p.Shares[slots]), float64(rest)/float64(total), 1e-9)
	f.second(map[string]int{"o19": 500}) // frequent now, but the colours are taken
	if f.slot("o19") != slots || f.slot("o0") != 0 {
		t.Error("a colour went to another option")
	}
}

func TestChartsAreNumbersOnly(t *testing.T) {
	f := newFed()
	for range 3 {
		f.second(map[string]int{`"><script>`: 1, "b": 2}, 0.5)
	}
	p := f.picture(f.now, 60)
	for _, text := range []string{string(stacked(&p)), string(line(p.At, p.Reward, scale{0, 1}))} {
		if strings.Contains(text, "script") || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Count(text, "<path") < 2 {
			t.Errorf("drawing: %s", text)
		}
	}
	if text := string(line(nil, nil, scale{0, 1})); !strings.HasSuffix(text, "</svg>") {
		t.Errorf("drawing of nothing: %s", text)
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		series []float64
		least  float64
		want   scale
	}{
		{nil, 1, scale{0, 1}},
		{[]float64{0, 0}, 1, scale{0, 1}},
		{[]float64{math.NaN(), 0.42, 0.58}, 0.1, scale{0.42, 0.58}},
		{[]float64{0, 873}, 1, scale{0, 900}},
		{[]float64{-3, 4}, 1, scale{-3, 4}},
		{[]float64{5000, 5000}, 1, scale{4999.4, 5000.6}},
	} {
		got := fit(c.series, c.least)
		near(t, fmt.Sprint(c.series, " low"), got.Lo, c.want.Lo, 1e-6)
		near(t, fmt.Sprint(c.series, " high"), got.Hi, c.want.Hi, 1e-6)
	}
}

func TestNumbersForPeople(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{number(math.NaN()), "–"}, {number(0), "0"}, {number(0.5), "0.50"}, {number(1), "1"}, {number(80), "80"}, {number(12.34), "12.3"},
		{number(345.6), "346"}, {number(-1234567), "\u22121\u202f234\u202f567"}, {number(0.00123), "0.0012"},
		{percent(0), "0 %"}, {percent(0.001), "<1 %"}, {percent(0.999), ">99 %"}, {percent(1), "100 %"}, {percent(0.256), "26 %"},
		{count(999), "999"}, {count(int64(1000)), "1\u202f000"}, {clip("größer", 3), "gr …"}, {clip("abc", 3), "abc"},
		{ago(time.UnixMilli(100_000), 99_000), "now"}, {ago(time.UnixMilli(100_000), 40_000), "1 min ago"}, {ago(time.Now(), 0), "never"},
		{span(60), "60 s"}, {span(298), "5 min"}, {indent([]byte(`{"a":1}`)), "{\n  \"a\": 1\n}"}, {indent([]byte("not json")), "not json"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestWhy(t *testing.T) {
	d := func(mode decision.Mode, chosen float64, pmf ...float64) *decision.Decision {
		return &decision.Decision{Mode: mode, PMF: pmf, Probability: chosen}
	}
	for want, one := range map[string]*decision.Decision{
		"the only option that was allowed":                  d(decision.Learner, 1, 1),
		"no preference yet: all were as likely":             d(decision.Learner, 0.5, 0.5, 0.5),
		"exploring: a less likely option, to learn from it": d(decision.Learner, 0.1, 0.1, 0.9),
		"the best one as far as the model knows":            d(decision.Frozen, 0.9, 0.1, 0.9),
		"the likeliest while the baseline serves":           d(decision.BaselineExplore, 0.9, 0.1, 0.9),
	} {
		if got, given := why(one); got != want || given {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got, given := why(&decision.Decision{Reason: "a rule", PMF: []float64{1}}); got != "a rule" || !given {
		t.Errorf("a graph's reason: %q", got)
	}
}

func TestSessionsAreBoundedAndEnd(t *testing.T) {
	var s sessions
	now := time.Unix(1_000_000_000, 0)
	first := s.begin(operator, now)
	second := s.begin(operator, now.Add(time.Second))
	for i := range maxSessions - 1 {
		s.begin(operator, now.Add(time.Minute+time.Duration(i)))
	}
	if _, ok := s.find(first, now); ok || len(s.all) != maxSessions {
		t.Errorf("%d sessions, the oldest among them: %v", len(s.all), ok)
	}
	if p, ok := s.find(second, now.Add(time.Hour)); !ok || p != operator {
		t.Error("the second session is gone")
	}
	if _, ok := s.find(second, now.Add(sessionLife+2*time.Second)); ok {
		t.Error("a session outlives its life")
	}
	if _, ok := s.find("", now); ok {
		t.Error("no secret is a session")
	}
}

func TestNextStaysHere(t *testing.T) {
	for path, want := range map[string]string{
		"/console/capsule/a/b/c": "/console/capsule/a/b/c", "": "/", "//evil.example": "/", "https://evil.example/": "/",
		"/console/capsule/\\evil": "/", "/metrics": "/",
	} {
		if got := next(path); got != want {
			t.Errorf("next(%q) is %q", path, got)
		}
	}
}

func TestNewestDecisionsAreMixed(t *testing.T) {
	list := func(name string, n int, from int64) (rows []row) {
		for i := range n {
			rows = append(rows, row{Capsule: name, At: time.Unix(from-int64(i), 0)})
		}
		return rows
	}
	count := func(rows []row) map[string]int {
		n := map[string]int{}
		for i, r := range rows {
			if n[r.Capsule]++; i > 0 && rows[i-1].At.Before(r.At) {
				t.Errorf("row %d is newer than the one before", i)
			}
		}
		return n
	}
	if n := count(mixed([][]row{list("busy", 12, 1000), list("slow", 12, 100)})); n["busy"] != 6 || n["slow"] != 6 {
		t.Errorf("of two: %v", n)
	}
	if n := count(mixed([][]row{list("busy", 12, 1000), list("slow", 2, 100), nil})); n["busy"] != 10 || n["slow"] != 2 {
		t.Errorf("with one that did little: %v", n)
	}
	if n := count(mixed(nil)); len(n) != 0 {
		t.Errorf("of none: %v", n)
	}
}

func TestWatchIsBounded(t *testing.T) {
	var w watch
	now := time.Unix(1_000_000_000, 0)
	id := func(i int) decision.CapsuleID { return decision.CapsuleID{Capsule: fmt.Sprint(i)} }
	for i := range maxWatched + 1 {
		w.touch(id(i), now.Add(time.Duration(i)*time.Millisecond))
	}
	if len(w.trails) != maxWatched || w.trails[id(0)] != nil {
		t.Errorf("%d are watched, the first among them: %v", len(w.trails), w.trails[id(0)] != nil)
	}
	later := now.Add(linger + time.Second)
	w.touch(id(7), later)
	if active := w.active(later); len(active) != 1 || active[0].id != id(7) || len(w.trails) != 1 {
		t.Errorf("%d are still watched", len(active))
	}
}

func TestSamplesFallIntoTheMiddleOfASecond(t *testing.T) {
	for _, ns := range []int64{0, 1, 499_999_999, 500_000_000, 999_999_999} {
		now := time.Unix(1_000_000_000, ns)
		wait := untilMiddle(now)
		if at := now.Add(wait); at.Nanosecond() != 500_000_000 || wait <= 0 || wait > 1500*time.Millisecond {
			t.Errorf("from %d ns it waits %v", ns, wait)
		}
	}
}
