package decision

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"holdfast/fault"
)

// trail is a capsule's audit trail as "event detail" lines, with hashes left out.
func (b *bench) trail(id CapsuleID) (lines []string) {
	b.Helper()
	rows, err := b.service.Audits(context.Background(), id, 1000)
	if err != nil {
		b.Fatal(err)
	}
	for _, row := range rows {
		detail := string(row.Detail)
		if at := strings.Index(detail, `"specSha256":"`); at >= 0 {
			detail = detail[:at] + detail[at+len(`"specSha256":"`)+64+1:]
		}
		lines = append(lines, row.Event+" "+detail)
	}
	return lines
}

func (b *bench) put(patch string, replace Replace) (string, bool) {
	b.Helper()
	spec, created, err := b.service.PutSpec(context.Background(), northHero, []byte(patch), replace)
	if err != nil {
		b.Fatal(err)
	}
	return string(spec), created
}

func TestPutSpecMakesAndPatches(t *testing.T) {
	b := newBench(t, Options{})
	spec, created := b.put(`{"actions":[{"id":"a"}],"seed":18446744073709551615}`, Merge)
	if !created || !strings.Contains(spec, `"seed":18446744073709551615`) {
		t.Fatalf("created %v: %s", created, spec)
	}
	if again, created := b.put(`{}`, Merge); created || again != spec {
		t.Errorf("an empty patch changed the spec: %s", again)
	}
	b.decide(b.capsule(northHero), request("{}", "e"))
	b.reward(b.capsule(northHero), "e", 1)
	spec, _ = b.put(`{ "learner": {"learningRate": 1e-1} }`, Merge)
	if !strings.Contains(spec, `"learningRate":1e-1`) || !strings.Contains(spec, `"id":"a"`) {
		t.Errorf("merged: %s", spec)
	}
	if c := b.capsule(northHero); c.Version() != 1 || string(c.Spec()) != spec {
		t.Errorf("version %d, spec %s", c.Version(), c.Spec())
	}
	spec, _ = b.put(`{"mode":"frozen"}`, ReplaceAll)
	if strings.Contains(spec, "seed") || strings.Contains(spec, `"id":"a"`) || !strings.Contains(spec, `"mode":"frozen"`) {
		t.Errorf("replaced: %s", spec)
	}
	want := []string{
		`capsule_created {"patch":{"actions":[{"id":"a"}],"seed":18446744073709551615},}`,
		`spec_updated {"patch":{"learner":{"learningRate":1e-1}},}`,
		`spec_replaced {"patch":{"mode":"frozen"},}`,
	}
	if got := b.trail(northHero); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("trail:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	stored := b.capsule(northHero).Spec()
	b.restart(Options{})
	if c := b.capsule(northHero); string(c.Spec()) != string(stored) || c.Version() != 1 {
		t.Errorf("after a restart: version %d, %s", c.Version(), c.Spec())
	}
}

func TestRejectedSpecsLeaveNothing(t *testing.T) {
	b := newBench(t, Options{})
	ctx := context.Background()
	for _, patch := range []string{`{"colour":1}`, `{"mode":"wild"}`, `[]`, `{`, `{"a":1,"a":2}`} {
		_, _, err := b.service.PutSpec(ctx, northHero, []byte(patch), Merge)
		b.kind(fault.Invalid, err)
		if err != nil && !strings.HasPrefix(err.(*fault.Error).Msg, "invalid spec: ") {
			t.Errorf("%s: %v", patch, err)
		}
	}
	_, err := b.service.Audits(ctx, northHero, 10)
	b.kind(fault.NotFound, err)
	_, err = b.service.SetMode(ctx, northHero, []byte(`{"mode":"frozen"}`))
	b.kind(fault.NotFound, err)
	_, _, err = b.service.PutSpec(ctx, CapsuleID{Tenant: "north", Job: ".x", Capsule: "hero"}, []byte(`{}`), Merge)
	b.kind(fault.Invalid, err)
	b.put(`{}`, Merge)
	_, err = b.service.SetMode(ctx, northHero, []byte(`{"seed":1}`))
	b.kind(fault.Invalid, err)
	if got := b.trail(northHero); len(got) != 1 {
		t.Errorf("trail %v", got)
	}
}

func TestConcurrentPatchesAreAllKept(t *testing.T) {
	b := newBench(t, Options{})
	patches := []string{`{"baselineEpsilon":0.3}`, `{"snapshotEvery":7}`, `{"rewards":"sum"}`, `{"exploration":{"floor":0.2}}`, `{"mode":"frozen"}`,
		`{"reward":{"waitSeconds":9}}`}
	var all sync.WaitGroup
	made := make([]bool, len(patches))
	for i, patch := range patches {
		all.Go(func() {
			_, created, err := b.service.PutSpec(context.Background(), northHero, []byte(patch), Merge)
			if err != nil {
				t.Error(err)
			}
			made[i] = created
		})
	}
	all.Wait()
	makers := 0
	for _, m := range made {
		if m {
			makers++
		}
	}
	spec := string(b.capsule(northHero).Spec())
	for _, part := range []string{`"baselineEpsilon":0.3`, `"snapshotEvery":7`, `"rewards":"sum"`, `"floor":0.2`, `"mode":"frozen"`, `"waitSeconds":9`} {
		if !strings.Contains(spec, part) {
			t.Errorf("%s is lost: %s", part, spec)
		}
	}
	if makers != 1 || len(b.trail(northHero)) != len(patches) {
		t.Errorf("%d made the capsule, trail %v", makers, b.trail(northHero))
	}
}

func TestSpecFiles(t *testing.T) {
	b := newBench(t, Options{})
	ctx := context.Background()
	for i, c := range []struct {
		spec    string
		changed bool
	}{{`{"actions":[{"id":"a"}]}`, true}, {`{"actions":[{"id":"a"}]}`, false}, {`{}`, true}} {
		changed, err := b.service.ApplySpecFile(ctx, northHero, []byte(c.spec), "hero.yaml")
		if err != nil || changed != c.changed {
			t.Errorf("%d: changed %v, %v", i, changed, err)
		}
	}
	want := []string{`capsule_created {"patch":{"actions":[{"id":"a"}]},,"file":"hero.yaml"}`, `spec_applied {"patch":{},,"file":"hero.yaml"}`}
	if got := b.trail(northHero); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("trail %v", got)
	}
	b.kind(fault.Invalid, b.service.CheckSpec([]byte(`{"x":1}`)))
}

