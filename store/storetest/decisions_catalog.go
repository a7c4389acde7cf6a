package storetest

import (
	"math"

	"holdfast/decision"
	"holdfast/fault"
)

func catalogCases() []decisionCase {
	return []decisionCase{
		{"jobs and tenants", jobsAndTenants},
		{"a capsule reads back as it was made", capsuleReadsBack},
		{"a capsule is made once", capsuleMadeOnce},
		{"saving a capsule changes only what it may", saveCapsule},
		{"capsules are listed by tenant and job", listCapsules},
		{"deleting takes all but the trail", deleteCapsule},
		{"a key is never given twice", keysNeverReused},
		{"a job goes when it is empty", deleteJob},
	}
}

func jobsAndTenants(b *decisionBench) {
	save := func(j decision.JobRow) (created bool) {
		b.write(func(tx decision.Tx) (err error) {
			created, err = tx.SaveJob(j)
			return err
		})
		return created
	}
	first := decision.JobRow{Tenant: "south", ID: "pricing", Name: "Price tests", CreatedMS: 7}
	same(b, "created", save(first), true)
	same(b, "created again", save(decision.JobRow{Tenant: "south", ID: "pricing", Name: "other", CreatedMS: 8}), false)
	same(b, "created", save(decision.JobRow{Tenant: "south", ID: "Banner", Name: "b", CreatedMS: 9}), true)
	same(b, "created", save(decision.JobRow{Tenant: "north", ID: "pricing", Name: "n", CreatedMS: 10}), true)
	b.read(func(v decision.View) error {
		tenants, err := v.Tenants()
		if err != nil {
			return err
		}
		equal(b, "tenants", tenants, []string{"north", "south"})
		jobs, err := v.Jobs("south")
		if err != nil {
			return err
		}
		equal(b, "jobs", jobs, []decision.JobRow{{Tenant: "south", ID: "Banner", Name: "b", CreatedMS: 9}, first})
		jobs, err = v.Jobs("nowhere")
		same(b, "jobs of an unknown tenant", len(jobs), 0)
		return err
	})
}

func capsuleReadsBack(b *decisionBench) {
	want := decision.CapsuleRow{ID: decision.CapsuleID{Tenant: "north", Job: "web", Capsule: "hero"}, CreatedMS: 1790000000123,
		Spec: []byte("{\"seed\": 18446744073709551615,\n \"naïve\":1e-07}"), Program: []byte(`{"nodes":[]}`), InstalledMS: 12,
		Seed: math.MaxUint64, Draws: math.MaxUint64 - 1}
	var key int64
	b.write(func(tx decision.Tx) (err error) {
		key, err = tx.CreateCapsule(want)
		if err != nil {
			return err
		}
		seen, err := tx.Capsule(want.ID)
		same(b, "key seen by its own change", seen.Key, key)
		return err
	})
	if key <= 0 {
		b.Errorf("key %d", key)
	}
	got := b.row("hero")
	same(b, "key", got.Key, key)
	same(b, "id", got.ID, want.ID)
	same(b, "created", got.CreatedMS, want.CreatedMS)
	same(b, "spec", string(got.Spec), string(want.Spec))
	same(b, "program", string(got.Program), string(want.Program))
	same(b, "installed", got.InstalledMS, 12)
	same(b, "seed", got.Seed, want.Seed)
	same(b, "draws", got.Draws, want.Draws)
	same(b, "counts", [6]int64{got.Purges, got.LastSeq, got.Decisions, got.Rewards, got.FirstMS, got.LastMS}, [6]int64{})
	b.capsule("plain")
	same(b, "no program", b.row("plain").Program == nil, true)
	b.read(func(v decision.View) error {
		jobs, err := v.Jobs("north")
		equal(b, "the job came with the capsule", jobs, []decision.JobRow{{Tenant: "north", ID: "web", Name: "web", CreatedMS: want.CreatedMS}})
		_, missing := v.Capsule(capsuleID("nobody"))
		b.kind(fault.NotFound, missing)
		return err
	})
}

