package decision

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"holdfast/fault"
)

// respec changes a capsule's spec by a patch.
func (b *bench) respec(c *Capsule, patch string) {
	b.Helper()
	merged, err := MergePatch(c.Spec(), []byte(patch))
	if err != nil {
		b.Fatal(err)
	}
	spec, err := ParseSpec(merged)
	if err != nil {
		b.Fatal(err)
	}
	if err := c.reform(b.Context(), reform{spec: spec, audit: AuditRow{Event: "spec_updated", Detail: emptyObject}}); err != nil {
		b.Fatal(err)
	}
}

// play decides and rewards n times.
func (b *bench) play(c *Capsule, n int) {
	b.Helper()
	for i := range n {
		a := b.decide(c, request(fmt.Sprintf(`{"x":%d,"plan":"p%d"}`, i%5, i%3), ""))
		b.reward(c, a.ID, float64(i%4)/2)
	}
}

func TestReplayAcrossSpecChanges(t *testing.T) {
	patches := []string{
		`{"reward":{"range":[-2,5]}}`, `{"learner":{"learningRate":0.05}}`, `{"learner":{"importance":"mtr","maxImportanceWeight":3}}`,
		`{"mode":"frozen"}`, `{"mode":"learner"}`, `{"exploration":{"kind":"epsilonGreedy"}}`, `{"learner":{"importance":"none"}}`,
		`{"rewards":"sum"}`, `{"actions":[{"id":"small"},{"id":"new","features":{"cost":2}}]}`,
	}
	for _, every := range []string{`{"snapshotEvery":1000000}`, `{"snapshotEvery":3}`} {
		t.Run(every, func(t *testing.T) {
			b := newBench(t, Options{})
			c := b.install(northHero, threeModels)
			b.respec(c, every)
			for i, patch := range patches {
				b.play(c, 7)
				b.respec(c, patch)
				b.play(c, 7)
				want := c.capture()
				if i%2 == 0 {
					b.crash(Options{})
				} else {
					b.restart(Options{})
				}
				c = b.capsule(northHero)
				if got := c.capture(); string(got.Bytes) != string(want.Bytes) {
					t.Fatalf("after %s: the model of version %d became another of version %d", patch, want.Version, got.Version)
				}
			}
			if want := uint64(7 * (2*len(patches) - 2)); c.Version() != want {
				t.Errorf("version %d, want %d: frozen must not learn", c.Version(), want)
			}
		})
	}
}

func TestBitsChangeRebuilds(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	b.play(c, 30)
	b.respec(c, `{"learner":{"bits":12}}`)
	if e := c.engine.Load(); e.model.Bits() != 12 || c.Version() != 30 {
		t.Fatalf("%d bits, version %d", e.model.Bits(), c.Version())
	}
	want := c.capture()
	// The same rewards on a capsule that always had 12 bits.
	other := NewModel(12)
	_ = b.store.Read(t.Context(), func(v View) error {
		_, err := replay(v, c.key, c.engine.Load().spec, other, 0)
		return err
	})
	if string(other.AppendSnapshot(nil, 0.5)) != string(want.Bytes) {
		t.Error("the rebuilt model differs from one trained on the log")
	}
	b.play(c, 5)
	want = c.capture()
	b.crash(Options{})
	c = b.capsule(northHero)
	if got := c.capture(); string(got.Bytes) != string(want.Bytes) {
		t.Error("the rebuilt model does not survive a crash")
	}
}

func TestSpecChangeIsRefusedWhenNothingCanBeSaved(t *testing.T) {
	store := newFaulty()
	b := newBench(t, Options{Storage: store})
	c := b.install(northHero, threeModels)
	b.play(c, 3)
	before := string(c.Spec())
	store.breakWith(unavailable("store", "the disk is full"))
	spec, _ := ParseSpec([]byte(`{"mode":"frozen"}`))
	b.kind(fault.Unavailable, c.reform(t.Context(), reform{spec: spec, audit: AuditRow{Event: "spec_updated", Detail: emptyObject}}))
	store.breakWith(nil)
	if string(c.Spec()) != before {
		t.Error("a refused change took effect")
	}
}

func TestSnapshotsInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		c := b.install(northHero, `{"snapshotEvery":5,"actions":[{"id":"a"},{"id":"b"}]}`)
		for range 7 {
			b.play(c, 5)
			synctest.Wait()
		}
		var kept []Snapshot
		_ = b.store.Read(t.Context(), func(v View) (err error) { kept, err = v.Snapshots(c.key); return err })
		if len(kept) != 3 || kept[0].Version != 35 || kept[1].Version != 30 || kept[2].Version != 25 {
			for _, s := range kept {
				t.Logf("version %d seq %d", s.Version, s.Seq)
			}
			t.Fatal("want the snapshots of versions 35, 30 and 25")
		}
		if kept[0].Seq != 35 {
			t.Errorf("the newest covers %d, want 35", kept[0].Seq)
		}
	})
}

func TestShutdownSnapshotsWhatLearned(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	idle := b.install(CapsuleID{"north", "web", "idle"}, threeModels)
	b.play(c, 4)
	if err := b.service.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = b.store.Read(t.Context(), func(v View) error {
		if s, err := v.NewestSnapshot(c.key); err != nil || s.Version != 4 || s.Seq != 4 {
			t.Errorf("snapshot %d/%d, %v", s.Version, s.Seq, err)
		}
		if _, err := v.NewestSnapshot(idle.key); fault.KindOf(err) != fault.NotFound {
			t.Errorf("a model that never learned was saved: %v", err)
		}
		return nil
	})
}

func TestLoadIsShared(t *testing.T) {
	store := &counting{Memory: NewMemory()}
	b := newBench(t, Options{Storage: store})
	b.install(northHero, threeModels)
	b.restart(Options{})
	before := store.reads.Load()
	var wg sync.WaitGroup
	loaded := make([]*Capsule, 16)
	for i := range loaded {
		wg.Go(func() { loaded[i], _ = b.service.Capsule(t.Context(), northHero) })
	}
	wg.Wait()
	for _, c := range loaded {
		if c == nil || c != loaded[0] {
			t.Fatal("one capsule was loaded twice")
		}
	}
	if got := store.reads.Load() - before; got != 1 {
		t.Errorf("%d reads for one load", got)
	}
}

func TestBrokenCapsuleFailsAlone(t *testing.T) {
	b := newBench(t, Options{})
	b.install(northHero, threeModels)
	bad := CapsuleID{"north", "web", "bad"}
	err := b.store.Write(t.Context(), Write{Change: func(tx Tx) error {
		_, err := tx.CreateCapsule(CapsuleRow{ID: bad, Spec: []byte(`{"mode":"sideways"}`)})
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	b.restart(Options{})
	_, err = b.service.Capsule(t.Context(), bad)
	b.kind(fault.Internal, err)
	_, err = b.service.Capsule(t.Context(), CapsuleID{"north", "web", "none"})
	b.kind(fault.NotFound, err)
	good := b.capsule(northHero)
	b.decide(good, request("{}", ""))
	if rows, err := b.service.remove(t.Context(), bad, AuditRow{Event: "capsule_deleted", Detail: emptyObject}); err != nil || rows != 1 {
		t.Errorf("a broken capsule cannot be deleted: %d rows, %v", rows, err)
	}
}

func TestDamagedSnapshotIsNoticed(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	b.play(c, 3)
	snapshot := c.capture()
	snapshot.Bytes[60] ^= 1
	if err := b.store.Write(t.Context(), Write{Change: func(tx Tx) error { return tx.SaveSnapshot(snapshot, 3) }}); err != nil {
		t.Fatal(err)
	}
	b.crash(Options{})
	_, err := b.service.Capsule(t.Context(), northHero)
	b.kind(fault.Internal, err)
}
