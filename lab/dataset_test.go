package lab

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/fault"
)

func TestDatasets(t *testing.T) {
	t.Parallel()
	d, err := parseDataset("x.csv", strings.NewReader("\ufeffsize,colour,label,\"the \"\"note\"\"\"\n1.50,red,10,a\n+2,blue,9,\n\n1e3,\"a,b\",10,ü\n"), "label")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"size":1.5,"colour":"red","the \"note\"":"a"}`, `{"size":2,"colour":"blue"}`, `{"size":1000,"colour":"a,b","the \"note\"":"ü"}`}
	for i, c := range d.contexts {
		if string(c) != want[i] {
			t.Errorf("row %d: %s, want %s", i+1, c, want[i])
		}
	}
	if !slices.Equal(d.labels, []string{"9", "10"}) || !slices.Equal(d.right, []int{1, 0, 1}) {
		t.Errorf("labels %q, right %v; want 9 before 10 and rows 1 0 1", d.labels, d.right)
	}
	d, err = parseDataset("x.csv", strings.NewReader("a,l\n1,b10\n1,b9\n"), "l")
	if err != nil || !slices.Equal(d.labels, []string{"b10", "b9"}) {
		t.Errorf("words sort as text: %v, %v", d, err)
	}
}

func TestBadDataNamesTheRowAndTheColumn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, want string }{
		{"empty", "", "is empty"},
		{"header only", "a,label\n", "has a header and no rows"},
		{"no such label", "a,b\n1,2\n", `has no column "label"; it has a, b`},
		{"twice the same column", "a,a,label\n1,2,3\n", `two columns are called "a"`},
		{"too few values", "a,b,label\n1,2,x\n1,2\n", `line 3 has 2 values, the header names 3 columns; the last column it has is "b"`},
		{"too many values", "a,label\n1,x\n1,y,z\n", "line 3 has 3 values, the header names 2 columns"},
		{"a word among numbers", "a,b,label\n1,2,x\n\n1,two,y\n", `line 4, column "b": the value "two" is not a number`},
		{"not a number", "a,label\nNaN,x\n", `line 2, column "a": the value "NaN" is not a number of 32 bits`},
		{"too large a number", "a,label\n1,x\n1e39,x\n", `line 3, column "a"`},
		{"no label", "a,label\n1,x\n2, \n", `line 3, column "label": the value is no label`},
		{"one label", "a,label\n1,x\n2,x\n", `every row has the label "x"`},
		{"a stray quote", "a,label\n1,x\n\"1,y\n", "is not CSV"},
		{"not UTF-8", "a,label\nx,y\n\xff,z\n", `line 3, column "a": the value is not UTF-8`},
	} {
		_, err := parseDataset("x.csv", strings.NewReader(tc.text), "label")
		if err == nil || !strings.Contains(err.Error(), tc.want) || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v, want one that says %q", tc.name, err, tc.want)
		}
	}
}

func TestCompressedDatasets(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte("a,l\n1,x\n2,y\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "d.csv.gz")
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := readDataset(path, "l"); err != nil || len(d.contexts) != 2 {
		t.Errorf("%v, %v", d, err)
	}
	if err := os.WriteFile(path, packed.Bytes()[:packed.Len()-9], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readDataset(path, "l"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a cut file: %v", err)
	}
	if _, err := readDataset(path+".missing", "l"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a missing file: %v", err)
	}
}

func FuzzDataset(f *testing.F) {
	f.Add("a,label\n1,x\n2,y\n")
	f.Add("a,label\n\"1\n\",x\n,y\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDataset("x.csv", strings.NewReader(text), "label")
		if err == nil && (len(d.contexts) != len(d.right) || len(d.labels) < 2) {
			t.Errorf("accepted %+v", d)
		}
	})
}
