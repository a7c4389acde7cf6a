package decision

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/fault"
)

// client makes decisions from the newest publication, as a client's library does.
type client struct {
	*bench
	capsule *Capsule
	policy  *Policy
}

func (b *bench) client(c *Capsule) *client {
	b.Helper()
	pub := b.published(c)
	p, err := OpenPolicy(pub.Section, pub.Bytes)
	if err != nil {
		b.Fatal(err)
	}
	return &client{bench: b, capsule: c, policy: p}
}

// make decides and returns the upload of it.
func (l *client) make(context, id string, seed uint64) Upload {
	l.Helper()
	req := request(context, id)
	d, err := l.policy.Decide(req, seed)
	if err != nil {
		l.Fatal(err)
	}
	return Upload{ID: id, TimeMS: l.service.nowMS(), Tag: l.policy.Tag(), Seed: seed, Input: *req, ChosenIndex: d.Chosen,
		ChosenID: d.Actions[d.Chosen].ID, Probability: d.Probability, PMF: d.PMF, Eligible: d.Eligible}
}

func (l *client) upload(items ...Upload) UploadReport {
	l.Helper()
	report, err := l.capsule.Upload(context.Background(), items)
	if err != nil {
		l.Fatal(err)
	}
	return report
}

// uploader returns a client of a capsule that has learned a little.
func uploader(b *bench) *client {
	b.Helper()
	b.put(threeModels, Merge)
	c := b.capsule(northHero)
	for i := range 30 {
		id := fmt.Sprint("e", i)
		b.decide(c, request(fmt.Sprintf(`{"x":%d}`, i%3), id))
		b.reward(c, id, float64(i%4)/3)
	}
	return b.client(c)
}

func TestUploadsReplayAndCount(t *testing.T) {
	b := newBench(t, Options{})
	l := uploader(b)
	var items []Upload
	for i := range 20 {
		items = append(items, l.make(fmt.Sprintf(`{"x":%d}`, i), fmt.Sprintf("loc_%02d", i), math.MaxUint64-uint64(i)))
	}
	if r := l.upload(items...); r.Accepted != 20 || r.Duplicates != 0 || len(r.Rejected) != 0 {
		t.Fatalf("report %+v", r)
	}
	if r := l.upload(append(items[:3:3], l.make(`{}`, "loc_x", 1))...); r.Accepted != 4 || r.Duplicates != 3 {
		t.Errorf("again: %+v", r)
	}
	d, _, err := l.capsule.Decision(context.Background(), "loc_07")
	if err != nil || d.Seed != math.MaxUint64-7 || d.ModelVersion != 30 || d.Mode != Learner || d.TimeMS != items[7].TimeMS ||
		fmt.Sprint(d.PMF) != fmt.Sprint(items[7].PMF) || string(d.Context) != `{"x":7}` {
		t.Errorf("decision %+v, %v", d, err)
	}
	if r := b.reward(l.capsule, "loc_07", 1); !r.Learned || r.ModelVersion != 31 {
		t.Errorf("reward %+v", r)
	}
	if s := l.capsule.Stats(context.Background()); s.Decisions != 51 || s.Rewards != 31 {
		t.Errorf("stats %+v", s)
	}
	b.crash(Options{}) // accepted is on disk
	c := b.capsule(northHero)
	if _, rewards, err := c.Decision(context.Background(), "loc_07"); err != nil || len(rewards) != 1 {
		t.Errorf("after a crash: %+v, %v", rewards, err)
	}
	if again := b.client(c); again.upload(items[0]).Duplicates != 1 {
		t.Error("a duplicate is not known after a crash")
	}
	for _, line := range b.trail(northHero) {
		if strings.HasPrefix(line, "upload_") {
			t.Errorf("trail %s", line)
		}
	}
}

