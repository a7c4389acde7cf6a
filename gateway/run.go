package gateway

import (
	"math/bits"
	"slices"

	"holdfast/fault"
)

// value is one parameter in its slot. The zero value is nothing given.
type value struct {
	kind     ValueKind
	folds    bool // a fact of a decision: spelling does not count
	fraction bool // the number is this much and a fraction more
	number   uint64
	text     string
	meta     string
}

// verdict is what a condition says.
type verdict uint8

const (
	no verdict = iota
	yes
	wrong // the value has a type that the condition cannot compare
)

func truth(b bool) verdict {
	if b {
		return yes
	}
	return no
}

// ran is how an evaluation went.
type ran struct {
	output *Output
	rule   *rule      // that matched; nil when none did or the algorithm has no rules
	wrong  *condition // that could not be compared
	within *rule      // the rule that has it
}

// run finds the first rule that matches. It allocates nothing.
func (p *program) run(at []value) ran {
	for i := range p.rules {
		r := &p.rules[i]
		v, bad := some(r.statements, at)
		switch v {
		case yes:
			return ran{output: r.output, rule: r}
		case wrong:
			return ran{wrong: bad, within: r}
		}
	}
	return ran{output: p.fallback}
}

// some reports whether one of the statements holds, trying them in order.
func some(statements []statement, at []value) (verdict, *condition) {
	for i := range statements {
		s := &statements[i]
		v, bad := all(s.conditions, at)
		if v == yes && s.narrowed {
			v, bad = some(s.nested, at)
		}
		if v != no {
			return v, bad
		}
	}
	return no, nil
}

// all reports whether every condition holds, stopping at the first that does not.
func all(conditions []condition, at []value) (verdict, *condition) {
	for i := range conditions {
		if v := conditions[i].test(at); v != yes {
			return v, &conditions[i]
		}
	}
	return yes, nil
}

func (c *condition) test(at []value) verdict {
	v := &at[c.slot]
	if c.kind == ValueMetadata && at[c.metaSlot].kind != ValueNull {
		v = &at[c.metaSlot]
	}
	if v.kind == ValueNull {
		return no
	}
	switch c.kind {
	case ValueNumber, ValueNumbers, ValueRange:
		if v.kind != ValueNumber {
			return wrong
		}
		return truth(c.numeric(v))
	case ValueEnum, ValueEnums:
		if v.kind != ValueEnum {
			return wrong
		}
		return truth(c.worded(v))
	case ValueText:
		if v.kind != ValueText {
			return wrong
		}
		return truth((v.text == c.text) == (c.op == equal))
	case ValueGlobal:
		if v.kind != ValueText && v.kind != ValueEnum {
			return wrong
		}
		return truth(c.set.has(v))
	case ValueMetadata:
		if v.kind != ValueMetadata {
			return wrong
		}
		return truth((v.meta == c.meta && v.text == c.text) == (c.op == equal))
	}
	return no
}

func (c *condition) numeric(v *value) bool {
	switch c.kind {
	case ValueNumber:
		return c.op.holds(v, c.number)
	case ValueNumbers:
		_, member := slices.BinarySearch(c.numbers, v.number)
		return (member && !v.fraction) == (c.op == equal)
	}
	for _, b := range c.bounds {
		if !b.op.holds(v, b.number) {
			return false
		}
	}
	return true
}

// holds compares v with n. A fraction is more than its whole part and less than the next number.
func (c comparison) holds(v *value, n uint64) bool {
	switch c {
	case equal:
		return v.number == n && !v.fraction
	case notEqual:
		return v.number != n || v.fraction
	case less:
		return v.number < n
	case lessEqual:
		return v.number < n || v.number == n && !v.fraction
	case greater:
		return v.number > n || v.number == n && v.fraction
	}
	return v.number >= n
}

func (c *condition) worded(v *value) bool {
	if c.kind == ValueEnums {
		return c.set.has(v) == (c.op == equal)
	}
	if !v.folds {
		return (v.text == c.text) == (c.op == equal)
	}
	var room [foldRoom]byte
	short, ok := foldInto(&room, v.text)
	return (ok && string(short) == c.folded) == (c.op == equal)
}

// mismatch says which condition could not be compared, and why.
func (p *program) mismatch(r ran, at []value) *fault.Error {
	v := at[r.wrong.slot]
	if r.wrong.kind == ValueMetadata && at[r.wrong.metaSlot].kind != ValueNull {
		v = at[r.wrong.metaSlot]
	}
	return invalid("Evaluate", "InvalidComparison: rule %s compares %s with a %s, the parameter is a %s",
		quoted(r.within.name), quoted(p.names[r.wrong.slot]), r.wrong.kind, v.kind)
}

// pick draws one of the splits: each with the probability of its weight.
func (o *Output) pick(draw uint64) int {
	at, _ := bits.Mul64(draw, o.total)
	for i := range o.Splits {
		if w := uint64(o.Splits[i].Weight); at < w {
			return i
		} else {
			at -= w
		}
	}
	return 0
}

// appendConnectors appends the connectors in the order in which they are to be tried: of a split the drawn one first, then
// the others as declared, in a split of lists without repeats.
func (o *Output) appendConnectors(dst []Connector, draw uint64) []Connector {
	switch o.Kind {
	case OutputSingle, OutputPriority:
		return append(dst, o.Connectors...)
	}
	winner := o.pick(draw)
	start := len(dst)
	dst = append(dst, o.Splits[winner].Connectors...)
	for i := range o.Splits {
		if i == winner {
			continue
		}
		for _, c := range o.Splits[i].Connectors {
			if o.Kind == OutputSplit || !slices.Contains(dst[start:], c) {
				dst = append(dst, c)
			}
		}
	}
	return dst
}
