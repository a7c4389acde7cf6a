// Package report shows what a lab run found: as text in a terminal, as JSON, as CSV, and as one HTML file that needs
// nothing else.
//
// A Document is plain data: tables of numbers with units, charts and findings. Every rendering is made from the same
// values, so no two can disagree; a value that does not exist is NaN and is shown as a dash, null or an empty cell, never
// as 0. The package refuses to know what a scenario is, loads nothing from a network, and records no host name.
//
// Goroutines: NewScreen on a terminal starts one that draws; Close waits for it.
package report

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"time"
)

// Document is one run's result.
type Document struct {
	Title    string
	Command  string // how to run it again
	When     time.Time
	Machine  string
	Findings []Finding
	Tables   []Table
	Charts   []Chart
}

// Grade says what a finding means.
type Grade uint8

// The grades.
const (
	Note   Grade = iota // worth knowing
	Met                 // a goal that was reached
	Missed              // a goal that was not
	Broken              // a promise of correctness that was not kept: the run fails
)

var gradeNames = [...]string{"note", "met", "missed", "BROKEN"}

// String returns the grade in one word.
func (g Grade) String() string { return gradeNames[g] }

// Finding is one sentence with its grade.
type Finding struct {
	Grade Grade
	Text  string
}

// Column is one column of a table.
type Column struct {
	Key    string // name in JSON and CSV, unit included where there is one
	Title  string // heading for people
	Digits int    // decimals shown of a float64
}

// Table is rows of values; a value is a string, an int, a uint64 or a float64.
type Table struct {
	Name    string // key in JSON and CSV
	Title   string
	Note    string // how to read it
	Columns []Column
	Rows    [][]any
}

// Add appends one row; it has a value per column.
func (t *Table) Add(values ...any) { t.Rows = append(t.Rows, values) }

// Chart is a picture of series over one axis.
type Chart struct {
	Title  string
	X, Y   string // axis labels with units
	Log2   bool   // the x axis doubles per step
	Goal   float64
	Series []Series
}

// Series is one line of a chart.
type Series struct {
	Name   string
	Points []Point
}

// Point is one value, with an interval unless Lower equals Upper.
type Point struct {
	X, Y, Lower, Upper float64
}

// New returns a document for a run that begins now on this machine.
func New(title, command string) *Document {
	machine := fmt.Sprintf("%d CPUs, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	return &Document{Title: title, Command: command, When: time.Now().UTC().Truncate(time.Second), Machine: machine}
}

// Find appends a finding whose text is formatted.
func (d *Document) Find(grade Grade, format string, args ...any) {
	d.Findings = append(d.Findings, Finding{Grade: grade, Text: fmt.Sprintf(format, args...)})
}

// Worst returns the highest grade among the findings.
func (d *Document) Worst() Grade {
	worst := Note
	for _, f := range d.Findings {
		worst = max(worst, f.Grade)
	}
	return worst
}

// Milliseconds returns d in milliseconds, NaN for 0: a duration that was not measured.
func Milliseconds(d time.Duration) float64 {
	if d == 0 {
		return math.NaN()
	}
	return float64(d) / float64(time.Millisecond)
}

// text is a value as people read it.
func text(v any, digits int) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return "–"
		}
		return grouped(strconv.FormatFloat(v, 'f', digits, 64))
	case int:
		return grouped(strconv.Itoa(v))
	case uint64:
		return grouped(strconv.FormatUint(v, 10))
	}
	return fmt.Sprint(v)
}

// grouped puts a comma between thousands of a decimal number.
func grouped(number string) string {
	end := len(number)
	for i, r := range number {
		if r == '.' {
			end = i
			break
		}
	}
	start := 0
	if number != "" && number[0] == '-' {
		start = 1
	}
	for i := end - 3; i > start; i -= 3 {
		number = number[:i] + "," + number[i:]
	}
	return number
}

// plain is a value for JSON and CSV: nil where there is none.
func plain(v any) any {
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return nil
	}
	return v
}
