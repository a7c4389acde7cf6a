package main

import (
	"encoding/json/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// malformedBodies are refused by every route that takes JSON.
var malformedBodies = map[string]string{
	"empty": "", "white space": " \r\n\t", "words": "hello", "cut off": `{"a":`, "trailing garbage": `{} x`, "two values": `{}{}`,
	"trailing comma": `{"a":1,}`, "comment": `{}//`, "not a number": `{"a":NaN}`, "infinite": `{"a":1e999}`, "leading zero": `{"a":01}`,
	"invalid UTF-8": "{\"a\":\"\xff\"}", "lone surrogate": `{"a":"\ud800"}`, "control character": "{\"a\":\"\n\"}",
	"byte order mark": "\xef\xbb\xbf{}", "duplicate key": `{"a":1,"a":1}`, "duplicate key, deep": `{"context":{"a":[{"b":1,"\u0062":1}]}}`,
	"too deep": strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200), "deep arrays": strings.Repeat("[", 100_000),
	"array": `[]`, "string": `"x"`, "number": `1`, "null": `null`, "unknown field": `{"surprise":1}`,
}

// jsonRoutes take a strict JSON body, by path below a capsule.
var jsonRoutes = []struct{ method, path string }{
	{"POST", heroPath + "/decide"}, {"POST", heroPath + "/reward"}, {"POST", heroPath + "/feedback"}, {"PUT", heroPath + "/spec"},
	{"POST", heroPath + "/mode"}, {"POST", heroPath + "/decisions:batch"}, {"POST", heroPath + "/rewards:batch"},
	{"POST", heroPath + "/evaluate"}, {"POST", heroPath + "/promote"}, {"POST", "/v1/tenants/north/jobs"}, {"POST", "/v1/admin/tokens"},
	{"POST", heroPath + "/personalizer/v1.0/rank"}, {"POST", heroPath + "/personalizer/v1.0/events/e/reward"},
	{"PUT", heroPath + "/personalizer/v1.0/configurations/service"}, {"POST", legacyHero + "/decide"}, {"POST", legacyHero + "/feedback"},
	{"POST", legacyHero + "/reward"}, {"PUT", legacyHero + "/spec"}, {"POST", heroPath + "/install"},
}

func TestMalformedBodiesOnEveryRoute(t *testing.T) {
	r := newRig(t)
	r.capsule()
	r.must(http.StatusCreated, "PUT", legacyHero+"/spec", `{"actions":[{"id":"a"},{"id":"b"}]}`)
	before := r.ask("operator", "GET", heroPath, "").Body.String()
	for _, route := range jsonRoutes {
		for name, body := range malformedBodies {
			switch {
			case name == "unknown field" && (strings.HasSuffix(route.path, "/rank") || route.path == legacyHero+"/decide"):
				continue // these two leave alone what they do not know
			case strings.HasSuffix(route.path, "/install") && body != "" && strings.TrimSpace(body) != "" && body[0] != '{':
				continue // may be YAML
			}
			w := r.ask("operator", route.method, route.path, body)
			if w.Code != http.StatusBadRequest {
				t.Errorf("%s %s: %s: status %d: %s", route.method, route.path, name, w.Code, w.Body)
				continue
			}
			checkShape(t, route.path, w)
		}
	}
	if after := r.ask("operator", "GET", heroPath, "").Body.String(); before != after {
		t.Errorf("a refused body changed the capsule:\n%s\n%s", before, after)
	}
}