func capsuleMadeOnce(b *decisionBench) {
	key := b.capsule("a")
	b.refused(fault.Conflict, func(tx decision.Tx) error {
		_, err := tx.CreateCapsule(decision.CapsuleRow{ID: capsuleID("a"), Spec: []byte("{}")})
		return err
	})
	row := b.row("a")
	same(b, "key", row.Key, key)
	same(b, "spec", string(row.Spec), `{"seed":1}`)
}

func saveCapsule(b *decisionBench) {
	key := b.capsule("a")
	b.append(batch(key, 10, 20, "x", "y"))
	b.reward(key, "x", "x")
	row := b.row("a")
	row.Spec, row.Program, row.InstalledMS, row.Seed, row.Draws = []byte(`{"a":2}`), []byte("{}"), 44, 5, 1024
	row.Decisions, row.Rewards, row.LastSeq, row.Purges, row.FirstMS, row.LastMS = 90, 91, 92, 93, 94, 95 // not its to change
	save := func(tx decision.Tx) error { return tx.SaveCapsule(row) }
	b.write(save)
	got := b.row("a")
	same(b, "spec", string(got.Spec), `{"a":2}`)
	same(b, "program", string(got.Program), "{}")
	same(b, "numbers", [3]uint64{uint64(got.InstalledMS), got.Seed, got.Draws}, [3]uint64{44, 5, 1024})
	same(b, "counts", [6]int64{got.Decisions, got.Rewards, got.LastSeq, got.Purges, got.FirstMS, got.LastMS}, [6]int64{2, 1, 1, 0, 10, 20})
	row.Program, row.InstalledMS = nil, 0
	b.write(save)
	same(b, "program removed", b.row("a").Program == nil, true)
	row.Key = 1 << 40
	b.refused(fault.NotFound, save)
}

func listCapsules(b *decisionBench) {
	ids := []decision.CapsuleID{{Tenant: "a", Job: "x", Capsule: "1"}, {Tenant: "a", Job: "x", Capsule: "2"},
		{Tenant: "a", Job: "y", Capsule: "1"}, {Tenant: "b", Job: "x", Capsule: "1"}}
	b.write(func(tx decision.Tx) error {
		for _, i := range []int{3, 1, 0, 2} {
			if _, err := tx.CreateCapsule(decision.CapsuleRow{ID: ids[i], Spec: []byte("{}")}); err != nil {
				return err
			}
		}
		return nil
	})
	b.read(func(v decision.View) error {
		for _, c := range []struct {
			tenant, job string
			want        []decision.CapsuleID
		}{{"", "", ids}, {"a", "", ids[:3]}, {"a", "x", ids[:2]}, {"b", "", ids[3:]}, {"a", "z", nil},
			{"", "x", []decision.CapsuleID{ids[0], ids[1], ids[3]}}} {
			got, err := v.Capsules(c.tenant, c.job)
			if err != nil {
				return err
			}
			equal(b, "capsules of "+c.tenant+"/"+c.job, got, c.want)
		}
		return nil
	})
}

// fill gives a capsule three decisions, two rewards, two snapshots, one publication and one held event.
func (b *decisionBench) fill(key int64) {
	b.Helper()
	b.write(func(tx decision.Tx) error {
		one := batch(key, 10, 20, "x", "y", "z")
		one.Events = []string{"x"}
		err := tx.AppendBatch(one)
		for i, id := range []string{"x", "y"} {
			if err == nil {
				_, err = tx.AppendReward(key, 0, decision.Reward{DecisionID: id, Key: id})
			}
			if err == nil {
				err = tx.SaveSnapshot(decision.Snapshot{Capsule: key, Version: uint64(i), Bytes: []byte(id)}, 3)
			}
		}
		if err == nil {
			err = tx.SavePublication(decision.Publication{Capsule: key, Tag: "t", Section: []byte("{}"), Bytes: []byte("p")}, 3)
		}
		if err == nil {
			err = tx.SaveHeld(decision.Held{Capsule: key, EventID: "h", Record: []byte("r")})
		}
		return err
	})
}

// rowsFilled is how many rows fill made, the capsule's own included.
const rowsFilled = 3 + 2 + 2 + 1 + 1 + 1

