package gatewayapi

import (
	"encoding/json/jsontext"
	"net/http"
	"strings"

	"holdfast/gateway"
)

// audited is one payment of the audit.
type audited struct {
	LookupKey     string             `json:"lookup_key"`
	PaymentID     *string            `json:"payment_id"`
	RequestID     *string            `json:"request_id"`
	Merchant      gateway.MerchantID `json:"merchant_id"`
	FirstMS       int64              `json:"first_seen_ms"`
	LastMS        int64              `json:"last_seen_ms"`
	Events        int                `json:"event_count"`
	LatestStatus  string             `json:"latest_status"`
	LatestGateway *string            `json:"latest_gateway"`
	LatestStage   string             `json:"latest_stage"`
	Gateways      []gateway.Name     `json:"gateways"`
	Routes        []string           `json:"routes"`
}

// timeline is one event. Members that say nothing about it are null.
type timeline struct {
	ID              int64              `json:"id"`
	Flow            gateway.Flow       `json:"flow_type"`
	Stage           string             `json:"event_stage"`
	Route           string             `json:"route"`
	Merchant        gateway.MerchantID `json:"merchant_id"`
	PaymentID       *string            `json:"payment_id"`
	RequestID       *string            `json:"request_id"`
	GlobalRequestID *string            `json:"global_request_id"` // no other service numbers requests here
	TraceID         *string            `json:"trace_id"`          // likewise
	MethodType      *string            `json:"payment_method_type"`
	Method          *string            `json:"payment_method"`
	Gateway         *string            `json:"gateway"`
	Approach        *string            `json:"routing_approach"`
	Rule            *string            `json:"rule_name"`
	Status          string             `json:"status"`
	PaymentStatus   *string            `json:"payment_status"` // as reported, beyond what the reference has
	ErrorCode       *string            `json:"error_code"`
	ErrorMessage    *string            `json:"error_message"`
	Score           *float64           `json:"score_value"`
	Sigma           *float64           `json:"sigma_factor"`
	Latency         *float64           `json:"average_latency"`
	TP99            *float64           `json:"tp99_latency"`
	Transactions    *int64             `json:"transaction_count"`
	Details         *string            `json:"details"`
	DetailsJSON     jsontext.Value     `json:"details_json"`
	CreatedMS       int64              `json:"created_at_ms"`
}

// auditFilters is what the answer repeats of the question.
type auditFilters struct {
	Merchant        gateway.MerchantID `json:"merchant_id"`
	Range           string             `json:"range"`
	StartMS         int64              `json:"start_ms"`
	EndMS           int64              `json:"end_ms"`
	PaymentID       *string            `json:"payment_id"`
	RequestID       *string            `json:"request_id"`
	Gateway         *string            `json:"gateway"`
	Route           *string            `json:"route"`
	Status          *string            `json:"status"`
	Flow            *string            `json:"flow_type"`
	Approach        *string            `json:"routing_approach"`
	ExcludeApproach *string            `json:"exclude_routing_approach"`
	ErrorCode       *string            `json:"error_code"`
	MethodType      *string            `json:"payment_method_type"`
	Method          *string            `json:"payment_method"`
	Network         *string            `json:"card_network"`
	BIN             *string            `json:"card_is_in"`
	Currency        *string            `json:"currency"`
	Country         *string            `json:"country"`
	AuthType        *string            `json:"auth_type"`
}

type auditPanel struct {
	auditFilters
	Page      int        `json:"page"`
	PageSize  int        `json:"page_size"`
	Total     int        `json:"total_results"`
	Succeeded int        `json:"total_success"`
	Failed    int        `json:"total_failure"`
	Results   []audited  `json:"results"`
	Timeline  []timeline `json:"timeline"`
	Partial   bool       `json:"truncated,omitzero"` // there was more in the range than one look goes through
}

// PaymentAudit answers GET /analytics/payment-audit.
func (a *API) PaymentAudit() Handler { return a.audit(false) }

// PreviewTrace answers GET /analytics/preview-trace: the same, of rule evaluations only.
func (a *API) PreviewTrace() Handler { return a.audit(true) }

type onlyPreviews = bool

