package decision

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/fault"
)

func (b *bench) published(c *Capsule) Publication {
	b.Helper()
	p, info, err := c.Published(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	if info.Version != p.Version || info.Watermark != p.Seq || p.Tag != ModelTag(p.Section, p.Bytes) {
		b.Errorf("info %+v of publication %s version %d seq %d", info, p.Tag, p.Version, p.Seq)
	}
	return p
}

func TestModelTagIsTheGoldenOne(t *testing.T) {
	spec, err := ParseSpec([]byte(`{"seed":18446744073709551615,"actions":[{"id":"a"},{"id":"b"}],"learner":{"bits":10}}`))
	if err != nil {
		t.Fatal(err)
	}
	section := string(spec.Section())
	for _, part := range []string{`{"actions":[{"id":"a"},{"id":"b"}],`, `,"bits":10,`, `"seed":18446744073709551615,"version":1}`} {
		if !strings.Contains(section, part) {
			t.Errorf("section %s lacks %s", section, part)
		}
	}
	snapshot := make([]byte, 84)
	for i := range snapshot {
		snapshot[i] = byte(i)
	}
	text := `{"actions":[{"id":"a"},{"id":"b"}],"bits":10,"seed":18446744073709551615,"version":1}`
	if tag := ModelTag([]byte(text), snapshot); tag != "5b441bd2fa0e248f" {
		t.Errorf("tag %s", tag)
	}
}

func TestSectionKeepsNumbersAndSortsKeys(t *testing.T) {
	spec, err := ParseSpec([]byte(`{ "baselineEpsilon":1e-07, "actions":[{"id":"z","features":{"b":10.0,"a":{"d":1e2,"c":[ 2 , {"y":1,"x":0} ]}}}],
		"exploration":{"kind":"epsilonGreedy","floor":0.050}, "rewards":"sum", "mode":"frozen" }`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"actions":[{"features":{"a":{"c":[2,{"x":0,"y":1}],"d":1e2},"b":10.0},"id":"z"}],"baselineEpsilon":1e-07,"bits":18,` +
		`"exploration":{"epsilon":0.05,"floor":0.050,"gammaExponent":0.5,"gammaScale":10,"kind":"epsilonGreedy"},"mode":"frozen","rewards":"sum","version":1}`
	if got := string(spec.Section()); got != want {
		t.Errorf("section\n%s\nwant\n%s", got, want)
	}
}

func TestPublishing(t *testing.T) {
	k := newClock()
	b := newBench(t, k.options(Options{}))
	b.put(threeModels, Merge)
	c := b.capsule(northHero)
	learn := func(id string) {
		t.Helper()
		b.decide(c, request(`{"x":1}`, id))
		b.reward(c, id, 1)
	}
	first := b.published(c)
	learn("e1")
	if again := b.published(c); again.Tag != first.Tag {
		t.Errorf("learning published within the second: version %d", again.Version)
	}
	if info, err := c.Model(context.Background()); err != nil || info.Version != 1 || info.Watermark != 1 {
		t.Errorf("the model itself: %+v, %v", info, err)
	}
	k.advance(publishEvery)
	second := b.published(c)
	if second.Tag == first.Tag || second.Version != 1 || second.Seq != 1 {
		t.Errorf("after a second: %s version %d seq %d", second.Tag, second.Version, second.Seq)
	}
	if _, _, err := b.service.PutSpec(context.Background(), northHero, []byte(`{"exploration":{"floor":0.1}}`), Merge); err != nil {
		t.Fatal(err)
	}
	third := b.published(c)
	if third.Tag == second.Tag || !strings.Contains(string(third.Section), `"floor":0.1`) {
		t.Errorf("a changed section was not published at once: %s", third.Section)
	}
	// What decides no draw publishes nothing.
	if _, _, err := b.service.PutSpec(context.Background(), northHero, []byte(`{"snapshotEvery":7,"reward":{"waitSeconds":5}}`), Merge); err != nil {
		t.Fatal(err)
	}
	if again := b.published(c); again.Tag != third.Tag {
		t.Error("a spec with the same decide section was published again")
	}
	b.crash(k.options(Options{}))
	if again := b.published(b.capsule(northHero)); again.Tag != third.Tag {
		t.Errorf("after a crash: %s, want %s", again.Tag, third.Tag)
	}
}

// TestPublishingAfterTheClockWentBack: a publication that seems to lie ahead does not hold the next ones up.
func TestPublishingAfterTheClockWentBack(t *testing.T) {
	k := newClock()
	b := newBench(t, k.options(Options{}))
	b.put(threeModels, Merge)
	c := b.capsule(northHero)
	first := b.published(c)
	k.advance(-time.Hour)
	b.decide(c, request(`{}`, "e"))
	b.reward(c, "e", 1)
	if next := b.published(c); next.Tag == first.Tag || next.Version != 1 {
		t.Errorf("nothing new was published: version %d", next.Version)
	}
}

func TestNewestPublicationsAreKept(t *testing.T) {
	b := newBench(t, Options{})
	b.put(threeModels, Merge)
	c := b.capsule(northHero)
	var tags []string
	for i := range keepPublications + 3 {
		b.put(fmt.Sprintf(`{"exploration":{"floor":0.%02d}}`, i+1), Merge)
		tags = append(tags, b.published(c).Tag)
	}
	err := b.store.Read(context.Background(), func(v View) error {
		kept, err := v.Publications(c.key)
		if err != nil || len(kept) != keepPublications || kept[0].Tag != tags[len(tags)-1] || kept[len(kept)-1].Tag != tags[3] {
			t.Errorf("%d kept, %v", len(kept), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPolicyDecidesAsTheCapsule(t *testing.T) {
	b := newBench(t, Options{})
	c := b.install(northHero, threeModels)
	for i := range 40 {
		id := fmt.Sprint("e", i)
		b.decide(c, request(fmt.Sprintf(`{"x":%d}`, i%5), id))
		b.reward(c, id, float64(i%2))
	}
	pub := b.published(c)
	p, err := OpenPolicy(pub.Section, pub.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if p.Tag() != pub.Tag || p.Version() != 40 || p.Seed() != nil || p.Aggregation() != First {
		t.Errorf("policy %s of version %d", p.Tag(), p.Version())
	}
	ctx := context.Background()
	for i := range 40 {
		req := request(fmt.Sprintf(`{"x":%d,"fresh":true}`, i), fmt.Sprint("f", i))
		req.Excluded = [][]string{nil, {"small"}, {"small", "large"}}[i%3]
		b.decide(c, req)
		want, _, err := c.Decision(ctx, req.EventID)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Decide(req, want.Seed)
		if err != nil || got.Chosen != want.Chosen || fmt.Sprint(got.PMF, got.Eligible, got.Probability) != fmt.Sprint(want.PMF, want.Eligible, want.Probability) {
			t.Errorf("%d: got %+v, %v, want %+v", i, got, err, want)
		}
	}
	_, err = p.Decide(&Request{Excluded: []string{"huge"}}, 1)
	b.kind(fault.Invalid, err)
}

func TestOpenPolicyRefuses(t *testing.T) {
	spec, err := ParseSpec([]byte(`{"actions":[{"id":"a"}],"learner":{"bits":10}}`))
	if err != nil {
		t.Fatal(err)
	}
	section, snapshot := string(spec.Section()), NewModel(10).AppendSnapshot(nil, 0.5)
	for name, tc := range map[string]struct {
		section  string
		snapshot []byte
		ok       bool
	}{
		"as published":     {section, snapshot, true},
		"unknown member":   {`{"later":[1],` + section[1:], snapshot, true},
		"newer version":    {strings.Replace(section, `"version":1`, `"version":2`, 1), snapshot, false},
		"no version":       {`{"bits":10}`, snapshot, false},
		"no bits":          {`{"version":1}`, snapshot, false},
		"other bits":       {strings.Replace(section, `"bits":10`, `"bits":11`, 1), snapshot, false},
		"out of bounds":    {strings.Replace(section, `"floor":0.05`, `"floor":0`, 1), snapshot, false},
		"no JSON":          {`{`, snapshot, false},
		"no object":        {`[]`, snapshot, false},
		"damaged snapshot": {section, append([]byte("x"), snapshot[1:]...), false},
		"no snapshot":      {section, nil, false},
	} {
		_, err := OpenPolicy([]byte(tc.section), tc.snapshot)
		if (err == nil) != tc.ok || err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzOpenPolicy(f *testing.F) {
	spec, err := ParseSpec([]byte(`{"actions":[{"id":"a"},{"id":"b"}],"learner":{"bits":10}}`))
	if err != nil {
		f.Fatal(err)
	}
	snapshot := NewModel(10).AppendSnapshot(nil, 0.5)
	f.Add(spec.Section(), []byte(`{"x":1}`))
	f.Add([]byte(`{"version":1,"bits":10,"actions":[{"id":"a"}],"mode":"baselineExplore"}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, section, context []byte) {
		p, err := OpenPolicy(section, snapshot)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatalf("%q: %v", section, err)
			}
			return
		}
		if checkedContext(context) {
			d, err := p.Decide(&Request{Context: context}, 7)
			if err != nil && fault.KindOf(err) != fault.Invalid {
				t.Fatalf("%q: %v", context, err)
			}
			if err == nil && !(d.Probability > 0 && d.Probability <= 1) {
				t.Fatalf("probability %v", d.Probability)
			}
		}
	})
}

// checkedContext reports whether a wire would let the context in: the service takes validated JSON objects only.
func checkedContext(text []byte) bool {
	_, err := MergePatch([]byte(`{}`), text)
	return err == nil
}

// A publication waits for the change of the spec that waits for the upload that waits for the publisher: it must not.
func TestPublishUploadAndSpecTogether(t *testing.T) {
	b := newBench(t, Options{})
	b.put(threeModels, Merge)
	c := b.capsule(northHero)
	done := make(chan error, 3)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	go func() {
		for i := range 300 {
			if _, _, err := b.service.PutSpec(ctx, northHero, fmt.Appendf(nil, `{"exploration":{"floor":0.%03d}}`, i+1), Merge); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	go func() {
		for range 300 {
			if _, _, err := c.Published(ctx); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	go func() {
		for i := range 300 {
			item := Upload{ID: fmt.Sprint("loc_", i), TimeMS: b.service.nowMS(), Tag: "0123456789abcdef"}
			if _, err := c.Upload(ctx, []Upload{item}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for range 3 {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-ctx.Done():
			t.Fatal("they wait for each other")
		}
	}
}
