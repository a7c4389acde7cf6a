package gateway

import (
	"context"
	"strings"
	"time"

	"holdfast/fault"
)

// feedbackWindow is how long after its decision an outcome counts, where the deployment does not say.
const feedbackWindow = 10 * time.Minute

// Feedback is what became of one attempt.
type Feedback struct {
	Merchant       MerchantID
	Gateway        Name
	Reference      string // gatewayReferenceId
	Status         Status
	PaymentID      string
	EnforceFailure bool
	Latency        float64 // ms that the gateway took; negative when not told
	Error          ErrorInfo
	Retry          bool // isSmartRetry
	RequestID      string
}

// FeedbackAnswer says what was done with it.
type FeedbackAnswer struct {
	Applied bool   // some score has changed, and the change is on disk
	Reason  string // why not; empty when it was applied
	Rule    *ErrorRule
}

// The reasons for which feedback is not applied.
const (
	ReasonMerchant  = "MERCHANT_NOT_FOUND"
	ReasonSnapshot  = "GATEWAY_SCORING_DATA_NOT_FOUND"
	ReasonLate      = "FEEDBACK_TOO_LATE"
	ReasonSlow      = "GATEWAY_TOO_SLOW"
	ReasonDuplicate = "DUPLICATE_FEEDBACK"
	ReasonPending   = "STATUS_NOT_FINAL"
	ReasonCustomer  = "NOT_THE_GATEWAYS_FAULT"
	ReasonExplored  = "DECISION_NOT_EXPLORED"
	ReasonGone      = "OUTCOME_LEFT_THE_WINDOW"
	ReasonAttempts  = "TOO_MANY_ATTEMPTS"
)

// Update counts one outcome: it is on disk and in the scores when Update returns. Feedback that changes nothing is no error;
// the answer says why. Invalid for a status that is not in the list, Unavailable when the store takes no writes.
func (s *Service) Update(ctx context.Context, f *Feedback) (FeedbackAnswer, error) {
	class, known := classOf(f.Status)
	u := update{service: s, feedback: f, class: class, now: s.options.Now()}
	if !known {
		err := BadInput("status: unknown variant `" + clip(string(f.Status)) + "`")
		u.witness(FeedbackAnswer{}, err)
		return FeedbackAnswer{}, err
	}
	a, err := u.run(ctx)
	u.witness(a, err)
	return a, err
}

// update is one outcome on its way.
type update struct {
	service  *Service
	feedback *Feedback
	class    Class
	now      time.Time

	merchant   *merchant
	set        *settings
	deployment *deployment
	decision   *record
	resolved   resolved
	rule       *ErrorRule
	customer   bool // the error is not the gateway's
}

func (u *update) run(ctx context.Context) (a FeedbackAnswer, err error) {
	s, f := u.service, u.feedback
	u.rule, u.customer = s.errors.Load().match(&f.Error)
	a.Rule = u.rule
	u.merchant, err = s.merchant(ctx, f.Merchant)
	if fault.KindOf(err) == fault.NotFound && err != nil {
		a.Reason = ReasonMerchant
		return a, nil
	}
	if err != nil {
		return a, err
	}
	u.merchant.use(u.now)
	u.set, u.deployment = u.merchant.settings.Load(), s.deployment.Load()
	u.decision, err = s.ledger.find(ctx, u.merchant.key, f.PaymentID, u.now.UnixMilli())
	if err != nil {
		return a, err
	}
	if u.decision == nil {
		a.Reason = ReasonSnapshot
		return a, nil
	}
	u.resolved = u.set.resolve(u.deployment, &u.decision.facts)
	effect, reason := u.judge()
	if effect == noEffect {
		a.Reason = reason
		return a, nil
	}
	a.Applied, a.Reason, err = u.apply(ctx, effect)
	if a.Applied && effect != effectPenalty {
		u.merchant.shares.settled(f.Gateway, effect == effectSuccess)
	}
	return a, err
}

