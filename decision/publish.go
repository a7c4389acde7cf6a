package decision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/fault"
	"holdfast/internal/strictjson"
)

// The rules of publications.
const (
	keepPublications = 32
	warmPublications = 2           // whose engines stay in memory
	publishEvery     = time.Second // how often learning alone publishes
)

// publisher makes and remembers a capsule's publications. It publishes when somebody asks: an unseen publication is of no
// use to anybody, and would cost a snapshot on disk every second.
type publisher struct {
	mu     sync.Mutex // held across the storage, so that there is one newest publication; guards what follows
	loaded bool       // newest was looked up in the storage
	newest Publication
	warm   []*Policy // of the publications last used, newest first
}

// Section is the part of a spec that decides a draw, as compact JSON with its keys sorted at every level and its numbers as
// they were written.
func (s *Spec) Section() []byte {
	put := func(dst []byte, name string, value []byte) []byte {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = append(strictjson.AppendString(dst, name), ':')
		return appendSorted(dst, value)
	}
	text := []byte{'{'}
	for _, name := range []string{"actions", "baselineEpsilon", "bits", "exploration", "mode", "rewards", "seed"} {
		value := memberOf(s.Text, name)
		if name == "bits" {
			value = memberOf(memberOf(s.Text, "learner"), "bits")
		}
		if value != nil {
			text = put(text, name, value)
		}
	}
	return append(put(text, "version", []byte("1")), '}')
}

// appendSorted appends validated JSON with the members of every object in the order of their names.
func appendSorted(dst, text []byte) []byte {
	switch strictjson.KindOf(text) {
	case strictjson.Object:
		list := members(text)
		slices.SortFunc(list, func(a, b member) int { return strings.Compare(a.name, b.name) })
		dst = append(dst, '{')
		for i, m := range list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(dst, m.raw...), ':')
			dst = appendSorted(dst, m.value)
		}
		return append(dst, '}')
	case strictjson.Array:
		c := strictjson.Walk(text)
		dst = append(dst, '[')
		for i := 0; i == 0 && c.Enter() || i > 0; i++ {
			if !c.More() {
				break
			}
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendSorted(dst, c.Skip())
		}
		return append(dst, ']')
	}
	return append(dst, text...)
}

// ModelTag names a publication: the first 16 hex digits of the SHA-256 of the section's text, a zero byte, and the last 32
// bytes of the snapshot, which are its own checksum.
func ModelTag(section, snapshot []byte) string {
	h := sha256.New()
	h.Write(section)
	h.Write([]byte{0})
	h.Write(snapshot[max(0, len(snapshot)-sha256.Size):])
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Model describes the model in force.
func (c *Capsule) Model(context.Context) (ModelInfo, error) {
	if c.isGone() {
		return ModelInfo{}, c.missing()
	}
	return c.modelInfo(), nil
}

func (c *Capsule) modelInfo() ModelInfo {
	c.apply.Lock()
	defer c.apply.Unlock()
	e := c.engine.Load()
	info := ModelInfo{Spec: e.spec.Text, Version: e.model.Updates(), Watermark: c.appliedSeq}
	if e.program != nil {
		info.Program = e.program.SHA256
	}
	return info
}

// Published returns the newest publication, with what it was made from. A changed section is published at once, a model
// that has learned once a second at most.
func (c *Capsule) Published(ctx context.Context) (Publication, ModelInfo, error) {
	if c.isGone() {
		return Publication{}, ModelInfo{}, c.missing()
	}
	c.admin.RLock() // spec and model belong together; before the publisher's lock, as in Upload
	defer c.admin.RUnlock()
	p := &c.publisher
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx, c); err != nil {
		return Publication{}, ModelInfo{}, err
	}
	info := c.modelInfo()
	spec := c.engine.Load().spec
	section := spec.Section()
	same := p.newest.Tag != "" && string(section) == string(p.newest.Section)
	age := c.service.nowMS() - p.newest.TimeMS
	recent := age >= 0 && age < publishEvery.Milliseconds() // one from the future, after the clock went back, is not
	if !same || info.Version != p.newest.Version && !recent {
		if err := p.publish(ctx, c); err != nil {
			return Publication{}, ModelInfo{}, err
		}
	}
	info.Version, info.Watermark = p.newest.Version, p.newest.Seq
	return p.newest, info, nil
}

// load looks the newest publication up once.
func (p *publisher) load(ctx context.Context, c *Capsule) error {
	if p.loaded {
		return nil
	}
	err := c.service.storage.Read(ctx, func(v View) error {
		list, err := v.Publications(c.key)
		if err != nil || len(list) == 0 {
			return err
		}
		p.newest, err = v.Publication(c.key, list[0].Tag)
		return err
	})
	p.loaded = err == nil
	return err
}

// publish stores the section and the model of one moment as the newest publication. The caller holds admin for reading.
func (p *publisher) publish(ctx context.Context, c *Capsule) error {
	spec, snapshot := c.engine.Load().spec, c.capture()
	next := Publication{Capsule: c.key, Section: spec.Section(), Version: snapshot.Version, Seq: snapshot.Seq,
		TimeMS: snapshot.TimeMS, Bytes: snapshot.Bytes}
	next.Tag = ModelTag(next.Section, next.Bytes)
	if next.Tag == p.newest.Tag {
		return nil
	}
	err := c.service.storage.Write(context.WithoutCancel(ctx), Write{Change: func(tx Tx) error {
		if _, err := c.own(tx); err != nil {
			return err
		}
		return tx.SavePublication(next, keepPublications)
	}})
	if err == nil {
		p.newest = next
	}
	return err
}

// policyOf returns the policy of a kept publication; nil when the tag names none, with retired saying whether it may have
// named one that is no longer kept.
func (p *publisher) policyOf(ctx context.Context, c *Capsule, tag string) (e *Policy, retired bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.warm {
		if e.Tag() == tag {
			return e, false, nil
		}
	}
	var found Publication
	err = c.service.storage.Read(ctx, func(v View) (err error) {
		if found, err = v.Publication(c.key, tag); err == nil || fault.KindOf(err) != fault.NotFound {
			return err
		}
		list, err := v.Publications(c.key)
		retired = len(list) >= keepPublications && isTag(tag)
		return err
	})
	if err != nil || found.Tag == "" {
		return nil, retired, err
	}
	if e, err = OpenPolicy(found.Section, found.Bytes); err != nil {
		return nil, false, err
	}
	p.warm = slices.Insert(p.warm, 0, e)
	p.warm = p.warm[:min(len(p.warm), warmPublications)]
	return e, false, nil
}

// isTag reports whether tag has the form of one.
func isTag(tag string) bool {
	raw, err := hex.DecodeString(tag)
	return err == nil && len(raw) == 8 && strings.ToLower(tag) == tag
}
