package lab

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"holdfast/fault"
	"holdfast/lab/load"
)

// reconcile holds the server's counters to what the client saw, and returns an error that lists every difference.
//
// Each answer must be counted once, under its route and the status really sent. 401 and 429 are sent before a route is
// known, so they are compared over all routes. A request without a complete answer may be counted under any one status, so
// each counter may exceed the client's by at most the number of those. The latency histogram holds every 2xx decide and
// nothing else. The lab's feedback always counts, so that every accepted one is an outcome in the store.
func reconcile(server sample, client *load.Tally) error {
	var wrong []string
	check := func(what string, client, server, unknown uint64) {
		if server < client || server > client+unknown {
			wrong = append(wrong, fmt.Sprintf("%s: the client counted %d, the server %d%s", what, client, server, uncertain(unknown)))
		}
	}
	var unknown uint64
	early := map[int]uint64{http.StatusUnauthorized: 0, http.StatusTooManyRequests: 0} // the client's counts of early refusals
	for _, kind := range client.Kinds {
		lost := kind.Errors + kind.Stopped
		unknown += lost
		label := labelOf(kind.Kind)
		seen := kind.Statuses()
		for r := range server.requests {
			if r.label == label {
				seen[r.status] += 0 // a status only the server knows must be compared as well
			}
		}
		for status, n := range seen {
			if _, is := early[status]; is {
				early[status] += n
				continue
			}
			check(fmt.Sprintf("%s %d", label, status), n, server.requests[route{label, status}], lost)
		}
		if kind.Kind == "decide" {
			check("decide latency histogram", kind.Class(load.Accepted), server.decides, lost)
		}
		if kind.Kind == kindDecideGateway {
			check("routing decisions", kind.Class(load.Accepted), server.routed, lost)
		}
		if kind.Kind == kindFeedback {
			check("outcomes in the store", kind.Class(load.Accepted), server.outcomes, lost)
		}
	}
	for status, n := range early {
		var counted uint64
		for r, k := range server.requests {
			if r.status == status {
				counted += k
			}
		}
		check(fmt.Sprintf("status %d", status), n, counted, unknown)
	}
	if wrong == nil {
		return nil
	}
	slices.Sort(wrong)
	return fault.New("lab.Reconcile", fault.Internal, "counts differ: %s", strings.Join(wrong, "; "))
}

// labelOf is the server's label of a kind of request: the gateway API's kinds are named as its routes are, the others belong to
// a capsule.
func labelOf(kind string) string {
	switch kind {
	case kindDecideGateway, kindFeedback, kindEvaluate:
		return kind
	}
	return "capsule." + kind
}

func uncertain(unknown uint64) string {
	if unknown == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d requests of unknown outcome)", unknown)
}
