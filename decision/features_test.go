package decision

import (
	"encoding/json/v2"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast/fault"
	"holdfast/internal/strictjson"
)

// named is a feature with its name spelled out: the definition, where AppendFeatures only hashes.
type named struct {
	name  string
	value float32
}

func naiveFeatures(name string, value any) (out []named) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, naiveFeatures(name+"."+key, v[key])...)
		}
	case []any:
		for i, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, named{name + "=" + s, 1})
				continue
			}
			out = append(out, naiveFeatures(name+"["+strconv.Itoa(i)+"]", e)...)
		}
	case string:
		out = append(out, named{name + "=" + v, 1})
	case bool:
		out = append(out, named{fmt.Sprint(name, "=", v), 1})
	case float64:
		out = append(out, named{name, float32(v)})
	}
	return out
}

// naive returns the features of an object by way of maps and whole names.
func naive(namespace byte, object map[string]any) (out []Feature) {
	for key, value := range object {
		for _, f := range naiveFeatures(key, value) {
			out = append(out, Feature{Hash: HashText(string(namespace) + "\x00" + f.name), Value: f.value})
		}
	}
	return sortFeatures(out)
}

func sortFeatures(list []Feature) []Feature {
	slices.SortFunc(list, func(a, b Feature) int {
		if a.Hash != b.Hash {
			if a.Hash < b.Hash {
				return -1
			}
			return 1
		}
		return int(math.Float32bits(a.Value)) - int(math.Float32bits(b.Value))
	})
	return list
}

func TestFeatureNames(t *testing.T) {
	for _, test := range []struct {
		raw  string
		want []named
	}{
		{`{}`, nil},
		{``, nil},
		{`null`, nil},
		{`{"a":null,"b":[null],"c":{}}`, nil},
		{`{"n":-1.5}`, []named{{"n", -1.5}}},
		{`{"zero":0,"neg":-0}`, []named{{"zero", 0}, {"neg", float32(math.Copysign(0, -1))}}},
		{`{"s":"x","e":""}`, []named{{"s=x", 1}, {"e=", 1}}},
		{`{"t":true,"f":false}`, []named{{"t=true", 1}, {"f=false", 1}}},
		{`{"a":{"b":{"c":1},"d":"x"}}`, []named{{"a.b.c", 1}, {"a.d=x", 1}}},
		{`{"l":["x","y","x"]}`, []named{{"l=x", 1}, {"l=y", 1}, {"l=x", 1}}},
		{`{"l":[5,null,true,"s",{"k":"v"},[7,"w",[8]]]}`,
			[]named{{"l[0]", 5}, {"l[2]=true", 1}, {"l=s", 1}, {"l[4].k=v", 1}, {"l[5][0]", 7}, {"l[5]=w", 1}, {"l[5][2][0]", 8}}},
		{`{"":{"":1},"a":{"":"x"}}`, []named{{".", 1}, {"a.=x", 1}}},
		{`{"a.b":1,"a=x":2}`, []named{{"a.b", 1}, {"a=x", 2}}},
		{`{"\u00e9\n":"\ud83d\ude00\""}`, []named{{"é\n=😀\"", 1}}},
		{` { "a" : [ 1 , { "b" : 2 } ] } `, []named{{"a[0]", 1}, {"a[1].b", 2}}},
		{`{"big":3.4028234e38,"small":1e-60}`, []named{{"big", math.MaxFloat32}, {"small", 0}}},
	} {
		got := features(t, 'c', test.raw)
		want := make([]Feature, 0, len(test.want))
		for _, f := range test.want {
			want = append(want, Feature{Hash: HashText("c\x00" + f.name), Value: f.value})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", test.raw, got, test.want)
		}
	}
}

func TestNamespacesDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for _, ns := range []byte{ContextNamespace, ActionNamespace, DerivedNamespace} {
		seen[features(t, ns, `{"x":1}`)[0].Hash] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d different hashes", len(seen))
	}
}

