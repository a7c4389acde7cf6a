package gateway

import (
	"context"
	"slices"
	"time"

	"holdfast/fault"
	"holdfast/ident"
)

// Range is the time that a question about the past covers, and how finely it is divided.
type Range struct {
	Name     string // as the caller named it, or custom
	Span     Span
	BucketMS int64
}

// lookBackMonths is how far back a range may begin.
const lookBackMonths = 18

// Moments are a range given by its ends, in milliseconds since 1970, both or none of them.
type Moments struct {
	StartMS, EndMS   int64
	HasStart, HasEnd bool
}

// RangeOf returns the range with a name, 1h when it is empty, or the one between two moments. Invalid when there is no such
// range, when one of the ends is missing, when it ends before it begins, or when it begins more than 18 months ago.
func (s *Service) RangeOf(name string, m Moments) (Range, error) {
	now := s.options.Now()
	if m.HasStart || m.HasEnd {
		return customRange(m, now)
	}
	if name == "" {
		name = "1h"
	}
	for _, r := range [...]struct {
		name   string
		length time.Duration
		bucket int64
	}{{"15m", 15 * time.Minute, minuteMS}, {"1h", time.Hour, 5 * minuteMS}, {"12h", 12 * time.Hour, hourMS}, {"1d", 24 * time.Hour, hourMS},
		{"1w", 7 * 24 * time.Hour, dayMS}} {
		if r.name == name {
			until := now.UnixMilli() + 1 // what happens in this millisecond belongs to it
			return Range{Name: name, Span: Span{until - r.length.Milliseconds(), until}, BucketMS: r.bucket}, nil
		}
	}
	return Range{}, invalid("Range", "range must be 15m, 1h, 12h, 1d or 1w")
}

func customRange(m Moments, now time.Time) (Range, error) {
	switch {
	case !m.HasStart || !m.HasEnd:
		return Range{}, invalid("Range", "start_ms and end_ms go together")
	case m.StartMS < 0 || m.EndMS <= m.StartMS:
		return Range{}, invalid("Range", "end_ms must be after start_ms")
	case m.StartMS < now.AddDate(0, -lookBackMonths, 0).UnixMilli():
		return Range{}, invalid("Range", "start_ms must lie within the last %d months", lookBackMonths)
	case m.StartMS > now.UnixMilli()+dayMS:
		return Range{}, invalid("Range", "start_ms lies in the future")
	}
	r := Range{Name: "custom", Span: Span{m.StartMS, min(m.EndMS, now.UnixMilli()+dayMS) + 1}}
	switch length, age := m.EndMS-m.StartMS, now.UnixMilli()-m.StartMS; {
	case age > keepHours.Milliseconds() || length > dayMS:
		r.BucketMS = dayMS
	case age > keepMinutes.Milliseconds() || length > hourMS:
		r.BucketMS = hourMS
	case length > 15*minuteMS:
		r.BucketMS = 5 * minuteMS
	default:
		r.BucketMS = minuteMS
	}
	return r, nil
}

// Filter says which events count; an empty member lets all pass.
type Filter struct {
	Gateways                                                      []Name
	MethodType, Method, Network, BIN, Currency, Country, AuthType string
}

// Question is what a panel is asked.
type Question struct {
	Merchant MerchantID
	Range    Range
	Filter   Filter
}

func (f *Filter) passes(k *cellKey) bool {
	for _, d := range [...]struct {
		want string
		at   int
	}{{f.MethodType, byMethodType}, {f.Method, byMethod}, {f.Network, byNetwork}, {f.BIN, byBIN}, {f.Currency, byCurrency},
		{f.Country, byCountry}, {f.AuthType, byAuthType}} {
		if d.want != "" && d.want != k.texts[d.at] {
			return false
		}
	}
	return len(f.Gateways) == 0 || slices.Contains(f.Gateways, Name(k.texts[byGateway]))
}

// counted is one cell of one page as a panel sees it. It is good until the visit ends.
type counted struct {
	startMS int64 // of the page
	bucket  int64 // that the page's start lies in
	key     *cellKey
	cell    *tallyCell
	passes  bool // the question's filter
}

func (c *counted) flow() Flow { return Flow(c.key.texts[byFlow]) }

