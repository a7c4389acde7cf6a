package admission

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func gate(t testing.TB, o Options) *Gate {
	t.Helper()
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// elapse lets the time of a synctest bubble pass: no real time does.
func elapse(d time.Duration) { <-time.After(d) }

// reconcile checks that everyone who arrived was told something, and that nothing is left behind.
func reconcile(t *testing.T, g *Gate) Counts {
	t.Helper()
	var sum Counts
	for c := range classes {
		n := g.Counts(c)
		if n.Arrived != n.Admitted+n.Refused+n.GaveUp {
			t.Errorf("%v: %d arrived, but %d + %d + %d were told something", c, n.Arrived, n.Admitted, n.Refused, n.GaveUp)
		}
		sum.Arrived += n.Arrived
		sum.Admitted += n.Admitted
		sum.Refused += n.Refused
		sum.GaveUp += n.GaveUp
		sum.Waited += n.Waited
	}
	if s := g.State(); s.InFlight != 0 || s.Waiting != 0 {
		t.Errorf("left behind: %+v", s)
	}
	return sum
}

func TestAdmittedNeverExceedsRateAndBurst(t *testing.T) {
	for _, callers := range []int{1, 64, 1024} {
		t.Run(strconv.Itoa(callers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const seconds = 5
				rate := Rate{PerSecond: 1000, Burst: 200}
				g := gate(t, Options{Rate: &rate})
				ctx, stop := context.WithTimeout(t.Context(), seconds*time.Second)
				defer stop()
				var all sync.WaitGroup
				for i := range callers {
					all.Go(func() {
						elapse(time.Duration(i) * 300 * time.Microsecond)
						for ctx.Err() == nil {
							if ticket, err := g.Admit(ctx, Request{Principal: "p", Class: Normal}); err == nil {
								ticket.Release(time.Now())
								continue
							}
							elapse(time.Duration(callers) * 300 * time.Microsecond) // fake time: together they ask 3x the rate
						}
					})
				}
				all.Wait()
				n := reconcile(t, g)
				if most := int64(rate.PerSecond*seconds + rate.Burst); n.Admitted > most || n.Admitted < most*97/100 {
					t.Errorf("%d admitted, want at most %d and nearly that", n.Admitted, most)
				}
				if n.Refused == 0 {
					t.Error("nobody was refused: the gate was not under pressure")
				}
			})
		})
	}
}

// The same bound on real threads and the real clock, where atomics can go wrong.
func TestAdmittedNeverExceedsRateAndBurstOnThreads(t *testing.T) {
	for _, callers := range []int{1, 64, 1024} {
		rate := Rate{PerSecond: 20_000, Burst: 500}
		g := gate(t, Options{Rate: &rate})
		start := time.Now()
		var took atomic.Int64
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range 60_000 / callers {
					ticket, err := g.Admit(t.Context(), Request{Principal: "p", Class: Normal})
					if err == nil {
						ticket.Release(time.Now())
					}
				}
				took.Store(max(took.Load(), int64(time.Since(start))))
			})
		}
		all.Wait()
		n := reconcile(t, g)
		if most := rate.PerSecond*time.Since(start).Seconds() + rate.Burst; float64(n.Admitted) > most {
			t.Errorf("%d callers: %d admitted, at most %v may be", callers, n.Admitted, most)
		}
		if n.Admitted < int64(rate.Burst) {
			t.Errorf("%d callers: only %d admitted, the burst alone is %v", callers, n.Admitted, rate.Burst)
		}
	}
}

func TestRefusalSaysWhenToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, Options{Rate: &Rate{PerSecond: 0.2, Burst: 2}})
		ask := func() error {
			_, err := g.Admit(t.Context(), Request{Principal: "p", Class: Normal})
			return err
		}
		for range 2 {
			if err := ask(); err != nil {
				t.Fatal(err)
			}
		}
		err := ask()
		if fault.KindOf(err) != fault.Exhausted || fault.RetryAfter(err) != 5*time.Second {
			t.Fatalf("got %v with %v, want exhausted with 5s", err, fault.RetryAfter(err))
		}
		elapse(fault.RetryAfter(err) - 1)
		if ask() == nil {
			t.Error("admitted a nanosecond before its time")
		}
		elapse(1)
		if err := ask(); err != nil {
			t.Errorf("came back when told to, and got %v", err)
		}
	})
}

func TestPrincipalsDoNotShareARate(t *testing.T) {
	g := gate(t, Options{Rate: &Rate{PerSecond: 0.001, Burst: 1}})
	for i := range 100 {
		if _, err := g.Admit(t.Context(), Request{Principal: fmt.Sprint(i), Class: Normal}); err != nil {
			t.Fatalf("principal %d: %v", i, err)
		}
	}
	if _, err := g.Admit(t.Context(), Request{Principal: "7", Class: Normal}); err == nil {
		t.Error("principal 7 was admitted twice")
	}
}

