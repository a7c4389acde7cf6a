package console

import (
	"encoding/json/jsontext"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
)

// functions are what the templates call.
func functions() template.FuncMap {
	return template.FuncMap{
		"count": count, "number": number, "percent": percent, "ago": ago, "stamp": stamp, "span": span, "tenths": tenths,
		"clock": func(t time.Time) string { return t.Format("15:04:05") },
	}
}

// count writes a whole number with thin gaps between thousands.
func count(n any) string {
	text := fmt.Sprint(n)
	var out strings.Builder
	for i, r := range text {
		if i > 0 && (len(text)-i)%3 == 0 && text[i-1] != '-' {
			out.WriteRune('\u202f')
		}
		out.WriteRune(r)
	}
	return out.String()
}

// number writes a measured value in three digits or so, and a dash for none.
func number(v float64) string {
	text := plain(v)
	if v < 0 {
		return "\u2212" + strings.TrimPrefix(text, "-")
	}
	return text
}

func plain(v float64) string {
	size := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case size >= 1000:
		return count(int64(math.Round(v)))
	case size >= 100 || size == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 10:
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	case size >= 0.01:
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 2, 64), ".00")
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// exact writes a number of a spec as it is.
func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// percent writes a share; one that is neither none nor all never reads as if it were.
func percent(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v > 0 && v < 0.01:
		return "<1 %"
	case v < 1 && v > 0.99:
		return ">99 %"
	}
	return strconv.FormatFloat(v*100, 'f', 0, 64) + " %"
}

// tenths is a share as a width out of 1000, for drawings.
func tenths(v float64) int { return int(math.Round(min(max(v, 0), 1) * 1000)) }

// ago says how long since a moment in ms, against the moment now.
func ago(now time.Time, ms int64) string {
	if ms == 0 {
		return "never"
	}
	d := now.Sub(time.UnixMilli(ms))
	switch {
	case d < 2*time.Second:
		return "now"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s ago"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min ago"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + " h ago"
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + " days ago"
}

// stamp writes a moment in ms in full.
func stamp(ms int64) string {
	if ms == 0 {
		return "–"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000 UTC")
}

// span says how much time the axis of a chart covers.
func span(seconds int) string {
	if seconds < 120 {
		return strconv.Itoa(seconds) + " s"
	}
	return strconv.Itoa((seconds+30)/60) + " min"
}

// indent lays JSON text out over lines; text that is no JSON stays as it is.
func indent(text []byte) string {
	v := jsontext.Value(text).Clone()
	if v.Indent(jsontext.WithIndent("  ")) != nil {
		return string(text)
	}
	return string(v)
}
