package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConformanceNamesTestsThatExist holds the pages of docs/conformance to the tests that they name.
func TestConformanceNamesTestsThatExist(t *testing.T) {
	const root = "../.."
	exist := testFunctions(t, root)
	pages, err := filepath.Glob(root + "/docs/conformance/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	name := regexp.MustCompile("`([a-z/]+): (Test\\w+)`")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		named := 0
		for line := range strings.Lines(string(text)) {
			found := name.FindAllStringSubmatch(line, -1)
			if strings.HasPrefix(line, "- ") && len(found) == 0 {
				t.Errorf("%s: no test is named: %s", filepath.Base(page), line)
			}
			for _, m := range found {
				named++
				if !exist[m[1]+": "+m[2]] {
					t.Errorf("%s: there is no %s in %s", filepath.Base(page), m[2], m[1])
				}
			}
		}
		if named == 0 {
			t.Errorf("%s names no test", filepath.Base(page))
		}
	}
}

// testFunctions lists every test function below root as "folder: Name".
func testFunctions(t *testing.T, root string) map[string]bool {
	t.Helper()
	exist := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			exist[filepath.ToSlash(folder)+": "+m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return exist
}
