package main

import (
	"encoding/json/v2"
	"log/slog"
	"net/http"
	"strings"

	"holdfast/admission"
	"holdfast/fault"
	"holdfast/ident"
	"holdfast/server"
	"holdfast/wire/reply"
)

// levelRoutes show and change the log level of the running process. A restart takes the configured one again.
func levelRoutes(level *slog.LevelVar, refuse server.Refusal) []server.Route {
	type body struct {
		Level string `json:"level"`
	}
	show := func(w http.ResponseWriter, _ *http.Request, _ *ident.Call) {
		_ = reply.Value(w, http.StatusOK, body{strings.ToLower(level.Level().String())}) // a struct of texts always encodes
	}
	change := func(w http.ResponseWriter, r *http.Request, c *ident.Call) {
		var asked body
		if err := json.Unmarshal(c.Body, &asked, json.RejectUnknownMembers(true)); err != nil {
			refuse(w, r, fault.New("level", fault.Invalid, `the body must be like {"level":"debug"}`))
			return
		}
		if err := level.UnmarshalText([]byte(asked.Level)); err != nil {
			refuse(w, r, fault.New("level", fault.Invalid, "level must be debug, info, warn or error"))
			return
		}
		show(w, r, c)
	}
	const path, label, most = "/v1/admin/log-level", "admin.loglevel", 1 << 10
	return []server.Route{
		{Method: "GET", Path: path, Label: label, Class: admission.Critical, Access: server.Admins, Infra: true, Handler: show},
		{Method: "PUT", Path: path, Label: label, Class: admission.Critical, Access: server.Admins, Infra: true, MaxBody: most, Handler: change},
	}
}
