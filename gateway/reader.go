package gateway

import (
	"fmt"
	"strconv"
	"strings"

	"holdfast/fault"
	"holdfast/internal/strictjson"
)

// reader reads an algorithm's JSON, which Validate has accepted, and knows where it is, so that a message can name the rule,
// the statement and the condition at fault.
type reader struct {
	cursor     strictjson.Cursor
	scratch    []byte
	rule       string // how the rule being read is called; empty outside
	statements []int  // positions from the outermost statement to the one being read, from 1
	condition  int    // position in that statement, from 1; 0 outside
	warnings   []string
	rules      int // read so far, as the next four
	conditions int
	blocks     int // statements
	members    int // of arrays and global sets
}

// where names the place being read, empty outside rules, else with a colon and a space.
func (r *reader) where() string { return spot(r.rule, r.statements, r.condition) }

func spot(rule string, statements []int, condition int) string {
	if rule == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString(rule)
	for i, n := range statements {
		if i == 0 {
			b.WriteString(", statement ")
		} else {
			b.WriteByte('.')
		}
		b.WriteString(strconv.Itoa(n))
	}
	if condition > 0 {
		fmt.Fprintf(&b, ", condition %d", condition)
	}
	b.WriteString(": ")
	return b.String()
}

// fail says that the document does not have the form of the language.
func (r *reader) fail(format string, args ...any) *fault.Error {
	return invalid("parse", "could not parse the algorithm: %s%s", r.where(), fmt.Sprintf(format, args...))
}

// refuse says that the document has the form but cannot be meant.
func (r *reader) refuse(format string, args ...any) *fault.Error {
	return invalid("parse", "%s%s", r.where(), fmt.Sprintf(format, args...))
}

func (r *reader) missing(member string) *fault.Error { return r.fail("missing field `%s`", member) }

// object calls member for every member of the object that comes next; member reads the value.
func (r *reader) object(what string, member func(key string) error) error {
	if r.cursor.Kind() != strictjson.Object {
		return r.fail("%s must be an object", what)
	}
	r.cursor.Enter()
	for r.cursor.More() {
		if err := member(string(r.cursor.Key())); err != nil {
			return err
		}
	}
	return nil
}

// array calls element for every element of the array that comes next; element reads it.
func (r *reader) array(what string, element func() error) error {
	if r.cursor.Kind() != strictjson.Array {
		return r.fail("%s must be an array", what)
	}
	r.cursor.Enter()
	for r.cursor.More() {
		if err := element(); err != nil {
			return err
		}
	}
	return nil
}

// text reads a string of at most MaxText bytes.
func (r *reader) text(member string) (string, error) {
	raw := r.cursor.Skip()
	if strictjson.KindOf(raw) != strictjson.String {
		return "", r.fail("`%s` must be a string", member)
	}
	text := string(strictjson.Text(&r.scratch, raw))
	if len(text) > MaxText {
		return "", r.fail("`%s` has more than %d bytes", member, MaxText)
	}
	return text, nil
}

// MaxText is how many bytes a text inside an algorithm may have.
const MaxText = 1024

// optional reads a string that may be null, which is empty.
func (r *reader) optional(member string) (string, error) {
	if r.cursor.Kind() == strictjson.Null {
		r.cursor.Skip()
		return "", nil
	}
	return r.text(member)
}

// number reads an unsigned 64-bit integer.
func (r *reader) number(member string) (uint64, error) {
	n, ok := strictjson.Uint(r.cursor.Skip())
	if !ok {
		return 0, r.fail("`%s` must be a whole number from 0 to 18446744073709551615", member)
	}
	return n, nil
}

// count adds one to a bounded count.
func (r *reader) count(n *int, most int, what string) error {
	if *n++; *n > most {
		return r.refuse("the algorithm has more than %d %s", most, what)
	}
	return nil
}
