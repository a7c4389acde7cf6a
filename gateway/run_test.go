package gateway

import (
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast/fault"
)

// naive evaluates an algorithm's JSON as the language is described, without anything that the compiled form has: it finds
// everything by name, anew for every comparison. It returns the name of the rule that matched, "" for the default, or
// "InvalidComparison".
type naive struct {
	globals map[string]any
	params  map[string]value
}

func (n *naive) algorithm(doc map[string]any) string {
	data := doc["data"].(map[string]any)
	n.globals = data["globals"].(map[string]any)
	for _, r := range data["rules"].([]any) {
		rule := r.(map[string]any)
		switch n.any(rule["statements"].([]any)) {
		case "yes":
			return rule["name"].(string)
		case "wrong":
			return "InvalidComparison"
		}
	}
	return ""
}

func (n *naive) any(statements []any) string {
	for _, s := range statements {
		statement := s.(map[string]any)
		out := n.every(statement["condition"].([]any))
		if nested, there := statement["nested"]; there && nested != nil && out == "yes" {
			out = n.any(nested.([]any))
		}
		if out != "no" {
			return out
		}
	}
	return "no"
}

func (n *naive) every(conditions []any) string {
	for _, c := range conditions {
		if out := n.compare(c.(map[string]any)); out != "yes" {
			return out
		}
	}
	return "yes"
}

func (n *naive) compare(c map[string]any) string {
	say := func(b bool) string {
		if b {
			return "yes"
		}
		return "no"
	}
	operand := c["value"].(map[string]any)
	kind, op := operand["type"].(string), c["comparison"].(string)
	have := n.params[c["lhs"].(string)]
	if kind == "metadata_variant" {
		if v := n.params[operand["value"].(map[string]any)["key"].(string)]; v.kind != ValueNull {
			have = v
		}
	}
	if have.kind == ValueNull {
		return "no"
	}
	number := func(op string, than float64) bool {
		x := float64(have.number)
		return map[string]bool{"equal": x == than, "not_equal": x != than, "less_than": x < than, "less_than_equal": x <= than,
			"greater_than": x > than, "greater_than_equal": x >= than}[op]
	}
	texts := func(list []any) bool { return slices.Contains(list, any(have.text)) }
	same := op == "equal"
	switch kind {
	case "number":
		if have.kind != ValueNumber {
			return "wrong"
		}
		return say(number(op, operand["value"].(float64)))
	case "number_array":
		if have.kind != ValueNumber {
			return "wrong"
		}
		return say(slices.Contains(operand["value"].([]any), any(float64(have.number))) == same)
	case "number_comparison_array":
		if have.kind != ValueNumber {
			return "wrong"
		}
		for _, b := range operand["value"].([]any) {
			bound := b.(map[string]any)
			if !number(bound["comparison_type"].(string), bound["number"].(float64)) {
				return "no"
			}
		}
		return "yes"
	case "enum_variant":
		if have.kind != ValueEnum {
			return "wrong"
		}
		return say((have.text == operand["value"].(string)) == same)
	case "enum_variant_array":
		if have.kind != ValueEnum {
			return "wrong"
		}
		return say(texts(operand["value"].([]any)) == same)
	case "str_value":
		if have.kind != ValueText {
			return "wrong"
		}
		return say((have.text == operand["value"].(string)) == same)
	case "global_ref":
		if have.kind != ValueText && have.kind != ValueEnum {
			return "wrong"
		}
		set, _ := n.globals[operand["value"].(string)].([]any)
		for _, member := range set {
			if member.(map[string]any)["value"] == any(have.text) {
				return "yes"
			}
		}
		return "no"
	}
	if have.kind != ValueMetadata {
		return "wrong"
	}
	want := operand["value"].(map[string]any)
	return say((have.meta == want["key"] && have.text == want["value"]) == same)
}

// maker writes random programs over few keys and few values, so that everything happens often.
type maker struct{ *rand.Rand }

func (m maker) pick(words ...string) string { return words[m.IntN(len(words))] }

func (m maker) statements(depth int) string {
	var list []string
	for range m.IntN(3) {
		var conds []string
		for range m.IntN(4) {
			conds = append(conds, m.condition())
		}
		s := `{"condition":[` + strings.Join(conds, ",") + `]`
		switch m.IntN(4) {
		case 0:
			s += `,"nested":null`
		case 1:
			if depth < 4 {
				s += `,"nested":` + m.statements(depth+1)
			}
		}
		list = append(list, s+"}")
	}
	return "[" + strings.Join(list, ",") + "]"
}

