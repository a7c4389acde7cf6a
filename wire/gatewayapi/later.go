package gatewayapi

import (
	"net/http"

	"holdfast/fault"
	"holdfast/ident"
	"holdfast/wire/reply"
)

// What follows is asked for by dashboards when they start, and is not done here: reading the reports and invoices of payment
// service providers, and experiments. The answers are true, and empty.

// NoEntries answers a list about one merchant, none of whose entries exist here.
func (a *API) NoEntries(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	if _, err := a.merchantInPath(c); err != nil {
		a.refuse(w, r, err)
		return
	}
	reply.JSON(w, http.StatusOK, []byte(`[]`))
}

// coverageJSON says for how many payments a reported cost is known.
type coverageJSON struct {
	Merchant   string   `json:"merchant_id"`
	Total      int      `json:"total_transactions"`
	Covered    int      `json:"covered_transactions"`
	Percent    float64  `json:"coverage_pct"`
	Connectors []string `json:"connectors"`
}

// CostCoverage answers GET /merchant-account/{merchant_id}/cost-coverage: no reported cost is known.
func (a *API) CostCoverage(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := a.merchantInPath(c)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, coverageJSON{Merchant: string(id), Connectors: []string{}})
}

// notIngested is what became of a report that was sent: nothing.
type notIngested struct {
	Message  string `json:"message"`
	Accepted bool   `json:"accepted"`
	Rows     int    `json:"rows_ingested"`
}

// unread is the reason.
const unread = "reports of connectors are not read here; costs are set with PUT seed-costs"

// IngestNothing answers POST /merchant-account/{merchant_id}/connectors/...: it says that nothing was taken.
func (a *API) IngestNothing(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	if _, err := a.merchantInPath(c); err != nil {
		a.refuse(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, notIngested{Message: unread})
}

// SettlementWebhook answers POST /webhooks/settlement/{connector}: it says that nothing was taken, with a status that keeps
// the sender from trying again for ever.
func (a *API) SettlementWebhook(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	a.send(w, r, http.StatusOK, notIngested{Message: unread})
}

// RefuseAnalytics is the refusal of the routes under /analytics.
func (a *API) RefuseAnalytics(w http.ResponseWriter, r *http.Request, err error) {
	a.refuseAnalytics(w, r, err)
}

// armJSON is one arm of an experiment.
type armJSON struct {
	Transactions   int     `json:"transactions"`
	Successes      int     `json:"successes"`
	Failures       int     `json:"failures"`
	AuthRate       float64 `json:"auth_rate"`
	FirstAttempt   float64 `json:"first_attempt_auth_rate"`
	SavedCost      float64 `json:"saved_cost"`
	AverageLatency float64 `json:"average_latency"`
}

type experimentJSON struct {
	Experiment   string   `json:"experiment_id"`
	Verdict      string   `json:"verdict"`
	Transactions int      `json:"total_transactions"`
	Control      armJSON  `json:"control"`
	Variant      armJSON  `json:"variant"`
	PValue       *float64 `json:"p_value"`
	Low          *float64 `json:"confidence_low"`
	High         *float64 `json:"confidence_high"`
}

// ExperimentResults answers GET /analytics/experiment/{experiment}/results: no payment takes part in an experiment.
func (a *API) ExperimentResults(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	a.send(w, r, http.StatusOK, experimentJSON{Experiment: c.Params[0], Verdict: "collecting_data"})
}

// ExperimentTransactions answers GET /analytics/experiment/{experiment}/transactions.
func (a *API) ExperimentTransactions(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	a.send(w, r, http.StatusOK, struct {
		Experiment   string   `json:"experiment_id"`
		Transactions []string `json:"transactions"`
		Total        int      `json:"total"`
	}{c.Params[0], []string{}, 0})
}

// Moved answers 404 and says which route does now what the older one did.
func (a *API) Moved(to string) Handler {
	refuse := reply.Gateway(a.log, reply.CodeNotFound)
	return func(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
		refuse(w, r, fault.New("gatewayapi.Moved", fault.NotFound, "this older route is not served here: use %s", to))
	}
}
