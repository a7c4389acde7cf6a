package decisionapi

import (
	"encoding/json/v2"
	"errors"

	"holdfast/fault"
	"holdfast/internal/strictjson"
)

// maxDepth bounds the nesting of every body before it is looked at. Features stop at 8 levels; the rest is for reward
// details and graphs.
const maxDepth = 64

// maxItems bounds a batch.
const maxItems = 4096

// invalid is a 400 with a text for the caller.
func invalid(format string, args ...any) error {
	return fault.New("decisionapi.decode", fault.Invalid, format, args...)
}

// check accepts exactly one strict JSON object.
func check(body []byte) error {
	if err := strictjson.Validate(body, maxDepth); err != nil {
		return invalid("invalid JSON: %s", err.Error())
	}
	c := strictjson.Walk(body)
	if c.Kind() != strictjson.Object {
		return invalid("the body must be a JSON object")
	}
	return nil
}

// decode reads a cold body into v, strictly.
func decode(body []byte, v any) error {
	if err := check(body); err != nil {
		return err
	}
	return explain(json.Unmarshal(body, v, json.RejectUnknownMembers(true)))
}

// explain says what a decoder found wrong without the names of our types.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	e, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return invalid("invalid JSON: the body does not have the form of this call")
	}
	last := e.JSONPointer.LastToken()
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return unknownField(last)
	case last == "":
		return invalid("the body has the wrong type")
	}
	return invalid("`%s` has the wrong type", last)
}

func unknownField(name string) error { return invalid("unknown field `%s`", name) }

func missing(name string) error { return invalid("missing field `%s`", name) }

func wrongType(name, want string) error { return invalid("`%s` must be %s", name, want) }

// text returns a string member, decoded; null counts as absent.
func text(name string, raw []byte) (string, error) {
	switch strictjson.KindOf(raw) {
	case strictjson.Null:
		return "", nil
	case strictjson.String:
	default:
		return "", wrongType(name, "a string")
	}
	if plain, ok := strictjson.Plain(raw); ok {
		return string(plain), nil
	}
	return string(strictjson.AppendText(nil, raw)), nil
}

// someText is text that may be absent but not empty: inside, an empty text stands for an absent one.
func someText(name string, raw []byte) (string, error) {
	v, err := text(name, raw)
	if err == nil && v == "" && strictjson.KindOf(raw) == strictjson.String {
		err = emptyText(name)
	}
	return v, err
}

func emptyText(name string) error { return invalid("`%s` must not be empty", name) }

// number returns a number member.
func number(name string, raw []byte) (float64, error) {
	if strictjson.KindOf(raw) == strictjson.Number {
		if v, ok := strictjson.Float(raw); ok {
			return v, nil
		}
	}
	return 0, wrongType(name, "a number")
}

// boolean returns a bool member; null counts as false.
func boolean(name string, raw []byte) (bool, error) {
	switch string(raw) {
	case "true":
		return true, nil
	case "false", "null":
		return false, nil
	}
	return false, wrongType(name, "true or false")
}

// object returns an object member's text, nil for null.
func object(name string, raw []byte) ([]byte, error) {
	switch strictjson.KindOf(raw) {
	case strictjson.Object:
		return raw, nil
	case strictjson.Null:
		return nil, nil
	}
	return nil, wrongType(name, "a JSON object")
}

// list steps into an array member; false without an error means null.
func list(name string, c *strictjson.Cursor) (bool, error) {
	switch c.Kind() {
	case strictjson.Array:
		return c.Enter(), nil
	case strictjson.Null:
		c.Skip()
		return false, nil
	}
	return false, wrongType(name, "an array")
}
