package main

import (
	"cmp"
	"slices"
	"strings"

	"holdfast/admission"
	"holdfast/server"
	"holdfast/wire/gatewayapi"
)

// gatewayBody is how many bytes a body of the gateway API may have where its row says nothing; largeGatewayBody is what
// decide, evaluate, hybrid and rule routes take.
const (
	gatewayBody      = 1 << 20
	largeGatewayBody = 2 << 20
)

// gatewayFront is what all rows of the gateway API have in common.
type gatewayFront struct {
	api       *gatewayapi.API
	gate      *admission.Gate
	endpoints *server.Endpoints
	refuse    server.Refusal // the general shape, for rows without their own
	decline   server.Refusal // the shape of decide and feedback
}

// routes is every URL of the gateway service, in its own dialect. A row that is not Public is for anyone with a credential of
// this dialect that may read, or write, as the row does; its handler asks whether it covers the merchant.
func (f *gatewayFront) routes() []server.Route {
	var routes []server.Route
	for _, part := range [][]server.Route{
		scoreRoutes(f.api, f.decline), accountRoutes(f.api), authRoutes(f.api), routingRoutes(f.api), analyticsRoutes(f.api), costRoutes(f.api),
	} {
		routes = append(routes, part...)
	}
	return f.finish(routes)
}

// health is what this dialect says of the process on a listener of its own. The first row has another answer elsewhere.
func (f *gatewayFront) health() []server.Route {
	routes := []server.Route{
		{Method: "GET", Path: "/health", Handler: f.api.Health},
		{Method: "GET", Path: "/health/ready", Handler: f.api.Ready},
		{Method: "GET", Path: "/health/diagnostics", Handler: f.api.Tenanted(f.api.Diagnostics)},
	}
	for i := range routes {
		routes[i].Class, routes[i].Access, routes[i].Infra = admission.Critical, server.Public, true
	}
	return f.finish(routes)
}

// urgent are the endpoints that a checkout waits for; when there is too much to do, they come before all others.
var urgent = []string{"decide_gateway", "update_gateway_score", "routing_evaluate", "routing_hybrid"}

// finish completes rows by what is the same for all.
func (f *gatewayFront) finish(routes []server.Route) []server.Route {
	for i := range routes {
		route := &routes[i]
		endpoint := endpointOf(route.Path)
		route.Label = cmp.Or(route.Label, "gateway."+endpoint)
		route.MaxBody = cmp.Or(route.MaxBody, gatewayBody)
		if route.Refuse == nil {
			route.Refuse = f.refuse
		}
		if route.Access != server.Public {
			route.Access = server.Credential
			route.Identify = server.Identify(f.api.Guard(route.Method, route.Path, gatewayapi.Identify(route.Identify)))
		}
		if route.Class == admission.Critical && !route.Infra && !slices.Contains(urgent, endpoint) {
			route.Class = admission.Normal
		}
		route.UUIDs, route.Gate, route.Tally = true, f.gate, f.endpoints.Tally(endpoint)
	}
	return routes
}

// endpointOf names a path as this dialect's metrics do: its fixed segments, joined by underscores.
func endpointOf(path string) string {
	var fixed []string
	for segment := range strings.SplitSeq(path, "/") {
		if segment != "" && segment[0] != '{' {
			fixed = append(fixed, strings.ReplaceAll(segment, "-", "_"))
		}
	}
	return strings.Join(fixed, "_")
}

// scoreRoutes are decide, feedback and the reset of scores.
func scoreRoutes(api *gatewayapi.API, decline server.Refusal) []server.Route {
	return []server.Route{
		{Method: "POST", Path: "/decide-gateway", Label: "decide_gateway", Class: admission.Critical, Access: server.Credential,
			MaxBody: largeGatewayBody, Refuse: decline, Handler: api.Decide},
		{Method: "POST", Path: "/update-gateway-score", Label: "update_gateway_score", Class: admission.Critical, Access: server.Credential,
			Refuse: decline, Handler: api.Feedback},
	}
}

