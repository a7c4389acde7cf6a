package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json/v2"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/fault"
)

func example() *Document {
	d := New("A & B <test>", "holdfast lab quick")
	d.When = time.Date(2026, 12, 1, 8, 30, 0, 0, time.UTC)
	d.Machine = "2 CPUs"
	first := Table{Name: "cells", Title: "Cells", Note: "How to read.", Columns: []Column{{Key: "shape", Title: "shape"},
		{Key: "requests", Title: "requests"}, {Key: "p99_ms", Title: "p99 ms", Digits: 2}}}
	first.Add("keepalive", uint64(1234567), 0.456)
	first.Add("<churn>", uint64(8), math.NaN())
	second := Table{Name: "other", Title: "Other", Columns: []Column{{Key: "shape", Title: "shape"}, {Key: "extra", Title: "extra"}}}
	second.Add("x", 3)
	d.Tables = []Table{first, second}
	d.Charts = []Chart{{Title: "Rate & <more>", X: "connections", Y: "req/s", Log2: true, Goal: 5, Series: []Series{
		{Name: "a<b", Points: []Point{{X: 1, Y: 10}, {X: 2, Y: 20, Lower: 15, Upper: 25}, {X: 64, Y: math.NaN()}}}}}}
	d.Find(Met, "fine %d", 1)
	d.Find(Missed, "slow")
	return d
}