// A caller's clock from before a slow upload must not cost it its turn.
func TestAnOldClockRefusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, Options{Rate: &Rate{PerSecond: 1, Burst: 1}})
		old := time.Now()
		if _, err := g.Admit(t.Context(), Request{Principal: "p", Class: Normal, Now: old}); err != nil {
			t.Fatal(err)
		}
		elapse(2 * time.Second)
		if _, err := g.Admit(t.Context(), Request{Principal: "p", Class: Normal, Now: old}); err != nil {
			t.Errorf("refused by the time it arrived at: %v", err)
		}
	})
}

func TestCallersThatGiveUpCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seconds, callers = 5, 400
		rate := Rate{PerSecond: 1000, Burst: 10}
		g := gate(t, Options{Rate: &rate, Line: callers})
		ctx, stop := context.WithCancel(t.Context()) // without a deadline, which the gate would foresee
		time.AfterFunc(seconds*time.Second, stop)
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for ctx.Err() == nil {
					patience, cancel := context.WithCancel(ctx)
					timer := time.AfterFunc(20*time.Millisecond, cancel) // the gate cannot foresee this one
					ticket, err := g.Admit(patience, Request{Principal: "p", Class: Normal, Patience: time.Minute})
					timer.Stop()
					cancel()
					if err == nil {
						ticket.Release(time.Now())
					}
				}
			})
		}
		all.Wait()
		n := reconcile(t, g)
		if least, most := int64(rate.PerSecond*seconds*98/100), int64(rate.PerSecond*seconds+rate.Burst); n.Admitted < least || n.Admitted > most {
			t.Errorf("%d admitted, want %d to %d", n.Admitted, least, most)
		}
		if n.GaveUp < callers {
			t.Errorf("only %d gave up: the line was never long", n.GaveUp)
		}
	})
}

func TestPatienceThatCannotBeMetIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, Options{Rate: &Rate{PerSecond: 10, Burst: 1}, Line: 8})
		start := time.Now()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, err := g.Admit(t.Context(), Request{Principal: "p", Class: Normal, Patience: 200 * time.Millisecond}); err != nil {
					t.Errorf("one that could be served in time got %v", err)
				}
			})
		}
		synctest.Wait()
		_, err := g.Admit(t.Context(), Request{Principal: "p", Class: Normal, Patience: 299 * time.Millisecond})
		if fault.RetryAfter(err) != 300*time.Millisecond || time.Since(start) != 0 {
			t.Errorf("got %v, retry after %v, after %v; want a refusal at once with 300ms", err, fault.RetryAfter(err), time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 299*time.Millisecond)
		defer cancel()
		if _, err := g.Admit(ctx, Request{Principal: "p", Class: Normal, Patience: time.Hour}); fault.KindOf(err) != fault.Exhausted {
			t.Errorf("a deadline too near got %v", err)
		}
		all.Wait()
		if took := time.Since(start); took != 200*time.Millisecond {
			t.Errorf("three at 10/s from a burst of one took %v, want 200ms", took)
		}
		if n := reconcile(t, g); n.Waited != 2 || n.Refused != 2 {
			t.Errorf("waited %d, refused %d; want 2 and 2", n.Waited, n.Refused)
		}
	})
}

func TestTheLineIsServedInOrderWithoutThoseWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, Options{Rate: &Rate{PerSecond: 10, Burst: 1}, Line: 8})
		if _, err := g.Admit(t.Context(), Request{Principal: "p", Class: Normal}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var order [5]time.Duration
		var all sync.WaitGroup
		leave := map[int]context.CancelFunc{}
		for i := range order {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			leave[i] = cancel
			all.Go(func() {
				if _, err := g.Admit(ctx, Request{Principal: "p", Class: Normal, Patience: time.Hour}); err == nil {
					order[i] = time.Since(start)
				}
			})
			synctest.Wait()
		}
		leave[0]() // the first, who keeps the timer
		leave[2]() // one in the middle
		all.Wait()
		want := [5]time.Duration{0, 100 * time.Millisecond, 0, 200 * time.Millisecond, 300 * time.Millisecond}
		if order != want {
			t.Errorf("served at %v, want %v", order, want)
		}
		reconcile(t, g)
	})
}

