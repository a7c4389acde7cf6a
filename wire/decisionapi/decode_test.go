package decisionapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/json/v2"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/decision"
	"holdfast/fault"
)

// malformed are bodies that no JSON route accepts, whatever it reads.
var malformed = []struct{ name, body, says string }{
	{"empty", "", "invalid JSON: empty body"},
	{"white space", " \n\t ", "invalid JSON: empty body"},
	{"no JSON", "hello", "invalid JSON"},
	{"cut off", `{"context":`, "invalid JSON"},
	{"trailing garbage", `{} x`, "invalid JSON"},
	{"two values", `{}{}`, "invalid JSON"},
	{"trailing comma", `{"a":1,}`, "invalid JSON"},
	{"comment", `{/**/}`, "invalid JSON"},
	{"single quotes", `{'a':1}`, "invalid JSON"},
	{"NaN", `{"reward":NaN}`, "invalid JSON"},
	{"infinite", `{"reward":1e999}`, "invalid JSON"},
	{"leading zero", `{"reward":01}`, "invalid JSON"},
	{"plus sign", `{"reward":+1}`, "invalid JSON"},
	{"invalid UTF-8", "{\"a\":\"\xff\"}", "invalid JSON"},
	{"lone surrogate", `{"a":"\ud800"}`, "invalid JSON"},
	{"control character", "{\"a\":\"\x01\"}", "invalid JSON"},
	{"byte order mark", "\xef\xbb\xbf{}", "invalid JSON"},
	{"duplicate key", `{"a":1,"a":1}`, "invalid JSON: duplicate key"},
	{"duplicate key, escaped", `{"a":1,"\u0061":1}`, "invalid JSON: duplicate key"},
	{"duplicate key, deep", `{"context":{"x":[{"y":1,"y":2}]}}`, "invalid JSON: duplicate key"},
	{"too deep", strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), "invalid JSON: nested too deeply"},
	{"array", `[]`, "the body must be a JSON object"},
	{"string", `"x"`, "the body must be a JSON object"},
	{"number", `1`, "the body must be a JSON object"},
	{"null", `null`, "the body must be a JSON object"},
	{"true", `true`, "the body must be a JSON object"},
	{"unknown field", `{"surprise":1}`, "unknown field `surprise`"},
}

// decoders are all that read a strict JSON body, by what they are for.
var decoders = map[string]func([]byte) error{
	"decide":  func(b []byte) error { return new(decideBody).decode(b) },
	"reward":  func(b []byte) error { _, err := rewardBody(b); return err },
	"rewards": func(b []byte) error { _, err := decodeRewards(b); return err },
	"upload":  func(b []byte) error { _, err := decodeUploads(b); return err },
	"evaluate": func(b []byte) error {
		_, err := decodeEvaluate(b)
		return err
	},
	"config": func(b []byte) error { return decode(b, new(configBody)) },
	"legacy": func(b []byte) error { return decode(b, new(legacyFeedback)) },
}

func TestMalformedBodies(t *testing.T) {
	for name, read := range decoders {
		for _, m := range malformed {
			err := read([]byte(m.body))
			if fault.KindOf(err) != fault.Invalid || err == nil {
				t.Errorf("%s: %s: error %v, want an invalid fault", name, m.name, err)
				continue
			}
			if text := message(err); !strings.HasPrefix(text, m.says) {
				t.Errorf("%s: %s: says %q, want it to begin with %q", name, m.name, text, m.says)
			}
		}
	}
}

func message(err error) string {
	if e, ok := err.(*fault.Error); ok {
		return e.Message()
	}
	return err.Error()
}

