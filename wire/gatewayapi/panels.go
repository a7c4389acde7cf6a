package gatewayapi

import (
	"net/http"

	"holdfast/gateway"
)

type scorePoint struct {
	BucketMS   int64              `json:"bucket_ms"`
	Merchant   gateway.MerchantID `json:"merchant_id"`
	MethodType string             `json:"payment_method_type"`
	Method     string             `json:"payment_method"`
	Gateway    gateway.Name       `json:"gateway"`
	Score      float64            `json:"score_value"`
}

type scorePanel struct {
	Merchant  gateway.MerchantID `json:"merchant_id"`
	Range     string             `json:"range"`
	Snapshots []scoreRow         `json:"snapshots"`
	Series    []scorePoint       `json:"series"`
}

// GatewayScores answers GET /analytics/gateway-scores.
func (a *API) GatewayScores() Handler {
	return a.panel(func(r *http.Request, p *past) (any, error) {
		newest, series, err := a.service.GatewayScores(r.Context(), &p.Question)
		out := scorePanel{p.Merchant, p.Range.Name, scoreRows(p.Merchant, newest), make([]scorePoint, 0, len(series))}
		for _, s := range series {
			out.Series = append(out.Series, scorePoint{s.BucketMS, p.Merchant, s.MethodType, s.Method, s.Gateway, s.Score})
		}
		return out, err
	})
}

type approachCount struct {
	Approach string `json:"routing_approach"`
	Count    int64  `json:"count"`
}

type approachPoint struct {
	BucketMS int64  `json:"bucket_ms"`
	Approach string `json:"routing_approach"`
	Count    int64  `json:"count"`
}

type decisionPanel struct {
	Tiles      []kpi           `json:"tiles"`
	Series     []approachPoint `json:"series"`
	Approaches []approachCount `json:"approaches"`
}

// DecisionStats answers GET /analytics/decisions.
func (a *API) DecisionStats() Handler {
	return a.panel(func(r *http.Request, p *past) (any, error) {
		d, err := a.service.DecisionStats(r.Context(), &p.Question)
		if err != nil {
			return nil, err
		}
		most, share := "none", "n/a"
		if len(d.Approaches) > 0 {
			most, share = d.Approaches[0].Name, percent(d.Approaches[0].Count, d.Decided)
		}
		out := decisionPanel{Series: make([]approachPoint, 0, len(d.Series)), Approaches: make([]approachCount, 0, len(d.Approaches)),
			Tiles: []kpi{{"Decisions", count(d.Decided), "payments that were given a gateway"},
				{"Refused", count(d.Refused), percent(d.Refused, d.Decided+d.Refused) + " of all decide requests"},
				{"Most used approach", most, share + " of the decisions"}}}
		for _, s := range d.Series {
			out.Series = append(out.Series, approachPoint{s.BucketMS, s.Name, s.Count})
		}
		for _, c := range d.Approaches {
			out.Approaches = append(out.Approaches, approachCount{c.Name, c.Count})
		}
		return out, nil
	})
}

type sharePoint struct {
	BucketMS int64  `json:"bucket_ms"`
	Gateway  string `json:"gateway"`
	Count    int64  `json:"count"`
}

type trendPoint struct {
	BucketMS int64        `json:"bucket_ms"`
	Gateway  gateway.Name `json:"gateway"`
	Rate     float64      `json:"success_rate"` // percent
	Score    float64      `json:"score_value"`  // the same as a part of 1
	Succeded int64        `json:"success_count"`
	Failed   int64        `json:"failure_count"`
	Total    int64        `json:"total"`
}

type dimension struct {
	Key    string   `json:"key"`
	Label  string   `json:"label"`
	Values []string `json:"values"`
}

type routingPanel struct {
	Merchant gateway.MerchantID `json:"merchant_id"`
	Share    []sharePoint       `json:"gateway_share"`
	Rules    []ruleCount        `json:"top_rules"`
	Trend    []trendPoint       `json:"sr_trend"`
	Filters  struct {
		Dimensions []dimension `json:"dimensions"`
		Missing    []string    `json:"missing_dimensions"`
		Gateways   []string    `json:"gateways"`
	} `json:"available_filters"`
}

