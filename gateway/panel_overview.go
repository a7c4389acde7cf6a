package gateway

import (
	"context"
	"slices"
)

// topMost is how many rows the lists of the best, the worst and the most have.
const topMost = 10

// Overview sums up what a merchant's traffic did.
type Overview struct {
	Decides, Updates, Evaluates int64 // requests, refused ones included
	Decided                     int64 // decisions among them
	Succeeded, Failed           int64 // outcomes reported
	Errors                      int64 // requests refused
	Scores                      []ScoreSnapshot
	TopErrors                   []ErrorCount
	TopRules                    []Count
	Retries                     Retries
}

// Retries says what became of payments that were tried again.
type Retries struct {
	Retried, Recovered int64
	ByTrigger          []RetryCount // by the error code of the failure before the retry; empty code: unknown
	ByFallback         []RetryCount // by the gateway that was tried
}

// RetryCount is how many retries there were of one kind.
type RetryCount struct {
	Name               string
	Retried, Recovered int64
}

// ErrorCount is one kind of failure.
type ErrorCount struct {
	Flow    Flow
	Code    string
	Message string // of the newest
	Count   int64
	LastMS  int64
}

// Overview answers /analytics/overview.
func (s *Service) Overview(ctx context.Context, q *Question) (*Overview, error) {
	o := &Overview{}
	rules := map[string]int64{}
	scores, errors, retries := scoreBoard{}, errorBoard{}, map[string]*RetryCount{}
	err := s.countedBy(ctx, q, func(c *counted) {
		if !c.passes {
			return
		}
		o.count(c)
		scores.note(c)
		errors.note(c)
		countRule(rules, c)
		if c.flow() == FlowUpdate && c.key.retry {
			retryOf(retries, c.key.texts[byGateway]).add(c.cell.count, c.cell.succeeded)
			o.Retries.Retried += c.cell.count
			o.Retries.Recovered += c.cell.succeeded
		}
	})
	if err != nil {
		return nil, err
	}
	o.Scores = scores.best(topMost)
	o.TopErrors = errors.worst(topMost)
	o.TopRules = ranked(rules, topMost)
	o.Retries.ByFallback = rankedRetries(retries)
	o.Retries.ByTrigger, err = s.triggers(ctx, q, o.Retries.Retried)
	return o, err
}

// count adds a cell to the sums. Rule hits and score snapshots are second events of a request that is counted already.
func (o *Overview) count(c *counted) {
	n := c.cell.count
	switch c.flow() {
	case FlowDecision:
		o.Decides += n
		o.Decided += n
	case FlowDecideError:
		o.Decides += n
		o.Errors += n
	case FlowUpdate:
		o.Updates += n
		o.Succeeded += c.cell.succeeded
		o.Failed += c.cell.failed
	case FlowUpdateError:
		o.Updates += n
		o.Errors += n
	case FlowEvaluateError:
		o.Evaluates += n
		o.Errors += n
	case FlowEvaluateSingle, FlowEvaluatePriority, FlowEvaluateSplit, FlowEvaluateAdvanced, FlowEvaluatePreview:
		o.Evaluates += n
	}
}

// countRule adds the rule that steered a decision, or that an evaluation matched.
func countRule(rules map[string]int64, c *counted) {
	rule := c.key.texts[byRule]
	if rule == "" || rule == overflow {
		return
	}
	switch c.flow() {
	case FlowRuleHit, FlowEvaluateSingle, FlowEvaluatePriority, FlowEvaluateSplit, FlowEvaluateAdvanced, FlowEvaluatePreview:
		rules[rule] += c.cell.count
	}
}

func retryOf(retries map[string]*RetryCount, name string) *RetryCount {
	if retries[name] == nil {
		retries[name] = &RetryCount{Name: name}
	}
	return retries[name]
}

func (r *RetryCount) add(retried, recovered int64) {
	r.Retried += retried
	r.Recovered += recovered
}

func rankedRetries(retries map[string]*RetryCount) []RetryCount {
	list := make([]RetryCount, 0, len(retries))
	for _, r := range retries {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b RetryCount) int {
		if a.Retried != b.Retried {
			return int(b.Retried - a.Retried)
		}
		return compareText(a.Name, b.Name)
	})
	return list[:min(len(list), topMost)]
}

// errorBoard collects failures by flow and code.
type errorBoard map[[2]string]*ErrorCount

func (b errorBoard) note(c *counted) {
	switch {
	case c.cell.failed == 0, c.flow() == FlowScoreSnapshot, c.flow() == FlowRuleHit: // second events of a request
		return
	}
	key := [2]string{c.key.texts[byFlow], c.key.texts[byError]}
	e := b[key]
	if e == nil {
		e = &ErrorCount{Flow: c.flow(), Code: c.key.texts[byError]}
		b[key] = e
	}
	e.Count += c.cell.failed
	if c.cell.lastMS >= e.LastMS {
		e.LastMS = c.cell.lastMS
		if c.cell.message != "" {
			e.Message = c.cell.message
		}
	}
}

func (b errorBoard) total() (n int64) {
	for _, e := range b {
		n += e.Count
	}
	return n
}

func (b errorBoard) worst(most int) []ErrorCount {
	list := make([]ErrorCount, 0, len(b))
	for _, e := range b {
		list = append(list, *e)
	}
	slices.SortFunc(list, func(a, b ErrorCount) int {
		switch {
		case a.Count != b.Count:
			return int(min(max(b.Count-a.Count, -1), 1))
		case a.Code != b.Code:
			return compareText(a.Code, b.Code)
		}
		return compareText(string(a.Flow), string(b.Flow))
	})
	return list[:min(len(list), most)]
}

// triggers tells what had failed before the retries, from the newest events themselves: roll-ups do not know payments.
func (s *Service) triggers(ctx context.Context, q *Question, retried int64) ([]RetryCount, error) {
	if retried == 0 {
		return nil, nil
	}
	type attempt struct {
		ms            int64
		retry, failed bool
		code          string
	}
	attempts := map[string][]attempt{}
	_, err := s.scan(ctx, scanOf(q), func(e *Event, _ int64) {
		if e.Flow == FlowUpdate && e.PaymentID != "" && (e.Retry || e.Failed) {
			attempts[e.PaymentID] = append(attempts[e.PaymentID], attempt{e.TimeMS, e.Retry, e.Failed, e.ErrorCode})
		}
	})
	if err != nil {
		return nil, err
	}
	found := map[string]*RetryCount{}
	for _, list := range attempts {
		slices.SortStableFunc(list, func(a, b attempt) int { return int(min(max(a.ms-b.ms, -1), 1)) })
		trigger, failed := "", false
		for _, a := range list {
			if a.retry && failed {
				recovered := int64(1)
				if a.failed {
					recovered = 0
				}
				retryOf(found, trigger).add(1, recovered)
			}
			if a.failed {
				trigger, failed = a.code, true
			}
		}
	}
	return rankedRetries(found), nil
}
