package gateway_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"holdfast/fault"
	"holdfast/gateway"
)

func TestSignup(t *testing.T) {
	h := newHouse(t, func(o *gateway.Options) { o.Sessions.SuperAdmins = []string{"Boss@Example.com"} })
	h.merchant(t, "shop")
	in := h.user(t, " Ana@Example.COM ", "shop")
	if in.Session.Email != "ana@example.com" || in.Session.Merchant != "shop" || in.Session.Role != gateway.RoleAdmin ||
		!slices.Equal(in.Members, []gateway.Membership{{Merchant: "shop", Name: "shop", Role: gateway.RoleAdmin}}) {
		t.Errorf("%+v", in)
	}
	if alone := h.user(t, "bo@example.com", ""); alone.Session.Merchant != "" || alone.Session.Role != gateway.RoleAdmin || len(alone.Members) != 0 {
		t.Errorf("%+v", alone)
	}
	for name, c := range map[string]struct {
		gateway.Signup
		kind fault.Kind
	}{
		"no secret":        {gateway.Signup{Email: "c@example.com", Password: goodPassword}, fault.Unauthenticated},
		"weak":             {gateway.Signup{Email: "c@example.com", Password: "weak", Vouched: true}, fault.Invalid},
		"unknown merchant": {gateway.Signup{Email: "c@example.com", Password: goodPassword, Merchant: "nope", Vouched: true}, fault.NotFound},
		"taken":            {gateway.Signup{Email: "ana@example.com", Password: goodPassword, Vouched: true}, fault.Conflict},
		"taken, shouted":   {gateway.Signup{Email: "ANA@EXAMPLE.COM", Password: goodPassword, Vouched: true}, fault.Conflict},
		"no address":       {gateway.Signup{Email: "ana", Password: goodPassword, Vouched: true}, fault.Invalid},
		"two addresses":    {gateway.Signup{Email: "a@b@c", Password: goodPassword, Vouched: true}, fault.Invalid},
		"a line break":     {gateway.Signup{Email: "a@b\nc", Password: goodPassword, Vouched: true}, fault.Invalid},
		"a long address":   {gateway.Signup{Email: strings.Repeat("a", 250) + "@b.io", Password: goodPassword, Vouched: true}, fault.Invalid},
		"not text":         {gateway.Signup{Email: "a\xff@b.io", Password: goodPassword, Vouched: true}, fault.Invalid},
	} {
		_, err := h.Signup(t.Context(), c.Signup)
		wantKind(t, name, err, c.kind)
	}
	if _, err := h.Signup(t.Context(), gateway.Signup{Email: "boss@example.com", Password: goodPassword, Vouched: true}); err != nil {
		t.Errorf("a super admin with the secret: %v", err)
	}
}

func TestOpenSignup(t *testing.T) {
	h := newHouse(t, func(o *gateway.Options) {
		o.Sessions.OpenSignup, o.Sessions.SuperAdmins = true, []string{"boss@example.com"}
	})
	if _, err := h.Signup(t.Context(), gateway.Signup{Email: "ana@example.com", Password: goodPassword}); err != nil {
		t.Error(err)
	}
	_, err := h.Signup(t.Context(), gateway.Signup{Email: "BOSS@example.com", Password: goodPassword})
	wantKind(t, "a super admin's e-mail, by a stranger", err, fault.Forbidden)
}