func TestDecideBody(t *testing.T) {
	yes := [...]struct {
		name, body string
		want       decision.Request
	}{
		{"nothing", `{}`, decision.Request{}},
		{"null context", `{"context":null}`, decision.Request{}},
		{"context", `{"context": {"a": 1.50} }`, decision.Request{Context: []byte(`{"a": 1.50}`)}},
		{"everything", `{"context":{"plan":"pro"},"actions":[{"id":"express","features":{"fee":4.9}},{"id":"st\u0061ndard"}],
			"excludedActions":["standard"],"baselineAction":"express","eventId":"cart-9917","durable":true}`,
			decision.Request{Context: []byte(`{"plan":"pro"}`), Actions: []decision.Action{{ID: "express", Features: []byte(`{"fee":4.9}`)}, {ID: "standard"}},
				Excluded: []string{"standard"}, Baseline: "express", EventID: "cart-9917", Durable: true}},
		{"an empty list of actions is not an absent one", `{"actions":[]}`, decision.Request{Actions: []decision.Action{}}},
		{"nulls are absent", `{"context":null,"actions":null,"excludedActions":null,"baselineAction":null,"eventId":null,
			"contextKey":null,"features":null,"durable":null}`, decision.Request{}},
		{"contextKey", `{"contextKey":"eu"}`, decision.Request{Context: []byte(`{"contextKey":"eu"}`)}},
		{"contextKey over context", `{"context":{"contextKey":1,"x":2},"contextKey":"eu"}`,
			decision.Request{Context: []byte(`{"x":2,"contextKey":"eu"}`)}},
		{"features over context", `{"features":{"x":3,"":0},"context":{"\u0078":2,"y":1}}`,
			decision.Request{Context: []byte(`{"y":1,"x":3,"":0}`)}},
		{"features over contextKey", `{"features":{"contextKey":1},"contextKey":"eu"}`,
			decision.Request{Context: []byte(`{"contextKey":1}`)}},
		{"action with no features", `{"actions":[{"id":"a","features":null}]}`,
			decision.Request{Actions: []decision.Action{{ID: "a"}}}},
		{"members before the actions", `{"baselineAction":"b","excludedActions":["c","d"],"actions":[{"features":{},"id":"b"}]}`,
			decision.Request{Baseline: "b", Excluded: []string{"c", "d"}, Actions: []decision.Action{{ID: "b", Features: []byte("{}")}}}},
	}
	d := new(decideBody) // one for all: nothing of a body may show up in the next
	for range 2 {
		for _, y := range yes {
			if err := d.decode([]byte(y.body)); err != nil {
				t.Errorf("%s: %v", y.name, err)
				continue
			}
			want := y.want
			want.Digest = sha256.Sum256([]byte(y.body))
			if diff := cmp.Diff(want, d.req); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", y.name, diff)
			}
		}
	}
}

func TestDecideBodyRefuses(t *testing.T) {
	for body, says := range map[string]string{
		`{"context":[]}`:                         "context must be a JSON object",
		`{"context":"x"}`:                        "context must be a JSON object",
		`{"context":0}`:                          "context must be a JSON object",
		`{"actions":{}}`:                         "`actions` must be an array",
		`{"actions":["a"]}`:                      "`actions` must be an array of objects",
		`{"actions":[null]}`:                     "`actions` must be an array of objects",
		`{"actions":[{}]}`:                       "missing field `id`",
		`{"actions":[{"id":null}]}`:              "`id` must be a string",
		`{"actions":[{"id":1}]}`:                 "`id` must be a string",
		`{"actions":[{"id":"a","weight":1}]}`:    "unknown field `weight`",
		`{"actions":[{"id":"a","features":[]}]}`: "`features` must be a JSON object",
		`{"excludedActions":"a"}`:                "`excludedActions` must be an array",
		`{"excludedActions":[1]}`:                "`excludedActions` must be a string",
		`{"baselineAction":1}`:                   "`baselineAction` must be a string",
		`{"baselineAction":""}`:                  "`baselineAction` must not be empty",
		`{"eventId":1}`:                          "`eventId` must be a string",
		`{"eventId":""}`:                         "`eventId` must not be empty",
		`{"durable":1}`:                          "`durable` must be true or false",
		`{"durable":"true"}`:                     "`durable` must be true or false",
		`{"contextKey":1}`:                       "`contextKey` must be a string",
		`{"features":[]}`:                        "`features` must be a JSON object",
		`{"Context":{}}`:                         "unknown field `Context`",
	} {
		err := new(decideBody).decode([]byte(body))
		if fault.KindOf(err) != fault.Invalid || err == nil || message(err) != says {
			t.Errorf("%s: %v, want %q", body, err, says)
		}
	}
}

