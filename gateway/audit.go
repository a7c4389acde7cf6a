package gateway

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// The bounds of one look at single events.
const (
	scanEvents   = 100_000  // events of the merchant that are decoded, the newest first
	scanBytes    = 64 << 20 // bytes of them
	scanBundles  = 200_000  // bundles whose head is looked at
	timelineMost = 1_000    // events of a timeline
	auditNames   = 32       // gateways, or routes, of one payment
)

// scan says which events to look at.
type scan struct {
	merchant MerchantID
	span     Span
	ids      []string // payment or request ids: only bundles that may hold one of them; nil for all
}

func scanOf(q *Question) scan { return scan{merchant: q.Merchant, span: q.Range.Span} }

// scan calls visit for the events of one merchant in a span: bundle by bundle, the newest first, and within a bundle in the
// order in which they were posted. id tells an event from every other of the trail. complete is false when a bound was
// reached. What e holds may be kept.
func (s *Service) scan(ctx context.Context, q scan, visit func(e *Event, id int64)) (complete bool, err error) {
	m, err := s.merchant(ctx, q.merchant)
	if err != nil {
		return false, err
	}
	release, err := s.trail.look(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	s.settled(ctx)
	hashes := make([]uint32, len(q.ids))
	for i, id := range q.ids {
		hashes[i] = idHash(m.key, id)
	}
	complete = true
	events, bytes, bundles := 0, 0, 0
	err = s.storage.Read(ctx, func(v View) error {
		return v.Bundles(q.span, func(head BundleRow) (bool, error) {
			if bundles++; bundles > scanBundles || events >= scanEvents || bytes >= scanBytes {
				complete = false
				return false, ctx.Err()
			}
			start, length, ok := section(head.Merchants, m.key)
			if !ok || len(hashes) > 0 && !slices.ContainsFunc(hashes, func(h uint32) bool { return hasID(head.IDs, h) }) {
				return true, nil
			}
			var r records
			err := v.BundlePayload(head.Number, func(payload []byte) error {
				if start+length > len(payload) {
					return errRecord
				}
				r.rest = string(payload[start : start+length])
				return nil
			})
			if err != nil {
				return false, err
			}
			bytes += length
			at := head.Number * bundleEvents
			for e := (Event{}); r.next(&e); at++ {
				events++
				if e.TimeMS >= q.span.Since && e.TimeMS < q.span.Until {
					e.Merchant = q.merchant
					visit(&e, at)
				}
			}
			if r.bad {
				return false, errRecord
			}
			return true, ctx.Err()
		})
	})
	return complete, err
}

// AuditQuery asks for what happened to payments. Empty members let all pass.
type AuditQuery struct {
	Question
	PaymentID, RequestID      string
	Route                     string // as in Event
	Status                    string // success or failure: of the newest event
	Flow                      Flow
	Approach, ExcludeApproach Approach
	ErrorCode                 string
	Previews                  bool // evaluations of rules only
	Page                      Page
}

// Page is one page of a list; Number counts from 1.
type Page struct{ Number, Size int }

// of returns where the page begins and ends in a list of n.
func (p Page) of(n int) (from, to int) {
	if p.Number-1 > n/p.Size {
		return n, n
	}
	from = min((p.Number-1)*p.Size, n)
	return from, min(from+p.Size, n)
}

// Audited is what the trail has of one payment, or of one request without a payment.
type Audited struct {
	LookupKey            string
	PaymentID, RequestID string
	FirstMS, LastMS      int64
	Events               int
	LatestFailed         bool
	LatestGateway        Name // of the newest event that has one
	LatestStage          Stage
	Gateways             []Name
	Routes               []string
}

// Recorded is an event with its number.
type Recorded struct {
	ID int64
	Event
}

// Audit is one page of payments, the one with the newest event first, and what happened to them, oldest first.
type Audit struct {
	Results                  []Audited
	Total, Succeeded, Failed int
	Timeline                 []Recorded
	Complete                 bool // false: older events in the range were not looked at
}

// group is a payment while its events are collected.
type group struct {
	Audited
	latestID  int64
	gatewayMS int64
	matches   bool // some event passes the filters
	excluded  bool
}

// Audit answers /analytics/payment-audit and /analytics/preview-trace. A payment belongs to the answer when one of its events
// passes all filters; what is said of it is said of all its events in the range.
func (s *Service) Audit(ctx context.Context, q *AuditQuery) (*Audit, error) {
	groups := map[string]*group{}
	look := scanOf(&q.Question)
	for _, id := range [2]*string{&q.PaymentID, &q.RequestID} {
		if *id = cleanText(*id); *id != "" && look.ids == nil {
			look.ids = []string{*id}
		}
	}
	if q.PaymentID == "" && q.RequestID != "" {
		// The request's payment may have events of other requests, in bundles that do not name this one.
		if key, err := s.paymentOf(ctx, look, q.RequestID); err != nil {
			return nil, err
		} else if key != "" {
			look.ids = append(look.ids, key)
		}
	}
	complete, err := s.scan(ctx, look, func(e *Event, id int64) {
		if q.Previews && !e.preview() {
			return
		}
		key := e.lookupKey()
		g := groups[key]
		if g == nil {
			g = &group{Audited: Audited{LookupKey: key, PaymentID: e.PaymentID}}
			groups[key] = g
		}
		g.note(e, id)
		g.matches = g.matches || q.passes(e)
		g.excluded = g.excluded || q.ExcludeApproach != "" && e.Approach == q.ExcludeApproach
	})
	if err != nil {
		return nil, err
	}
	a := &Audit{Complete: complete}
	list := a.keep(groups, q)
	from, to := q.Page.of(len(list))
	for _, g := range list[from:to] {
		a.Results = append(a.Results, g.Audited)
	}
	return a, s.timeline(ctx, q, a)
}

// paymentOf finds the payment that a request was about, empty when it has none.
func (s *Service) paymentOf(ctx context.Context, look scan, request string) (id string, err error) {
	_, err = s.scan(ctx, look, func(e *Event, _ int64) {
		if e.RequestID == request && e.PaymentID != "" {
			id = e.PaymentID
		}
	})
	return id, err
}

// keep returns the groups that belong to the answer, the newest first, and counts them.
func (a *Audit) keep(groups map[string]*group, q *AuditQuery) []*group {
	var list []*group
	for _, g := range groups {
		if !g.matches || g.excluded || q.Status != "" && (q.Status == "failure") != g.LatestFailed {
			continue
		}
		list = append(list, g)
		if g.LatestFailed {
			a.Failed++
		} else {
			a.Succeeded++
		}
	}
	a.Total = len(list)
	slices.SortFunc(list, func(x, y *group) int {
		return cmp.Or(cmp.Compare(y.LastMS, x.LastMS), cmp.Compare(y.latestID, x.latestID), compareText(x.LookupKey, y.LookupKey))
	})
	return list
}

// timeline collects the events of the answer's payments.
func (s *Service) timeline(ctx context.Context, q *AuditQuery, a *Audit) error {
	if len(a.Results) == 0 {
		return nil
	}
	look := scan{merchant: q.Merchant, span: q.Range.Span}
	wanted := map[string]bool{}
	for _, r := range a.Results {
		wanted[r.LookupKey] = true
		look.ids = append(look.ids, r.LookupKey)
		look.span.Since = max(q.Range.Span.Since, min(look.span.Since, r.FirstMS))
	}
	_, err := s.scan(ctx, look, func(e *Event, id int64) {
		if wanted[e.lookupKey()] && (!q.Previews || e.preview()) {
			a.Timeline = append(a.Timeline, Recorded{id, *e})
		}
	})
	slices.SortFunc(a.Timeline, func(x, y Recorded) int { return cmp.Or(cmp.Compare(x.TimeMS, y.TimeMS), cmp.Compare(x.ID, y.ID)) })
	a.Timeline = a.Timeline[max(0, len(a.Timeline)-timelineMost):]
	return err
}

// lookupKey is what the events of one payment have in common: its id, else the request's.
func (e *Event) lookupKey() string { return cmp.Or(e.PaymentID, e.RequestID) }

func (e *Event) preview() bool { return strings.HasPrefix(string(e.Flow), "routing_evaluate_") }

// note adds an event to its payment.
func (g *group) note(e *Event, id int64) {
	if g.Events == 0 {
		g.FirstMS, g.LastMS = e.TimeMS, e.TimeMS
	}
	g.Events++
	g.FirstMS = min(g.FirstMS, e.TimeMS)
	if newer := e.TimeMS > g.LastMS || e.TimeMS == g.LastMS && id >= g.latestID; newer {
		g.LastMS, g.latestID = e.TimeMS, id
		g.LatestFailed, g.LatestStage, g.RequestID = e.Failed, e.Stage, e.RequestID
	}
	if e.Gateway != "" && (g.LatestGateway == "" || e.TimeMS >= g.gatewayMS) {
		g.LatestGateway, g.gatewayMS = e.Gateway, e.TimeMS
	}
	if e.Gateway != "" && len(g.Gateways) < auditNames && !slices.Contains(g.Gateways, e.Gateway) {
		g.Gateways = append(g.Gateways, e.Gateway)
	}
	if e.Route != "" && len(g.Routes) < auditNames && !slices.Contains(g.Routes, e.Route) {
		g.Routes = append(g.Routes, e.Route)
	}
}

// passes reports whether an event passes all filters but those that are about the whole payment.
func (q *AuditQuery) passes(e *Event) bool {
	for _, d := range [...]struct{ want, have string }{{q.PaymentID, e.PaymentID}, {q.RequestID, e.RequestID}, {q.Route, e.Route},
		{string(q.Flow), string(e.Flow)}, {string(q.Approach), string(e.Approach)}, {q.ErrorCode, e.ErrorCode}} {
		if d.want != "" && d.want != d.have {
			return false
		}
	}
	k := keyOf(e)
	return q.Filter.passes(&k)
}

// LogSummary says what failed.
type LogSummary struct {
	Total    int64
	Errors   []ErrorCount
	Samples  []Recorded // one page of the single failures, newest first
	Complete bool       // false: older events in the range were not looked at
}

// errorsMost is how many kinds of failure are listed.
const errorsMost = 100

// LogSummaries answers /analytics/log-summaries.
func (s *Service) LogSummaries(ctx context.Context, q *Question, page Page) (*LogSummary, error) {
	board := errorBoard{}
	err := s.countedBy(ctx, q, func(c *counted) {
		if c.passes {
			board.note(c)
		}
	})
	if err != nil {
		return nil, err
	}
	out := &LogSummary{Total: board.total(), Errors: board.worst(errorsMost)}
	if out.Total == 0 {
		out.Complete = true
		return out, nil
	}
	// Only so many of the newest are kept while looking that the page can be cut from them.
	var newest []Recorded
	order := func(x, y Recorded) int { return cmp.Or(cmp.Compare(y.TimeMS, x.TimeMS), cmp.Compare(y.ID, x.ID)) }
	most := min(page.Number, scanEvents/page.Size) * page.Size
	out.Complete, err = s.scan(ctx, scanOf(q), func(e *Event, id int64) {
		if !e.Failed || e.Flow == FlowScoreSnapshot || e.Flow == FlowRuleHit {
			return
		}
		if k := keyOf(e); !q.Filter.passes(&k) {
			return
		}
		if newest = append(newest, Recorded{id, *e}); len(newest) >= 2*most+1_000 {
			slices.SortFunc(newest, order)
			clear(newest[most:])
			newest = newest[:most]
		}
	})
	slices.SortFunc(newest, order)
	from, to := page.of(len(newest))
	out.Samples = newest[from:to]
	return out, err
}
