// Package wiretest plays transcripts against an HTTP handler: text files in testdata that hold requests and the answers
// they must get. With -update the answers are written anew, to be read in review.
//
// A transcript is a list of exchanges, each ended by a line of equals signs. An exchange is a request (method and path,
// headers, an empty line, body), a line of dashes, and the answer (status, the headers worth telling, an empty line, body).
// Lines that begin with # before a request are comments. The header "As" names one of the caller's credentials. What
// differs from run to run (ids made by the server, times, secrets) is replaced by a name such as <id 1>, by which later
// requests can send it. It refuses to know any dialect and starts no goroutines.
package wiretest

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the answers of transcripts anew")

// Options say against what a transcript is played.
type Options struct {
	Handler http.Handler
	Keys    map[string]string // credentials by the name that "As" gives them
	Headers []string          // canonical names of the answer's headers that are worth telling, when present
}

// Run plays the transcript in file and compares, or with -update rewrites it.
func Run(t testing.TB, file string, o Options) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{options: o, names: map[string]string{}, values: map[string]string{}, counts: map[string]int{}}
	var played strings.Builder
	for i, part := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n====\n") {
		part = strings.TrimSuffix(strings.TrimSuffix(part, "===="), "\n")
		if strings.TrimSpace(part) == "" {
			continue
		}
		request, want, _ := strings.Cut(part, "\n----\n")
		request = strings.TrimSuffix(request, "\n----")
		got, err := p.play(request)
		if err != nil {
			t.Fatalf("%s: exchange %d: %v", file, i+1, err)
		}
		fmt.Fprintf(&played, "%s\n----\n%s\n====\n", request, got)
		if !*update && got != want {
			t.Errorf("%s: exchange %d:\n%s\ngot:\n%s\nwant:\n%s", file, i+1, request, got, want)
		}
	}
	if *update && played.String() != string(text) {
		if err := os.WriteFile(file, []byte(played.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// player remembers the names given to what differs from run to run.
type player struct {
	options       Options
	names, values map[string]string // by value, by name
	counts        map[string]int
}

// play sends one request and returns the answer as a transcript shows it.
func (p *player) play(text string) (string, error) {
	lines := strings.Split(text, "\n")
	for len(lines) > 0 && (strings.HasPrefix(lines[0], "#") || lines[0] == "") {
		lines = lines[1:]
	}
	if len(lines) == 0 {
		return "", fmt.Errorf("no request")
	}
	method, target, ok := strings.Cut(lines[0], " ")
	if !ok {
		return "", fmt.Errorf("%q is not a method and a path", lines[0])
	}
	head, body := lines[1:], ""
	if i := slices.Index(head, ""); i >= 0 {
		head, body = head[:i], strings.Join(head[i+1:], "\n")
	}
	r := httptest.NewRequest(method, p.fill(target), strings.NewReader(p.fill(body)))
	for _, line := range head {
		name, value, ok := strings.Cut(line, ": ")
		switch {
		case !ok:
			return "", fmt.Errorf("%q is not a header", line)
		case name != "As":
			r.Header.Set(name, p.fill(value))
			continue
		}
		key, known := p.options.Keys[value]
		if !known {
			return "", fmt.Errorf("no credential is called %q", value)
		}
		r.Header.Set("Authorization", "Bearer "+key)
	}
	w := httptest.NewRecorder()
	p.options.Handler.ServeHTTP(w, r)
	return p.show(w), nil
}

// show writes an answer with names for what differs.
func (p *player) show(w *httptest.ResponseRecorder) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d", w.Code)
	for _, name := range p.options.Headers {
		for _, value := range w.Header()[name] {
			fmt.Fprintf(&b, "\n%s: %s", name, value)
		}
	}
	if body := bytes.TrimSuffix(w.Body.Bytes(), []byte("\n")); len(body) > 0 {
		fmt.Fprintf(&b, "\n\n%s", body)
	}
	return p.hide(b.String())
}

// unstable is what differs from run to run: ids made by the server, times in seconds and milliseconds, and hashes or
// secrets of 32 bytes.
var unstable = []struct {
	kind    string
	pattern *regexp.Regexp
}{
	{"id", regexp.MustCompile(`\bdec_[0-9a-f]{23}\b`)},
	{"hash", regexp.MustCompile(`\b[0-9a-f]{64}\b`)},
	{"ms", regexp.MustCompile(`\b1[6-9][0-9]{11}\b`)},
	{"s", regexp.MustCompile(`\b1[6-9][0-9]{8}\b`)},
}

// hide replaces what differs by names, the same value by the same name. Times get no number: two may be equal or not.
func (p *player) hide(text string) string {
	for _, u := range unstable {
		text = u.pattern.ReplaceAllStringFunc(text, func(value string) string {
			if u.kind == "ms" || u.kind == "s" {
				return "<" + u.kind + ">"
			}
			name, known := p.names[value]
			if !known {
				p.counts[u.kind]++
				name = fmt.Sprintf("<%s %d>", u.kind, p.counts[u.kind])
				p.names[value], p.values[name] = name, value
			}
			return name
		})
	}
	return text
}

// fill puts values back for names.
func (p *player) fill(text string) string {
	for name, value := range p.values {
		text = strings.ReplaceAll(text, name, value)
	}
	return text
}