// checkShape checks that an error answer has the form of its dialect and says something.
func checkShape(t *testing.T, path string, w *httptest.ResponseRecorder) {
	t.Helper()
	var plain struct {
		Error string `json:"error"`
		After int    `json:"retryAfterSeconds,omitzero"`
	}
	var personalizer struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	var err error
	text := &plain.Error
	if strings.Contains(path, "/personalizer/") {
		err = json.Unmarshal(w.Body.Bytes(), &personalizer, json.RejectUnknownMembers(true))
		text = &personalizer.Error.Message
		codes := map[int]string{400: "BadArgument", 401: "Unauthorized", 403: "Forbidden", 404: "ResourceNotFound", 405: "MethodNotAllowed",
			409: "Conflict", 413: "BadArgument", 429: "TooManyRequests", 503: "ServiceUnavailable"}
		if want := codes[w.Code]; personalizer.Error.Code != want {
			t.Errorf("%s: status %d has the code %q, want %q", path, w.Code, personalizer.Error.Code, want)
		}
	} else {
		err = json.Unmarshal(w.Body.Bytes(), &plain, json.RejectUnknownMembers(true))
	}
	if err != nil || *text == "" {
		t.Errorf("%s: status %d: error answer %s (%v)", path, w.Code, w.Body, err)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("%s: an error of type %q", path, got)
	}
}