// countedBy calls visit for everything that was counted in the question's span, older pages before newer ones. A page that
// begins before the span and reaches into it belongs to it.
func (s *Service) countedBy(ctx context.Context, q *Question, visit func(c *counted)) error {
	m, err := s.merchant(ctx, q.Merchant)
	if err != nil {
		return err
	}
	release, err := s.trail.look(ctx)
	if err != nil {
		return err
	}
	defer release()
	s.settled(ctx)
	// Memory before the store: what is stored in between is then seen twice, which can be told, and not left out.
	unsaved := s.tallies.of(m.key, q.Range.Span)
	one := counted{}
	each := func(id pageID) func(k *cellKey, c *tallyCell) {
		one.startMS, one.bucket = id.start, floorMS(id.start, q.Range.BucketMS)
		return func(k *cellKey, c *tallyCell) {
			one.key, one.cell, one.passes = k, c, q.Filter.passes(k)
			visit(&one)
		}
	}
	return s.storage.Read(ctx, func(v View) error {
		for l := days; ; l-- {
			if err := pagesOf(v, pagesAt{l, m.key, q.Range.Span, unsaved}, each); err != nil {
				return err
			}
			if l == minutes {
				return ctx.Err()
			}
		}
	})
}

// pagesAt says which pages of one level to visit.
type pagesAt struct {
	level    level
	merchant int64
	span     Span
	unsaved  map[pageID][]unsaved
}

// pagesOf visits the cells of a merchant's pages of one level, older pages first. Where no page is, it jumps to the next one of
// anybody: the key begins with the time.
func pagesOf(v View, at pagesAt, each func(pageID) func(*cellKey, *tallyCell)) error {
	grain := at.level.grain()
	end := pageID{level: at.level + 1}.key()
	for start := floorMS(at.span.Since, grain); start < at.span.Until; {
		id := pageID{level: at.level, start: start, merchant: at.merchant}
		through, next := int64(-1), at.span.Until
		err := v.Tallies(TallyKeys{id.key(), end, 1}, func(row TallyRow) error {
			switch found := pageOf(row.Key); {
			case found == id:
				through, next = row.Through, start+grain
				_, err := readPage(row.Cells, each(id))
				return err
			case found.merchant > at.merchant:
				next = found.start + grain
			default:
				next = found.start
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, u := range at.unsaved[id] {
			if through >= u.through {
				continue // the store has it
			}
			visit := each(id)
			for _, k := range u.page.keys() {
				visit(&k, u.page.cells[k])
			}
		}
		for other := range at.unsaved {
			if other.level == at.level && other.start > start {
				next = min(next, other.start)
			}
		}
		start = next
	}
	return nil
}

// ranked sorts by count, then by name, and keeps the first most.
func ranked(counts map[string]int64, most int) []Count {
	list := make([]Count, 0, len(counts))
	for name, n := range counts {
		list = append(list, Count{name, n})
	}
	slices.SortFunc(list, func(a, b Count) int {
		if a.Count != b.Count {
			return int(min(max(b.Count-a.Count, -1), 1))
		}
		return compareText(a.Name, b.Name)
	})
	return list[:min(len(list), most)]
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Count is how often something named happened.
type Count struct {
	Name  string
	Count int64
}

// Owner returns the merchant whose past a principal may see: that of its own credential. key is the API key that the caller
// showed; it matters only where authentication is off, and named then says whose past without a key. Unauthenticated for
// everybody who stands for no merchant, the operator included.
func (s *Service) Owner(ctx context.Context, p ident.Principal, key string, named MerchantID) (MerchantID, error) {
	switch {
	case p.Kind == ident.Token && p.Scope.Tenant != "":
		return MerchantID(p.Scope.Tenant), nil
	case p.Kind == ident.DevMode && key != "":
		_, m, err := s.apiKey(ctx, key, s.options.Now())
		return m, err
	case p.Kind == ident.DevMode && named != "":
		return named, nil
	}
	return "", fault.New("gateway.Owner", fault.Unauthenticated, "analytics need the API key or the session of a merchant")
}

// NowMS is the service's clock, in milliseconds since 1970.
func (s *Service) NowMS() int64 { return s.nowMS() }