func TestReplaceRepairsASpecThatNoLongerParses(t *testing.T) {
	b := newBench(t, Options{})
	b.put(`{"actions":[{"id":"a"}]}`, Merge)
	b.restart(Options{})
	if err := b.store.Write(context.Background(), Write{Change: func(tx Tx) error {
		row, err := tx.Capsule(northHero)
		row.Spec = []byte(`{"from":"another time"}`)
		if err == nil {
			err = tx.SaveCapsule(row)
		}
		return err
	}}); err != nil {
		t.Fatal(err)
	}
	_, _, err := b.service.PutSpec(context.Background(), northHero, []byte(`{}`), Merge)
	b.kind(fault.Internal, err)
	b.put(`{"actions":[{"id":"b"}]}`, ReplaceAll)
	if a := b.decide(b.capsule(northHero), request("{}", "")); a.Action != "b" {
		t.Errorf("chose %s", a.Action)
	}
}

const oneNode = `{"graph":[{"id":"route","op":"strategy","options":["fast","safe"]}]}`

func TestInstallAndRemove(t *testing.T) {
	b := newBench(t, Options{})
	ctx := context.Background()
	_, err := b.service.Install(ctx, northHero, []byte(`{"graph":[{"id":"n","op":"magic"}]}`))
	b.kind(fault.Invalid, err)
	info, err := b.service.Install(ctx, northHero, []byte(oneNode))
	if err != nil || info.Bytes != len(oneNode) || len(info.SHA256) != 64 {
		t.Fatalf("%+v, %v", info, err)
	}
	if again, err := b.service.Install(ctx, northHero, []byte(oneNode)); err != nil || again != info {
		t.Errorf("again: %+v, %v", again, err)
	}
	c := b.capsule(northHero)
	if got := fmt.Sprint(c.Options()); got != "[fast safe]" {
		t.Errorf("options %s", got)
	}
	b.put(`{"rewards":"sum"}`, Merge) // a change of the spec keeps the graph
	if got := fmt.Sprint(b.capsule(northHero).Options()); got != "[fast safe]" {
		t.Errorf("options after a change of the spec: %s", got)
	}
	if err := b.service.RemoveProgram(ctx, northHero); err != nil {
		t.Fatal(err)
	}
	b.kind(fault.NotFound, b.service.RemoveProgram(ctx, northHero))
	trail := b.trail(northHero)
	var events []string
	for _, line := range trail {
		event, _, _ := strings.Cut(line, " ")
		events = append(events, event)
	}
	if got := strings.Join(events, " "); got != "capsule_created program_installed spec_updated program_removed" {
		t.Errorf("trail %s", got)
	}
}