func TestWrongTypesAndRanges(t *testing.T) {
	r := newRig(t)
	r.capsule()
	long := strings.Repeat("x", 129)
	id := r.must(http.StatusOK, "POST", heroPath+"/decide", `{}`)["decisionId"].(string)
	for _, c := range []struct{ method, path, body, says string }{
		{"POST", "/decide", `{"context":[]}`, "context must be a JSON object"},
		{"POST", "/decide", `{"context":"x"}`, "context must be a JSON object"},
		{"POST", "/decide", `{"actions":[]}`, "no actions"},
		{"POST", "/decide", `{"actions":[{"id":""}]}`, "must not be empty"},
		{"POST", "/decide", `{"actions":[{"id":"x"},{"id":"x"}]}`, "duplicates"},
		{"POST", "/decide", `{"actions":[{"id":"` + strings.Repeat("x", 257) + `"}]}`, ""},
		{"POST", "/decide", `{"excludedActions":["nobody"]}`, "unknown action"},
		{"POST", "/decide", `{"baselineAction":"nobody"}`, "unknown action"},
		{"POST", "/decide", `{"actions":[{"id":"x"}],"excludedActions":["a"]}`, "unknown action"},
		{"POST", "/decide", `{"excludedActions":["a","b"]}`, "no eligible actions"},
		{"POST", "/decide", `{"eventId":"a/b"}`, ""},
		{"POST", "/decide", `{"eventId":"` + long + `"}`, ""},
		{"POST", "/decide", `{"context":{"a":1e39}}`, ""},
		{"POST", "/decide", `{"context":` + strings.Repeat(`{"a":`, 8) + "{}" + strings.Repeat("}", 8) + `}`, ""},
		{"POST", "/decide", `{"context":{"a":[` + strings.TrimSuffix(strings.Repeat("1,", 4097), ",") + `]}}`, ""},
		{"POST", "/decide?learn=yes", `{}`, "learn"},
		{"POST", "/decide?learn=true&learn=true", `{}`, "learn"},
		{"POST", "/decide?learn=%zz", `{}`, ""},
		{"POST", "/reward", `{"decisionId":"` + id + `","reward":"1"}`, "reward"},
		{"POST", "/reward", `{"decisionId":"` + id + `"}`, "reward"},
		{"POST", "/reward", `{"decisionId":"` + id + `","reward":1,"value":1}`, "value"},
		{"POST", "/reward", `{"decisionId":"` + id + `","reward":1,"idempotencyKey":""}`, ""},
		{"POST", "/reward", `{"decisionId":"` + id + `","reward":1,"idempotencyKey":"` + strings.Repeat("k", 257) + `"}`, ""},
		{"POST", "/reward", `{"decisionId":"` + id + `","reward":1,"idempotencyKey":"a\u0000b"}`, ""},
		{"POST", "/reward", `{"decisionId":"` + id + `","reward":1,"detail":{"learned":true}}`, "learned"},
		{"PUT", "/spec", `{"mode":"wild"}`, "unknown variant"},
		{"PUT", "/spec", `{"colour":"red"}`, "invalid spec: unknown field `colour`"},
		{"PUT", "/spec", `{"exploration":{"floor":0}}`, "invalid spec: "},
		{"PUT", "/spec", `{"learner":{"bits":25}}`, "invalid spec: "},
		{"PUT", "/spec", `{"seed":18446744073709551616}`, "invalid spec: "},
		{"PUT", "/spec?replace=1", `{}`, "replace"},
		{"PUT", "/spec?replace=", `{}`, "replace"},
		{"POST", "/mode", `{"mode":"wild"}`, "unknown variant"},
		{"POST", "/mode", `{"seed":1}`, "unknown field `seed`"},
		{"GET", "/decisions?since=yesterday", "", "since"},
		{"GET", "/decisions?until=1.5", "", "until"},
		{"GET", "/decisions?limit=many", "", "limit"},
		{"GET", "/decisions?limit=9223372036854775808", "", "limit"},
		{"GET", "/decisions?order=random", "", "order"},
		{"GET", "/decisions?after=nobody", "", "after"},
		{"GET", "/decisions?after=", "", "after"},
		{"GET", "/decisions?after=a%2Fb", "", "after"},
		{"GET", "/audits?limit=x", "", "limit"},
		{"GET", "/model?snapshot=yes", "", "snapshot"},
		{"POST", "/evaluate", `{}`, ""},
		{"POST", "/evaluate", `{"policy":"greedy","spec":{}}`, ""},
		{"POST", "/evaluate", `{"policy":"clever"}`, "unknown policy"},
		{"POST", "/evaluate", `{"policy":"target-column"}`, ""},
		{"POST", "/evaluate", `{"policy":"greedy","folds":1}`, "folds"},
		{"POST", "/evaluate", `{"policy":"greedy","bootstrap":50}`, "bootstrap"},
		{"POST", "/evaluate", `{"policy":"greedy","wMax":0.5}`, "wMax"},
		{"POST", "/evaluate", `{"policy":"greedy","rewardRange":[1]}`, "rewardRange"},
		{"POST", "/evaluate", `{"policy":"greedy","rewardRange":[1,0]}`, "rewardRange"},
		{"POST", "/evaluate", `{"policy":"greedy","gates":["dm.lower > 0"]}`, "gate"},
		{"POST", "/promote", `{"spec":{},"gates":[]}`, "at least one gate"},
		{"POST", "/promote", `{"spec":{}}`, "at least one gate"},
		{"POST", "/promote", `{"policy":"greedy","gates":["n > 0"]}`, "policy"},
		{"POST", "/promote", `{"gates":["n > 0"]}`, "spec"},
		{"POST", "/install", "\x00lyc\xff", "binary"},
		{"POST", "/install", `{"graph":[{"id":"x","op":"magic"}]}`, "x"},
		{"POST", "/personalizer/v1.0/rank", `{"actions":[]}`, "no actions"},
		{"POST", "/personalizer/v1.0/rank", `{"contextFeatures":{},"actions":[{"id":"a"}]}`, "contextFeatures"},
		{"PUT", "/personalizer/v1.0/configurations/service", `{"learningMode":"LoggingOnly"}`, ""},
		{"PUT", "/personalizer/v1.0/configurations/service", `{"rewardWaitTime":"10 minutes"}`, "ISO 8601"},
		{"PUT", "/personalizer/v1.0/configurations/service", `{"rewardWaitTime":"PT0S"}`, ""},
		{"PUT", "/personalizer/v1.0/configurations/service", `{"explorationPercentage":2}`, ""},
		{"PUT", "/personalizer/v1.0/configurations/service", `{"colour":"red"}`, "unknown field `colour`"},
	} {
		w := r.ask("operator", c.method, heroPath+c.path, c.body)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s %.80s: status %d, want 400 and %q: %s", c.method, c.path, c.body, w.Code, c.says, w.Body)
			continue
		}
		checkShape(t, c.path, w)
	}
}

