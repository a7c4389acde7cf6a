package strictjson

// Kind is the sort of a JSON value.
type Kind uint8

// The kinds; None is the absence of a value.
const (
	None Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// KindOf returns the kind of the value that starts with raw's first byte, None when no value starts so.
func KindOf(raw []byte) Kind {
	if len(raw) == 0 {
		return None
	}
	switch c := raw[0]; c {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	default:
		if c == '-' || c-'0' <= 9 {
			return Number
		}
		return None
	}
}

// Cursor walks validated JSON text from left to right:
//
//	c := strictjson.Walk(body)
//	for c.Enter(); c.More(); {
//		switch string(c.Key()) {
//		case "reward":
//			value := c.Skip()
//		...
//
// Inside an array, More is followed directly by the value. Every value must be read, by Skip or by Enter and More until
// it is false, before the next More. The zero Cursor is at the end.
type Cursor struct {
	data    []byte
	pos     int
	scratch []byte
}

// Walk returns a cursor before the first value of data.
func Walk(data []byte) Cursor { return Cursor{data: data} }

// Kind returns the kind of the value that comes next.
func (c *Cursor) Kind() Kind {
	c.pos = skipSpace(c.data, c.pos)
	return KindOf(c.data[c.pos:])
}

// Enter steps into the object or array that comes next; it reports false and stays when neither does.
func (c *Cursor) Enter() bool {
	if k := c.Kind(); k != Object && k != Array {
		return false
	}
	c.pos++
	return true
}

// More reports whether the container holds another member or element and moves to it; when not, it steps out.
func (c *Cursor) More() bool {
	c.pos = skipSpace(c.data, c.pos)
	if c.pos >= len(c.data) {
		return false
	}
	switch c.data[c.pos] {
	case '}', ']':
		c.pos++
		return false
	case ',':
		c.pos++
	}
	c.pos = skipSpace(c.data, c.pos)
	return c.pos < len(c.data)
}

// RawKey reads a member's name and its colon and returns the name as written, with quotes.
func (c *Cursor) RawKey() []byte {
	raw := c.Skip()
	c.pos = skipSpace(c.data, c.pos)
	if c.pos < len(c.data) && c.data[c.pos] == ':' {
		c.pos++
	}
	return raw
}

// Key reads a member's name and its colon and returns the name decoded. The bytes are valid until the next Key.
func (c *Cursor) Key() []byte {
	raw := c.RawKey()
	if body, ok := inner(raw); ok && nextMark(body, 0) == len(body) {
		return body
	}
	return Text(&c.scratch, raw)
}

// Skip reads the value that comes next, of any kind, and returns its text without surrounding white space.
func (c *Cursor) Skip() []byte {
	c.pos = skipSpace(c.data, c.pos)
	start, data := c.pos, c.data
	switch KindOf(data[start:]) {
	case String:
		c.pos = stringEnd(data, start)
	case Object, Array:
		c.pos = containerEnd(data, start)
	default:
		c.pos = scalarEnd(data, start)
	}
	return data[start:c.pos]
}

// stringEnd returns the position after the string that starts at pos.
func stringEnd(data []byte, pos int) int {
	for pos = nextMark(data, pos+1); pos < len(data); pos = nextMark(data, pos+2) {
		if data[pos] == '"' {
			return pos + 1
		}
	}
	return len(data)
}

// structural are the bytes outside strings at which containerEnd has something to do.
var structural = [256]int8{'"': 2, '{': 1, '[': 1, '}': -1, ']': -1}

// containerEnd returns the position after the object or array that starts at pos.
func containerEnd(data []byte, pos int) int {
	for depth := 0; pos < len(data); {
		step := structural[data[pos]]
		if step == 2 {
			pos = stringEnd(data, pos)
			continue
		}
		pos++
		if step != 0 {
			if depth += int(step); depth == 0 {
				return pos
			}
		}
	}
	return len(data)
}

// scalarEnd returns the position after the number or word at pos. It moves by at least one byte unless at the end, so
// that a loop over text that was never validated still ends.
func scalarEnd(data []byte, pos int) int {
	start := pos
	for ; pos < len(data); pos++ {
		switch data[pos] {
		case ',', ']', '}', ':', ' ', '\n', '\r', '\t':
			if pos == start {
				pos++
			}
			return pos
		}
	}
	return pos
}
