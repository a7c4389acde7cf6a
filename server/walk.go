package server

import (
	"net/http"
	"strings"
)

// Caller is a kind of caller that every route must be tried with.
type Caller string

// The callers of a walk. The places named Walk... are what the path parameters are filled with.
const (
	Anonymous   Caller = "anonymous"
	Unknown     Caller = "a key never issued"
	Revoked     Caller = "a revoked admin token"
	Expired     Caller = "an expired admin token"
	OtherTenant Caller = "the tenant_admin of another tenant"
	OtherReader Caller = "the reader of another capsule of the same job"
	ReadOnly    Caller = "the reader of the capsule"
	OwnTenant   Caller = "the tenant_admin of the tenant"
	OwnAdmin    Caller = "an admin token"
	OwnOperator Caller = "the operator"
)

// What a walk puts into a path. A route without {job} must have the Job WalkJob or be walked as its own Job says.
const (
	WalkTenant  = "walk-tenant"
	WalkJob     = "walk-job"
	WalkCapsule = "walk-capsule"
)

// Visit is one request of a walk and what must become of it.
type Visit struct {
	Method, Path string
	As           Caller
	Status       int // 401 or 403; 0 when the caller must get through to the handler
}

// Walk lists every route of a table, its twins included, with every kind of caller, so that a test can hold the running
// server to it. It derives the verdicts from the table's Access column on its own, not with the server's code.
func Walk(t Table) []Visit {
	var visits []Visit
	for _, route := range t.Routes {
		paths := []string{route.Path}
		if twin, under := strings.CutPrefix(route.Path, t.Twins); t.Twins != "" && under && strings.HasPrefix(twin, "/") {
			paths = append(paths, twin)
		}
		for _, path := range paths {
			fill := strings.NewReplacer("{tenant}", WalkTenant, "{job}", WalkJob, "{capsule}", WalkCapsule)
			visits = append(visits, visit(route, literal(fill.Replace(path)))...)
		}
	}
	return visits
}

// literal fills whatever parameters are left.
func literal(path string) string {
	for {
		from := strings.IndexByte(path, '{')
		if from < 0 {
			return path
		}
		to := from + strings.IndexByte(path[from:], '}')
		path = path[:from] + "x" + path[to+1:]
	}
}

// visit tries one path as everybody.
func visit(route Route, path string) []Visit {
	// From whom on is somebody let in? The order is that of the reach of their scopes.
	reach := map[Access][]Caller{
		Readers:      {ReadOnly, OwnTenant, OwnAdmin, OwnOperator},
		TenantAdmins: {OwnTenant, OwnAdmin, OwnOperator},
		Admins:       {OwnAdmin, OwnOperator},
		Credential:   {OtherTenant, OtherReader, ReadOnly, OwnTenant, OwnAdmin, OwnOperator},
	}[route.Access]
	if route.Access == Readers && route.Job != "" && !strings.Contains(path, WalkJob) && route.Job != WalkJob {
		reach = reach[1:] // the reader's capsule lies in another job
	}
	visits := make([]Visit, 0, 10)
	for _, as := range [...]Caller{Anonymous, Unknown, Revoked, Expired} {
		v := Visit{Method: route.Method, Path: path, As: as, Status: http.StatusUnauthorized}
		if route.Access == Public {
			v.Status = 0
		}
		visits = append(visits, v)
	}
	for _, as := range [...]Caller{OtherTenant, OtherReader, ReadOnly, OwnTenant, OwnAdmin, OwnOperator} {
		v := Visit{Method: route.Method, Path: path, As: as, Status: http.StatusForbidden}
		for _, in := range reach {
			if in == as {
				v.Status = 0
			}
		}
		if route.Access == Public {
			v.Status = 0
		}
		visits = append(visits, v)
	}
	return visits
}