func TestBadNames(t *testing.T) {
	r := newRig(t)
	r.capsule()
	for _, name := range []string{".hidden", "a%20b", "a%2Fb", "%C3%A9", "a:b", "a%00b", strings.Repeat("n", 129)} {
		for _, path := range []string{
			"/v1/tenants/" + name + "/jobs", "/v1/tenants/north/jobs/" + name, "/v1/tenants/north/jobs/web/capsules/" + name,
			"/v1/tenants/" + name + "/jobs/web/capsules/hero", "/v1/tenants/north/capsules/" + name,
			"/v1/tenants/north/jobs/" + name + "/capsules/hero/spec", "/v1/tenants/north/jobs/web/capsules/" + name + "/decisions",
			"/v1/tenants/north/jobs/web/capsules/" + name + "/audits",
		} {
			if w := r.ask("operator", "GET", path, ""); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "name") {
				t.Errorf("GET %s: status %d: %s", path, w.Code, w.Body)
			}
		}
		for _, route := range jsonRoutes {
			path := strings.Replace(route.path, "/hero", "/"+name, 1)
			if path == route.path {
				continue
			}
			w := r.ask("operator", route.method, path, `{"actions":[{"id":"a"}]}`)
			if w.Code != http.StatusBadRequest {
				t.Errorf("%s %s: status %d: %s", route.method, path, w.Code, w.Body)
				continue
			}
			checkShape(t, path, w)
		}
	}
	if w := r.ask("operator", "POST", "/v1/tenants/north/jobs", `{"id":".x"}`); w.Code != http.StatusBadRequest {
		t.Errorf("a job called .x: status %d", w.Code)
	}
	for _, path := range []string{"/v1/tenants//jobs", "/v1/tenants/north/jobs/web/capsules/", "/v1/nothing", "/", "/v1"} {
		if w := r.ask("operator", "GET", path, ""); w.Code != http.StatusNotFound {
			t.Errorf("GET %s: status %d, want 404", path, w.Code)
		}
	}
}

func TestPercentDecoding(t *testing.T) {
	r := newRig(t)
	r.capsule()
	r.must(http.StatusOK, "POST", heroPath+"/decide", `{"eventId":"order:42"}`)
	for _, id := range []string{"order:42", "order%3A42", "%6Frder:42"} {
		if got := r.must(http.StatusOK, "GET", heroPath+"/decisions/"+id, ""); got["decisionId"] != "order:42" {
			t.Errorf("%s: %v", id, got["decisionId"])
		}
	}
	r.must(http.StatusOK, "GET", strings.Replace(heroPath, "hero", "h%65ro", 1), "")
}

