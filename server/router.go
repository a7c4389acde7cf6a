package server

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"holdfast/admission"
)

// The bounds of a route table.
const (
	maxParams = 8
	maxDepth  = 32 // path segments of a request; deeper paths match nothing
)

// entry is one compiled route.
type entry struct {
	route                Route
	names                []string
	tenant, job, capsule int // indices into the parameters, -1 when the path has none
	series               *series
	deprecated           bool
}

// node is one place in the tree of path segments.
type node struct {
	literals []branch // sorted by segment
	param    *node    // {name}
	rest     *node    // {name...}, a leaf
	entries  []*entry // one per method; empty when no route ends here
}

type branch struct {
	segment string
	next    *node
}

// router finds the route of a path. It is built once and read without locks.
type router struct {
	root    node
	entries []*entry
	missing *entry // stands for every request that no route answers
}

// match is what a path was found to be.
type match struct {
	entry *entry // never nil; the router's missing entry when nothing matched
	wrong *node  // set when the path exists under other methods only
}

// newRouter compiles a table, or says which row is wrong.
func newRouter(t *Table, m *Metrics) (*router, error) {
	rt := &router{missing: &entry{
		route:  Route{Label: "not_found", Class: admission.Normal, Access: Credential, Refuse: t.Refuse, Identify: t.Identify, UUIDs: t.UUIDs},
		tenant: -1, job: -1, capsule: -1,
		series: m.series("not_found"),
	}}
	for _, route := range t.Routes {
		if route.Refuse == nil {
			route.Refuse = t.Refuse
		}
		e, err := compile(route)
		if err != nil {
			return nil, err
		}
		e.series = m.series(route.Label)
		if err := rt.add(e, route.Path); err != nil {
			return nil, err
		}
	}
	if t.Twins == "" {
		return rt, nil
	}
	for _, e := range slices.Clone(rt.entries) {
		path, under := strings.CutPrefix(e.route.Path, t.Twins)
		if !under || !strings.HasPrefix(path, "/") {
			continue
		}
		twin := *e
		twin.deprecated = true
		if rt.has(e.route.Method, path) {
			continue
		}
		if err := rt.add(&twin, path); err != nil {
			return nil, err
		}
	}
	return rt, nil
}

// compile checks a row and finds where its place is named.
func compile(route Route) (*entry, error) {
	wrong := func(why string) (*entry, error) {
		return nil, fmt.Errorf("route %s %s: %s", route.Method, route.Path, why)
	}
	switch {
	case route.Method == "" || !strings.HasPrefix(route.Path, "/"):
		return wrong("it needs a method and a path that begins with a slash")
	case route.Handler == nil || route.Refuse == nil || route.Label == "":
		return wrong("it needs a handler, a refusal and a label")
	}
	e := &entry{route: route, tenant: -1, job: -1, capsule: -1}
	for segment := range strings.SplitSeq(route.Path[1:], "/") {
		name, param := strings.CutPrefix(segment, "{")
		if !param {
			continue
		}
		name = strings.TrimSuffix(strings.TrimSuffix(name, "}"), "...")
		switch i := len(e.names); name {
		case "tenant":
			e.tenant = i
		case "job":
			e.job = i
		case "capsule":
			e.capsule = i
		}
		e.names = append(e.names, name)
	}
	switch {
	case len(e.names) > maxParams:
		return wrong("too many parameters")
	case route.Access == TenantAdmins && e.tenant < 0:
		return wrong("access for tenant administrators needs {tenant}")
	case route.Access == Readers && (e.tenant < 0 || e.capsule < 0 || e.job < 0 && route.Job == ""):
		return wrong("access for readers needs {tenant}, {capsule} and {job} or Job")
	}
	return e, nil
}

// add hangs e into the tree under path.
func (rt *router) add(e *entry, path string) error {
	at := &rt.root
	segments := strings.Split(path[1:], "/")
	for i, segment := range segments {
		switch {
		case !strings.HasPrefix(segment, "{"):
			at = at.literal(segment)
		case strings.HasSuffix(segment, "...}"):
			if i != len(segments)-1 {
				return fmt.Errorf("route %s: {name...} must be the last segment", path)
			}
			if at.rest == nil {
				at.rest = &node{}
			}
			at = at.rest
		default:
			if at.param == nil {
				at.param = &node{}
			}
			at = at.param
		}
	}
	for _, other := range at.entries {
		if other.route.Method == e.route.Method {
			return fmt.Errorf("route %s %s is there twice", e.route.Method, path)
		}
	}
	at.entries = append(at.entries, e)
	rt.entries = append(rt.entries, e)
	return nil
}

