package decision

import (
	"testing"
	"time"

	"holdfast/fault"
)

const seeded = `{"seed":2026,"actions":[{"id":"a"},{"id":"b"},{"id":"c"}]}`

// seedOf is the seed that a decision was logged with.
func (b *bench) seedOf(c *Capsule, id string) uint64 {
	b.Helper()
	d, _, err := c.Decision(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return d.Seed
}

func (b *bench) nextSeed(c *Capsule) uint64 {
	b.Helper()
	return b.seedOf(c, b.decide(c, request("{}", "")).ID)
}

func TestFixedSeedGolden(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, seeded)
	for k, want := range []uint64{15824617304438902051, 5881071711863927782, 13388158089452810895} {
		if got := b.nextSeed(c); got != want {
			t.Errorf("draw %d has the seed %d, want %d", k, got, want)
		}
	}
}

func TestDrawsCountFreshDecisionsOnly(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, seeded)
	expect := func(k uint64, why string) {
		t.Helper()
		if got := b.nextSeed(c); got != DecisionSeed(2026, k) {
			t.Errorf("%s: the seed is not that of draw %d", why, k)
		}
	}
	expect(0, "the first")
	b.decide(c, request("{}", "once"))
	b.decide(c, request("{}", "once"))
	expect(2, "a replay uses none")
	var out Answer
	b.kind(fault.Conflict, c.Decide(t.Context(), request(`{"x":1}`, "once"), &out))
	b.kind(fault.Invalid, c.Decide(t.Context(), &Request{Excluded: []string{"nope"}}, &out))
	expect(3, "a refused request uses none")
	if _, err := c.purge(t.Context(), AuditRow{Event: "logs_purged", Detail: emptyObject}); err != nil {
		t.Fatal(err)
	}
	expect(4, "an erase leaves the count alone")
	b.respec(c, `{"exploration":{"floor":0.1}}`)
	expect(5, "so does a spec change")
	b.restart(Options{})
	c = b.capsule(northHero)
	expect(6, "and a restart")
	b.respec(c, `{"seed":7}`)
	if got := b.nextSeed(c); got != DecisionSeed(7, 0) {
		t.Error("a changed seed does not start at 0")
	}
	b.restart(Options{})
	c = b.capsule(northHero)
	if got := b.nextSeed(c); got != DecisionSeed(7, 1) {
		t.Error("a changed seed is not counted across a restart")
	}
	b.respec(c, `{"seed":null}`)
	b.nextSeed(c)
	b.respec(c, `{"seed":7}`)
	if got := b.nextSeed(c); got != DecisionSeed(7, 0) {
		t.Error("a seed that was taken away and put back does not start at 0")
	}
	if _, err := b.service.remove(t.Context(), northHero, AuditRow{Event: "capsule_deleted", Detail: emptyObject}); err != nil {
		t.Fatal(err)
	}
	c = b.install(northHero, seeded)
	expect(0, "a recreated capsule")
}

func TestDrawsNeverGoBackAfterACrash(t *testing.T) {
	store := newFaulty()
	o := Options{QueueRecords: 40}
	b := newBench(t, Options{Storage: store, QueueRecords: 40})
	c := b.install(northHero, seeded)
	used := map[uint64]bool{}
	last := uint64(0)
	for range 6 {
		for i := range 100 { // in portions that the queue takes, some of which the crash loses
			if i%30 == 0 && !c.settle(t.Context(), time.Minute) {
				t.Fatal("not settled")
			}
			b.decide(c, request("{}", ""))
			c.mu.Lock()
			k := c.draws.next - 1
			c.mu.Unlock()
			if used[k] || k < last {
				t.Fatalf("draw %d was used before, or is behind %d", k, last)
			}
			used[k], last = true, k
		}
		c.settle(t.Context(), time.Minute)
		store.hold()
		for range 40 {
			b.decide(c, request("{}", ""))
		}
		c.mu.Lock()
		last = c.draws.next - 1
		c.mu.Unlock()
		b.crash(o)     // the held writes are lost with the process
		store.forget() // and so is what the storage had not got
		c = b.capsule(northHero)
	}
}

// forget drops what is parked, as a crash does.
func (f *faulty) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parked, f.held = nil, false
}

func TestNoDrawWithoutAReservation(t *testing.T) {
	store := newFaulty()
	b := newBench(t, Options{Storage: store})
	b.install(northHero, seeded)
	b.restart(Options{})
	store.breakWith(unavailable("store", "the disk is full"))
	c := b.capsule(northHero) // reading works
	var out Answer
	b.kind(fault.Unavailable, c.Decide(t.Context(), request("{}", ""), &out))
	if got := b.service.queue.backlog(); got != 0 {
		t.Errorf("%d records in the queue after a refusal", got)
	}
	store.breakWith(nil)
	for c.Decide(t.Context(), request("{}", ""), &out) != nil { // the first asks for a reservation
		if err := store.Write(t.Context(), Write{Change: func(Tx) error { return nil }}); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.seedOf(c, out.ID); got != DecisionSeed(2026, 0) {
		t.Errorf("seed %d is not that of draw 0", got)
	}
}

func TestFreshSeedsDiffer(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	seen := map[uint64]bool{}
	for range 200 {
		seed := b.nextSeed(c)
		if seen[seed] {
			t.Fatal("a random seed came twice")
		}
		seen[seed] = true
	}
}

func TestServerMadeIDsSortByTime(t *testing.T) {
	now := time.UnixMilli(1790000000123)
	b := newBench(t, Options{Now: func() time.Time { return now }})
	c := b.install(northHero, threeModels)
	last := ""
	for i := range 50 {
		a := b.decide(c, request("{}", ""))
		ms, _, ok := parseID(a.ID)
		if !ok || ms != now.UnixMilli() {
			t.Fatalf("id %s", a.ID)
		}
		if i%5 == 0 {
			if a.ID <= last {
				t.Fatalf("%s does not sort behind %s", a.ID, last)
			}
			last = a.ID
			now = now.Add(time.Millisecond)
			last = "dec_" + last[4:15] + "g" // behind every id of that millisecond
		}
	}
}
