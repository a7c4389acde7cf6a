package main

import (
	"encoding/json/v2"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/decision"
	"holdfast/store/decisions"
)

// decisionJSON is as much of a logged decision as the tests look at.
type decisionJSON struct {
	ID          string    `json:"decisionId"`
	TimeMS      int64     `json:"tsMs"`
	Eligible    []int     `json:"eligible"`
	PMF         []float64 `json:"pmf"`
	Chosen      int       `json:"chosenIndex"`
	Action      string    `json:"action"`
	Probability float64   `json:"probability"`
	Seed        string    `json:"seed"`
	Rewards     []struct {
		Seq   int64   `json:"seq"`
		Value float64 `json:"reward"`
	} `json:"rewards"`
}

// page reads one page of the log.
func (r *rig) page(query string) (all []decisionJSON, next string) {
	r.Helper()
	w := r.ask("reader", "GET", heroPath+"/decisions?"+query, "")
	var body struct {
		Decisions []decisionJSON `json:"decisions"`
		Next      *string        `json:"next"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != http.StatusOK {
		r.Fatalf("page %s: status %d, %v: %s", query, w.Code, err, w.Body)
	}
	if body.Next != nil {
		next = *body.Next
	}
	return body.Decisions, next
}

func TestServerMadeIDs(t *testing.T) {
	r := newRig(t)
	r.capsule()
	form := regexp.MustCompile(`^dec_[0-9a-f]{11}[0-9a-f]{12}$`)
	before := time.Now().UnixMilli()
	var ids []string
	for range 50 {
		id := r.must(http.StatusOK, "POST", heroPath+"/decide", `{}`)["decisionId"].(string)
		if !form.MatchString(id) {
			t.Fatalf("id %s", id)
		}
		ms, err := strconv.ParseInt(id[4:15], 16, 64)
		if err != nil || ms < before || ms > time.Now().UnixMilli() {
			t.Errorf("id %s was made at %d", id, ms)
		}
		ids = append(ids, id[:15])
	}
	if !slices.IsSorted(ids) {
		t.Error("ids do not sort by time")
	}
}

func TestStatsCountTheQueue(t *testing.T) {
	r := newRig(t)
	r.capsule()
	for i := range 20 {
		r.must(http.StatusOK, "POST", heroPath+"/decide", `{}`)
		stats := r.must(http.StatusOK, "GET", heroPath, "")["stats"].(map[string]any)
		if stats["decisions"] != float64(i+1) {
			t.Fatalf("after %d decides the capsule counts %v", i+1, stats["decisions"])
		}
	}
}

func TestQueuedDecisionsTakeRewards(t *testing.T) {
	r := newRig(t)
	r.capsule()
	for i := range 20 {
		id := r.must(http.StatusOK, "POST", heroPath+"/decide", `{}`)["decisionId"].(string)
		got := r.must(http.StatusOK, "POST", heroPath+"/reward", `{"decisionId":"`+id+`","reward":1}`)
		if got["applied"] != true || got["modelVersion"] != float64(i+1) {
			t.Fatalf("reward %d: %v", i, got)
		}
	}
}

func TestSpecSurvivesARestart(t *testing.T) {
	r := newRig(t)
	put := r.ask("operator", "PUT", heroPath+"/spec", `{"actions":[{"id":"a","features":{"x":1.50}}],"seed":18446744073709551615}`).Body.String()
	got := r.ask("reader", "GET", heroPath+"/spec", "").Body.String()
	r.restart()
	if again := r.ask("reader", "GET", heroPath+"/spec", "").Body.String(); put != got || got != again || !strings.Contains(got, "18446744073709551615") {
		t.Errorf("put:\n%s\nread:\n%s\nafter a restart:\n%s", put, got, again)
	}
}

func TestReplayAfterRestart(t *testing.T) {
	r := newRig(t)
	r.capsule()
	const body = `{"eventId":"order:42","context":{"a":1}}`
	first := r.must(http.StatusOK, "POST", heroPath+"/decide", body)
	r.restart()
	again := r.must(http.StatusOK, "POST", heroPath+"/decide", body)
	if again["replayed"] != true || again["action"] != first["action"] || again["probability"] != first["probability"] {
		t.Errorf("first %v, after a restart %v", first, again)
	}
	w := r.ask("reader", "POST", heroPath+"/decide", `{"eventId":"order:42"}`)
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "already used for a different request") {
		t.Errorf("other bytes: status %d: %s", w.Code, w.Body)
	}
}

// TestLoggedDecisionsReplay draws every logged decision again from its record.
func TestLoggedDecisionsReplay(t *testing.T) {
	r := newRig(t)
	r.must(http.StatusCreated, "PUT", heroPath+"/spec", `{"actions":[{"id":"a"},{"id":"b"},{"id":"c"}],"learner":{"bits":12}}`)
	for i := range 60 {
		a := r.must(http.StatusOK, "POST", heroPath+"/decide", fmt.Sprintf(`{"context":{"n":%d},"excludedActions":["%c"]}`, i%3, "abc"[i%3]))
		reward := 0
		if a["action"] == "b" {
			reward = 1
		}
		r.must(http.StatusOK, "POST", heroPath+"/reward", fmt.Sprintf(`{"decisionId":%q,"reward":%d}`, a["decisionId"], reward))
	}
	all, _ := r.page("limit=1000")
	if len(all) != 60 {
		t.Fatalf("%d decisions are logged", len(all))
	}
	for _, d := range all {
		seed, err := strconv.ParseUint(d.Seed, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		at := decision.Draw(d.PMF, seed)
		if d.Eligible[at] != d.Chosen || d.PMF[at] != d.Probability {
			t.Errorf("%s chose %d with %v; its record draws %d with %v", d.ID, d.Chosen, d.Probability, d.Eligible[at], d.PMF[at])
		}
	}
}

func TestGovernedDecides(t *testing.T) {
	r := newRig(t)
	r.capsule()
	r.must(http.StatusOK, "POST", heroPath+"/decide?learn=true", `{"eventId":"governed"}`)
	r.must(http.StatusOK, "POST", heroPath+"/decide", `{"eventId":"durable","durable":true}`)
	if w := r.ask("reader", "POST", heroPath+"/decide?learn=true", `{}`); w.Code != http.StatusOK {
		t.Errorf("a read token asking for learn=true: status %d", w.Code)
	}
	// On disk when it is answered: another reader of the same file sees it without this program's queue.
	count := 0
	err := decisions.New(r.house.db).Read(t.Context(), func(v decision.View) error {
		row, err := v.Capsule(decision.CapsuleID{Tenant: "north", Job: "web", Capsule: "hero"})
		count = int(row.Decisions)
		return err
	})
	if err != nil || count < 2 {
		t.Errorf("%d decisions are on disk, %v", count, err)
	}
}

func TestPagesCoverTheLog(t *testing.T) {
	r := newRig(t)
	r.capsule()
	const total = 57
	for range total {
		r.must(http.StatusOK, "POST", heroPath+"/decide", `{}`)
	}
	whole, next := r.page("limit=1000")
	if len(whole) != total || next != "" {
		t.Fatalf("%d decisions, next %q", len(whole), next)
	}
	for _, order := range []string{"oldest", "newest"} {
		var walked []decisionJSON
		for after := ""; ; {
			query := "limit=10&order=" + order
			if after != "" {
				query += "&after=" + after
			}
			page, next := r.page(query)
			walked = append(walked, page...)
			if after = next; next == "" {
				break
			}
			if len(page) != 10 {
				t.Fatalf("a page of %d says where to go on", len(page))
			}
		}
		if order == "newest" {
			slices.Reverse(walked)
		}
		if !slices.EqualFunc(walked, whole, func(a, b decisionJSON) bool { return a.ID == b.ID }) {
			t.Errorf("%s: %d decisions in pages, %d at once", order, len(walked), total)
		}
	}
	middle := whole[total/2]
	late, _ := r.page(fmt.Sprintf("limit=1000&since=%d", middle.TimeMS))
	early, _ := r.page(fmt.Sprintf("limit=1000&until=%d", middle.TimeMS))
	if len(late)+len(early) != total || slices.ContainsFunc(early, func(d decisionJSON) bool { return d.TimeMS >= middle.TimeMS }) {
		t.Errorf("%d since and %d until the middle of %d", len(late), len(early), total)
	}
	for query, want := range map[string]int{"limit=0": 1, "limit=-5": 1, "limit=5000": total, "": total} {
		if page, _ := r.page(query); len(page) != want {
			t.Errorf("%q: %d decisions, want %d", query, len(page), want)
		}
	}
}

func TestErasedLogsKeepTheModel(t *testing.T) {
	r := newRig(t)
	r.capsule()
	for i := range 10 {
		r.must(http.StatusOK, "POST", heroPath+"/decide", fmt.Sprintf(`{"eventId":"e%d"}`, i))
		r.must(http.StatusOK, "POST", heroPath+"/reward", fmt.Sprintf(`{"decisionId":"e%d","reward":1}`, i))
	}
	model := func() string {
		r.Helper()
		got := r.must(http.StatusOK, "GET", heroPath+"/model", "")
		return fmt.Sprint(got["modelVersion"])
	}
	r.must(http.StatusOK, "DELETE", heroPath+"/logs", "")
	if got := model(); got != "10" {
		t.Errorf("model version %s", got)
	}
	r.restart()
	if got := model(); got != "10" {
		t.Errorf("model version %s after a restart", got)
	}
	if all, _ := r.page(""); len(all) != 0 {
		t.Errorf("%d decisions came back", len(all))
	}
	if a := r.must(http.StatusOK, "POST", heroPath+"/decide", `{"eventId":"e1"}`); a["replayed"] != nil {
		t.Error("an erased event is remembered")
	}
}

func TestDeletedCapsulesStayAway(t *testing.T) {
	r := newRig(t)
	r.capsule()
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if w := r.ask("operator", "POST", heroPath+"/decide", `{}`); w.Code != http.StatusOK && w.Code != http.StatusNotFound {
						t.Errorf("status %d: %s", w.Code, w.Body)
						return
					}
				}
			}
		})
	}
	r.must(http.StatusOK, "DELETE", heroPath, "")
	r.must(http.StatusNotFound, "DELETE", heroPath, "")
	close(stop)
	all.Wait()
	r.must(http.StatusNotFound, "GET", heroPath, "")
	r.restart()
	r.must(http.StatusNotFound, "GET", heroPath, "")
	r.capsule()
	if stats := r.must(http.StatusOK, "GET", heroPath, "")["stats"].(map[string]any); stats["decisions"] != 0.0 {
		t.Errorf("the new capsule has decisions of the old one: %v", stats)
	}
}

func TestTokens(t *testing.T) {
	r := newRig(t)
	r.capsule()
	issued := r.must(http.StatusOK, "POST", "/v1/admin/tokens",
		`{"scope":{"kind":"read","tenant":"north","job":"web","capsule":"hero"},"ttlSeconds":60,"label":"checkout"}`)
	secret, hash := issued["token"].(string), issued["hash"].(string)
	r.keys["fresh"] = secret
	if w := r.ask("fresh", "POST", heroPath+"/decide", `{}`); w.Code != http.StatusOK {
		t.Errorf("a fresh token: status %d", w.Code)
	}
	list := r.ask("operator", "GET", "/v1/admin/tokens", "").Body.String()
	if !strings.Contains(list, hash) || !strings.Contains(list, `"label":"checkout"`) || strings.Contains(list, secret) {
		t.Errorf("the list: %s", list)
	}
	r.restart()
	if w := r.ask("fresh", "POST", heroPath+"/decide", `{}`); w.Code != http.StatusOK {
		t.Errorf("after a restart: status %d", w.Code)
	}
	if got := r.must(http.StatusOK, "DELETE", "/v1/admin/tokens/"+hash, ""); got["ok"] != true || got["revoked"] != true {
		t.Errorf("revoked: %v", got)
	}
	if w := r.ask("fresh", "POST", heroPath+"/decide", `{}`); w.Code != http.StatusUnauthorized {
		t.Errorf("a revoked token: status %d", w.Code)
	}
	r.must(http.StatusNotFound, "DELETE", "/v1/admin/tokens/"+hash, "")
	r.restart()
	if w := r.ask("fresh", "POST", heroPath+"/decide", `{}`); w.Code != http.StatusUnauthorized {
		t.Errorf("a revoked token after a restart: status %d", w.Code)
	}
}

func TestFailingGraphIsAudited(t *testing.T) {
	r := newRig(t)
	r.capsule()
	r.must(http.StatusOK, "POST", heroPath+"/install", `{"graph":[{"id":"x","op":"input","path":"x"},{"id":"one","op":"const","value":1},
		{"id":"two","op":"const","value":2},{"id":"pick","op":"if","cond":"x","then":"one","else":"two"},
		{"id":"p","op":"publish","as":"features.pick","of":"pick"}]}`)
	r.must(http.StatusOK, "POST", heroPath+"/decide", `{"context":{"x":true}}`)
	q := httptest.NewRequest("POST", heroPath+"/decide", strings.NewReader(`{"context":{"x":7}}`))
	q.Header.Set("Authorization", "Bearer operator-key")
	q.Header.Set("X-Request-Id", "trace-me")
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	if w.Code != http.StatusInternalServerError {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	checkShape(t, "", w)
	r.restart() // the event is on its way to the disk when the answer is sent
	trail := r.ask("operator", "GET", heroPath+"/audits", "").Body.String()
	if !strings.Contains(trail, "execution_denied") || !strings.Contains(trail, "trace-me") {
		t.Errorf("trail: %s", trail)
	}
}

func TestPublishedModelIsNotSentTwice(t *testing.T) {
	r := newRig(t)
	r.capsule()
	first := r.ask("reader", "GET", heroPath+"/model?snapshot=true", "")
	tag := first.Header().Get("Etag")
	if first.Code != http.StatusOK || !strings.Contains(first.Body.String(), `"modelTag":`+tag) {
		t.Fatalf("status %d, tag %s: %s", first.Code, tag, first.Body)
	}
	for header, status := range map[string]int{tag: 304, "W/" + tag: 304, `"other", ` + tag: 304, "*": 304, `"other"`: 200, strings.Trim(tag, `"`): 200} {
		q := httptest.NewRequest("GET", heroPath+"/model?snapshot=true", nil)
		q.Header.Set("Authorization", "Bearer operator-key")
		q.Header.Set("If-None-Match", header)
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		if w.Code != status || status == 304 && (w.Body.Len() != 0 || w.Header().Get("Etag") != tag) {
			t.Errorf("If-None-Match %s: status %d, %d bytes", header, w.Code, w.Body.Len())
		}
	}
}

