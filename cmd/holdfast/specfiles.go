package main

import (
	"cmp"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/wire/decisionapi"
)

// maxSpecFile bounds one file of specs, in bytes.
const maxSpecFile = 8 << 20

// specFile is one document of a file in --specs.
type specFile struct {
	file string // base name, for the audit trail
	id   decision.CapsuleID
	spec []byte
}

// readSpecs reads and checks every .yaml, .yml and .json of a folder, in the order of their names. One that is wrong fails
// the whole, before anything is applied.
func readSpecs(folder string) ([]specFile, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("--specs: %w", err)
	}
	var all []specFile
	from := map[decision.CapsuleID]string{}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); e.IsDir() || ext != ".yaml" && ext != ".yml" && ext != ".json" {
			continue
		}
		list, err := readSpecFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("--specs: %s: %w", e.Name(), err)
		}
		for _, s := range list {
			if other, twice := from[s.id]; twice {
				return nil, fmt.Errorf("--specs: %s: capsule %s stands in %s already", e.Name(), s.id, other)
			}
			from[s.id] = e.Name()
		}
		all = append(all, list...)
	}
	return all, nil
}

func readSpecFile(name string) ([]specFile, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSpecFile {
		return nil, fmt.Errorf("larger than %d bytes", maxSpecFile)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	documents, err := decisionapi.Documents(text)
	if err != nil {
		return nil, told(err)
	}
	var list []specFile
	for i, document := range documents {
		s, err := parseSpecFile(document)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		s.file = filepath.Base(name)
		list = append(list, s)
	}
	return list, nil
}

func parseSpecFile(document []byte) (specFile, error) {
	var w struct {
		Tenant  string         `json:"tenant"`
		Job     string         `json:"job"`
		Capsule string         `json:"capsule"`
		Spec    jsontext.Value `json:"spec"`
	}
	if err := json.Unmarshal(document, &w, json.RejectUnknownMembers(true)); err != nil {
		return specFile{}, err
	}
	id := decision.CapsuleID{Tenant: w.Tenant, Job: w.Job, Capsule: w.Capsule}
	for _, name := range []string{w.Tenant, w.Job, w.Capsule} {
		if !decision.ValidName(name) {
			return specFile{}, fmt.Errorf("tenant, job and capsule must be names of 1 to %d of A-Z a-z 0-9 _ - ., not %q", decision.MaxName, name)
		}
	}
	if len(w.Spec) == 0 {
		return specFile{}, fmt.Errorf("capsule %s has no spec", id)
	}
	if _, err := decision.ParseSpec(w.Spec); err != nil {
		return specFile{}, fmt.Errorf("capsule %s: %w", id, told(err))
	}
	return specFile{id: id, spec: w.Spec}, nil
}

// told reduces a fault to what it tells its caller.
func told(err error) error { return fmt.Errorf("%s", fault.MessageOf(err)) }

// applySpecs makes the stored specs those of the files. The files win over whatever was changed through the API.
func applySpecs(ctx context.Context, s *decision.Service, specs []specFile, log *slog.Logger) error {
	slices.SortStableFunc(specs, func(a, b specFile) int { return cmp.Compare(a.file, b.file) })
	for _, f := range specs {
		changed, err := s.ApplySpecFile(ctx, f.id, f.spec, f.file)
		if err != nil {
			return fmt.Errorf("--specs: %s: capsule %s: %w", f.file, f.id, err)
		}
		if changed {
			log.Info("a spec was applied from its file", "file", f.file, "capsule", f.id.String())
		}
	}
	return nil
}
