package strictjson

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestValidateAccepts(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`, ` null `, "\t\r\n1", `-0`, `0.5e-3`, `1E+2`, `"a\u00e9\"\\\/\b\f\n\r\t"`, `"\ud83d\ude00"`, `"é😀"`, `{"":1}`,
		`{"a":{"a":{"a":[{"a":1},{"a":2}]}}}`, `[[],{},[[]]]`, `1e-999`, `{"a":1,"A":2}`, strings.Repeat("9", 300),
		`123456789012345678901234567890.5`, `"` + strings.Repeat("x", 100) + `"`,
	} {
		if err := Validate([]byte(text), 64); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	tests := []struct {
		text   string
		offset int
		msg    string
	}{
		{"", 0, "empty body"}, {" \n\t", 3, "empty body"}, {"{} x", 3, "unexpected text after the value"},
		{"{}{}", 2, "unexpected text after the value"}, {"\v1", 0, "expected a value"}, {"\xef\xbb\xbf1", 0, "expected a value"},
		{`{"a":1,"a":2}`, 7, "duplicate key"}, {`{"a":1,"\u0061":2}`, 7, "duplicate key"}, {`{"\u0061":1,"a":2}`, 12, "duplicate key"},
		{`[{"x":{"b":1,"c":2,"b":3}}]`, 19, "duplicate key"}, {`{"":1,"":2}`, 6, "duplicate key"},
		{`"\ud800"`, 1, "bad escape in a string"}, {`"\udc00\ud800"`, 1, "bad escape in a string"}, {`"\ud800\u0041"`, 1, "bad escape in a string"},
		{`"\x"`, 1, "bad escape in a string"}, {`"\u12g4"`, 1, "bad escape in a string"}, {"\"a\xff\"", 2, "invalid UTF-8"},
		{"\"\xed\xa0\x80\"", 1, "invalid UTF-8"}, {"\"\xc0\xaf\"", 1, "invalid UTF-8"}, {"\"a\nb\"", 2, "control character in a string"},
		{`"abc`, 4, "unexpected end of text"}, {`{"a"`, 4, "unexpected end of text"}, {`{"a":`, 5, "unexpected end of text"},
		{`{"a":1`, 6, "unexpected end of text"}, {`[1`, 2, "unexpected end of text"}, {`{`, 1, "unexpected end of text"},
		{`{"a" 1}`, 5, "expected a colon"}, {`{"a":1,}`, 7, "expected a member name"}, {`{a:1}`, 1, "expected a member name"},
		{`{"a":1;}`, 6, "expected a comma or the end of the object"}, {`[1 2]`, 3, "expected a comma or the end of the array"},
		{`[1,]`, 3, "expected a value"}, {`01`, 1, "bad number"}, {`-`, 1, "unexpected end of text"}, {`1.`, 2, "unexpected end of text"},
		{`1.x`, 2, "bad number"}, {`1e`, 2, "unexpected end of text"}, {`+1`, 0, "expected a value"}, {`.5`, 0, "expected a value"},
		{`NaN`, 0, "expected a value"}, {`Infinity`, 0, "expected a value"}, {`1e999`, 0, "number out of range"},
		{`[-1e309]`, 1, "number out of range"}, {strings.Repeat("9", 400), 0, "number out of range"}, {`tru`, 0, "unknown word"},
		{`nul`, 0, "unknown word"}, {`'a'`, 0, "expected a value"}, {`1 // c`, 2, "unexpected text after the value"},
		{`[[[[1]]]]`, 3, "nested too deeply"}, {`{"a":{"b":{"c":{}}}}`, 15, "nested too deeply"},
	}
	for _, test := range tests {
		var e *Error
		if err := Validate([]byte(test.text), 3); !errors.As(err, &e) || e.Offset != test.offset || e.Msg != test.msg {
			t.Errorf("%q: got %v, want %s at byte %d", test.text, err, test.msg, test.offset)
		}
	}
}

func TestDepthIsPerPath(t *testing.T) {
	if err := Validate([]byte(`[[[1],[2]],[[3]],{"a":[{}]}]`), 3); err == nil {
		t.Error("four levels pass a cap of three")
	}
	if err := Validate([]byte(`[[[1],[2]],[[3]],{"a":[{}]}]`), 4); err != nil {
		t.Error(err)
	}
}

func TestDuplicatesInLargeObjects(t *testing.T) {
	for _, n := range []int{15, 16, 17, 18, 31, 32, 33, 500, 5000} {
		var text strings.Builder
		text.WriteString(`{"nested":{"k0":1}`)
		for i := range n {
			fmt.Fprintf(&text, `,"k%d":{"k%d":%d}`, i, i, i)
		}
		if err := Validate([]byte(text.String()+"}"), 8); err != nil {
			t.Errorf("%d distinct names: %v", n, err)
		}
		for _, again := range []string{"k0", `\u006b` + strconv.Itoa(n-1), "nested"} {
			err := Validate([]byte(text.String()+`,"`+again+`":0}`), 8)
			if err == nil || !strings.HasPrefix(err.Error(), "duplicate key") {
				t.Errorf("%d names, %s again: %v", n, again, err)
			}
		}
	}
}

