package decision

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"testing"
)

// features is AppendFeatures for tests.
func features(t testing.TB, namespace byte, raw string) []Feature {
	t.Helper()
	out, err := AppendFeatures(nil, namespace, []byte(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return out
}

func actionFeatures(t testing.TB, id, raw string) []Feature {
	t.Helper()
	out, err := AppendActionFeatures(nil, id, []byte(raw))
	if err != nil {
		t.Fatalf("%s %s: %v", id, raw, err)
	}
	return out
}

func TestGoldenHashes(t *testing.T) {
	context := features(t, ContextNamespace, `{"region":"eu","load":2,"tags":["vip"],"vec":[7,8]}`)
	tiny := actionFeatures(t, "tiny", "")
	cross := fnvWord(fnvWord(fnvBasis, context[0].Hash), tiny[0].Hash)
	for _, test := range []struct {
		name string
		hash uint64
		want uint64
		slot uint32
	}{
		{"region=eu", context[0].Hash, 0x90699f83f656f327, 169755},
		{"load", context[1].Hash, 0x16c7efb4dee858f6, 63041},
		{"tags=vip", context[2].Hash, 0xd757702045c79cc1, 36825},
		{"vec[1]", context[4].Hash, 0xb9c937b9894fc1bb, 227838},
		{"id=tiny", tiny[0].Hash, 0x1a3362c1daa3a2ca, 244259},
		{"region=eu x id=tiny", cross, 0xb73eb8e5e46becbb, 121068},
		{"bias", biasHash(), biasHash(), 111628},
	} {
		if test.hash != test.want || slotOf(test.hash, 18) != test.slot {
			t.Errorf("%s: %016x in slot %d, want %016x in %d", test.name, test.hash, slotOf(test.hash, 18), test.want, test.slot)
		}
	}
}

func near(t *testing.T, name string, got, want []float64) {
	t.Helper()
	for i := range want {
		if math.Abs(got[i]-want[i]) > 6e-10 {
			t.Errorf("%s: %.9f, want %v", name, got, want)
			return
		}
	}
}

func TestGoldenDistributions(t *testing.T) {
	r, pmf := []float64{0.6, 0.2, 0.5}, make([]float64, 3)
	squareCB(pmf, r, 0, 20)
	near(t, "squarecb", pmf, []float64{0.709090909, 0.090909091, 0.2})
	liftToFloor(pmf, 0.05)
	near(t, "squarecb with a floor", pmf, []float64{0.690303030, 0.103030303, 0.206666667})

	pmf = make([]float64, 4)
	spread(pmf, argmax([]float64{0.2, 0.9, 0.4, 0.9}), 0.1)
	near(t, "epsilonGreedy", pmf, []float64{0.025, 0.925, 0.025, 0.025})
	liftToFloor(pmf, 0.08)
	near(t, "epsilonGreedy with a floor", pmf, []float64{0.043, 0.871, 0.043, 0.043})
}

var defaultExploration = Exploration{Kind: SquareCB, GammaScale: 10, GammaExponent: 0.5, Epsilon: 0.05, Floor: 0.05}

func TestGoldenLearner(t *testing.T) {
	const bits, rate = 12, 0.5
	context := features(t, ContextNamespace, `{"region":"eu","load":2}`)
	tiny, huge := actionFeatures(t, "tiny", `{"cost":0.25}`), actionFeatures(t, "huge", `{"cost":1}`)
	m := NewModel(bits)
	for i, step := range []struct {
		action []Feature
		reward float64
		norm   float64
	}{{tiny, 1, 7}, {huge, 0, 14}, {tiny, 0.5, 18.1875}, {huge, 1, 25.1875}} {
		in := Input{Context: context, Action: step.action}
		if n := m.Update(in.AppendTerms(nil, bits), step.reward, 1, rate); n != uint64(i+1) || m.norm != step.norm {
			t.Errorf("update %d: n %d, N %v, want %v", i+1, n, m.norm, step.norm)
		}
	}
	out := make([]float64, 2)
	n := m.Score(new(Scratch), Candidates{Context: context, Actions: [][]Feature{tiny, huge}}, out)
	if n != 4 || out[0] != 0.8135352171957493 || out[1] != 0.7013667309656739 {
		t.Errorf("predictions %v after %d updates", out, n)
	}
	pmf := make([]float64, 2)
	defaultExploration.Distribute(pmf, out, n)
	if pmf[0] != 0.7511213229919026 || pmf[1] != 0.24887867700809735 {
		t.Errorf("pmf %v", pmf)
	}
	snapshot := m.AppendSnapshot(nil, rate)
	text := hex.EncodeToString(snapshot)
	if len(snapshot) != 244 || text[len(text)-64:len(text)-48] != "17d1df34055d0146" || text[len(text)-10:] != "b113f64b81" {
		t.Errorf("snapshot of %d bytes ending %s", len(snapshot), text[len(text)-64:])
	}
}

func TestGoldenUntrainedSnapshot(t *testing.T) {
	snapshot := NewModel(18).AppendSnapshot(nil, 0.5)
	text := base64.StdEncoding.EncodeToString(snapshot)
	if want := "U1lOVFJBTE0BABIAAAAAAAAA4D8A"; len(snapshot) != 84 || text[:len(want)] != want {
		t.Errorf("%d bytes, %s", len(snapshot), text)
	}
}

func TestGoldenModelTag(t *testing.T) {
	text := []byte(`{"actions":[{"id":"a"},{"id":"b"}],"bits":10,"seed":18446744073709551615,"version":1}`)
	snapshot := make([]byte, 84)
	for i := range snapshot {
		snapshot[i] = byte(i)
	}
	sum := sha256.Sum256(append(append(text, 0), snapshot[len(snapshot)-32:]...))
	if tag := fmt.Sprintf("%x", sum[:8]); tag != "5b441bd2fa0e248f" {
		t.Errorf("tag %s", tag)
	}
}

func TestGoldenSeeds(t *testing.T) {
	for k, want := range []uint64{15824617304438902051, 5881071711863927782, 13388158089452810895} {
		if got := DecisionSeed(2026, uint64(k)); got != want {
			t.Errorf("seed %d is %d, want %d", k, got, want)
		}
	}
}

func TestGoldenDraws(t *testing.T) {
	pmf := make([]float64, 3)
	defaultExploration.Distribute(pmf, make([]float64, 3), 0)
	for i, want := range []int{1, 1, 0, 1, 1, 2, 1, 1} {
		if got := Draw(pmf, uint64(i+1)); got != want {
			t.Errorf("seed %d draws %d, want %d", i+1, got, want)
		}
	}
}
