package reply

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"holdfast/fault"
)

// Refusal answers a request with an error. It has the shape that the server's route table asks for.
type Refusal = func(w http.ResponseWriter, r *http.Request, err error)

// Keys of the log lines written here.
const (
	keyError     = "error"
	keyRequestID = "requestId"
	keyMethod    = "method"
)

// problem is what a caller may be told about an error.
type problem struct {
	kind   fault.Kind
	text   string
	after  int  // whole seconds, 0 unless the status carries Retry-After
	stored bool // an internal failure that keeps its cause, as those of the store do
}

// dialect is how one wire format speaks of failures.
type dialect struct {
	status func(fault.Kind) int
	fixed  map[fault.Kind]string // texts that clients compare whole, or look for
	body   func(dst []byte, status int, p problem) []byte
}

// internalText is all that a caller learns of an internal failure.
const internalText = "internal error"

// Decision returns the refusal of the decision API: {"error":"text"}.
func Decision(log *slog.Logger) Refusal { return decision.refusal(log) }

// Personalizer returns the refusal of the Personalizer-compatible API: {"error":{"code","message"}}.
func Personalizer(log *slog.Logger) Refusal { return personalizer.refusal(log) }

// decision has no status for a wrong method: a route is a method and a path, and there is none.
var decision = dialect{
	status: func(k fault.Kind) int {
		if k == fault.NotAllowed {
			return http.StatusNotFound
		}
		return statusOf(k)
	},
	fixed: map[fault.Kind]string{
		fault.Unauthenticated: "unauthorized",
		fault.Forbidden:       "forbidden: scope does not allow this action",
		fault.NotAllowed:      "no such route",
	},
	body: func(dst []byte, _ int, p problem) []byte {
		dst = quote(append(dst, `{"error":`...), p.text)
		if p.kind == fault.Exhausted {
			dst = append(dst, `,"retryAfterSeconds":`...)
			dst = strconv.AppendInt(dst, int64(p.after), 10)
		}
		return append(dst, '}')
	},
}

var personalizer = dialect{
	status: statusOf,
	fixed: map[fault.Kind]string{
		fault.Unauthenticated: "unauthorized",
		fault.Forbidden:       "forbidden: scope does not allow this action",
	},
	body: func(dst []byte, status int, p problem) []byte {
		dst = append(dst, `{"error":{"code":"`...)
		dst = append(dst, personalizerCode(status)...)
		dst = append(dst, `","message":`...)
		return append(quote(dst, p.text), "}}"...)
	},
}

// personalizerCode names a status in that API's words.
func personalizerCode(status int) string {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return "BadArgument"
	case http.StatusUnauthorized:
		return "Unauthorized"
	case http.StatusForbidden:
		return "Forbidden"
	case http.StatusNotFound:
		return "ResourceNotFound"
	case http.StatusMethodNotAllowed:
		return "MethodNotAllowed"
	case http.StatusConflict:
		return "Conflict"
	case http.StatusTooManyRequests:
		return "TooManyRequests"
	case http.StatusServiceUnavailable:
		return "ServiceUnavailable"
	}
	return "InternalServerError"
}

// statusOf is the usual status of a kind.
func statusOf(k fault.Kind) int {
	switch k {
	case fault.Invalid:
		return http.StatusBadRequest
	case fault.Unauthenticated:
		return http.StatusUnauthorized
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.NotFound:
		return http.StatusNotFound
	case fault.NotAllowed:
		return http.StatusMethodNotAllowed
	case fault.Timeout:
		return http.StatusRequestTimeout
	case fault.Conflict:
		return http.StatusConflict
	case fault.TooLarge:
		return http.StatusRequestEntityTooLarge
	case fault.Exhausted:
		return http.StatusTooManyRequests
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	case fault.Unsupported:
		return http.StatusUnsupportedMediaType
	case fault.Unfit:
		return http.StatusUnprocessableEntity
	}
	return http.StatusInternalServerError
}

func (d *dialect) refusal(log *slog.Logger) Refusal {
	return func(w http.ResponseWriter, r *http.Request, err error) {
		p := d.problem(err)
		if p.kind == fault.Internal {
			log.Error("a request failed", keyMethod, r.Method, keyRequestID, first(w.Header()["X-Request-Id"]), keyError, err)
		}
		status := d.status(p.kind)
		if p.after > 0 {
			w.Header()["Retry-After"] = length(p.after)
		}
		var room [256]byte
		JSON(w, status, d.body(room[:0], status, p))
	}
}

// problem reduces err to what may be told.
func (d *dialect) problem(err error) problem {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || e.Kind == fault.Internal {
		return problem{kind: fault.Internal, text: internalText, stored: ok && e.Err != nil}
	}
	p := problem{kind: e.Kind, text: e.Message()}
	if text, fixed := d.fixed[e.Kind]; fixed {
		p.text = text
	}
	if e.Kind == fault.Exhausted || e.Kind == fault.Unavailable {
		p.after = seconds(e.RetryAfter)
	}
	return p
}

// seconds rounds up to whole seconds, at least 1: coming back a moment too early would be refused again.
func seconds(d time.Duration) int {
	return max(1, int((d+time.Second-1)/time.Second))
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
