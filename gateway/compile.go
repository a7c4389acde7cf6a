package gateway

import "slices"

// program is an advanced algorithm ready to be evaluated: every key that its conditions name has a slot, and a request's
// parameters are put into the slots once, so that a condition is an index and a comparison.
type program struct {
	slots    map[string]int // by key
	names    []string       // the keys, by slot
	sources  []source       // where a decision's facts come from, by slot
	metadata bool           // some condition compares metadata of the caller's own
	fallback *Output
	rules    []rule
}

type rule struct {
	name       string
	output     *Output
	statements []statement
}

type statement struct {
	conditions []condition
	nested     []statement
	narrowed   bool
}

// condition is one comparison. The zero value compares slot 0 with nothing and never holds.
type condition struct {
	kind     ValueKind
	op       comparison
	slot     int
	metaSlot int // of the metadata key
	number   uint64
	text     string
	meta     string
	folded   string // text as fold leaves it, to be compared with facts of a decision
	set      *textSet
	numbers  []uint64 // ascending
	bounds   []bound
}

// compileProgram lays out a parsed program.
func compileProgram(text *programText) *program {
	c := &compiler{p: &program{slots: map[string]int{}, fallback: text.fallback}, globals: map[string]*textSet{}}
	for name, members := range text.globals {
		c.globals[name] = newTextSet(members)
	}
	for i := range text.rules {
		r := &text.rules[i]
		c.p.rules = append(c.p.rules, rule{name: r.name, output: r.output, statements: c.statements(r.statements)})
	}
	return c.p
}

type compiler struct {
	p       *program
	globals map[string]*textSet
}

func (c *compiler) statements(texts []statementText) []statement {
	list := make([]statement, 0, len(texts))
	for i := range texts {
		s := statement{narrowed: texts[i].narrowed, conditions: make([]condition, 0, len(texts[i].conditions))}
		for k := range texts[i].conditions {
			s.conditions = append(s.conditions, c.condition(&texts[i].conditions[k]))
		}
		if s.narrowed {
			s.nested = c.statements(texts[i].nested)
		}
		list = append(list, s)
	}
	return list
}

func (c *compiler) slot(key string, from source) int {
	if at, there := c.p.slots[key]; there {
		return at
	}
	at := len(c.p.sources)
	c.p.slots[key] = at
	c.p.names = append(c.p.names, key)
	c.p.sources = append(c.p.sources, from)
	return at
}

func (c *compiler) condition(text *comparisonText) condition {
	o := &text.operand
	out := condition{kind: o.kind, op: text.op, slot: c.slot(text.key, sourceOf(text.key)),
		number: o.number, text: o.text, meta: o.meta, bounds: o.bounds}
	switch o.kind {
	case ValueMetadata:
		c.p.metadata = true
		out.metaSlot = c.slot(o.meta, fromMetadata)
	case ValueEnum:
		out.folded = canonical(o.text)
	case ValueEnums:
		out.set = newTextSet(o.texts)
	case ValueNumbers:
		out.numbers = slices.Clone(o.numbers)
		slices.Sort(out.numbers)
	case ValueGlobal:
		if out.set = c.globals[o.text]; out.set == nil {
			out.set = &textSet{} // a set that does not exist has no members
		}
	}
	return out
}

// textSet is a set of texts, with the folded forms of its members beside them. It is immutable.
type textSet struct {
	texts   []string // when there are few
	folded  []string
	texted  map[string]struct{} // when there are many
	foldeds map[string]struct{}
	longest int // bytes of the longest member: a longer text is not looked for
}

// fewTexts is how many members are compared one by one.
const fewTexts = 8

func newTextSet(texts []string) *textSet {
	s := &textSet{}
	for _, text := range texts {
		s.longest = max(s.longest, len(text))
	}
	if len(texts) <= fewTexts {
		s.texts = texts
		for _, text := range texts {
			s.folded = append(s.folded, canonical(text))
		}
		return s
	}
	s.texted, s.foldeds = make(map[string]struct{}, len(texts)), make(map[string]struct{}, len(texts))
	for _, text := range texts {
		s.texted[text], s.foldeds[canonical(text)] = struct{}{}, struct{}{}
	}
	return s
}

// has reports whether v is a member.
func (s *textSet) has(v *value) bool {
	if v.folds {
		return s.hasFolded(v.text)
	}
	if len(v.text) > s.longest {
		return false
	}
	if s.texted != nil {
		_, there := s.texted[v.text]
		return there
	}
	return slices.Contains(s.texts, v.text)
}

func (s *textSet) hasFolded(text string) bool {
	var room [foldRoom]byte
	short, ok := foldInto(&room, text)
	if !ok {
		return false
	}
	if s.foldeds != nil {
		_, there := s.foldeds[string(short)]
		return there
	}
	for _, member := range s.folded {
		if member == string(short) {
			return true
		}
	}
	return false
}

// foldRoom is how long a word of the catalogue can be, folded.
const foldRoom = 64

// canonical is the folded form of a word in a rule.
func canonical(text string) string { return fold(canonicalCountry(text)) }

// fold leaves out what spellings of one word differ in: case, and what joins its parts.
func fold(text string) string {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		if c, keep := foldByte(text[i]); keep {
			out = append(out, c)
		}
	}
	return string(out)
}

// foldInto folds without allocating; false when the text does not fit, which no word of the catalogue fails to.
func foldInto(room *[foldRoom]byte, text string) ([]byte, bool) {
	n := 0
	for i := range len(text) {
		c, keep := foldByte(text[i])
		if !keep {
			continue
		}
		if n == len(room) {
			return nil, false
		}
		room[n] = c
		n++
	}
	return room[:n], true
}

func foldByte(c byte) (byte, bool) {
	switch {
	case c >= 'A' && c <= 'Z':
		return c + 'a' - 'A', true
	case c == '_' || c == '-' || c == ' ':
		return 0, false
	}
	return c, true
}