// accountRoutes are merchants, API keys, features, rule configs, the dimensions of scores, and outages.
func accountRoutes(api *gatewayapi.API) []server.Route {
	const merchant = "/merchant-account/{merchant_id}"
	routes := []server.Route{
		// The admin secret opens it, and nothing else.
		{Method: "POST", Path: "/merchant-account/create", Access: server.Public, Handler: api.CreateMerchant},
		{Method: "GET", Path: merchant, Handler: api.Account},
		{Method: "DELETE", Path: merchant, Handler: api.DeleteMerchant},
		{Method: "GET", Path: merchant + "/debit-routing", Handler: api.DebitRouting},
		{Method: "POST", Path: merchant + "/debit-routing", Handler: api.SetDebitRouting},
		{Method: "GET", Path: merchant + "/features", Handler: api.Features},
		{Method: "POST", Path: merchant + "/features/{feature}", Handler: api.SetFeature},
		{Method: "POST", Path: "/api-key/create", Handler: api.CreateKey},
		{Method: "GET", Path: "/api-key/list/{merchant_id}", Handler: api.Keys},
		{Method: "DELETE", Path: "/api-key/{key_id}", Handler: api.RevokeKey},
		{Method: "POST", Path: "/rule/create", MaxBody: largeGatewayBody, Handler: api.CreateConfig},
		{Method: "POST", Path: "/rule/get", MaxBody: largeGatewayBody, Handler: api.Config},
		{Method: "POST", Path: "/rule/update", MaxBody: largeGatewayBody, Handler: api.UpdateConfig},
		{Method: "POST", Path: "/rule/delete", MaxBody: largeGatewayBody, Handler: api.DeleteConfig},
		{Method: "POST", Path: "/config-sr-dimension", Handler: api.SetDimensions},
		{Method: "GET", Path: "/config-sr-dimension/{merchant_id}", Handler: api.Dimensions},
		{Method: "POST", Path: "/gateway-score/reset", Handler: api.Tenanted(api.ResetScores)},
		{Method: "POST", Path: "/gateway-outage", Handler: api.CreateOutage},
		{Method: "GET", Path: "/gateway-outage", Handler: api.Outages},
		{Method: "DELETE", Path: "/gateway-outage/{outage_id}", Handler: api.EndOutage},
		{Method: "GET", Path: "/admin/service-config/{config}", Handler: api.Operates(api.ServiceConfig)},
		{Method: "PUT", Path: "/admin/service-config/{config}", Handler: api.Operates(api.PutServiceConfig)},
		{Method: "DELETE", Path: "/admin/service-config/{config}", Handler: api.Operates(api.DeleteServiceConfig)},
	}
	for i := range routes {
		routes[i].Class = admission.Normal
	}
	return routes
}

// authRoutes are users, sessions and members. The server asks nobody: each looks for the credential it needs.
func authRoutes(api *gatewayapi.API) []server.Route {
	routes := []server.Route{
		{Method: "POST", Path: "/auth/signup", Label: "auth.signup", Handler: api.Signup},
		{Method: "POST", Path: "/auth/login", Label: "auth.login", Handler: api.Login},
		{Method: "POST", Path: "/auth/logout", Label: "auth.logout", Handler: api.Logout},
		{Method: "GET", Path: "/auth/me", Label: "auth.me", Handler: api.Me},
		{Method: "GET", Path: "/auth/merchants", Label: "auth.merchants", Handler: api.Merchants},
		{Method: "POST", Path: "/auth/switch-merchant", Label: "auth.switch_merchant", Handler: api.SwitchMerchant},
		{Method: "POST", Path: "/auth/change-password", Label: "auth.change_password", Handler: api.ChangePassword},
		{Method: "POST", Path: "/auth/forgot-password", Label: "auth.forgot_password", Handler: api.ForgotPassword},
		{Method: "POST", Path: "/auth/reset-password", Label: "auth.reset_password", Handler: api.ResetPassword},
		{Method: "POST", Path: "/auth/verify-email", Label: "auth.verify_email", Handler: api.VerifyEmail},
		{Method: "POST", Path: "/auth/admin/user-token", Label: "auth.admin.user_token", Handler: api.IssueTicket},
		{Method: "POST", Path: "/auth/admin/merchant-token", Label: "auth.admin.merchant_token", Handler: api.MerchantCode},
		{Method: "POST", Path: "/auth/admin/merchant-token/exchange", Label: "auth.admin.exchange", Handler: api.ExchangeCode},
		{Method: "POST", Path: "/auth/super-admin/enter-merchant", Label: "auth.super_admin.enter", Handler: api.EnterMerchant},
		{Method: "POST", Path: "/auth/super-admin/exit", Label: "auth.super_admin.exit", Handler: api.ExitMerchant},
		{Method: "POST", Path: "/auth/super-admin/lookup", Label: "auth.super_admin.lookup", Handler: api.LookupMerchants},
		{Method: "POST", Path: "/onboarding/merchant", Label: "onboarding.merchant", Handler: api.Onboard},
		{Method: "GET", Path: "/merchant/members", Label: "members.list", Handler: api.Members},
		{Method: "POST", Path: "/merchant/members/invite", Label: "members.invite", Handler: api.Invite},
	}
	for i := range routes {
		routes[i].Class, routes[i].Access = admission.Normal, server.Public
	}
	return routes
}

