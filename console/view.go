package console

import (
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"holdfast/decision"
)

// How much a page shows.
const (
	cardsPerPage  = 24
	cardPoints    = 60
	pagePoints    = 120
	overviewRows  = 12
	leastRows     = 3    // of one capsule on the first page, however many share it
	maxBars       = 12   // actions of one distribution
	maxText       = 4096 // bytes of a context
	maxReason     = 240  // bytes of a reason
	auditsShown   = 20
	auditEvery    = 5   // seconds between looks at the changes of an open page
	leastOfReward = 0.1 // of the reward range is what an axis spans at least: noise shall not look like a trend
)

// share is one option in a legend.
type share struct {
	Name  string
	Slot  int
	Value float64
}

// graph is a chart with the text beside it.
type graph struct {
	Label   string // what it shows, for those who cannot see it
	Drawing template.HTML
	Empty   bool
	None    string // what to say then
	Y       scale
	Seconds int
}

// trends are the pictures of one capsule.
type trends struct {
	Shares graph
	Legend []share
	Reward graph
	Mean   float64 // newest; NaN without
	Rate   graph
	PerSec float64 // newest; NaN without
}

// trendsOf draws a picture; span is the width of the reward range.
func trendsOf(p *picture, span float64) trends {
	t := trends{Mean: last(p.Reward), PerSec: last(p.Rate)}
	t.Shares = graph{Label: "share of each option over time", Drawing: stacked(p), Empty: len(p.At) < 2, None: "no decisions yet", Seconds: p.Seconds}
	reward := fit(p.Reward, leastOfReward*span)
	t.Reward = graph{Label: "mean reward over time", Drawing: line(p.At, p.Reward, reward), Empty: math.IsNaN(t.Mean), None: "no rewards yet", Y: reward, Seconds: p.Seconds}
	rate := fit(append(slices.Clone(p.Rate), 0), 1)
	t.Rate = graph{Label: "decisions per second", Drawing: line(p.At, p.Rate, rate), Empty: len(p.At) < 2, None: "no decisions yet", Y: rate, Seconds: p.Seconds}
	for i, name := range p.Options {
		t.Legend = append(t.Legend, share{name, i, last(p.Shares[i])})
	}
	if rest := last(p.Shares[slots]); rest > 0 {
		t.Legend = append(t.Legend, share{"all others", slots, rest})
	}
	return t
}

// row is one decision in a list.
type row struct {
	Anchor  string
	Capsule string // empty on the capsule's own page
	Link    string
	logged
	At     time.Time
	Action string
	Slot   int
	Why    string
	Given  bool // Why is the caller's graph speaking, not this page
	Bars   []bar
	More   int // actions that are not in Bars
	Input  string
	Hint   string // the beginning of Input on one line
}

// bar is one eligible action of a distribution.
type bar struct {
	Name        string
	Slot        int
	Probability float64
	Chosen      bool
}

// rowsOf prepares the newest decisions of a capsule.
func rowsOf(p *picture, most int) []row {
	rows := make([]row, 0, len(p.Newest))
	for _, l := range p.Newest[:min(most, len(p.Newest))] {
		r := row{Anchor: "d-" + l.ID, logged: l, At: time.UnixMilli(l.TimeMS).UTC(), Action: l.Actions[l.Chosen].ID}
		r.Slot = slotOf(p, r.Action)
		r.Why, r.Given = why(&l.Decision)
		r.Input, r.Hint = clip(indent(l.Context), maxText), clip(string(l.Context), maxReason)
		for i, at := range l.Eligible {
			name := l.Actions[at].ID
			r.Bars = append(r.Bars, bar{name, slotOf(p, name), l.PMF[i], at == l.Chosen})
		}
		slices.SortStableFunc(r.Bars, func(a, b bar) int {
			switch {
			case a.Probability > b.Probability:
				return -1
			case a.Probability < b.Probability:
				return 1
			}
			return 0
		})
		if len(r.Bars) > maxBars {
			r.More = len(r.Bars) - maxBars
			r.Bars = r.Bars[:maxBars]
		}
		rows = append(rows, r)
	}
	return rows
}

func slotOf(p *picture, option string) int {
	if i := slices.Index(p.Options, option); i >= 0 {
		return i
	}
	return slots
}

// why says in words why a decision fell as it did: in the words of the capsule's graph when it gave some, otherwise from
// the distribution that was drawn from.
func why(d *decision.Decision) (text string, given bool) {
	if d.Reason != "" {
		return clip(d.Reason, maxReason), true
	}
	lo, hi := math.Inf(1), 0.0
	for _, p := range d.PMF {
		lo, hi = min(lo, p), max(hi, p)
	}
	switch {
	case len(d.PMF) == 1:
		return "the only option that was allowed", false
	case hi-lo < 1e-9:
		return "no preference yet: all were as likely", false
	case d.Probability < hi:
		return "exploring: a less likely option, to learn from it", false
	case d.Mode == decision.BaselineExplore:
		return "the likeliest while the baseline serves", false
	}
	return "the best one as far as the model knows", false
}

// clip shortens text to at most limit bytes, between two runes.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + " …"
}

// capsulePath is where the page of a capsule lives.
const capsulePath = "/console/capsule/"

// capsuleURL is the page of a capsule; names need no escaping, and a path that has them escaped is the same page.
func capsuleURL(tenant, job, capsule string) string {
	return capsulePath + tenant + "/" + job + "/" + capsule
}