func TestUploadsThatDoNotReplay(t *testing.T) {
	b := newBench(t, Options{})
	l := uploader(b)
	fresh := 0
	for name, tc := range map[string]struct {
		edit func(*Upload)
		want string
	}{
		"unknown tag":   {func(u *Upload) { u.Tag = "0123456789abcdef" }, "not a published model"},
		"too old":       {func(u *Upload) { u.TimeMS -= uploadPast.Milliseconds() + 60_000 }, "tsMs"},
		"too far ahead": {func(u *Upload) { u.TimeMS += uploadFuture.Milliseconds() + 60_000 }, "tsMs"},
		"bad id":        {func(u *Upload) { u.ID = "" }, "decisionId"},
		"other seed": {func(u *Upload) {
			for Draw(u.PMF, u.Seed) == u.ChosenIndex {
				u.Seed++
			}
		}, "does not replay"},
		"other pmf":       {func(u *Upload) { u.PMF[0] += 1e-8; u.Probability = u.PMF[u.ChosenIndex] }, "does not replay"},
		"NaN":             {func(u *Upload) { u.PMF[0] = math.NaN(); u.Probability = u.PMF[u.ChosenIndex] }, "does not replay"},
		"other eligible":  {func(u *Upload) { u.Eligible = u.Eligible[1:] }, "does not replay"},
		"short pmf":       {func(u *Upload) { u.PMF = u.PMF[:2] }, "does not replay"},
		"index too large": {func(u *Upload) { u.ChosenIndex = 3 }, "does not replay"},
		"negative index":  {func(u *Upload) { u.ChosenIndex = -1 }, "does not replay"},
		"probability":     {func(u *Upload) { u.Probability += 1e-8 }, "does not replay"},
		"other id":        {func(u *Upload) { u.ChosenID = "none" }, "does not replay"},
		"unknown action":  {func(u *Upload) { u.Input.Excluded = []string{"none"} }, "unknown action"},
		"other context":   {func(u *Upload) { u.Input.Context = []byte(`{"x":0}`) }, "does not replay"},
	} {
		fresh++
		item := l.make(`{"x":2}`, fmt.Sprint("loc_", fresh), 9)
		item.PMF, item.Eligible = slices.Clone(item.PMF), slices.Clone(item.Eligible)
		tc.edit(&item)
		good := l.make(`{}`, fmt.Sprint("good_", fresh), 3)
		r := l.upload(item, good)
		if r.Accepted != 1 || len(r.Rejected) != 1 || r.Rejected[0].Index != 0 || r.Rejected[0].Retryable ||
			!strings.Contains(fault.MessageOf(r.Rejected[0].Err), tc.want) {
			t.Errorf("%s: %+v, want a rejection with %q", name, r, tc.want)
		}
	}
	events := 0
	for _, line := range b.trail(northHero) {
		if strings.HasPrefix(line, "upload_rejected ") {
			events++
		}
	}
	if events != fresh {
		t.Errorf("%d events for %d refused batches", events, fresh)
	}
}

func TestUploadIDsMeanOneDecision(t *testing.T) {
	b := newBench(t, Options{})
	l := uploader(b)
	item := l.make(`{"x":1}`, "loc_1", 5)
	other := l.make(`{"x":2}`, "loc_1", 5)
	if r := l.upload(item, item, other); r.Accepted != 2 || r.Duplicates != 1 || len(r.Rejected) != 1 ||
		!strings.Contains(fault.MessageOf(r.Rejected[0].Err), "already used for a different request") {
		t.Errorf("in one batch: %+v", r)
	}
	if r := l.upload(other); r.Accepted != 0 || len(r.Rejected) != 1 {
		t.Errorf("in another: %+v", r)
	}
	b.decide(l.capsule, request(`{}`, "served"))
	if r := l.upload(l.make(`{"x":3}`, "served", 5)); len(r.Rejected) != 1 {
		t.Errorf("of a served decision: %+v", r)
	}
	b.hold(l.capsule, "deferred")
	if r := l.upload(l.make(`{"x":3}`, "deferred", 5)); len(r.Rejected) != 1 {
		t.Errorf("of a deferred event: %+v", r)
	}
	var out Answer
	b.kind(fault.Conflict, l.capsule.Decide(context.Background(), request(`{"y":1}`, "loc_1"), &out))
}

