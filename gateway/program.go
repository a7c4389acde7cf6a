package gateway

import (
	"maps"
	"slices"
	"strings"

	"holdfast/internal/strictjson"
)

// programText is an advanced algorithm as parsed: rules in order, of which the first that matches wins.
type programText struct {
	globals  map[string][]string // the members of every named set, references followed
	fallback *Output             // default_selection
	rules    []ruleText
}

type ruleText struct {
	name       string
	output     *Output
	statements []statementText // one of them must hold
}

type statementText struct {
	conditions []comparisonText // all of them must hold
	nested     []statementText  // and one of these, when narrowed
	narrowed   bool             // nested is there, if only empty
}

type comparisonText struct {
	key     string
	op      comparison
	operand operand
}

// comparison is an operator of the language.
type comparison uint8

const (
	equal comparison = iota
	notEqual
	less
	lessEqual
	greater
	greaterEqual
)

var comparisons = [...]string{"equal", "not_equal", "less_than", "less_than_equal", "greater_than", "greater_than_equal"}

func (c comparison) String() string { return comparisons[c] }

// ValueKind is the type of a value, in a condition or among the parameters.
type ValueKind uint8

// The types of values. The first five may be parameters.
const (
	ValueNull     ValueKind = iota // nothing given
	ValueNumber                    // unsigned 64-bit integer
	ValueEnum                      // one of the words that the catalogue lists for the key
	ValueText                      // any string
	ValueMetadata                  // a key of the caller's own, and its value
	ValueGlobal                    // the name of a set of the program
	ValueEnums                     // a list of words
	ValueNumbers                   // a list of numbers
	ValueRange                     // comparisons that must all hold
)

var valueNames = [...]string{"null", "number", "enum_variant", "str_value", "metadata_variant", "global_ref",
	"enum_variant_array", "number_array", "number_comparison_array"}

// String is the type's name on the wire.
func (k ValueKind) String() string { return valueNames[k] }

// ParseValueKind returns the type with the name; false when there is none.
func ParseValueKind(name string) (ValueKind, bool) {
	for i := ValueNumber; i <= ValueRange; i++ {
		if valueNames[i] == name {
			return i, true
		}
	}
	return ValueNull, false
}

// operand is the right side of a comparison.
type operand struct {
	kind    ValueKind
	number  uint64
	text    string // of an enum, a string, a metadata value, or the name of a set
	meta    string // the metadata key
	texts   []string
	numbers []uint64
	bounds  []bound
}

// bound is one comparison of a range.
type bound struct {
	op     comparison
	number uint64
}

