package gateway

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestErrorTable(t *testing.T) {
	table := newErrorTable([]ErrorRule{
		{Connector: "*", Flow: "*", SubFlow: "*", Code: "51", Message: "*", UnifiedCode: "any 51"},
		{Connector: "mercato", Flow: "*", SubFlow: "*", Code: "51", Message: "*", UnifiedCode: "mercato 51"},
		{Connector: "mercato", Flow: "Authorize", SubFlow: "*", Code: "51", Message: "*", UnifiedCode: "mercato 51 authorize"},
		{Connector: "mercato", Flow: "*", SubFlow: "sub_flow", Code: "51", Message: "no funds", UnifiedCode: "mercato 51 message"},
		{Connector: "mercato", Flow: "*", SubFlow: "*", Code: "51", Message: "*", UnifiedCode: "a later one"},
		{Connector: "kestrel", Flow: "Authorize", SubFlow: "sub_flow", Code: "51", Message: "no funds", UnifiedCode: "kestrel whole"},
		{Connector: "kestrel", Flow: "*", SubFlow: "*", Code: "1A", Message: "*", UnifiedCode: "step", StepUp: true},
		{Connector: "kestrel", Flow: "*", SubFlow: "*", Code: "14", Message: "*", UnifiedCode: "details", UnifiedMessage: "Problem with the Payment Method Details"},
	})
	for _, c := range []struct {
		name     string
		e        ErrorInfo
		want     string
		customer bool
	}{
		{"any connector", ErrorInfo{Connector: "alphapay", Code: "51"}, "any 51", false},
		{"no connector", ErrorInfo{Code: "51"}, "any 51", false},
		{"its connector", ErrorInfo{Connector: "mercato", Code: "51"}, "mercato 51", false},
		{"an account of it", ErrorInfo{Connector: "mercato:acc_7", Code: "51"}, "mercato 51", false},
		{"its flow", ErrorInfo{Connector: "mercato", Flow: "authorize", SubFlow: "sub_flow", Code: "51", Message: "no funds"}, "mercato 51 authorize", false},
		{"its message", ErrorInfo{Connector: "mercato", Flow: "Capture", SubFlow: "sub_flow", Code: "51", Message: "No Funds"}, "mercato 51 message", false},
		{"whole", ErrorInfo{Connector: "kestrel", Flow: "Authorize", SubFlow: "sub_flow", Code: "51", Message: "no funds"}, "kestrel whole", false},
		{"not whole", ErrorInfo{Connector: "kestrel", Flow: "Authorize", SubFlow: "other", Code: "51", Message: "no funds"}, "any 51", false},
		{"step up", ErrorInfo{Connector: "kestrel", Code: "1A"}, "step", true},
		{"details", ErrorInfo{Connector: "kestrel", Code: "14"}, "details", true},
		{"code in another case", ErrorInfo{Connector: "kestrel", Code: "1a"}, "", false},
		{"unknown code", ErrorInfo{Connector: "kestrel", Code: "99"}, "", false},
		{"no code", ErrorInfo{Connector: "kestrel"}, "", false},
		{"as listed", ErrorInfo{Connector: "*", Flow: "*", SubFlow: "*", Code: "51", Message: "*"}, "any 51", false},
	} {
		rule, customer := table.match(&c.e)
		got := ""
		if rule != nil {
			got = rule.UnifiedCode
		}
		if got != c.want || customer != c.customer {
			t.Errorf("%s: %q %v, want %q %v", c.name, got, customer, c.want, c.customer)
		}
	}
	var none *ErrorTable
	if rule, customer := none.match(&ErrorInfo{Code: "51"}); rule != nil || customer {
		t.Error("no table matched")
	}
}

func TestErrorTableAllocatesNothing(t *testing.T) {
	table := newErrorTable(defaultErrorRules())
	e := &ErrorInfo{Connector: "mercato:acc", Flow: "Authorize", Code: "51", Message: "no funds"}
	if n := testing.AllocsPerRun(100, func() { table.match(e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What is found matches, and no other rule of the table fits more closely.
func TestErrorTableProperties(t *testing.T) {
	word := rapid.SampledFrom([]string{"*", "a", "b"})
	rapid.Check(t, func(r *rapid.T) {
		var rules []ErrorRule
		for range rapid.IntRange(0, 8).Draw(r, "rules") {
			rules = append(rules, ErrorRule{Connector: word.Draw(r, "connector"), Flow: word.Draw(r, "flow"), SubFlow: word.Draw(r, "sub"), Code: "1", Message: word.Draw(r, "message")})
		}
		e := &ErrorInfo{Connector: word.Draw(r, "c"), Flow: word.Draw(r, "f"), SubFlow: word.Draw(r, "s"), Code: "1", Message: word.Draw(r, "m")}
		weigh := func(rule *ErrorRule) int {
			total := 0
			for _, c := range []struct {
				want, is string
				weight   int
			}{{rule.Connector, e.Connector, 8}, {rule.Flow, e.Flow, 4}, {rule.Message, e.Message, 2}, {rule.SubFlow, e.SubFlow, 1}} {
				switch {
				case c.want == "*":
				case c.want == c.is:
					total += c.weight
				default:
					return -1
				}
			}
			return total
		}
		best := -1
		for i := range rules {
			best = max(best, weigh(&rules[i]))
		}
		got, _ := newErrorTable(rules).match(e)
		if got == nil {
			if best >= 0 {
				r.Fatalf("nothing found for %+v in %+v", e, rules)
			}
		} else if weigh(got) != best {
			r.Fatalf("found %+v for %+v in %+v", got, e, rules)
		}
	})
}

func TestDefaultErrorRules(t *testing.T) {
	rules := defaultErrorRules()
	table := newErrorTable(rules)
	for _, r := range rules {
		if what := r.wrong(); what != "" {
			t.Errorf("%s: %s", r.Code, what)
		}
		found, _ := table.match(&ErrorInfo{Connector: "any", Flow: "Authorize", Code: r.Code, Message: "said so"})
		if found == nil || found.Code != r.Code || found.Decision == "" || strings.TrimSpace(found.UnifiedMessage) == "" {
			t.Errorf("%s: found %+v", r.Code, found)
		}
	}
	for code, customer := range map[string]bool{"14": true, "54": true, "65": true, "51": false, "91": false, "96": false} {
		if _, got := table.match(&ErrorInfo{Code: code}); got != customer {
			t.Errorf("%s: customer's cause %v", code, got)
		}
	}
}
