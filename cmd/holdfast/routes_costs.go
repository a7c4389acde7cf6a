package main

import (
	"net/http"
	"strings"

	"holdfast/admission"
	"holdfast/docs/openapi"
	"holdfast/ident"
	"holdfast/server"
	"holdfast/wire/gatewayapi"
	"holdfast/wire/reply"
)

// describeGateway answers GET /openapi/gateway.json.
func describeGateway(w http.ResponseWriter, _ *http.Request, _ *ident.Call) {
	reply.JSON(w, http.StatusOK, openapi.Gateway())
}

// importBody is how many bytes a table for all merchants may have: that of the BINs has tens of thousands of rows.
const importBody = 16 << 20

// costRoutes are the cost model, the error table, the tables of debit routing, what is answered with an honest empty result,
// and the description of them all.
func costRoutes(api *gatewayapi.API) []server.Route {
	const merchant = "/merchant-account/{merchant_id}"
	routes := []server.Route{
		{Method: "GET", Path: merchant + "/seed-costs", Label: "costs.seed.read", Handler: api.SeedCosts},
		{Method: "PUT", Path: merchant + "/seed-costs", Label: "costs.seed.put", Handler: api.PutSeedCosts},
		{Method: "DELETE", Path: merchant + "/seed-costs", Label: "costs.seed.delete", Handler: api.DeleteSeedCosts},
		{Method: "POST", Path: merchant + "/seed-costs/simulate", Label: "costs.seed.simulate", Handler: api.SimulateCosts},

		{Method: "GET", Path: "/gsm/options", Label: "gsm.read", Handler: api.ErrorRules},
		{Method: "PUT", Path: "/gsm/options", MaxBody: importBody,
			Label: "gsm.import", Handler: api.Operates(api.ImportErrorRules)},
		{Method: "DELETE", Path: "/gsm/options", Label: "gsm.reset", Handler: api.Operates(api.ResetErrorRules)},
		{Method: "GET", Path: "/debit-routing/tables", Label: "debit.tables.read", Handler: api.DebitTables},
		{Method: "PUT", Path: "/debit-routing/tables", MaxBody: importBody,
			Label: "debit.tables.import", Handler: api.Operates(api.ImportDebitTables)},
		{Method: "DELETE", Path: "/debit-routing/tables",
			Label: "debit.tables.reset", Handler: api.Operates(api.ResetDebitTables)},

		{Method: "GET", Path: merchant + "/connectors", Label: "costs.reports.read", Handler: api.NoEntries},
		{Method: "GET", Path: merchant + "/connectors/{rest...}", Label: "costs.reports.read", Handler: api.NoEntries},
		{Method: "POST", Path: merchant + "/connectors/{rest...}", Label: "costs.reports.send", Handler: api.IngestNothing},
		{Method: "GET", Path: merchant + "/cost-clusters", Label: "costs.reports.read", Handler: api.NoEntries},
		{Method: "GET", Path: merchant + "/cost-coverage", Label: "costs.reports.read", Handler: api.CostCoverage},
		{Method: "GET", Path: merchant + "/connector-fees", Label: "costs.reports.read", Handler: api.NoEntries},
		{Method: "POST", Path: "/webhooks/settlement/{connector}", Access: server.Public,
			Label: "costs.webhook", Handler: api.SettlementWebhook},
		{Method: "GET", Path: "/analytics/experiment/{experiment_id}/results",
			Label: "experiments.results", Handler: api.Tenanted(api.ExperimentResults)},
		{Method: "GET", Path: "/analytics/experiment/{experiment_id}/transactions",
			Label: "experiments.transactions", Handler: api.Tenanted(api.ExperimentTransactions)},
		{Method: "GET", Path: "/openapi/gateway.json", Access: server.Public, Infra: true, Label: "openapi", Handler: describeGateway},
		{Method: "POST", Path: "/decision_gateway", Access: server.Public, Label: "moved", Handler: api.Moved("/decide-gateway")},
		{Method: "POST", Path: "/update-score", Access: server.Public,
			Label: "moved", Handler: api.Moved("/update-gateway-score")},
	}
	for i := range routes {
		r := &routes[i]
		r.Class = admission.Normal
		if strings.HasPrefix(r.Path, "/analytics/") {
			r.Identify, r.Refuse = api.IdentifyMerchant, api.RefuseAnalytics
		}
		if r.Access != server.Public {
			r.Access = server.Credential
		}
	}
	return routes
}
