package decision

import (
	"strings"
	"testing"

	"holdfast/fault"
)

func TestGates(t *testing.T) {
	values := map[string]float64{"lift.dr.lower": 0.25, "dr.lower": 0.5, "logged.mean": 0.5, "ess": 120, "n": 500, "dm.estimate": -1}
	metric := func(name string) *float64 {
		if v, ok := values[name]; ok {
			return &v
		}
		return nil
	}
	for text, want := range map[string]bool{
		"lift.dr.lower >= 0":             true,
		"lift.dr.lower>=0":               true,
		"lift.dr.lower < 0.25":           false,
		"lift.dr.lower <= 0.25":          true,
		"dr.lower > logged.mean":         false,
		"dr.lower > logged.mean - 0.01":  true,
		"dr.lower>=logged.mean+0.01":     false,
		"dr.lower == logged.mean":        true,
		"ess >= 1e2":                     true,
		"ess >= 1.21e+2":                 false,
		"n == 499 + 1":                   true,
		"dm.estimate >= -1":              true,
		"dm.estimate >= -1.5 + .25":      true,
		"dm.estimate < -1 - 0.5":         false,
		"snips.se <= 1":                  false, // undefined
		"ess >= max_weight":              false, // undefined on the right
		"  ess\t>=  100  ":               true,
		"lift.dr.lower >= logged.mean-1": true,
	} {
		g, err := ParseGate(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		r := g.Check(metric)
		if r.Pass != want {
			t.Errorf("%s: pass %v, want %v (left %v, right %v)", text, r.Pass, want, r.Left, r.Right)
		}
		if r.Check != text {
			t.Errorf("the result names %q, not %q", r.Check, text)
		}
	}
}

func TestBadGatesAreNamed(t *testing.T) {
	for _, text := range []string{"", " ", "ess", "ess >=", "ess >= 1 +", "ess >= 1 * 2", "ess >= 1 + n", "ess => 1", "ess != 1",
		"dm.lower >= 0", "dm.upper >= 0", "lift.dm.lower >= 0", "lift.dr.estimate >= 0", "dr.mean >= 0", "speed > 1",
		"logged.se > 1", "0 <= ess", "ess >= nan", "ess >= inf", "ess >= 0x10", "ess >= 1e999", "ess >= 1 - -2", "ess >= 1 2 3",
		"ess >= 1 + 2 + 3", "lift >= 0", "lift.ips >= 0", "ess >= 1_000", "ess ≥ 1"} {
		_, err := ParseGate(text)
		if fault.KindOf(err) != fault.Invalid || err == nil {
			t.Errorf("%q: got %v, want an Invalid fault", text, err)
		} else if !strings.Contains(err.Error(), "gate ") {
			t.Errorf("%q: %v does not name the gate", text, err)
		}
	}
}

func FuzzParseGate(f *testing.F) {
	for _, s := range []string{"ess >= 1", "dr.lower>logged.mean-1e-3", "n<+", "+", "e+e+"} {
		f.Add(s)
	}
	one := 1.0
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ParseGate(text)
		if err != nil {
			return
		}
		if !isMetric(g.left) || g.op == "" {
			t.Fatalf("%q was taken as %+v", text, g)
		}
		if r := g.Check(func(string) *float64 { return &one }); r.Left == nil || r.Right == nil {
			t.Fatalf("%q lost a side: %+v", text, r)
		}
	})
}
