// Package strictjson reads and writes the JSON of the hot request bodies without allocating.
//
// Work is in two stages. Validate reads a whole body once and accepts exactly the texts of RFC 8259 that have one
// meaning for every reader: valid UTF-8, no lone surrogate escapes, no duplicate member names (compared after decoding
// escapes), numbers that a float64 can hold, bounded nesting, nothing after the value. A Cursor then walks the accepted
// text without checking it again. Append helpers write JSON into a caller's buffer.
//
// Invariants: Validate takes time linear in the body, whatever its keys; a Cursor over text that was never validated may
// give nonsense but neither panics nor loops. The package keeps no state and starts no goroutines.
//
// It refuses to be a general JSON library: no reflection, no structs, no streaming, no comments or other extensions.
package strictjson

import (
	"strconv"
	"unicode/utf8"
)

// Error says why a text is not acceptable and where. Its text may be shown to the caller: it holds no part of the body.
type Error struct {
	Offset int    // bytes before the fault
	Msg    string // short and plain, such as "duplicate key"
}

// Error returns the message with the offset.
func (e *Error) Error() string { return e.Msg + " at byte " + strconv.Itoa(e.Offset) }

// maxBytes keeps offsets within 32 bits; bodies are capped far below it.
const maxBytes = 1 << 30

// Validate reports whether data is exactly one strict JSON value with at most maxDepth nested containers, surrounded by
// nothing but white space. The error is always an *Error. It allocates only for errors, for objects with more than 16
// members and for texts with many open members at once.
func Validate(data []byte, maxDepth int) error {
	if len(data) > maxBytes {
		return &Error{maxBytes, "text too long"}
	}
	v := validator{data: data, depth: maxDepth}
	pos := skipSpace(data, 0)
	if pos == len(data) {
		return &Error{pos, "empty body"}
	}
	if pos = v.value(pos); pos < 0 {
		return &Error{v.at, v.msg}
	}
	if pos = skipSpace(data, pos); pos < len(data) {
		return &Error{pos, "unexpected text after the value"}
	}
	return nil
}

// validator holds the state of one Validate. Its methods return the position after what they read, or -1 after fail.
type validator struct {
	data    []byte
	depth   int     // containers that may still be opened
	keys    keyList // member names of all open objects, innermost last
	scratch []byte  // decoded names of those that had escapes
	at      int
	msg     string
}

func (v *validator) fail(at int, msg string) int {
	v.at, v.msg = at, msg
	return -1
}

// unexpected fails at pos with the right words for the end of the text.
func (v *validator) unexpected(pos int, msg string) int {
	if pos >= len(v.data) {
		return v.fail(len(v.data), "unexpected end of text")
	}
	return v.fail(pos, msg)
}

// value reads the value that starts at pos.
func (v *validator) value(pos int) int {
	if pos >= len(v.data) {
		return v.unexpected(pos, "")
	}
	switch c := v.data[pos]; c {
	case '"':
		end, _ := v.text(pos)
		return end
	case '{':
		return v.object(pos)
	case '[':
		return v.array(pos)
	case 't':
		return v.literal(pos, "true")
	case 'f':
		return v.literal(pos, "false")
	case 'n':
		return v.literal(pos, "null")
	default:
		if c == '-' || c-'0' <= 9 {
			return v.number(pos)
		}
		return v.fail(pos, "expected a value")
	}
}

func (v *validator) literal(pos int, word string) int {
	rest := v.data[pos:]
	if len(rest) >= len(word) && string(rest[:len(word)]) == word {
		return pos + len(word)
	}
	return v.unexpected(pos, "unknown word")
}

func (v *validator) array(pos int) int {
	if v.depth--; v.depth < 0 {
		return v.fail(pos, "nested too deeply")
	}
	pos = skipSpace(v.data, pos+1)
	if pos < len(v.data) && v.data[pos] == ']' {
		v.depth++
		return pos + 1
	}
	for {
		if pos = v.value(pos); pos < 0 {
			return pos
		}
		pos = skipSpace(v.data, pos)
		switch {
		case pos < len(v.data) && v.data[pos] == ',':
			pos = skipSpace(v.data, pos+1)
		case pos < len(v.data) && v.data[pos] == ']':
			v.depth++
			return pos + 1
		default:
			return v.unexpected(pos, "expected a comma or the end of the array")
		}
	}
}

func (v *validator) object(pos int) int {
	if v.depth--; v.depth < 0 {
		return v.fail(pos, "nested too deeply")
	}
	m := members{first: v.keys.count, text: len(v.scratch)}
	pos = skipSpace(v.data, pos+1)
	if pos < len(v.data) && v.data[pos] == '}' {
		v.depth++
		return pos + 1
	}
	for {
		if pos = v.member(pos, &m); pos < 0 {
			return pos
		}
		pos = skipSpace(v.data, pos)
		switch {
		case pos < len(v.data) && v.data[pos] == ',':
			pos = skipSpace(v.data, pos+1)
		case pos < len(v.data) && v.data[pos] == '}':
			v.depth++
			v.keys.cut(m.first)
			v.scratch = v.scratch[:m.text]
			return pos + 1
		default:
			return v.unexpected(pos, "expected a comma or the end of the object")
		}
	}
}

// member reads one name and value and remembers the name in m.
func (v *validator) member(pos int, m *members) int {
	if pos >= len(v.data) || v.data[pos] != '"' {
		return v.unexpected(pos, "expected a member name")
	}
	start := pos
	pos, escaped := v.text(pos)
	if pos < 0 {
		return pos
	}
	key := span{start: uint32(start + 1), end: uint32(pos - 1)}
	if escaped {
		from := len(v.scratch)
		v.scratch = AppendText(v.scratch, v.data[start:pos])
		key = span{start: uint32(from), end: uint32(len(v.scratch)), decoded: true}
	}
	if v.known(m, key) {
		return v.fail(start, "duplicate key")
	}
	pos = skipSpace(v.data, pos)
	if pos >= len(v.data) || v.data[pos] != ':' {
		return v.unexpected(pos, "expected a colon")
	}
	return v.value(skipSpace(v.data, pos+1))
}

// text reads a string and says whether it holds escapes.
func (v *validator) text(pos int) (end int, escaped bool) {
	data := v.data
	for i := pos + 1; ; {
		i = plainRun(data, i)
		if i >= len(data) {
			return v.unexpected(i, ""), false
		}
		switch c := data[i]; {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			escaped = true
			n := escapeLen(data[i:])
			if n == 0 {
				return v.fail(i, "bad escape in a string"), false
			}
			i += n
		case c < 0x20:
			return v.fail(i, "control character in a string"), false
		default:
			r, n := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && n <= 1 {
				return v.fail(i, "invalid UTF-8"), false
			}
			i += n
		}
	}
}

func (v *validator) number(pos int) int {
	end, ok := numberEnd(v.data, pos)
	if !ok {
		return v.unexpected(end, "bad number")
	}
	if !fitsFloat(v.data[pos:end]) {
		return v.fail(pos, "number out of range")
	}
	return end
}

// skipSpace returns the position of the first byte from pos on that is not white space.
func skipSpace(data []byte, pos int) int {
	for pos < len(data) && data[pos] <= ' ' {
		if c := data[pos]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			break
		}
		pos++
	}
	return pos
}
