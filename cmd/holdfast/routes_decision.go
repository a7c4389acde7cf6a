package main

import (
	"net/http"

	"holdfast/admission"
	"holdfast/docs/openapi"
	"holdfast/ident"
	"holdfast/server"
	"holdfast/wire/decisionapi"
	"holdfast/wire/reply"
)

// The paths that most of the dialect hangs below.
const (
	capsulePath = "/v1/tenants/{tenant}/jobs/{job}/capsules/{capsule}"
	legacyPath  = "/v1/tenants/{tenant}/capsules/{capsule}" // without a job: decisionapi.DefaultJob
)

// decisionRoutes is every URL of the decision service, in its own dialect unless a row says otherwise. The table that
// takes them has the twins of /v1.
func decisionRoutes(api *decisionapi.API, refuse, decline reply.Refusal) []server.Route {
	routes := tenantRoutes(api)
	routes = append(routes, capsuleRoutes(api)...)
	routes = append(routes, legacyRoutes(api)...)
	for i := range routes {
		routes[i].Refuse = server.Refusal(refuse)
	}
	for _, route := range personalizerRoutes(api, decline) {
		route.Refuse = server.Refusal(decline)
		routes = append(routes, route)
	}
	return routes
}

// describe answers with the description of this API.
func describe(w http.ResponseWriter, _ *http.Request, _ *ident.Call) {
	reply.JSON(w, http.StatusOK, openapi.Decision())
}

// tenantRoutes are those above a capsule: who is asking, tokens, tenants and jobs.
func tenantRoutes(api *decisionapi.API) []server.Route {
	const tenant, jobs, job = "/v1/tenants/{tenant}", "/v1/tenants/{tenant}/jobs", "/v1/tenants/{tenant}/jobs/{job}"
	return []server.Route{
		{Method: "GET", Path: "/openapi/decision.json", Label: "openapi", Class: admission.Normal, Access: server.Public, Infra: true, Handler: describe},
		{Method: "GET", Path: "/v1/auth/whoami", Label: "auth.whoami", Class: admission.Normal, Access: server.Credential, Handler: api.Whoami},
		{Method: "POST", Path: "/v1/admin/tokens", Label: "admin.tokens.issue", Class: admission.Normal, Access: server.Admins, Handler: api.Issue},
		{Method: "GET", Path: "/v1/admin/tokens", Label: "admin.tokens.list", Class: admission.Normal, Access: server.Admins, Handler: api.List},
		{Method: "DELETE", Path: "/v1/admin/tokens/{hash}", Label: "admin.tokens.revoke", Class: admission.Normal, Access: server.Admins, Handler: api.Revoke},
		{Method: "GET", Path: "/v1/admin/capsules", Label: "admin.capsules", Class: admission.Normal, Access: server.Admins, Handler: api.AllCapsules},
		{Method: "GET", Path: "/v1/tenants", Label: "tenants.list", Class: admission.Normal, Access: server.Credential, Handler: api.Tenants},
		{Method: "DELETE", Path: tenant, Label: "tenant.delete", Class: admission.Normal, Access: server.TenantAdmins, Handler: api.DeleteTenant},
		{Method: "GET", Path: jobs, Label: "jobs.list", Class: admission.Normal, Access: server.TenantAdmins, Handler: api.Jobs},
		{Method: "POST", Path: jobs, Label: "jobs.create", Class: admission.Normal, Access: server.TenantAdmins, Handler: api.CreateJob},
		{Method: "GET", Path: job, Label: "job.get", Class: admission.Normal, Access: server.TenantAdmins, Handler: api.Job},
		{Method: "DELETE", Path: job, Label: "job.delete", Class: admission.Normal, Access: server.TenantAdmins, Handler: api.DeleteJob},
		{Method: "GET", Path: job + "/capsules", Label: "job.capsules", Class: admission.Normal, Access: server.TenantAdmins, Handler: api.JobCapsules},
	}
}

