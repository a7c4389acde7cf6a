package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/fault"
	"holdfast/internal/strictjson"
)

// Bounds of a graph.
const (
	MaxNodes    = 256
	graphBudget = 30 * time.Millisecond // of one run
	graphDepth  = 32                    // nested containers of its text
	bigInput    = 16 << 10              // bytes of context or of the graph from which a run watches the clock
)

// Graph is a feature program: a small acyclic graph of nodes that computes features and restricts actions before a draw, and
// may shape the answer after it. It does no I/O and is safe for concurrent runs.
type Graph struct {
	nodes    []node // in an order in which every node follows those it reads
	options  []string
	strategy int // index of the strategy node, -1 without one
	output   int // index of the output node, -1 without one
	large    bool
}

// node is one compiled step. Its value is JSON text; nil means null.
type node struct {
	id      string
	reads   []int
	run     func(n *node, r *run) ([]byte, error)
	literal []byte            // const value, lookup default
	path    []string          // input
	table   map[string][]byte // lookup
	name    string            // publish
	compare string            // comparison operator
	// operands are the constant sides of a comparison; a nil one is the next of reads.
	operands [2][]byte
	late     bool // reads the drawn option, directly or not
}

// run is one evaluation.
type run struct {
	input  []byte
	option string // drawn, once known
	values [][]byte
	result published
	now    func() time.Time
	begun  time.Time // zero when nothing in sight can take long
}

// do runs one node. An error is an Internal fault that names it.
func (r *run) do(n *node) ([]byte, error) {
	v, err := n.run(n, r)
	if err == nil && !r.begun.IsZero() && r.now().Sub(r.begun) > graphBudget {
		err = fmt.Errorf("the graph has used up its %v", graphBudget)
	}
	if err != nil {
		return nil, fault.New("decision.Graph", fault.Internal, "node %q: %v", n.id, err)
	}
	return v, nil
}

// published is what a graph says about one decide.
type published struct {
	Derived       []byte // JSON object text
	Only, Exclude []string
	Reason        string
	restricted    bool // something was published under only
}

// Options are the strategy's options in order, nil without a strategy.
func (g *Graph) Options() []string { return g.options }

// CompileGraph reads {"graph":[…]}. Every error is an Invalid fault that names the node it is about.
func CompileGraph(text []byte) (*Graph, error) {
	if err := strictjson.Validate(text, graphDepth); err != nil {
		return nil, graphFault("%v", err)
	}
	list := members(text)
	if len(list) != 1 || list[0].name != "graph" || strictjson.KindOf(list[0].value) != strictjson.Array {
		return nil, graphFault("must be an object with the one member graph, an array of nodes")
	}
	raws, err := rawNodes(list[0].value)
	if err != nil {
		return nil, err
	}
	g := &Graph{strategy: -1, output: -1, large: len(text) > bigInput}
	order, err := topological(raws)
	if err != nil {
		return nil, err
	}
	index := make(map[string]int, len(order))
	for _, at := range order {
		n, err := g.compile(raws[at], index)
		if err != nil {
			return nil, err
		}
		index[n.id] = len(g.nodes)
		g.nodes = append(g.nodes, n)
	}
	return g, g.check()
}

func graphFault(format string, args ...any) error {
	return fault.New("decision.CompileGraph", fault.Invalid, "invalid graph: "+format, args...)
}

// rawNode is a node as written: its fields by name.
type rawNode struct {
	id, op string
	fields map[string][]byte
}

// rawNodes lists the nodes with their fields checked by name.
func rawNodes(array []byte) ([]rawNode, error) {
	c := strictjson.Walk(array)
	c.Enter()
	var raws []rawNode
	seen := map[string]bool{}
	for i := 0; c.More(); i++ {
		value := c.Skip()
		n := rawNode{fields: map[string][]byte{}}
		for _, m := range members(value) {
			n.fields[m.name] = m.value
		}
		n.id, n.op = textOf(n.fields["id"]), textOf(n.fields["op"])
		switch {
		case strictjson.KindOf(value) != strictjson.Object:
			return nil, graphFault("node %d is no object", i)
		case n.id == "":
			return nil, graphFault("node %d has no id", i)
		case seen[n.id]:
			return nil, graphFault("node %q duplicates an id", n.id)
		case len(raws) == MaxNodes:
			return nil, graphFault("node %q is one more than %d nodes", n.id, MaxNodes)
		}
		seen[n.id] = true
		delete(n.fields, "id")
		delete(n.fields, "op")
		if err := n.checkFields(); err != nil {
			return nil, err
		}
		raws = append(raws, n)
	}
	if len(raws) == 0 {
		return nil, graphFault("has no nodes")
	}
	return raws, nil
}

// textOf decodes a JSON string, empty for anything else.
func textOf(raw []byte) string {
	if strictjson.KindOf(raw) != strictjson.String {
		return ""
	}
	var scratch []byte
	return string(strictjson.Text(&scratch, raw))
}

// opFields names the fields of every operation; a leading ? marks an optional one.
func opFields(op string) ([]string, bool) {
	switch op {
	case "input":
		return []string{"path"}, true
	case "const":
		return []string{"value"}, true
	case "coalesce", "mean", "min", "max", "sum", "count", "output":
		return []string{"of"}, true
	case "compare":
		return []string{"left", "operator", "right"}, true
	case "<", "<=", "==", "!=", ">=", ">":
		return []string{"left", "right"}, true
	case "if":
		return []string{"cond", "then", "else"}, true
	case "lookup":
		return []string{"table", "key", "?default"}, true
	case "publish":
		return []string{"as", "of"}, true
	case "strategy":
		return []string{"options"}, true
	}
	return nil, false
}

