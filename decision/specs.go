package decision

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"

	"holdfast/fault"
)

// Replace says what a spec is patched onto.
type Replace bool

// The ways to put a spec.
const (
	Merge      Replace = false // onto the stored spec, the defaults when there is none
	ReplaceAll Replace = true  // onto the defaults
)

// specEvent is the detail of an audit event about a spec.
type specEvent struct {
	Patch  jsontext.Value `json:"patch"`
	SHA256 string         `json:"specSha256"`
	File   string         `json:"file,omitzero"`
	Gates  []string       `json:"gates,omitzero"` // of a promotion
	Error  string         `json:"error,omitzero"` // why a promotion was refused
}

// row makes the audit event of a change to spec.
func (e specEvent) row(event string, spec *Spec) (AuditRow, error) {
	sum := sha256.Sum256(spec.Text)
	e.SHA256, e.Patch = hex.EncodeToString(sum[:]), e.Patch.Clone()
	if err := e.Patch.Compact(); err != nil {
		return AuditRow{}, err
	}
	detail, err := json.Marshal(e)
	return AuditRow{Event: event, Detail: detail}, err
}

// CheckSpec says what is wrong with a spec, nil when it may be stored.
func (s *Service) CheckSpec(spec []byte) error {
	_, err := ParseSpec(spec)
	return err
}

// PutSpec applies a merge patch to a capsule's spec and returns the whole of it. A capsule that does not exist is made from
// the defaults; then created is true. A patch that changes nothing writes nothing.
func (s *Service) PutSpec(ctx context.Context, id CapsuleID, patch []byte, replace Replace) (spec []byte, created bool, err error) {
	p := specChange{id: id, patch: patch, event: specEvent{Patch: patch}, name: "spec_updated", onto: onStored}
	if replace {
		p.name, p.onto = "spec_replaced", onDefaults
	}
	next, outcome, err := s.changeSpec(ctx, p)
	if err != nil {
		return nil, false, err
	}
	return next.Text, outcome == specCreated, nil
}

// SetMode patches the mode and the baseline's exploration, and refuses anything else. The capsule must exist.
func (s *Service) SetMode(ctx context.Context, id CapsuleID, patch []byte) (spec []byte, err error) {
	if _, err := MergePatch([]byte("{}"), patch); err != nil {
		return nil, patchFault(err)
	}
	for _, m := range members(patch) {
		if m.name != "mode" && m.name != "baselineEpsilon" {
			return nil, invalidSpec("unknown field `%s`", m.name)
		}
	}
	next, _, err := s.changeSpec(ctx, specChange{id: id, patch: patch, event: specEvent{Patch: patch}, name: "mode_changed", onto: onExisting})
	if err != nil {
		return nil, err
	}
	return next.Text, nil
}

// ApplySpecFile makes spec, as a file holds it, the capsule's spec and reports whether that changed anything.
func (s *Service) ApplySpecFile(ctx context.Context, id CapsuleID, spec []byte, file string) (changed bool, err error) {
	_, outcome, err := s.changeSpec(ctx, specChange{
		id: id, patch: spec, event: specEvent{Patch: spec, File: file}, name: "spec_applied", onto: onDefaults,
	})
	return err == nil && outcome != specSame, err
}

// base says what a patch is applied to.
type base uint8

const (
	onStored   base = iota // the stored spec; the defaults for a new capsule
	onDefaults             // always the defaults
	onExisting             // the stored spec, which must be there
)

// specChange is one request to change a spec.
type specChange struct {
	id    CapsuleID
	patch []byte
	event specEvent
	name  string // of the audit event
	onto  base
	// expect is the text of the spec that the change was judged against: Conflict when another is in force. Nil for any.
	expect []byte
}

// specOutcome says what became of it.
type specOutcome uint8

const (
	specSame specOutcome = iota
	specChanged
	specCreated
)

