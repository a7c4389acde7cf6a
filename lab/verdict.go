package lab

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/fault"
	"holdfast/lab/load"
)

// verdict names what kept a cell from being faster.
type verdict string

// The verdicts.
const (
	clientBound  verdict = "CLIENT"  // the generator could hardly send more, even to a server that does nothing
	serverBound  verdict = "SERVER"  // the server's own work
	limiterBound verdict = "LIMITER" // the rate limiter refused what came on top
)

// The bounds of judge: how much of the ceiling makes the client the bottleneck, and from which share of refusals on the
// limiter decided the throughput.
const (
	nearCeiling = 0.9
	fewRefusals = 0.01
)

// judge names the bottleneck of a cell. The ceiling is the rate the null server reached with as many connections of the
// same shape; 0 means that it was not measured, and then the client is given the benefit of the doubt.
func judge(m *measured, ceiling float64) verdict {
	all := m.Total()
	answers := all.Answers()
	switch {
	case float64(all.Class(load.Refused)) > fewRefusals*float64(answers):
		return limiterBound
	case ceiling > 0 && m.perSecond(answers) >= nearCeiling*ceiling:
		return clientBound
	}
	return serverBound
}

// statuses lists the statuses of a tally, such as "200: 10, 500: 2".
func statuses(c *load.Counts) string {
	var parts []string
	found := c.Statuses()
	for _, status := range slices.Sorted(maps.Keys(found)) {
		parts = append(parts, fmt.Sprintf("%d: %d", status, found[status]))
	}
	if c.Errors > 0 {
		parts = append(parts, fmt.Sprintf("no answer: %d", c.Errors))
	}
	return strings.Join(parts, ", ")
}

// text is what an error tells a person: the message without the operation.
func text(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Message()
	}
	return err.Error()
}
