package decision

import (
	"math"

	"holdfast/fault"
	"holdfast/internal/strictjson"
)

// Namespaces keep equal names of different origin apart.
const (
	ContextNamespace = 'c'
	ActionNamespace  = 'a'
	DerivedNamespace = 'd' // published by the graph
	biasNamespace    = 'b'
)

// Limits of one JSON object that is turned into features.
const (
	MaxFeatures = 4096 // per namespace, the action's id indicator included
	MaxLevels   = 8    // nested containers, the object itself included
)

// Feature is a named number: the name only by its hash.
type Feature struct {
	Hash  uint64
	Value float32 // finite
}

// AppendFeatures appends the features of raw, a validated JSON object in the given namespace, to dst. Empty and null raw
// have none. It fails with Invalid when raw is no object, nests deeper than MaxLevels, has more than MaxFeatures or holds a
// number beyond the finite 32-bit floats; dst is then returned as it was.
func AppendFeatures(dst []Feature, namespace byte, raw []byte) ([]Feature, error) {
	return flatten(dst, namespace, raw, MaxFeatures)
}

// AppendActionFeatures appends the features of an action to dst: its id first, then those of raw as in AppendFeatures.
func AppendActionFeatures(dst []Feature, id string, raw []byte) ([]Feature, error) {
	h := fnvText(fnvText(namespaceState(ActionNamespace), "id="), id)
	all, err := flatten(append(dst, Feature{Hash: h, Value: 1}), ActionNamespace, raw, MaxFeatures-1)
	if err != nil {
		return dst, err
	}
	return all, nil
}

func flatten(dst []Feature, namespace byte, raw []byte, room int) ([]Feature, error) {
	f := flattener{cursor: strictjson.Walk(raw), out: dst, most: len(dst) + room, namespace: namespace}
	switch f.cursor.Kind() {
	case strictjson.None, strictjson.Null:
		return dst, nil
	case strictjson.Object:
		f.object(namespaceState(namespace), 1)
	default:
		f.fail("must be a JSON object")
	}
	if f.err != nil {
		return dst, f.err
	}
	return f.out, nil
}

// flattener walks one object. The hash state of the name so far is handed down instead of the name.
type flattener struct {
	cursor    strictjson.Cursor
	out       []Feature
	most      int // longest permitted out
	namespace byte
	scratch   []byte
	err       error
}

func (f *flattener) fail(what string) {
	if f.err != nil {
		return
	}
	noun := "context"
	switch f.namespace {
	case ActionNamespace:
		noun = "features of an action"
	case DerivedNamespace:
		noun = "derived features"
	}
	f.err = fault.New("decision.Features", fault.Invalid, "%s %s", noun, what)
}

func (f *flattener) object(name uint64, level int) {
	if level > MaxLevels {
		f.fail("must not nest deeper than 8 levels")
		return
	}
	for f.cursor.Enter(); f.err == nil && f.cursor.More(); {
		f.value(f.text(name, f.cursor.RawKey()), level)
	}
}

func (f *flattener) array(name uint64, level int) {
	if level > MaxLevels {
		f.fail("must not nest deeper than 8 levels")
		return
	}
	f.cursor.Enter()
	for i := uint64(0); f.err == nil && f.cursor.More(); i++ {
		if f.cursor.Kind() == strictjson.String {
			f.value(name, level) // an element of a set: its place says nothing
			continue
		}
		f.value(indexed(name, i), level)
	}
}

// value adds the features of the value that comes next under the given name.
func (f *flattener) value(name uint64, level int) {
	switch f.cursor.Kind() {
	case strictjson.Object:
		f.object(fnvByte(name, '.'), level+1)
	case strictjson.Array:
		f.array(name, level+1)
	case strictjson.Number:
		v, ok := strictjson.Float(f.cursor.Skip())
		narrow := float32(v)
		if !ok || math.IsInf(float64(narrow), 0) {
			f.fail("must hold only numbers that fit a 32-bit float")
			return
		}
		f.add(name, narrow)
	case strictjson.String:
		f.add(f.text(fnvByte(name, '='), f.cursor.Skip()), 1)
	case strictjson.Bool:
		f.add(fnvText(fnvByte(name, '='), f.cursor.Skip()), 1)
	case strictjson.Null:
		f.cursor.Skip()
	default:
		f.fail("must be valid JSON")
	}
}

func (f *flattener) add(name uint64, value float32) {
	if len(f.out) >= f.most {
		f.fail("must not hold more than 4096 features, an action's id included")
		return
	}
	f.out = append(f.out, Feature{Hash: name, Value: value})
}

// text hashes the content of a JSON string, straight from the text when nothing is escaped.
func (f *flattener) text(h uint64, raw []byte) uint64 {
	if len(raw) < 2 {
		return h
	}
	plain := h
	for _, b := range raw[1 : len(raw)-1] {
		if b == '\\' {
			return fnvText(h, strictjson.Text(&f.scratch, raw))
		}
		plain = fnvByte(plain, b)
	}
	return plain
}

// indexed adds "[i]" to a name.
func indexed(name, i uint64) uint64 {
	var digits [20]byte
	text := strictjson.AppendUint(digits[:0], i)
	return fnvByte(fnvText(fnvByte(name, '['), text), ']')
}
