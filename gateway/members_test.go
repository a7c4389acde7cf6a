package gateway_test

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"holdfast/fault"
	"holdfast/gateway"
)

func TestOnboard(t *testing.T) {
	h := newHouse(t, nil)
	in := h.user(t, "ana@example.com", "")
	shop, err := h.Onboard(t.Context(), in.Session, "Ana's shop")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^merchant_[0-9a-f]{12}$`).MatchString(string(shop.Session.Merchant)) || shop.Session.Role != gateway.RoleAdmin ||
		len(shop.Members) != 1 || shop.Members[0].Name != "Ana's shop" {
		t.Errorf("%+v", shop)
	}
	members, err := h.MembersOf(t.Context(), shop.Session)
	if err != nil || len(members) != 1 || members[0] != (gateway.Member{UserID: in.Session.UserID, Email: "ana@example.com", Role: gateway.RoleAdmin}) {
		t.Errorf("%+v, %v", members, err)
	}
	for _, name := range []string{"", strings.Repeat("n", 257), "a\x00b", "a\nb"} {
		_, err := h.Onboard(t.Context(), in.Session, name)
		wantKind(t, "a bad name", err, fault.Invalid)
	}
	stranger, err := h.Session(h.handMadeHS256(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Onboard(t.Context(), stranger, "Mine")
	wantKind(t, "a user who is not stored", err, fault.NotFound)
	_, err = h.MembersOf(t.Context(), in.Session)
	wantKind(t, "members of nothing", err, fault.Invalid)
	_, err = h.MembersOf(t.Context(), stranger)
	wantKind(t, "members of a merchant that is gone", err, fault.NotFound)
}

func TestInvite(t *testing.T) {
	h := newHouse(t, func(o *gateway.Options) { o.Sessions.SuperAdmins = []string{"boss@example.com"} })
	h.merchant(t, "shop")
	h.merchant(t, "other")
	ana, other := h.user(t, "ana@example.com", "shop"), h.user(t, "olu@example.com", "other")
	got, err := h.Invite(t.Context(), ana.Session, "Bo@Example.com", gateway.RoleMember)
	if err != nil || !got.New || got.Email != "bo@example.com" || got.Role != gateway.RoleMember {
		t.Fatalf("%+v, %v", got, err)
	}
	bo, err := h.Login(t.Context(), "bo@example.com", got.Password)
	if err != nil || bo.Session.Merchant != "shop" || bo.Session.Role != gateway.RoleMember {
		t.Fatalf("%+v, %v", bo, err)
	}
	_, err = h.Invite(t.Context(), bo.Session, "cy@example.com", gateway.RoleAdmin)
	wantKind(t, "a member invites", err, fault.Forbidden)
	_, err = h.Invite(t.Context(), ana.Session, "bo@example.com", gateway.RoleAdmin)
	wantKind(t, "a member already", err, fault.Conflict)

	got, err = h.Invite(t.Context(), ana.Session, "olu@example.com", gateway.RoleAdmin)
	if err != nil || got.New || got.Password != "" || got.Role != gateway.RoleAdmin {
		t.Errorf("one who exists: %+v, %v", got, err)
	}
	if in, err := h.SwitchMerchant(t.Context(), other.Session, "shop"); err != nil || in.Session.Role != gateway.RoleAdmin {
		t.Errorf("the one who exists: %+v, %v", in, err)
	}
	_, err = h.Invite(t.Context(), ana.Session, "boss@example.com", gateway.RoleMember)
	wantKind(t, "a super admin's e-mail", err, fault.Forbidden)
	_, err = h.Invite(t.Context(), ana.Session, "no address", gateway.RoleMember)
	wantKind(t, "no address", err, fault.Invalid)
	if members, err := h.MembersOf(t.Context(), ana.Session); err != nil || len(members) != 3 || members[1].Email != "bo@example.com" {
		t.Errorf("%+v, %v", members, err)
	}
}

func TestMembersAreBounded(t *testing.T) {
	h := newHouse(t, nil)
	h.merchant(t, "shop")
	ana := h.user(t, "ana@example.com", "shop")
	err := h.storage.Write(t.Context(), gateway.Write{Change: func(tx gateway.Tx) error {
		for i := range 999 {
			id := strconv.Itoa(i)
			if err := errors.Join(tx.CreateUser(gateway.UserRow{ID: id, Email: id}), tx.Join(id, "shop", gateway.RoleMember, 0)); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Invite(t.Context(), ana.Session, "one@example.com", gateway.RoleMember)
	wantKind(t, "one more member", err, fault.Invalid)
}