// TestOneRewardOverHTTP retries one reward from several connections at once: it applies once.
func TestOneRewardOverHTTP(t *testing.T) {
	r := newRig(t)
	r.capsule()
	r.must(http.StatusOK, "POST", heroPath+"/decide", `{"eventId":"e"}`)
	applied := make(chan bool, 16)
	var all sync.WaitGroup
	for range cap(applied) {
		all.Go(func() {
			w := r.ask("reader", "POST", heroPath+"/reward", `{"decisionId":"e","reward":1}`)
			if w.Code != http.StatusOK {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
			applied <- strings.Contains(w.Body.String(), `"applied":true`)
		})
	}
	all.Wait()
	close(applied)
	count := 0
	for yes := range applied {
		if yes {
			count++
		}
	}
	if count != 1 {
		t.Errorf("the reward was applied %d times", count)
	}
}

func TestDeferredEventsSurviveARestart(t *testing.T) {
	r := newRig(t)
	r.capsule()
	const base = heroPath + "/personalizer/v1.0"
	first := r.must(http.StatusCreated, "POST", base+"/rank", `{"actions":[{"id":"x"},{"id":"y"}],"eventId":"later","deferActivation":true}`)
	r.must(http.StatusNoContent, "POST", base+"/events/later/reward", `{"value":1}`)
	if stats := r.must(http.StatusOK, "GET", heroPath, "")["stats"].(map[string]any); stats["decisions"] != 0.0 || stats["rewards"] != 0.0 {
		t.Errorf("a deferred event is logged: %v", stats)
	}
	r.restart()
	r.must(http.StatusNoContent, "POST", base+"/events/later/activate", "")
	got := r.must(http.StatusOK, "GET", heroPath+"/decisions/later", "")
	if rewards := got["rewards"].([]any); got["action"] != first["rewardActionId"] || len(rewards) != 1 {
		t.Errorf("activated: %v", got)
	}
	if version := r.must(http.StatusOK, "GET", heroPath+"/model", "")["modelVersion"]; version != 1.0 {
		t.Errorf("the held reward was learned %v times", version)
	}
	r.must(http.StatusNoContent, "POST", base+"/events/later/activate", "")
	r.restart()
	r.must(http.StatusNoContent, "POST", base+"/events/later/activate", "")
	if version := r.must(http.StatusOK, "GET", heroPath+"/model", "")["modelVersion"]; version != 1.0 {
		t.Errorf("activated again, the model has version %v", version)
	}
}
