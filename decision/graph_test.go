package decision

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/fault"
)

// benchGraph is the six-node capsule of the bench workload.
const benchGraph = `{"graph":[
	{"id":"series","op":"input","path":"latencies"},
	{"id":"default","op":"const","value":[20,25,30]},
	{"id":"used","op":"coalesce","of":["series","default"]},
	{"id":"avg","op":"mean","of":"used"},
	{"id":"route","op":"strategy","options":["fast","balanced","safe"]},
	{"id":"out","op":"output","of":["avg","route"]}]}`

func compiled(t testing.TB, text string) *Graph {
	t.Helper()
	g, err := CompileGraph([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGraphOfTheBench(t *testing.T) {
	g := compiled(t, benchGraph)
	if got := strings.Join(g.Options(), " "); got != "fast balanced safe" {
		t.Errorf("options %q", got)
	}
	for input, want := range map[string]string{
		`{}`:                   `[25,"safe"]`,
		`{"latencies":null}`:   `[25,"safe"]`,
		`{"latencies":[1,2]}`:  `[1.5,"safe"]`,
		`{"latencies":[]}`:     `[null,"safe"]`,
		`{"latencies": 12.50}`: `[12.5,"safe"]`,
	} {
		r, err := g.start([]byte(input), time.Now)
		if err != nil {
			t.Errorf("%s: %v", input, err)
			continue
		}
		if string(r.result.Derived) != "{}" {
			t.Errorf("%s: derived %s", input, r.result.Derived)
		}
		result, err := g.finish(r, "safe")
		if err != nil || string(result.Output) != want || result.StrategyID != "route" {
			t.Errorf("%s: got %s of %q (%v), want %s", input, result.Output, result.StrategyID, err, want)
		}
	}
}

// value runs one node, called x, over input; consts gives the nodes it reads.
func value(t *testing.T, input, nodeText string, consts ...string) (string, error) {
	t.Helper()
	var b strings.Builder
	b.WriteString(`{"graph":[`)
	for i, c := range consts {
		fmt.Fprintf(&b, `{"id":"c%d","op":"const","value":%s},`, i, c)
	}
	g := compiled(t, b.String()+nodeText+`,{"id":"out","op":"output","of":["x"]}]}`)
	r, err := g.start([]byte(input), time.Now)
	if err != nil {
		return "", err
	}
	result, err := g.finish(r, "")
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(result.Output), "["), "]"), nil
}

func TestGraphOperations(t *testing.T) {
	for _, tc := range []struct {
		name, input, node string
		consts            []string
		want              string
	}{
		{"input nested", `{"a":{"b":[1]}}`, `{"id":"x","op":"input","path":"a.b"}`, nil, `[1]`},
		{"input absent", `{"a":{"b":1}}`, `{"id":"x","op":"input","path":"a.c"}`, nil, `null`},
		{"input through a scalar", `{"a":1}`, `{"id":"x","op":"input","path":"a.c"}`, nil, `null`},
		{"input escaped name", `{"\u0061":1}`, `{"id":"x","op":"input","path":"a"}`, nil, `1`},
		{"coalesce all null", `{}`, `{"id":"x","op":"coalesce","of":["c0"]}`, []string{"null"}, `null`},
		{"sum", `{}`, `{"id":"x","op":"sum","of":"c0"}`, []string{"[1,2.5]"}, `3.5`},
		{"sum of null", `{}`, `{"id":"x","op":"sum","of":"c0"}`, []string{"null"}, `0`},
		{"count of null", `{}`, `{"id":"x","op":"count","of":"c0"}`, []string{"null"}, `0`},
		{"count of one", `{}`, `{"id":"x","op":"count","of":"c0"}`, []string{"7"}, `1`},
		{"mean of nothing", `{}`, `{"id":"x","op":"mean","of":"c0"}`, []string{"[]"}, `null`},
		{"min", `{}`, `{"id":"x","op":"min","of":"c0"}`, []string{"[3,-1,2]"}, `-1`},
		{"max", `{}`, `{"id":"x","op":"max","of":"c0"}`, []string{"[3,-1,2]"}, `3`},
		{"compare numbers", `{}`, `{"id":"x","op":"compare","left":"c0","operator":"<=","right":"c1"}`, []string{"2", "2.0"}, `true`},
		{"compare short form", `{}`, `{"id":"x","op":">","left":"c0","right":10}`, []string{"11"}, `true`},
		{"compare constants", `{}`, `{"id":"x","op":"==","left":1,"right":true}`, nil, `false`},
		{"compare texts", `{}`, `{"id":"x","op":"<","left":"c0","right":"c1"}`, []string{`"a"`, `"b"`}, `true`},
		{"mixed order is false", `{}`, `{"id":"x","op":"<","left":"c0","right":"c1"}`, []string{`"1"`, `2`}, `false`},
		{"mixed equality", `{}`, `{"id":"x","op":"==","left":"c0","right":"c1"}`, []string{`"1"`, `1`}, `false`},
		{"mixed inequality", `{}`, `{"id":"x","op":"!=","left":"c0","right":"c1"}`, []string{`"1"`, `1`}, `true`},
		{"null equals null", `{}`, `{"id":"x","op":"==","left":"c0","right":"c1"}`, []string{`null`, `null`}, `true`},
		{"null order is false", `{}`, `{"id":"x","op":">=","left":"c0","right":"c1"}`, []string{`null`, `null`}, `false`},
		{"if true", `{}`, `{"id":"x","op":"if","cond":"c0","then":"c1","else":"c2"}`, []string{"true", "1", "2"}, `1`},
		{"if null", `{}`, `{"id":"x","op":"if","cond":"c0","then":"c1","else":"c2"}`, []string{"null", "1", "2"}, `2`},
		{"lookup text", `{}`, `{"id":"x","op":"lookup","table":{"eu":1},"key":"c0"}`, []string{`"eu"`}, `1`},
		{"lookup number", `{}`, `{"id":"x","op":"lookup","table":{"7":"seven"},"key":"c0"}`, []string{`7`}, `"seven"`},
		{"lookup default", `{}`, `{"id":"x","op":"lookup","table":{"eu":1},"key":"c0","default":{"a":1}}`, []string{`"us"`}, `{"a":1}`},
		{"lookup nothing", `{}`, `{"id":"x","op":"lookup","table":{"eu":1},"key":"c0"}`, []string{`null`}, `null`},
		{"publish passes on", `{}`, `{"id":"x","op":"publish","as":"features.f","of":"c0"}`, []string{`3`}, `3`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := value(t, tc.input, tc.node, tc.consts...)
			if err != nil || got != tc.want {
				t.Errorf("got %s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

func TestGraphFailuresNameTheNode(t *testing.T) {
	for name, tc := range map[string][]string{
		"cond":     {`{"id":"x","op":"if","cond":"c0","then":"c0","else":"c0"}`, `1`},
		"mean":     {`{"id":"x","op":"mean","of":"c0"}`, `["a"]`},
		"lookup":   {`{"id":"x","op":"lookup","table":{},"key":"c0"}`, `[]`},
		"overflow": {`{"id":"x","op":"sum","of":"c0"}`, `[1e308,1e308]`},
	} {
		if _, err := value(t, `{}`, tc[0], tc[1]); err == nil || fault.KindOf(err) != fault.Internal || !strings.Contains(err.Error(), `node "x"`) {
			t.Errorf("%s: got %v, want an Internal fault that names x", name, err)
		}
	}
}

func TestGraphPublishes(t *testing.T) {
	g := compiled(t, `{"graph":[
		{"id":"n","op":"input","path":"n"},
		{"id":"big","op":">","left":"n","right":5},
		{"id":"f","op":"publish","as":"features.size","of":"n"},
		{"id":"g","op":"publish","as":"features.big \"one\"","of":"big"},
		{"id":"e","op":"publish","as":"exclude.slow","of":"big"},
		{"id":"o","op":"publish","as":"only.fast.one","of":"big"},
		{"id":"why","op":"lookup","table":{"true":"big order"},"key":"big"},
		{"id":"r","op":"publish","as":"reason","of":"why"}]}`)
	for input, want := range map[string]string{
		`{"n":7}`: `{"size":7,"big \"one\"":true} only [fast.one] true exclude [slow] reason big order`,
		`{"n":1}`: `{"size":1,"big \"one\"":false} only [] false exclude [] reason `,
		`{}`:      `{"big \"one\"":false} only [] false exclude [] reason `,
	} {
		r, err := g.start([]byte(input), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		p := r.result
		got := fmt.Sprintf("%s only %v %v exclude %v reason %s", p.Derived, p.Only, p.restricted, p.Exclude, p.Reason)
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", input, got, want)
		}
	}
}

func TestGraphRefusals(t *testing.T) {
	many := make([]string, MaxNodes+1)
	for i := range many {
		many[i] = fmt.Sprintf(`{"id":"n%d","op":"const","value":1}`, i)
	}
	if _, err := CompileGraph([]byte(`{"graph":[` + strings.Join(many[1:], ",") + `]}`)); err != nil {
		t.Errorf("%d nodes: %v", MaxNodes, err)
	}
	strategy := func(id string) string { return `{"id":"` + id + `","op":"strategy","options":["a","b"]}` }
	for name, tc := range map[string]struct{ nodes, want string }{
		"no node":              {``, "no nodes"},
		"257 nodes":            {strings.Join(many, ","), `"n256"`},
		"no object":            {`7`, "node 0"},
		"no id":                {`{"op":"const","value":1}`, "node 0"},
		"repeated id":          {many[0] + "," + many[0], `"n0"`},
		"unknown op":           {`{"id":"x","op":"learn"}`, `node "x": unknown op "learn"`},
		"unknown field":        {`{"id":"x","op":"const","value":1,"size":2}`, "unknown field `size`"},
		"missing field":        {`{"id":"x","op":"if","cond":"x"}`, `node "x": if needs the field then`},
		"unknown id":           {`{"id":"x","op":"mean","of":"y"}`, `node "x": unknown id "y"`},
		"id of wrong type":     {`{"id":"x","op":"mean","of":7}`, `node "x"`},
		"of is no list":        {`{"id":"x","op":"coalesce","of":"x"}`, `node "x"`},
		"self":                 {`{"id":"x","op":"mean","of":"x"}`, `node "x" is part of a cycle`},
		"cycle":                {`{"id":"x","op":"mean","of":"y"},{"id":"y","op":"mean","of":"x"}`, "cycle"},
		"two strategies":       {strategy("s") + "," + strategy("t"), `"t" is a second strategy`},
		"options repeat":       {`{"id":"s","op":"strategy","options":["a","a"]}`, `"s" duplicates`},
		"no options":           {`{"id":"s","op":"strategy","options":[]}`, `"s"`},
		"two outputs":          {many[0] + `,{"id":"o","op":"output","of":["n0"]},{"id":"p","op":"output","of":["n0"]}`, `"p" is a second output`},
		"operator":             {many[0] + `,{"id":"x","op":"compare","left":"n0","operator":"~","right":"n0"}`, `"~"`},
		"publish as":           {many[0] + `,{"id":"x","op":"publish","as":"feature.y","of":"n0"}`, `node "x"`},
		"publish features":     {many[0] + `,{"id":"x","op":"publish","as":"features.","of":"n0"}`, `node "x"`},
		"published twice":      {many[0] + `,{"id":"x","op":"publish","as":"reason","of":"n0"},{"id":"y","op":"publish","as":"reason","of":"n0"}`, `"y"`},
		"publish of the draw":  {strategy("s") + `,{"id":"x","op":"publish","as":"reason","of":"s"}`, `"x"`},
		"table is no object":   {many[0] + `,{"id":"x","op":"lookup","table":[],"key":"n0"}`, `node "x"`},
		"path is no text":      {`{"id":"x","op":"input","path":["a"]}`, `node "x"`},
		"late through another": {strategy("s") + `,{"id":"m","op":"coalesce","of":["s"]},{"id":"x","op":"publish","as":"reason","of":"m"}`, `"x"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := CompileGraph([]byte(`{"graph":[` + tc.nodes + `]}`))
			if fault.KindOf(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an Invalid fault with %q", err, tc.want)
			}
		})
	}
	for _, text := range []string{``, `[]`, `{}`, `{"graph":{}}`, `{"graph":[],"name":"x"}`, `{"graph":[`, `LYC1`} {
		if _, err := CompileGraph([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestGraphRunsOutOfTime(t *testing.T) {
	g := compiled(t, `{"graph":[{"id":"a","op":"input","path":"a"},{"id":"b","op":"input","path":"b"}]}`)
	clock := time.Unix(0, 0)
	slow := func() time.Time { clock = clock.Add(20 * time.Millisecond); return clock }
	big := []byte(`{"pad":"` + strings.Repeat("x", bigInput) + `"}`)
	if _, err := g.start(big, slow); err == nil || !strings.Contains(err.Error(), `node "b"`) {
		t.Errorf("got %v, want the second node to run out of time", err)
	}
	large := compiled(t, `{"graph":[{"id":"a","op":"const","value":"`+strings.Repeat("x", bigInput)+`"},{"id":"s","op":"strategy","options":["o"]},
		{"id":"b","op":"lookup","table":{},"key":"s"}]}`)
	clock = time.Unix(0, 0)
	r, err := large.start([]byte(`{}`), slow)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := large.finish(r, "o"); err == nil || !strings.Contains(err.Error(), `node "s"`) {
		t.Errorf("got %v, want the second node of a large graph to run out of time", err)
	}
}

func FuzzGraph(f *testing.F) {
	f.Add([]byte(benchGraph), []byte(`{"latencies":[1,2]}`))
	f.Add([]byte(`{"graph":[{"id":"a","op":"input","path":"a.b"},{"id":"c","op":"<","left":"a","right":1},{"id":"p","op":"publish","as":"features.x","of":"c"}]}`), []byte(`{"a":{"b":2}}`))
	f.Fuzz(func(t *testing.T, text, input []byte) {
		g, err := CompileGraph(text)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatal(err)
			}
			return
		}
		if _, err := MergePatch([]byte(`{}`), input); err != nil {
			return // the caller only passes validated objects
		}
		r, err := g.start(input, time.Now)
		if err != nil {
			return
		}
		if _, err := MergePatch([]byte(`{}`), r.result.Derived); err != nil {
			t.Fatalf("derived %s: %v", r.result.Derived, err)
		}
		if _, err := g.finish(r, "a"); err != nil && fault.KindOf(err) != fault.Internal {
			t.Fatal(err)
		}
	})
}