func rewardBody(body []byte) (decision.RewardRequest, error) {
	if err := check(body); err != nil {
		return decision.RewardRequest{}, err
	}
	return decodeReward(body, wholeReward)
}

func TestRewardBody(t *testing.T) {
	for body, want := range map[string]decision.RewardRequest{
		`{"decisionId":"d","reward":0.7}`:                             {DecisionID: "d", Value: 0.7},
		`{"decisionId":"d","value":-1e3,"durable":true}`:              {DecisionID: "d", Value: -1000},
		`{"decisionId":"d","reward":0,"idempotencyKey":"k"}`:          {DecisionID: "d", Key: "k", HasKey: true},
		`{"decisionId":"d","reward":0,"idempotencyKey":""}`:           {DecisionID: "d", HasKey: true},
		`{"decisionId":"d","reward":0,"idempotencyKey":null}`:         {DecisionID: "d"},
		`{"decisionId":"d","reward":0,"detail":{"a": [1, 2]}}`:        {DecisionID: "d", Detail: []byte(`{"a": [1, 2]}`)},
		`{"decisionId":"d","reward":0,"detail":3}`:                    {DecisionID: "d", Detail: []byte(`3`)},
		`{"decisionId":"d","reward":0,"detail":null,"durable":false}`: {DecisionID: "d"},
	} {
		got, err := rewardBody([]byte(body))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", body, err, diff)
		}
	}
	for body, says := range map[string]string{
		`{}`:                                               "missing field `decisionId`",
		`{"decisionId":null,"reward":1}`:                   "missing field `decisionId`",
		`{"decisionId":"","reward":1}`:                     "`decisionId` must not be empty",
		`{"decisionId":"d"}`:                               "missing field `reward`",
		`{"decisionId":"d","reward":null}`:                 "`reward` must be a number",
		`{"decisionId":"d","reward":"1"}`:                  "`reward` must be a number",
		`{"decisionId":"d","reward":1,"value":1}`:          "give `reward` or `value`, not both",
		`{"decisionId":"d","reward":1,"idempotencyKey":1}`: "`idempotencyKey` must be a string",
		`{"decisionId":"d","reward":1,"durable":0}`:        "`durable` must be true or false",
		`{"decisionId":7,"reward":1}`:                      "`decisionId` must be a string",
	} {
		if _, err := rewardBody([]byte(body)); fault.KindOf(err) != fault.Invalid || err == nil || message(err) != says {
			t.Errorf("%s: %v, want %q", body, err, says)
		}
	}
}