func (a *API) audit(previews onlyPreviews) Handler {
	return a.panel(func(r *http.Request, p *past) (any, error) {
		q := gateway.AuditQuery{Question: p.Question, PaymentID: p.text("payment_id"), RequestID: p.text("request_id"),
			Route: strings.TrimPrefix(p.text("route"), "/"), Status: strings.ToLower(p.text("status")), Flow: gateway.Flow(p.text("flow_type")),
			Approach: gateway.Approach(p.text("routing_approach")), ExcludeApproach: gateway.Approach(p.text("exclude_routing_approach")),
			ErrorCode: p.text("error_code"), Previews: previews, Page: p.page}
		if q.Status != "" && q.Status != statusSuccess && q.Status != statusFailure {
			return nil, invalid("status must be success or failure")
		}
		found, err := a.service.Audit(r.Context(), &q)
		if err != nil {
			return nil, err
		}
		out := auditPanel{auditFilters: p.echo(), Page: p.page.Number, PageSize: p.page.Size, Total: found.Total, Succeeded: found.Succeeded,
			Failed: found.Failed, Results: make([]audited, 0, len(found.Results)), Timeline: timelines(found.Timeline), Partial: !found.Complete}
		for i := range found.Results {
			out.Results = append(out.Results, auditRow(p.Merchant, &found.Results[i]))
		}
		return out, nil
	})
}

// echo repeats the filters as they were given.
func (p *past) echo() auditFilters {
	given := func(name string) *string { return orNull(strings.ToValidUTF8(p.text(name), "\uFFFD")) }
	return auditFilters{p.Merchant, p.Range.Name, p.Range.Span.Since, p.Range.Span.Until - 1, given("payment_id"), given("request_id"), given("gateway"),
		given("route"), given("status"), given("flow_type"), given("routing_approach"), given("exclude_routing_approach"), given("error_code"),
		given("payment_method_type"), given("payment_method"), given("card_network"), given("card_is_in"), given("currency"),
		given("country"), given("auth_type")}
}

const (
	statusSuccess = "success"
	statusFailure = "failure"
)

func statusOf(failed bool) string {
	if failed {
		return statusFailure
	}
	return statusSuccess
}

func auditRow(m gateway.MerchantID, r *gateway.Audited) audited {
	row := audited{LookupKey: r.LookupKey, PaymentID: orNull(r.PaymentID), RequestID: orNull(r.RequestID), Merchant: m, FirstMS: r.FirstMS,
		LastMS: r.LastMS, Events: r.Events, LatestStatus: statusOf(r.LatestFailed), LatestGateway: orNull(string(r.LatestGateway)),
		LatestStage: stageLabel(r.LatestStage), Gateways: append([]gateway.Name{}, r.Gateways...), Routes: make([]string, 0, len(r.Routes))}
	for _, route := range r.Routes {
		row.Routes = append(row.Routes, "/"+route)
	}
	return row
}

// stageLabel is what the audit calls a stage.
func stageLabel(s gateway.Stage) string {
	switch s {
	case gateway.StageDecided:
		return "Decide Gateway"
	case gateway.StageRule:
		return "Rule Evaluate"
	case gateway.StageUpdated:
		return "Update Gateway"
	case gateway.StagePreview:
		return "Preview Result"
	}
	return string(s)
}

func timelines(events []gateway.Recorded) []timeline {
	rows := make([]timeline, 0, len(events))
	for i := range events {
		rows = append(rows, timelineOf(&events[i]))
	}
	return rows
}

func timelineOf(e *gateway.Recorded) timeline {
	t := timeline{ID: e.ID, Flow: e.Flow, Stage: stageLabel(e.Stage), Route: "/" + e.Route, Merchant: e.Merchant, PaymentID: orNull(e.PaymentID),
		RequestID: orNull(e.RequestID), MethodType: orNull(e.MethodType), Method: orNull(e.Method), Gateway: orNull(string(e.Gateway)),
		Approach: orNull(string(e.Approach)), Rule: orNull(e.Rule), Status: statusOf(e.Failed), ErrorCode: orNull(e.ErrorCode),
		ErrorMessage: orNull(e.ErrorMessage), CreatedMS: e.TimeMS}
	if e.Status != "" && e.Status != t.Status {
		t.PaymentStatus = &e.Status
	}
	if e.Scored {
		t.Score, t.Sigma, t.Latency, t.TP99, t.Transactions = &e.Score, &e.Sigma, &e.Latency, &e.TP99, &e.Transactions
	}
	if text := jsontext.Value(e.Details); len(text) > 0 {
		t.Details = orNull(strings.ToValidUTF8(string(text), "\uFFFD"))
		if text.IsValid() {
			t.DetailsJSON = text
		}
	}
	return t
}
