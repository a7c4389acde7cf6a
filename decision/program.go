package decision

import (
	"bytes"
	"context"
	"encoding/json/v2"

	"holdfast/fault"
)

// Install attaches a graph, given as JSON text, and makes the capsule with the default spec when there is none. The graph
// that is installed already is left as it is.
func (s *Service) Install(ctx context.Context, id CapsuleID, program []byte) (ProgramInfo, error) {
	if err := checkID(id); err != nil {
		return ProgramInfo{}, err
	}
	if _, err := CompileGraph(program); err != nil {
		return ProgramInfo{}, err
	}
	for {
		c, err := s.Capsule(ctx, id)
		if err == nil {
			info, err := c.install(ctx, program)
			if err != nil && fault.KindOf(err) == fault.NotFound {
				continue // deleted meanwhile
			}
			return info, err
		}
		if fault.KindOf(err) != fault.NotFound {
			return ProgramInfo{}, err
		}
		info, err := s.createWith(ctx, id, program)
		if err != nil && fault.KindOf(err) == fault.Conflict {
			continue // made meanwhile
		}
		return info, err
	}
}

// createWith makes a capsule with the default spec and a graph.
func (s *Service) createWith(ctx context.Context, id CapsuleID, program []byte) (ProgramInfo, error) {
	spec, err := ParseSpec(Defaults())
	if err != nil {
		return ProgramInfo{}, err
	}
	created, err := specEvent{Patch: []byte("{}")}.row("capsule_created", spec)
	if err != nil {
		return ProgramInfo{}, err
	}
	info := programInfo(program, s.nowMS())
	installed, err := programEvent("program_installed", info)
	if err != nil {
		return ProgramInfo{}, err
	}
	return *info, s.create(ctx, id, reform{spec: spec, program: program, installedMS: info.InstalledMS}, created, installed)
}

func (c *Capsule) install(ctx context.Context, program []byte) (ProgramInfo, error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	e, info := c.engine.Load(), programInfo(program, c.service.nowMS())
	if e.program != nil && e.program.SHA256 == info.SHA256 {
		return *e.program, nil
	}
	audit, err := programEvent("program_installed", info)
	if err != nil {
		return ProgramInfo{}, err
	}
	return *info, c.reform(ctx, reform{spec: e.spec, program: bytes.Clone(program), installedMS: info.InstalledMS, audit: audit})
}

// RemoveProgram detaches the graph, NotFound when there is none.
func (s *Service) RemoveProgram(ctx context.Context, id CapsuleID) error {
	c, err := s.Capsule(ctx, id)
	if err != nil {
		return err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	e := c.engine.Load()
	if e.program == nil {
		return fault.New("decision.RemoveProgram", fault.NotFound, "capsule %s has no program", id)
	}
	audit, err := programEvent("program_removed", e.program)
	if err != nil {
		return err
	}
	return c.reform(ctx, reform{spec: e.spec, audit: audit})
}

func programEvent(event string, info *ProgramInfo) (AuditRow, error) {
	detail, err := json.Marshal(struct {
		SHA256 string `json:"programSha256"`
		Bytes  int    `json:"programBytes"`
	}{info.SHA256, info.Bytes})
	return AuditRow{Event: event, Detail: detail}, err
}
