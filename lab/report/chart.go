package report

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// hues is the number of colours the page defines.
const hues = 6

// The drawing area, in the picture's own units.
const (
	wide, high  = 620, 300
	left, right = 64, 14
	upper, base = 12, 46
)

// plot maps values to places in the picture.
type plot struct {
	minX, maxX, maxY float64
	log2             bool
}

func (c *Chart) plot() plot {
	p := plot{minX: math.Inf(1), maxX: math.Inf(-1), maxY: c.Goal, log2: c.Log2}
	for _, s := range c.Series {
		for _, point := range s.Points {
			if math.IsNaN(point.Y) {
				continue
			}
			x := p.scale(point.X)
			p.minX, p.maxX = min(p.minX, x), max(p.maxX, x)
			p.maxY = max(p.maxY, point.Y)
			if point.Upper > point.Lower {
				p.maxY = max(p.maxY, point.Upper)
			}
		}
	}
	if p.minX > p.maxX {
		p.minX, p.maxX = 0, 1
	}
	if p.minX == p.maxX {
		p.minX, p.maxX = p.minX-1, p.maxX+1
	}
	if p.maxY <= 0 {
		p.maxY = 1
	}
	return p
}

func (p plot) scale(x float64) float64 {
	if p.log2 {
		return math.Log2(x)
	}
	return x
}

func (p plot) x(v float64) float64 {
	return left + (p.scale(v)-p.minX)/(p.maxX-p.minX)*(wide-left-right)
}

func (p plot) y(v float64) float64 { return high - base - v/p.maxY*(high-base-upper) }

// svg draws the chart; axes begin at zero, so that heights can be compared.
func (c *Chart) svg() string {
	p := c.plot()
	step := nice(p.maxY / 5)
	p.maxY = math.Ceil(p.maxY/step-1e-9) * step
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, wide, high, html.EscapeString(c.Title))
	for v := 0.0; v <= p.maxY+step/2; v += step {
		y := p.y(v)
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, left, wide-right, y, y)
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`, left-8, y+4, axis(v))
	}
	for _, v := range c.ticks(p) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, p.x(v), high-base+18, axis(v))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s — %s</text>`, (left+wide-right)/2, high-6,
		html.EscapeString(c.Y), html.EscapeString("over "+c.X))
	if c.Goal > 0 {
		y := p.y(c.Goal)
		fmt.Fprintf(&b, `<line class="goal" x1="%d" x2="%d" y1="%.1f" y2="%.1f"><title>goal %s</title></line>`, left, wide-right, y, y, short(c.Goal))
	}
	for i, s := range c.Series {
		s.draw(&b, p, i%hues)
	}
	b.WriteString(`</svg>`)
	return b.String()
}

// draw adds one series: intervals, the line, and a dot per point that says its value; long series go without dots.
func (s *Series) draw(b *strings.Builder, p plot, hue int) {
	var path strings.Builder
	for _, point := range s.Points {
		if math.IsNaN(point.Y) {
			continue
		}
		x, y := p.x(point.X), p.y(point.Y)
		fmt.Fprintf(&path, "%.1f,%.1f ", x, y)
		if point.Upper > point.Lower {
			fmt.Fprintf(b, `<line class="l%d" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, hue, x, x, p.y(point.Lower), p.y(point.Upper))
		}
		if len(s.Points) <= 64 {
			fmt.Fprintf(b, `<circle class="p%d" cx="%.1f" cy="%.1f" r="3.5"><title>%s: %s at %s</title></circle>`, hue, x, y,
				html.EscapeString(s.Name), short(point.Y), axis(point.X))
		}
	}
	fmt.Fprintf(b, `<polyline class="l%d" points="%s"/>`, hue, strings.TrimSpace(path.String()))
}

// ticks are the x values to label: the points themselves when they are few, else six even steps.
func (c *Chart) ticks(p plot) []float64 {
	var values []float64
	for _, s := range c.Series {
		for _, point := range s.Points {
			values = append(values, point.X)
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	if len(values) <= 10 {
		return values
	}
	var even []float64
	step := nice((p.maxX - p.minX) / 6)
	for v := math.Ceil(p.minX/step) * step; v <= p.maxX; v += step {
		even = append(even, v)
	}
	return even
}

// nice rounds a step up to 1, 2 or 5 times a power of ten.
func nice(step float64) float64 {
	if step <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, m := range []float64{1, 2, 5} {
		if step <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// axis is a number as an axis shows it, thousands as k.
func axis(v float64) string {
	switch {
	case v == 0:
		return "0"
	case math.Abs(v) >= 1000:
		return fmt.Sprintf("%.4gk", v/1000)
	}
	return fmt.Sprintf("%.3g", v)
}
