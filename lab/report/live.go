package report

import (
	"fmt"
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// live draws a bar with the current step under the lines that stay. It takes no input, so Ctrl-C stays a signal to the
// whole program.
type live struct {
	program *tea.Program
	done    chan struct{}
}

var _ Screen = (*live)(nil)

func newLive(out *os.File) *live {
	l := &live{done: make(chan struct{})}
	l.program = tea.NewProgram(bar{}, tea.WithOutput(out), tea.WithInput(nil), tea.WithoutSignalHandler(), tea.WithFPS(20))
	go func() {
		defer close(l.done)
		_, _ = l.program.Run() // drawing is a courtesy: a run does not fail for it
	}()
	return l
}

func (l *live) Step(label string, share float64) { l.program.Send(step{label, share}) }

func (l *live) Line(text string) { l.program.Println(text) }

func (l *live) Close() {
	l.program.Send(step{"", 1})
	l.program.Quit()
	<-l.done
}

// step is the message that moves the bar.
type step struct {
	label string
	share float64
}

// bar is the picture: how far, and what is being done.
type bar struct {
	step
	width int
}

func (b bar) Init() tea.Cmd { return nil }

func (b bar) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch m := message.(type) {
	case step:
		b.step = m
	case tea.WindowSizeMsg:
		b.width = m.Width
	}
	return b, nil
}

func (b bar) View() tea.View {
	if b.label == "" {
		return tea.NewView("")
	}
	const cells = 28
	full := min(cells, max(0, int(b.share*cells+0.5)))
	filled := lipgloss.NewStyle().Foreground(lipgloss.Color("39")).Render(strings.Repeat("█", full))
	empty := lipgloss.NewStyle().Foreground(lipgloss.Color("240")).Render(strings.Repeat("░", cells-full))
	label := b.label
	if room := b.width - cells - 8; b.width > 0 && len(label) > room {
		label = string([]rune(label)[:max(0, min(len([]rune(label)), room))])
	}
	return tea.NewView(fmt.Sprintf("%s%s %3.0f%%  %s", filled, empty, 100*b.share, label))
}
