package server

import (
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"holdfast/admission"
	"holdfast/fault"
	"holdfast/ident"
)

// listener answers what arrives at one address: it holds the order of checks.
type listener struct {
	server *Server
	router *router
	refuse Refusal
	twins  string
	gate   *admission.Gate
	early  earlySeries
	pool   sync.Pool
}

// earlySeries count the answers that are given before a request has a route.
type earlySeries struct{ tooLarge, tooSlow, badBody, noRoom, unauthorized, limited *series }

func newListener(s *Server, t *Table) (*listener, error) {
	rt, err := newRouter(t, s.metrics)
	if err != nil {
		return nil, err
	}
	l := &listener{server: s, router: rt, refuse: t.Refuse, twins: t.Twins, gate: t.Gate, early: earlySeries{
		tooLarge: s.metrics.series("payload_too_large"), tooSlow: s.metrics.series("request_timeout"),
		badBody: s.metrics.series("bad_request"), noRoom: s.metrics.series("bodies_full"), unauthorized: s.metrics.series("unauthorized"),
		limited: s.metrics.series("rate_limited"),
	}}
	if s.dev {
		l.gate = nil
	}
	l.pool.New = func() any { return &response{exchange: exchange{handler: l}} }
	return l, nil
}

// ServeHTTP answers one request.
func (l *listener) ServeHTTP(hw http.ResponseWriter, r *http.Request) {
	w := l.pool.Get().(*response)
	w.ResponseWriter, w.request, w.start = hw, r, time.Now()
	defer l.done(w)
	m, params := l.router.find(r.Method, r.URL, &w.segments, w.params[:0])
	w.entry, w.series, w.wrong, w.call.Params = m.entry, m.entry.series, m.wrong, params
	id := w.ids.of(r.Header, m.entry.route.UUIDs)
	w.Header()[requestIDHeader] = id
	w.call.RequestID = id[0]
	if l.server.tracer != nil && !m.entry.route.Infra {
		l.server.tracer.trace(w, l.answer)
		return
	}
	l.answer(w, r)
}

// answer goes through the checks and calls the handler, or refuses.
func (l *listener) answer(w *response, r *http.Request) {
	if err := l.check(w, r); err != nil {
		w.entry.route.Refuse(w, r, err)
		if w.unread {
			w.linger(r)
		}
	} else {
		w.entry.route.Handler(w, r, &w.call)
	}
	w.finish()
}

// check is the order of checks: body, credential, rate, route, scope. The series of w follows it, so that an answer
// counts under the check that gave it.
func (l *listener) check(w *response, r *http.Request) error {
	route := &w.entry.route
	limit := route.MaxBody
	if limit == 0 {
		limit = l.server.limits.MaxBody
	}
	if err := w.readBody(r, limit); err != nil {
		w.series = l.early.of(err)
		return err
	}
	if route.Access == Public && w.entry != l.router.missing {
		if w.entry.deprecated {
			deprecate(w.Header(), r.URL, l.twins)
		}
		return nil
	}
	if err := l.authenticate(w, r); err != nil {
		if fault.KindOf(err) == fault.Unauthenticated {
			w.series = l.early.unauthorized
		}
		return err
	}
	if gate := l.gateOf(route); gate != nil && !route.Infra {
		var err error
		w.ticket, err = gate.Admit(r.Context(), admission.Request{
			Principal: w.call.Principal.ID, Class: route.Class, Patience: l.server.limits.Patience, Now: w.start,
		})
		if err != nil {
			w.series = l.early.limited
			return err
		}
	}
	if w.wrong != nil {
		w.entry = &entry{route: Route{Label: route.Label, Refuse: w.wrong.entries[0].route.Refuse}, series: w.series, tenant: -1, job: -1, capsule: -1}
		return fault.New("server.route", fault.NotAllowed, "method not allowed")
	}
	if w.entry == l.router.missing {
		return fault.New("server.route", fault.NotFound, "no such route")
	}
	if w.entry.deprecated {
		deprecate(w.Header(), r.URL, l.twins)
	}
	if !w.entry.allows(w.call.Principal, w.call.Params) {
		l.server.log.Warn("access refused: the scope does not cover it", keyRemote, r.RemoteAddr, keyPath, clip(r.URL.Path),
			keyRequestID, w.call.RequestID, keyPrincipal, w.call.Principal.ID)
		return fault.New("server.scope", fault.Forbidden, "")
	}
	return nil
}

