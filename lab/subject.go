package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"holdfast/lab/load"
)

// tenant holds everything the lab creates.
const tenant = "lab"

// capsulePath is where a capsule of the lab answers.
func capsulePath(name string) string { return "/v1/tenants/" + tenant + "/jobs/load/capsules/" + name }

// subject is a capsule and one kind of request to it.
type subject struct {
	name    string // of the subject, in reports
	capsule string
	setUp   string // "METHOD suffix", what creates the capsule
	content string // its body
	decide  string // suffix and query of the request
	body    string // of the request; {event} stands for a fresh event id
}

// benchGraph is the six-node capsule of the first seed: one strategy, fixed input.
const benchGraph = `{"graph":[{"id":"series","op":"input","path":"latencies"},{"id":"default","op":"const","value":[20,25,30]},` +
	`{"id":"used","op":"coalesce","of":["series","default"]},{"id":"avg","op":"mean","of":"used"},` +
	`{"id":"route","op":"strategy","options":["fast","balanced","safe"]},{"id":"out","op":"output","of":["avg","route"]}]}`

const threeActions = `{"actions":[{"id":"fast"},{"id":"balanced"},{"id":"safe"}]}`

// The subjects. Their answers are real decisions, each of them logged.
var (
	benchSubject = subject{name: "bench capsule", capsule: "bench", setUp: "POST /install", content: benchGraph,
		decide: "/decide?learn=false", body: `{"context":{"latencies":[20,25,30]}}`}
	smallSubject = subject{name: "small body", capsule: "small", setUp: "PUT /spec", content: threeActions,
		decide: "/decide", body: `{"context":{"plan":"pro","basket":63.5}}`}
	wideSubject = subject{name: "350-byte body", capsule: "wide", setUp: "PUT /spec", content: threeActions,
		decide: "/decide", body: `{"context":{"plan":"premium","region":"eu-west","device":"ios","age":34,"basket":63.5,"itemsInBasket":4,"visitsThisMonth":12,` +
			`"hourOfDay":14,"loyaltyMember":true,"engagementScore":0.82},"actions":[{"id":"express","features":{"fee":4.9,"days":1}},` +
			`{"id":"standard","features":{"fee":1.9,"days":3}},{"id":"pickup-point","features":{"fee":0.5,"days":2}}]}`}
	eventSubject = subject{name: "fresh eventId", capsule: "event", setUp: "PUT /spec", content: threeActions,
		decide: "/decide", body: `{"context":{"plan":"pro","basket":63.5},"eventId":"{event}"}`}
	governedSubject = subject{name: "governed", capsule: "governed", setUp: "PUT /spec", content: threeActions,
		decide: "/decide?learn=true", body: `{"context":{"plan":"pro","basket":63.5}}`}
)

func (s subject) title() string { return s.name }

// create makes the subject's capsule and returns the size in bytes of one of its answers.
func (s subject) create(ctx context.Context, c *control) (int, error) {
	method, suffix, _ := strings.Cut(s.setUp, " ")
	if err := c.ask(ctx, method+" "+capsulePath(s.capsule)+suffix, s.content, nil); err != nil {
		return 0, err
	}
	raw, err := c.raw(ctx, "POST "+capsulePath(s.capsule)+s.decide, string(s.first()))
	return len(raw), err
}

// eventMark stands for the event id in a subject's body; ids have eventLength bytes, so that all requests are of one size.
const (
	eventMark   = "{event}"
	eventLength = len("lab-") + 16 + len("-") + 10
)

// first returns the body of one request, for finding out the answer's size.
func (s subject) first() []byte {
	head, tail, found := strings.Cut(s.body, eventMark)
	if !found {
		return []byte(s.body)
	}
	return []byte(head + eventName(newRun(), 0) + tail)
}

// newRun returns 16 hex digits that no other measurement uses, so that event ids are fresh across measurements too.
func newRun() string {
	raw := make([]byte, 8)
	_, _ = rand.Read(raw) // never fails
	return hex.EncodeToString(raw)
}

func eventName(run string, n uint64) string { return fmt.Sprintf("lab-%s-%010d", run, n) }

// traffic returns what each worker sends.
func (s subject) traffic(t load.Target) func(worker int) load.Traffic {
	line := "POST " + capsulePath(s.capsule) + s.decide
	head, tail, found := strings.Cut(s.body, eventMark)
	if !found {
		whole := load.Fixed(append(t.AppendHead(nil, line, len(s.body)), s.body...))
		return func(int) load.Traffic { return whole }
	}
	run, number := newRun(), &atomic.Uint64{}
	front := append(t.AppendHead(nil, line, len(head)+eventLength+len(tail)), head...)
	front = append(front, "lab-"+run+"-"...)
	return func(int) load.Traffic {
		return &load.Fill{Number: number, Make: func(dst []byte, n uint64) []byte {
			dst = append(dst, front...)
			var digits [20]byte
			text := strconv.AppendUint(digits[:0], n, 10)
			dst = append(dst, "0000000000"[len(text):]...)
			dst = append(dst, text...)
			return append(dst, tail...)
		}}
	}
}

// cell returns a closed-loop measurement of the subject.
func (s subject) cell(connections int, d time.Duration) cell {
	return cell{connections: connections, duration: d, kinds: []string{"decide"}, traffic: s.traffic}
}