// literal returns the child for a segment, made when it is new.
func (n *node) literal(segment string) *node {
	i, found := slices.BinarySearchFunc(n.literals, segment, func(b branch, s string) int { return cmp.Compare(b.segment, s) })
	if !found {
		n.literals = slices.Insert(n.literals, i, branch{segment, &node{}})
	}
	return n.literals[i].next
}

// has reports whether a row has exactly this method and path, whatever its parameters are called.
func (rt *router) has(method, path string) bool {
	at := &rt.root
	for segment := range strings.SplitSeq(path[1:], "/") {
		switch {
		case !strings.HasPrefix(segment, "{"):
			i, found := slices.BinarySearchFunc(at.literals, segment, func(b branch, s string) int { return cmp.Compare(b.segment, s) })
			if !found {
				return false
			}
			at = at.literals[i].next
		case strings.HasSuffix(segment, "...}"):
			at = at.rest
		default:
			at = at.param
		}
		if at == nil {
			return false
		}
	}
	return slices.ContainsFunc(at.entries, func(e *entry) bool { return e.route.Method == method })
}

// find returns the route of a request and appends its parameters to params. Segments are percent-decoded one by one, so
// %2F stays inside its segment. Nothing is allocated unless a segment needs decoding. room holds the segments meanwhile.
func (rt *router) find(method string, u *url.URL, room *[maxDepth]string, params []string) (match, []string) {
	segments, ok := split(u, room)
	if !ok {
		return match{entry: rt.missing}, params
	}
	at, params := rt.root.walk(segments, params)
	if at == nil {
		return match{entry: rt.missing}, params
	}
	for _, e := range at.entries {
		if e.route.Method == method {
			return match{entry: e}, params
		}
	}
	if method == http.MethodHead {
		for _, e := range at.entries {
			if e.route.Method == http.MethodGet {
				return match{entry: e}, params
			}
		}
	}
	return match{entry: rt.missing, wrong: at}, params
}

// split cuts a path into decoded segments; ok is false for one that no route can have.
func split(u *url.URL, room *[maxDepth]string) (segments []string, ok bool) {
	// An empty RawPath says that decoding lost nothing: the decoded path has the slashes of the original.
	path, raw := u.Path, u.RawPath != ""
	if raw {
		path = u.RawPath
	}
	path, ok = strings.CutPrefix(path, "/")
	if !ok {
		return nil, false
	}
	for n := range room {
		segment, rest, more := strings.Cut(path, "/")
		if raw && strings.Contains(segment, "%") {
			plain, err := url.PathUnescape(segment)
			if err != nil {
				return nil, false
			}
			segment = plain
		}
		room[n] = segment
		if !more {
			return room[:n+1], true
		}
		path = rest
	}
	return nil, false
}

// walk follows the segments below n. It tries the literal first, then the parameter, then the rest, and comes back when a
// choice leads nowhere; the depth of a table bounds the work.
func (n *node) walk(segments, params []string) (*node, []string) {
	if len(segments) == 0 {
		if len(n.entries) == 0 {
			return nil, params
		}
		return n, params
	}
	segment := segments[0]
	for i := range n.literals {
		if n.literals[i].segment != segment {
			continue
		}
		if at, got := n.literals[i].next.walk(segments[1:], params); at != nil {
			return at, got
		}
		break
	}
	if n.param != nil && segment != "" {
		if at, got := n.param.walk(segments[1:], append(params, segment)); at != nil {
			return at, got
		}
	}
	if n.rest != nil {
		return n.rest, append(params, strings.Join(segments, "/"))
	}
	return nil, params
}

// methods lists what a path answers to, for the Allow header.
func (n *node) methods() string {
	var names []string
	for _, e := range n.entries {
		names = append(names, e.route.Method)
		if e.route.Method == http.MethodGet {
			names = append(names, http.MethodHead)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