func TestActionIdComesFirst(t *testing.T) {
	got := actionFeatures(t, "a b", `{"id":"a b","fee":2}`)
	id := HashText("a\x00id=a b")
	if len(got) != 3 || got[0] != (Feature{id, 1}) || got[1] != (Feature{id, 1}) || got[2].Value != 2 {
		t.Errorf("got %v", got)
	}
}

// nested returns an object of the given number of levels, alternating objects and arrays, with a number inside.
func nested(levels int) string {
	text := "1"
	for i := levels; i > 1; i-- {
		if i%2 == 0 {
			text = "[" + text + "]"
		} else {
			text = `{"k":` + text + "}"
		}
	}
	return `{"k":` + text + "}"
}

// numbers returns an object of n features.
func numbers(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func TestFeatureLimits(t *testing.T) {
	for _, raw := range []string{nested(8), numbers(4096), `{"x":3.4028235677973362e38}`, `{"x":-3.4028235e38}`} {
		if _, err := AppendFeatures(nil, 'c', []byte(raw)); err != nil {
			t.Errorf("%.40s: %v", raw, err)
		}
	}
	for raw, want := range map[string]string{
		nested(9): "8 levels", `{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{}}}}}}}}}`: "8 levels", `{"a":[[[[[[[[]]]]]]]]}`: "8 levels",
		numbers(4097): "4096", `{"x":3.4028235677973366e38}`: "32-bit", `{"x":-1e300}`: "32-bit", `[1]`: "JSON object", `"x"`: "JSON object", `7`: "JSON object",
	} {
		dst := []Feature{{1, 2}}
		got, err := AppendFeatures(dst, 'c', []byte(raw))
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) || !slices.Equal(got, dst) {
			t.Errorf("%.40s: %v, %d features", raw, err, len(got))
		}
	}
	if got, err := AppendActionFeatures(nil, "a", []byte(numbers(4095))); err != nil || len(got) != 4096 {
		t.Errorf("an action of 4096: %d, %v", len(got), err)
	}
	if got, err := AppendActionFeatures(nil, "a", []byte(numbers(4096))); fault.KindOf(err) != fault.Invalid || len(got) != 0 {
		t.Errorf("an action of 4097: %d, %v", len(got), err)
	}
}

func FuzzFeatures(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"x",{"b":true}],"c":{"d":null},"\u00e9":-0.5}`, nested(8), nested(9), `{"":[[""]]}`, `{"x":1e39}`, `{"a":`, `{]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := AppendFeatures(nil, 'c', raw)
		if strictjson.Validate(raw, 64) != nil {
			return // it only had to end without a panic
		}
		var object map[string]any
		if json.Unmarshal(raw, &object) != nil {
			if err == nil {
				t.Fatalf("%q: not an object but accepted", raw)
			}
			return
		}
		if err != nil {
			return
		}
		if want := naive('c', object); !slices.Equal(sortFeatures(got), want) {
			t.Errorf("%q: %v, want %v", raw, got, want)
		}
	})
}

const (
	smallContext = `{"plan":"pro","basket":63.5,"device":{"os":"ios"}}`
	smallAction  = `{"fee":4.9,"tier":"gold"}`
)

func TestFeatureAllocations(t *testing.T) {
	raw, dst := []byte(`{"plan":"pro","esc\u0061ped\n":["a","b\t"],"basket":63.5,"device":{"os":"ios"}}`), make([]Feature, 0, 16)
	// One allocation is the scratch of the escaped strings; there is none for plain ones.
	for text, most := range map[string]float64{string(raw): 2, smallContext: 0} {
		raw := []byte(text)
		if n := testing.AllocsPerRun(100, func() { dst, _ = AppendFeatures(dst[:0], 'c', raw) }); n > most {
			t.Errorf("%s allocates %v times", text, n)
		}
	}
}

func BenchmarkFeatures(b *testing.B) {
	raw, dst := []byte(smallContext), make([]Feature, 0, 16)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = AppendFeatures(dst[:0], 'c', raw)
	}
}
