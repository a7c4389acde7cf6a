package main

import (
	"encoding/json/v2"
	"fmt"
	"math"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"holdfast/docs/openapi"
)

// description is the OpenAPI document as a judge of answers: the rig shows it every answer that any test gets.
type description struct {
	root  map[string]any
	paths []describedPath
}

type describedPath struct {
	template string
	segments []string
	methods  map[string]any
}

var described = sync.OnceValues(func() (all []*description, err error) {
	for _, text := range [][]byte{openapi.Decision(), openapi.Gateway()} {
		d, err := newDescription(text)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
})

func newDescription(text []byte) (*description, error) {
	d := &description{}
	if err := json.Unmarshal(text, &d.root); err != nil {
		return nil, err
	}
	for template, methods := range d.root["paths"].(map[string]any) {
		d.paths = append(d.paths, describedPath{template, strings.Split(template, "/"), methods.(map[string]any)})
	}
	// A literal segment wins over a parameter, as in the server.
	slices.SortFunc(d.paths, func(a, b describedPath) int {
		return strings.Count(a.template, "{") - strings.Count(b.template, "{")
	})
	return d, nil
}

// describes finds the description that has a request's operation; nil when none has.
func describes(t testing.TB, method, path string) (*description, map[string]any) {
	t.Helper()
	all, err := described()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if o := d.operation(method, path); o != nil {
			return d, o
		}
	}
	return nil, nil
}

// judge complains when an answer is not what the description says. What no operation describes must be an error.
func judge(t testing.TB, method, path string, w *httptest.ResponseRecorder) {
	t.Helper()
	path, _, _ = strings.Cut(path, "?")
	d, o := describes(t, method, path)
	if o == nil {
		if w.Code < 400 {
			t.Errorf("%s %s: answered %d and described nowhere", method, path, w.Code)
		}
		return
	}
	response, ok := o["responses"].(map[string]any)[fmt.Sprint(w.Code)].(map[string]any)
	if !ok {
		t.Errorf("%s %s: the status %d is not described: %s", method, path, w.Code, w.Body)
		return
	}
	response = d.follow(response)
	content, ok := response["content"].(map[string]any)
	if !ok {
		if w.Body.Len() > 0 {
			t.Errorf("%s %s: %d has a body that is not described", method, path, w.Code)
		}
		return
	}
	media, ok := content["application/json"].(map[string]any)
	if !ok {
		return // text
	}
	var body any
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Errorf("%s %s: %d: %v: %s", method, path, w.Code, err, w.Body)
		return
	}
	if err := d.valid(media["schema"].(map[string]any), body); err != nil {
		t.Errorf("%s %s: the answer %d is not as described: %v\n%s", method, path, w.Code, err, w.Body)
	}
}

// judgeRequest complains when a body that was taken is not one that the description allows.
func judgeRequest(t testing.TB, method, path string, text []byte) {
	t.Helper()
	d, o := describes(t, method, path)
	if o == nil || len(text) == 0 || strings.HasSuffix(path, ":batch") {
		return // a batch may hold items that are refused one by one
	}
	request, ok := o["requestBody"].(map[string]any)
	if !ok {
		return
	}
	var body any
	if json.Unmarshal(text, &body) != nil {
		return // YAML
	}
	media := request["content"].(map[string]any)["application/json"].(map[string]any)
	if err := d.valid(media["schema"].(map[string]any), body); err != nil {
		t.Errorf("%s %s: took a body that is not described: %v\n%.500s", method, path, err, text)
	}
}

// operation finds what describes a request, with or without /v1.
func (d *description) operation(method, path string) map[string]any {
	for _, path := range []string{path, "/v1" + path} {
		segments := strings.Split(path, "/")
		for _, p := range d.paths {
			got := segments
			if n := len(p.segments); p.segments[n-1] == "{rest}" && len(got) > n {
				got = got[:n]
			}
			if slices.EqualFunc(p.segments, got, func(want, got string) bool {
				return want == got || strings.HasPrefix(want, "{") && got != ""
			}) {
				if o, ok := p.methods[strings.ToLower(method)].(map[string]any); ok {
					return o
				}
			}
		}
	}
	return nil
}

// follow returns what a reference leads to.
func (d *description) follow(v map[string]any) map[string]any {
	to, ok := v["$ref"].(string)
	if !ok {
		return v
	}
	at := any(d.root)
	for part := range strings.SplitSeq(strings.TrimPrefix(to, "#/"), "/") {
		at = at.(map[string]any)[part]
	}
	return at.(map[string]any)
}

