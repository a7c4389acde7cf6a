package decisionapi

import (
	"bytes"
	"encoding/json/jsontext"
	"net/http"

	"holdfast/decision"
	"holdfast/ident"
	"holdfast/internal/strictjson"
)

// evaluateBody is what an evaluation and a promotion may be told. Null counts as absent.
type evaluateBody struct {
	Policy    *string        `json:"policy"`
	Spec      jsontext.Value `json:"spec"`
	Gates     []string       `json:"gates"`
	Since     *int64         `json:"since"`
	Until     *int64         `json:"until"`
	Folds     *int           `json:"folds"`
	Bootstrap *int           `json:"bootstrap"`
	Seed      jsontext.Value `json:"seed"` // a number or a string
	WMax      *float64       `json:"wMax"`
	Range     *[2]float64    `json:"rewardRange"`
}

// decodeEvaluate reads the body of an evaluation. The request refers to it.
func decodeEvaluate(body []byte) (q decision.EvaluateRequest, err error) {
	var b evaluateBody
	if err := decode(body, &b); err != nil {
		return q, err
	}
	q = decision.DefaultEvaluation()
	if q.Spec, err = object("spec", b.Spec); err != nil && len(b.Spec) > 0 {
		return q, err
	}
	if b.Policy != nil {
		if q.Policy = *b.Policy; q.Policy == "" {
			return q, emptyText("policy")
		}
	}
	q.Gates, q.Range = b.Gates, b.Range
	if kind := strictjson.KindOf(b.Seed); kind != strictjson.None && kind != strictjson.Null {
		if q.Seed, err = seed(b.Seed); err != nil {
			return q, err
		}
	}
	set(&q.Span.Since, b.Since)
	set(&q.Span.Until, b.Until)
	if b.Until != nil && *b.Until <= 0 {
		q.Span.Until = 1 // inside, 0 means no end; nothing was decided before 1970
	}
	set(&q.Folds, b.Folds)
	set(&q.Bootstrap, b.Bootstrap)
	set(&q.WMax, b.WMax)
	return q, nil
}

// set takes a value that was given.
func set[T any](dst, given *T) {
	if given != nil {
		*dst = *given
	}
}

// Evaluate answers POST C/evaluate: what a policy would have earned.
func (a *API) Evaluate(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := capsuleID(c)
	var q decision.EvaluateRequest
	if err == nil {
		q, err = decodeEvaluate(bytes.Clone(c.Body))
	}
	var capsule *decision.Capsule
	if err == nil {
		capsule, err = a.service.Capsule(r.Context(), id)
	}
	var report *decision.Report
	if err == nil {
		report, err = capsule.Evaluate(r.Context(), q)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, report)
}

// promotionJSON is what a promotion answers either way.
type promotionJSON struct {
	Promoted bool             `json:"promoted"`
	Error    string           `json:"error,omitzero"`
	Spec     jsontext.Value   `json:"spec,omitzero"`
	Report   *decision.Report `json:"report"`
}

// Promote answers POST C/promote: a change of the spec that goes live only if every gate passes.
func (a *API) Promote(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	p, err := a.promote(r, c)
	switch {
	case err != nil:
		a.refuse(w, r, err)
	case p.Promoted:
		a.send(w, r, http.StatusOK, promotionJSON{Promoted: true, Spec: p.Spec, Report: p.Report})
	default:
		a.send(w, r, http.StatusConflict, promotionJSON{Error: "a gate failed", Report: p.Report})
	}
}

func (a *API) promote(r *http.Request, c *ident.Call) (*decision.Promotion, error) {
	id, err := capsuleID(c)
	if err != nil {
		return nil, err
	}
	q, err := decodeEvaluate(bytes.Clone(c.Body))
	if err != nil {
		return nil, err
	}
	switch {
	case q.Policy != "":
		return nil, invalid("a promotion takes no policy: give spec")
	case q.Spec == nil:
		return nil, missing("spec")
	case len(q.Gates) == 0:
		return nil, invalid("a promotion needs at least one gate")
	}
	capsule, err := a.service.Capsule(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return capsule.Promote(r.Context(), q)
}
