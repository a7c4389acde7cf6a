package lab

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"time"

	"holdfast/fault"
)

// route names one of the server's request counters.
type route struct {
	label  string
	status int
}

// sample is what a server's /metrics said at one moment, or the difference of two such moments.
type sample struct {
	requests map[route]uint64
	decides  uint64  // observations in the decide latency histogram
	seconds  float64 // their sum
	logged   uint64  // decisions committed to the log
	lost     uint64  // events lost, which must stay 0
	syncs    uint64  // file syncs of the gateway's store
	written  uint64  // bytes written to it
	routed   uint64  // decisions of the gateway service
	outcomes uint64  // of feedback, committed to the gateway's store
}

// readMetrics takes the series the lab needs from Prometheus text; everything else is skipped.
func readMetrics(text io.Reader) (sample, error) {
	s := sample{requests: map[route]uint64{}}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, labels, value, ok := series(lines.Text())
		if !ok {
			continue
		}
		switch name {
		case "syntra_requests_total":
			status, err := strconv.Atoi(labels["status"])
			if err != nil {
				return s, fault.New("lab.Metrics", fault.Invalid, "a request counter has the status %q", labels["status"])
			}
			s.requests[route{labels["route"], status}] += uint64(value)
		case "syntra_decide_latency_seconds_count":
			s.decides += uint64(value)
		case "syntra_decide_latency_seconds_sum":
			s.seconds += value
		case "syntra_decisions_committed_total":
			s.logged += uint64(value)
		case "syntra_events_lost_total":
			s.lost += uint64(value)
		case "holdfast_store_syncs_total":
			if labels["db"] == "gateways" {
				s.syncs += uint64(value)
			}
		case "holdfast_store_written_bytes_total":
			if labels["db"] == "gateways" {
				s.written += uint64(value)
			}
		case "gateway_outcomes_committed_total":
			s.outcomes += uint64(value)
		case "routing_decisions_total":
			if labels["status"] == "success" {
				s.routed += uint64(value)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return s, fault.Wrap("lab.Metrics", fault.Unavailable, err, "the metrics could not be read")
	}
	return s, nil
}

// series splits a line of Prometheus text: name{label="value",...} number. Comments and other lines are not ok.
func series(line string) (name string, labels map[string]string, value float64, ok bool) {
	if line == "" || line[0] == '#' {
		return "", nil, 0, false
	}
	end := strings.IndexAny(line, "{ ")
	if end < 0 {
		return "", nil, 0, false
	}
	name, rest := line[:end], line[end:]
	if rest[0] == '{' {
		if labels, rest, ok = labelSet(rest[1:]); !ok {
			return "", nil, 0, false
		}
	}
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ") // a time may follow
	value, err := strconv.ParseFloat(number, 64)
	return name, labels, value, err == nil
}

// labelSet reads label="value" pairs up to the closing bracket and returns what follows it.
func labelSet(text string) (labels map[string]string, rest string, ok bool) {
	labels = map[string]string{}
	for {
		text = strings.TrimLeft(text, ", ")
		if after, closed := strings.CutPrefix(text, "}"); closed {
			return labels, after, true
		}
		key, after, found := strings.Cut(text, `="`)
		if !found {
			return nil, "", false
		}
		end := 0
		for end < len(after) && after[end] != '"' {
			if after[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(after) {
			return nil, "", false
		}
		labels[key] = unescape.Replace(after[:end])
		text = after[end+1:]
	}
}

// unescape undoes the escapes of label values.
var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// since returns what happened between before and s.
func (s sample) since(before sample) sample {
	delta := sample{requests: map[route]uint64{}, decides: s.decides - before.decides, seconds: s.seconds - before.seconds,
		logged: s.logged - before.logged, lost: s.lost - before.lost, syncs: s.syncs - before.syncs,
		written: s.written - before.written, routed: s.routed - before.routed, outcomes: s.outcomes - before.outcomes}
	for r, n := range s.requests {
		if n != before.requests[r] {
			delta.requests[r] = n - before.requests[r]
		}
	}
	return delta
}

// mean is the mean handler time of a decide, 0 when there was none.
func (s sample) mean() time.Duration {
	if s.decides == 0 {
		return 0
	}
	return time.Duration(s.seconds / float64(s.decides) * float64(time.Second))
}