func deleteCapsule(b *decisionBench) {
	key, other := b.capsule("a"), b.capsule("b")
	b.fill(key)
	b.fill(other)
	var rows int64
	b.write(func(tx decision.Tx) (err error) {
		if err := tx.AppendAudit(capsuleID("a"), decision.AuditRow{TimeMS: 1, Event: "capsule_created", Detail: []byte("{}")}); err != nil {
			return err
		}
		rows, err = tx.DeleteCapsule(key)
		if err != nil {
			return err
		}
		return tx.AppendAudit(capsuleID("a"), decision.AuditRow{TimeMS: 2, Event: "capsule_deleted", Detail: []byte("{}")})
	})
	same(b, "rows removed", rows, rowsFilled)
	b.refused(fault.NotFound, func(tx decision.Tx) error { _, err := tx.DeleteCapsule(key); return err })
	gone := map[string]func(tx decision.Tx) error{
		"batch": func(tx decision.Tx) error { return tx.AppendBatch(batch(key, 1, 2, "late")) },
		"reward": func(tx decision.Tx) error {
			_, err := tx.AppendReward(key, 0, decision.Reward{DecisionID: "x", Key: "q"})
			return err
		},
		"snapshot": func(tx decision.Tx) error {
			return tx.SaveSnapshot(decision.Snapshot{Capsule: key, Bytes: []byte("x")}, 3)
		},
		"publication": func(tx decision.Tx) error {
			return tx.SavePublication(decision.Publication{Capsule: key, Tag: "u", Section: []byte("{}"), Bytes: []byte("x")}, 3)
		},
		"held": func(tx decision.Tx) error {
			return tx.SaveHeld(decision.Held{Capsule: key, EventID: "i", Record: []byte("x")})
		},
		"spec":  func(tx decision.Tx) error { return tx.SaveCapsule(decision.CapsuleRow{Key: key, Spec: []byte("{}")}) },
		"purge": func(tx decision.Tx) error { _, _, err := tx.PurgeLogs(key); return err },
		"retention": func(tx decision.Tx) error {
			_, _, err := tx.DropBatches(key, decision.Retention{IDs: payloadIDs})
			return err
		},
	}
	for what, change := range gone {
		if err := b.try(change); fault.KindOf(err) != fault.NotFound || err == nil {
			b.Errorf("a late %s for a deleted capsule: %v, want not found", what, err)
		}
	}
	b.read(func(v decision.View) error {
		_, err := v.Capsule(capsuleID("a"))
		b.kind(fault.NotFound, err)
		_, err = v.NewestSnapshot(key)
		b.kind(fault.NotFound, err)
		_, err = v.Publication(key, "t")
		b.kind(fault.NotFound, err)
		_, err = v.Held(key, "h")
		b.kind(fault.NotFound, err)
		trail, err := v.Audits(capsuleID("a"), 10)
		same(b, "trail", len(trail), 2)
		return err
	})
	same(b, "batches", len(b.batches(key, decision.BatchQuery{})), 0)
	same(b, "rewards", len(b.rewardsAfter(key, 0)), 0)
	same(b, "event", b.known(key, "x"), false)
	row := b.row("b")
	same(b, "the other's counts", [2]int64{row.Decisions, row.Rewards}, [2]int64{3, 2})
	same(b, "the other's event", b.known(other, "x"), true)
}

func keysNeverReused(b *decisionBench) {
	seen := map[int64]bool{}
	for range 4 {
		key := b.capsule("a")
		if seen[key] {
			b.Fatalf("key %d was given twice", key)
		}
		seen[key] = true
		b.fill(key)
		same(b, "a recreated capsule starts at sequence 2", b.row("a").LastSeq, 2)
		b.write(func(tx decision.Tx) error { _, err := tx.DeleteCapsule(key); return err })
	}
}

func deleteJob(b *decisionBench) {
	key := b.capsule("a")
	drop := func(tx decision.Tx) error { _, err := tx.DeleteJob("north", "web"); return err }
	b.refused(fault.Conflict, drop)
	var rows int64
	b.write(func(tx decision.Tx) (err error) {
		if _, err := tx.DeleteCapsule(key); err != nil {
			return err
		}
		rows, err = tx.DeleteJob("north", "web")
		return err
	})
	same(b, "rows", rows, 1)
	b.refused(fault.NotFound, drop)
	b.read(func(v decision.View) error {
		tenants, err := v.Tenants()
		same(b, "tenants left", len(tenants), 0)
		return err
	})
}
