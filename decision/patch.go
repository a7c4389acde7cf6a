package decision

import (
	"holdfast/fault"
	"holdfast/internal/strictjson"
)

// maxDocumentDepth bounds the nesting of a spec and of a patch.
const maxDocumentDepth = 32

// MergePatch applies an RFC 7396 merge patch to an object. The text of numbers and strings and the order of members stay
// as they are in doc; new members follow in the order of the patch. Both texts are checked: a broken one, a duplicate name
// or a patch that is no object is an Invalid fault.
func MergePatch(doc, patch []byte) ([]byte, error) {
	for _, text := range [][]byte{doc, patch} {
		if err := strictjson.Validate(text, maxDocumentDepth); err != nil {
			return nil, fault.New("decision.MergePatch", fault.Invalid, "%v", err)
		}
		if strictjson.KindOf(text) != strictjson.Object {
			return nil, fault.New("decision.MergePatch", fault.Invalid, "must be a JSON object")
		}
	}
	return appendMerged(make([]byte, 0, len(doc)+len(patch)), doc, patch), nil
}

// member is one name and its value, as text; the name keeps its quotes and is decoded beside.
type member struct {
	raw, name string
	value     []byte
}

// members lists those of a validated object.
func members(object []byte) (list []member) {
	c := strictjson.Walk(object)
	if !c.Enter() {
		return nil
	}
	var scratch []byte
	for c.More() {
		raw := c.RawKey()
		list = append(list, member{raw: string(raw), name: string(strictjson.Text(&scratch, raw)), value: c.Skip()})
	}
	return list
}

// memberOf returns the text of one member of a validated object, nil when there is none.
func memberOf(object []byte, name string) []byte {
	for _, m := range members(object) {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// appendMerged appends doc as patch leaves it. doc may be nil; a doc that is no object counts as an empty one.
func appendMerged(dst, doc, patch []byte) []byte {
	if strictjson.KindOf(patch) != strictjson.Object {
		return appendCompact(dst, patch)
	}
	changes := members(patch)
	index := make(map[string]int, len(changes))
	for i, m := range changes {
		index[m.name] = i
	}
	dst = append(dst, '{')
	first := true
	put := func(m member, value []byte, merged bool) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(dst, m.raw...), ':')
		if merged {
			dst = appendMerged(dst, value, changes[index[m.name]].value)
		} else {
			dst = appendCompact(dst, value)
		}
	}
	known := map[string]bool{}
	if strictjson.KindOf(doc) == strictjson.Object {
		for _, m := range members(doc) {
			known[m.name] = true
			i, changed := index[m.name]
			if changed && strictjson.KindOf(changes[i].value) == strictjson.Null {
				continue
			}
			put(m, m.value, changed)
		}
	}
	for _, m := range changes {
		if !known[m.name] && strictjson.KindOf(m.value) != strictjson.Null {
			put(m, nil, true)
		}
	}
	return append(dst, '}')
}

// appendCompact appends validated text without the white space between its tokens.
func appendCompact(dst, text []byte) []byte {
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\':
			dst = append(dst, c, text[i+1])
			i++
			continue
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			continue
		}
		dst = append(dst, c)
	}
	return dst
}