func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 256
		g := gate(t, Options{Rate: &Rate{PerSecond: 1, Burst: 1}, Principals: most})
		admit := func(round int) (ok int) {
			for i := range 10 * most {
				if _, err := g.Admit(t.Context(), Request{Principal: fmt.Sprint(round, i), Class: Normal}); err == nil {
					ok++
				}
			}
			return ok
		}
		if ok := admit(0); ok != most {
			t.Errorf("%d principals with drawn buckets were remembered, want %d", ok, most)
		}
		elapse(2 * time.Second) // all buckets are full again
		if ok := admit(1); ok != most {
			t.Errorf("after the pause %d newcomers found room, want %d", ok, most)
		}
		if n := g.State().Principals; n > most {
			t.Errorf("%d principals remembered, the bound is %d", n, most)
		}
		reconcile(t, g)
	})
}

// Forgetting must not give anybody a second burst.
func TestForgettingIsNoGift(t *testing.T) {
	rate := Rate{PerSecond: 1e-3, Burst: 5}
	g := gate(t, Options{Rate: &rate, Principals: 64})
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 2000 {
				if _, err := g.Admit(t.Context(), Request{Principal: "steady", Class: Normal}); err == nil {
					admitted.Add(1)
				}
				g.Admit(t.Context(), Request{Principal: fmt.Sprint("passing", i), Class: Normal})
			}
		})
	}
	all.Wait()
	if n := admitted.Load(); n > int64(rate.Burst) {
		t.Errorf("%d admitted, the burst is %v", n, rate.Burst)
	}
}

func TestAGreedyPrincipalTakesNobodysShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			polite  = 20
			seconds = 20
			work    = 10 * time.Millisecond
			places  = 10 // with work of 10 ms: 1,000 a second, of which a fair share is 1000/21
			each    = 45 // a second asked for by each polite one; together 900, so the guard is full only because of the greedy one
		)
		g := gate(t, Options{Guard: &GuardOptions{Min: places, Max: places, Waiting: 128}})
		ctx, stop := context.WithTimeout(t.Context(), seconds*time.Second)
		defer stop()
		var served [polite + 1]atomic.Int64
		var all sync.WaitGroup
		offer := func(who int, perSecond float64) {
			all.Go(func() {
				tick := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
				defer tick.Stop()
				for {
					select {
					case <-ctx.Done():
						return
					case <-tick.C:
					}
					all.Go(func() {
						ticket, err := g.Admit(ctx, Request{Principal: strconv.Itoa(who), Class: Critical, Patience: 500 * time.Millisecond})
						if err != nil {
							return
						}
						elapse(work)
						served[who].Add(1)
						ticket.Release(time.Now())
					})
				}
			})
		}
		for who := range polite {
			offer(who, each)
		}
		offer(polite, 50*each)
		all.Wait()
		n := reconcile(t, g)
		for who := range polite {
			if got := served[who].Load(); got < seconds*each*95/100 {
				t.Errorf("polite principal %d got %d of its %d", who, got, seconds*each)
			}
		}
		if n.Refused == 0 || n.Waited == 0 {
			t.Errorf("the gate was not under pressure: %+v", n)
		}
		if total := n.Admitted; total < 1000*seconds*95/100 {
			t.Errorf("only %d were served in all: places stood empty", total)
		}
	})
}

func TestBulkIsShedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, Options{Guard: &GuardOptions{Min: 8, Max: 8, Waiting: 4}})
		var tickets []*Ticket
		admit := func(c Class) bool {
			ticket, err := g.Admit(t.Context(), Request{Principal: "p", Class: c})
			if err == nil {
				tickets = append(tickets, &ticket)
			}
			return err == nil
		}
		for admit(Bulk) {
		}
		if len(tickets) != 6 {
			t.Fatalf("bulk took %d of 8 places, want 6", len(tickets))
		}
		if !admit(Normal) || !admit(Critical) {
			t.Fatal("what bulk leaves free was not there for others")
		}
		var order []Class
		var mu sync.Mutex
		var all sync.WaitGroup
		var refused [classes]int
		wait := func(c Class, who string) {
			all.Go(func() {
				ticket, err := g.Admit(t.Context(), Request{Principal: who, Class: c, Patience: time.Hour})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					if fault.KindOf(err) != fault.Unavailable || fault.RetryAfter(err) <= 0 {
						t.Errorf("shed with %v", err)
					}
					refused[c]++
					return
				}
				order = append(order, c)
				tickets = append(tickets, &ticket)
			})
			synctest.Wait()
		}
		for range 4 {
			wait(Bulk, "b")
		}
		wait(Normal, "n")
		wait(Critical, "c")
		if refused != [classes]int{0, 0, 2} {
			t.Fatalf("refused %v, want two of bulk", refused)
		}
		for len(order) < 4 {
			mu.Lock()
			next := tickets[0]
			tickets = tickets[1:]
			mu.Unlock()
			next.Release(time.Now())
			synctest.Wait()
		}
		all.Wait()
		if got := fmt.Sprint(order); got != "[critical normal bulk bulk]" {
			t.Errorf("served %v", got)
		}
		for _, ticket := range tickets {
			ticket.Release(time.Now())
			ticket.Release(time.Now()) // twice is once
		}
		reconcile(t, g)
	})
}