func TestRewardBatch(t *testing.T) {
	items, err := decodeRewards([]byte(`{"rewards":[{"decisionId":"a","value":1},{"decisionId":"b","reward":2,"detail":[]}]}`))
	want := []decision.RewardRequest{{DecisionID: "a", Value: 1}, {DecisionID: "b", Value: 2, Detail: []byte("[]")}}
	if diff := cmp.Diff(want, items); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for body, says := range map[string]string{
		`{}`:               "missing field `rewards`",
		`{"rewards":null}`: "`rewards` must be an array",
		`{"rewards":[1]}`:  "`rewards` must be an array of objects",
		`{"rewards":[{"decisionId":"a","value":1},{}]}`:                  "rewards[1]: missing field `decisionId`",
		`{"rewards":[{"decisionId":"a","value":1,"durable":true}]}`:      "rewards[0]: unknown field `durable`",
		`{"rewards":[{"decisionId":"a","value":1,"idempotencyKey":[]}]}`: "rewards[0]: `idempotencyKey` must be a string",
	} {
		if _, err := decodeRewards([]byte(body)); fault.KindOf(err) != fault.Invalid || err == nil || message(err) != says {
			t.Errorf("%s: %v, want %q", body, err, says)
		}
	}
	full := func(n int) []byte {
		return []byte(`{"rewards":[` + strings.TrimSuffix(strings.Repeat(`{"decisionId":"a","value":1},`, n), ",") + `]}`)
	}
	if items, err := decodeRewards(full(maxItems)); err != nil || len(items) != maxItems {
		t.Errorf("%d items: %v", maxItems, err)
	}
	if _, err := decodeRewards(full(maxItems + 1)); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("%d items: %v, want too large", maxItems+1, err)
	}
}

const uploadItem = `{"decisionId":"loc_1","tsMs":1790000000123,"modelTag":"5b441bd2fa0e248f","modelVersion":3,
	"seed":"18446744073709551615","input":{"context":{"a":1},"actions":[{"id":"x"},{"id":"y"}],"excludedActions":["z"],
	"baselineAction":"x"},"chosenIndex":1,"chosenId":"y","probability":0.5,"pmf":[0.5,0.5],"eligible":[0,1]}`