func (m maker) condition() string {
	ops := []string{"equal", "not_equal"}
	equals := m.pick(ops...)
	n := strconv.Itoa(m.IntN(4))
	switch m.IntN(8) {
	case 0:
		return cond(m.pick("n", "x"), m.pick(comparisons[:]...), "number", n)
	case 1:
		return cond(m.pick("n", "x"), equals, "number_array", "["+n+",2]")
	case 2:
		return cond("n", "equal", "number_comparison_array", fmt.Sprintf(`[{"comparison_type":%q,"number":%s},{"comparison_type":%q,"number":1}]`,
			m.pick(comparisons[:]...), n, m.pick(comparisons[:]...)))
	case 3:
		return cond(m.pick("e", "x"), equals, "enum_variant", `"`+m.pick("a", "b", "c")+`"`)
	case 4:
		return cond("e", equals, "enum_variant_array", m.pick(`["a","b"]`, `[]`, `["a","c","d","e","f","g","h","i","j"]`))
	case 5:
		return cond(m.pick("s", "e", "x"), equals, "str_value", `"`+m.pick("a", "b", "c")+`"`)
	case 6:
		return cond(m.pick("s", "e"), "equal", "global_ref", `"`+m.pick("few", "none", "many")+`"`)
	}
	return cond("m", equals, "metadata_variant", fmt.Sprintf(`{"key":%q,"value":%q}`, m.pick("k", "l", "n"), m.pick("a", "b")))
}

func (m maker) params() map[string]value {
	all := map[string]value{}
	for _, key := range []string{"n", "e", "s", "m", "k", "l", "x"} {
		switch m.IntN(7) {
		case 0:
		case 1:
			all[key] = m.value(ValueKind(m.IntN(5)))
		default:
			all[key] = m.value(map[string]ValueKind{"n": ValueNumber, "e": ValueEnum, "s": ValueText, "m": ValueMetadata, "k": ValueMetadata, "l": ValueMetadata}[key])
		}
	}
	return all
}

func (m maker) value(kind ValueKind) value {
	v := value{kind: kind, number: m.Uint64N(4), text: m.pick("a", "b", "c")}
	if kind == ValueMetadata {
		v.meta = m.pick("k", "l")
	}
	return v
}

func FuzzCompiledEqualsNaive(f *testing.F) {
	for i := range uint64(200) {
		f.Add(i, i*i)
	}
	const globals = `{"few":[{"type":"str_value","value":"a"}],"many":[{"type":"str_value","value":"b"},{"type":"str_value","value":"1"},
		{"type":"str_value","value":"2"},{"type":"str_value","value":"3"},{"type":"str_value","value":"4"},{"type":"str_value","value":"5"},
		{"type":"enum_variant","value":"6"},{"type":"str_value","value":"7"},{"type":"str_value","value":"8"}]}`
	f.Fuzz(func(t *testing.T, a, b uint64) {
		m := maker{rand.New(rand.NewPCG(a, b))}
		var rules []string
		for i := range m.IntN(4) {
			rules = append(rules, rulesOf("r"+strconv.Itoa(i), m.statements(0)))
		}
		text := programOf(globals, strings.Join(rules, ","))
		alg := compiled(t, text)
		var doc map[string]any
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		for range 8 {
			params := m.params()
			want := (&naive{params: params}).algorithm(doc)
			at := make([]value, len(alg.program.names))
			for key, v := range params {
				if slot, used := alg.program.slots[key]; used {
					at[slot] = v
				}
			}
			went := alg.program.run(at)
			got := ""
			switch {
			case went.wrong != nil:
				got = "InvalidComparison"
				if err := alg.program.mismatch(went, at); !strings.Contains(fault.MessageOf(err), "InvalidComparison") {
					t.Errorf("%v", err)
				}
			case went.rule != nil:
				got = went.rule.name
			}
			if got != want {
				t.Fatalf("%s\n%+v\ncompiled says %q, the description %q", text, params, got, want)
			}
		}
	})
}

