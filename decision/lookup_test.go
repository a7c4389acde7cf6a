package decision

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/fault"
)

// scatter fills a capsule's log with batches that overlap, as late uploads make them, and returns (ms, id) in page order.
func (b *bench) scatter(c *Capsule, rnd *rand.Rand) (all []candidate) {
	b.Helper()
	f := newFrame("", sampleActions)
	for n := range 40 {
		one := &batch{capsule: c}
		from := int64(1000 + 10*n - rnd.IntN(2)*rnd.IntN(300))
		for i := range 1 + rnd.IntN(30) {
			d := sampleDraft(f)
			d.ms, d.random = max(0, from+int64(rnd.IntN(20))), uint64(1000*n+i)
			if rnd.IntN(4) == 0 {
				d.id = fmt.Sprintf("event-%d-%d", n, i)
			}
			one.add(d)
			id := d.id
			if id == "" {
				id = string(appendID(nil, d.ms, d.random))
			}
			all = append(all, candidate{ms: d.ms, id: id})
		}
		err := b.store.Write(b.Context(), Write{Change: func(tx Tx) error {
			return tx.AppendBatch(Batch{Capsule: c.key, FirstMS: one.firstMS, LastMS: one.lastMS, Count: len(one.keys),
				Payload: seal(one.payload), Events: one.events})
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.ms, b.ms), strings.Compare(a.id, b.id)) })
	return all
}

func TestPagesAgreeWithTheNaiveOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	all := b.scatter(c, rnd)
	for range 60 {
		q := Query{Limit: 1 + rnd.IntN(200), Newest: rnd.IntN(2) == 0}
		if rnd.IntN(2) == 0 {
			q.Since = 900 + int64(rnd.IntN(400))
		}
		if rnd.IntN(2) == 0 {
			q.Until = 1000 + int64(rnd.IntN(500))
		}
		var want, got []string
		for _, one := range all {
			if one.ms >= q.Since && (q.Until == 0 || one.ms < q.Until) {
				want = append(want, one.id)
			}
		}
		if q.Newest {
			slices.Reverse(want)
		}
		for pages := 0; ; pages++ {
			page, err := c.Decisions(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range page.Decisions {
				got = append(got, d.ID)
			}
			if (page.Next != "") != (len(page.Decisions) == q.Limit) {
				t.Fatalf("a page of %d with limit %d goes on from %q", len(page.Decisions), q.Limit, page.Next)
			}
			if page.Next == "" || pages > len(all) {
				break
			}
			q.After = page.Next
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v: got %d ids, want %d", q, len(got), len(want))
		}
	}
	for _, i := range []int{0, len(all) / 2, len(all) - 1} {
		if d, _, err := c.Decision(t.Context(), all[i].id); err != nil || d.TimeMS != all[i].ms {
			t.Errorf("%s: %v", all[i].id, err)
		}
	}
}

func TestPageLimits(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	for range 1100 {
		b.decide(c, request("{}", ""))
	}
	for limit, want := range map[int]int{-5: 1, 0: 100, 1: 1, 1000: 1000, 5000: 1000} {
		page, err := c.Decisions(t.Context(), Query{Limit: limit})
		if err != nil || len(page.Decisions) != want {
			t.Errorf("limit %d: %d decisions, %v", limit, len(page.Decisions), err)
		}
	}
	_, err := c.Decisions(t.Context(), Query{After: "nothing"})
	b.kind(fault.Invalid, err)
	page, err := c.Decisions(t.Context(), Query{Span: Span{Since: 1 << 50}})
	if err != nil || len(page.Decisions) != 0 || page.Next != "" {
		t.Errorf("an empty page: %+v, %v", page, err)
	}
}

func TestReadsWaitForTheQueueButNotLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		b := newBench(t, Options{Storage: store, BatchWindow: time.Hour})
		c := b.install(northHero, threeModels)
		a := b.decide(c, request("{}", ""))
		if page, err := c.Decisions(t.Context(), Query{}); err != nil || len(page.Decisions) != 1 || page.Decisions[0].ID != a.ID {
			t.Errorf("a queued decision is not on the page: %+v, %v", page, err)
		}
		store.hold()
		last := b.decide(c, request("{}", ""))
		began := time.Now()
		if page, err := c.Decisions(t.Context(), Query{}); err != nil || len(page.Decisions) != 1 {
			t.Errorf("page %+v, %v", page, err)
		}
		if took := time.Since(began); took != 250*time.Millisecond {
			t.Errorf("waited %v, want 250 ms", took)
		}
		if d, rewards, err := c.Decision(t.Context(), last.ID); err != nil || d.ID != last.ID || len(rewards) != 0 {
			t.Errorf("a queued decision by its id: %+v, %v", d, err)
		}
		if s := c.Stats(t.Context()); s.Decisions != 2 {
			t.Errorf("stats %+v", s)
		}
		store.release()
	})
}

func TestMissingDecision(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	b.decide(c, request("{}", "there"))
	for _, id := range []string{"not-there", "dec_0123456789a0123456789ab", ""} {
		if _, _, err := c.Decision(t.Context(), id); fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), fmt.Sprintf("decision %q not found", id)) {
			t.Errorf("%q: %v", id, err)
		}
	}
}
