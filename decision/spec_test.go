package decision

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"holdfast/fault"
)

func TestSpecDefaults(t *testing.T) {
	s, err := ParseSpec([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if string(s.Text) != string(Defaults()) {
		t.Errorf("text %s", s.Text)
	}
	want := Exploration{Kind: SquareCB, GammaScale: 10, GammaExponent: 0.5, Epsilon: 0.05, Floor: 0.05}
	if s.Exploration != want {
		t.Errorf("exploration %+v", s.Exploration)
	}
	if s.Lo != 0 || s.Hi != 1 || s.Default != nil || s.Wait != 10*time.Minute || len(s.Actions) != 0 {
		t.Errorf("reward %v..%v default %v wait %v actions %v", s.Lo, s.Hi, s.Default, s.Wait, s.Actions)
	}
	if s.Learner != (LearnerSpec{Bits: 18, Rate: 0.5, MaxWeight: 100}) {
		t.Errorf("learner %+v", s.Learner)
	}
	if s.Mode != Learner || s.BaselineEpsilon != 0.1 || s.Seed != nil || s.SnapshotEvery != 1000 || s.Rewards != First {
		t.Errorf("mode %v epsilon %v seed %v every %d rewards %v", s.Mode, s.BaselineEpsilon, s.Seed, s.SnapshotEvery, s.Rewards)
	}
}

func TestSpecNullsAreDefaults(t *testing.T) {
	s, err := ParseSpec([]byte(`{"reward":null,"exploration":{"floor":null},"seed":null,"mode":null,"retention":null,"actions":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if string(s.Text) != string(Defaults()) {
		t.Errorf("text %s", s.Text)
	}
}

func TestSpecWhole(t *testing.T) {
	s, err := ParseSpec([]byte(`{"actions":[{"id":"a","features":{"fee":4.90}},{"id":"b","features":null}],
		"reward":{"range":[-0.5,1],"default":-0.25,"waitSeconds":1},"exploration":{"kind":"epsilonGreedy","epsilon":0},
		"learner":{"importance":"mtr","maxImportanceWeight":8},"mode":"frozen","seed":18446744073709551615,"rewards":"sum",
		"retention":{"days":30}}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Actions) != 2 || string(s.Actions[0].Features) != `{"fee":4.90}` || s.Actions[1].Features != nil {
		t.Errorf("actions %q", s.Actions)
	}
	if *s.Seed != math.MaxUint64 || !strings.Contains(string(s.Text), `"seed":18446744073709551615`) {
		t.Errorf("seed %d in %s", *s.Seed, s.Text)
	}
	if s.Mode != Frozen || s.Rewards != Sum || *s.Default != -0.25 || s.Retention.Days != 30 || s.Exploration.Kind != EpsilonGreedy {
		t.Errorf("got %+v", s)
	}
	for probability, want := range map[float64]float64{0.5: 2, 0.01: 8, 1: 1} {
		if got := s.Learner.Weight(probability); got != want {
			t.Errorf("weight of %v: %v, want %v", probability, got, want)
		}
	}
}

func TestSpecBounds(t *testing.T) {
	for _, tc := range []struct {
		field   string
		in, out []string
	}{
		{`"reward":{"waitSeconds":%s}`, []string{"1", "604800"}, []string{"0", "604801", "-1", "1.5", `"1"`, "true"}},
		{`"reward":{"range":%s}`, []string{"[0,1]", "[-5,-4.5]"}, []string{"[1,1]", "[1,0]", "[0]", "[0,1,2]", "[null,1]", `["0",1]`, "5", "[-1e308,1e308]"}},
		{`"reward":{"default":%s}`, []string{"0", "-7.5", "null"}, []string{`"0"`, "[]", "1e999"}},
		{`"exploration":{"gammaScale":%s}`, []string{"0", "1e6"}, []string{"-0.1", "1000001", `"1"`}},
		{`"exploration":{"gammaExponent":%s}`, []string{"0", "1"}, []string{"-0.1", "1.01"}},
		{`"exploration":{"epsilon":%s}`, []string{"0", "1"}, []string{"-0.1", "1.01"}},
		{`"exploration":{"floor":%s}`, []string{"1e-9", "1"}, []string{"0", "1.01", "-1"}},
		{`"exploration":{"kind":%s}`, []string{`"squarecb"`, `"epsilonGreedy"`}, []string{`"SquareCB"`, `""`, "1"}},
		{`"learner":{"bits":%s}`, []string{"10", "24"}, []string{"9", "25", "10.5", "-18"}},
		{`"learner":{"learningRate":%s}`, []string{"0.001", "10"}, []string{"0", "10.1"}},
		{`"learner":{"importance":%s}`, []string{`"none"`, `"mtr"`}, []string{`"ips"`}},
		{`"learner":{"maxImportanceWeight":%s}`, []string{"1", "1e6"}, []string{"0.9", "1000001"}},
		{`"mode":%s`, []string{`"learner"`, `"baselineExplore"`, `"frozen"`}, []string{`"unverified"`, `"shadow"`, "2", `"Learner"`}},
		{`"baselineEpsilon":%s`, []string{"0.0001", "1"}, []string{"0", "1.1"}},
		{`"seed":%s`, []string{"0", "18446744073709551615", "null"}, []string{"18446744073709551616", "-1", "1.5", `"1"`}},
		{`"snapshotEvery":%s`, []string{"1", "1000000000"}, []string{"0", "1000000001", "1.5"}},
		{`"rewards":%s`, []string{`"first"`, `"sum"`}, []string{`"last"`}},
		{`"retention":%s`, []string{`{"days":1}`, `{"maxBytes":1048576}`, `{}`, "null"}, []string{`{"days":0}`, `{"maxBytes":1}`, `{"hours":1}`, "7"}},
		{`"actions":%s`, []string{`[]`, `[{"id":"x"}]`, `[{"id":"` + strings.Repeat("é", 256) + `"}]`}, []string{`[{"id":""}]`, `[{}]`, `[null]`,
			`["x"]`, `[{"id":"x"},{"id":"x"}]`, `[{"id":"x","weight":1}]`, `[{"id":"x","features":[1]}]`, `[{"id":"x","features":{"v":1e39}}]`,
			`[{"id":"` + strings.Repeat("é", 257) + `"}]`, "{}", `[{"id":7}]`}},
		{`"learning":%s`, nil, []string{"1", "{}"}},
	} {
		for _, value := range tc.in {
			if _, err := ParseSpec(fmt.Appendf(nil, "{"+tc.field+"}", value)); err != nil {
				t.Errorf(tc.field+": %v", value, err)
			}
		}
		for _, value := range tc.out {
			_, err := ParseSpec(fmt.Appendf(nil, "{"+tc.field+"}", value))
			f, ok := err.(*fault.Error)
			if !ok || f.Kind != fault.Invalid || !strings.HasPrefix(f.Msg, "invalid spec: ") {
				t.Errorf(tc.field+": got %v, want a fault that starts with `invalid spec: `", value, err)
			}
		}
	}
}

func TestSpecActionLimit(t *testing.T) {
	list := func(n int) []byte {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprintf(`{"id":"a%d"}`, i)
		}
		return []byte(`{"actions":[` + strings.Join(ids, ",") + `]}`)
	}
	if _, err := ParseSpec(list(MaxActions)); err != nil {
		t.Errorf("%d actions: %v", MaxActions, err)
	}
	if _, err := ParseSpec(list(MaxActions + 1)); err == nil {
		t.Errorf("%d actions were taken", MaxActions+1)
	}
}

func TestSpecProblemsAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		`{"colour":1}`:                        "invalid spec: unknown field `colour`",
		`{"learner":{"rate":1}}`:              "invalid spec: unknown field `rate`",
		`{"mode":"x"}`:                        "invalid spec: mode: unknown variant `x`",
		`{"actions":[{"id":"x"},{"id":"x"}]}`: "duplicates",
		`{"actions":[{"id":""}]}`:             "must not be empty",
		`{"reward":{"waitSeconds":"x"}}`:      "reward.waitSeconds has the wrong type",
		`[]`:                                  "invalid spec: must be a JSON object",
		`{"a":1,"a":1}`:                       "invalid spec: ",
	} {
		_, err := ParseSpec([]byte(text))
		if f, ok := err.(*fault.Error); !ok || !strings.Contains(f.Msg, want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func FuzzParseSpec(f *testing.F) {
	f.Add(Defaults())
	f.Add([]byte(`{"actions":[{"id":"a","features":{"x":[1,{"y":true}]}}],"seed":18446744073709551615}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseSpec(text)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := ParseSpec(s.Text)
		if err != nil || string(again.Text) != string(s.Text) {
			t.Fatalf("%q does not parse again as itself: %v", s.Text, err)
		}
	})
}