// Whatever is sent as an algorithm is refused as Invalid or can be held to the catalogue, compiled and run.
func FuzzParseAlgorithm(f *testing.F) {
	f.Add(advanced(`[{"condition":[` + sixConditions + `],"nested":[{"condition":[]}]}]`))
	f.Add(programOf(`{"a":[{"type":"global_ref","value":"b"}],"b":[{"type":"global_ref","value":"a"}]}`, ""))
	f.Add(`{"type":"volume_split","data":[{"split":70,"output":{"gateway_name":"a","gateway_id":null}},{"split":255,"output":{"gateway_name":"b"}}]}`)
	f.Add(strings.Replace(advanced("[]"), `"output":{"priority":[{"gateway_name":"hit","gateway_id":"h1"}]}`,
		`"output":{"volume_split_priority":[{"split":1,"output":[{"gateway_name":"a"}]},{"split":0,"output":[]}]}`, 1))
	f.Add(`{"type":"ab_test","data":{"control_algorithm_id":"a","variant_algorithm_id":"b","variant_split_pct":49,"guardrail_threshold_pp":3.0}}`)
	catalogue := DefaultCatalogue()
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := parseAlgorithm([]byte(text))
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatalf("%v is not Invalid", err)
			}
			return
		}
		if doc.program != nil {
			if err := catalogue.check(doc.program); err != nil && fault.KindOf(err) != fault.Invalid {
				t.Fatalf("%v is not Invalid", err)
			}
		}
		set := &settings{}
		set.active[ForPayment] = compileAlgorithm(&AlgorithmRow{Data: []byte(text)})
		var out PriorityLogic
		set.prioritise(&Request{Payment: payment(), Eligible: []Name{"e"}}, 7, &out)
		if out.Fallback != nil {
			t.Fatalf("%s was accepted and cannot be run: %+v", text, out.Primary)
		}
	})
}

func TestConditionEdges(t *testing.T) {
	hold := `[{"condition":[]}]`
	for _, c := range []struct {
		statements string
		hit        bool
	}{
		{`[]`, false},
		{hold, true},
		{`[{"condition":[],"nested":null}]`, true},
		{`[{"condition":[],"nested":[]}]`, false},
		{`[{"condition":[],"nested":[]},{"condition":[]}]`, true},
		{`[{"condition":[],"nested":[{"condition":[` + cond("n", "equal", "number", "1") + `]},{"condition":[]}]}]`, true},
		{`[{"condition":[` + cond("n", "equal", "number", "1") + `],"nested":` + hold + `}]`, false},
		{`[{"condition":[` + cond("n", "equal", "number_comparison_array", "[]") + `]}]`, false},
	} {
		p := compiled(t, advanced(c.statements)).program
		if went := p.run(make([]value, len(p.names))); (went.rule != nil) != c.hit || went.output == nil {
			t.Errorf("%s: matched %v, want %v", c.statements, went.rule != nil, c.hit)
		}
	}
}

func TestTheFirstRuleThatMatchesWins(t *testing.T) {
	p := compiled(t, programOf("{}", rulesOf("one", `[]`)+","+rulesOf("two", `[{"condition":[]}]`)+","+rulesOf("three", `[{"condition":[]}]`))).program
	if went := p.run(nil); went.rule == nil || went.rule.name != "two" {
		t.Errorf("%+v", went.rule)
	}
}

func TestASplitOfListsIsFlattenedWithoutRepeats(t *testing.T) {
	o := &Output{Kind: OutputSplitPriority, total: 100, Splits: []Split{
		{60, []Connector{{"a", ""}, {"b", ""}}}, {40, []Connector{{"b", ""}, {"b", "2"}, {"a", ""}}}}}
	if got := fmt.Sprint(o.appendConnectors(nil, 0)); got != "[{a } {b } {b 2}]" {
		t.Errorf("first drawn: %s", got)
	}
	if got := fmt.Sprint(o.appendConnectors(nil, ^uint64(0))); got != "[{b } {b 2} {a }]" {
		t.Errorf("second drawn: %s", got)
	}
}

func BenchmarkSixConditions(b *testing.B) {
	p := compiled(b, advanced(`[{"condition":[`+sixConditions+`]}]`)).program
	at := make([]value, len(p.names))
	for key, v := range map[string]value{"payment_method": {kind: ValueEnum, text: "card"}, "amount": {kind: ValueNumber, number: 42},
		"currency": {kind: ValueEnum, text: "EUR"}, "card_network": {kind: ValueEnum, text: "Visa"},
		"billing_country": {kind: ValueEnum, text: "Portugal"}, "card_bin": {kind: ValueText, text: "453210"}} {
		at[p.slots[key]] = v
	}
	b.ReportAllocs()
	for b.Loop() {
		if p.run(at).rule == nil {
			b.Fatal("no match")
		}
	}
}