// Places are given and patience ends in the same instants: whichever comes first, no place may get lost.
func TestNoPlaceIsLostToThoseWhoLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, Options{Guard: &GuardOptions{Min: 2, Max: 2, Waiting: 100}})
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				for round := range 40 {
					ctx, cancel := context.WithCancel(t.Context())
					timer := time.AfterFunc(time.Duration((i+round)%7+1)*time.Millisecond, cancel)
					ticket, err := g.Admit(ctx, Request{Principal: strconv.Itoa(i % 5), Class: Critical, Patience: time.Hour})
					if err == nil {
						elapse(time.Millisecond)
						ticket.Release(time.Now())
					}
					timer.Stop()
					cancel()
				}
			})
		}
		all.Wait()
		if n := reconcile(t, g); n.GaveUp == 0 || n.Admitted == 0 {
			t.Errorf("nothing was tried: %+v", n)
		}
	})
}

func TestTheLimitFollowsLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, Options{Guard: &GuardOptions{Min: 4, Max: 64, Target: 20 * time.Millisecond, Waiting: 1024}})
		// Work slows down in proportion to what runs at once, as on a machine with a fixed throughput of 1,000 a second:
		// the mean stays under 20 ms while at most 20 run.
		run := func(d time.Duration) {
			ctx, stop := context.WithCancel(t.Context())
			time.AfterFunc(d, stop)
			var all sync.WaitGroup
			for i := range 200 {
				all.Go(func() {
					for ctx.Err() == nil {
						ticket, err := g.Admit(ctx, Request{Principal: strconv.Itoa(i), Class: Critical, Patience: time.Hour})
						if err != nil {
							continue
						}
						elapse(time.Duration(g.State().InFlight) * time.Millisecond)
						ticket.Release(time.Now())
					}
				})
			}
			all.Wait()
		}
		run(10 * time.Second)
		if limit := g.State().Limit; limit < 14 || limit > 26 {
			t.Errorf("the limit settled at %d, the machine does its best near 20", limit)
		}
		reconcile(t, g)
	})
}

func TestCancelledCallersHandTheirTokenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, Options{Rate: &Rate{PerSecond: 0.01, Burst: 2}, Guard: &GuardOptions{Min: 1, Max: 1}})
		first, err := g.Admit(t.Context(), Request{Principal: "p", Class: Critical})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.Admit(ctx, Request{Principal: "p", Class: Critical, Patience: time.Second}); fault.KindOf(err) != fault.Timeout {
			t.Fatalf("got %v, want a timeout", err)
		}
		first.Release(time.Now())
		if _, err := g.Admit(t.Context(), Request{Principal: "p", Class: Critical}); err != nil {
			t.Errorf("the token of the one who gave up is gone: %v", err)
		}
	})
}

func TestUncontendedCostsNoAllocation(t *testing.T) {
	g := gate(t, Options{Rate: &Rate{PerSecond: 1e9, Burst: 1e6}, Guard: &GuardOptions{}})
	now := time.Now()
	n := testing.AllocsPerRun(1000, func() {
		ticket, err := g.Admit(t.Context(), Request{Principal: "operator", Class: Normal, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		ticket.Release(now)
	})
	if n != 0 {
		t.Errorf("%v allocations for one admission, want none", n)
	}
}

func BenchmarkAdmit(b *testing.B) {
	g := gate(b, Options{Rate: &Rate{PerSecond: 1e9, Burst: math.MaxInt32}, Guard: &GuardOptions{}})
	ctx, now := context.Background(), time.Now()
	b.Run("uncontended", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ticket, err := g.Admit(ctx, Request{Principal: "operator", Class: Normal, Now: now})
			if err != nil {
				b.Fatal(err)
			}
			ticket.Release(now)
		}
	})
	b.Run("contended", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				ticket, err := g.Admit(ctx, Request{Principal: "operator", Class: Normal, Now: now})
				if err == nil {
					ticket.Release(now)
				}
			}
		})
	})
	b.Run("refused", func(b *testing.B) {
		g := gate(b, Options{Rate: &Rate{PerSecond: 1e-3, Burst: 1}})
		b.ReportAllocs()
		for b.Loop() {
			_, _ = g.Admit(ctx, Request{Principal: "operator", Class: Normal, Now: now})
		}
	})
}