func TestUploadBatch(t *testing.T) {
	second := strings.NewReplacer(`"modelVersion":3,`, ``, `"18446744073709551615"`, `7`, `"chosenId":"y",`, ``, `"x"`, `"q"`).Replace(uploadItem)
	items, err := decodeUploads([]byte(`{"decisions":[` + uploadItem + `,` + second + `]}`))
	if err != nil || len(items) != 2 {
		t.Fatalf("%d items, %v", len(items), err)
	}
	version := uint64(3)
	want := decision.Upload{
		ID: "loc_1", TimeMS: 1790000000123, Tag: "5b441bd2fa0e248f", ModelVersion: &version, Seed: math.MaxUint64,
		Input: decision.Request{Context: []byte(`{"a":1}`), Actions: []decision.Action{{ID: "x"}, {ID: "y"}},
			Excluded: []string{"z"}, Baseline: "x", Digest: items[0].Input.Digest},
		ChosenIndex: 1, ChosenID: "y", Probability: 0.5, PMF: []float64{0.5, 0.5}, Eligible: []int{0, 1},
	}
	if diff := cmp.Diff(want, items[0]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := items[1]; got.Seed != 7 || got.ModelVersion != nil || got.ChosenID != "" || got.Input.Baseline != "q" {
		t.Errorf("second item: %+v", got)
	}
	for change, says := range map[[2]string]string{
		{`"decisionId":"loc_1",`, ``}:              "decisions[0]: missing field `decisionId`",
		{`"eligible":[0,1]`, `"eligible":[-1]`}:    "decisions[0]: `eligible` must be the index of an action",
		{`"eligible":[0,1]`, `"eligible":[0.5]`}:   "decisions[0]: `eligible` must be the index of an action",
		{`"pmf":[0.5,0.5]`, `"pmf":["a"]`}:         "decisions[0]: `pmf` must be a number",
		{`"pmf":[0.5,0.5]`, `"pmf":null`}:          "decisions[0]: `pmf` must be an array",
		{`"18446744073709551615"`, `-1`}:           "decisions[0]: `seed` must be a whole number from 0 to 18446744073709551615",
		{`5"`, `6"`}:                               "decisions[0]: `seed` must be a whole number from 0 to 18446744073709551615",
		{`1790000000123`, `1.5`}:                   "decisions[0]: `tsMs` must be a whole number",
		{`"input":{`, `"input":{"eventId":"e",`}:   "decisions[0]: unknown field `eventId`",
		{`"input":{`, `"input":{"durable":false,`}: "decisions[0]: unknown field `durable`",
		{`"chosenIndex":1`, `"chosenIndex":"1"`}:   "decisions[0]: `chosenIndex` must be the index of an action",
		{`"probability":0.5`, `"probability":[]`}:  "decisions[0]: `probability` must be a number",
	} {
		body := `{"decisions":[` + strings.Replace(uploadItem, change[0], change[1], 1) + `]}`
		if _, err := decodeUploads([]byte(body)); fault.KindOf(err) != fault.Invalid || err == nil || message(err) != says {
			t.Errorf("%v: %v, want %q", change, err, says)
		}
	}
}

func TestEvaluateBody(t *testing.T) {
	q, err := decodeEvaluate([]byte(`{"policy":"greedy"}`))
	want := decision.DefaultEvaluation()
	want.Policy = "greedy"
	if diff := cmp.Diff(want, q); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	q, err = decodeEvaluate([]byte(`{"spec":{"mode": "frozen"},"gates":["ess > 1"],"since":5,"until":9,"folds":3,"bootstrap":0,
		"seed":"18446744073709551615","wMax":2.5,"rewardRange":[-1,1]}`))
	want = decision.EvaluateRequest{Spec: []byte(`{"mode": "frozen"}`), Gates: []string{"ess > 1"},
		Span: decision.Span{Since: 5, Until: 9}, Folds: 3, Seed: math.MaxUint64, WMax: 2.5, Range: &[2]float64{-1, 1}}
	if diff := cmp.Diff(want, q); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for body, says := range map[string]string{
		`{"policy":""}`:                       "`policy` must not be empty",
		`{"policy":1}`:                        "`policy` has the wrong type",
		`{"spec":1}`:                          "`spec` must be a JSON object",
		`{"policy":"greedy","folds":"5"}`:     "`folds` has the wrong type",
		`{"policy":"greedy","folds":2.5}`:     "`folds` has the wrong type",
		`{"policy":"greedy","gates":"x"}`:     "`gates` has the wrong type",
		`{"policy":"greedy","seed":-1}`:       "`seed` must be a whole number from 0 to 18446744073709551615",
		`{"policy":"greedy","rewardRange":7}`: "`rewardRange` has the wrong type",
	} {
		if _, err := decodeEvaluate([]byte(body)); fault.KindOf(err) != fault.Invalid || err == nil || message(err) != says {
			t.Errorf("%s: %v, want %q", body, err, says)
		}
	}
}

func TestDurations(t *testing.T) {
	for text, seconds := range map[string]int64{
		"PT10M": 600, "PT1S": 1, "P1D": 86400, "P1DT2H3M4S": 93784, "PT0S": 0, "PT600S": 600, "P7D": 604800, "PT999999999H": 3599999996400,
	} {
		if got, ok := parseDuration(text); !ok || got != seconds {
			t.Errorf("%s: %d %v, want %d", text, got, ok, seconds)
		}
	}
	for _, text := range []string{"", "P", "PT", "10M", "P10", "PT10", "PT1.5S", "P1M", "P1Y", "P1W", "PTM", "PT1S1M", "PT1M1M", "P1DT",
		"pt1s", "PT-1S", "PT1S ", "PT9999999999S", "-PT1S", "P1D1D", "PT١S"} {
		if got, ok := parseDuration(text); ok {
			t.Errorf("%q is taken as %d s", text, got)
		}
	}
	for seconds := range int64(200_000) {
		if back, ok := parseDuration(formatSeconds(seconds)); !ok || back != seconds {
			t.Fatalf("%d s is written as %s and read as %d", seconds, formatSeconds(seconds), back)
		}
	}
	for seconds, text := range map[int64]string{0: "PT0S", 600: "PT10M", 3600: "PT1H", 86400: "P1D", 90061: "P1DT1H1M1S"} {
		if got := formatSeconds(seconds); got != text {
			t.Errorf("%d s: %s, want %s", seconds, got, text)
		}
	}
}

func TestMergeAll(t *testing.T) {
	var objects []map[string]any
	if err := json.Unmarshal([]byte(`[{"a":{"x":1,"y":{"p":1}},"b":1,"l":[1]},{"a":{"y":{"q":2},"z":3},"b":{"k":1},"l":[2]},{"b":2}]`), &objects); err != nil {
		t.Fatal(err)
	}
	got, err := mergeAll(objects)
	if want := `{"a":{"x":1,"y":{"p":1,"q":2},"z":3},"b":2,"l":[2]}`; err != nil || string(got) != want {
		t.Errorf("%s, want %s (%v)", got, want, err)
	}
	if got, err := mergeAll(nil); err != nil || string(got) != "{}" {
		t.Errorf("nothing merges to %s (%v)", got, err)
	}
}

func TestGraphText(t *testing.T) {
	yamlText := "# bench\ngraph:\n  - {id: used, op: coalesce, of: [series, default]}\n  - id: c\n    op: const\n    value: [1, 2.50, true, null, ~, 'on', \"x\\u00e9\", 1e3, 0x10]\n"
	got, err := graphText([]byte(yamlText))
	want := `{"graph":[{"id":"used","op":"coalesce","of":["series","default"]},{"id":"c","op":"const","value":[1,2.50,true,null,null,"on","xé",1e3,16]}]}`
	if err != nil || string(got) != want {
		t.Errorf("%s\nwant %s (%v)", got, want, err)
	}
	if got, err := graphText([]byte(`{"graph": []}`)); err != nil || string(got) != `{"graph": []}` {
		t.Errorf("JSON is kept as it is: %s (%v)", got, err)
	}
	for body, says := range map[string]string{
		"":                        "invalid JSON: empty body",
		"\x00asm\x01":             "a binary program is not accepted",
		"LYC\xff\xfe":             "a binary program is not accepted",
		`{"graph":[],"graph":[]}`: "invalid JSON: duplicate key",
		"graph: []\ngraph: []":    "invalid JSON: duplicate key",
		"just words":              "the program must be a mapping",
		"- a":                     "the program must be a mapping",
		"a: [":                    "the program is neither JSON nor YAML",
		"a: &x [1]\nb: *x":        "line 1: anchors and aliases are not accepted",
		"a: 1\n---\nb: 2":         "the program holds more than one YAML document",
		"a: .nan":                 "line 1: `.nan` is not a value that JSON has",
		"a: .inf":                 "line 1: `.inf` is not a value that JSON has",
		"? [a]\n: 1":              "line 1: a name must be plain text",
		"a: !!binary aGk=":        "line 1: `aGk=` is not a value that JSON has",
	} {
		if _, err := graphText([]byte(body)); err == nil || !strings.HasPrefix(message(err), says) {
			t.Errorf("%q: %v, want %q", body, err, says)
		}
	}
	if _, err := graphText([]byte("a: " + strings.Repeat("[", 100) + strings.Repeat("]", 100))); err == nil {
		t.Error("a hundred nested lists are accepted")
	}
}

func FuzzDecide(f *testing.F) {
	for _, m := range malformed {
		f.Add([]byte(m.body))
	}
	f.Add([]byte(`{"context":{"a":1,"contextKey":2},"contextKey":"k","features":{"a":3},"actions":[{"id":"a"}],"eventId":"e"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		d := new(decideBody)
		err := d.decode(body)
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed")
		}
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatalf("kind of %v", err)
			}
			return
		}
		if len(d.req.Context) > 0 && check(d.req.Context) != nil {
			t.Fatalf("the context is not a strict object: %s", d.req.Context)
		}
		for _, a := range d.req.Actions {
			if a.Features != nil && check(a.Features) != nil {
				t.Fatalf("features are not a strict object: %s", a.Features)
			}
		}
	})
}

func FuzzReward(f *testing.F) {
	f.Add([]byte(`{"decisionId":"d","reward":0.7,"idempotencyKey":"k","detail":{"a":1}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := rewardBody(body)
		if err != nil && fault.KindOf(err) != fault.Invalid {
			t.Fatalf("kind of %v", err)
		}
		if err == nil && (q.DecisionID == "" || math.IsNaN(q.Value) || math.IsInf(q.Value, 0)) {
			t.Fatalf("accepted %+v", q)
		}
	})
}

func FuzzUpload(f *testing.F) {
	f.Add([]byte(`{"decisions":[` + uploadItem + `]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		items, err := decodeUploads(body)
		if err != nil && fault.KindOf(err) != fault.Invalid && fault.KindOf(err) != fault.TooLarge {
			t.Fatalf("kind of %v", err)
		}
		if err == nil && slices.ContainsFunc(items, func(u decision.Upload) bool { return u.ChosenIndex < 0 }) {
			t.Fatal("a negative index")
		}
	})
}

func FuzzEvaluate(f *testing.F) {
	f.Add([]byte(`{"policy":"greedy","gates":["ess > 1"],"seed":"9","rewardRange":[0,1]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := decodeEvaluate(body); err != nil && fault.KindOf(err) != fault.Invalid {
			t.Fatalf("kind of %v", err)
		}
	})
}

func FuzzGraphText(f *testing.F) {
	f.Add([]byte("graph:\n  - {id: a, op: input, path: x}"))
	f.Add([]byte(`{"graph":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		text, err := graphText(body)
		if err != nil && fault.KindOf(err) != fault.Invalid {
			t.Fatalf("kind of %v", err)
		}
		if err == nil && check(text) != nil {
			t.Fatalf("not a strict object: %s", text)
		}
	})
}

func FuzzDuration(f *testing.F) {
	f.Add("P1DT2H3M4S")
	f.Fuzz(func(t *testing.T, text string) {
		seconds, ok := parseDuration(text)
		if !ok {
			return
		}
		if back, ok := parseDuration(formatSeconds(seconds)); !ok || back != seconds {
			t.Fatalf("%q is %d s, written as %s", text, seconds, formatSeconds(seconds))
		}
	})
}

func FuzzRank(f *testing.F) {
	f.Add([]byte(`{"contextFeatures":[{"a":1}],"actions":[{"id":"x","features":[{"b":2},{"b":{"c":1}}]}],"excludedActions":["x"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, _, err := decodeRank(body)
		if err != nil && fault.KindOf(err) != fault.Invalid {
			t.Fatalf("kind of %v", err)
		}
		if err == nil && check(req.Context) != nil {
			t.Fatalf("the context is not a strict object: %s", req.Context)
		}
	})
}

func FuzzLegacy(f *testing.F) {
	f.Add([]byte(`{"input":{"a":[1]},"contextKey":"eu"}`))
	f.Add([]byte(`{"contextKey":"eu","x":{"contextKey":1}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d := new(decideBody)
		err := d.decodeLegacy(body)
		if err != nil && fault.KindOf(err) != fault.Invalid {
			t.Fatalf("kind of %v", err)
		}
		if err == nil && len(d.req.Context) > 0 && check(d.req.Context) != nil {
			t.Fatalf("the context is not a strict object: %s", d.req.Context)
		}
	})
}

func FuzzConfiguration(f *testing.F) {
	f.Add([]byte(`{"rewardWaitTime":"PT10M","defaultReward":0.5,"rewardAggregation":"sum","explorationPercentage":0.2,"learningMode":"Apprentice"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var b configBody
		if decode(body, &b) != nil {
			return
		}
		patch, err := b.patch()
		if err != nil && fault.KindOf(err) != fault.Invalid {
			t.Fatalf("kind of %v", err)
		}
		if err == nil && check(patch) != nil {
			t.Fatalf("not a patch: %s", patch)
		}
	})
}
