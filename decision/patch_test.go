package decision

import (
	"bytes"
	"encoding/json/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/fault"
)

func TestMergePatch(t *testing.T) {
	for _, tc := range []struct{ name, doc, patch, want string }{
		{"identity", `{"a":1.0,"b":[1, 2]}`, `{}`, `{"a":1.0,"b":[1,2]}`},
		{"replace keeps number text", `{"a":1}`, `{"a":10.0}`, `{"a":10.0}`},
		{"untouched number text", `{"a":1e-07,"b":2}`, `{"b":3}`, `{"a":1e-07,"b":3}`},
		{"null removes", `{"a":1,"b":2}`, `{"a":null}`, `{"b":2}`},
		{"null of nothing", `{"a":1}`, `{"z":null}`, `{"a":1}`},
		{"nested", `{"a":{"b":1,"c":2}}`, `{"a":{"b":3}}`, `{"a":{"b":3,"c":2}}`},
		{"nested null", `{"a":{"b":1,"c":2}}`, `{"a":{"b":null}}`, `{"a":{"c":2}}`},
		{"object over scalar", `{"a":1}`, `{"a":{"b":2,"c":null}}`, `{"a":{"b":2}}`},
		{"scalar over object", `{"a":{"b":2}}`, `{"a":7}`, `{"a":7}`},
		{"arrays whole", `{"a":[1,2,3]}`, `{"a":[{"x":null}]}`, `{"a":[{"x":null}]}`},
		{"new members follow", `{"b":1}`, `{"a":{"x":1},"c":2}`, `{"b":1,"a":{"x":1},"c":2}`},
		{"escaped name is the same name", `{"a":1}`, `{"\u0061":2}`, `{"a":2}`},
		{"white space in strings stays", `{"a":"x y\" z"}`, `{ "b" : "\\ \" " }`, `{"a":"x y\" z","b":"\\ \" "}`},
		{"largest unsigned", `{"seed":1}`, `{"seed":18446744073709551615}`, `{"seed":18446744073709551615}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := MergePatch([]byte(tc.doc), []byte(tc.patch))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestMergePatchRefuses(t *testing.T) {
	for _, patch := range []string{``, ` `, `null`, `[]`, `1`, `"x"`, `{"a":1,"a":2}`, `{"a":1}x`, `{"a":1e999}`, "{\"a\":\"\xff\"}", `{"a":`} {
		if _, err := MergePatch([]byte(`{}`), []byte(patch)); fault.KindOf(err) != fault.Invalid || err == nil {
			t.Errorf("%q: got %v, want an Invalid fault", patch, err)
		}
	}
}

// mergeNaive is RFC 7396 as its text has it, over decoded values.
func mergeNaive(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for name, value := range changes {
		if value == nil {
			delete(object, name)
		} else {
			object[name] = mergeNaive(object[name], value)
		}
	}
	return object
}

func FuzzMergePatch(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1}}`), []byte(`{"a":{"b":null,"c":[1]}}`))
	f.Add([]byte(`{"":0}`), []byte(`{"\u0000":{"":{}}}`))
	f.Fuzz(func(t *testing.T, doc, patch []byte) {
		got, err := MergePatch(doc, patch)
		if err != nil {
			return
		}
		var d, p, have any
		if json.Unmarshal(doc, &d) != nil || json.Unmarshal(patch, &p) != nil {
			t.Skip() // a number that only our scanner's rules accept
		}
		if err := json.Unmarshal(got, &have); err != nil {
			t.Fatalf("%s is no JSON: %v", got, err)
		}
		if diff := cmp.Diff(mergeNaive(d, p), have); diff != "" {
			t.Fatalf("doc %s patch %s: %s", doc, patch, diff)
		}
		again, err := MergePatch(got, []byte(`{}`))
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("the empty patch changed %s into %s (%v)", got, again, err)
		}
	})
}