// capsuleRoutes are those of one capsule, below its canonical path.
func capsuleRoutes(api *decisionapi.API) []server.Route {
	const read, write = server.Readers, server.TenantAdmins
	routes := []server.Route{
		{Method: "POST", Path: "/decide", Label: "capsule.decide", Class: admission.Critical, Access: read, Handler: api.Decide},
		{Method: "POST", Path: "/reward", Label: "capsule.reward", Class: admission.Critical, Access: read, Handler: api.Reward},
		{Method: "POST", Path: "/feedback", Label: "capsule.reward", Class: admission.Critical, Access: read, Handler: api.Reward},
		{Method: "GET", Path: "", Label: "capsule.get", Class: admission.Normal, Access: read, Handler: api.Capsule},
		{Method: "DELETE", Path: "", Label: "capsule.delete", Class: admission.Normal, Access: write, Handler: api.DeleteCapsule},
		{Method: "GET", Path: "/spec", Label: "capsule.spec.get", Class: admission.Normal, Access: read, Handler: api.Spec},
		{Method: "PUT", Path: "/spec", Label: "capsule.spec.put", Class: admission.Normal, Access: write, Handler: api.PutSpec},
		{Method: "POST", Path: "/mode", Label: "capsule.mode", Class: admission.Normal, Access: write, Handler: api.Mode},
		{Method: "GET", Path: "/decisions", Label: "capsule.decisions.list", Class: admission.Normal, Access: read, Handler: api.Decisions},
		{Method: "GET", Path: "/decisions/{id}", Label: "capsule.decisions.get", Class: admission.Normal, Access: read, Handler: api.Decision},
		{Method: "GET", Path: "/model", Label: "capsule.model", Class: admission.Normal, Access: read, Handler: api.Model},
		{Method: "GET", Path: "/audits", Label: "capsule.audits", Class: admission.Normal, Access: read, Handler: api.Audits},
		{Method: "DELETE", Path: "/logs", Label: "capsule.logs.delete", Class: admission.Normal, Access: write, Handler: api.PurgeLogs},
		{Method: "POST", Path: "/decisions:batch", Label: "capsule.decisions.batch", Class: admission.Bulk, Access: read, Handler: api.Upload},
		{Method: "POST", Path: "/rewards:batch", Label: "capsule.rewards.batch", Class: admission.Bulk, Access: read, Handler: api.Rewards},
		{Method: "POST", Path: "/evaluate", Label: "capsule.evaluate", Class: admission.Bulk, Access: write, Handler: api.Evaluate},
		{Method: "POST", Path: "/promote", Label: "capsule.promote", Class: admission.Bulk, Access: write, Handler: api.Promote},
		{Method: "POST", Path: "/install", Label: "capsule.install", Class: admission.Normal, Access: write, Handler: api.Install},
		{Method: "DELETE", Path: "/program", Label: "capsule.program.delete", Class: admission.Normal, Access: write, Handler: api.RemoveProgram},
	}
	for i := range routes {
		routes[i].Path = capsulePath + routes[i].Path
	}
	return routes
}

// legacyRoutes repeat a capsule's routes on the older paths, where decide and feedback take the older bodies besides and
// report is the older name of the capsule itself. They count under the same labels.
func legacyRoutes(api *decisionapi.API) []server.Route {
	routes := capsuleRoutes(api)
	for i := range routes {
		tail := routes[i].Path[len(capsulePath):]
		switch tail {
		case "/decide":
			routes[i].Handler = api.LegacyDecide
		case "/reward", "/feedback":
			routes[i].Handler = api.LegacyReward
		}
		routes[i].Path = legacyPath + tail
		if routes[i].Method == "GET" && tail == "" {
			report := routes[i]
			report.Path += "/report"
			routes = append(routes, report)
		}
	}
	for i := range routes {
		routes[i].Handler = decisionapi.WithDefaultJob(routes[i].Handler)
		routes[i].Job = decisionapi.DefaultJob
	}
	return routes
}

// personalizerRoutes are the Personalizer-compatible calls, below a capsule and on the path of unmodified clients, whose
// read token names the capsule.
func personalizerRoutes(api *decisionapi.API, decline reply.Refusal) []server.Route {
	calls := []server.Route{
		{Method: "POST", Path: "/rank", Label: "personalizer.rank", Class: admission.Critical, Access: server.Readers, Handler: api.Rank},
		{Method: "POST", Path: "/events/{event}/reward", Label: "personalizer.reward", Class: admission.Critical, Access: server.Readers, Handler: api.EventReward},
		{Method: "POST", Path: "/events/{event}/activate", Label: "personalizer.activate", Class: admission.Critical, Access: server.Readers, Handler: api.Activate},
		{Method: "GET", Path: "/configurations/service", Label: "personalizer.configuration.get", Class: admission.Normal, Access: server.Readers, Handler: api.Configuration},
		{Method: "PUT", Path: "/configurations/service", Label: "personalizer.configuration.put", Class: admission.Normal, Access: server.TenantAdmins, Handler: api.PutConfiguration},
	}
	var routes []server.Route
	for _, call := range calls {
		below, short := call, call
		below.Path = capsulePath + "/personalizer/{version}" + call.Path
		below.Handler = api.Personalizer(call.Handler)
		short.Path = "/personalizer/{version}" + call.Path
		short.Handler = api.PersonalizerByToken(call.Handler)
		short.Access = server.Credential // the handler asks for a read token, and a read token reaches its own capsule only
		routes = append(routes, below, short)
	}
	missing := decisionapi.Missing(decline) // in that API's own words, where its clients look for more than there is
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		route := server.Route{Method: method, Label: notFoundLabel, Class: admission.Normal, Access: server.Readers, Handler: missing}
		route.Path = capsulePath + "/personalizer/{rest...}"
		routes = append(routes, route)
		route.Path, route.Access = "/personalizer/{rest...}", server.Credential
		routes = append(routes, route)
	}
	return routes
}

// notFoundLabel is the metric label of what no route answers.
const notFoundLabel = "not_found"
