package main

import (
	"encoding/json/v2"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/decision"
)

// uploadItem is a decision that a client made by itself: an untrained model draws uniformly, so that nothing but the draw
// has to be done here.
func uploadItem(id, tag string, at time.Time, seed uint64, change func(map[string]any)) map[string]any {
	pmf := []float64{0.5, 0.5}
	chosen := decision.Draw(pmf, seed)
	item := map[string]any{
		"decisionId": id, "tsMs": at.UnixMilli(), "modelTag": tag, "seed": fmt.Sprint(seed),
		"input": map[string]any{"context": map[string]any{"plan": "pro"}}, "chosenIndex": chosen, "chosenId": []string{"a", "b"}[chosen],
		"probability": 0.5, "pmf": pmf, "eligible": []int{0, 1},
	}
	if change != nil {
		change(item)
	}
	return item
}

// uploaded is what an upload answers.
type uploaded struct {
	Accepted, Duplicates, Unverified int
	Rejected                         []struct {
		Index     int
		ID        string `json:"decisionId"`
		Error     string
		Retryable bool
	}
}

func (r *rig) upload(items ...map[string]any) (u uploaded) {
	r.Helper()
	body, err := json.Marshal(map[string]any{"decisions": items})
	if err != nil {
		r.Fatal(err)
	}
	w := r.ask("reader", "POST", heroPath+"/decisions:batch", string(body))
	if w.Code != http.StatusOK {
		r.Fatalf("upload: status %d: %s", w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &u, json.MatchCaseInsensitiveNames(true)); err != nil {
		r.Fatal(err)
	}
	return u
}

func TestUploads(t *testing.T) {
	r := newRig(t)
	r.capsule()
	tag := r.must(http.StatusOK, "GET", heroPath+"/model?snapshot=true", "")["modelTag"].(string)
	now := time.Now()
	good := []map[string]any{uploadItem("loc_1", tag, now.Add(-time.Hour), 1, nil), uploadItem("loc_2", tag, now, 1<<63+5, nil)}
	if u := r.upload(good...); u.Accepted != 2 || u.Duplicates != 0 || len(u.Rejected) != 0 {
		t.Fatalf("%+v", u)
	}
	if u := r.upload(good...); u.Accepted != 2 || u.Duplicates != 2 {
		t.Errorf("sent again: %+v", u)
	}
	set := func(name string, value any) func(map[string]any) {
		return func(m map[string]any) { m[name] = value }
	}
	bad := []struct {
		says string
		item map[string]any
	}{
		{"already used for a different request", uploadItem("loc_1", tag, now, 2, nil)},
		{"tsMs", uploadItem("loc_3", tag, now.Add(-8*24*time.Hour), 1, nil)},
		{"tsMs", uploadItem("loc_4", tag, now.Add(time.Hour), 1, nil)},
		{"not a published model", uploadItem("loc_5", "0123456789abcdef", now, 1, nil)},
		{"does not replay", uploadItem("loc_6", tag, now, 1, func(m map[string]any) {
			m["chosenIndex"] = 1 - m["chosenIndex"].(int)
			delete(m, "chosenId")
		})},
		{"does not replay", uploadItem("loc_7", tag, now, 1, set("pmf", []float64{0.4, 0.6}))},
		{"does not replay", uploadItem("loc_8", tag, now, 1, set("eligible", []int{1}))},
		{"does not replay", uploadItem("loc_9", tag, now, 1, set("probability", 0.6))},
		{"decisionId", uploadItem("a/b", tag, now, 1, nil)},
	}
	var items []map[string]any
	for _, b := range bad {
		items = append(items, b.item)
	}
	items = append(items, uploadItem("loc_10", tag, now, 3, nil))
	u := r.upload(items...)
	if u.Accepted != 1 || len(u.Rejected) != len(bad) {
		t.Fatalf("%+v", u)
	}
	for i, x := range u.Rejected {
		if x.Index != i || x.ID != bad[i].item["decisionId"] || x.Retryable || !strings.Contains(x.Error, bad[i].says) {
			t.Errorf("item %d: %+v, want %q", i, x, bad[i].says)
		}
	}
	trail := r.ask("reader", "GET", heroPath+"/audits", "").Body.String()
	if strings.Count(trail, "upload_rejected") != 1 {
		t.Errorf("trail: %s", trail)
	}
	got := r.must(http.StatusOK, "POST", heroPath+"/reward", `{"decisionId":"loc_2","reward":1}`)
	if got["applied"] != true || got["modelVersion"] != 1.0 {
		t.Errorf("reward of an upload: %v", got)
	}
	logged := r.must(http.StatusOK, "GET", heroPath+"/decisions/loc_2", "")
	if logged["seed"] != "9223372036854775813" || logged["tsMs"] != float64(now.UnixMilli()) {
		t.Errorf("logged: %v", logged)
	}
	all, _ := r.page("limit=1000")
	if len(all) != 3 || all[0].ID != "loc_1" {
		t.Errorf("the log holds %d decisions", len(all))
	}
	r.must(http.StatusOK, "POST", heroPath+"/install", `{"graph":[{"id":"x","op":"input","path":"x"}]}`)
	if w := r.ask("reader", "POST", heroPath+"/decisions:batch", `{"decisions":[]}`); w.Code != http.StatusBadRequest {
		t.Errorf("an upload to a capsule with a graph: status %d", w.Code)
	}
}
