package reply

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/fault"
)

// of returns what a refusal answers and logs.
func of(make func(*slog.Logger) Refusal, err error) (*httptest.ResponseRecorder, string) {
	var log bytes.Buffer
	w := httptest.NewRecorder()
	w.Header()["X-Request-Id"] = []string{"the-id"}
	make(slog.New(slog.NewTextHandler(&log, nil)))(w, httptest.NewRequest("POST", "/x", nil), err)
	return w, log.String()
}

func TestDialects(t *testing.T) {
	after := func(k fault.Kind, d time.Duration) error {
		return &fault.Error{Op: "x", Kind: k, Msg: "come later", RetryAfter: d}
	}
	for _, c := range []struct {
		err          error
		status       int
		decision     string
		personalizer string
		retry        string
	}{
		{fault.New("x", fault.Invalid, `bad "thing"`), 400, `{"error":"bad \"thing\""}`, `{"error":{"code":"BadArgument","message":"bad \"thing\""}}`, ""},
		{fault.New("x", fault.Unauthenticated, "no such key"), 401, `{"error":"unauthorized"}`, `{"error":{"code":"Unauthorized","message":"unauthorized"}}`, ""},
		{fault.New("x", fault.Forbidden, "not yours"), 403, `{"error":"forbidden: scope does not allow this action"}`, `{"error":{"code":"Forbidden","message":"forbidden: scope does not allow this action"}}`, ""},
		{fault.New("x", fault.NotFound, "capsule a/b/c not found"), 404, `{"error":"capsule a/b/c not found"}`, `{"error":{"code":"ResourceNotFound","message":"capsule a/b/c not found"}}`, ""},
		{fault.New("x", fault.Timeout, "slow"), 408, `{"error":"slow"}`, `{"error":{"code":"InternalServerError","message":"slow"}}`, ""},
		{fault.New("x", fault.Conflict, "taken"), 409, `{"error":"taken"}`, `{"error":{"code":"Conflict","message":"taken"}}`, ""},
		{fault.New("x", fault.TooLarge, "payload too large"), 413, `{"error":"payload too large"}`, `{"error":{"code":"BadArgument","message":"payload too large"}}`, ""},
		{after(fault.Exhausted, 4100*time.Millisecond), 429, `{"error":"come later","retryAfterSeconds":5}`, `{"error":{"code":"TooManyRequests","message":"come later"}}`, "5"},
		{after(fault.Exhausted, 0), 429, `{"error":"come later","retryAfterSeconds":1}`, `{"error":{"code":"TooManyRequests","message":"come later"}}`, "1"},
		{after(fault.Unavailable, time.Nanosecond), 503, `{"error":"come later"}`, `{"error":{"code":"ServiceUnavailable","message":"come later"}}`, "1"},
		{after(fault.Exhausted, 3*time.Hour), 429, `{"error":"come later","retryAfterSeconds":10800}`, `{"error":{"code":"TooManyRequests","message":"come later"}}`, "10800"},
		{fault.New("x", fault.Internal, "the secret path"), 500, `{"error":"internal error"}`, `{"error":{"code":"InternalServerError","message":"internal error"}}`, ""},
		{errors.New("the secret path"), 500, `{"error":"internal error"}`, `{"error":{"code":"InternalServerError","message":"internal error"}}`, ""},
		{fault.Wrap("x", fault.Invalid, io.EOF, "\xffbroken"), 400, `{"error":"\"\\xffbroken\""}`, `{"error":{"code":"BadArgument","message":"\"\\xffbroken\""}}`, ""},
	} {
		for _, d := range []struct {
			make func(*slog.Logger) Refusal
			want string
		}{{Decision, c.decision}, {Personalizer, c.personalizer}} {
			w, log := of(d.make, c.err)
			if w.Code != c.status || w.Body.String() != d.want {
				t.Errorf("%v: %d %s, want %d %s", c.err, w.Code, w.Body, c.status, d.want)
			}
			h := w.Header()
			if h.Get("Retry-After") != c.retry || h.Get("Content-Type") != "application/json" || h.Get("Content-Length") != strconv.Itoa(w.Body.Len()) {
				t.Errorf("%v: headers %v", c.err, h)
			}
			if internal := c.status == 500; internal != strings.Contains(log, "the secret path") || internal != strings.Contains(log, "the-id") {
				t.Errorf("%v: logged %q", c.err, log)
			}
		}
	}
}

func TestAWrongMethodIsEachDialectsOwn(t *testing.T) {
	err := fault.New("x", fault.NotAllowed, "method not allowed")
	if w, _ := of(Decision, err); w.Code != 404 || w.Body.String() != `{"error":"no such route"}` {
		t.Errorf("decision: %d %s", w.Code, w.Body)
	}
	if w, _ := of(Personalizer, err); w.Code != 405 || w.Body.String() != `{"error":{"code":"MethodNotAllowed","message":"method not allowed"}}` {
		t.Errorf("Personalizer: %d %s", w.Code, w.Body)
	}
}

func TestEveryKindHasAStatus(t *testing.T) {
	for k := fault.Internal + 1; k <= fault.Unfit; k++ {
		if statusOf(k) == http.StatusInternalServerError {
			t.Errorf("%v is answered like an internal failure", k)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, n := range []int{0, 1, 4095, 4096, 100_000} {
		w := httptest.NewRecorder()
		JSON(w, 201, bytes.Repeat([]byte("x"), n))
		if w.Code != 201 || w.Body.Len() != n || w.Header().Get("Content-Length") != strconv.Itoa(n) {
			t.Errorf("%d bytes: %d, %d bytes, length %s", n, w.Code, w.Body.Len(), w.Header().Get("Content-Length"))
		}
	}
	w := httptest.NewRecorder()
	if err := Value(w, 200, map[string]int{"a": 1}); err != nil || w.Body.String() != `{"a":1}` {
		t.Errorf("value: %v %s", err, w.Body)
	}
	w = httptest.NewRecorder()
	if err := Value(w, 200, func() {}); err == nil || w.Body.Len() != 0 {
		t.Errorf("a function was answered: %v %s", err, w.Body)
	}
	w = httptest.NewRecorder()
	Text(w, 200, "hi")
	if w.Body.String() != "hi" || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("text: %s %v", w.Body, w.Header())
	}
	for status, length := range map[int]string{204: "", 304: "", 200: "0"} {
		w = httptest.NewRecorder()
		Empty(w, status)
		if w.Code != status || w.Header().Get("Content-Length") != length {
			t.Errorf("empty %d: %d, length %q", status, w.Code, w.Header().Get("Content-Length"))
		}
	}
}

// discard is a response writer without costs of its own.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) WriteHeader(int)             {}
func (discard) Write(p []byte) (int, error) { return len(p), nil }

func TestASmallAnswerAllocatesNothing(t *testing.T) {
	w, body := discard{http.Header{}}, []byte(`{"ok":true}`)
	if n := testing.AllocsPerRun(1000, func() { JSON(w, 200, body) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