// changeSpec works a change out and makes it take effect. Whoever creates or deletes the capsule meanwhile makes it start
// again.
func (s *Service) changeSpec(ctx context.Context, p specChange) (*Spec, specOutcome, error) {
	if err := checkID(p.id); err != nil {
		return nil, specSame, err
	}
	for {
		c, err := s.Capsule(ctx, p.id)
		switch kind := fault.KindOf(err); {
		case err == nil:
			next, outcome, err := c.changeSpec(ctx, p)
			if err != nil && fault.KindOf(err) == fault.NotFound && p.onto != onExisting {
				continue // deleted meanwhile
			}
			return next, outcome, err
		case kind == fault.NotFound && p.onto != onExisting:
			next, err := s.createFrom(ctx, p)
			if err != nil && fault.KindOf(err) == fault.Conflict {
				continue // made meanwhile
			}
			return next, specCreated, err
		case kind == fault.Internal && p.onto == onDefaults:
			return s.repair(ctx, p)
		default:
			return nil, specSame, err
		}
	}
}

// createFrom makes the capsule with the patched defaults.
func (s *Service) createFrom(ctx context.Context, p specChange) (*Spec, error) {
	next, err := patched(Defaults(), p.patch)
	if err != nil {
		return nil, err
	}
	audit, err := p.event.row("capsule_created", next)
	if err != nil {
		return nil, err
	}
	return next, s.create(ctx, p.id, reform{spec: next}, audit)
}

// changeSpec patches the spec in force. One change of a capsule's spec works itself out at a time, so that none is lost.
func (c *Capsule) changeSpec(ctx context.Context, p specChange) (*Spec, specOutcome, error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	e := c.engine.Load()
	text := e.spec.Text
	if p.expect != nil && !bytes.Equal(p.expect, text) {
		return nil, specSame, fault.New("decision.Promote", fault.Conflict, "the spec was changed while the candidate was evaluated")
	}
	if p.onto == onDefaults {
		text = Defaults()
	}
	next, err := patched(text, p.patch)
	if err != nil {
		return nil, specSame, err
	}
	if bytes.Equal(next.Text, e.spec.Text) {
		return e.spec, specSame, nil
	}
	audit, err := p.event.row(p.name, next)
	if err != nil {
		return nil, specSame, err
	}
	change := reform{spec: next, audit: audit}
	if err := change.keepProgram(ctx, c); err != nil {
		return nil, specSame, err
	}
	return next, specChanged, c.reform(ctx, change)
}

// keepProgram takes the installed graph over. The caller holds changing.
func (r *reform) keepProgram(ctx context.Context, c *Capsule) error {
	if c.engine.Load().graph == nil {
		return nil
	}
	return c.service.storage.Read(ctx, func(v View) error {
		row, err := v.Capsule(c.id)
		r.program, r.installedMS = row.Program, row.InstalledMS
		return err
	})
}

// repair replaces the stored spec of a capsule that cannot be loaded, which is how one that no longer parses comes back.
func (s *Service) repair(ctx context.Context, p specChange) (*Spec, specOutcome, error) {
	next, err := patched(Defaults(), p.patch)
	if err != nil {
		return nil, specSame, err
	}
	audit, err := p.event.row(p.name, next)
	if err != nil {
		return nil, specSame, err
	}
	audit.TimeMS = s.nowMS()
	err = s.storage.Write(context.WithoutCancel(ctx), Write{Change: func(tx Tx) error {
		row, err := tx.Capsule(p.id)
		if err != nil {
			return err
		}
		row.Spec = next.Text
		s.seedChange(&row, nil, next)
		if err := tx.SaveCapsule(row); err != nil {
			return err
		}
		return tx.AppendAudit(p.id, audit)
	}})
	if err != nil {
		return nil, specSame, err
	}
	s.sweepBy(p.id, next)
	_, err = s.Capsule(ctx, p.id) // the spec was what kept it from loading, or something else still does
	return next, specChanged, err
}

// patched applies a patch and checks the result.
func patched(text, patch []byte) (*Spec, error) {
	merged, err := MergePatch(text, patch)
	if err != nil {
		return nil, patchFault(err)
	}
	return ParseSpec(merged)
}

// patchFault words what is wrong with a patch as what is wrong with a spec.
func patchFault(err error) error {
	f, _ := errors.AsType[*fault.Error](err)
	return invalidSpec("%s", f.Message())
}

// checkID refuses names that nothing can have.
func checkID(id CapsuleID) error {
	if !ValidName(id.Tenant) || !ValidName(id.Job) || !ValidName(id.Capsule) {
		return fault.New("decision.checkID", fault.Invalid, "bad name: a tenant, a job and a capsule have 1 to %d of "+
			"A-Z a-z 0-9 _ - and . where the first is not a dot", MaxName)
	}
	return nil
}
