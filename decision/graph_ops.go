package decision

import (
	"errors"
	"math"
	"slices"
	"strings"

	"holdfast/internal/strictjson"
)

// compile turns a checked node into a step. index holds the nodes before it.
func (g *Graph) compile(raw rawNode, index map[string]int) (node, error) {
	n := node{id: raw.id}
	ids, err := raw.references()
	if err != nil {
		return n, err
	}
	for _, id := range ids {
		n.reads = append(n.reads, index[id])
	}
	switch raw.op {
	case "input":
		path := textOf(raw.fields["path"])
		if path == "" {
			return n, graphFault("node %q: path must be a dotted path", n.id)
		}
		n.path, n.run = strings.Split(path, "."), runInput
	case "const":
		n.literal, n.run = slices.Clone(raw.fields["value"]), runConst
	case "coalesce":
		n.run = runCoalesce
	case "mean", "min", "max", "sum", "count":
		n.run = aggregate(raw.op)
	case "if":
		n.run = runIf
	case "lookup":
		n.run = runLookup
		err = n.addTable(raw)
	case "publish":
		n.run = runPublish
		err = n.addName(raw)
	case "strategy":
		err = g.addStrategy(&n, raw)
	case "output":
		if g.output >= 0 {
			return n, graphFault("node %q is a second output", n.id)
		}
		g.output, n.run = len(g.nodes), runOutput
	default:
		err = n.addComparison(raw)
	}
	return n, err
}

func (n *node) addTable(raw rawNode) error {
	if strictjson.KindOf(raw.fields["table"]) != strictjson.Object {
		return graphFault("node %q: table must be an object", n.id)
	}
	n.table = map[string][]byte{}
	for _, m := range members(raw.fields["table"]) {
		n.table[m.name] = slices.Clone(m.value)
	}
	n.literal = slices.Clone(raw.fields["default"])
	return nil
}

func (n *node) addName(raw rawNode) error {
	n.name = textOf(raw.fields["as"])
	kind, rest, _ := strings.Cut(n.name, ".")
	named := kind == "features" || kind == "exclude" || kind == "only"
	if named && rest == "" || !named && n.name != "reason" {
		return graphFault("node %q: as must be features.<name>, exclude.<id>, only.<id> or reason", n.id)
	}
	return nil
}

func (g *Graph) addStrategy(n *node, raw rawNode) error {
	if g.strategy >= 0 {
		return graphFault("node %q is a second strategy", n.id)
	}
	options, err := raw.texts("options")
	if err != nil {
		return err
	}
	for i, o := range options {
		if slices.Contains(options[:i], o) {
			return graphFault("node %q duplicates the option %q", n.id, o)
		}
	}
	if len(options) > MaxActions {
		return graphFault("node %q has more than %d options", n.id, MaxActions)
	}
	g.strategy, g.options, n.late, n.run = len(g.nodes), options, true, runStrategy
	return nil
}

// addComparison reads {op: compare, left, operator, right} and the short form whose op is the operator. An operand that is
// a string names a node; anything else is itself.
func (n *node) addComparison(raw rawNode) error {
	n.compare = raw.op
	if raw.op == "compare" {
		n.compare = textOf(raw.fields["operator"])
	}
	if !slices.Contains([]string{"<", "<=", "==", "!=", ">=", ">"}, n.compare) {
		return graphFault("node %q: unknown operator %q", n.id, n.compare)
	}
	// The operands that name nodes are read in order; the others are kept as they are.
	for i, field := range []string{"left", "right"} {
		if text := raw.fields[field]; strictjson.KindOf(text) != strictjson.String {
			n.operands[i] = slices.Clone(text)
		}
	}
	n.run = runCompare
	return nil
}

func runCompare(n *node, r *run) ([]byte, error) {
	sides, next := n.operands, 0
	for i := range sides {
		if sides[i] == nil {
			sides[i] = r.values[n.reads[next]]
			next++
		}
	}
	return boolean(compareValues(n.compare, sides[0], sides[1])), nil
}

func boolean(v bool) []byte {
	if v {
		return []byte("true")
	}
	return []byte("false")
}

func isNull(v []byte) bool {
	k := strictjson.KindOf(v)
	return k == strictjson.None || k == strictjson.Null
}

func runConst(n *node, _ *run) ([]byte, error) { return n.literal, nil }

// runInput follows the dotted path; what is absent is null.
func runInput(n *node, r *run) ([]byte, error) {
	value := r.input
	for _, step := range n.path {
		if strictjson.KindOf(value) != strictjson.Object {
			return nil, nil
		}
		c := strictjson.Walk(value)
		c.Enter()
		value = nil
		for c.More() {
			found := string(c.Key()) == step
			if v := c.Skip(); found {
				value = v
				break
			}
		}
	}
	return value, nil
}

