package main

import (
	"path/filepath"
	"testing"

	"holdfast/wire/wiretest"
)

// TestTranscripts plays every transcript of the decision API against a fresh store.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/decision/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d transcripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r := newRig(t)
			wiretest.Run(t, file, wiretest.Options{
				Handler: r.handler, Keys: r.keys,
				Headers: []string{"Content-Type", "Deprecation", "Link", "Etag", "Retry-After", "Allow"},
			})
		})
	}
}