// gateOf returns what admits the requests of a route; nil in dev mode.
func (l *listener) gateOf(route *Route) *admission.Gate {
	if route.Gate != nil && !l.server.dev {
		return route.Gate
	}
	return l.gate
}

// of says under which label a request counts whose body was refused.
func (e *earlySeries) of(err error) *series {
	switch fault.KindOf(err) {
	case fault.TooLarge:
		return e.tooLarge
	case fault.Timeout:
		return e.tooSlow
	case fault.Unavailable:
		return e.noRoom
	}
	return e.badBody
}

// authenticate finds out who is asking. A dialect that asks by itself is asked in dev mode too: it knows what its clients send
// besides.
func (l *listener) authenticate(w *response, r *http.Request) (err error) {
	switch identify := w.entry.route.Identify; {
	case identify != nil:
		w.call.Principal, err = identify(r, w.start)
	case l.server.dev:
		w.call.Principal = ident.Principal{Kind: ident.DevMode}
	default:
		var ok bool
		if w.call.Principal, ok = l.server.keys.Verify(credential(r.Header), w.start); !ok {
			err = fault.New("server.authenticate", fault.Unauthenticated, "")
		}
	}
	if fault.KindOf(err) == fault.Unauthenticated {
		l.server.log.Warn("authentication failed", keyRemote, r.RemoteAddr, keyPath, clip(r.URL.Path), keyRequestID, w.call.RequestID)
	}
	return err
}

// credential returns what the caller offers, or nothing. An Authorization header, whatever it says, is the only one looked at.
func credential(h http.Header) string {
	if given, some := h["Authorization"]; some {
		if len(given) != 1 {
			return ""
		}
		key, bearer := strings.CutPrefix(given[0], "Bearer ")
		if !bearer {
			return ""
		}
		return key
	}
	if given := h["Ocp-Apim-Subscription-Key"]; len(given) == 1 {
		return given[0]
	}
	return ""
}

// allows reports whether the principal may call the route with these parameters.
func (e *entry) allows(p ident.Principal, params []string) bool {
	at := func(i int) string {
		if i < 0 {
			return ""
		}
		return params[i]
	}
	switch e.route.Access {
	case Public:
		return true
	case Credential:
		return p.Kind != ident.Anonymous
	case TenantAdmins:
		return p.Allows(ident.Need{Role: ident.TenantAdmin, Tenant: at(e.tenant)})
	case Readers:
		job := e.route.Job
		if e.job >= 0 {
			job = params[e.job]
		}
		return p.Allows(ident.Need{Role: ident.Reader, Tenant: at(e.tenant), Job: job, Capsule: at(e.capsule)})
	}
	return p.Allows(ident.Need{Role: ident.Admin})
}

// done ends a request, whichever way its handler ended, and returns its state to the pool.
func (l *listener) done(w *response) {
	if cause := recover(); cause != nil {
		l.recovered(w, cause)
	}
	w.ticket.Release(w.end)
	w.lease.end()
	if cap(w.body) > keptBuffer {
		w.body = nil
	}
	w.exchange = exchange{handler: l}
	l.pool.Put(w)
}

// recovered answers a panic with 500, or breaks the connection off when an answer is on its way already.
func (l *listener) recovered(w *response, cause any) {
	if cause == http.ErrAbortHandler {
		w.ticket.Release(time.Now())
		w.lease.end()
		panic(cause)
	}
	l.server.log.Error("a handler panicked", keyCause, cause, keyRequestID, w.call.RequestID, keyRoute, w.entry.route.Label,
		keyStack, string(debug.Stack()))
	if w.status != 0 || w.hijacked {
		w.lease.end()
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	delete(h, "Content-Length")
	w.entry.route.Refuse(w, w.request, fault.New("server.handler", fault.Internal, ""))
	w.finish()
}

// clip bounds what a stranger can put into a log line.
func clip(s string) string {
	const most = 256
	if len(s) > most {
		return s[:most]
	}
	return s
}
