package gatewayapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/ident"
)

// past is a question about what happened: whose, when, and what of it, and the query for what only one route knows.
type past struct {
	gateway.Question
	query url.Values
	page  gateway.Page
}

// The page sizes of lists.
const (
	pageSize     = 12
	pageSizeMost = 50
)

// text is a parameter as events keep such texts; empty when absent.
func (p *past) text(name string) string { return p.query.Get(name) }

// number is a whole number among the parameters.
func (p *past) number(name string) (n int64, given bool, err error) {
	text := p.query.Get(name)
	if text == "" {
		return 0, false, nil
	}
	if n, err = strconv.ParseInt(text, 10, 64); err != nil {
		return 0, false, invalid("%s must be a whole number", name)
	}
	return n, true, nil
}

// bounded is a whole number among the parameters, standard when absent, moved into low to high.
func (p *past) bounded(name string, standard, low, high int64) (int, error) {
	n, given, err := p.number(name)
	if !given {
		n = standard
	}
	return int(min(max(n, low), high)), err
}

// past answers what every question about the past has in common, or why it cannot be asked.
func (a *API) past(r *http.Request, c *ident.Call) (p past, err error) {
	if err = gateway.Reads(c.Principal); err != nil {
		return p, err
	}
	if p.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return p, invalid("the query is not well formed")
	}
	key, _ := firstOf(r.Header, headerKey)
	if p.Merchant, err = a.service.Owner(r.Context(), c.Principal, key, gateway.MerchantID(p.text("merchant_id"))); err != nil {
		return p, err
	}
	var m gateway.Moments
	if m.StartMS, m.HasStart, err = p.number("start_ms"); err != nil {
		return p, err
	}
	if m.EndMS, m.HasEnd, err = p.number("end_ms"); err != nil {
		return p, err
	}
	if p.Range, err = a.service.RangeOf(p.text("range"), m); err != nil {
		return p, err
	}
	if p.page.Number, err = p.bounded("page", 1, 1, 1<<30); err != nil {
		return p, err
	}
	if p.page.Size, err = p.bounded("page_size", pageSize, 1, pageSizeMost); err != nil {
		return p, err
	}
	p.Filter = gateway.Filter{MethodType: strings.ToUpper(p.text("payment_method_type")), Method: p.text("payment_method"),
		Network: p.text("card_network"), BIN: p.text("card_is_in"), Currency: p.text("currency"), Country: p.text("country"),
		AuthType: p.text("auth_type")}
	for name := range strings.SplitSeq(p.text("gateway"), ",") {
		if name = strings.TrimSpace(name); name != "" && len(p.Filter.Gateways) < gateway.MaxEligible {
			p.Filter.Gateways = append(p.Filter.Gateways, gateway.Name(name))
		}
	}
	return p, nil
}

// panel makes a handler out of what answers one question.
func (a *API) panel(answer func(r *http.Request, p *past) (any, error)) Handler {
	return a.Tenanted(func(w http.ResponseWriter, r *http.Request, c *ident.Call) {
		p, err := a.past(r, c)
		var v any
		if err == nil {
			v, err = answer(r, &p)
		}
		if fault.KindOf(err) == fault.NotFound {
			// The credential is good and its merchant is not there any more.
			err = fault.New("gatewayapi.panel", fault.Unauthenticated, "the merchant of this credential does not exist")
		}
		if err != nil {
			a.refuseAnalytics(w, r, err)
			return
		}
		a.send(w, r, http.StatusOK, v)
	})
}

type kpi struct {
	Label    string `json:"label"`
	Value    string `json:"value"`
	Subtitle string `json:"subtitle"`
}

type routeCount struct {
	Route string `json:"route"`
	Count int64  `json:"count"`
}

type ruleCount struct {
	Rule  string `json:"rule_name"`
	Count int64  `json:"count"`
}

type scoreRow struct {
	Merchant     gateway.MerchantID `json:"merchant_id"`
	MethodType   string             `json:"payment_method_type"`
	Method       string             `json:"payment_method"`
	Gateway      gateway.Name       `json:"gateway"`
	Score        float64            `json:"score_value"`
	Sigma        float64            `json:"sigma_factor"`
	Latency      float64            `json:"average_latency"`
	TP99         float64            `json:"tp99_latency"`
	Transactions int64              `json:"transaction_count"`
	UpdatedMS    int64              `json:"last_updated_ms"`
}

