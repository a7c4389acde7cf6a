package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"holdfast/fault"
)

// maxFindings bounds what is told about one database.
const maxFindings = 100

// Report is what a check found.
type Report struct {
	Files    []CheckedFile
	Findings []Finding // empty when the store is sound
}

// CheckedFile is one database that was looked at.
type CheckedFile struct {
	Name   string
	Bytes  int64 // the database file, without its log
	Schema int64 // the newest migration that was applied
}

// Finding is one thing that is wrong.
type Finding struct {
	File string
	What string
}

// Check looks at every database of the store in the folder path without changing anything, also while it is served:
// structure, indexes, foreign keys, format and who may read it. It returns fault.NotFound when there is no store.
func Check(ctx context.Context, path string) (r Report, err error) {
	names, err := Databases(path)
	if err != nil {
		return r, err
	}
	if len(names) == 0 {
		return r, fault.New("store.Check", fault.NotFound, "there is no store at %s", path)
	}
	r.checkModes(path)
	for _, name := range names {
		if err := r.checkFile(ctx, path, name); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *Report) add(file, what string) {
	r.Findings = append(r.Findings, Finding{File: file, What: what})
}

func (r *Report) checkModes(path string) {
	for _, name := range append(secrets(), ".") {
		info, err := os.Stat(filepath.Join(path, name))
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			r.add(name, fmt.Sprintf("other users can use it (mode %04o)", info.Mode().Perm()))
		}
	}
}

func (r *Report) checkFile(ctx context.Context, path, name string) error {
	full := filepath.Join(path, name)
	file := CheckedFile{Name: name}
	if info, err := os.Stat(full); err == nil {
		file.Bytes = info.Size()
	}
	findings, err := checkDatabase(ctx, full, modeInspect)
	if err != nil {
		if ctx.Err() != nil {
			return fault.Wrap("store.Check", fault.Unavailable, ctx.Err(), "the check was given up")
		}
		findings = []string{err.Error()}
	} else if file.Schema, err = inspectSchema(ctx, full); err != nil {
		findings = append(findings, err.Error())
	}
	for _, what := range findings {
		r.add(name, what)
	}
	r.Files = append(r.Files, file)
	return nil
}

// checkDatabase returns what SQLite itself finds wrong with the file.
func checkDatabase(ctx context.Context, name string, mode connMode) (findings []string, err error) {
	if _, err := headerFormat(name); err != nil {
		return []string{err.Error()}, nil
	}
	c, err := openConn(ctx, name, connOptions{mode: mode})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	err = c.snapshot(ctx, func(snap *Snapshot) error {
		rows := snap.Query("PRAGMA integrity_check(100)")
		for rows.Next() {
			if text := rows.TextAt(0); text != "ok" {
				findings = append(findings, text)
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		rows = snap.Query("PRAGMA foreign_key_check")
		for rows.Next() && len(findings) < maxFindings {
			findings = append(findings, fmt.Sprintf("row %d of %s names a missing row of %s", rows.IntAt(1), rows.TextAt(0), rows.TextAt(2)))
		}
		return errors.Join(rows.Err(), rows.Close())
	})
	return findings, err
}

func inspectSchema(ctx context.Context, name string) (version int64, err error) {
	c, err := openConn(ctx, name, connOptions{mode: modeInspect})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := refuseNewer(c, nil); err != nil {
		return 0, err
	}
	return schemaVersion(c)
}