func TestUploadBounds(t *testing.T) {
	b := newBench(t, Options{})
	l := uploader(b)
	_, err := l.capsule.Upload(context.Background(), make([]Upload, MaxUpload+1))
	b.kind(fault.TooLarge, err)
	items := make([]Upload, MaxUpload)
	for i := range items {
		items[i] = l.make(`{}`, fmt.Sprint("loc_", i), uint64(i))
	}
	if r := l.upload(items...); r.Accepted != MaxUpload {
		t.Errorf("accepted %d of %d", r.Accepted, MaxUpload)
	}
	if _, err := b.service.Install(context.Background(), northHero, []byte(oneNode)); err != nil {
		t.Fatal(err)
	}
	_, err = l.capsule.Upload(context.Background(), items[:1])
	b.kind(fault.Invalid, err)
}

// Times at the very edge of what is accepted.
func TestUploadTimes(t *testing.T) {
	k := newClock()
	b := newBench(t, k.options(Options{}))
	l := uploader(b)
	for i, tc := range []struct {
		off time.Duration
		ok  bool
	}{{-uploadPast, true}, {-uploadPast - time.Millisecond, false}, {uploadFuture, true}, {uploadFuture + time.Millisecond, false}} {
		item := l.make(`{}`, fmt.Sprint("loc_", i), 1)
		item.TimeMS += tc.off.Milliseconds()
		if r := l.upload(item); (r.Accepted == 1) != tc.ok {
			t.Errorf("%v: %+v", tc.off, r)
		}
	}
}

func TestUploadsOfRetiredModels(t *testing.T) {
	b := newBench(t, Options{})
	l := uploader(b)
	item, bad := l.make(`{"x":1}`, "loc_1", 5), l.make(`{"x":1}`, "loc_2", 5)
	version := uint64(30)
	item.ModelVersion = &version
	bad.PMF = slices.Clone(bad.PMF)
	bad.PMF[0], bad.Probability = bad.PMF[0]+0.1, bad.PMF[bad.ChosenIndex]
	for i := range keepPublications {
		b.put(fmt.Sprintf(`{"exploration":{"floor":0.%02d}}`, i+10), Merge)
		b.published(l.capsule)
	}
	r := l.upload(item, bad)
	if r.Accepted != 1 || r.Unverified != 1 || len(r.Rejected) != 1 || r.Rejected[0].ID != "loc_2" {
		t.Fatalf("report %+v", r)
	}
	d, _, err := l.capsule.Decision(context.Background(), "loc_1")
	if err != nil || d.Mode != Unverified || d.ModelVersion != 30 || fmt.Sprint(d.PMF) != fmt.Sprint(item.PMF) {
		t.Errorf("decision %+v, %v", d, err)
	}
	before := l.capsule.Version()
	if r := b.reward(l.capsule, "loc_1", 1); !r.Learned || l.capsule.Version() != before+1 {
		t.Errorf("its reward does not train: %+v", r)
	}
	trail := strings.Join(b.trail(northHero), "\n")
	if !strings.Contains(trail, `upload_unverified {"count":1`) || !strings.Contains(trail, `upload_rejected {"count":1,"decisionId":"loc_2"`) {
		t.Errorf("trail\n%s", trail)
	}
}

func TestUploadsToAStorageThatRefusesMayBeRetried(t *testing.T) {
	store := &refusing{Storage: NewMemory()}
	b := newBench(t, Options{Storage: store})
	l := uploader(b)
	store.refuse.Store(true)
	item := l.make(`{}`, "loc_1", 5)
	if r := l.upload(item); r.Accepted != 0 || len(r.Rejected) != 1 || !r.Rejected[0].Retryable {
		t.Errorf("report %+v", r)
	}
	store.refuse.Store(false)
	if r := l.upload(item); r.Accepted != 1 || r.Duplicates != 0 {
		t.Errorf("when it takes writes again: %+v", r)
	}
}

// BenchmarkUpload is one verified decision of a full batch, the memory storage included.
func BenchmarkUpload(b *testing.B) {
	l := uploader(newBench(b, Options{}))
	next := 0
	b.ReportAllocs()
	for left := b.N; left > 0; {
		b.StopTimer()
		items := make([]Upload, min(left, 1000))
		for i := range items {
			items[i] = l.make(`{"x":1,"plan":"pro"}`, fmt.Sprint("loc_", next), uint64(next))
			next++
		}
		left -= len(items)
		b.StartTimer()
		if r := l.upload(items...); r.Accepted != len(items) {
			b.Fatalf("%+v", r)
		}
	}
}
