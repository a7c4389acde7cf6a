package gatewayapi

import (
	"encoding/json/v2"
	"errors"
	"mime"
	"net/http"
	"strings"

	"holdfast/fault"
	"holdfast/internal/strictjson"
)

// maxDepth bounds the nesting of every body before it is looked at.
const maxDepth = 64

func refused(kind fault.Kind, format string, args ...any) error {
	return fault.New("gatewayapi.decode", kind, format, args...)
}

// invalid is a 400 with a text for the caller.
func invalid(format string, args ...any) error { return refused(fault.Invalid, format, args...) }

// unfit is a 422: JSON, but not of the form that the call takes.
func unfit(format string, args ...any) error { return refused(fault.Unfit, format, args...) }

// missing is the 422 of a member that is not there, or null.
func missing(name string) error { return unfit("missing field `%s`", name) }

// decode reads a cold body into v: another type than JSON is a 415, broken JSON a 400, another form than v's a 422. Members
// that v does not have are ignored.
func decode(r *http.Request, body []byte, v any) error {
	if kind, there := firstOf(r.Header, "Content-Type"); there && !isJSON(kind) {
		return refused(fault.Unsupported, "the body must be application/json")
	}
	if err := strictjson.Validate(body, maxDepth); err != nil {
		return invalid("invalid JSON: %s", err.Error())
	}
	return typed(json.Unmarshal(body, v))
}

// typed makes the 422 of JSON that does not have the form asked for. A refusal that a form's own reader found stays.
func typed(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		if at := e.JSONPointer.LastToken(); at != "" {
			return unfit("`%s` has the wrong type", at)
		}
	}
	return unfit("the body does not have the form of this call")
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json"))
}
