package gateway_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/ident"
	"holdfast/store"
	"holdfast/store/gateways"
)

const (
	adminSecret   = "the-admin-secret"
	sessionSecret = "the-session-secret-of-the-tests!"
	goodPassword  = "Correct-Horse-7"
)

// house is a service on a real store, as people use it.
type house struct {
	*gateway.Service
	storage *gateways.Gateways
	now     time.Time // what the service takes for now
	shut    func()
}

// openHouse opens a service on a store in path. Its clock stands still until a test moves it.
func openHouse(t testing.TB, path string, change func(*gateway.Options)) *house {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: path, Migrations: gateways.Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{storage: gateways.New(db), now: time.Date(2026, 3, 1, 12, 0, 0, 500e6, time.UTC)}
	o := gateway.Options{Storage: h.storage, Now: func() time.Time { return h.now }, AdminSecret: adminSecret, SessionSecret: []byte(sessionSecret)}
	o.Sessions.PasswordCost = bcrypt.MinCost
	if change != nil {
		change(&o)
	}
	if h.Service, err = gateway.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	h.shut = sync.OnceFunc(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := db.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(h.shut)
	return h
}

// newHouse opens a service on a fresh store.
func newHouse(t testing.TB, change func(*gateway.Options)) *house {
	t.Helper()
	return openHouse(t, t.TempDir()+"/gateways.db", change)
}

// merchant stores a merchant.
func (h *house) merchant(t testing.TB, id gateway.MerchantID) {
	t.Helper()
	err := h.storage.Write(t.Context(), gateway.Write{Change: func(tx gateway.Tx) error {
		_, err := tx.CreateMerchant(gateway.MerchantRow{ID: id, Enabled: true})
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// user signs a user up, as an admin of the merchant when there is one.
func (h *house) user(t testing.TB, email string, m gateway.MerchantID) gateway.SignedIn {
	t.Helper()
	in, err := h.Signup(t.Context(), gateway.Signup{Email: email, Password: goodPassword, Merchant: m, Vouched: true})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func asBearer(token string) gateway.Credentials {
	return gateway.Credentials{Authorization: "Bearer " + token, HasAuthorization: true}
}

func wantKind(t *testing.T, what string, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != want {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func TestOrderOfCredentials(t *testing.T) {
	h := newHouse(t, nil)
	h.merchant(t, "shop")
	in := h.user(t, "ana@example.com", "shop")
	good := asBearer(in.Token)
	for name, c := range map[string]struct {
		gateway.Credentials
		kind ident.Kind
		ok   bool
	}{
		"nothing":                          {gateway.Credentials{}, 0, false},
		"a session":                        {good, ident.Token, true},
		"the scheme in any case":           {gateway.Credentials{Authorization: "bearer  " + in.Token, HasAuthorization: true}, ident.Token, true},
		"a bearer without a token":         {gateway.Credentials{Authorization: "Bearer", HasAuthorization: true, AdminSecret: adminSecret, HasAdminSecret: true}, 0, false},
		"a bad bearer beside the secret":   {gateway.Credentials{Authorization: "Bearer x", HasAuthorization: true, AdminSecret: adminSecret, HasAdminSecret: true}, 0, false},
		"a good bearer beside a bad one":   {gateway.Credentials{Authorization: good.Authorization, HasAuthorization: true, AdminSecret: "x", HasAdminSecret: true}, ident.Token, true},
		"the secret":                       {gateway.Credentials{AdminSecret: adminSecret, HasAdminSecret: true}, ident.Operator, true},
		"another scheme beside the secret": {gateway.Credentials{Authorization: "Basic eDp5", HasAuthorization: true, AdminSecret: adminSecret, HasAdminSecret: true}, ident.Operator, true},
		"another scheme alone":             {gateway.Credentials{Authorization: "Basic eDp5", HasAuthorization: true}, 0, false},
		"a wrong secret":                   {gateway.Credentials{AdminSecret: adminSecret + "x", HasAdminSecret: true}, 0, false},
		"an empty secret":                  {gateway.Credentials{HasAdminSecret: true}, 0, false},
		"an unknown key":                   {gateway.Credentials{APIKey: "DE_00"}, 0, false},
	} {
		p, err := h.Identify(t.Context(), c.Credentials, h.now)
		if (err == nil) != c.ok || p.Kind != c.kind {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if err != nil && fault.KindOf(err) != fault.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWithoutASecretNobodyIsTheOperator(t *testing.T) {
	h := newHouse(t, func(o *gateway.Options) { o.AdminSecret = "" })
	_, err := h.Identify(t.Context(), gateway.Credentials{HasAdminSecret: true}, h.now)
	wantKind(t, "an empty secret against an empty one", err, fault.Unauthenticated)
}

func TestKeysOffStillChecksWhatIsShown(t *testing.T) {
	h := newHouse(t, func(o *gateway.Options) { o.Deployment.APIKeysOff = true })
	if p, err := h.Identify(t.Context(), gateway.Credentials{APIKey: "anything"}, h.now); err != nil || p.Kind != ident.DevMode {
		t.Errorf("%+v, %v", p, err)
	}
	_, err := h.Identify(t.Context(), asBearer("x"), h.now)
	wantKind(t, "a bad bearer", err, fault.Unauthenticated)
	_, err = h.Identify(t.Context(), gateway.Credentials{HasAdminSecret: true, AdminSecret: "x"}, h.now)
	wantKind(t, "a bad secret", err, fault.Unauthenticated)
}

func TestCovers(t *testing.T) {
	token := func(m string) ident.Principal {
		return ident.Principal{Kind: ident.Token, ID: "k", Scope: ident.Scope{Role: ident.TenantAdmin, Tenant: m}}
	}
	wide := token("a")
	wide.Wide = true
	strict := newHouse(t, nil)
	permissive := newHouse(t, func(o *gateway.Options) { o.Permissive = true })
	for name, c := range map[string]struct {
		p                  ident.Principal
		m                  gateway.MerchantID
		strict, permissive bool
	}{
		"its own":                  {token("a"), "a", true, true},
		"another's":                {token("a"), "b", false, true},
		"another case":             {token("a"), "A", false, true},
		"none of none":             {token(""), "", false, true},
		"a prefix":                 {token("ab"), "a", false, true},
		"a super admin's view":     {wide, "b", true, true},
		"the operator":             {ident.Principal{Kind: ident.Operator}, "b", true, true},
		"authentication off":       {ident.Principal{Kind: ident.DevMode}, "b", true, true},
		"nobody":                   {ident.Principal{}, "a", false, false},
		"nobody with a scope":      {ident.Principal{Scope: ident.Scope{Role: ident.Admin, Tenant: "a"}}, "a", false, false},
		"a reader's own":           {ident.Principal{Kind: ident.Token, Scope: ident.Scope{Role: ident.Reader, Tenant: "a"}}, "a", true, true},
		"an admin scope elsewhere": {ident.Principal{Kind: ident.Token, Scope: ident.Scope{Role: ident.Admin, Tenant: "a"}}, "b", false, true},
	} {
		if err := strict.Covers(c.p, c.m); (err == nil) != c.strict {
			t.Errorf("%s: %v", name, err)
		} else if err != nil && c.p.Kind == ident.Token && fault.KindOf(err) != fault.Forbidden {
			t.Errorf("%s: %v", name, err)
		}
		if err := permissive.Covers(c.p, c.m); (err == nil) != c.permissive {
			t.Errorf("%s, permissive: %v", name, err)
		}
	}
}

func TestPermissions(t *testing.T) {
	role := func(r ident.Role) ident.Principal {
		return ident.Principal{Kind: ident.Token, Scope: ident.Scope{Role: r}}
	}
	for name, c := range map[string]struct {
		p           ident.Principal
		read, write bool
	}{
		"all":      {role(ident.TenantAdmin), true, true},
		"read":     {role(ident.Reader), true, false},
		"none":     {role(ident.NoRole), false, false},
		"operator": {ident.Principal{Kind: ident.Operator}, true, true},
		"off":      {ident.Principal{Kind: ident.DevMode}, true, true},
		"nobody":   {ident.Principal{}, false, false},
	} {
		if err := gateway.Reads(c.p); (err == nil) != c.read {
			t.Errorf("%s reads: %v", name, err)
		}
		if err := gateway.Writes(c.p); (err == nil) != c.write {
			t.Errorf("%s writes: %v", name, err)
		}
	}
}

// What an API key opens, and what it never rescues.
func TestKeysBesideOtherCredentials(t *testing.T) {
	h := newHouse(t, nil)
	key, err := h.CreateMerchant(t.Context(), gateway.NewMerchant{ID: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	in := h.user(t, "ana@example.com", "shop")
	p, err := h.Identify(t.Context(), gateway.Credentials{APIKey: key}, h.now)
	if err != nil || p.Kind != ident.Token || p.Wide || p.Scope != (ident.Scope{Role: ident.TenantAdmin, Tenant: "shop"}) || p.ID == "" {
		t.Errorf("a key: %+v, %v", p, err)
	}
	if gateway.Reads(p) != nil || gateway.Writes(p) != nil || h.Covers(p, "shop") != nil || h.Covers(p, "other") == nil {
		t.Errorf("what a key opens: %+v", p)
	}
	for name, c := range map[string]gateway.Credentials{
		"a bad bearer":        {Authorization: "Bearer x", HasAuthorization: true, APIKey: key},
		"an empty bearer":     {Authorization: "Bearer ", HasAuthorization: true, APIKey: key},
		"a tampered session":  {Authorization: "Bearer " + in.Token + "x", HasAuthorization: true, APIKey: key},
		"a wrong secret":      {AdminSecret: "x", HasAdminSecret: true, APIKey: key},
		"the key as a bearer": {Authorization: "Bearer " + key, HasAuthorization: true, APIKey: key},
	} {
		_, err := h.Identify(t.Context(), c, h.now)
		wantKind(t, name+" beside a good key", err, fault.Unauthenticated)
	}
	if p, err := h.Identify(t.Context(), gateway.Credentials{Authorization: "Basic x", HasAuthorization: true, APIKey: key}, h.now); err != nil || p.Scope.Tenant != "shop" {
		t.Errorf("another scheme beside a good key: %+v, %v", p, err)
	}
}

// A merchant's sessions, members and codes go with it, and do not come back with one that takes its name.
func TestADeletedMerchantTakesItsSessionsWithIt(t *testing.T) {
	path := t.TempDir() + "/gateways.db"
	h := openHouse(t, path, nil)
	if _, err := h.CreateMerchant(t.Context(), gateway.NewMerchant{ID: "shop"}); err != nil {
		t.Fatal(err)
	}
	in := h.user(t, "ana@example.com", "shop")
	if err := h.DeleteMerchant(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	h.open(t, "after", in.Token, false)
	if _, err := h.CreateMerchant(t.Context(), gateway.NewMerchant{ID: "shop"}); err != nil {
		t.Fatal(err)
	}
	h.open(t, "after its name came back", in.Token, false)
	again, err := h.Login(t.Context(), "ana@example.com", goodPassword)
	if err != nil || len(again.Members) != 0 || again.Session.Merchant != "" {
		t.Errorf("still a member: %+v, %v", again, err)
	}
	fresh := h.user(t, "bo@example.com", "shop") // in the same second
	h.open(t, "a member of the new one", fresh.Token, true)
	h.shut()
	h = openHouse(t, path, nil)
	h.open(t, "after a restart", in.Token, false)
	h.open(t, "a member of the new one after a restart", fresh.Token, true)
}

func BenchmarkIdentifyKey(b *testing.B) {
	h := newHouse(b, nil)
	key, err := h.CreateMerchant(b.Context(), gateway.NewMerchant{ID: "shop"})
	if err != nil {
		b.Fatal(err)
	}
	c := gateway.Credentials{APIKey: key}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Identify(b.Context(), c, h.now); err != nil {
			b.Fatal(err)
		}
	}
}
