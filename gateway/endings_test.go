package gateway

import (
	"strconv"
	"testing"
	"time"
)

func TestEndings(t *testing.T) {
	var e endings
	e.open()
	now := time.Unix(1_000_000, 0)
	at := func(seconds int64) *Session {
		return &Session{ID: "s" + strconv.FormatInt(seconds, 10), UserID: "u", Merchant: "m", Issued: now.Add(time.Duration(seconds) * time.Second),
			Expires: now.Add(time.Hour)}
	}
	if e.covers(at(0)) {
		t.Error("nothing has ended")
	}
	e.add(e.one(at(-5)), now)
	if !e.covers(at(-5)) || e.covers(at(-4)) {
		t.Error("one session ended, and no other")
	}
	e.add(endOfUser("u", "s-3", now, time.Hour), now)
	for seconds, over := range map[int64]bool{-100: true, -3: false, 0: true, 1: false} {
		if e.covers(at(seconds)) != over {
			t.Errorf("made at %d: over is %v", seconds, !over)
		}
	}
	if made := e.after(at(0), now); made.Unix() != now.Unix()+1 {
		t.Errorf("a session of this second counts as of %v", made)
	}
	if made := e.after(at(0), now.Add(time.Minute)); made.Unix() != now.Unix()+60 {
		t.Errorf("a later session counts as of %v", made)
	}
	other := at(0)
	other.UserID = "v"
	if e.covers(other) {
		t.Error("another user's session ended")
	}
	e.add(endOfMerchant("m", now, time.Hour), now)
	if !e.covers(other) || e.after(other, now).Unix() != now.Unix()+1 {
		t.Error("the merchant's sessions live on")
	}
}

func TestEndingsUnderOneKey(t *testing.T) {
	first := Ending{Key: "user/u", Before: 10, Except: "a", Until: 50}
	for _, c := range []struct{ next, want Ending }{
		{Ending{Key: "user/u", Before: 20, Except: "b", Until: 40}, Ending{Key: "user/u", Before: 20, Except: "b", Until: 50}},
		{Ending{Key: "user/u", Before: 5, Until: 60}, Ending{Key: "user/u", Before: 10, Until: 60}},
		{Ending{Key: "user/u", Before: 10, Until: 60}, Ending{Key: "user/u", Before: 10, Until: 60}},
	} {
		if got := first.with(c.next); got != c.want {
			t.Errorf("%+v then %+v: %+v", first, c.next, got)
		}
	}
}

func TestAFullListEndsUsers(t *testing.T) {
	var e endings
	e.open()
	now := time.Unix(1_000_000, 0)
	for i := range endingsMost {
		e.over["session/"+strconv.Itoa(i)] = Ending{Until: now.Unix() + 10}
	}
	s := &Session{ID: "one more", UserID: "u", Issued: now, Expires: now.Add(time.Hour)}
	one := e.one(s)
	e.add(one, now)
	if one.Key != "user/u" || !e.covers(s) {
		t.Errorf("%+v", one)
	}
	later := now.Add(time.Minute)
	e.add(Ending{Key: "session/last", Until: later.Unix() + 10}, later) // sweeps
	if len(e.over) != 2 || !e.covers(s) {
		t.Errorf("%d endings are left", len(e.over))
	}
}
