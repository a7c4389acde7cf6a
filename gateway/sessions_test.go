package gateway_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/ident"
)

// handMade signs claims as somebody who has the secret would, with the members that are nil left out.
func (h *house) handMade(t *testing.T, method jwt.SigningMethod, key any, change jwt.MapClaims) string {
	t.Helper()
	c := jwt.MapClaims{"sub": "u1", "user_id": "u1", "email": "u1@example.com", "merchant_id": "shop", "role": "admin", "jti": "j1",
		"iat": h.now.Unix(), "exp": h.now.Add(time.Hour).Unix()}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	text, err := jwt.NewWithClaims(method, c).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (h *house) handMadeHS256(t *testing.T, change jwt.MapClaims) string {
	t.Helper()
	return h.handMade(t, jwt.SigningMethodHS256, []byte(sessionSecret), change)
}

func TestClaims(t *testing.T) {
	h := newHouse(t, nil)
	h.merchant(t, "shop")
	in := h.user(t, "ana@example.com", "shop")
	var c jwt.MapClaims
	if _, err := jwt.ParseWithClaims(in.Token, &c, func(*jwt.Token) (any, error) { return []byte(sessionSecret), nil },
		jwt.WithValidMethods([]string{"HS256"}), jwt.WithTimeFunc(func() time.Time { return h.now })); err != nil {
		t.Fatal(err)
	}
	want := []string{"email", "exp", "iat", "jti", "merchant_id", "role", "sub", "token_type", "user_id"}
	if got := slices.Sorted(maps.Keys(c)); !slices.Equal(got, want) {
		t.Errorf("claims %v, want %v", got, want)
	}
	if c["sub"] != c["user_id"] || c["sub"] != in.Session.UserID || c["email"] != "ana@example.com" || c["merchant_id"] != "shop" ||
		c["role"] != "admin" || c["token_type"] != "standard" || c["exp"].(float64)-c["iat"].(float64) != 86400 {
		t.Errorf("claims %v", c)
	}
}

func TestHandMadeTokens(t *testing.T) {
	h := newHouse(t, nil)
	all := []string{gateway.PermissionRead, gateway.PermissionWrite}
	for name, c := range map[string]struct {
		change jwt.MapClaims
		kind   string
		perms  []string
		role   ident.Role
	}{
		"as they come":            {nil, "standard", all, ident.TenantAdmin},
		"null permissions":        {jwt.MapClaims{"perms": jwt.MapClaims(nil)}, "standard", all, ident.TenantAdmin},
		"reading only":            {jwt.MapClaims{"perms": []string{"routing:read"}}, "standard", []string{"routing:read"}, ident.Reader},
		"both":                    {jwt.MapClaims{"perms": all}, "standard", all, ident.TenantAdmin},
		"writing only":            {jwt.MapClaims{"perms": []string{"routing:write"}}, "standard", []string{"routing:write"}, ident.NoRole},
		"nothing":                 {jwt.MapClaims{"perms": []string{}}, "standard", []string{}, ident.NoRole},
		"other permissions":       {jwt.MapClaims{"perms": []string{"routing:*"}}, "standard", []string{"routing:*"}, ident.NoRole},
		"a redirect":              {jwt.MapClaims{"token_type": "hs_redirect"}, "hs_redirect", all, ident.TenantAdmin},
		"a view":                  {jwt.MapClaims{"token_type": "super_admin_view"}, "super_admin_view", all, ident.TenantAdmin},
		"a grant of any form":     {jwt.MapClaims{"grant": []any{1, "x"}}, "standard", all, ident.TenantAdmin},
		"no user_id":              {jwt.MapClaims{"user_id": nil}, "standard", all, ident.TenantAdmin},
		"no jti":                  {jwt.MapClaims{"jti": nil}, "standard", all, ident.TenantAdmin},
		"no iat":                  {jwt.MapClaims{"iat": nil}, "standard", all, ident.TenantAdmin},
		"members nobody knows":    {jwt.MapClaims{"org_id": "o"}, "standard", all, ident.TenantAdmin},
		"a time with a fraction":  {jwt.MapClaims{"exp": float64(h.now.Unix()) + 60.5}, "standard", all, ident.TenantAdmin},
		"a second before its end": {jwt.MapClaims{"exp": h.now.Unix() + 1}, "standard", all, ident.TenantAdmin},
	} {
		token := h.handMadeHS256(t, c.change)
		s, err := h.Session(token)
		if err != nil || s.Kind != c.kind || !slices.Equal(s.Permissions(), c.perms) || s.UserID != "u1" {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		p, err := h.Identify(t.Context(), asBearer(token), h.now)
		if err != nil || p.Scope != (ident.Scope{Role: c.role, Tenant: "shop"}) || p.Wide != (c.kind == "super_admin_view") || p.ID != "u1" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

func TestForgedTokens(t *testing.T) {
	h := newHouse(t, nil)
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	good := h.handMadeHS256(t, nil)
	parts := strings.Split(good, ".")
	b64 := base64.RawURLEncoding.EncodeToString
	none := b64([]byte(`{"alg":"none","typ":"JWT"}`))
	raised := strings.Replace(decoded(t, parts[1]), `"shop"`, `"bank"`, 1)
	for name, token := range map[string]string{
		"empty":                       "",
		"words":                       "let me in",
		"two parts":                   parts[0] + "." + parts[1],
		"four parts":                  good + ".x",
		"alg none":                    none + "." + parts[1] + ".",
		"alg none, old signature":     none + "." + parts[1] + "." + parts[2],
		"alg None":                    b64([]byte(`{"alg":"None"}`)) + "." + parts[1] + ".",
		"no alg":                      b64([]byte(`{"typ":"JWT"}`)) + "." + parts[1] + "." + parts[2],
		"none by the library":         h.handMade(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil),
		"HS384":                       h.handMade(t, jwt.SigningMethodHS384, []byte(sessionSecret), nil),
		"HS512":                       h.handMade(t, jwt.SigningMethodHS512, []byte(sessionSecret), nil),
		"RS256":                       h.handMade(t, jwt.SigningMethodRS256, private, nil),
		"another secret":              h.handMade(t, jwt.SigningMethodHS256, []byte(sessionSecret+"x"), nil),
		"an empty secret":             h.handMade(t, jwt.SigningMethodHS256, []byte{}, nil),
		"another merchant":            parts[0] + "." + b64([]byte(raised)) + "." + parts[2],
		"no signature":                parts[0] + "." + parts[1] + ".",
		"a shorter signature":         good[:len(good)-4],
		"expired":                     h.handMadeHS256(t, jwt.MapClaims{"exp": h.now.Unix() - 1}),
		"expired now":                 h.handMadeHS256(t, jwt.MapClaims{"exp": h.now.Unix()}),
		"no end":                      h.handMadeHS256(t, jwt.MapClaims{"exp": nil}),
		"an end in words":             h.handMadeHS256(t, jwt.MapClaims{"exp": "tomorrow"}),
		"not yet":                     h.handMadeHS256(t, jwt.MapClaims{"nbf": h.now.Unix() + 60}),
		"a kind nobody knows":         h.handMadeHS256(t, jwt.MapClaims{"token_type": "root"}),
		"permissions of another form": h.handMadeHS256(t, jwt.MapClaims{"perms": "routing:read"}),
		"nobody":                      h.handMadeHS256(t, jwt.MapClaims{"sub": nil, "user_id": nil}),
		"a long id":                   h.handMadeHS256(t, jwt.MapClaims{"jti": strings.Repeat("j", 1000)}),
		"far too long":                h.handMadeHS256(t, jwt.MapClaims{"grant": strings.Repeat("g", 10_000)}),
	} {
		_, err := h.Session(token)
		wantKind(t, name, err, fault.Unauthenticated)
		c := asBearer(token)
		c.AdminSecret, c.HasAdminSecret = adminSecret, true
		_, err = h.Identify(t.Context(), c, h.now)
		wantKind(t, name+" beside the admin secret", err, fault.Unauthenticated)
	}
}

func decoded(t *testing.T, part string) string {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestLogout(t *testing.T) {
	path := t.TempDir() + "/gateways.db"
	h := openHouse(t, path, nil)
	one, two := h.user(t, "ana@example.com", ""), h.user(t, "bo@example.com", "")
	unnamed := h.handMadeHS256(t, jwt.MapClaims{"jti": nil})
	for _, token := range []string{one.Token, unnamed} {
		for range 2 { // repeatable
			if err := h.Logout(t.Context(), asBearer(token)); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(when string) {
		t.Helper()
		for _, token := range []string{one.Token, unnamed} {
			_, err := h.Session(token)
			wantKind(t, when, err, fault.Unauthenticated)
			_, err = h.Identify(t.Context(), asBearer(token), h.now)
			wantKind(t, when, err, fault.Unauthenticated)
		}
		if _, err := h.Session(two.Token); err != nil {
			t.Errorf("%s: another's session: %v", when, err)
		}
	}
	check("after logout")
	wantKind(t, "no token", h.Logout(t.Context(), gateway.Credentials{}), fault.Unauthenticated)
	wantKind(t, "a bad token", h.Logout(t.Context(), asBearer("x")), fault.Unauthenticated)

	h.shut()
	h = openHouse(t, path, nil)
	check("after a restart")
	if err := h.Logout(t.Context(), asBearer(one.Token)); err != nil {
		t.Errorf("again after a restart: %v", err)
	}

	h.now = h.now.Add(25 * time.Hour)
	wantKind(t, "expired meanwhile", h.Logout(t.Context(), asBearer(two.Token)), fault.Unauthenticated)
	fresh, err := h.Login(t.Context(), "ana@example.com", goodPassword)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Logout(t.Context(), asBearer(fresh.Token)); err != nil { // sweeps what is over
		t.Fatal(err)
	}
	var left []gateway.Ending
	if err := h.storage.Read(t.Context(), func(v gateway.View) (err error) {
		left, err = v.Endings(0)
		return err
	}); err != nil || len(left) != 1 {
		t.Errorf("kept: %v, %v", left, err)
	}
}

func TestASecretOfItsOwn(t *testing.T) {
	none := func(o *gateway.Options) { o.SessionSecret = nil }
	one, two := newHouse(t, none), newHouse(t, none)
	in := one.user(t, "ana@example.com", "")
	if _, err := one.Session(in.Token); err != nil {
		t.Error(err)
	}
	_, err := two.Session(in.Token)
	wantKind(t, "another process", err, fault.Unauthenticated)
	_, err = two.Session(two.handMade(t, jwt.SigningMethodHS256, []byte{}, nil))
	wantKind(t, "the empty secret", err, fault.Unauthenticated)
}

func FuzzSession(f *testing.F) {
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.")
	f.Add(strings.Repeat(".", 100))
	s := newHouse(f, nil)
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := s.Session(token); err == nil {
			t.Errorf("%q was let in", token)
		}
	})
}

func BenchmarkSession(b *testing.B) {
	h := newHouse(b, nil)
	in, err := h.Signup(b.Context(), gateway.Signup{Email: "a@example.com", Password: goodPassword, Vouched: true})
	if err != nil {
		b.Fatal(err)
	}
	c := asBearer(in.Token)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Identify(b.Context(), c, h.now); err != nil {
			b.Fatal(err)
		}
	}
}
