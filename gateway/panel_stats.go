package gateway

import (
	"cmp"
	"context"
	"slices"
)

// BucketCount is how often something happened in one bucket.
type BucketCount struct {
	BucketMS int64
	Name     string
	Count    int64
}

// bucketCounts counts by bucket and name.
type bucketCounts map[int64]map[string]int64

func (b bucketCounts) add(bucket int64, name string, n int64) {
	if b[bucket] == nil {
		b[bucket] = map[string]int64{}
	}
	b[bucket][name] += n
}

func (b bucketCounts) list() []BucketCount {
	var all []BucketCount
	for _, bucket := range ascending(b) {
		for _, name := range ascending(b[bucket]) {
			if len(all) < seriesMost {
				all = append(all, BucketCount{bucket, name, b[bucket][name]})
			}
		}
	}
	return all
}

// DecisionStats says how decisions were made.
type DecisionStats struct {
	Decided, Refused int64
	Series           []BucketCount // by routing approach
	Approaches       []Count
}

// DecisionStats answers /analytics/decisions.
func (s *Service) DecisionStats(ctx context.Context, q *Question) (*DecisionStats, error) {
	d := &DecisionStats{}
	series, approaches := bucketCounts{}, map[string]int64{}
	err := s.countedBy(ctx, q, func(c *counted) {
		switch {
		case !c.passes:
		case c.flow() == FlowDecision:
			d.Decided += c.cell.count
			series.add(c.bucket, c.key.texts[byApproach], c.cell.count)
			approaches[c.key.texts[byApproach]] += c.cell.count
		case c.flow() == FlowDecideError:
			d.Refused += c.cell.count
		}
	})
	d.Series, d.Approaches = series.list(), ranked(approaches, seriesMost)
	return d, err
}

// RoutingStats says where payments went and what became of them.
type RoutingStats struct {
	Share     []BucketCount // decisions, by gateway
	TopRules  []Count
	Trend     []TrendPoint
	Available Available
}

// TrendPoint is the share of a gateway's reported outcomes in one bucket that were successes.
type TrendPoint struct {
	BucketMS  int64
	Gateway   Name
	Succeeded int64
	Failed    int64
}

// Available is what there is to filter by in a span, whatever is filtered by now.
type Available struct {
	Gateways   []string
	Dimensions []Dimension
}

// Dimension is one thing to filter by. Values are the most frequent first, without what roll-ups put together.
type Dimension struct {
	Key, Label string
	Values     []string
}

// dimensions are the filters with their names.
var dimensionNames = [...]struct {
	key, label string
	at         int
}{{"payment_method_type", "Payment method type", byMethodType}, {"payment_method", "Payment method", byMethod},
	{"card_network", "Card network", byNetwork}, {"card_is_in", "Card BIN", byBIN}, {"currency", "Currency", byCurrency},
	{"country", "Country", byCountry}, {"auth_type", "Authentication type", byAuthType}}

// valuesMost is how many values of one dimension are listed.
const valuesMost = 200

// RoutingStats answers /analytics/routing-stats.
func (s *Service) RoutingStats(ctx context.Context, q *Question) (*RoutingStats, error) {
	out := &RoutingStats{}
	share, rules, gateways := bucketCounts{}, map[string]int64{}, map[string]int64{}
	var values [len(dimensionNames)]map[string]int64
	for i := range values {
		values[i] = map[string]int64{}
	}
	type point struct {
		bucket  int64
		gateway string
	}
	trend := map[point]*TrendPoint{}
	err := s.countedBy(ctx, q, func(c *counted) {
		gateway := c.key.texts[byGateway]
		gateways[gateway] += c.cell.count
		for i := range values {
			values[i][c.key.texts[dimensionNames[i].at]] += c.cell.count
		}
		if !c.passes {
			return
		}
		countRule(rules, c)
		switch c.flow() {
		case FlowDecision:
			share.add(c.bucket, gateway, c.cell.count)
		case FlowUpdate:
			at := point{c.bucket, gateway}
			if trend[at] == nil {
				trend[at] = &TrendPoint{BucketMS: c.bucket, Gateway: Name(gateway)}
			}
			trend[at].Succeeded += c.cell.succeeded
			trend[at].Failed += c.cell.failed
		}
	})
	if err != nil {
		return nil, err
	}
	out.Share, out.TopRules = share.list(), ranked(rules, topMost)
	for _, p := range trend {
		if p.Succeeded+p.Failed > 0 {
			out.Trend = append(out.Trend, *p)
		}
	}
	slices.SortFunc(out.Trend, func(a, b TrendPoint) int {
		return cmp.Or(cmp.Compare(a.BucketMS, b.BucketMS), compareText(string(a.Gateway), string(b.Gateway)))
	})
	out.Trend = out.Trend[:min(len(out.Trend), seriesMost)]
	out.Available.Gateways = listed(gateways)
	slices.Sort(out.Available.Gateways)
	for i, d := range dimensionNames {
		out.Available.Dimensions = append(out.Available.Dimensions, Dimension{d.key, d.label, listed(values[i])})
	}
	return out, nil
}

// listed returns the values that occurred, the most frequent first.
func listed(counts map[string]int64) []string {
	delete(counts, "")
	delete(counts, overflow)
	list := make([]string, 0, min(len(counts), valuesMost))
	for _, c := range ranked(counts, valuesMost) {
		list = append(list, c.Name)
	}
	return list
}

// Savings is what the cost step saved in one currency.
type Savings struct {
	Currency   string   // the one asked for, else the one with the most saved; empty when nothing was
	Currencies []string // in which something was saved
	Trend      []SavedPoint
	Saved      float64
	Promoted   int64 // decisions that went to a cheaper gateway
	Decided    int64 // decisions in the currency
}

// SavedPoint is what was saved in one bucket.
type SavedPoint struct {
	BucketMS int64
	Saved    float64
}

// CostSavings answers /analytics/cost-savings. The filter's currency chooses the currency.
func (s *Service) CostSavings(ctx context.Context, q *Question) (*Savings, error) {
	type sums struct {
		saved             map[int64]float64
		total             float64
		promoted, decided int64
	}
	by := map[string]*sums{}
	all := *q
	all.Filter.Currency = "" // the others are listed
	err := s.countedBy(ctx, &all, func(c *counted) {
		if !c.passes || c.flow() != FlowDecision {
			return
		}
		currency := c.key.texts[byCurrency]
		if by[currency] == nil {
			by[currency] = &sums{saved: map[int64]float64{}}
		}
		one := by[currency]
		one.decided += c.cell.count
		if c.cell.saved != 0 {
			one.saved[c.bucket] += c.cell.saved
			one.total += c.cell.saved
			one.promoted += c.cell.count
		}
	})
	if err != nil {
		return nil, err
	}
	out := &Savings{Currency: q.Filter.Currency}
	best := 0.0
	for _, currency := range ascending(by) {
		if by[currency].promoted == 0 || currency == overflow {
			continue
		}
		out.Currencies = append(out.Currencies, currency)
		if q.Filter.Currency == "" && by[currency].total > best {
			out.Currency, best = currency, by[currency].total
		}
	}
	if one := by[out.Currency]; one != nil {
		out.Saved, out.Promoted, out.Decided = one.total, one.promoted, one.decided
		for _, bucket := range ascending(one.saved) {
			out.Trend = append(out.Trend, SavedPoint{bucket, one.saved[bucket]})
		}
	}
	return out, nil
}