func TestMissingThings(t *testing.T) {
	r := newRig(t)
	r.capsule()
	const none = "/v1/tenants/north/jobs/web/capsules/none"
	for _, c := range []struct{ method, path, body, says string }{
		{"POST", none + "/decide", `{}`, "capsule north/web/none not found"},
		{"POST", none + "/reward", `{"decisionId":"d","reward":1}`, "capsule north/web/none not found"},
		{"POST", none + "/mode", `{"mode":"frozen"}`, "capsule north/web/none not found"},
		{"POST", none + "/promote", `{"spec":{},"gates":["n > 0"]}`, "capsule north/web/none not found"},
		{"POST", none + "/evaluate", `{"policy":"greedy"}`, "capsule north/web/none not found"},
		{"POST", none + "/decisions:batch", `{"decisions":[]}`, "capsule north/web/none not found"},
		{"POST", none + "/rewards:batch", `{"rewards":[]}`, "capsule north/web/none not found"},
		{"GET", none, "", "capsule north/web/none not found"},
		{"GET", none + "/spec", "", "capsule north/web/none not found"},
		{"GET", none + "/decisions", "", "capsule north/web/none not found"},
		{"GET", none + "/decisions/d", "", "capsule north/web/none not found"},
		{"GET", none + "/model", "", "capsule north/web/none not found"},
		{"GET", none + "/audits", "", "capsule north/web/none not found"},
		{"DELETE", none, "", "capsule north/web/none not found"},
		{"DELETE", none + "/logs", "", "capsule north/web/none not found"},
		{"DELETE", none + "/program", "", "capsule north/web/none not found"},
		{"POST", none + "/personalizer/v1.0/rank", `{"actions":[{"id":"a"}]}`, "capsule north/web/none not found"},
		{"POST", none + "/personalizer/v1.0/events/e/activate", "", "capsule north/web/none not found"},
		{"GET", none + "/personalizer/v1.0/configurations/service", "", "capsule north/web/none not found"},
		{"PUT", none + "/personalizer/v1.0/configurations/service", `{}`, "capsule north/web/none not found"},
		{"POST", heroPath + "/reward", `{"decisionId":"nobody","reward":1}`, `decision \"nobody\" not found`},
		{"GET", heroPath + "/decisions/nobody", "", `decision \"nobody\" not found`},
		{"POST", heroPath + "/personalizer/v1.0/events/nobody/reward", `{"value":1}`, "not found"},
		{"POST", heroPath + "/personalizer/v1.0/events/nobody/activate", "", "not found"},
		{"POST", heroPath + "/personalizer/v2.0/rank", `{"actions":[{"id":"a"}]}`, "version"},
		{"POST", heroPath + "/personalizer/v1.0/multislot/rank", `{}`, "no such route"},
		{"GET", "/v1/tenants/nowhere/jobs/web", "", "not found"},
		{"DELETE", "/v1/tenants/nowhere", "", "not found"},
		{"DELETE", "/v1/tenants/north/jobs/none", "", "not found"},
		{"DELETE", "/v1/admin/tokens/" + strings.Repeat("0", 64), "", "not found"},
		{"DELETE", "/v1/admin/tokens/x", "", "not found"},
		{"PATCH", heroPath + "/spec", `{}`, "no such route"},
		{"GET", heroPath + "/decide", "", "no such route"},
		{"GET", "/v1/nothing/here", "", "no such route"},
	} {
		w := r.ask("operator", c.method, c.path, c.body)
		if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s: status %d, want 404 and %q: %s", c.method, c.path, w.Code, c.says, w.Body)
			continue
		}
		checkShape(t, c.path, w)
	}
	for _, path := range []string{"/v1/tenants/nowhere/jobs", "/v1/tenants/north/jobs/none/capsules"} {
		r.must(http.StatusOK, "GET", path, "")
	}
	w := r.ask("operator", "GET", heroPath+"/personalizer/v1.0/rank", "")
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET rank: status %d, want 405", w.Code)
	}
	checkShape(t, "/personalizer/", w)
}

func TestBodyLimitIsInclusive(t *testing.T) {
	r := newRig(t)
	r.capsule()
	body := func(size int) string {
		const head, tail = `{"context":{},"eventId":"big"`, `}`
		return head + strings.Repeat(" ", size-len(head)-len(tail)) + tail
	}
	r.must(http.StatusOK, "POST", heroPath+"/decide", body(4194304))
	for _, path := range []string{heroPath + "/decide", heroPath + "/personalizer/v1.0/rank"} {
		w := r.ask("operator", "POST", path, body(4194305))
		if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "payload too large") {
			t.Errorf("%s: one byte too many: status %d: %s", path, w.Code, w.Body)
		}
		checkShape(t, path, w)
	}
}

func TestBatchesAreBounded(t *testing.T) {
	r := newRig(t)
	r.capsule()
	item := `{"decisionId":"nobody","reward":1},`
	for n, want := range map[int]int{4096: http.StatusOK, 4097: http.StatusRequestEntityTooLarge} {
		w := r.ask("operator", "POST", heroPath+"/rewards:batch", `{"rewards":[`+strings.TrimSuffix(strings.Repeat(item, n), ",")+`]}`)
		if w.Code != want {
			t.Errorf("%d rewards: status %d, want %d", n, w.Code, want)
		}
	}
	upload := `{"decisionId":"loc_1","tsMs":1,"modelTag":"t","seed":1,"input":{},"chosenIndex":0,"probability":1,"pmf":[1],"eligible":[0]},`
	w := r.ask("operator", "POST", heroPath+"/decisions:batch", `{"decisions":[`+strings.TrimSuffix(strings.Repeat(upload, 4097), ",")+`]}`)
	if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "payload too large") {
		t.Errorf("4097 uploads: status %d: %.200s", w.Code, w.Body)
	}
}