// program reads the data of an advanced algorithm.
func (r *reader) program() (*programText, error) {
	p := &programText{}
	var globals, rules bool
	var sets map[string][]operand
	err := r.object("the program", func(key string) (err error) {
		switch key {
		case "globals":
			globals = r.cursor.Kind() != strictjson.Null
			sets, err = r.globals()
		case "default_selection":
			p.fallback, err = r.output("default_selection")
		case "rules":
			rules = true
			err = r.array("rules", func() error {
				rule, err := r.ruleText()
				p.rules = append(p.rules, rule)
				return err
			})
		default:
			r.cursor.Skip()
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !globals:
		return nil, r.missing("globals")
	case p.fallback == nil:
		return nil, r.missing("default_selection")
	case !rules:
		return nil, r.missing("rules")
	}
	p.globals, err = r.flatten(sets)
	return p, err
}

// globals reads the named sets of a program.
func (r *reader) globals() (map[string][]operand, error) {
	sets := map[string][]operand{}
	err := r.object("globals", func(name string) error {
		list := []operand{}
		err := r.array("the global set "+clip(name), func() error {
			o, err := r.operand()
			list = append(list, o)
			if err == nil {
				err = r.count(&r.members, MaxMembers, "values in arrays and global sets")
			}
			return err
		})
		sets[name] = list
		return err
	})
	return sets, err
}

// flatten follows references between sets, so that a look-up at evaluation is one. A set that is reached from itself, or
// that refers to a set that does not exist, is refused.
func (r *reader) flatten(sets map[string][]operand) (map[string][]string, error) {
	f := flattening{r: r, sets: sets, done: map[string][]string{}}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		if _, err := f.set(name); err != nil {
			return nil, err
		}
	}
	return f.done, nil
}

type flattening struct {
	r       *reader
	sets    map[string][]operand
	done    map[string][]string
	path    []string // names being followed, outermost first
	members int      // of all sets that are done
}

func (f *flattening) set(name string) ([]string, error) {
	if list, done := f.done[name]; done {
		return list, nil
	}
	if slices.Contains(f.path, name) {
		return nil, f.r.refuse("globals: the sets %s refer to one another in a circle", clipAll(append(f.path, name)))
	}
	if len(f.path) == MaxNesting {
		return nil, f.r.refuse("globals: more than %d sets refer to one another in a row", MaxNesting)
	}
	f.path = append(f.path, name)
	defer func() { f.path = f.path[:len(f.path)-1] }()
	seen, list := map[string]bool{}, []string{}
	add := func(texts ...string) error {
		for _, text := range texts {
			if seen[text] {
				continue
			}
			seen[text], list = true, append(list, text)
			if f.members++; f.members > MaxMembers {
				return f.r.refuse("globals: the sets have more than %d members", MaxMembers)
			}
		}
		return nil
	}
	for i := range f.sets[name] {
		texts, err := f.member(name, &f.sets[name][i])
		if err != nil {
			return nil, err
		}
		if err := add(texts...); err != nil {
			return nil, err
		}
	}
	f.done[name] = list
	return list, nil
}

// member returns the texts that one element of a set stands for. Numbers have none: sets are compared with texts only.
func (f *flattening) member(set string, o *operand) ([]string, error) {
	switch o.kind {
	case ValueEnum, ValueText, ValueMetadata:
		return []string{o.text}, nil
	case ValueEnums:
		return o.texts, nil
	case ValueGlobal:
		if _, there := f.sets[o.text]; !there {
			return nil, f.r.refuse("globals: the set %q refers to the set %q, which does not exist", clip(set), clip(o.text))
		}
		return f.set(o.text)
	}
	return nil, nil
}

func clipAll(names []string) string {
	short := make([]string, 0, len(names))
	for _, name := range names {
		short = append(short, clip(name))
	}
	return strings.Join(short, " > ")
}

// ruleText reads one rule.
func (r *reader) ruleText() (rule ruleText, err error) {
	if err := r.count(&r.rules, MaxRules, "rules"); err != nil {
		return rule, err
	}
	r.rule = r.ruleTitle()
	defer func() { r.rule = "" }()
	var name, kind, statements bool
	err = r.object("a rule", func(key string) (err error) {
		switch key {
		case "name":
			name = true
			rule.name, err = r.text(key)
		case "routing_type", "routingType":
			kind = true
			err = r.routingType(key)
		case "output", "routingOutput":
			rule.output, err = r.output(key)
		case "statements":
			statements = true
			rule.statements, err = r.statementList(key)
		default:
			r.cursor.Skip()
		}
		return err
	})
	switch {
	case err != nil:
		return rule, err
	case !name:
		err = r.missing("name")
	case !kind:
		err = r.missing("routing_type")
	case rule.output == nil:
		err = r.missing("output")
	case !statements:
		err = r.missing("statements")
	}
	return rule, err
}

// ruleTitle looks ahead for the rule's name, which may stand behind what is wrong.
func (r *reader) ruleTitle() string {
	c := r.cursor
	if c.Kind() == strictjson.Object {
		for c.Enter(); c.More(); {
			if key := string(c.Key()); key == "name" && c.Kind() == strictjson.String {
				return "rule " + quoted(string(strictjson.AppendText(nil, c.Skip())))
			}
			c.Skip()
		}
	}
	return "a rule without a name"
}

func (r *reader) routingType(member string) error {
	kind, err := r.text(member)
	if err != nil {
		return err
	}
	switch kind {
	case "priority", "volume_split", "volume_split_priority", "single":
		return nil
	}
	return r.fail("`%s`: %q is none of priority, volume_split and volume_split_priority", member, clip(kind))
}

// statementList reads a list of statements, one level deeper than what is being read.
func (r *reader) statementList(member string) (list []statementText, err error) {
	if len(r.statements) > MaxNesting {
		return nil, r.refuse("statements are nested more than %d deep", MaxNesting)
	}
	r.statements = append(r.statements, 0)
	depth, outer := len(r.statements), r.condition
	err = r.array("`"+member+"`", func() error {
		r.statements[depth-1]++
		r.condition = 0
		s, err := r.statementText()
		list = append(list, s)
		return err
	})
	if err == nil {
		r.statements, r.condition = r.statements[:depth-1], outer
	}
	return list, err
}

func (r *reader) statementText() (s statementText, err error) {
	if err := r.count(&r.blocks, MaxConditions, "statements"); err != nil {
		return s, err
	}
	condition := false
	err = r.object("a statement", func(key string) (err error) {
		switch key {
		case "condition":
			condition = true
			r.condition = 0
			err = r.array("`condition`", func() error {
				r.condition++
				c, err := r.comparisonText()
				s.conditions = append(s.conditions, c)
				return err
			})
			if err == nil {
				r.condition = 0
			}
		case "nested":
			if r.cursor.Kind() == strictjson.Null {
				r.cursor.Skip()
				return nil
			}
			s.narrowed = true
			s.nested, err = r.statementList(key)
		default:
			r.cursor.Skip()
		}
		return err
	})
	if err == nil && !condition {
		err = r.missing("condition")
	}
	return s, err
}

func (r *reader) comparisonText() (c comparisonText, err error) {
	if err := r.count(&r.conditions, MaxConditions, "conditions"); err != nil {
		return c, err
	}
	var op, value, metadata bool
	err = r.object("a condition", func(key string) (err error) {
		switch key {
		case "lhs":
			c.key, err = r.text(key)
		case "comparison":
			op = true
			c.op, err = r.comparison(key)
		case "value":
			value = true
			c.operand, err = r.operand()
		case "metadata":
			if metadata = r.cursor.Kind() == strictjson.Object; !metadata {
				return r.fail("`metadata` must be an object")
			}
			r.cursor.Skip()
		default:
			r.cursor.Skip()
		}
		return err
	})
	switch {
	case err != nil:
		return c, err
	case c.key == "":
		err = r.missing("lhs")
	case !op:
		err = r.missing("comparison")
	case !value:
		err = r.missing("value")
	case !metadata:
		err = r.missing("metadata")
	}
	return c, err
}

func (r *reader) comparison(member string) (comparison, error) {
	name, err := r.text(member)
	if err != nil {
		return 0, err
	}
	if i := slices.Index(comparisons[:], name); i >= 0 {
		return comparison(i), nil
	}
	return 0, r.fail("`%s`: %q is none of %s", member, clip(name), strings.Join(comparisons[:], ", "))
}