func (n *rawNode) checkFields() error {
	fields, ok := opFields(n.op)
	if !ok {
		return graphFault("node %q: unknown op %q", n.id, n.op)
	}
	for _, f := range fields {
		if _, there := n.fields[f]; !there && f[0] != '?' {
			return graphFault("node %q: %s needs the field %s", n.id, n.op, f)
		}
	}
	for f := range n.fields {
		if !slices.Contains(fields, f) && !slices.Contains(fields, "?"+f) {
			return graphFault("node %q: unknown field `%s` of %s", n.id, f, n.op)
		}
	}
	return nil
}

// references are the ids that the node reads, in field order; constants among the operands of a comparison are left out.
func (n *rawNode) references() ([]string, error) {
	var ids []string
	one := func(field string) error {
		id := textOf(n.fields[field])
		if id == "" {
			return graphFault("node %q: %s must name a node", n.id, field)
		}
		ids = append(ids, id)
		return nil
	}
	var err error
	switch n.op {
	case "coalesce", "output":
		ids, err = n.texts("of")
	case "mean", "min", "max", "sum", "count", "publish":
		err = one("of")
	case "lookup":
		err = one("key")
	case "if":
		for _, f := range []string{"cond", "then", "else"} {
			if err == nil {
				err = one(f)
			}
		}
	case "compare", "<", "<=", "==", "!=", ">=", ">":
		for _, f := range []string{"left", "right"} {
			if err == nil && strictjson.KindOf(n.fields[f]) == strictjson.String {
				err = one(f)
			}
		}
	}
	return ids, err
}

// texts decodes a non-empty array of non-empty strings.
func (n *rawNode) texts(field string) ([]string, error) {
	c := strictjson.Walk(n.fields[field])
	var list []string
	if strictjson.KindOf(n.fields[field]) == strictjson.Array && c.Enter() {
		for c.More() {
			text := textOf(c.Skip())
			if text == "" {
				return nil, graphFault("node %q: %s holds something that is no name", n.id, field)
			}
			list = append(list, text)
		}
	}
	if len(list) == 0 {
		return nil, graphFault("node %q: %s must be a list of names", n.id, field)
	}
	return list, nil
}

// topological orders the nodes so that each follows those it reads, and otherwise as they were written.
func topological(raws []rawNode) ([]int, error) {
	index := make(map[string]int, len(raws))
	for i, n := range raws {
		index[n.id] = i
	}
	const entered, done = 1, 2
	state := make([]int, len(raws))
	var order []int
	var visit func(i int) error
	visit = func(i int) error {
		switch state[i] {
		case entered:
			return graphFault("node %q is part of a cycle", raws[i].id)
		case done:
			return nil
		}
		state[i] = entered
		ids, err := raws[i].references()
		if err != nil {
			return err
		}
		for _, id := range ids {
			j, ok := index[id]
			if !ok {
				return graphFault("node %q: unknown id %q", raws[i].id, id)
			}
			if err := visit(j); err != nil {
				return err
			}
		}
		state[i] = done
		order = append(order, i)
		return nil
	}
	for i := range raws {
		if err := visit(i); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// check holds what concerns the graph as a whole.
func (g *Graph) check() error {
	names := map[string]bool{}
	for i := range g.nodes {
		n := &g.nodes[i]
		for _, at := range n.reads {
			n.late = n.late || g.nodes[at].late
		}
		if n.name == "" {
			continue
		}
		if n.late {
			return graphFault("node %q: what is published cannot depend on the strategy's draw", n.id)
		}
		if names[n.name] {
			return graphFault("node %q: %s is published twice", n.id, n.name)
		}
		names[n.name] = true
	}
	return nil
}

// start runs what does not depend on the draw. input is validated JSON object text. An error is an Internal fault that names
// the node.
func (g *Graph) start(input []byte, now func() time.Time) (*run, error) {
	r := &run{input: input, values: make([][]byte, len(g.nodes)), now: now}
	r.result.Derived = append(r.result.Derived, '{')
	if g.large || len(input) > bigInput {
		r.begun = now()
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		if n.late {
			continue
		}
		v, err := r.do(n)
		if err != nil {
			return nil, err
		}
		r.values[i] = v
	}
	r.result.Derived = append(r.result.Derived, '}')
	return r, nil
}

// finish runs the rest, once option is drawn, and returns what the answer shows.
func (g *Graph) finish(r *run, option string) (*GraphResult, error) {
	r.option = option
	result := &GraphResult{}
	for i := range g.nodes {
		n := &g.nodes[i]
		if n.late {
			v, err := r.do(n)
			if err != nil {
				return nil, err
			}
			r.values[i] = v
		}
	}
	if g.strategy >= 0 {
		result.StrategyID = g.nodes[g.strategy].id
	}
	if g.output >= 0 {
		result.Output = r.values[g.output]
	}
	return result, nil
}

// publish adds a value under the node's name; null publishes nothing.
func (p *published) publish(name string, value []byte) {
	if strictjson.KindOf(value) == strictjson.None || strictjson.KindOf(value) == strictjson.Null {
		return
	}
	kind, rest, _ := strings.Cut(name, ".")
	switch kind {
	case "features":
		if len(p.Derived) > 1 {
			p.Derived = append(p.Derived, ',')
		}
		p.Derived = append(strictjson.AppendString(p.Derived, rest), ':')
		p.Derived = append(p.Derived, value...)
	case "exclude":
		if string(value) == "true" {
			p.Exclude = append(p.Exclude, rest)
		}
	case "only":
		if string(value) == "true" {
			p.Only, p.restricted = append(p.Only, rest), true
		}
	case "reason":
		if p.Reason = string(value); strictjson.KindOf(value) == strictjson.String {
			p.Reason = textOf(value)
		}
	}
}
