package decision

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"testing"

	"holdfast/fault"
)

// bench is a service on a memory storage with the short forms of what tests do most.
type bench struct {
	testing.TB
	store   Storage
	service *Service
}

var northHero = CapsuleID{Tenant: "north", Job: "web", Capsule: "hero"}

// newBench opens a service and closes it with the test.
func newBench(t testing.TB, o Options) *bench {
	t.Helper()
	if o.Storage == nil {
		o.Storage = NewMemory()
	}
	b := &bench{TB: t, store: o.Storage}
	b.open(o)
	t.Cleanup(func() {
		if err := b.service.Close(context.Background()); err != nil && b.service.queue.refusal.Load() == errClosing {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

func (b *bench) open(o Options) {
	b.Helper()
	o.Storage = b.store
	s, err := Open(context.Background(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.service = s
}

// restart closes the service and opens another on the same storage.
func (b *bench) restart(o Options) {
	b.Helper()
	if err := b.service.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.open(o)
}

// crash stops the service's goroutines without writing anything.
func (b *bench) crash(o Options) {
	b.Helper()
	b.service.closing.Store(true)
	b.service.stop()
	b.service.running.Wait()
	b.open(o)
}

// install writes a capsule with a spec that patches the defaults.
func (b *bench) install(id CapsuleID, patch string) *Capsule {
	b.Helper()
	spec, err := ParseSpec([]byte(patch))
	if err != nil {
		b.Fatal(err)
	}
	err = b.store.Write(context.Background(), Write{Change: func(tx Tx) error {
		row := CapsuleRow{ID: id, CreatedMS: 1, Spec: spec.Text}
		b.service.seedChange(&row, nil, spec)
		row.Draws = 0 // as nobody has loaded it yet
		_, err := tx.CreateCapsule(row)
		return err
	}})
	if err != nil {
		b.Fatal(err)
	}
	b.service.sweepBy(id, spec)
	return b.capsule(id)
}

func (b *bench) capsule(id CapsuleID) *Capsule {
	b.Helper()
	c, err := b.service.Capsule(context.Background(), id)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// request is a decide with the digest of its own parts.
func request(context string, event string) *Request {
	return &Request{Context: []byte(context), EventID: event, Digest: sha256.Sum256([]byte(context + event))}
}

func (b *bench) decide(c *Capsule, req *Request) Answer {
	b.Helper()
	var out Answer
	if err := c.Decide(context.Background(), req, &out); err != nil {
		b.Fatalf("decide: %v", err)
	}
	return out
}

func (b *bench) reward(c *Capsule, id string, value float64) RewardAnswer {
	b.Helper()
	a, err := c.Reward(context.Background(), RewardRequest{DecisionID: id, Value: value})
	if err != nil {
		b.Fatalf("reward: %v", err)
	}
	return a
}

// kind expects an error of that kind.
func (b *bench) kind(kind fault.Kind, err error) {
	b.Helper()
	if err == nil || fault.KindOf(err) != kind {
		b.Errorf("got error %v, want one of kind %q", err, kind)
	}
}

const threeModels = `{"actions":[{"id":"small","features":{"cost":0.1}},{"id":"medium","features":{"cost":0.4}},{"id":"large","features":{"cost":1}}]}`

func TestDecideRewardRead(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	a := b.decide(c, request(`{"plan":"pro"}`, ""))
	if len(a.ID) != idLength || math.Abs(a.Probability-1.0/3) > 1e-12 || len(a.Ranking) != 3 || a.ModelVersion != 0 || a.Mode != Learner {
		t.Fatalf("answer %+v", a)
	}
	r := b.reward(c, a.ID, 1)
	if !r.Applied || !r.Learned || r.Duplicate || r.ModelVersion != 1 {
		t.Fatalf("reward %+v", r)
	}
	if r := b.reward(c, a.ID, 0); r.Applied || !r.Duplicate || r.ModelVersion != 1 {
		t.Fatalf("second reward %+v", r)
	}
	d, rewards, err := c.Decision(context.Background(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	if d.ID != a.ID || string(d.Context) != `{"plan":"pro"}` || len(d.Actions) != 3 || d.Chosen != a.ActionIndex || d.Probability != a.Probability {
		t.Errorf("decision %+v", d)
	}
	if len(rewards) != 1 || rewards[0].Value != 1 || rewards[0].Seq != 1 {
		t.Errorf("rewards %+v", rewards)
	}
	if s := c.Stats(context.Background()); s.Decisions != 1 || s.Rewards != 1 || s.LastRewardSeq != 1 || s.FirstMS == 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestMissingCapsuleAndDecision(t *testing.T) {
	b := newBench(t, Options{})
	_, err := b.service.Capsule(context.Background(), northHero)
	b.kind(fault.NotFound, err)
	c := b.install(northHero, threeModels)
	_, err = c.Reward(context.Background(), RewardRequest{DecisionID: "nope", Value: 1})
	b.kind(fault.NotFound, err)
	if want := `decision "nope" not found`; err.(*fault.Error).Msg != want {
		t.Errorf("message %q, want %q", err.(*fault.Error).Msg, want)
	}
}

func TestRestartReplays(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	for i := range 50 {
		a := b.decide(c, request(fmt.Sprintf(`{"x":%d}`, i%7), ""))
		b.reward(c, a.ID, float64(i%3)/2)
	}
	want := c.capture()
	b.crash(Options{})
	c = b.capsule(northHero)
	if got := c.capture(); string(got.Bytes) != string(want.Bytes) || got.Seq != want.Seq {
		t.Fatal("the model after a crash differs")
	}
	b.restart(Options{})
	c = b.capsule(northHero)
	if got := c.capture(); string(got.Bytes) != string(want.Bytes) || got.Seq != want.Seq {
		t.Fatal("the model after a restart differs")
	}
}