// RoutingStats answers GET /analytics/routing-stats.
func (a *API) RoutingStats() Handler {
	return a.panel(func(r *http.Request, p *past) (any, error) {
		s, err := a.service.RoutingStats(r.Context(), &p.Question)
		if err != nil {
			return nil, err
		}
		out := routingPanel{Merchant: p.Merchant, Share: make([]sharePoint, 0, len(s.Share)), Rules: ruleRows(s.TopRules),
			Trend: make([]trendPoint, 0, len(s.Trend))}
		for _, c := range s.Share {
			out.Share = append(out.Share, sharePoint{c.BucketMS, c.Name, c.Count})
		}
		for _, t := range s.Trend {
			total := t.Succeeded + t.Failed
			rate := float64(t.Succeeded) / float64(total) // there is no point without outcomes
			out.Trend = append(out.Trend, trendPoint{t.BucketMS, t.Gateway, 100 * rate, rate, t.Succeeded, t.Failed, total})
		}
		f := &out.Filters
		f.Dimensions, f.Missing, f.Gateways = []dimension{}, []string{}, s.Available.Gateways
		for _, d := range s.Available.Dimensions {
			if len(d.Values) == 0 {
				f.Missing = append(f.Missing, d.Key)
				continue
			}
			f.Dimensions = append(f.Dimensions, dimension{d.Key, d.Label, d.Values})
		}
		return out, nil
	})
}

type savedPoint struct {
	BucketMS int64   `json:"bucket_ms"`
	Saved    float64 `json:"saved_value"`
}

type savingsPanel struct {
	Currency   *string      `json:"currency"`
	Currencies []string     `json:"available_currencies"`
	Trend      []savedPoint `json:"trend"`
	Totals     struct {
		Saved    float64 `json:"saved_value"`
		Promoted int64   `json:"cost_routed_count"`
		Decided  int64   `json:"decision_count"`
	} `json:"totals"`
}

// CostSavings answers GET /analytics/cost-savings.
func (a *API) CostSavings() Handler {
	return a.panel(func(r *http.Request, p *past) (any, error) {
		s, err := a.service.CostSavings(r.Context(), &p.Question)
		if err != nil {
			return nil, err
		}
		out := savingsPanel{Currency: orNull(s.Currency), Currencies: append([]string{}, s.Currencies...), Trend: make([]savedPoint, 0, len(s.Trend))}
		for _, t := range s.Trend {
			out.Trend = append(out.Trend, savedPoint{t.BucketMS, t.Saved})
		}
		out.Totals.Saved, out.Totals.Promoted, out.Totals.Decided = s.Saved, s.Promoted, s.Decided
		return out, nil
	})
}

// orNull is a text as a member that is null without one.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

type routingEvent struct {
	Kind       string       `json:"kind"`
	AtMS       int64        `json:"created_at_ms"`
	BucketMS   int64        `json:"bucket_ms"`
	MethodType string       `json:"payment_method_type"`
	Method     string       `json:"payment_method"`
	Gateway    gateway.Name `json:"gateway"`
	From       gateway.Name `json:"previous_gateway"`
	Score      float64      `json:"score_value"`
	FromScore  float64      `json:"previous_score_value"`
}

type eventPanel struct {
	Events []routingEvent `json:"events"`
	NowMS  int64          `json:"generated_at_ms"`
}

// RoutingEvents answers GET /analytics/routing-events. Nothing calibrates by itself yet, so that there are changes of the
// leader only.
func (a *API) RoutingEvents() Handler {
	return a.panel(func(r *http.Request, p *past) (any, error) {
		changes, err := a.service.RoutingEvents(r.Context(), &p.Question)
		out := eventPanel{Events: make([]routingEvent, 0, len(changes)), NowMS: a.service.NowMS()}
		for _, c := range changes {
			out.Events = append(out.Events, routingEvent{"leader_changed", c.AtMS, c.AtMS - c.AtMS%p.Range.BucketMS, c.MethodType, c.Method,
				c.To, c.From, c.ToScore, c.FromScore})
		}
		return out, err
	})
}

type logPanel struct {
	Total    int64      `json:"total_errors"`
	Errors   []errorRow `json:"errors"`
	Samples  []timeline `json:"samples"`
	Page     int        `json:"page"`
	PageSize int        `json:"page_size"`
	Partial  bool       `json:"truncated,omitzero"`
}

// LogSummaries answers GET /analytics/log-summaries.
func (a *API) LogSummaries() Handler {
	return a.panel(func(r *http.Request, p *past) (any, error) {
		s, err := a.service.LogSummaries(r.Context(), &p.Question, p.page)
		if err != nil {
			return nil, err
		}
		return logPanel{s.Total, errorRows(s.Errors), timelines(s.Samples), p.page.Number, p.page.Size, !s.Complete}, nil
	})
}
