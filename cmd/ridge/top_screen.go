package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"ridge/server"
)

// topScreen is what ridge top shows on a terminal.
type topScreen struct {
	f          *watchFlags
	ctx        context.Context
	every      time.Duration
	rest       int // looks that are left, -1 for any number
	st, before *server.Status
	failed     error
	width      int
	height     int
}

// Messages to a topScreen.
type (
	lookTime time.Time
	looked   struct {
		st  *server.Status
		err error
	}
)

// screen shows what the server does on a terminal of any size, until q or
// Ctrl-C, and leaves the terminal as it was.
func (f *watchFlags) screen(ctx context.Context, out *os.File, every time.Duration, count int) error {
	st, err := f.look(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &topScreen{f: f, ctx: ctx, every: every, rest: count - 1, st: st, width: 80, height: 24}
	_, err = tea.NewProgram(s, tea.WithContext(ctx), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// Init waits for the next look.
func (s *topScreen) Init() tea.Cmd { return s.wait() }

func (s *topScreen) wait() tea.Cmd {
	return tea.Tick(s.every, func(t time.Time) tea.Msg { return lookTime(t) })
}

// Update takes what happened.
func (s *topScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "Q", "ctrl+c", "ctrl+d", "esc":
			return s, tea.Quit
		case "ctrl+z":
			return s, tea.Suspend
		}
	case lookTime:
		if s.rest == 0 {
			return s, tea.Quit
		}
		s.rest = max(s.rest-1, -1)
		return s, func() tea.Msg {
			st, err := s.f.look(s.ctx)
			return looked{st, err}
		}
	case looked:
		if s.failed = msg.err; msg.err == nil {
			s.before, s.st = s.st, msg.st
		}
		return s, s.wait()
	}
	return s, nil
}

// View is what is shown.
func (s *topScreen) View() tea.View {
	lines := statusLines(s.st, s.before, s.f.url, s.width, s.height)
	if s.failed != nil {
		lines = []string{fit("no answer: "+s.failed.Error(), s.width)}
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}
