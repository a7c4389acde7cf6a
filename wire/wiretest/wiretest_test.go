package wiretest

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// echo answers with what it was asked, an id of its own, a time and a hash.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Told", r.Header.Get("Authorization"))
	w.Header().Set("X-Untold", "secret")
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, "%s %s %s dec_0123456789abcdef0123456 1790000000123 %s", r.Method, r.URL.Path, body, strings.Repeat("ab", 32))
}

const script = `# What the caller sends comes back.
POST /a
As: me

{"x":1}
----
202
X-Told: Bearer key

POST /a {"x":1} <id 1> <ms> <hash 1>
====
GET /<id 1>
----
202
X-Told: 

GET /<id 1>  <id 1> <ms> <hash 1>
====
`

// failures is a testing.TB that counts what it is told instead of failing.
type failures struct {
	testing.TB
	told []string
}

func (f *failures) Helper() {}
func (f *failures) Errorf(format string, args ...any) {
	f.told = append(f.told, fmt.Sprintf(format, args...))
}

func TestRun(t *testing.T) {
	o := Options{Handler: http.HandlerFunc(echo), Keys: map[string]string{"me": "key"}, Headers: []string{"X-Told"}}
	file := filepath.Join(t.TempDir(), "t.txt")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(script)
	Run(t, file, o)
	for _, change := range [][2]string{{"202", "201"}, {"<ms>", "1790000000123"}, {"<id 1> <ms>", "<id 2> <ms>"}, {"X-Told: Bearer key\n", ""}} {
		write(strings.Replace(script, change[0], change[1], 1))
		f := &failures{TB: t}
		Run(f, file, o)
		if len(f.told) != 1 {
			t.Errorf("%v: %d complaints, want 1: %v", change, len(f.told), f.told)
		}
	}
}
