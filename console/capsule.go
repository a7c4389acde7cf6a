package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/ident"
)

// detail is the body of a capsule's page.
type detail struct {
	card
	Now    time.Time
	Rows   []row
	Facts  []fact
	Text   string // the spec
	Audits []audit
}

// fact is one line about a capsule.
type fact struct{ Name, Value string }

// audit is one administrative change.
type audit struct {
	MS            int64
	Event, Detail string
}

// Capsule answers the page of the capsule that the three parameters name.
func (c *Console) Capsule(w http.ResponseWriter, r *http.Request, call *ident.Call) {
	who, ok := c.who(r)
	if !ok {
		protect(w.Header())
		http.Redirect(w, r, "/?next="+url.QueryEscape(r.URL.EscapedPath()), http.StatusSeeOther)
		return
	}
	id := decision.CapsuleID{Tenant: call.Params[0], Job: call.Params[1], Capsule: call.Params[2]}
	body, err := c.detail(r.Context(), who, id)
	if err == nil {
		body.Audits, err = c.audits(r.Context(), id)
	}
	if err != nil {
		c.fail(w, who, err)
		return
	}
	q := url.Values{"tenant": {id.Tenant}, "job": {id.Job}, "capsule": {id.Capsule}}
	c.show(w, http.StatusOK, "capsule-page", layout{Title: id.Capsule, Who: c.name(who), Dev: c.dev, Stream: "/console/events?" + q.Encode(), Body: body})
}

// detail gathers a capsule's page, its audits apart.
func (c *Console) detail(ctx context.Context, who ident.Principal, id decision.CapsuleID) (detail, error) {
	if !reads(who, id) {
		return detail{}, fault.New("console.capsule", fault.Forbidden, "the key does not cover this capsule")
	}
	now := c.now()
	capsule, err := c.service.Capsule(ctx, id)
	if err != nil {
		return detail{}, err
	}
	info, err := capsule.Info(ctx)
	if err != nil {
		return detail{}, err
	}
	trail, err := c.watch.trail(ctx, id, now)
	if err != nil {
		return detail{}, err
	}
	p := trail.picture(now, pagePoints)
	d := detail{Now: now, Rows: rowsOf(&p, shown), Text: indent(info.Spec)}
	d.card = card{ID: id, Link: capsuleURL(id.Tenant, id.Job, id.Capsule), Mode: capsule.Mode().String(), Info: info,
		trends: trendsOf(&p, rewardSpan(info.Spec))}
	d.Facts = facts(&info)
	return d, nil
}

// facts says in a few lines what a spec asks for.
func facts(info *decision.Info) []fact {
	spec, err := decision.ParseSpec(info.Spec)
	if err != nil {
		return []fact{{"Spec", "it does not read: " + err.Error()}}
	}
	exploration := fmt.Sprintf("epsilon greedy, ε %s", exact(spec.Exploration.Epsilon))
	if spec.Exploration.Kind == decision.SquareCB {
		exploration = fmt.Sprintf("inverse gap weighting, γ %s · n^%s", exact(spec.Exploration.GammaScale), exact(spec.Exploration.GammaExponent))
	}
	all := []fact{
		{"Exploration", exploration},
		{"Least probability", exact(spec.Exploration.Floor) + " shared by the options"},
		{"Reward range", exact(spec.Lo) + " to " + exact(spec.Hi)},
		{"Rewards of one decision", map[decision.Aggregation]string{decision.First: "the first counts", decision.Sum: "all count"}[spec.Rewards]},
	}
	if spec.Default != nil {
		all = append(all, fact{"Without a reward", fmt.Sprintf("%s after %s", exact(*spec.Default), spec.Wait)})
	}
	if spec.Mode == decision.BaselineExplore {
		all = append(all, fact{"Beside the baseline", percent(spec.BaselineEpsilon)})
	}
	if spec.Seed != nil {
		all = append(all, fact{"Seed", "fixed"})
	}
	all = append(all, fact{"Learning rate", exact(spec.Learner.Rate)}, fact{"Weights", "2^" + fmt.Sprint(spec.Learner.Bits)})
	if p := info.Program; p != nil {
		all = append(all, fact{"Graph", p.SHA256[:min(12, len(p.SHA256))] + ", installed " + stamp(p.InstalledMS)})
	}
	return append(all, fact{"First decision", stamp(info.Stats.FirstMS)}, fact{"Last decision", stamp(info.Stats.LastMS)})
}

// audits are the newest changes, newest first.
func (c *Console) audits(ctx context.Context, id decision.CapsuleID) ([]audit, error) {
	rows, err := c.service.Audits(ctx, id, auditsShown)
	if err != nil {
		return nil, err
	}
	all := make([]audit, 0, len(rows))
	for _, r := range slices.Backward(rows) {
		all = append(all, audit{r.TimeMS, r.Event, clip(string(r.Detail), maxReason)})
	}
	return all, nil
}
