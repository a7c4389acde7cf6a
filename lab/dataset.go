package lab

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"encoding/json/jsontext"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"holdfast/fault"
)

// The bounds of a data set; they are the server's own bounds on a context and on a capsule's actions.
const (
	maxLabels  = 1024
	maxColumns = 4096
)

// dataset is a labelled table: one context per row and the index of its right answer.
type dataset struct {
	labels   []string // the actions, numbers in numeric order, else in text order
	contexts [][]byte // JSON objects
	right    []int    // index into labels, per row
}

// readDataset reads a CSV file, gzipped or not, whose first line names the columns.
func readDataset(path, label string) (*dataset, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap("lab.Dataset", fault.NotFound, err, "cannot open the data file "+path)
	}
	defer file.Close()
	in := bufio.NewReader(file)
	var plain io.Reader = in
	if magic, err := in.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		if plain, err = gzip.NewReader(in); err != nil {
			return nil, fault.Wrap("lab.Dataset", fault.Invalid, err, filepath.Base(path)+" begins like gzip and is not")
		}
	}
	return parseDataset(filepath.Base(path), plain, label)
}

// tableReader turns CSV records into contexts. A column whose first value is a number holds numbers only.
type tableReader struct {
	name    string // of the file, for messages
	columns []string
	label   int
	kinds   []columnKind
	csv     *csv.Reader
}

type columnKind uint8

const (
	undecided columnKind = iota // only empty cells so far
	numbers
	words
)

func parseDataset(name string, in io.Reader, label string) (*dataset, error) {
	t := &tableReader{name: name, csv: csv.NewReader(in)}
	t.csv.ReuseRecord = true
	t.csv.FieldsPerRecord = -1
	if err := t.header(label); err != nil {
		return nil, err
	}
	d := &dataset{}
	index := map[string]int{}
	for {
		record, err := t.csv.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, t.broken(err)
		}
		context, answer, err := t.row(record)
		if err != nil {
			return nil, err
		}
		if _, known := index[answer]; !known {
			if len(index) == maxLabels {
				return nil, t.bad(t.label, "is the %dth different label; a capsule has at most %d actions", maxLabels+1, maxLabels)
			}
			index[answer] = len(d.labels)
			d.labels = append(d.labels, answer)
		}
		d.contexts = append(d.contexts, context)
		d.right = append(d.right, index[answer])
	}
	if len(d.contexts) == 0 {
		return nil, fault.New("lab.Dataset", fault.Invalid, "%s has a header and no rows", name)
	}
	if len(d.labels) < 2 {
		return nil, fault.New("lab.Dataset", fault.Invalid, "%s: every row has the label %q; there is nothing to choose", name, d.labels[0])
	}
	d.order()
	return d, nil
}

// broken says where the file stops being CSV.
func (t *tableReader) broken(err error) error {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return fault.Wrap("lab.Dataset", fault.Invalid, err, t.name+": line "+strconv.Itoa(parse.Line)+" is not CSV: "+parse.Err.Error())
	}
	return fault.Wrap("lab.Dataset", fault.Invalid, err, t.name+" cannot be read to its end")
}

func (t *tableReader) header(label string) error {
	record, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		return fault.New("lab.Dataset", fault.Invalid, "%s is empty; its first line must name the columns", t.name)
	}
	if err != nil {
		return t.broken(err)
	}
	t.columns = slices.Clone(record)
	t.columns[0] = strings.TrimPrefix(t.columns[0], "\ufeff") // the mark some spreadsheets put first
	for i, c := range t.columns {
		if slices.Index(t.columns, c) != i {
			return fault.New("lab.Dataset", fault.Invalid, "%s: two columns are called %q", t.name, c)
		}
	}
	if len(t.columns) > maxColumns {
		return fault.New("lab.Dataset", fault.Invalid, "%s has %d columns; a context has at most %d", t.name, len(t.columns), maxColumns)
	}
	t.label = slices.Index(t.columns, label)
	if t.label < 0 {
		return fault.New("lab.Dataset", fault.Invalid, "%s has no column %q; it has %s", t.name, label, listed(t.columns))
	}
	t.kinds = make([]columnKind, len(t.columns))
	return nil
}

