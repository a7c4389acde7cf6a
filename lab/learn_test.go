package lab

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/fault"
)

// colours is a table whose label a table lookup learns in at most three rounds per row.
func colours(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "colours.csv")
	if err := os.WriteFile(path, []byte("r,g,b,label\n255,0,0,red\n0,255,0,green\n0,0,255,blue\n250,5,5,red\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// running starts a fake server in this process.
func running(t *testing.T, mode string) (*fake, string) {
	t.Helper()
	f := newFake(mode, "operator")
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, server.URL
}

func TestLearnReachesARunningServer(t *testing.T) {
	t.Parallel()
	f, url := running(t, "fair")
	o := options(t, "fair")
	err := Learn(t.Context(), o, LearnOptions{Data: colours(t), Label: "label", Rounds: 100, Seed: 18446744073709551615, URL: url + "/",
		Key: "operator", Capsule: "shop/web/colours", Spec: `{"exploration":{"floor":0.02}}`})
	if err != nil {
		t.Fatal(err)
	}
	// Each row tries blue, green and red in turn until one is rewarded: blue 0 wrong, green 1, red 2 for each of two rows.
	if out := printed(t, o); !strings.Contains(out, "Right answers: 0.950 overall, 1.000 in the last tenth; guessing gives 0.333.") {
		t.Errorf("unexpected shares:\n%s", out)
	}
	want := []string{`{"seed":18446744073709551615,"actions":[{"id":"blue"},{"id":"green"},{"id":"red"}]}`, `{"exploration":{"floor":0.02}}`}
	if strings.Join(f.patches, "\n") != strings.Join(want, "\n") {
		t.Errorf("spec patches %q, want %q", f.patches, want)
	}
	if n := f.version["/v1/tenants/shop/jobs/web/capsules/colours"]; n != 100 {
		t.Errorf("%d rewards arrived, want one per round", n)
	}
	err = Learn(t.Context(), options(t, "fair"), LearnOptions{Data: colours(t), Label: "label", Rounds: 10, URL: url, Key: "operator", Capsule: "shop/web/colours"})
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("a second run on a trained capsule: %v, want a refusal", err)
	}
}

func TestLearnOnAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	o := options(t, "fair")
	if err := Learn(t.Context(), o, LearnOptions{Data: colours(t), Label: "label", Rounds: 40, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	if out := printed(t, o); !strings.Contains(out, "1.000 in the last tenth") {
		t.Errorf("unexpected result:\n%s", out)
	}
}

func TestLearnStopsWithAReason(t *testing.T) {
	t.Parallel()
	_, fair := running(t, "fair")
	_, frozen := running(t, "frozen")
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	t.Cleanup(broken.Close)
	for _, tc := range []struct {
		name string
		plan LearnOptions
		want string
	}{
		{"wrong key", LearnOptions{URL: fair, Key: "guess"}, "unauthorized"},
		{"not a URL", LearnOptions{URL: "127.0.0.1:1"}, "it looks like http://127.0.0.1:8787"},
		{"bad capsule", LearnOptions{URL: fair, Key: "operator", Capsule: "a/b"}, "write tenant/job/capsule"},
		{"a capsule that does not learn", LearnOptions{URL: frozen, Key: "operator"}, "is the capsule frozen?"},
		{"a broken server", LearnOptions{URL: broken.URL, Key: "operator"}, "500"},
		{"nobody there", LearnOptions{URL: "http://127.0.0.1:1", Key: "operator"}, "is the server running?"},
	} {
		tc.plan.Data, tc.plan.Label, tc.plan.Rounds = colours(t), "label", 10
		if err := Learn(t.Context(), options(t, "fair"), tc.plan); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want one that says %q", tc.name, err, tc.want)
		}
	}
}
