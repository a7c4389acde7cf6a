// Package console is the pages that people look at in a browser: which capsules there are, how their options share the
// traffic, how the reward moves, and the newest decisions with their reasons; how a merchant's payment gateways share its
// payments and how often they succeed. Pages are rendered here, updated once a
// second over one stream of server-sent events, and need nothing from another host.
//
// Invariants: a page shows only what the key it was opened with covers; a session ends with its token; text that came from
// outside (names, ids, contexts, reasons) goes through html/template and nothing else; no page has an inline script or
// style, and its policy forbids both. Everything kept is bounded: sessions, streams, watched capsules, samples of each.
// It refuses to change anything: it has no rule of the services and writes nothing to a store. It never holds up a decide:
// it reads counters in memory and the log on disk.
//
// Goroutines: Run, which the caller starts and stops through its context. A stream lives on the goroutine of its request
// and ends with Options.Stopping.
package console

import (
	"bytes"
	"embed"
	"html/template"
	"log/slog"
	"net/http"
	"time"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/ident"
)

// Options are what a Console needs.
type Options struct {
	Service  *decision.Service
	Gateways Gateways        // nil without the gateway service
	Keys     *ident.Keyring  // who a key belongs to; nil in dev mode only
	Stopping <-chan struct{} // closed when streams must end; nil never does
	Log      *slog.Logger    // discards
	Dev      bool            // opens without a key
}

// Keys of the log lines written here.
const (
	keyError   = "error"
	keyCapsule = "capsule"
	keyRemote  = "remote"
)

//go:embed templates/*.html
var templateFiles embed.FS

// Console answers the pages.
type Console struct {
	service  *decision.Service
	keys     *ident.Keyring
	stopping <-chan struct{}
	log      *slog.Logger
	dev      bool

	pages    *template.Template
	static   map[string]asset
	sessions sessions
	origins  *http.CrossOriginProtection
	watch    watch
	shops    shops
	streams  chan struct{} // one entry per open stream
}

// New returns a console. It panics when its embedded files do not parse, which a test would have shown.
func New(o Options) *Console {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Console{
		service: o.Service, keys: o.Keys, stopping: o.Stopping, log: o.Log, dev: o.Dev,
		static: loadAssets(), origins: http.NewCrossOriginProtection(), streams: make(chan struct{}, maxStreams),
	}
	c.pages = template.Must(template.New("console").Funcs(functions()).ParseFS(templateFiles, "templates/*.html"))
	c.watch.service = o.Service
	c.shops.gateways = o.Gateways
	return c
}

// contentPolicy forbids everything that is not ours.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// protect sets the headers of every answer of the console.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // a stricter one would take the Origin from our own forms
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// layout is what every page has around its body.
type layout struct {
	Title  string
	Who    string // empty when nobody is signed in
	Dev    bool
	Stream string // address of the updates, empty without
	Body   any
}

// show answers with a page.
func (c *Console) show(w http.ResponseWriter, status int, page string, l layout) {
	var out bytes.Buffer
	if err := c.pages.ExecuteTemplate(&out, page, l); err != nil {
		c.log.Error("a page could not be rendered", keyError, err)
		http.Error(w, "the page could not be rendered; the log says why", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	protect(h)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // the reader is gone: nothing to tell it
}

// notice is the body of a page that says why there is nothing to see.
type notice struct{ Heading, Text string }

// fail answers with what err may tell.
func (c *Console) fail(w http.ResponseWriter, who ident.Principal, err error) {
	status, n := http.StatusInternalServerError, notice{"Something went wrong", "The server's log has the details."}
	switch fault.KindOf(err) {
	case fault.NotFound:
		status, n = http.StatusNotFound, notice{"Nothing here", "There is nothing of this name. It may have been deleted."}
	case fault.Forbidden:
		status, n = http.StatusForbidden, notice{"Not with this key", "The key you signed in with does not cover this page."}
	case fault.Unavailable, fault.Exhausted:
		status, n = http.StatusServiceUnavailable, notice{"Not right now", "The server cannot read its store at the moment. Try again shortly."}
	default:
		c.log.Error("a page failed", keyError, err)
	}
	c.show(w, status, "notice-page", layout{Title: n.Heading, Who: c.name(who), Dev: c.dev, Body: n})
}

// Admin sends the older address of the console on to the first page.
func (c *Console) Admin(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	protect(w.Header())
	http.Redirect(w, r, "/", http.StatusFound)
}

// name says who is signed in.
func (c *Console) name(p ident.Principal) string {
	switch {
	case p.Kind == ident.DevMode:
		return "dev mode"
	case p.Kind == ident.Operator:
		return "operator"
	case p.Scope.Role == ident.Admin:
		return "admin"
	case p.Scope.Role == ident.TenantAdmin:
		return "admin of " + p.Scope.Tenant
	case p.Scope.Role == ident.Reader:
		return "reader of " + p.Scope.Capsule
	}
	return ""
}

// reads reports whether p may see a capsule.
func reads(p ident.Principal, id decision.CapsuleID) bool {
	return p.Allows(ident.Need{Role: ident.Reader, Tenant: id.Tenant, Job: id.Job, Capsule: id.Capsule})
}

// now is the clock of the pages.
func (c *Console) now() time.Time { return time.Now() }
