package lab

import (
	"bufio"
	"bytes"
	"encoding/json/v2"
	"io"
	"net/http"
	"testing"

	"holdfast/lab/load"
)

func TestSubjectsSendWellFormedRequests(t *testing.T) {
	t.Parallel()
	for _, s := range []subject{benchSubject, smallSubject, wideSubject, eventSubject, governedSubject, rewardSubject} {
		traffic := s.traffic(load.Target{Host: "x", Key: "k"})(0)
		events := map[string]bool{}
		size := 0
		for range 3 {
			raw, _ := traffic.Next()
			in := bufio.NewReader(bytes.NewReader(raw))
			request, err := http.ReadRequest(in)
			if err != nil {
				t.Fatalf("%s: %v in %q", s.name, err, raw)
			}
			body, err := io.ReadAll(request.Body)
			if err != nil || in.Buffered() != 0 {
				t.Errorf("%s: %v, %d bytes after the body", s.name, err, in.Buffered())
			}
			var parsed struct {
				Context map[string]any   `json:"context"`
				Actions []map[string]any `json:"actions"`
				EventID string           `json:"eventId"`
			}
			if err := json.Unmarshal(body, &parsed); err != nil || len(parsed.Context) == 0 {
				t.Errorf("%s: %v in %s", s.name, err, body)
			}
			if request.Header.Get("Authorization") != "Bearer k" || request.Method != http.MethodPost {
				t.Errorf("%s: %s, %v", s.name, request.Method, request.Header)
			}
			if size != 0 && size != len(raw) {
				t.Errorf("%s: requests of %d and %d bytes", s.name, size, len(raw))
			}
			size = len(raw)
			events[parsed.EventID] = true
			if s.name == wideSubject.name && (len(parsed.Context) != 10 || len(parsed.Actions) != 3 || len(body) < 330 || len(body) > 370) {
				t.Errorf("%s: %d features, %d actions, %d bytes", s.name, len(parsed.Context), len(parsed.Actions), len(body))
			}
		}
		if want := map[bool]int{true: 3, false: 1}[s.name == eventSubject.name]; len(events) != want {
			t.Errorf("%s: %d different event ids, want %d", s.name, len(events), want)
		}
	}
}

func TestDecisionIDs(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"decisionId":"dec_1","action":"a"}`:       "dec_1",
		"{\n  \"x\": 1, \"decisionId\" : \"a:b\" }": "a:b",
		`{"decisionId":7}`:                          "",
		`{"decisionId":"open`:                       "",
		`{}`:                                        "",
	} {
		if got := decisionID([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func TestNullAnswersAConstantOfTheAskedSize(t *testing.T) {
	t.Parallel()
	f := nullHandler(123)
	w := &answer{header: http.Header{}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/x", bytes.NewReader(make([]byte, 1000)))
	if err != nil {
		t.Fatal(err)
	}
	f.ServeHTTP(w, request)
	if w.body.Len() != 123 || w.header.Get("Content-Length") != "123" {
		t.Errorf("%d bytes, header %v", w.body.Len(), w.header)
	}
	if n, _ := request.Body.Read(make([]byte, 1)); n != 0 {
		t.Error("the body was not read")
	}
}

type answer struct {
	header http.Header
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
func (a *answer) WriteHeader(int)             {}