func runCoalesce(n *node, r *run) ([]byte, error) {
	for _, at := range n.reads {
		if v := r.values[at]; !isNull(v) {
			return v, nil
		}
	}
	return nil, nil
}

func runIf(n *node, r *run) ([]byte, error) {
	cond := r.values[n.reads[0]]
	if !isNull(cond) && strictjson.KindOf(cond) != strictjson.Bool {
		return nil, errors.New("cond is neither true nor false")
	}
	if string(cond) == "true" {
		return r.values[n.reads[1]], nil
	}
	return r.values[n.reads[2]], nil
}

// runLookup takes the entry for the key's text: a string's own, the JSON text of a number or a bool.
func runLookup(n *node, r *run) ([]byte, error) {
	key := r.values[n.reads[0]]
	switch strictjson.KindOf(key) {
	case strictjson.String:
		if v, ok := n.table[textOf(key)]; ok {
			return v, nil
		}
	case strictjson.Number, strictjson.Bool:
		if v, ok := n.table[string(key)]; ok {
			return v, nil
		}
	case strictjson.Object, strictjson.Array:
		return nil, errors.New("the key is neither text nor a number")
	}
	return n.literal, nil
}

func runPublish(n *node, r *run) ([]byte, error) {
	v := r.values[n.reads[0]]
	r.result.publish(n.name, v)
	return v, nil
}

func runStrategy(_ *node, r *run) ([]byte, error) { return strictjson.AppendString(nil, r.option), nil }

func runOutput(n *node, r *run) ([]byte, error) {
	out := []byte{'['}
	for i, at := range n.reads {
		if i > 0 {
			out = append(out, ',')
		}
		if v := r.values[at]; v == nil {
			out = append(out, "null"...)
		} else {
			out = append(out, v...)
		}
	}
	return append(out, ']'), nil
}

// aggregate computes over an array of numbers; a number is an array of one. Nothing gives null, or 0 for sum and count.
func aggregate(op string) func(n *node, r *run) ([]byte, error) {
	return func(n *node, r *run) ([]byte, error) {
		sum, low, high, count := 0.0, math.Inf(1), math.Inf(-1), 0
		add := func(raw []byte) error {
			v, ok := strictjson.Float(raw)
			if !ok || strictjson.KindOf(raw) != strictjson.Number {
				return errors.New("works on numbers only")
			}
			sum, low, high, count = sum+v, min(low, v), max(high, v), count+1
			return nil
		}
		if err := eachNumber(r.values[n.reads[0]], add); err != nil {
			return nil, err
		}
		var v float64
		switch {
		case op == "count":
			v = float64(count)
		case op == "sum":
			v = sum
		case count == 0:
			return nil, nil
		case op == "mean":
			v = sum / float64(count)
		case op == "min":
			v = low
		default:
			v = high
		}
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, errors.New("the result is beyond the finite numbers")
		}
		return strictjson.AppendFloat(nil, v), nil
	}
}

func eachNumber(value []byte, add func(raw []byte) error) error {
	switch {
	case isNull(value):
		return nil
	case strictjson.KindOf(value) != strictjson.Array:
		return add(value)
	}
	c := strictjson.Walk(value)
	c.Enter()
	for c.More() {
		if err := add(c.Skip()); err != nil {
			return err
		}
	}
	return nil
}

// compareValues compares numbers with numbers and texts with texts. With null or mixed types only == and != answer; the rest
// is false.
func compareValues(operator string, a, b []byte) bool {
	order, ordered := 0, false
	x, xok := strictjson.Float(a)
	y, yok := strictjson.Float(b)
	ka, kb := strictjson.KindOf(a), strictjson.KindOf(b)
	equal := isNull(a) && isNull(b)
	switch {
	case ka == strictjson.Number && kb == strictjson.Number && xok && yok:
		ordered = true
		if x < y {
			order = -1
		} else if x > y {
			order = 1
		}
		equal = order == 0
	case ka == strictjson.String && kb == strictjson.String:
		ordered, order = true, strings.Compare(textOf(a), textOf(b))
		equal = order == 0
	case ka == kb && !isNull(a):
		equal = string(appendCompact(nil, a)) == string(appendCompact(nil, b))
	}
	switch operator {
	case "==":
		return equal
	case "!=":
		return !equal
	case "<":
		return ordered && order < 0
	case "<=":
		return ordered && order <= 0
	case ">":
		return ordered && order > 0
	}
	return ordered && order >= 0
}
