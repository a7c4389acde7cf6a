package report

import (
	_ "embed"
	"html/template"
	"io"

	"holdfast/fault"
)

//go:embed page.html
var page string

// htmlTable is a table whose values are already text.
type htmlTable struct {
	Title, Note string
	Columns     []htmlCell
	Rows        [][]htmlCell
}

type htmlCell struct {
	Text  string
	Words bool // set flush left
}

type htmlChart struct {
	Title, Y, X string
	Picture     template.HTML
	Legend      []htmlKey
}

type htmlKey struct {
	Name string
	Hue  int // index into the page's colours
}

// WriteHTML writes the document as one page with its pictures inside; it runs no script and loads nothing.
func (d *Document) WriteHTML(w io.Writer) error {
	tmpl, err := template.New("page").Parse(page)
	if err != nil {
		return fault.Wrap("report.WriteHTML", fault.Internal, err, "")
	}
	view := struct {
		*Document
		Time   string
		Hues   []int
		Tables []htmlTable
		Charts []htmlChart
	}{Document: d, Time: d.When.Format("2 January 2006, 15:04 UTC")}
	for i := range hues {
		view.Hues = append(view.Hues, i)
	}
	for i := range d.Tables {
		view.Tables = append(view.Tables, d.Tables[i].html())
	}
	for i := range d.Charts {
		c := &d.Charts[i]
		chart := htmlChart{Title: c.Title, X: c.X, Y: c.Y, Picture: template.HTML(c.svg())} // svg escapes every text
		for n, s := range c.Series {
			chart.Legend = append(chart.Legend, htmlKey{s.Name, n % hues})
		}
		view.Charts = append(view.Charts, chart)
	}
	if err := tmpl.Execute(w, view); err != nil {
		return fault.Wrap("report.WriteHTML", fault.Internal, err, "")
	}
	return nil
}

func (t *Table) html() htmlTable {
	table := htmlTable{Title: t.Title, Note: t.Note}
	for i, c := range t.Columns {
		table.Columns = append(table.Columns, htmlCell{c.Title, t.words(i)})
	}
	for _, row := range t.Rows {
		var cells []htmlCell
		for i, v := range row {
			cells = append(cells, htmlCell{text(v, t.Columns[i].Digits), t.words(i)})
		}
		table.Rows = append(table.Rows, cells)
	}
	return table
}
