package gateway

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func penalty(ms int64) *Outcome { return &Outcome{Move: Penalise, Factor: 5, TimeMS: ms} }

func TestPenaltiesUntilDown(t *testing.T) {
	t.Parallel()
	st := newStanding()
	for n := 1; n <= 21; n++ {
		st.move(penalty(int64(n)), standingLifeMS)
		score, _ := st.score(int64(n), standingLifeMS, softReset{})
		if want := math.Pow(0.95, float64(n)); math.Abs(score-want) > 1e-12 {
			t.Fatalf("after %d penalties of 5%%: %v, want %v", n, score, want)
		}
		if down := score < 0.35; down != (n == 21) {
			t.Errorf("after %d penalties: below 0.35 is %v; it takes 21", n, down)
		}
	}
}

func TestRewardUndoesPenalty(t *testing.T) {
	t.Parallel()
	st := newStanding()
	st.move(penalty(1), standingLifeMS)
	st.move(&Outcome{Move: Reward, Factor: 5.26, TimeMS: 2}, standingLifeMS)
	if score, _ := st.score(2, standingLifeMS, softReset{}); math.Abs(score-1) > 1e-4 || score > 1 {
		t.Errorf("score %v after a penalty of 5%% and a reward of 5.26%%, want about 1", score)
	}
	st.move(&Outcome{Move: Reward, Factor: 5.26, TimeMS: 3}, standingLifeMS)
	if score, _ := st.score(3, standingLifeMS, softReset{}); score != 1 {
		t.Errorf("score %v, want no more than 1", score)
	}
}

func TestStandingEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		later int64
		want  float64
	}{{"within its life", 9_000_000, 0.95}, {"after it", 9_000_001, 1}} {
		st := newStanding()
		st.move(penalty(1000), standingLifeMS)
		if got, _ := st.score(1000+c.later, standingLifeMS, softReset{}); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: score %v, want %v", c.name, got, c.want)
		}
		st.move(penalty(1000+c.later), standingLifeMS)
		if got, _ := st.score(1000+c.later, standingLifeMS, softReset{}); math.Abs(got-c.want*0.95) > 1e-12 {
			t.Errorf("a penalty %s: score %v, want %v", c.name, got, c.want*0.95)
		}
	}
}

func TestSoftReset(t *testing.T) {
	t.Parallel()
	d := deployment{softReset: true, penalty: 5}
	p := d.reset(0.35)
	if want := 0.35 / math.Pow(0.95, 9); math.Abs(p.to-want) > 1e-12 {
		t.Fatalf("raised to %v, want %v", p.to, want)
	}
	if high := d.reset(0.9); high.to != 1 {
		t.Errorf("raised to %v, want no more than 1", high.to)
	}
	st := newStanding()
	for range 30 {
		st.move(penalty(1000), standingLifeMS)
	}
	low := math.Pow(0.95, 30)
	for _, c := range []struct {
		later  int64
		want   float64
		raised bool
	}{{899_999, low, false}, {900_000, p.to, true}} {
		if got, raised := st.score(1000+c.later, standingLifeMS, p); math.Abs(got-c.want) > 1e-12 || raised != c.raised {
			t.Errorf("%d ms after: score %v, raised %v, want %v, %v", c.later, got, raised, c.want, c.raised)
		}
	}
	if got, raised := st.score(901_000, standingLifeMS, softReset{}); raised || math.Abs(got-low) > 1e-12 {
		t.Errorf("switched off: score %v, raised %v", got, raised)
	}
}

func TestStandingReadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		st := newStanding()
		for ms := range rapid.Int64Range(0, 40).Draw(t, "moves") {
			st.move(&Outcome{Move: rapid.SampledFrom([]Move{Penalise, Reward}).Draw(t, "move"), Factor: 5, TimeMS: ms}, standingLifeMS)
		}
		if st.value < 0 || st.value > 1 {
			t.Fatalf("score %v", st.value)
		}
		var back standing
		saved := st.appendTo(nil)
		if err := back.readFrom(saved); err != nil || back != *st {
			t.Fatalf("read back %+v, %v, want %+v", back, err, *st)
		}
		if err := back.readFrom(saved[:len(saved)-1]); err == nil {
			t.Fatal("a cut score read back")
		}
	})
}

func FuzzStandingReadsBack(f *testing.F) {
	f.Add(newStanding().appendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var st, again standing
		if st.readFrom(b) != nil {
			return
		}
		if err := again.readFrom(st.appendTo(nil)); err != nil || !bytes.Equal(again.appendTo(nil), st.appendTo(nil)) {
			t.Errorf("%+v does not read back: %v", st, err)
		}
	})
}