// judge says what the outcome counts as, by the table of statuses and its guards.
func (u *update) judge() (counts effect, reason string) {
	f, d := u.feedback, u.decision
	age := time.Duration(u.now.UnixMilli()-d.timeMS) * time.Millisecond
	switch {
	case f.EnforceFailure, u.class == Failure:
		counts = effectFailure
	case u.class == Success:
		counts = effectSuccess
	case age >= u.resolved.latency:
		counts = effectFailure
	case f.Status.penalises() && d.flags&flagElimination != 0:
		counts = effectPenalty
	default:
		return noEffect, ReasonPending
	}
	switch {
	case counts != effectPenalty && age > u.window():
		return noEffect, ReasonLate
	case counts == effectSuccess && u.slow():
		return noEffect, ReasonSlow
	case counts != effectSuccess && u.customer && u.set.has(FeatureGSM, u.service.options.Entropy()):
		return noEffect, ReasonCustomer
	case u.deployment.exploreOnly && d.flags&flagExploring != 0 && d.flags&flagExplored == 0:
		return noEffect, ReasonExplored
	}
	return counts, ""
}

func (u *update) window() time.Duration {
	if n := u.service.options.Deployment.FeedbackWindowSeconds; n > 0 {
		return time.Duration(n) * time.Second
	}
	return feedbackWindow
}

// slow reports whether the gateway took longer than the merchant rewards. Mandates take their time.
func (u *update) slow() bool {
	e := u.set.elimination
	return e != nil && e.Latency > 0 && u.feedback.Latency > e.Latency && !u.service.options.Deployment.SlowRewards &&
		!strings.Contains(u.decision.facts.OrderType, "MANDATE")
}

// apply counts the outcome unless the attempt has one like it already; another one before it is replaced.
func (u *update) apply(ctx context.Context, counts effect) (applied bool, reason string, err error) {
	s, f, d := u.service, u.feedback, u.decision
	var was mark
	duplicate, late := false, false
	claimed := s.ledger.claim(u.merchant.key, f.PaymentID, f.Gateway, func(m mark) mark {
		was = m
		duplicate = m.effect == counts
		late = counts == effectPenalty && m.effect != noEffect
		if !duplicate && !late {
			m.effect = counts // at once, so that the same feedback sent twice at a time counts once
		}
		return m
	})
	switch {
	case !claimed:
		return false, ReasonAttempts, nil
	case duplicate || late:
		// It may still be on its way to the disk: the answer means that it is there.
		return false, ReasonDuplicate, s.storage.Write(ctx, Write{Change: func(Tx) error { return nil }})
	}
	o := &Outcome{TimeMS: u.now.UnixMilli(), Merchant: u.merchant.key, Payment: f.PaymentID, Gateway: f.Gateway, Kind: KindPush,
		Window: d.windowKey(), Value: counts == effectSuccess, Size: u.resolved.bucket}
	if counts == effectPenalty {
		o.Kind, o.Window = KindPenalty, ""
	}
	u.move(o, counts)
	changed, err := s.record(ctx, u.merchant, o)
	if err != nil {
		s.ledger.claim(u.merchant.key, f.PaymentID, f.Gateway, func(mark) mark { return was })
		if fault.KindOf(err) == fault.NotFound {
			return false, ReasonMerchant, nil
		}
		return false, "", err
	}
	if !changed {
		return false, ReasonGone, nil
	}
	return true, "", nil
}

// move says what the outcome does to the elimination score, which counts only where elimination was on for the decision.
func (u *update) move(o *Outcome, counts effect) {
	d := u.decision
	if d.flags&flagElimination == 0 {
		return
	}
	pending := u.feedback.Status.penalises()
	switch {
	case counts == effectSuccess:
		o.Move, o.Factor = Reward, u.deployment.reward
	case pending || !u.service.options.Deployment.ReferencePenalties:
		o.Move, o.Factor = Penalise, u.deployment.penalty
	default:
		return
	}
	key := standingKey(nil, &d.facts, u.feedback.Gateway)
	o.Standing, o.Floor = string(key), u.set.threshold(u.deployment)
	if score, raised := u.merchant.scores.standing(key, o.TimeMS, u.deployment.reset(o.Floor)); raised {
		o.Raise = score
	}
}

// resetScores forgets every window of a merchant and returns how many there were.
func (s *Service) resetScores(ctx context.Context, m *merchant) (deleted int, err error) {
	deleted = m.scores.windows()
	_, err = s.record(ctx, m, &Outcome{TimeMS: s.nowMS(), Merchant: m.key, Kind: KindReset})
	return deleted, err
}

// windowKey is the key of the cell that the decision read.
func (r *record) windowKey() string {
	f := &r.facts
	return f.OrderType + string(separator) + f.MethodType + string(separator) + f.Method + r.dimension
}
