package gatewayapi

import (
	"net/http"
	"strings"
	"time"

	"holdfast/gateway"
	"holdfast/ident"
)

// The headers that carry credentials, as net/http spells them.
const (
	headerAuthorization = "Authorization"
	headerSecret        = "X-Admin-Secret"
	headerKey           = "X-Api-Key"
)

// credentials reads what a caller shows. Of several Authorization headers the first bearer counts: one for a proxy must not hide
// it.
func credentials(h http.Header) (c gateway.Credentials) {
	for _, one := range h[headerAuthorization] {
		if !c.HasAuthorization || !gateway.IsBearer(c.Authorization) && gateway.IsBearer(one) {
			c.Authorization, c.HasAuthorization = one, true
		}
	}
	c.AdminSecret, c.HasAdminSecret = firstOf(h, headerSecret)
	c.APIKey, _ = firstOf(h, headerKey)
	return c
}

func firstOf(h http.Header, name string) (value string, there bool) {
	if all := h[name]; len(all) > 0 {
		return all[0], true
	}
	return "", false
}

// Identify finds out who is asking on the routes that a bearer token, the admin secret or an API key opens.
func (a *API) Identify(r *http.Request, now time.Time) (ident.Principal, error) {
	return a.service.Identify(r.Context(), credentials(r.Header), now)
}

// IdentifyMerchant is Identify without the admin secret, for routes that answer for the credential's own merchant.
func (a *API) IdentifyMerchant(r *http.Request, now time.Time) (ident.Principal, error) {
	c := credentials(r.Header)
	c.AdminSecret, c.HasAdminSecret = "", false
	return a.service.Identify(r.Context(), c, now)
}

// Identify has the shape that the server's route table asks for.
type Identify = func(r *http.Request, now time.Time) (ident.Principal, error)

// Guard returns who may call a route: whom identify lets in (nil: API.Identify), if they may read on GET and on the POST
// routes that change nothing, and if they may write on all others. path is the route's, with its {names}.
func (a *API) Guard(method, path string, identify Identify) Identify {
	if identify == nil {
		identify = a.Identify
	}
	permits := gateway.Writes
	if OnlyReads(method, path) {
		permits = gateway.Reads
	}
	return func(r *http.Request, now time.Time) (ident.Principal, error) {
		p, err := identify(r, now)
		if err == nil {
			err = permits(p)
		}
		return p, err
	}
}

// OnlyReads reports whether a route changes nothing, so that reading is all that its caller must be allowed.
func OnlyReads(method, path string) bool {
	return method == http.MethodGet || method == http.MethodPost && reads(path)
}

func reads(path string) bool {
	return path == "/routing/evaluate" || path == "/rule/get" || strings.HasPrefix(path, "/routing/list/") ||
		strings.HasSuffix(path, "/seed-costs/simulate")
}

// Reads serves next to those whose credential may read.
func (a *API) Reads(next Handler) Handler { return a.permitted(gateway.Reads, next) }

// Writes serves next to those whose credential may write.
func (a *API) Writes(next Handler) Handler { return a.permitted(gateway.Writes, next) }

func (a *API) permitted(may func(ident.Principal) error, next Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request, c *ident.Call) {
		if err := may(c.Principal); err != nil {
			a.refuse(w, r, err)
			return
		}
		next(w, r, c)
	}
}

// secret returns Unauthenticated unless the admin secret was shown; nothing else opens its routes.
func (a *API) secret(r *http.Request) error {
	given, _ := firstOf(r.Header, headerSecret)
	return a.service.CheckSecret(given)
}

// session opens the bearer's session; nothing else opens its routes.
func (a *API) session(r *http.Request) (gateway.Session, error) {
	return a.service.Bearer(credentials(r.Header))
}
