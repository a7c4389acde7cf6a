package decision

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"holdfast/fault"
)

// Gate is a condition on a report that must hold before a spec is promoted, such as `lift.dr.lower >= 0` or
// `dr.lower >= logged.mean - 0.01`. The grammar is `metric op (metric|number) [(+|-) number]`.
type Gate struct {
	text   string
	left   string // metric
	op     string // >= > <= < ==
	metric string // right side, empty when it is a number
	number float64
	offset float64
}

// MaxGates bounds how many gates one evaluation checks.
const MaxGates = 64

// ParseGate reads one gate. A metric that does not exist, or that has no interval, is an Invalid fault that names it.
func ParseGate(text string) (Gate, error) {
	bad := func(format string, args ...any) (Gate, error) {
		return Gate{}, fault.New("decision.ParseGate", fault.Invalid, "gate %q: %s", text, fmt.Sprintf(format, args...))
	}
	words := gateWords(text)
	if len(words) != 3 && len(words) != 5 {
		return bad("must read `metric op (metric|number) [(+|-) number]`")
	}
	g := Gate{text: text, left: words[0], op: words[1]}
	if !isMetric(g.left) {
		return bad("unknown metric %q", g.left)
	}
	switch g.op {
	case ">=", ">", "<=", "<", "==":
	default:
		return bad("unknown operator %q", g.op)
	}
	if n, ok := gateNumber(words[2]); ok {
		g.number = n
	} else if g.metric = words[2]; !isMetric(g.metric) {
		return bad("%q is neither a metric nor a number", words[2])
	}
	if len(words) == 5 {
		n, ok := gateNumber(words[4])
		if words[3] != "+" && words[3] != "-" || !ok || strings.HasPrefix(words[4], "-") {
			return bad("%q must be + or - and a number", words[3]+" "+words[4])
		}
		if g.offset = n; words[3] == "-" {
			g.offset = -n
		}
	}
	return g, nil
}

// gateWords splits at spaces and around operators, so that `ess>=100` reads like `ess >= 100`. A sign that follows an
// operator belongs to its number.
func gateWords(text string) []string {
	var words []string
	rest := text
	for {
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" {
			return words
		}
		if n := operatorLength(rest); n > 0 {
			words, rest = append(words, rest[:n]), rest[n:]
			continue
		}
		value := len(words) == 2 || len(words) == 4 // a number may start with its sign here
		if (rest[0] == '+' || rest[0] == '-') && !value {
			words, rest = append(words, rest[:1]), rest[1:]
			continue
		}
		n := 1
		for n < len(rest) && !strings.ContainsRune(" \t<>=", rune(rest[n])) && !signAt(rest, n) {
			n++
		}
		words, rest = append(words, rest[:n]), rest[n:]
	}
}

// signAt reports whether rest[n] is a + or - that does not belong to an exponent.
func signAt(rest string, n int) bool {
	if rest[n] != '+' && rest[n] != '-' {
		return false
	}
	e := rest[n-1] == 'e' || rest[n-1] == 'E'
	return !e || !strings.ContainsRune("0123456789.+-", rune(rest[0]))
}

func operatorLength(s string) int {
	for _, op := range []string{">=", "<=", "==", ">", "<"} {
		if strings.HasPrefix(s, op) {
			return len(op)
		}
	}
	return 0
}

func gateNumber(s string) (float64, bool) {
	if !strings.ContainsRune("0123456789.+-", rune(s[0])) {
		return 0, false // no inf, nan or other words
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && !strings.ContainsAny(s, "xX_") && !math.IsInf(n, 0)
}

// isMetric reports whether name is one that gates may use. The direct method has no interval, so dm has an estimate only.
func isMetric(name string) bool {
	switch name {
	case "dm.estimate", "lift.dm.mean", "logged.mean", "logged.lower", "logged.upper", "ess", "coverage", "n", "clip_rate",
		"max_weight":
		return true
	}
	rest, lift := strings.CutPrefix(name, "lift.")
	estimator, field, _ := strings.Cut(rest, ".")
	if estimator != "ips" && estimator != "snips" && estimator != "dr" {
		return false
	}
	switch field {
	case "lower", "upper", "se":
		return true
	case "estimate":
		return !lift
	case "mean":
		return lift
	}
	return false
}

// Check compares the gate with a report's metrics. An undefined value fails it.
func (g Gate) Check(metric func(name string) *float64) GateResult {
	r := GateResult{Check: g.text, Left: metric(g.left)}
	right := &g.number
	if g.metric != "" {
		right = metric(g.metric)
	}
	if right != nil {
		v := *right + g.offset
		r.Right = &v
	}
	if r.Left == nil || r.Right == nil {
		return r
	}
	switch left, right := *r.Left, *r.Right; g.op {
	case ">=":
		r.Pass = left >= right
	case ">":
		r.Pass = left > right
	case "<=":
		r.Pass = left <= right
	case "<":
		r.Pass = left < right
	case "==":
		r.Pass = left == right
	}
	return r
}

// GateResult is one gate with the values it compared; an undefined one is nil.
type GateResult struct {
	Check string   `json:"check"`
	Left  *float64 `json:"left"`
	Right *float64 `json:"right"`
	Pass  bool     `json:"pass"`
}
