package console

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/ident"
)

// card is one capsule on the first page.
type card struct {
	ID   decision.CapsuleID
	Link string
	Mode string
	decision.Info
	trends
}

// overview is the body of the first page.
type overview struct {
	Now      time.Time
	Capsules int
	Totals   decision.Stats // of the cards of this page
	Rate     float64
	Cards    []card
	Shops    []shopCard // the busiest merchants
	Rows     []row
	Page     int
	Pages    int
	Tenants  int
}

// Overview answers the first page; whoever has not signed in is asked for a key.
func (c *Console) Overview(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	who, ok := c.who(r)
	if !ok {
		c.askForKey(w, http.StatusOK, signIn{Next: next(r.URL.Query().Get("next"))})
		return
	}
	page := pageNumber(r.URL.Query())
	body, err := c.overview(r.Context(), who, page)
	if err != nil {
		c.fail(w, who, err)
		return
	}
	stream := "/console/events?page=" + strconv.Itoa(body.Page)
	c.show(w, http.StatusOK, "overview-page", layout{Title: "Capsules", Who: c.name(who), Dev: c.dev, Stream: stream, Body: body})
}

func pageNumber(q url.Values) int {
	n, err := strconv.Atoi(q.Get("page"))
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// visible are the capsules that a principal may see, sorted.
func (c *Console) visible(ctx context.Context, who ident.Principal) ([]decision.CapsuleID, error) {
	tenant, job := "", ""
	if who.Kind == ident.Token && who.Scope.Role != ident.Admin {
		tenant, job = who.Scope.Tenant, who.Scope.Job
	}
	ids, err := c.service.Capsules(ctx, tenant, job)
	return slices.DeleteFunc(ids, func(id decision.CapsuleID) bool { return !reads(who, id) }), err
}

// overview gathers a page of cards and the newest decisions of their capsules.
func (c *Console) overview(ctx context.Context, who ident.Principal, page int) (overview, error) {
	now := c.now()
	ids, err := c.visible(ctx, who)
	if err != nil {
		return overview{}, err
	}
	o := overview{Now: now, Capsules: len(ids), Pages: max(1, (len(ids)+cardsPerPage-1)/cardsPerPage)}
	tenants := map[string]bool{}
	for _, id := range ids {
		tenants[id.Tenant] = true
	}
	o.Tenants = len(tenants)
	o.Page = min(page, o.Pages)
	ids = ids[(o.Page-1)*cardsPerPage:]
	ids = ids[:min(cardsPerPage, len(ids))]
	var newest [][]row
	for _, id := range ids {
		one, rows, err := c.card(ctx, id, now)
		if err != nil {
			if kind := fault.KindOf(err); kind == fault.NotFound {
				continue // deleted since the list was read
			}
			return overview{}, err
		}
		o.Cards = append(o.Cards, one)
		o.Totals.Decisions += one.Stats.Decisions
		o.Totals.Rewards += one.Stats.Rewards
		if !math.IsNaN(one.PerSec) {
			o.Rate += one.PerSec
		}
		newest = append(newest, rows)
	}
	o.Rows = mixed(newest)
	if o.Page == 1 {
		o.Shops = c.shopCards(who)
	}
	return o, nil
}

// mixed is the list of the newest decisions of several capsules. Each has a share of it that a busier one does not take;
// what is left goes to the newest.
func mixed(all [][]row) []row {
	fair := max(leastRows, overviewRows/max(1, len(all)))
	var sure, spare []row
	for _, rows := range all {
		n := min(fair, len(rows))
		sure, spare = append(sure, rows[:n]...), append(spare, rows[n:]...)
	}
	byTime := func(a, b row) int { return b.At.Compare(a.At) }
	slices.SortStableFunc(sure, byTime)
	slices.SortStableFunc(spare, byTime)
	sure = append(sure[:min(overviewRows, len(sure))], spare[:min(max(0, overviewRows-len(sure)), len(spare))]...)
	slices.SortStableFunc(sure, byTime)
	return sure
}

// card gathers one capsule.
func (c *Console) card(ctx context.Context, id decision.CapsuleID, now time.Time) (card, []row, error) {
	capsule, err := c.service.Capsule(ctx, id)
	if err != nil {
		return card{}, nil, err
	}
	info, err := capsule.Info(ctx)
	if err != nil {
		return card{}, nil, err
	}
	trail, err := c.watch.trail(ctx, id, now)
	if err != nil {
		return card{}, nil, err
	}
	p := trail.picture(now, cardPoints)
	one := card{ID: id, Link: capsuleURL(id.Tenant, id.Job, id.Capsule), Mode: capsule.Mode().String(), Info: info,
		trends: trendsOf(&p, rewardSpan(info.Spec))}
	rows := rowsOf(&p, overviewRows)
	for i := range rows {
		rows[i].Capsule, rows[i].Link = id.Capsule, one.Link
	}
	return one, rows, nil
}

// rewardSpan is the width of a spec's reward range, 1 when it does not read.
func rewardSpan(text []byte) float64 {
	spec, err := decision.ParseSpec(text)
	if err != nil {
		return 1
	}
	return spec.Hi - spec.Lo
}

// Before is the number of the previous page.
func (o overview) Before() int { return o.Page - 1 }

// After is the number of the next page.
func (o overview) After() int { return o.Page + 1 }
