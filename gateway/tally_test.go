package gateway

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

func TestRanges(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	s := &Service{options: Options{Now: func() time.Time { return now }}}
	ms := now.UnixMilli()
	for _, c := range []struct {
		name   string
		m      Moments
		bucket int64
		length int64
	}{
		{"15m", Moments{}, minuteMS, 15 * minuteMS}, {"", Moments{}, 5 * minuteMS, hourMS}, {"1h", Moments{}, 5 * minuteMS, hourMS},
		{"12h", Moments{}, hourMS, 12 * hourMS}, {"1d", Moments{}, hourMS, dayMS}, {"1w", Moments{}, dayMS, 7 * dayMS},
		{"1h", Moments{ms - 5*minuteMS, ms, true, true}, minuteMS, 5*minuteMS + 1},
		{"", Moments{ms - 3*hourMS, ms, true, true}, hourMS, 3*hourMS + 1},
		{"", Moments{ms - 40*dayMS, ms - 40*dayMS + 1, true, true}, dayMS, 2},
	} {
		r, err := s.RangeOf(c.name, c.m)
		if err != nil || r.BucketMS != c.bucket || r.Span.Until-r.Span.Since != c.length || (r.Name == "custom") != c.m.HasStart {
			t.Errorf("%q %+v: %+v, %v", c.name, c.m, r, err)
		}
	}
	for _, m := range []Moments{{HasStart: true}, {HasEnd: true}, {ms, ms, true, true}, {ms, ms - 1, true, true}, {-1, ms, true, true},
		{ms - 560*dayMS, ms, true, true}, {ms + 2*dayMS, ms + 3*dayMS, true, true}} {
		if r, err := s.RangeOf("1h", m); err == nil {
			t.Errorf("%+v is a range: %+v", m, r)
		}
	}
	if _, err := s.RangeOf("1y", Moments{}); err == nil {
		t.Error("1y is a range")
	}
}

// full is a page with events of many kinds.
func full(events, bins int) *page {
	p := newPage()
	for i := range events {
		e := sample()
		e.TimeMS += int64(i)
		e.BIN, e.Failed = fmt.Sprint(i%bins), i%2 == 0
		p.note(&e)
	}
	return p
}

func TestPagesReadWhatTheyWrite(t *testing.T) {
	for _, p := range []*page{newPage(), full(1, 1), full(500, 40), full(3_000, 1_000)} {
		got := newPage()
		if err := got.addStored(p.encode(), days.cells()); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, p) {
			t.Errorf("%d cells read as %d", len(p.cells), len(got.cells))
		}
	}
}

func TestManyBINsAreFoldedAndCounted(t *testing.T) {
	const events = 5_000
	p := full(events, 1_000)
	if len(p.cells) > minutes.cells() {
		t.Errorf("%d cells, at most %d", len(p.cells), minutes.cells())
	}
	var count, failed, other int64
	for k, c := range p.cells {
		count, failed = count+c.count, failed+c.failed
		if k.texts[byBIN] == overflow {
			other += c.count
		}
	}
	if count != events || failed != events/2 {
		t.Errorf("counted %d and %d failed of %d", count, failed, events)
	}
	if p.folded == 0 || p.folded != other {
		t.Errorf("%d folded, %d without their BIN", p.folded, other)
	}
}

func TestTooManyCellsOfAnyKindAreFolded(t *testing.T) {
	p := newPage()
	for i := range 4_000 {
		e := sample()
		e.ErrorCode, e.BIN = fmt.Sprint(i), ""
		p.note(&e)
	}
	var count int64
	for _, c := range p.cells {
		count += c.count
	}
	if len(p.cells) > minutes.cells()+1 || count != 4_000 || p.folded == 0 {
		t.Errorf("%d cells with %d events, %d folded", len(p.cells), count, p.folded)
	}
}

func TestPageKeysComeBack(t *testing.T) {
	for _, id := range []pageID{{}, {minutes, 1_800_000_000_000, 1}, {hours, floorMS(1_800_000_000_000, hourMS), 1<<34 - 1}, {days, 0, 7}} {
		id.start = floorMS(id.start, id.level.grain())
		if got := pageOf(id.key()); got != id {
			t.Errorf("%+v came back as %+v", id, got)
		}
	}
	later := pageID{minutes, 2 * minuteMS, 0}
	if earlier := (pageID{minutes, minuteMS, 1<<34 - 1}); earlier.compare(later) >= 0 {
		t.Error("keys do not go by time first")
	}
}

func TestLeaderKeepsTheLeadAmongEquals(t *testing.T) {
	scores := map[Name]float64{"a": 0.9, "b": 0.9, "c": 0.5}
	if got := leaderOf(scores, "b"); got != "b" {
		t.Errorf("b lost the lead to %s", got)
	}
	if got := leaderOf(scores, ""); got != "a" {
		t.Errorf("%s leads at first", got)
	}
	scores["c"] = 0.95
	if got := leaderOf(scores, "b"); got != "c" {
		t.Errorf("%s leads, not c", got)
	}
}

func FuzzReadPage(f *testing.F) {
	f.Add(newPage().encode())
	f.Add(full(100, 10).encode())
	f.Add([]byte{1, 0, 0xFF, 0xFF, 0xFF})
	f.Fuzz(func(t *testing.T, text []byte) {
		p := newPage()
		if p.addStored(text, days.cells()) != nil {
			return
		}
		again := newPage()
		if err := again.addStored(p.encode(), 1<<30); err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
	})
}

func FuzzBundle(f *testing.F) {
	e := sample()
	var b bundleBuilder
	b.add(3, &e)
	b.add(9, &e)
	row := b.finish(1)
	f.Add(row.Merchants, row.Payload, row.IDs)
	f.Fuzz(func(t *testing.T, merchants, payload, ids []byte) {
		row := BundleRow{Merchants: merchants, Payload: payload, IDs: ids}
		_ = row.eachEvent(func(int64, *Event) {})
		_ = hasID(ids, 7)
		if start, length, ok := section(merchants, 9); ok && (start < 0 || length < 0) {
			t.Fatalf("a section at %d of %d bytes", start, length)
		}
	})
}

func TestBundlesFindWhatTheyHold(t *testing.T) {
	var b bundleBuilder
	for key := range int64(50) {
		for n := range 7 {
			e := sample()
			e.PaymentID, e.RequestID, e.Details = fmt.Sprint(key, "-", n), "", nil
			b.add(key*3+1, &e)
		}
	}
	row := b.finish(12)
	seen := 0
	if err := row.eachEvent(func(key int64, e *Event) {
		if want := fmt.Sprint((key-1)/3, "-", seen%7); e.PaymentID != want {
			t.Errorf("event %d of %d is %s, want %s", seen, key, e.PaymentID, want)
		}
		if !hasID(row.IDs, idHash(key, e.PaymentID)) {
			t.Errorf("%s is not among the ids", e.PaymentID)
		}
		seen++
	}); err != nil || seen != 350 {
		t.Fatalf("%d events, %v", seen, err)
	}
	for key := range int64(150) {
		_, length, ok := section(row.Merchants, key)
		if want := key%3 == 1; ok != want || ok && length == 0 {
			t.Errorf("merchant %d: %v, %d bytes", key, ok, length)
		}
	}
	if b.row.Count != 0 {
		t.Error("the builder was not emptied")
	}
}