func TestTextShowsEveryValue(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := example().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `
A & B <test>
2 CPUs

Cells
shape       requests  p99 ms
────────────────────────────
keepalive  1,234,567    0.46
<churn>            8       –
How to read.

Other
shape  extra
────────────
x          3

Rate & <more> (req/s over connections)
a<b  ▁█   10.0 to 20.0

met     fine 1
missed  slow
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestColorIsTheSameTextPainted(t *testing.T) {
	t.Parallel()
	var plain, color strings.Builder
	if err := errors.Join(example().WriteText(&plain), example().WriteColor(&color)); err != nil {
		t.Fatal(err)
	}
	escape := regexp.MustCompile("\x1b\\[[0-9;]*m")
	if color.String() == plain.String() || escape.ReplaceAllString(color.String(), "") != plain.String() {
		t.Errorf("painted text differs by more than paint:\n%q", color.String())
	}
}

func TestJSONKeepsNumbersAndOrder(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := example().WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		When     string           `json:"when"`
		Findings []map[string]any `json:"findings"`
		Tables   []struct {
			Name string           `json:"name"`
			Rows []map[string]any `json:"rows"`
		} `json:"tables"`
		Charts []struct {
			Series []struct {
				Points []map[string]any `json:"points"`
			} `json:"series"`
		} `json:"charts"`
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	if got.When != "2026-12-01T08:30:00Z" || got.Findings[1]["grade"] != "missed" {
		t.Errorf("time %q, findings %v", got.When, got.Findings)
	}
	want := []map[string]any{{"shape": "keepalive", "requests": 1234567.0, "p99_ms": 0.456}, {"shape": "<churn>", "requests": 8.0, "p99_ms": nil}}
	if diff := cmp.Diff(want, got.Tables[0].Rows); diff != "" {
		t.Errorf("rows (-want +got)\n%s", diff)
	}
	points := []map[string]any{{"x": 1.0, "y": 10.0}, {"x": 2.0, "y": 20.0, "lower": 15.0, "upper": 25.0}, {"x": 64.0, "y": nil}}
	if diff := cmp.Diff(points, got.Charts[0].Series[0].Points); diff != "" {
		t.Errorf("points (-want +got)\n%s", diff)
	}
}

func TestCSVHasOneHeaderForAllTables(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := example().WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"table", "shape", "requests", "p99_ms", "extra"}, {"cells", "keepalive", "1234567", "0.456", ""},
		{"cells", "<churn>", "8", "", ""}, {"other", "x", "", "", "3"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestHTMLNeedsNothingElseAndEscapes(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := example().WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, forbidden := range []string{"<script", "http://", "https://", "src=", "@import", "<churn>", "a<b", "ZgotmplZ"} {
		if strings.Contains(page, forbidden) {
			t.Errorf("the page holds %q", forbidden)
		}
	}
	for _, want := range []string{"&lt;churn&gt;", "1,234,567", "Rate &amp; &lt;more&gt;", "<svg", "a&lt;b: 20.0 at 2", `class="goal"`, "var(--h5)"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	chart := example().Charts[0]
	decoder := xml.NewDecoder(strings.NewReader(chart.svg()))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is not well formed: %v\n%s", err, chart.svg())
		}
	}
}

func TestEmptyAndFlatChartsAreDrawn(t *testing.T) {
	t.Parallel()
	for _, c := range []Chart{{}, {Series: []Series{{}}}, {Series: []Series{{Points: []Point{{X: 3, Y: 0}}}}}} {
		if picture := c.svg(); strings.Contains(picture, "NaN") || strings.Contains(picture, "Inf") {
			t.Errorf("%+v: %s", c, picture)
		}
	}
}

func TestSave(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := Files{JSON: filepath.Join(dir, "a.json"), HTML: filepath.Join(dir, "a.html")}
	if err := example().Save(files); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%d files, %v; want the two that were asked for", len(entries), err)
	}
	if err := example().Save(Files{CSV: filepath.Join(dir, "no", "a.csv")}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a folder that does not exist: %v", err)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		value  any
		digits int
		want   string
	}{{-1234.5, 1, "-1,234.5"}, {999.0, 0, "999"}, {1000, 0, "1,000"}, {-999, 0, "-999"}, {math.Inf(1), 2, "–"}, {uint64(0), 0, "0"}, {"a", 3, "a"}} {
		if got := text(tc.value, tc.digits); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.value, got, tc.want)
		}
	}
	if got := Milliseconds(1500 * time.Microsecond); got != 1.5 {
		t.Errorf("1.5 ms is %v", got)
	}
	if !math.IsNaN(Milliseconds(0)) {
		t.Error("a duration that was not measured is a number")
	}
	for step, want := range map[float64]float64{0.7: 1, 1: 1, 1.3: 2, 4: 5, 60: 100, 0.02: 0.02, 0: 1} {
		if got := nice(step); math.Abs(got-want) > 1e-12 {
			t.Errorf("nice(%v) = %v, want %v", step, got, want)
		}
	}
}

func TestSparkline(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		values []float64
		want   string
	}{
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7}, "▁▂▃▄▅▆▇█"},
		{[]float64{5, 5}, "▄▄"},
		{[]float64{0, math.NaN(), 1}, "▁ █"},
		{nil, ""},
	} {
		if got := Sparkline(tc.values, 60); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.values, got, tc.want)
		}
	}
	if got := Sparkline([]float64{0, 0, 8, 8}, 2); got != "▁█" {
		t.Errorf("merged: %q", got)
	}
}

func TestPlainScreenDoesNotFloodALog(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	s := NewPlain(&b)
	for i := range 100 {
		s.Step("learning: round "+string(rune('0'+i%10)), float64(i)/100)
	}
	s.Step("done: all", 1)
	s.Line("kept")
	s.Close()
	if got, want := b.String(), "  0%  learning: round 0\n100%  done: all\nkept\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFilesAndTheNullDeviceAreNoTerminals(t *testing.T) {
	t.Parallel()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if Terminal(null) || Terminal(file) {
		t.Error("the null device or a file passes for a terminal")
	}
	if _, is := NewScreen(file).(*Plain); !is {
		t.Error("a file gets a live screen")
	}
}

func TestLiveScreenEndsWhenClosed(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	l := newLive(file)
	l.Step("ladder: 8 connections", 0.5)
	l.Line("a line that stays")
	l.Close()
	raw, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), "a line that stays") {
		t.Errorf("the line is not there: %q", raw)
	}
	model, _ := bar{}.Update(step{"halfway", 0.5})
	if view := model.View().Content; !strings.Contains(view, "halfway") || !strings.Contains(view, "50%") {
		t.Errorf("the bar shows %q", view)
	}
}