// listed names the first columns and the last.
func listed(columns []string) string {
	if len(columns) > 8 {
		return strings.Join(columns[:6], ", ") + ", …, " + columns[len(columns)-1]
	}
	return strings.Join(columns, ", ")
}

// bad is an error about one cell of the record just read.
func (t *tableReader) bad(column int, format string, args ...any) error {
	line, _ := t.csv.FieldPos(column)
	where := t.name + ": line " + strconv.Itoa(line) + ", column \"" + t.columns[column] + "\": the value "
	return fault.New("lab.Dataset", fault.Invalid, "%s%s", where, fault.New("", fault.Invalid, format, args...).Msg)
}

// row returns a record's context and its label.
func (t *tableReader) row(record []string) (context []byte, label string, err error) {
	if len(record) != len(t.columns) {
		line, _ := t.csv.FieldPos(0)
		hint := "the last column it has is \"" + t.columns[min(len(record), len(t.columns))-1] + "\""
		return nil, "", fault.New("lab.Dataset", fault.Invalid, "%s: line %d has %d values, the header names %d columns; %s",
			t.name, line, len(record), len(t.columns), hint)
	}
	context = append(context, '{')
	for i, value := range record {
		value = strings.TrimSpace(value)
		if i == t.label {
			if value == "" || len(value) > 256 {
				return nil, "", t.bad(i, "is no label: it must have 1 to 256 characters")
			}
			label = value
			continue
		}
		if value == "" {
			continue // a missing value is an absent feature
		}
		if len(context) > 1 {
			context = append(context, ',')
		}
		if context, err = t.member(context, i, value); err != nil {
			return nil, "", err
		}
	}
	return append(context, '}'), strings.Clone(label), nil
}

// member appends one "name":value pair.
func (t *tableReader) member(context []byte, column int, value string) ([]byte, error) {
	number, err := strconv.ParseFloat(value, 64)
	isNumber := err == nil
	if t.kinds[column] == undecided {
		t.kinds[column] = words
		if isNumber {
			t.kinds[column] = numbers
		}
	}
	context, quoteErr := jsontext.AppendQuote(context, t.columns[column])
	if quoteErr != nil {
		return nil, fault.Wrap("lab.Dataset", fault.Invalid, quoteErr, t.name+": the header is not UTF-8 in column "+strconv.Itoa(column+1))
	}
	context = append(context, ':')
	if t.kinds[column] == words {
		if context, err = jsontext.AppendQuote(context, value); err != nil {
			return nil, t.bad(column, "is not UTF-8")
		}
		return context, nil
	}
	if !isNumber {
		return nil, t.bad(column, "%q is not a number, and the rows above have numbers there", value)
	}
	if math.IsNaN(number) || math.Abs(number) > math.MaxFloat32 {
		return nil, t.bad(column, "%q is not a number of 32 bits", value)
	}
	return strconv.AppendFloat(context, number, 'g', -1, 64), nil
}

// order sorts the labels, so that the same data gives the same capsule in whatever order its rows come.
func (d *dataset) order() {
	sorted := slices.Clone(d.labels)
	value := map[string]float64{}
	for _, l := range sorted {
		n, err := strconv.ParseFloat(l, 64)
		if err != nil {
			value = nil
			break
		}
		value[l] = n
	}
	slices.SortFunc(sorted, func(a, b string) int {
		if value != nil && value[a] != value[b] {
			if value[a] < value[b] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	place := map[string]int{}
	for i, l := range sorted {
		place[l] = i
	}
	for i, old := range d.right {
		d.right[i] = place[d.labels[old]]
	}
	d.labels = sorted
}
