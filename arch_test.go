// Package arch holds the structure of the repository to its rules: which folder may import which, where HTTP and SQL live,
// how long files and functions may be, and which modules are linked. It has no code of its own.
package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "holdfast"

// The sizes at which a reader loses the thread.
const (
	maxFileLines      = 800
	maxFunctionLines  = 80
	maxInterface      = 5
	maxParameters     = 5 // four and a context or testing.TB
	commentMinLetters = 60
)

// rows gives each top-level folder its row; imports point down. "free" pairs are the neighbours that may meet.
var rows = map[string]int{
	"fault": 0, "ident": 0, "internal": 0,
	"decision": 1, "gateway": 1, "space": 1, "router": 1, "decoy": 1, "admission": 1,
	"server": 2, "wire": 2, "lure": 2, "console": 2, "lab": 2, "store": 2, "local": 2, "docs": 2,
	"cmd": 3,
}

// free reports whether two packages of one row may meet all the same.
func free(from, to string) bool {
	switch {
	case top(from) == "wire":
		return to == "wire/reply"
	case top(from) == "store":
		return to == "store" || from == "store/storetest" && top(to) == "store"
	case top(from) == "lure":
		return to == "lure/shell" || to == "lure/persona"
	case top(from) == "lab":
		return top(to) == "lab"
	}
	return false
}

// homes says which folders may import what is not for everybody.
var homes = map[string][]string{
	"net/http":                                {"server", "wire", "console", "lab", "lure", "local", "cmd"},
	"database/sql":                            {"store"},
	"github.com/ncruces/go-sqlite3":           {"store"},
	"github.com/spf13/cobra":                  {"cmd"},
	"github.com/pelletier/go-toml/v2":         {"cmd"},
	"go.opentelemetry.io/otel":                {"server"},
	"github.com/pressly/goose/v3":             {"store"},
	"charm.land/bubbletea/v2":                 {"lab", "cmd"},
	"charm.land/lipgloss/v2":                  {"lab", "cmd"},
	"github.com/chromedp/chromedp":            {"console", "cmd"},
	"github.com/HdrHistogram/hdrhistogram-go": {"lab"},
}

type source struct {
	pkg, file string // folder and path, both slash separated from the root
	test      bool
	ast       *ast.File
	lines     int
}

func top(pkg string) string {
	first, _, _ := strings.Cut(pkg, "/")
	return first
}

// load parses every Go file of the repository.
func load(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	fset := token.NewFileSet()
	var all []source
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		slash := filepath.ToSlash(name)
		all = append(all, source{
			pkg: path.Dir(slash), file: slash, ast: tree,
			test: strings.HasSuffix(name, "_test.go"), lines: strings.Count(string(text), "\n"),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("only %d Go files found: is the test run from the root?", len(all))
	}
	return fset, all
}

func TestImportsPointDown(t *testing.T) {
	_, all := load(t)
	for _, s := range all {
		if s.pkg == "." || s.test {
			continue // a test may set the real parts of any row together
		}
		row, known := rows[top(s.pkg)]
		if !known {
			t.Errorf("%s: folder %s has no row", s.file, top(s.pkg))
			continue
		}
		for _, imp := range s.ast.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			to, own := strings.CutPrefix(name, module+"/")
			if !own {
				if row == 0 && strings.Contains(strings.Split(name, "/")[0], ".") {
					t.Errorf("%s: row 0 uses the standard library only, not %s", s.file, name)
				}
				continue
			}
			if rows[top(to)] < row || rows[top(to)] == row && free(s.pkg, to) {
				continue
			}
			t.Errorf("%s: imports %s, which is not below it", s.file, to)
		}
	}
}

func TestHomesOfImports(t *testing.T) {
	_, all := load(t)
	for _, s := range all {
		if s.test {
			continue
		}
		for _, imp := range s.ast.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			for what, where := range homes {
				if (name == what || strings.HasPrefix(name, what+"/")) && !slices.Contains(where, top(s.pkg)) {
					t.Errorf("%s: %s belongs in %v", s.file, name, where)
				}
			}
		}
	}
}

