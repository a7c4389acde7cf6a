package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
)

// WriteText writes the document for a log or a file: tables, a sparkline per series, the findings last, where the eye ends
// up.
func (d *Document) WriteText(w io.Writer) error {
	return d.write(w, func(_ Grade, word string) string { return word })
}

// WriteColor writes the same for a terminal, with the findings' grades in colour.
func (d *Document) WriteColor(w io.Writer) error {
	colors := map[Grade]string{Met: "42", Missed: "214", Broken: "203"}
	return d.write(w, func(g Grade, word string) string {
		style := lipgloss.NewStyle().Bold(g > Note)
		if c, is := colors[g]; is {
			style = style.Foreground(lipgloss.Color(c))
		}
		return style.Render(word)
	})
}

func (d *Document) write(w io.Writer, paint func(Grade, string) string) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "\n%s\n%s\n", d.Title, d.Machine)
	for i := range d.Tables {
		d.Tables[i].writeText(out)
	}
	for _, c := range d.Charts {
		c.writeText(out)
	}
	fmt.Fprintln(out)
	for _, f := range d.Findings {
		fmt.Fprintf(out, "%s %s\n", paint(f.Grade, fmt.Sprintf("%-7s", f.Grade)), f.Text)
	}
	return out.Flush()
}

// Text returns the table alone, as WriteText prints it.
func (t *Table) Text() string {
	var b strings.Builder
	out := bufio.NewWriter(&b)
	t.writeText(out)
	_ = out.Flush() // a strings.Builder does not fail
	return b.String()
}

func (t *Table) writeText(out *bufio.Writer) {
	fmt.Fprintf(out, "\n%s\n", t.Title)
	lines := [][]string{make([]string, len(t.Columns))}
	for i, c := range t.Columns {
		lines[0][i] = c.Title
	}
	for _, row := range t.Rows {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = text(v, t.Columns[i].Digits)
		}
		lines = append(lines, line)
	}
	widths := make([]int, len(t.Columns))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, line := range lines {
		for i, cell := range line {
			last := i == len(line)-1
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case !t.words(i):
				cell = pad + cell
			case !last:
				cell += pad
			}
			if i > 0 {
				cell = "  " + cell
			}
			out.WriteString(cell)
		}
		out.WriteByte('\n')
		if n == 0 {
			total := 2 * (len(widths) - 1)
			for _, w := range widths {
				total += w
			}
			out.WriteString(strings.Repeat("─", total) + "\n")
		}
	}
	if t.Note != "" {
		fmt.Fprintln(out, t.Note)
	}
}

// words reports whether a column holds text, which is set flush left.
func (t *Table) words(column int) bool {
	if len(t.Rows) == 0 {
		return true
	}
	_, is := t.Rows[0][column].(string)
	return is
}

func (c *Chart) writeText(out *bufio.Writer) {
	fmt.Fprintf(out, "\n%s (%s over %s)\n", c.Title, c.Y, c.X)
	width := 0
	for _, s := range c.Series {
		width = max(width, utf8.RuneCountInString(s.Name))
	}
	for _, s := range c.Series {
		var values []float64
		for _, p := range s.Points {
			values = append(values, p.Y)
		}
		low, high := bounds(values)
		fmt.Fprintf(out, "%-*s  %s  %s to %s\n", width, s.Name, Sparkline(values, 60), short(low), short(high))
	}
}

// Sparkline draws values as a line of at most width bars from the lowest to the highest; more values are averaged.
func Sparkline(values []float64, width int) string {
	if len(values) > width {
		merged := make([]float64, width)
		for i := range merged {
			from, to := i*len(values)/width, (i+1)*len(values)/width
			sum := 0.0
			for _, v := range values[from:to] {
				sum += v
			}
			merged[i] = sum / float64(to-from)
		}
		values = merged
	}
	low, high := bounds(values)
	bars := []rune("▁▂▃▄▅▆▇█")
	line := make([]rune, len(values))
	for i, v := range values {
		switch {
		case math.IsNaN(v):
			line[i] = ' '
		case high == low:
			line[i] = bars[3]
		default:
			line[i] = bars[min(len(bars)-1, int((v-low)/(high-low)*float64(len(bars))))]
		}
	}
	return string(line)
}

// bounds returns the least and the greatest number, 0 and 0 when there is none.
func bounds(values []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		return 0, 0
	}
	return low, high
}

// short is a number with about three digits.
func short(v float64) string {
	switch size := math.Abs(v); {
	case size >= 100 || v == 0:
		return text(v, 0)
	case size >= 10:
		return text(v, 1)
	case size >= 1:
		return text(v, 2)
	}
	return text(v, 3)
}
