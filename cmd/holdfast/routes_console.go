package main

import (
	"holdfast/admission"
	"holdfast/console"
	"holdfast/server"
)

// consoleRoutes is every URL of the console. All are public to the server: a browser shows a session, not a credential, and
// the console asks for it itself. They carry no rate, so that a page still opens on a server that sheds load.
func consoleRoutes(c *console.Console) []server.Route {
	const form = 8 << 10 // bytes of a form
	routes := []server.Route{
		{Method: "GET", Path: "/", Label: "console.overview", Handler: c.Overview},
		{Method: "GET", Path: "/console/capsule/{tenant}/{job}/{capsule}", Label: "console.capsule", Handler: c.Capsule},
		{Method: "GET", Path: "/console/merchant/{merchant}", Label: "console.merchant", Handler: c.Merchant},
		{Method: "GET", Path: "/console/events", Label: "console.events", Handler: c.Events},
		{Method: "GET", Path: "/console/static/{file}", Label: "console.static", Handler: c.Static},
		{Method: "POST", Path: "/console/sign-in", Label: "console.signin", Handler: c.SignIn},
		{Method: "POST", Path: "/console/sign-out", Label: "console.signout", Handler: c.SignOut},
		{Method: "GET", Path: "/admin", Label: "console.admin", Handler: c.Admin},
		{Method: "GET", Path: "/v1/admin", Label: "console.admin", Handler: c.Admin},
	}
	for i := range routes {
		routes[i].Class, routes[i].Access, routes[i].Infra, routes[i].MaxBody = admission.Bulk, server.Public, true, form
	}
	return routes
}
