package report

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Screen shows how far a run is. A step replaces the step before it; a line stays.
type Screen interface {
	Step(label string, share float64) // share of the whole run, 0..1
	Line(text string)
	Close()
}

// NewScreen returns a live screen when out is a terminal that can move its cursor, else plain lines.
func NewScreen(out *os.File) Screen {
	if Terminal(out) {
		return newLive(out)
	}
	return NewPlain(out)
}

// Terminal reports whether out is a terminal that can redraw a line.
func Terminal(out *os.File) bool {
	info, err := out.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// Plain writes one line per step, and at most one per ten seconds while the label stays the same up to its colon.
type Plain struct {
	mu   sync.Mutex // guards all below
	out  io.Writer
	last time.Time
	head string
}

var _ Screen = (*Plain)(nil)

// NewPlain returns a screen for logs and pipes.
func NewPlain(out io.Writer) *Plain { return &Plain{out: out} }

// Step prints the label when it differs before its colon from the last one, or when ten seconds have passed.
func (p *Plain) Step(label string, share float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	head, _, _ := strings.Cut(label, ":")
	if head == p.head && time.Since(p.last) < 10*time.Second {
		return
	}
	p.head, p.last = head, time.Now()
	fmt.Fprintf(p.out, "%3.0f%%  %s\n", 100*share, label)
}

// Line prints the text.
func (p *Plain) Line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.out, text)
}

// Close does nothing: everything is printed already.
func (p *Plain) Close() {}
