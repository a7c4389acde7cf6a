// Package reply turns what happened into bytes on the wire: a fault.Kind into a status and a body of one dialect, and a
// value into a JSON answer with its length.
//
// Each dialect is one small table of statuses and codes plus the function that writes its body. An error that is not a
// *fault.Error, and every fault of kind Internal, is answered with a fixed text; its own goes to the log, once. The
// package never answers with an error's cause, and it starts no goroutine.
package reply

import (
	"encoding/json/v2"
	"net/http"
	"strconv"
)

// The Content-Type values, shared by all answers: a header value is never changed once set.
var (
	typeJSON = []string{"application/json"}
	typeText = []string{"text/plain; charset=utf-8"}
)

// lengths holds the usual Content-Length values, so that a small answer allocates none.
var lengths = func() []string {
	all := make([]string, 4096)
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return all
}()

// length returns a header value for n bytes.
func length(n int) []string {
	if n < len(lengths) {
		return lengths[n : n+1 : n+1]
	}
	return []string{strconv.Itoa(n)}
}

// JSON answers with a body that is JSON already. The body may be reused when JSON returns.
func JSON(w http.ResponseWriter, status int, body []byte) {
	write(w, status, typeJSON, body)
}

// Text answers with plain text.
func Text(w http.ResponseWriter, status int, text string) {
	write(w, status, typeText, []byte(text))
}

// Value answers with v as compact JSON. The error is the encoder's; nothing has been written then.
func Value(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	JSON(w, status, body)
	return nil
}

// Empty answers without a body.
func Empty(w http.ResponseWriter, status int) {
	if status != http.StatusNoContent && status != http.StatusNotModified {
		w.Header()["Content-Length"] = length(0)
	}
	w.WriteHeader(status)
}

func write(w http.ResponseWriter, status int, kind []string, body []byte) {
	h := w.Header()
	h["Content-Type"] = kind
	h["Content-Length"] = length(len(body))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller has gone, or has not: there is nobody left to tell
}

// quote appends s as a JSON string.
func quote(dst []byte, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil { // invalid UTF-8 in a message: say it readably rather than not at all
		text, _ = json.Marshal(strconv.Quote(s))
	}
	return append(dst, text...)
}