// valid checks v against as much of JSON Schema as the document uses.
func (d *description) valid(schema map[string]any, v any) error {
	schema = d.follow(schema)
	if want, ok := schema["const"]; ok && !reflect.DeepEqual(want, v) {
		return fmt.Errorf("%v is not %v", v, want)
	}
	if enum, ok := schema["enum"].([]any); ok && v != nil && !slices.ContainsFunc(enum, func(e any) bool { return reflect.DeepEqual(e, v) }) {
		return fmt.Errorf("%v is none of %v", v, enum)
	}
	if err := d.validChoice(schema, v); err != nil {
		return err
	}
	if want, ok := schema["type"]; ok && !hasType(want, v) {
		return fmt.Errorf("%v is not of type %v", v, want)
	}
	switch v := v.(type) {
	case map[string]any:
		return d.validObject(schema, v)
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i, item := range v {
			if items == nil {
				break
			}
			if err := d.valid(items, item); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return within(schema, "minItems", "maxItems", float64(len(v)))
	case string:
		if pattern, ok := schema["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(v) {
			return fmt.Errorf("%q does not match %s", v, pattern)
		}
		return within(schema, "minLength", "maxLength", float64(utf8.RuneCountInString(v)))
	case float64:
		if low, ok := schema["exclusiveMinimum"].(float64); ok && v <= low {
			return fmt.Errorf("%v is not above %v", v, low)
		}
		return within(schema, "minimum", "maximum", v)
	}
	return nil
}

// validChoice checks anyOf and oneOf.
func (d *description) validChoice(schema map[string]any, v any) error {
	for _, word := range []string{"anyOf", "oneOf"} {
		choices, ok := schema[word].([]any)
		if !ok {
			continue
		}
		fits := 0
		var errs []error
		for _, choice := range choices {
			if err := d.valid(choice.(map[string]any), v); err == nil {
				fits++
			} else {
				errs = append(errs, err)
			}
		}
		if fits == 0 || word == "oneOf" && fits > 1 {
			return fmt.Errorf("%s: %d fit: %v", word, fits, errs)
		}
	}
	return nil
}

func (d *description) validObject(schema, v map[string]any) error {
	properties, _ := schema["properties"].(map[string]any)
	others, _ := schema["additionalProperties"].(map[string]any)
	for name, value := range v {
		property, known := properties[name].(map[string]any)
		if !known && others != nil {
			property, known = others, true
		}
		if !known {
			if schema["additionalProperties"] == false {
				return fmt.Errorf("%s is not described", name)
			}
			continue
		}
		if err := d.valid(property, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := v[name.(string)]; !ok {
			return fmt.Errorf("%s is missing", name)
		}
	}
	return nil
}

func hasType(want, v any) bool {
	if list, ok := want.([]any); ok {
		return slices.ContainsFunc(list, func(one any) bool { return hasType(one, v) })
	}
	switch v := v.(type) {
	case nil:
		return want == "null"
	case bool:
		return want == "boolean"
	case string:
		return want == "string"
	case float64:
		return want == "number" || want == "integer" && v == math.Trunc(v)
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	}
	return false
}

func within(schema map[string]any, least, most string, v float64) error {
	if low, ok := schema[least].(float64); ok && v < low {
		return fmt.Errorf("%v is below %s %v", v, least, low)
	}
	if high, ok := schema[most].(float64); ok && v > high {
		return fmt.Errorf("%v is above %s %v", v, most, high)
	}
	return nil
}

// TestTheJudgeSeesWhatIsWrong holds the judge itself to its word.
func TestTheJudgeSeesWhatIsWrong(t *testing.T) {
	answer := func(status int, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		w.WriteHeader(status)
		_, _ = w.WriteString(body)
		return w
	}
	const good = `{"decisionId":"d","action":"a","actionIndex":0,"probability":1,"ranking":[{"id":"a","probability":1}],"mode":"learner","modelVersion":0}`
	judge(t, "POST", heroPath+"/decide?learn=true", answer(200, good))
	judge(t, "POST", strings.TrimPrefix(heroPath, "/v1")+"/decide", answer(200, good))
	for i, c := range []struct {
		status int
		body   string
	}{
		{200, strings.Replace(good, `"probability":1}`, `"probability":2}`, 1)}, {200, strings.Replace(good, `"mode":"learner"`, `"mode":"wild"`, 1)},
		{200, strings.Replace(good, `,"modelVersion":0`, ``, 1)}, {200, strings.Replace(good, `"actionIndex":0`, `"actionIndex":0.5`, 1)},
		{200, strings.Replace(good, `{"decisionId"`, `{"surprise":1,"decisionId"`, 1)}, {200, strings.Replace(good, `"d"`, `"a/b"`, 1)},
		{200, `[]`}, {200, `{`}, {201, good}, {400, `{"error":1}`}, {400, `{"error":{"code":"BadArgument","message":"x"}}`},
	} {
		heard := &hearing{TB: t}
		judge(heard, "POST", heroPath+"/decide", answer(c.status, c.body))
		if heard.complaints != 1 {
			t.Errorf("%d: %d complaints about %d %s", i, heard.complaints, c.status, c.body)
		}
	}
}

// hearing is a testing.TB that counts complaints.
type hearing struct {
	testing.TB
	complaints int
}

func (h *hearing) Helper()               {}
func (h *hearing) Errorf(string, ...any) { h.complaints++ }
