package gatewayapi

import (
	"net/http/httptest"
	"strings"
	"testing"

	"holdfast/fault"
)

type form struct {
	Email *string `json:"email"`
	Count int     `json:"count"`
	Inner struct {
		Flag bool `json:"flag"`
	} `json:"inner"`
}

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct {
		kind, body string
		want       fault.Kind
		says       string
	}{
		"broken":                  {"application/json", `{`, fault.Invalid, "byte 1"},
		"empty":                   {"application/json", ``, fault.Invalid, "empty body"},
		"two values":              {"application/json", `{} {}`, fault.Invalid, "byte"},
		"one name twice":          {"application/json", `{"email":"a","email":"b"}`, fault.Invalid, "duplicate"},
		"deep":                    {"application/json", strings.Repeat("[", 65) + strings.Repeat("]", 65), fault.Invalid, "byte"},
		"a form":                  {"application/x-www-form-urlencoded", `{}`, fault.Unsupported, "application/json"},
		"no type that can be one": {"json;;", `{}`, fault.Unsupported, "application/json"},
		"a list":                  {"application/json", `[]`, fault.Unfit, "form of this call"},
		"a number for a text":     {"application/json", `{"email":1}`, fault.Unfit, "`email`"},
		"a text for a number":     {"application/json", `{"count":"1"}`, fault.Unfit, "`count`"},
		"a fraction for a whole":  {"application/json", `{"count":1.5}`, fault.Unfit, "`count`"},
		"inside":                  {"application/json", `{"inner":{"flag":1}}`, fault.Unfit, "`flag`"},
	} {
		r := httptest.NewRequest("POST", "/x", nil)
		r.Header.Set("Content-Type", c.kind)
		err := decode(r, []byte(c.body), &form{})
		if err == nil || fault.KindOf(err) != c.want || !strings.Contains(fault.MessageOf(err), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if text := fault.MessageOf(err); strings.Contains(text, "gatewayapi") || strings.Contains(text, "Go ") {
			t.Errorf("%s: names of ours in %q", name, text)
		}
	}
	for _, kind := range []string{"", "application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json"} {
		r := httptest.NewRequest("POST", "/x", nil)
		if kind != "" {
			r.Header.Set("Content-Type", kind)
		}
		var f form
		if err := decode(r, []byte(`{"email":"a","cardBrand":{"x":[1]},"count":null}`), &f); err != nil || *f.Email != "a" {
			t.Errorf("%q: %v", kind, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"email":"a","count":1,"inner":{"flag":true}}`))
	f.Add([]byte(`{"email":null,"x":[[[]]]}`))
	f.Add([]byte("\xff"))
	r := httptest.NewRequest("POST", "/x", nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		err := decode(r, body, &form{})
		if err == nil {
			return
		}
		if k := fault.KindOf(err); k != fault.Invalid && k != fault.Unfit {
			t.Errorf("%q: %v", body, err)
		}
	})
}
