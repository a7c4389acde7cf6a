package console

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"holdfast/ident"
)

// The bounds of sessions.
const (
	maxSessions = 1024 // the oldest goes when one more signs in
	sessionLife = 12 * time.Hour
	cookieName  = "holdfast_console"
	maxKey      = 1024 // bytes of a key that is looked at
)

// sessions are the browsers that signed in. Their secrets are kept as hashes, like every credential.
type sessions struct {
	mu  sync.Mutex // guards all
	all map[[sha256.Size]byte]session
}

type session struct {
	who   ident.Principal
	began time.Time
}

// begin makes a session and returns its secret.
func (s *sessions) begin(who ident.Principal, now time.Time) string {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // documented never to fail
	text := hex.EncodeToString(secret[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[[sha256.Size]byte]session{}
	}
	if len(s.all) >= maxSessions {
		s.dropOldest()
	}
	s.all[sha256.Sum256([]byte(text))] = session{who, now}
	return text
}

// dropOldest makes room. The caller holds mu.
func (s *sessions) dropOldest() {
	var oldest [sha256.Size]byte
	var at time.Time
	for sum, one := range s.all {
		if at.IsZero() || one.began.Before(at) {
			oldest, at = sum, one.began
		}
	}
	delete(s.all, oldest)
}

// find returns whose session a secret is; one past its life is forgotten.
func (s *sessions) find(secret string, now time.Time) (ident.Principal, bool) {
	sum := sha256.Sum256([]byte(secret))
	s.mu.Lock()
	defer s.mu.Unlock()
	one, found := s.all[sum]
	if found && now.Sub(one.began) >= sessionLife {
		delete(s.all, sum)
		return ident.Principal{}, false
	}
	return one.who, found
}

func (s *sessions) end(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(secret)))
}

// secret is the session that a request claims to have.
func secret(r *http.Request) string {
	cookie, err := r.Cookie(cookieName)
	if err != nil || len(cookie.Value) != 64 {
		return ""
	}
	return cookie.Value
}

// who returns who is looking; ok is false when nobody is signed in, or no longer: the token behind a session is asked for
// every time.
func (c *Console) who(r *http.Request) (p ident.Principal, ok bool) {
	if c.dev {
		return ident.Principal{Kind: ident.DevMode}, true
	}
	id := secret(r)
	if id == "" {
		return ident.Principal{}, false
	}
	now := c.now()
	if p, ok = c.sessions.find(id, now); !ok {
		return ident.Principal{}, false
	}
	if !c.keys.Stands(p, now) {
		c.sessions.end(id)
		return ident.Principal{}, false
	}
	return p, true
}

// signIn is the body of the page that asks for a key.
type signIn struct {
	Next   string // where to go afterwards
	Failed bool
}

// next returns the place to go after signing in: a page of a capsule, or the first page. Anything else, such as another
// host, is ignored.
func next(path string) string {
	if strings.HasPrefix(path, capsulePath) && !strings.ContainsAny(path, "\\\r\n") {
		return path
	}
	return "/"
}

func (c *Console) askForKey(w http.ResponseWriter, status int, s signIn) {
	c.show(w, status, "sign-in-page", layout{Title: "Sign in", Body: s})
}

// SignIn takes the form field key and begins a session. A key that is unknown gets the form again.
func (c *Console) SignIn(w http.ResponseWriter, r *http.Request, call *ident.Call) {
	if !c.own(w, r) {
		return
	}
	form, err := url.ParseQuery(string(call.Body))
	goal := next(form.Get("next"))
	if err != nil || c.dev {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	key := strings.TrimSpace(form.Get("key"))
	now := c.now()
	var p ident.Principal
	known := false
	if len(key) <= maxKey {
		p, known = c.keys.Verify(key, now)
	}
	if !known {
		c.log.Warn("a key was refused at the console", keyRemote, r.RemoteAddr)
		c.askForKey(w, http.StatusUnauthorized, signIn{Next: goal, Failed: true})
		return
	}
	if p.Scope.Role == ident.Reader && goal == "/" {
		goal = capsuleURL(p.Scope.Tenant, p.Scope.Job, p.Scope.Capsule)
	}
	if old := secret(r); old != "" {
		c.sessions.end(old)
	}
	http.SetCookie(w, cookie(r, c.sessions.begin(p, now), int(sessionLife/time.Second)))
	protect(w.Header())
	http.Redirect(w, r, goal, http.StatusSeeOther)
}

// SignOut ends the session.
func (c *Console) SignOut(w http.ResponseWriter, r *http.Request, _ *ident.Call) {
	if !c.own(w, r) {
		return
	}
	if id := secret(r); id != "" {
		c.sessions.end(id)
	}
	http.SetCookie(w, cookie(r, "", -1))
	protect(w.Header())
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// own refuses a form that another site sent.
func (c *Console) own(w http.ResponseWriter, r *http.Request) bool {
	if err := c.origins.Check(r); err != nil {
		c.show(w, http.StatusForbidden, "notice-page", layout{Title: "Refused",
			Body: notice{"Refused", "This form was sent from another site. Open the console's own page and try again."}})
		return false
	}
	return true
}

// cookie carries a session. It cannot be Secure on the plain HTTP of a loopback listener; behind a proxy with TLS it is.
func cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	}
}
