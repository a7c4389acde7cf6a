package gateway

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/fault"
)

// advanced is an algorithm of one rule with the statements given.
func advanced(statements string) string {
	return programOf("{}", rulesOf("r", statements))
}

func rulesOf(name, statements string) string {
	return `{"name":"` + name + `","routing_type":"priority","output":{"priority":[{"gateway_name":"hit","gateway_id":"h1"}]},"statements":` + statements + `}`
}

func programOf(globals, rules string) string {
	return `{"type":"advanced","data":{"globals":` + globals + `,"default_selection":{"priority":[{"gateway_name":"miss","gateway_id":null}]},"rules":[` + rules + `],"metadata":{}}}`
}

// cond is a condition as JSON.
func cond(key, op, kind, value string) string {
	return `{"lhs":"` + key + `","comparison":"` + op + `","value":{"type":"` + kind + `","value":` + value + `},"metadata":{}}`
}

func compiled(t testing.TB, text string) *Algorithm {
	t.Helper()
	a := compileAlgorithm(&AlgorithmRow{ID: "a", Name: "the algorithm", Data: []byte(text)})
	if a.broken != nil {
		t.Fatalf("%s: %v", text, a.broken)
	}
	return a
}

func TestAlgorithmsAreParsed(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"type":"single","data":{"gateway_name":"a","gateway_id":"1"}}`, "single [a/1]"},
		{`{"data":{"gateway_name":"a"},"type":"single","more":{}}`, "single [a/]"},
		{`{"type":"priority","data":[{"gateway_name":"a","gateway_id":null},{"gateway_name":"b","gateway_id":"2"}]}`, "priority [a/ b/2]"},
		{`{"type":"priority","data":[]}`, "priority []"},
		{`{"type":"volume_split","data":[{"split":70,"output":{"gateway_name":"a","gateway_id":null}},{"split":30,"output":{"gateway_name":"b"}}]}`, "volume_split 70[a/] 30[b/]"},
	} {
		doc, err := parseAlgorithm([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := doc.kind.String() + " " + show(doc.output); got != c.want || len(doc.warnings) != 0 {
			t.Errorf("%s: %s %v, want %s", c.text, got, doc.warnings, c.want)
		}
	}
}

func show(o *Output) string {
	var parts []string
	list := func(cs []Connector) string {
		var names []string
		for _, c := range cs {
			names = append(names, string(c.Gateway)+"/"+c.ID)
		}
		return "[" + strings.Join(names, " ") + "]"
	}
	if len(o.Splits) == 0 {
		return list(o.Connectors)
	}
	for _, s := range o.Splits {
		parts = append(parts, fmt.Sprint(s.Weight)+list(s.Connectors))
	}
	return strings.Join(parts, " ")
}

func TestBadAlgorithmsAreRefusedAndSayWhy(t *testing.T) {
	deep := func(n int) string {
		s := `{"condition":[]}`
		for range n {
			s = `{"condition":[],"nested":[` + s + `]}`
		}
		return advanced("[" + s + "]")
	}
	many := func(n int) string {
		return advanced(`[{"condition":[` + strings.Repeat(cond("amount", "equal", "number", "1")+",", n-1) + cond("amount", "equal", "number", "1") + `]}]`)
	}
	amount := func(value string) string {
		return advanced(`[{"condition":[` + cond("amount", "equal", "number", "1") + `,` + cond("amount", "equal", "number", value) + `]}]`)
	}
	for _, c := range []struct{ text, want string }{
		{``, "could not parse"},
		{`{`, "could not parse"},
		{`[]`, "could not parse"},
		{`{"type":"single"}`, "missing field `data`"},
		{`{"data":{}}`, "missing field `type`"},
		{`{"type":"other","data":{}}`, `"other" is none of`},
		{`{"type":"single","data":{}}`, "missing field `gateway_name`"},
		{`{"type":"single","data":{"gateway_name":7}}`, "`gateway_name` must be a string"},
		{`{"type":"priority","data":{}}`, "must be an array"},
		{`{"type":"volume_split","data":[]}`, "has no splits"},
		{`{"type":"volume_split","data":[{"split":0,"output":{"gateway_name":"a"}}]}`, "every split is 0"},
		{`{"type":"volume_split","data":[{"split":256,"output":{"gateway_name":"a"}}]}`, "0 to 255"},
		{`{"type":"volume_split","data":[{"split":-1,"output":{"gateway_name":"a"}}]}`, "0 to 255"},
		{`{"type":"volume_split","data":[{"split":1.5,"output":{"gateway_name":"a"}}]}`, "0 to 255"},
		{`{"type":"volume_split","data":[{"output":{"gateway_name":"a"}}]}`, "missing field `split`"},
		{`{"type":"volume_split","data":[{"split":1}]}`, "missing field `output`"},
		{strings.Replace(advanced("[]"), `"globals":{},`, "", 1), "could not parse the algorithm: missing field `globals`"},
		{strings.Replace(advanced("[]"), `"routing_type":"priority",`, "", 1), "rule \"r\": missing field `routing_type`"},
		{strings.Replace(advanced(`[{"condition":[`+cond("amount", "equal", "number", "1")+`]}]`), `,"metadata":{}}]}]`, "}]}]", 1), "rule \"r\", statement 1, condition 1: missing field `metadata`"},
		{strings.Replace(advanced("[]"), `"output":{`, `"output":{"single":{"gateway_name":"x"},`, 1), "exactly one of"},
		{strings.Replace(advanced("[]"), `"output":{"priority":[{"gateway_name":"hit","gateway_id":"h1"}]}`, `"output":{}`, 1), "exactly one of"},
		{advanced(`{}`), "`statements` must be an array"},
		{amount(`"1"`), "statement 1, condition 2: `value` must be a whole number"},
		{amount(`1.5`), "whole number"},
		{amount(`18446744073709551616`), "whole number"},
		{advanced(`[{"condition":[]},{"condition":[],"nested":[{"condition":[` + cond("a", "is", "number", "1") + `]}]}]`), `rule "r", statement 2.1, condition 1: ` + "`comparison`" + `: "is" is none of`},
		{advanced(`[{"condition":[` + cond("a", "equal", "word", "1") + `]}]`), `"word" is not a type of value`},
		{deep(MaxNesting + 1), "nested more than 32 deep"},
		{deep(60), "nested more than 32 deep"},
		{deep(100), "nested too deeply"},
		{strings.Repeat(`{"a":`, 5000), "nested too deeply"},
		{many(MaxConditions + 1), "more than 4096 conditions"},
		{many(10_000), "more than 4096 conditions"},
		{programOf("{}", strings.Repeat(rulesOf("x", "[]")+",", MaxRules)+rulesOf("x", "[]")), "more than 1024 rules"},
		{programOf(`{"a":[{"type":"global_ref","value":"b"}],"b":[{"type":"global_ref","value":"a"}]}`, ""), "in a circle"},
		{programOf(`{"a":[{"type":"global_ref","value":"a"}]}`, ""), "in a circle"},
		{programOf(`{"a":[{"type":"global_ref","value":"b"}]}`, ""), `"a" refers to the set "b", which does not exist`},
		{`{"type":"ab_test","data":{"control_algorithm_id":"a","variant_algorithm_id":"b","variant_split_pct":50}}`, "from 1 to 49"},
		{`{"type":"ab_test","data":{"control_algorithm_id":"a","variant_split_pct":5}}`, "missing field `variant_algorithm_id`"},
	} {
		_, err := parseAlgorithm([]byte(c.text))
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.MessageOf(err), c.want) {
			t.Errorf("%.200s: %v, want %s", c.text, err, c.want)
		}
	}
	for _, text := range []string{deep(MaxNesting), many(MaxConditions), programOf("{}", strings.Repeat(rulesOf("x", "[]")+",", MaxRules-1)+rulesOf("x", "[]"))} {
		if _, err := parseAlgorithm([]byte(text)); err != nil {
			t.Errorf("the bound itself is refused: %v", err)
		}
	}
}

// Sets that double at every reference must not take the memory of all of them written out.
func TestGlobalSetsThatDoubleAreBounded(t *testing.T) {
	var sets []string
	sets = append(sets, `"s00":[{"type":"str_value","value":"x"},{"type":"str_value","value":"y"}]`)
	for i := 1; i < MaxNesting; i++ {
		ref := fmt.Sprintf(`{"type":"global_ref","value":"s%02d"}`, i-1)
		sets = append(sets, fmt.Sprintf(`"s%02d":[%s,%s]`, i, ref, ref))
	}
	a := compiled(t, programOf("{"+strings.Join(sets, ",")+"}", rulesOf("r", `[{"condition":[`+cond("card_bin", "equal", "global_ref", `"s31"`)+`]}]`)))
	at := make([]value, len(a.program.names))
	at[a.program.slots["card_bin"]] = value{kind: ValueText, text: "y"}
	if went := a.program.run(at); went.rule == nil {
		t.Error("a member of the innermost set was not found")
	}
}

func TestSplitsThatDoNotAddUpAreWarnedOf(t *testing.T) {
	split := `[{"split":60,"output":{"gateway_name":"a"}},{"split":60,"output":{"gateway_name":"b"}}]`
	for _, text := range []string{
		`{"type":"volume_split","data":` + split + `}`,
		strings.Replace(advanced("[]"), `"output":{"priority":[{"gateway_name":"hit","gateway_id":"h1"}]}`, `"output":{"volume_split":`+split+`}`, 1),
	} {
		doc, err := parseAlgorithm([]byte(text))
		if err != nil || len(doc.warnings) != 1 || !strings.Contains(doc.warnings[0], "add up to 120") {
			t.Errorf("%s: %v, %v", text, doc, err)
		}
	}
}

func TestBothFormsOfAnOutputAreTaken(t *testing.T) {
	plain := advanced("[]")
	other := strings.Replace(plain, `"default_selection":{"priority":[{"gateway_name":"miss","gateway_id":null}]}`,
		`"default_selection":{"data":[{"gateway_name":"miss","gateway_id":null}],"type":"priority"}`, 1)
	other = strings.NewReplacer(`"routing_type"`, `"routingType"`, `"output"`, `"routingOutput"`).Replace(other)
	a, b := compiled(t, plain), compiled(t, other)
	if show(a.program.fallback) != "[miss/]" || show(b.program.fallback) != "[miss/]" || show(b.program.rules[0].output) != "[hit/h1]" {
		t.Errorf("%s, %s", show(a.program.fallback), show(b.program.fallback))
	}
}
