package console

import (
	"html/template"
	"math"
	"strconv"
)

// Charts are SVG drawings that stretch to whatever room there is: lines keep their width, and all text stands beside them
// as HTML. They are made of numbers alone, which is why their text needs no escaping. The y axis points down.
const (
	chartWide = 1000.0
	chartHigh = 200.0
)

// drawing collects the elements of a chart.
type drawing struct{ text []byte }

func newDrawing(class string) *drawing {
	d := &drawing{}
	d.add(`<svg class="`, class, `" viewBox="0 0 1000 200" preserveAspectRatio="none" aria-hidden="true" focusable="false">`)
	return d
}

func (d *drawing) add(parts ...string) {
	for _, p := range parts {
		d.text = append(d.text, p...)
	}
}

// point appends a command and a place; x and y are in [0,1], y upwards.
func (d *drawing) point(command byte, x, y float64) {
	d.text = append(d.text, command)
	d.text = strconv.AppendFloat(d.text, math.Round(x*chartWide*10)/10, 'f', -1, 64)
	d.text = append(d.text, ' ')
	d.text = strconv.AppendFloat(d.text, math.Round((1-y)*chartHigh*10)/10, 'f', -1, 64)
}

// html ends the drawing.
func (d *drawing) html() template.HTML {
	d.add("</svg>")
	return template.HTML(d.text)
}

// stacked draws shares on top of each other, the first at the bottom.
func stacked(p *picture) template.HTML {
	d := newDrawing("chart stack")
	floor := make([]float64, len(p.At))
	for slot := range p.Shares {
		if len(p.At) < 2 {
			break
		}
		used := false
		d2 := len(d.text)
		d.add(`<path class="f`, strconv.Itoa(slot), `" d="`)
		for i, x := range p.At {
			d.point(command(i), x, min(1, floor[i]+p.Shares[slot][i]))
			used = used || p.Shares[slot][i] > 0.0005
		}
		for i := len(p.At) - 1; i >= 0; i-- {
			d.point('L', p.At[i], floor[i])
			floor[i] += p.Shares[slot][i]
		}
		d.add(`Z"/>`)
		if !used {
			d.text = d.text[:d2]
		}
	}
	return d.html()
}

func command(i int) byte {
	if i == 0 {
		return 'M'
	}
	return 'L'
}

// scale is the range of a y axis.
type scale struct{ Lo, Hi float64 }

// Mid is the value half way up.
func (s scale) Mid() float64 { return (s.Lo + s.Hi) / 2 }

func (s scale) of(v float64) float64 { return min(max((v-s.Lo)/(s.Hi-s.Lo), 0), 1) }

// fit chooses a scale with round ends that shows a series, no narrower than least.
func fit(series []float64, least float64) scale {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range series {
		if !math.IsNaN(v) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if lo > hi {
		lo, hi = 0, least
	}
	if room := least - (hi - lo); room > 0 {
		down := room / 2
		if lo >= 0 {
			down = min(down, lo) // what was never negative shall not look as if it could be
		}
		lo, hi = lo-down, hi+room-down
	}
	step := math.Pow(10, math.Floor(math.Log10(hi-lo)))
	switch n := (hi - lo) / step; {
	case n < 2:
		step /= 5
	case n < 5:
		step /= 2
	}
	return scale{math.Floor(lo/step) * step, math.Ceil(hi/step) * step}
}

// line draws a series over a light area, with a dot at its newest value.
func line(at, series []float64, s scale) template.HTML {
	d := newDrawing("chart line")
	d.add(`<path class="grid" d="M0 0H1000M0 100H1000M0 200H1000"/>`)
	var xs, ys []float64
	for i, v := range series {
		if !math.IsNaN(v) {
			xs, ys = append(xs, at[i]), append(ys, s.of(v))
		}
	}
	if len(xs) < 2 {
		return d.html()
	}
	outline := func() {
		for i := range xs {
			d.point(command(i), xs[i], ys[i])
		}
	}
	d.add(`<path class="area" d="`)
	outline()
	d.point('L', xs[len(xs)-1], 0)
	d.point('L', xs[0], 0)
	d.add(`Z"/><path class="stroke" d="`)
	outline()
	d.add(`"/><path class="dot" d="`)
	d.point('M', xs[len(xs)-1], ys[len(ys)-1])
	d.add(`h.01"/>`)
	return d.html()
}