func TestEraseAndDelete(t *testing.T) {
	b := newBench(t, Options{})
	ctx := context.Background()
	b.put(`{"actions":[{"id":"a"},{"id":"b"}]}`, Merge)
	c := b.capsule(northHero)
	for i := range 5 {
		id := fmt.Sprint("e", i)
		b.decide(c, request("{}", id))
		b.reward(c, id, 1)
	}
	removed, err := b.service.PurgeLogs(ctx, northHero)
	if err != nil || removed != (Removed{5, 5}) {
		t.Fatalf("%+v, %v", removed, err)
	}
	if c.Version() != 5 || c.Stats(ctx).Decisions != 0 {
		t.Errorf("version %d, %+v", c.Version(), c.Stats(ctx))
	}
	b.restart(Options{})
	if got := b.capsule(northHero).Version(); got != 5 {
		t.Errorf("after a restart the model has learned %d rewards, want 5", got)
	}
	two := CapsuleID{Tenant: "north", Job: "web", Capsule: "two"}
	three := CapsuleID{Tenant: "north", Job: "mail", Capsule: "three"}
	for _, id := range []CapsuleID{two, three} {
		if _, _, err := b.service.PutSpec(ctx, id, []byte(`{}`), Merge); err != nil {
			t.Fatal(err)
		}
	}
	if rows, err := b.service.DeleteCapsule(ctx, northHero); err != nil || rows == 0 {
		t.Errorf("%d rows, %v", rows, err)
	}
	_, err = b.service.DeleteCapsule(ctx, northHero)
	b.kind(fault.NotFound, err)
	if rows, err := b.service.DeleteJob(ctx, "north", "web"); err != nil || rows == 0 {
		t.Errorf("%d rows, %v", rows, err)
	}
	_, err = b.service.DeleteJob(ctx, "north", "web")
	b.kind(fault.NotFound, err)
	if rows, err := b.service.DeleteTenant(ctx, "north"); err != nil || rows == 0 {
		t.Errorf("%d rows, %v", rows, err)
	}
	_, err = b.service.DeleteTenant(ctx, "north")
	b.kind(fault.NotFound, err)
	for id, last := range map[CapsuleID]string{northHero: "capsule_deleted {}", two: `capsule_deleted {"with":"job"}`, three: `capsule_deleted {"with":"tenant"}`} {
		trail := b.trail(id)
		if trail[len(trail)-1] != last {
			t.Errorf("%s: trail %v", id, trail)
		}
	}
}

func TestJobsAndCapsules(t *testing.T) {
	b := newBench(t, Options{})
	ctx := context.Background()
	job, created, err := b.service.CreateJob(ctx, "north", "pricing", "Price tests")
	if err != nil || !created || job.Name != "Price tests" || len(job.Capsules) != 0 {
		t.Fatalf("%+v %v %v", job, created, err)
	}
	if job, created, err = b.service.CreateJob(ctx, "north", "pricing", "Other"); err != nil || created || job.Name != "Price tests" {
		t.Errorf("%+v %v %v", job, created, err)
	}
	_, _, err = b.service.CreateJob(ctx, "north", ".x", "x")
	b.kind(fault.Invalid, err)
	_, _, err = b.service.CreateJob(ctx, "north", "x", strings.Repeat("x", MaxJobName+1))
	b.kind(fault.Invalid, err)
	b.put(`{}`, Merge)
	if tenants, err := b.service.Tenants(ctx); err != nil || fmt.Sprint(tenants) != "[north]" {
		t.Errorf("%v %v", tenants, err)
	}
	jobs, err := b.service.Jobs(ctx, "north")
	if err != nil || len(jobs) != 2 || jobs[0].ID != "pricing" || fmt.Sprint(jobs[1].Capsules) != "[hero]" {
		t.Errorf("%+v %v", jobs, err)
	}
	if ids, err := b.service.Capsules(ctx, "", ""); err != nil || len(ids) != 1 || ids[0] != northHero {
		t.Errorf("%v %v", ids, err)
	}
	_, err = b.service.Job(ctx, "north", "none")
	b.kind(fault.NotFound, err)
	if jobs, err := b.service.Jobs(ctx, "nowhere"); err != nil || len(jobs) != 0 {
		t.Errorf("%v %v", jobs, err)
	}
}

func TestNewestUnrewarded(t *testing.T) {
	b := newBench(t, Options{})
	ctx := context.Background()
	c := b.install(northHero, `{"actions":[{"id":"a"}]}`)
	for _, id := range []string{"e1", "e2", "e3"} {
		b.decide(c, request(`{"contextKey":"eu"}`, id))
	}
	b.decide(c, request(`{}`, "e4"))
	for _, step := range []struct{ key, want string }{{"eu", "e3"}, {"eu", "e2"}, {"", "e4"}, {"eu", "e1"}} {
		got, err := b.service.NewestUnrewarded(ctx, northHero, "a", step.key)
		if err != nil || got != step.want {
			t.Fatalf("key %q: %s, %v, want %s", step.key, got, err, step.want)
		}
		b.reward(c, got, 1)
	}
	_, err := b.service.NewestUnrewarded(ctx, northHero, "a", "eu")
	b.kind(fault.NotFound, err)
	_, err = b.service.NewestUnrewarded(ctx, northHero, "b", "eu")
	b.kind(fault.NotFound, err)
}
