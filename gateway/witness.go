package gateway

import (
	"errors"
	"strings"
	"time"

	"holdfast/fault"
	"holdfast/internal/strictjson"
)

// decided leaves a decision, or its refusal, in the audit trail and in the metrics.
func (s *Service) decided(r *Request, a *Answer, now time.Time, err error) {
	p := &r.Payment
	e := Event{TimeMS: now.UnixMilli(), Flow: FlowDecision, Stage: StageDecided, Route: "decide_gateway", Merchant: r.Merchant, PaymentID: p.ID,
		RequestID: r.RequestID, MethodType: p.MethodType, Method: p.Method, Network: p.Network, BIN: p.BIN, Currency: p.Currency,
		Country: p.Country, AuthType: p.AuthType, Status: "success"}
	if err != nil {
		e.Flow, e.Stage, e.Status, e.Failed = FlowDecideError, StageFailed, "failure", true
		e.ErrorCode, e.ErrorMessage = tell(err)
		s.metrics.decided(ApproachNone, false)
		s.trail.post(&e)
		return
	}
	s.metrics.decided(a.Approach, true)
	e.Gateway, e.Approach = a.Gateway, a.Approach
	for i := range a.Ranked {
		if a.Ranked[i].Gateway == a.Gateway {
			e.Scored, e.Score = true, a.Ranked[i].Score
		}
	}
	if a.Cost != nil && a.Cost.Outcome == CostWon {
		e.Saved = p.Amount * a.Cost.SavedBPS / 10000
	}
	a.details = a.appendDetails(a.details[:0])
	e.Details = a.details
	s.trail.post(&e)
	if a.Logic != nil && a.Logic.Tag != "" {
		hit := e
		hit.Flow, hit.Stage, hit.Rule, hit.Details = FlowRuleHit, StageRule, a.Logic.Tag, nil
		s.metrics.ruleHit(a.Logic.Tag)
		s.trail.post(&hit)
	}
}

// appendDetails encodes why the decision came out as it did.
func (a *Answer) appendDetails(b []byte) []byte {
	b = append(b, `{"scores":{`...)
	for i := range a.Ranked {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, string(a.Ranked[i].Gateway))
		b = strictjson.AppendFloat(append(b, ':'), a.Ranked[i].Score)
	}
	b = append(b, `},"seed":"`...)
	b = strictjson.AppendUint(b, a.Seed)
	b = append(b, `","before_evaluation":`...)
	b = strictjson.AppendString(b, string(a.Before))
	if a.Why != "" {
		b = strictjson.AppendString(append(b, `,"why":`...), a.Why)
	}
	if len(a.down) > 0 {
		b = append(b, `,"down":[`...)
		for i, f := range a.down {
			if i > 0 {
				b = append(b, ',')
			}
			b = strictjson.AppendString(b, string(f.gateway))
		}
		b = append(b, ']')
	}
	if a.Outage {
		b = append(b, `,"scheduled_outage":true`...)
	}
	return append(b, '}')
}

// witness leaves an outcome, or why it changed nothing, in the audit trail.
func (u *update) witness(a FeedbackAnswer, err error) {
	s, f := u.service, u.feedback
	e := Event{TimeMS: u.now.UnixMilli(), Flow: FlowUpdate, Stage: StageUpdated, Route: "update_gateway", Merchant: f.Merchant, PaymentID: f.PaymentID,
		RequestID: f.RequestID, Gateway: f.Gateway, Status: string(f.Status), Retry: f.Retry}
	if u.decision != nil {
		d := &u.decision.facts
		e.MethodType, e.Method, e.Network, e.BIN = d.MethodType, d.Method, d.Network, d.BIN
		e.Currency, e.Country, e.AuthType = d.Currency, d.Country, d.AuthType
	}
	switch {
	case err != nil:
		e.Flow, e.Stage, e.Failed = FlowUpdateError, StageUpdateFailed, true
		e.ErrorCode, e.ErrorMessage = tell(err)
		s.trail.post(&e)
		return
	case a.Reason == ReasonMerchant || a.Reason == ReasonSnapshot:
		e.Flow, e.Stage, e.Failed, e.ErrorCode = FlowUpdateError, StageUpdateFailed, true, a.Reason
		e.ErrorMessage = "no decision is known for this payment"
		s.trail.post(&e)
		return
	}
	e.Failed = u.class == Failure
	if a.Reason != "" {
		e.Details = append(strictjson.AppendString([]byte(`{"applied":false,"reason":`), a.Reason), '}')
	}
	e.ErrorCode, e.ErrorMessage = f.Error.Code, f.Error.Message
	s.trail.post(&e)
	if !a.Applied {
		return
	}
	if c := u.merchant.scores.find([]byte(u.decision.windowKey())); c != nil {
		var room [1]Scored
		means := c.means([]Name{f.Gateway}, u.resolved.bucket, room[:0])
		snap := e
		snap.Flow, snap.Details = FlowScoreSnapshot, nil
		snap.Scored, snap.Score, snap.Transactions, snap.Latency = true, means[0].Score, int64(c.entries(f.Gateway)), max(0, f.Latency)
		s.trail.post(&snap)
	}
}

// tell returns what the trail keeps of an error: a code and the caller's message.
func tell(err error) (code, message string) {
	if d, ok := errors.AsType[*DecisionError](err); ok {
		return d.InfoCode, d.Fault.Message()
	}
	return strings.ToUpper(strings.ReplaceAll(fault.KindOf(err).String(), " ", "_")), fault.MessageOf(err)
}

// Misread leaves a body that could not be read in the audit trail. It belongs to no merchant: nobody can be named by a body
// that does not read.
func (s *Service) Misread(route, requestID string, err error) {
	e := Event{TimeMS: s.nowMS(), Flow: FlowDecideError, Stage: StageParseFailed, Route: route, RequestID: requestID, Status: "failure", Failed: true}
	switch route {
	case "update_gateway":
		e.Flow = FlowUpdateError
	case RouteEvaluate:
		e.Flow = FlowEvaluateError
	}
	e.ErrorCode, e.ErrorMessage = tell(err)
	s.trail.post(&e)
}
