package gatewayapi

import (
	"strconv"

	"holdfast/gateway"
	"holdfast/internal/strictjson"
)

// maxBodyDepth is how deep a hot body may nest; what it nests is ignored.
const maxBodyDepth = 32

// fields reads the members of a hot body. All texts are parts of one copy of the body, so that they may be kept and cost one
// allocation together. The first error sticks.
type fields struct {
	body []byte
	copy string
	err  error
}

// open checks the whole body and returns a cursor inside its object.
func (f *fields) open(body []byte) (c strictjson.Cursor, ok bool) {
	*f = fields{body: body}
	if err := strictjson.Validate(body, maxBodyDepth); err != nil {
		f.err = gateway.BadInput(err.Error())
		return c, false
	}
	c = strictjson.Walk(body)
	if c.Kind() != strictjson.Object {
		f.err = gateway.BadInput("expected a JSON object")
		return c, false
	}
	f.copy = string(body)
	c.Enter()
	return c, true
}

func (f *fields) fail(name, want string) {
	if f.err == nil {
		f.err = gateway.BadInput(name + ": expected " + want)
	}
}

// slice returns the part of the copy that raw is of the body.
func (f *fields) slice(raw []byte) string {
	at := cap(f.body) - cap(raw)
	return f.copy[at : at+len(raw)]
}

// plain returns the text of a string value.
func (f *fields) plain(raw []byte) string {
	if body, ok := strictjson.Plain(raw); ok {
		return f.slice(body)
	}
	return string(strictjson.AppendText(nil, raw))
}

// text reads a string; null is empty.
func (f *fields) text(name string, raw []byte) string {
	switch strictjson.KindOf(raw) {
	case strictjson.String:
		return f.plain(raw)
	case strictjson.Null:
	default:
		f.fail(name, "a string")
	}
	return ""
}

// texts appends the strings of an array to dst; null counts as an empty one where gaps are allowed.
func (f *fields) texts(name string, c *strictjson.Cursor, add func(string) bool) {
	switch c.Kind() {
	case strictjson.Null:
		c.Skip()
		return
	case strictjson.Array:
		c.Enter()
	default:
		c.Skip()
		f.fail(name, "an array of strings")
		return
	}
	for c.More() {
		raw := c.Skip()
		switch strictjson.KindOf(raw) {
		case strictjson.String, strictjson.Null:
			if !add(f.text(name, raw)) && f.err == nil {
				f.err = gateway.BadInput(name + ": too many entries")
			}
		default:
			f.fail(name, "an array of strings")
		}
	}
}

// number reads a number.
func (f *fields) number(name string, raw []byte) float64 {
	v, ok := strictjson.Float(raw)
	if !ok {
		f.fail(name, "a number")
	}
	return v
}

// choice reads true, false or null.
func (f *fields) choice(name string, raw []byte) gateway.Choice {
	switch string(raw) {
	case "true":
		return gateway.Yes
	case "false":
		return gateway.No
	case "null":
	default:
		f.fail(name, "a boolean")
	}
	return gateway.Unsaid
}

// whole reads a whole number that fits 32 bits; null is 0.
func (f *fields) whole(name string, raw []byte) int {
	if strictjson.KindOf(raw) == strictjson.Null {
		return 0
	}
	v, err := strconv.ParseInt(string(raw), 10, 32)
	if err != nil {
		f.fail(name, "a whole number")
	}
	return int(v)
}

// member reads one of a list of words; null is empty. words has a blank before, between and after them.
func (f *fields) member(name string, raw []byte, words wordList) string {
	text := f.text(name, raw)
	if text != "" && !words.has(text) && f.err == nil {
		f.err = gateway.BadInput(name + ": unknown variant `" + clip(text) + "`")
	}
	return text
}

// require notes that a member that must be there is missing or empty.
func (f *fields) require(name, value string) {
	if value == "" && f.err == nil {
		f.err = gateway.BadInput("missing field `" + name + "`")
	}
}

// bound refuses a name that is too long.
func (f *fields) bound(name, value string) {
	if len(value) > gateway.MaxName && f.err == nil {
		f.err = gateway.BadInput(name + ": longer than " + strconv.Itoa(gateway.MaxName) + " bytes")
	}
}

// clip shortens what a caller sent to what an answer may repeat.
func clip(s string) string {
	const most = 64
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
