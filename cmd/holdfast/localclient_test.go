package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"holdfast/decision"
	"holdfast/local"
)

// A client that decides by itself, over a socket, with a read token, against the real store and across a restart.
func TestLocalDecisions(t *testing.T) {
	r := newRig(t)
	r.capsule()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.handler.ServeHTTP(w, q) }))
	defer s.Close()
	hero := decision.CapsuleID{Tenant: "north", Job: "web", Capsule: "hero"}
	c, err := local.Open(t.Context(), local.Options{Server: s.URL, Capsule: hero, Key: r.keys["reader"], Every: -1})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		for i := range 50 {
			d, err := c.Decide(local.Request{Context: fmt.Appendf(nil, `{"i":%d,"plan":"pro"}`, i)})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Reward(local.Reward{DecisionID: d.ID, Value: float64(d.Chosen)}); err != nil {
				t.Fatal(err)
			}
		}
		if round == 0 {
			r.restart() // the publication that these were made from is still there afterwards
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := c.Stats(); got != (local.Stats{Sent: 200}) {
		t.Errorf("stats %+v", got)
	}
	stats := r.must(http.StatusOK, "GET", heroPath, "")["stats"].(map[string]any)
	if stats["decisions"] != 100.0 || stats["rewards"] != 100.0 {
		t.Errorf("the server has %v", stats)
	}
	_, err = local.Open(t.Context(), local.Options{Server: s.URL, Capsule: hero, Key: r.keys["south"], Every: -1})
	if err == nil {
		t.Error("a token of another tenant opened the capsule")
	}
}