func TestOneOfTwoSignupsWins(t *testing.T) {
	h := newHouse(t, func(o *gateway.Options) { o.Sessions.Hashes = 8 })
	var all sync.WaitGroup
	results := make(chan error, 8)
	for range cap(results) {
		all.Go(func() {
			_, err := h.Signup(t.Context(), gateway.Signup{Email: "ana@example.com", Password: goodPassword, Vouched: true})
			results <- err
		})
	}
	all.Wait()
	close(results)
	won := 0
	for err := range results {
		if err == nil {
			won++
		} else if fault.KindOf(err) != fault.Conflict {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d signed up", won)
	}
}

func TestLogin(t *testing.T) {
	h := newHouse(t, nil)
	h.merchant(t, "shop")
	h.user(t, "ana@example.com", "shop")
	for _, email := range []string{"ana@example.com", "ANA@example.com", " ana@Example.com\t"} {
		in, err := h.Login(t.Context(), email, goodPassword)
		if err != nil || in.Session.Merchant != "shop" || len(in.Members) != 1 {
			t.Errorf("%q: %+v, %v", email, in, err)
		}
	}
	wrong := map[string][2]string{
		"a wrong password":  {"ana@example.com", goodPassword + "x"},
		"no password":       {"ana@example.com", ""},
		"an unknown user":   {"bo@example.com", goodPassword},
		"no address at all": {"%", goodPassword},
		"SQL":               {"' OR 1=1 --@x.io", goodPassword},
	}
	said := ""
	for name, c := range wrong {
		_, err := h.Login(t.Context(), c[0], c[1])
		wantKind(t, name, err, fault.Unauthenticated)
		if text := fault.MessageOf(err); said != "" && text != said {
			t.Errorf("%s tells more: %q, elsewhere %q", name, text, said)
		} else {
			said = text
		}
	}
}

func TestPasswordsAreKeptAsHashesOnly(t *testing.T) {
	h := newHouse(t, nil)
	h.user(t, "ana@example.com", "")
	var row gateway.UserRow
	if err := h.storage.Read(t.Context(), func(v gateway.View) (err error) {
		row, err = v.UserByEmail("ana@example.com")
		return err
	}); err != nil || !strings.HasPrefix(row.Hash, "$2a$") || strings.Contains(row.Hash, goodPassword) {
		t.Errorf("%+v, %v", row, err)
	}
}

func TestMe(t *testing.T) {
	h := newHouse(t, func(o *gateway.Options) {
		o.Sessions.EmailVerification, o.Sessions.SuperAdmins = true, []string{"boss@example.com"}
	})
	h.merchant(t, "shop")
	ana, boss := h.user(t, "ana@example.com", "shop"), h.user(t, "boss@example.com", "")
	me, err := h.Me(t.Context(), ana.Session)
	if err != nil || me.Verified || me.SuperAdmin || len(me.Members) != 1 {
		t.Errorf("%+v, %v", me, err)
	}
	if me, err = h.Me(t.Context(), boss.Session); err != nil || !me.SuperAdmin {
		t.Errorf("%+v, %v", me, err)
	}
	session, err := h.Session(h.handMadeHS256(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if me, err = h.Me(t.Context(), session); err != nil || me.Session.UserID != "u1" || len(me.Members) != 0 {
		t.Errorf("a session made elsewhere: %+v, %v", me, err)
	}
}

func TestSwitchMerchant(t *testing.T) {
	h := newHouse(t, nil)
	h.merchant(t, "one")
	h.merchant(t, "two")
	in := h.user(t, "ana@example.com", "one")
	other, err := h.Onboard(t.Context(), in.Session, "Another")
	if err != nil {
		t.Fatal(err)
	}
	back, err := h.SwitchMerchant(t.Context(), other.Session, "one")
	if err != nil || back.Session.Merchant != "one" || back.Token == in.Token || len(back.Members) != 2 {
		t.Errorf("%+v, %v", back, err)
	}
	for _, m := range []gateway.MerchantID{"two", "nope", ""} {
		_, err := h.SwitchMerchant(t.Context(), in.Session, m)
		wantKind(t, "switching to "+string(m), err, fault.NotFound)
	}
	if p, err := h.Identify(t.Context(), asBearer(other.Token), h.now); err != nil || h.Covers(p, other.Session.Merchant) != nil ||
		h.Covers(p, "one") == nil {
		t.Errorf("the session at the other merchant reaches further: %+v, %v", p, err)
	}
}

// A session that may only read must not beget one that may write.
func TestPermissionsAreInherited(t *testing.T) {
	h := newHouse(t, func(o *gateway.Options) { o.Sessions.SuperAdmins = []string{"ana@example.com"} })
	h.merchant(t, "shop")
	in := h.user(t, "ana@example.com", "shop")
	session, err := h.Session(h.handMadeHS256(t, jwt.MapClaims{"sub": in.Session.UserID, "user_id": in.Session.UserID,
		"email": "ana@example.com", "perms": []string{"routing:read"}}))
	if err != nil {
		t.Fatal(err)
	}
	for name, next := range map[string]func() (gateway.SignedIn, error){
		"switch": func() (gateway.SignedIn, error) { return h.SwitchMerchant(t.Context(), session, "shop") },
		"enter":  func() (gateway.SignedIn, error) { return h.EnterMerchant(t.Context(), session, "shop") },
		"exit":   func() (gateway.SignedIn, error) { return h.ExitMerchant(t.Context(), session) },
	} {
		got, err := next()
		if err != nil {
			t.Fatal(err)
		}
		p, err := h.Identify(t.Context(), asBearer(got.Token), h.now)
		if err != nil || gateway.Reads(p) != nil || gateway.Writes(p) == nil {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	_, err = h.Onboard(t.Context(), session, "Mine")
	wantKind(t, "onboarding", err, fault.Forbidden)
	_, err = h.Invite(t.Context(), session, "x@example.com", gateway.RoleAdmin)
	wantKind(t, "inviting", err, fault.Forbidden)
}

func TestSessionsEndByThemselves(t *testing.T) {
	h := newHouse(t, func(o *gateway.Options) { o.Sessions.Life = time.Hour })
	in := h.user(t, "ana@example.com", "")
	h.now = h.now.Add(time.Hour - time.Second)
	if _, err := h.Session(in.Token); err != nil {
		t.Error(err)
	}
	h.now = h.now.Add(time.Second)
	_, err := h.Session(in.Token)
	wantKind(t, "after its life", err, fault.Unauthenticated)
}