type errorRow struct {
	Code    string       `json:"error_code"`
	Message string       `json:"error_message"`
	Flow    gateway.Flow `json:"flow_type"`
	Route   string       `json:"route"`
	Count   int64        `json:"count"`
	LastMS  int64        `json:"last_seen_ms"`
}

type retryRow struct {
	Trigger   *string `json:"error_code,omitempty"`
	Gateway   *string `json:"gateway,omitempty"`
	Retried   int64   `json:"retried_count"`
	Recovered int64   `json:"recovered_count"`
}

type overview struct {
	Merchant  gateway.MerchantID `json:"merchant_id"`
	KPIs      []kpi              `json:"kpis"`
	Hits      []routeCount       `json:"route_hits"`
	TopScores []scoreRow         `json:"top_scores"`
	TopErrors []errorRow         `json:"top_errors"`
	TopRules  []ruleCount        `json:"top_rules"`
	Retries   retryStats         `json:"smart_retry_stats"`
}

type retryStats struct {
	Retried    int64      `json:"retried_count"`
	Recovered  int64      `json:"recovered_count"`
	ByTrigger  []retryRow `json:"by_trigger"`
	ByFallback []retryRow `json:"by_fallback"`
}

// Overview answers GET /analytics/overview.
func (a *API) Overview() Handler {
	return a.panel(func(r *http.Request, p *past) (any, error) {
		o, err := a.service.Overview(r.Context(), &p.Question)
		if err != nil {
			return nil, err
		}
		out := overview{Merchant: p.Merchant, TopScores: scoreRows(p.Merchant, o.Scores), TopErrors: errorRows(o.TopErrors), TopRules: ruleRows(o.TopRules),
			Hits: []routeCount{{"/decide_gateway", o.Decides}, {"/update_gateway", o.Updates}, {"/rule_evaluate", o.Evaluates}},
			KPIs: []kpi{{"Decisions", count(o.Decided), "payments that were given a gateway"},
				{"Success rate", percent(o.Succeeded, o.Succeeded+o.Failed), "of " + count(o.Succeeded+o.Failed) + " outcomes reported"},
				{"Feedback", count(o.Updates), "score updates received"},
				{"Errors", count(o.Errors), "requests refused"}},
			Retries: retryStats{Retried: o.Retries.Retried, Recovered: o.Retries.Recovered, ByTrigger: []retryRow{}, ByFallback: []retryRow{}}}
		for _, t := range o.Retries.ByTrigger {
			out.Retries.ByTrigger = append(out.Retries.ByTrigger, retryRow{Trigger: &t.Name, Retried: t.Retried, Recovered: t.Recovered})
		}
		for _, f := range o.Retries.ByFallback {
			out.Retries.ByFallback = append(out.Retries.ByFallback, retryRow{Gateway: &f.Name, Retried: f.Retried, Recovered: f.Recovered})
		}
		return out, nil
	})
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

// percent is a share as a tile shows it; of nothing there is none.
func percent(part, whole int64) string {
	if whole == 0 {
		return "n/a"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 2, 64) + "%"
}

func scoreRows(m gateway.MerchantID, scores []gateway.ScoreSnapshot) []scoreRow {
	rows := make([]scoreRow, 0, len(scores))
	for _, s := range scores {
		rows = append(rows, scoreRow{m, s.MethodType, s.Method, s.Gateway, s.Score, s.Sigma, s.Latency, s.TP99, s.Transactions, s.UpdatedMS})
	}
	return rows
}

func errorRows(errors []gateway.ErrorCount) []errorRow {
	rows := make([]errorRow, 0, len(errors))
	for _, e := range errors {
		rows = append(rows, errorRow{e.Code, e.Message, e.Flow, routeOf(e.Flow), e.Count, e.LastMS})
	}
	return rows
}

// routeOf is the route that a flow belongs to, as the analytics call it.
func routeOf(f gateway.Flow) string {
	switch {
	case strings.HasPrefix(string(f), "decide_"):
		return "/decide_gateway"
	case strings.HasPrefix(string(f), "update_"):
		return "/update_gateway"
	case strings.HasPrefix(string(f), "routing_"):
		return "/rule_evaluate"
	}
	return ""
}

func ruleRows(rules []gateway.Count) []ruleCount {
	rows := make([]ruleCount, 0, len(rules))
	for _, r := range rules {
		rows = append(rows, ruleCount{r.Name, r.Count})
	}
	return rows
}