func TestPackagesSayWhatTheyAreFor(t *testing.T) {
	_, all := load(t)
	comment := map[string]int{}
	for _, s := range all {
		if s.test {
			continue
		}
		comment[s.pkg] = max(comment[s.pkg], 0)
		if s.ast.Doc != nil {
			comment[s.pkg] = max(comment[s.pkg], len(s.ast.Doc.Text()))
		}
		if banned := []string{"util", "utils", "common", "helpers", "base", "types"}; slices.Contains(banned, s.ast.Name.Name) {
			t.Errorf("%s: a package named %s says nothing", s.file, s.ast.Name.Name)
		}
	}
	for pkg, letters := range comment {
		if letters < commentMinLetters {
			t.Errorf("%s: the package comment has %d characters; say what it is for and what it refuses", pkg, letters)
		}
	}
}

func TestSizes(t *testing.T) {
	fset, all := load(t)
	for _, s := range all {
		if s.lines > maxFileLines {
			t.Errorf("%s: %d lines, at most %d", s.file, s.lines, maxFileLines)
		}
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || s.test {
				continue
			}
			if n := fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1; n > maxFunctionLines {
				t.Errorf("%s: %s has %d lines, at most %d", s.file, f.Name.Name, n, maxFunctionLines)
			}
			if n := f.Type.Params.NumFields(); n > maxParameters {
				t.Errorf("%s: %s takes %d parameters; make a struct", s.file, f.Name.Name, n)
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok && i.Methods.NumFields() > maxInterface {
				t.Errorf("%s:%d: an interface of %d methods, at most %d", s.file, fset.Position(i.Pos()).Line,
					i.Methods.NumFields(), maxInterface)
			}
			return true
		})
	}
}

func TestOnlyMainExitsAndNothingStartsByItself(t *testing.T) {
	fset, all := load(t)
	for _, s := range all {
		fake := slices.ContainsFunc(s.ast.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` })
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "init" && f.Recv == nil {
				t.Errorf("%s: wiring by init", s.file)
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			where := fset.Position(call.Pos())
			switch name := pkg.Name + "." + sel.Sel.Name; {
			case name == "os.Exit" && !s.test && s.file != "cmd/holdfast/main.go",
				strings.HasPrefix(name, "log.Fatal"):
				t.Errorf("%s: only main exits, not %s", where, name)
			case name == "time.Sleep" && s.test && !fake: // in a bubble of synctest no time passes
				t.Errorf("%s: a test that sleeps", where)
			}
			return true
		})
	}
}

// TestLinkedModules holds deps.txt to what is really linked into the binary.
func TestLinkedModules(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}",
		"./cmd/holdfast").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := uniqueLines(string(out))
	listed, err := os.ReadFile("deps.txt")
	if err != nil {
		t.Fatal(err)
	}
	if want := uniqueLines(string(listed)); !slices.Equal(linked, want) {
		t.Errorf("deps.txt differs from what is linked; if the change is meant, it should read:\n%s", strings.Join(linked, "\n"))
	}
	direct(t)
}

// direct checks that every module required by hand has a line in docs/decisions that says what it saves.
func direct(t *testing.T) {
	t.Helper()
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("docs/decisions/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no page in docs/decisions (%v)", err)
	}
	var said strings.Builder
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		said.Write(text)
	}
	for line := range strings.Lines(string(mod)) {
		f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(f) != 2 || !strings.HasPrefix(f[1], "v") {
			continue // not a requirement, or an indirect one
		}
		if !strings.Contains(said.String(), "`"+f[0]+"`") {
			t.Errorf("docs/decisions does not say what %s saves us", f[0])
		}
	}
}

func uniqueLines(text string) []string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	return slices.Compact(lines)
}

func TestNothingLeftOpen(t *testing.T) {
	fset, all := load(t)
	marks := []string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"}
	for _, s := range all {
		for _, group := range s.ast.Comments {
			for _, mark := range marks {
				if strings.Contains(group.Text(), mark) {
					t.Errorf("%s: %s", fset.Position(group.Pos()), mark)
				}
			}
		}
	}
}
