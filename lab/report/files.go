package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"holdfast/fault"
)

// Files says where to write a document; an empty name writes nothing.
type Files struct {
	JSON, CSV, HTML string
}

// Save writes the document to the named files, replacing what is there.
func (d *Document) Save(files Files) error {
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{{files.JSON, d.WriteJSON}, {files.CSV, d.WriteCSV}, {files.HTML, d.WriteHTML}} {
		if f.name == "" {
			continue
		}
		var b bytes.Buffer
		if err := f.write(&b); err != nil {
			return err
		}
		if err := os.WriteFile(f.name, b.Bytes(), 0o644); err != nil {
			return fault.Wrap("report.Save", fault.Invalid, err, "cannot write "+f.name)
		}
	}
	return nil
}

// jsonTable and the rest are the JSON form: rows are objects with the columns' keys, in the columns' order.
type jsonTable struct {
	Name  string           `json:"name"`
	Title string           `json:"title"`
	Note  string           `json:"note,omitzero"`
	Rows  []jsontext.Value `json:"rows"`
}

type jsonFinding struct {
	Grade string `json:"grade"`
	Text  string `json:"text"`
}

type jsonPoint struct {
	X     any `json:"x"`
	Y     any `json:"y"`
	Lower any `json:"lower,omitzero"`
	Upper any `json:"upper,omitzero"`
}

type jsonSeries struct {
	Name   string      `json:"name"`
	Points []jsonPoint `json:"points"`
}

type jsonChart struct {
	Title  string       `json:"title"`
	X      string       `json:"x"`
	Y      string       `json:"y"`
	Series []jsonSeries `json:"series"`
}

type jsonDocument struct {
	Title    string        `json:"title"`
	Command  string        `json:"command"`
	When     string        `json:"when"`
	Machine  string        `json:"machine"`
	Findings []jsonFinding `json:"findings"`
	Tables   []jsonTable   `json:"tables"`
	Charts   []jsonChart   `json:"charts"`
}

// WriteJSON writes the document as one indented JSON object.
func (d *Document) WriteJSON(w io.Writer) error {
	out := jsonDocument{Title: d.Title, Command: d.Command, When: d.When.Format("2006-01-02T15:04:05Z"), Machine: d.Machine,
		Findings: []jsonFinding{}, Tables: []jsonTable{}, Charts: []jsonChart{}}
	for _, f := range d.Findings {
		out.Findings = append(out.Findings, jsonFinding{f.Grade.String(), f.Text})
	}
	for _, t := range d.Tables {
		table := jsonTable{Name: t.Name, Title: t.Title, Note: t.Note, Rows: []jsontext.Value{}}
		for _, row := range t.Rows {
			value, err := t.object(row)
			if err != nil {
				return err
			}
			table.Rows = append(table.Rows, value)
		}
		out.Tables = append(out.Tables, table)
	}
	for _, c := range d.Charts {
		out.Charts = append(out.Charts, c.json())
	}
	if err := json.MarshalWrite(w, out, jsontext.WithIndent("  ")); err != nil {
		return fault.Wrap("report.WriteJSON", fault.Internal, err, "")
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// object returns one row as a JSON object.
func (t *Table) object(row []any) (jsontext.Value, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, v := range row {
		if i > 0 {
			b.WriteByte(',')
		}
		value, err := json.Marshal(plain(v))
		if err != nil {
			return nil, fault.Wrap("report.WriteJSON", fault.Internal, err, "")
		}
		fmt.Fprintf(&b, "%q:%s", t.Columns[i].Key, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (c *Chart) json() jsonChart {
	chart := jsonChart{Title: c.Title, X: c.X, Y: c.Y, Series: []jsonSeries{}}
	for _, s := range c.Series {
		series := jsonSeries{Name: s.Name, Points: []jsonPoint{}}
		for _, p := range s.Points {
			point := jsonPoint{X: plain(p.X), Y: plain(p.Y)}
			if p.Lower != p.Upper && !math.IsNaN(p.Lower) && !math.IsNaN(p.Upper) {
				point.Lower, point.Upper = p.Lower, p.Upper
			}
			series.Points = append(series.Points, point)
		}
		chart.Series = append(chart.Series, series)
	}
	return chart
}

// WriteCSV writes all tables under one header: the column "table" names the row's table, and a row has no value in the
// columns of other tables.
func (d *Document) WriteCSV(w io.Writer) error {
	header := []string{"table"}
	for _, t := range d.Tables {
		for _, c := range t.Columns {
			if !slices.Contains(header, c.Key) {
				header = append(header, c.Key)
			}
		}
	}
	out := csv.NewWriter(w)
	lines := [][]string{header}
	for _, t := range d.Tables {
		for _, row := range t.Rows {
			line := make([]string, len(header))
			line[0] = t.Name
			for i, v := range row {
				if v := plain(v); v != nil {
					line[slices.Index(header, t.Columns[i].Key)] = fmt.Sprint(v)
				}
			}
			lines = append(lines, line)
		}
	}
	if err := out.WriteAll(lines); err != nil {
		return fault.Wrap("report.WriteCSV", fault.Internal, err, "")
	}
	return nil
}
