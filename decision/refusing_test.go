package decision

import (
	"context"
	"sync/atomic"
	"testing"

	"holdfast/fault"
)

// refusing is a storage that can be told to take no writes, as a full disk does.
type refusing struct {
	Storage
	refuse atomic.Bool
}

func (r *refusing) Write(ctx context.Context, w Write) error {
	if !r.refuse.Load() {
		return r.Storage.Write(ctx, w)
	}
	err := fault.New("store.Write", fault.Unavailable, "the disk is full")
	if w.Applied != nil {
		w.Applied(err)
	}
	return err
}

// A change that cannot be stored is refused with Unavailable and has changed nothing, in memory or after a restart.
func TestChangesThatCannotBeStored(t *testing.T) {
	store := &refusing{Storage: NewMemory()}
	b := newBench(t, Options{Storage: store})
	ctx := context.Background()
	b.put(threeModels, Merge)
	c := b.capsule(northHero)
	b.decide(c, request(`{}`, "e"))
	b.reward(c, "e", 1)
	spec, trail := string(c.Spec()), len(b.trail(northHero))
	store.refuse.Store(true)
	for name, change := range map[string]func() error{
		"spec": func() error {
			_, _, err := b.service.PutSpec(ctx, northHero, []byte(`{"mode":"frozen"}`), Merge)
			return err
		},
		"bits": func() error {
			_, _, err := b.service.PutSpec(ctx, northHero, []byte(`{"learner":{"bits":12}}`), Merge)
			return err
		},
		"mode":    func() error { _, err := b.service.SetMode(ctx, northHero, []byte(`{"mode":"frozen"}`)); return err },
		"graph":   func() error { _, err := b.service.Install(ctx, northHero, []byte(oneNode)); return err },
		"purge":   func() error { _, err := b.service.PurgeLogs(ctx, northHero); return err },
		"delete":  func() error { _, err := b.service.DeleteCapsule(ctx, northHero); return err },
		"hold":    func() error { return c.Hold(ctx, request(`{}`, "h"), new(Answer)) },
		"publish": func() error { _, _, err := c.Published(ctx); return err },
	} {
		if err := change(); err == nil || fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: %v, want one of kind unavailable", name, err)
		}
		if string(c.Spec()) != spec || c.Version() != 1 || c.Stats(ctx).Decisions != 1 || len(b.trail(northHero)) != trail || len(c.Options()) != 3 {
			t.Errorf("%s has changed something", name)
		}
	}
	store.refuse.Store(false)
	if a := b.decide(c, request(`{}`, "f")); a.Mode != Learner {
		t.Errorf("answer %+v", a)
	}
	b.put(`{"mode":"frozen"}`, Merge)
	b.restart(Options{})
	if c := b.capsule(northHero); c.Mode() != Frozen || c.Version() != 1 {
		t.Errorf("mode %v, version %d", c.Mode(), c.Version())
	}
}