// A body of the largest accepted size with as many names as fit must not take quadratic time: comparing them one by one
// would take minutes.
func TestManyNamesAreLinear(t *testing.T) {
	text := []byte{'{'}
	for i := 0; len(text) < 4<<20-20; i++ {
		text = append(text, '"')
		text = strconv.AppendInt(text, int64(i), 36)
		text = append(text, `":1,`...)
	}
	text = append(text, `"END":1}`...)
	start := time.Now()
	if err := Validate(text, 8); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestFloatAgreesWithStrconv(t *testing.T) {
	for _, text := range []string{
		"0", "-0", "1", "-1", "0.1", "123456789012345", "1234567890123456", "9007199254740993", "9007199254740992", "0.000000000000001",
		"0.0000000000000001", "1.7976931348623157e308", "5e-324", "4.9e-324", "2.2250738585072011e-308", "1e22", "1e23", "-12.75", "3.14159",
		"0.30000000000000004", "8.41", "123456.7890123456", "999999999999999.9", "1e-400", "99999999999999.99",
	} {
		want, _ := strconv.ParseFloat(text, 64)
		got, ok := Float([]byte(text))
		if !ok || math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%s: %v %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-", ".", "1.", ".1", "01", "-01", "1e", "0x10", "1_0", "NaN", "inf", "1e400", "--1", "1.2.3", "1 "} {
		if v, ok := Float([]byte(text)); ok {
			t.Errorf("%q is %v", text, v)
		}
	}
}

func TestUint(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "7": 7, "18446744073709551615": math.MaxUint64, "18446744073709551610": math.MaxUint64 - 5} {
		if got, ok := Uint([]byte(text)); !ok || got != want {
			t.Errorf("%s: %d %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "-1", "01", "1.0", "1e3", "18446744073709551616", "28446744073709551615", "99999999999999999999", "a"} {
		if got, ok := Uint([]byte(text)); ok {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestText(t *testing.T) {
	scratch := []byte("old")
	if got := Text(&scratch, []byte(`"plain"`)); string(got) != "plain" || string(scratch) != "old" {
		t.Errorf("plain text was copied: %q %q", got, scratch)
	}
	raw := []byte(`"a\u00e9\"\\\/\b\f\n\r\t\ud83d\ude00z"`)
	if got, want := string(Text(&scratch, raw)), "aé\"\\/\b\f\n\r\t😀z"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, raw := range []string{``, `"`, `1`, `"a`} {
		if got := Text(&scratch, []byte(raw)); len(got) != 0 {
			t.Errorf("%q has the text %q", raw, got)
		}
	}
}

func TestCursor(t *testing.T) {
	body := []byte(` { "a" : [ 1 , "x]" , [ ] , {"b":{}} ] , "\u0062" : {"c":null} ,"d":true,"e":-1.5 } `)
	if err := Validate(body, 8); err != nil {
		t.Fatal(err)
	}
	var got []string
	c := Walk(body)
	for c.Enter(); c.More(); {
		key := string(c.Key())
		if c.Kind() == Array {
			for c.Enter(); c.More(); {
				got = append(got, key+"[]="+string(c.Skip()))
			}
			continue
		}
		got = append(got, fmt.Sprint(key, "=", string(c.Skip())))
	}
	want := `a[]=1 a[]="x]" a[]=[ ] a[]={"b":{}} b={"c":null} d=true e=-1.5`
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	if c.Kind() != None || c.Enter() || c.More() || len(c.Skip()) != 0 {
		t.Error("the cursor is not at the end")
	}
}

func TestKindOf(t *testing.T) {
	for text, want := range map[string]Kind{"": None, "x": None, "{": Object, "[": Array, `"`: String, "true": Bool, "false": Bool,
		"null": Null, "-1": Number, "0": Number, "9": Number, "+1": None, " 1": None} {
		if got := KindOf([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestAppend(t *testing.T) {
	dst := AppendString([]byte("x"), "a\"\\\n\r\t\b\f\x01é😀\xffz")
	if want := "x" + `"a\"\\\n\r\t\b\f\u0001é😀` + "\uFFFD" + `z"`; string(dst) != want {
		t.Errorf("got %q, want %q", dst, want)
	}
	if got := AppendString(nil, []byte("ab")); string(got) != `"ab"` {
		t.Errorf("bytes: %s", got)
	}
	for value, want := range map[float64]string{0: "0", 1: "1", 0.1: "0.1", 1e-6: "0.000001", 1e-7: "1e-7", 1e21: "1e+21", 1e20: "100000000000000000000",
		-2.5: "-2.5", 5e-324: "5e-324", 1.5e-10: "1.5e-10", math.MaxFloat64: "1.7976931348623157e+308", math.Inf(1): "null", math.NaN(): "null"} {
		if got := string(AppendFloat(nil, value)); got != want {
			t.Errorf("%v: %s, want %s", value, got, want)
		}
	}
	got := string(AppendBool(AppendInt(AppendUint(nil, math.MaxUint64), -7), true))
	if want := "18446744073709551615-7true"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// sameValues walks both texts side by side: ours through a Cursor, the reference through jsontext.
func sameValues(t *testing.T, text []byte) {
	t.Helper()
	var want, got any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	c := Walk(text)
	got = valueOf(&c)
	wantText, err := json.Marshal(want, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	gotText, err := json.Marshal(got, json.Deterministic(true))
	if err != nil || !bytes.Equal(wantText, gotText) {
		t.Errorf("%q:\ngot  %s (%v)\nwant %s", text, gotText, err, wantText)
	}
}

func valueOf(c *Cursor) any {
	var scratch []byte
	switch c.Kind() {
	case Object:
		m := map[string]any{}
		for c.Enter(); c.More(); {
			key := string(c.Key())
			m[key] = valueOf(c)
		}
		return m
	case Array:
		l := []any{}
		for c.Enter(); c.More(); {
			l = append(l, valueOf(c))
		}
		return l
	case String:
		return string(Text(&scratch, c.Skip()))
	case Number:
		f, _ := Float(c.Skip())
		return f
	case Bool:
		return string(c.Skip()) == "true"
	default:
		c.Skip()
		return nil
	}
}

func FuzzAgainstStandard(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"x\n\ud83d\ude00",null,true]}`, `{"a":1,"a":2}`, `1e999`, `"\ud800"`, `[[[]]]`, ` 1 2`, `-0.0`,
		`{"k1":0,"k2":0,"k3":0,"k4":0,"k5":0,"k6":0,"k7":0,"k8":0,"k9":0,"ka":0,"kb":0,"kc":0,"kd":0,"ke":0,"kf":0,"kg":0,"kh":0,"k1":0}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ours := Validate(text, 1000)
		var want any
		theirs := json.Unmarshal(text, &want)
		if (ours == nil) != (theirs == nil) {
			t.Fatalf("%q: ours %v, the standard's %v", text, ours, theirs)
		}
		c := Walk(text)
		if ours == nil {
			sameValues(t, text)
		} else {
			valueOf(&c) // must end without a panic
		}
	})
}

func FuzzFloat(f *testing.F) {
	for _, seed := range []string{"1.5", "-0", "1e400", "123456789.123456", "0.1e-5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := Float([]byte(text))
		valid := jsontext.Value(text).Kind() == '0' && !strings.ContainsAny(text, " \t\r\n") && jsontext.Value(text).IsValid()
		want, err := strconv.ParseFloat(text, 64)
		if ok != (valid && err == nil) || ok && math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%q: %v %v, want %v %v", text, got, ok, want, err)
		}
	})
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\"\\\n\x00é")
	f.Fuzz(func(t *testing.T, text string) {
		raw := AppendString(nil, text)
		if err := Validate(raw, 1); err != nil {
			t.Fatalf("%q became %q: %v", text, raw, err)
		}
		if got, want := string(AppendText(nil, raw)), string([]rune(text)); got != want {
			t.Errorf("%q came back as %q", text, got)
		}
	})
}

const smallBody = `{"context":{"plan":"pro","basket":63.5,"device":{"os":"ios"}},"excludedActions":["standard"],"eventId":"cart-9917"}`

// largeBody has ten context features and three request actions with two features each.
const largeBody = `{"context":{"plan":"pro","basket":63.5,"items":4,"country":"NL","returning":true,"hour":17,"device":"ios","age":341,` +
	`"channel":"search","score":0.82},"actions":[{"id":"express","features":{"fee":4.9,"days":1}},{"id":"standard","features":` +
	`{"fee":1.9,"days":3}},{"id":"pickup","features":{"fee":0,"days":2}}],"eventId":"cart-9917-0001"}`

var sink int

func TestAllocations(t *testing.T) {
	body, scratch := []byte(smallBody), make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() {
		if Validate(body, 64) != nil {
			t.Fail()
		}
	}); n != 0 {
		t.Errorf("Validate allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { sink += walkAll(body) }); n != 0 {
		t.Errorf("walking allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		scratch = AppendUint(AppendFloat(AppendString(scratch[:0], "a\nb"), 0.1), 7)
	}); n != 0 {
		t.Errorf("appending allocates %v times", n)
	}
}

func walkAll(body []byte) (n int) {
	c := Walk(body)
	for c.Enter(); c.More(); {
		n += len(c.Key()) + len(c.Skip())
	}
	return n
}

func BenchmarkValidate(b *testing.B) {
	for name, text := range map[string]string{"small": smallBody, "large": largeBody} {
		b.Run(name, func(b *testing.B) {
			body := []byte(text)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if Validate(body, 64) != nil {
					b.Fail()
				}
			}
		})
	}
}

func BenchmarkWalk(b *testing.B) {
	for name, text := range map[string]string{"small": smallBody, "large": largeBody} {
		b.Run(name, func(b *testing.B) {
			body := []byte(text)
			b.ReportAllocs()
			for b.Loop() {
				sink += walkAll(body)
			}
		})
	}
}

func BenchmarkFloat(b *testing.B) {
	raw := []byte("63.5")
	for b.Loop() {
		if _, ok := Float(raw); !ok {
			b.Fail()
		}
	}
}
