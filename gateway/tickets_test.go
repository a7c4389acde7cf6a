package gateway_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"holdfast/fault"
	"holdfast/gateway"
)

const nextPassword = "Battery-Staple-8"

func (h *house) ticket(t *testing.T, email string, use gateway.TicketUse) string {
	t.Helper()
	ticket, life, err := h.IssueTicket(t.Context(), email, use)
	if err != nil || len(ticket) != 64 || life <= 0 || life > time.Hour {
		t.Fatalf("%q for %v, %v", ticket, life, err)
	}
	return ticket
}

func (h *house) open(t *testing.T, what, token string, want bool) {
	t.Helper()
	if _, err := h.Session(token); (err == nil) != want {
		t.Errorf("%s: %v, want open %v", what, err, want)
	}
}

func TestResetPassword(t *testing.T) {
	path := t.TempDir() + "/gateways.db"
	h := openHouse(t, path, nil)
	in, other := h.user(t, "ana@example.com", ""), h.user(t, "bo@example.com", "")
	stale := h.ticket(t, "ana@example.com", gateway.TicketReset)
	ticket := h.ticket(t, "ANA@example.com", gateway.TicketReset) // in place of the first
	wantKind(t, "a weak password", h.ResetPassword(t.Context(), ticket, "weak"), fault.Invalid)
	wantKind(t, "an older ticket", h.ResetPassword(t.Context(), stale, nextPassword), fault.Invalid)
	wantKind(t, "no ticket", h.ResetPassword(t.Context(), "", nextPassword), fault.Invalid)
	wantKind(t, "the hash of it", h.ResetPassword(t.Context(), gateway.HashOf(ticket), nextPassword), fault.Invalid)
	wantKind(t, "for another use", h.VerifyEmail(t.Context(), ticket), fault.Invalid)
	h.open(t, "before", in.Token, true)
	if err := h.ResetPassword(t.Context(), ticket, nextPassword); err != nil {
		t.Fatal(err)
	}
	wantKind(t, "twice", h.ResetPassword(t.Context(), ticket, nextPassword), fault.Invalid)
	h.open(t, "a session of before", in.Token, false)
	h.open(t, "another's", other.Token, true)
	_, err := h.Login(t.Context(), "ana@example.com", goodPassword)
	wantKind(t, "the old password", err, fault.Unauthenticated)
	fresh, err := h.Login(t.Context(), "ana@example.com", nextPassword) // in the same second
	if err != nil {
		t.Fatal(err)
	}
	h.open(t, "a session of after", fresh.Token, true)

	h.shut()
	h = openHouse(t, path, nil)
	h.open(t, "a session of before, after a restart", in.Token, false)
	h.open(t, "a session of after, after a restart", fresh.Token, true)
}

func TestTicketsExpire(t *testing.T) {
	h := newHouse(t, func(o *gateway.Options) { o.Sessions.EmailVerification = true })
	h.user(t, "ana@example.com", "")
	reset, verify := h.ticket(t, "ana@example.com", gateway.TicketReset), h.ticket(t, "ana@example.com", gateway.TicketVerify)
	h.now = h.now.Add(30 * time.Minute)
	wantKind(t, "reset, too late", h.ResetPassword(t.Context(), reset, nextPassword), fault.Invalid)
	wantKind(t, "verify, too late", h.VerifyEmail(t.Context(), verify), fault.Invalid)
}

func TestTicketsAreKeptAsHashesOnly(t *testing.T) {
	h := newHouse(t, nil)
	h.user(t, "ana@example.com", "")
	ticket := h.ticket(t, "ana@example.com", gateway.TicketReset)
	err := h.storage.Read(t.Context(), func(v gateway.View) error {
		if _, err := v.Ticket(ticket); fault.KindOf(err) != fault.NotFound {
			return errors.New("found by itself")
		}
		row, err := v.Ticket(gateway.HashOf(ticket))
		if err == nil && strings.Contains(row.Hash, ticket) {
			return errors.New("kept")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		email string
		use   gateway.TicketUse
		kind  fault.Kind
	}{
		"nobody":      {"bo@example.com", gateway.TicketReset, fault.NotFound},
		"no address":  {"bo", gateway.TicketReset, fault.Invalid},
		"another use": {"ana@example.com", "root", fault.Invalid},
		"no use":      {"ana@example.com", "", fault.Invalid},
	} {
		_, _, err := h.IssueTicket(t.Context(), c.email, c.use)
		wantKind(t, name, err, c.kind)
	}
}

func TestVerifyEmail(t *testing.T) {
	h := newHouse(t, func(o *gateway.Options) { o.Sessions.EmailVerification = true })
	in := h.user(t, "ana@example.com", "")
	ticket := h.ticket(t, "ana@example.com", gateway.TicketVerify)
	wantKind(t, "for another use", h.ResetPassword(t.Context(), ticket, nextPassword), fault.Invalid)
	if err := h.VerifyEmail(t.Context(), ticket); err != nil {
		t.Fatal(err)
	}
	wantKind(t, "twice", h.VerifyEmail(t.Context(), ticket), fault.Invalid)
	if me, err := h.Me(t.Context(), in.Session); err != nil || !me.Verified {
		t.Errorf("%+v, %v", me, err)
	}
}

func TestChangePassword(t *testing.T) {
	h := newHouse(t, nil)
	mine := h.user(t, "ana@example.com", "")
	lost, err := h.Login(t.Context(), "ana@example.com", goodPassword)
	if err != nil {
		t.Fatal(err)
	}
	pending := h.ticket(t, "ana@example.com", gateway.TicketReset)
	wantKind(t, "a wrong current", h.ChangePassword(t.Context(), mine.Session, nextPassword, nextPassword), fault.Unauthenticated)
	wantKind(t, "a weak next", h.ChangePassword(t.Context(), mine.Session, goodPassword, "weak"), fault.Invalid)
	if err := h.ChangePassword(t.Context(), mine.Session, goodPassword, nextPassword); err != nil {
		t.Fatal(err)
	}
	h.open(t, "the session that asked", mine.Token, true)
	h.open(t, "the other one", lost.Token, false)
	wantKind(t, "a ticket of before", h.ResetPassword(t.Context(), pending, goodPassword), fault.Invalid)
	_, err = h.Login(t.Context(), "ana@example.com", goodPassword)
	wantKind(t, "the old password", err, fault.Unauthenticated)
	if _, err := h.Login(t.Context(), "ana@example.com", nextPassword); err != nil {
		t.Error(err)
	}
	stranger, err := h.Session(h.handMadeHS256(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, "a user who is not stored", h.ChangePassword(t.Context(), stranger, goodPassword, nextPassword), fault.NotFound)
}
