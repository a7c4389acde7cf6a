package admission

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRatesThatMeanNothingAreRefused(t *testing.T) {
	for _, r := range []Rate{
		{0, 1}, {-1, 1}, {1, 0}, {1, -5}, {1, 0.5}, {math.NaN(), 1}, {1, math.NaN()}, {math.Inf(1), 1}, {1e-9, 1e9}, {},
	} {
		if _, err := New(Options{Rate: &r}); err == nil {
			t.Errorf("%+v was accepted", r)
		}
	}
	for _, r := range []Rate{{0.2, 1}, {1000, 2000}, {1e9, 1}, {50_000, 100_000}} {
		if _, err := New(Options{Rate: &r}); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestBucketStartsFullAndRefillsContinuously(t *testing.T) {
	p, err := Rate{PerSecond: 10, Burst: 3}.pace()
	if err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) int64 { return int64(time.Hour+d) * ticksPerNano }
	var b bucket
	for i := range 3 {
		if wait := b.take(at(0), p); wait != 0 {
			t.Fatalf("draw %d of a full bucket waits %d", i, wait)
		}
	}
	if wait := duration(b.take(at(0), p)); wait != 100*time.Millisecond {
		t.Errorf("an empty bucket says %v, want 100ms", wait)
	}
	if wait := duration(b.take(at(60*time.Millisecond), p)); wait != 40*time.Millisecond {
		t.Errorf("60 ms later it says %v, want 40ms", wait)
	}
	if b.take(at(100*time.Millisecond), p) != 0 {
		t.Error("the token was not there when it was promised")
	}
	if b.take(at(100*time.Millisecond), p) == 0 {
		t.Error("one token was drawn twice")
	}
}

func TestFractionOfARequestPerSecond(t *testing.T) {
	p, err := Rate{PerSecond: 0.2, Burst: 1}.pace()
	if err != nil {
		t.Fatal(err)
	}
	var b bucket
	if b.take(1, p) != 0 {
		t.Fatal("a full bucket refused")
	}
	if wait := duration(b.take(1, p)); wait != 5*time.Second {
		t.Errorf("the next one is promised after %v, want 5s", wait)
	}
}

// The bucket against the textbook: a number of tokens, refilled by elapsed time, in floating point.
func TestBucketAgainstATextbook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := Rate{rapid.Float64Range(0.05, 20_000).Draw(t, "rate"), float64(rapid.IntRange(1, 500).Draw(t, "burst"))}
		p, err := rate.pace()
		if err != nil {
			t.Fatal(err)
		}
		var b bucket
		now, tokens := int64(1), rate.Burst
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			step := rapid.Float64Range(0, 3).Draw(t, "step") / rate.PerSecond
			ticks := int64(step * 1e9 * ticksPerNano)
			now += ticks
			tokens = min(rate.Burst, tokens+float64(ticks)/float64(p.cost))
			wait := b.take(now, p)
			const fuzzy = 1e-6
			switch {
			case wait == 0 && tokens < 1-fuzzy:
				t.Fatalf("drew with %v tokens", tokens)
			case wait != 0 && tokens > 1+fuzzy:
				t.Fatalf("refused with %v tokens", tokens)
			case wait != 0 && math.Abs(float64(wait)/float64(p.cost)-(1-tokens)) > 1e-3:
				t.Fatalf("promises the next in %v of a request, want %v", float64(wait)/float64(p.cost), 1-tokens)
			}
			if wait == 0 {
				tokens--
			}
		}
	})
}

func TestOnlyAFullBucketIsThrownAway(t *testing.T) {
	p, _ := Rate{PerSecond: 1, Burst: 2}.pace()
	var b bucket
	b.take(10, p)
	if b.retire(10) {
		t.Fatal("a bucket that owes something was forgotten")
	}
	if !b.retire(10 + p.cost) {
		t.Fatal("a full bucket was kept")
	}
	if b.take(1<<40, p) != dead {
		t.Error("a forgotten bucket still gives")
	}
}