// routingRoutes are the rule language and its evaluation. The lists are read by POST; GET reads them as well.
func routingRoutes(api *gatewayapi.API) []server.Route {
	routes := []server.Route{
		{Method: "POST", Path: "/routing/create", Label: "routing_create", Handler: api.Writes(api.CreateAlgorithm)},
		{Method: "POST", Path: "/routing/update", Label: "routing_update", Handler: api.Writes(api.UpdateAlgorithm)},
		{Method: "POST", Path: "/routing/activate", Label: "routing_activate", Handler: api.Writes(api.ActivateAlgorithm)},
		{Method: "POST", Path: "/routing/deactivate", Label: "routing_deactivate", Handler: api.Writes(api.DeactivateAlgorithm)},
		{Method: "POST", Path: "/routing/delete", Label: "routing_delete", Handler: api.Writes(api.DeleteAlgorithm)},
		{Method: "POST", Path: "/routing/list/{created_by}", Label: "routing_list", Handler: api.Reads(api.ListAlgorithms)},
		{Method: "GET", Path: "/routing/list/{created_by}", Label: "routing_list", Handler: api.Reads(api.ListAlgorithms)},
		{Method: "POST", Path: "/routing/list/active/{created_by}", Label: "routing_list_active", Handler: api.Reads(api.ListActive)},
		{Method: "GET", Path: "/routing/list/active/{created_by}", Label: "routing_list_active", Handler: api.Reads(api.ListActive)},
		{Method: "GET", Path: "/config/routing-keys", Label: "config_routing_keys", Handler: api.Reads(api.RoutingKeys)},
		{Method: "POST", Path: "/routing/hybrid", Label: "routing_hybrid", Class: admission.Critical, Handler: api.Writes(api.Hybrid)},
		{Method: "POST", Path: "/routing/evaluate", Label: "routing_evaluate", Class: admission.Critical, Handler: api.Reads(api.Evaluate)},
	}
	for i := range routes {
		if routes[i].Class != admission.Critical {
			routes[i].Class = admission.Normal
		}
		routes[i].Access, routes[i].MaxBody = server.Credential, largeGatewayBody
	}
	return routes
}

// analyticsRoutes are the panels and the audit trail.
func analyticsRoutes(api *gatewayapi.API) []server.Route {
	routes := []server.Route{
		{Path: "/analytics/overview", Label: "analytics.overview", Handler: api.Overview()},
		{Path: "/analytics/gateway-scores", Label: "analytics.gateway_scores", Handler: api.GatewayScores()},
		{Path: "/analytics/decisions", Label: "analytics.decisions", Handler: api.DecisionStats()},
		{Path: "/analytics/routing-stats", Label: "analytics.routing_stats", Handler: api.RoutingStats()},
		{Path: "/analytics/cost-savings", Label: "analytics.cost_savings", Handler: api.CostSavings()},
		{Path: "/analytics/routing-events", Label: "analytics.routing_events", Handler: api.RoutingEvents()},
		{Path: "/analytics/log-summaries", Label: "analytics.log_summaries", Handler: api.LogSummaries()},
		{Path: "/analytics/payment-audit", Label: "analytics.payment_audit", Handler: api.PaymentAudit()},
		{Path: "/analytics/preview-trace", Label: "analytics.preview_trace", Handler: api.PreviewTrace()},
	}
	for i := range routes {
		route := &routes[i]
		// The admin secret stands for no merchant, so that it opens nothing here.
		route.Method, route.Class, route.Identify = "GET", admission.Normal, api.IdentifyMerchant
		route.Access, route.Refuse = server.Credential, api.RefuseAnalytics
	}
	return routes
}
