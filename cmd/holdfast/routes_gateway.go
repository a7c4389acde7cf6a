package main

import (
	"log/slog"

	"holdfast/server"
	"holdfast/wire/gatewayapi"
	"holdfast/wire/reply"
)

// gatewayBody is how many bytes a body of the gateway API may have where its row says nothing; largeGatewayBody is what
// decide, evaluate, hybrid and rule routes take.
const (
	gatewayBody      = 1 << 20
	largeGatewayBody = 2 << 20
)

// gatewayRoutes is every URL of the gateway service, in its own dialect.
func gatewayRoutes(api *gatewayapi.API, log *slog.Logger) []server.Route {
	var routes []server.Route
	refuse := server.Refusal(reply.Gateway(log, reply.CodeAccounts))
	for _, part := range [][]server.Route{
		scoreRoutes(api), accountRoutes(api), authRoutes(api), routingRoutes(api), analyticsRoutes(api), costRoutes(api),
	} {
		routes = append(routes, part...)
	}
	for i := range routes {
		route := &routes[i]
		if route.Refuse == nil {
			route.Refuse = refuse
		}
		if route.MaxBody == 0 {
			route.MaxBody = gatewayBody
		}
	}
	return routes
}

// scoreRoutes are decide, feedback and the reset of scores.
func scoreRoutes(*gatewayapi.API) []server.Route { return nil }

// accountRoutes are merchants, API keys, features, rule configs, the dimensions of scores, and outages.
func accountRoutes(*gatewayapi.API) []server.Route { return nil }

// authRoutes are users, sessions and members.
func authRoutes(*gatewayapi.API) []server.Route { return nil }

// routingRoutes are the rule language and its evaluation.
func routingRoutes(*gatewayapi.API) []server.Route { return nil }

// analyticsRoutes are the panels and the audit trail.
func analyticsRoutes(*gatewayapi.API) []server.Route { return nil }

// costRoutes are the cost model, the error table, and what is answered with an honest empty result.
func costRoutes(*gatewayapi.API) []server.Route { return nil }
