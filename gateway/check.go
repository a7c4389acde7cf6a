package gateway

import (
	"fmt"

	"holdfast/fault"
)

// check holds every condition of a program to the catalogue: the key exists, its type takes the operator and the type of
// value, and the value is one that the key can have. The error names the rule, the place, the key and the value.
func (c *Catalogue) check(p *programText) error {
	for i := range p.rules {
		r := &p.rules[i]
		k := checker{catalogue: c, rule: "rule " + quoted(r.name)}
		if err := k.statements(r.statements); err != nil {
			return err
		}
	}
	return nil
}

type checker struct {
	catalogue *Catalogue
	rule      string
	path      []int
}

func (k *checker) statements(list []statementText) error {
	k.path = append(k.path, 0)
	for i := range list {
		k.path[len(k.path)-1] = i + 1
		for n := range list[i].conditions {
			if err := k.condition(&list[i].conditions[n], n+1); err != nil {
				return err
			}
		}
		if err := k.statements(list[i].nested); err != nil {
			return err
		}
	}
	k.path = k.path[:len(k.path)-1]
	return nil
}

func (k *checker) condition(c *comparisonText, position int) error {
	fail := func(format string, args ...any) *fault.Error {
		return invalid("check", "%skey %s: %s", spot(k.rule, k.path, position), quoted(c.key), fmt.Sprintf(format, args...))
	}
	key := k.catalogue.key(c.key)
	if key == nil {
		return fail("the catalogue has no such key")
	}
	o := &c.operand
	if !key.Type.takes(o.kind) {
		return fail("a key of type %s is not compared with values of type %s", key.Type, o.kind)
	}
	if !o.kind.takes(c.op) {
		return fail("%s cannot be used with values of type %s", c.op, o.kind)
	}
	if value, why := key.fault(o); why != "" {
		return fail("the value %s %s", value, why)
	}
	return nil
}

// takes reports whether a key of the type may be compared with a value of the kind.
func (t KeyType) takes(kind ValueKind) bool {
	switch t {
	case KeyInteger:
		return kind == ValueNumber || kind == ValueNumbers || kind == ValueRange
	case KeyEnum:
		return kind == ValueEnum || kind == ValueEnums || kind == ValueGlobal
	case KeyText:
		return kind == ValueText || kind == ValueGlobal
	case KeyUDF:
		return kind == ValueMetadata
	case KeyGlobal:
		return kind == ValueGlobal || kind == ValueText
	}
	return false
}

// takes reports whether a value of the kind may stand behind the operator.
func (k ValueKind) takes(op comparison) bool {
	switch k {
	case ValueNumber:
		return true
	case ValueGlobal, ValueRange:
		return op == equal
	}
	return op == equal || op == notEqual
}

// fault returns the first value of the operand that the key cannot have, and what is wrong with it.
func (k *Key) fault(o *operand) (value, why string) {
	switch o.kind {
	case ValueNumber:
		return fmt.Sprint(o.number), k.checkNumber(o.number)
	case ValueNumbers:
		for _, n := range o.numbers {
			if why := k.checkNumber(n); why != "" {
				return fmt.Sprint(n), why
			}
		}
	case ValueRange:
		for _, b := range o.bounds {
			if why := k.checkNumber(b.number); why != "" {
				return fmt.Sprint(b.number), why
			}
		}
	case ValueText:
		return quoted(o.text), k.checkText(o.text)
	case ValueEnum:
		return quoted(o.text), k.checkWord(o.text)
	case ValueEnums:
		for _, word := range o.texts {
			if why := k.checkWord(word); why != "" {
				return quoted(word), why
			}
		}
	}
	return "", ""
}
