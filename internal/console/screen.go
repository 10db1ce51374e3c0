package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
)

// screen is a console with an editor at the bottom and what was said above it.
type screen struct {
	o       Options
	p       *tea.Program
	ended   chan struct{} // closed when the program is over
	err     error         // of the program, once it is
	next    chan entered
	signals chan os.Signal
	wake    chan struct{} // something was written

	showing sync.Mutex // what is shown is in the order of what was written
	mu      sync.Mutex
	out     wrapper
	lines   []string // complete, not shown yet
	width   int
	height  int
	stop    context.CancelFunc // of what can be interrupted; nil if nothing can
}

// entered is a message as it was entered, and how it is repeated above the editor.
type entered struct {
	Message
	shown string
}

// frame is the time between two looks at what was written.
const frame = 16 * time.Millisecond

// Messages to the editor.
type (
	wanted     struct{} // the next message may come
	unfinished string   // the last line of the output, which can grow
	interrupt  struct{} // SIGINT from another process
)

func openScreen(o Options, h *history) *screen {
	s := &screen{
		o: o, ended: make(chan struct{}), next: make(chan entered, 1), signals: make(chan os.Signal, 1), wake: make(chan struct{}, 1),
		width: 80, height: 24,
	}
	s.p = tea.NewProgram(newEditor(s, o.Complete, h), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler())
	signal.Notify(s.signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		_, s.err = s.p.Run()
		s.interrupt()
		close(s.ended)
	}()
	go s.pump()
	return s
}

// pump shows what is written, many pieces at a time, and passes signals on.
func (s *screen) pump() {
	for {
		select {
		case <-s.ended:
			return
		case sig := <-s.signals:
			if sig == os.Interrupt {
				s.p.Send(interrupt{})
			} else {
				s.p.Quit()
			}
		case <-s.wake:
			s.show()
			select {
			case <-time.After(frame):
			case <-s.ended:
				return
			}
		}
	}
}

// resize is told the size of the terminal.
func (s *screen) resize(width, height int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The library clears the rest of a line after each, and with it the last column
	// of one that fills it.
	s.width, s.height = max(1, width-1), height
}

// interrupt ends what can be interrupted and reports whether there was something.
func (s *screen) interrupt() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop == nil {
		return false
	}
	s.stop()
	s.stop = nil
	return true
}

// Write takes text, to be shown in a moment.
func (s *screen) Write(p []byte) (int, error) {
	select {
	case <-s.ended: // the terminal is as it was
		if _, err := io.WriteString(s.o.Out, clean(string(p))); err != nil {
			return 0, err
		}
		return len(p), nil
	default:
	}
	s.mu.Lock()
	s.lines = append(s.lines, s.out.add(string(p), s.width)...)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return len(p), nil
}

// show shows what was written.
func (s *screen) show() {
	s.showing.Lock()
	defer s.showing.Unlock()
	s.mu.Lock()
	lines, last, most := s.lines, s.out.last(), max(1, s.height/4)
	s.lines = nil
	s.mu.Unlock()
	for len(lines) > 0 {
		n := min(len(lines), most) // more at once than the screen has are misplaced
		part := strings.Join(lines[:n], "\n")
		if part == "" {
			part = " " // nothing is printed of an empty text
		}
		s.p.Send(tea.Println(part)())
		lines = lines[n:]
	}
	s.p.Send(unfinished(last))
}

// Next repeats what was entered above the editor, and returns it.
func (s *screen) Next() (Message, error) {
	s.show()
	s.p.Send(wanted{})
	select {
	case m := <-s.next:
		var echo strings.Builder
		for i, line := range strings.Split(m.shown, "\n") {
			fmt.Fprintf(&echo, "%s%s\n", promptOf(i), line)
		}
		s.endLine()
		s.Write([]byte(echo.String())) //nolint:errcheck // Next cannot say more than it does
		return m.Message, nil
	case <-s.ended:
		if s.err != nil && !errors.Is(s.err, tea.ErrInterrupted) {
			return Message{}, terminalError(s.err)
		}
		return Message{}, io.EOF
	}
}

// endLine ends a line that was begun.
func (s *screen) endLine() {
	s.mu.Lock()
	begun := s.out.rest != ""
	s.mu.Unlock()
	if begun {
		s.Write([]byte("\n")) //nolint:errcheck // as in Next
	}
}

// Interruptible returns a context that ends with Ctrl-C.
func (s *screen) Interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.stop = cancel
	s.mu.Unlock()
	select {
	case <-s.ended:
		cancel()
	default:
	}
	return ctx, func() {
		s.mu.Lock()
		s.stop = nil
		s.mu.Unlock()
		cancel()
	}
}

// Close shows what is left and gives the terminal back.
func (s *screen) Close() error {
	s.endLine()
	s.show()
	s.p.Quit()
	<-s.ended
	signal.Stop(s.signals)
	if s.err != nil {
		return terminalError(s.err)
	}
	return nil
}
