package console

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// lines is a console without editing, for terminals that cannot move their cursor
// and for output that goes elsewhere.
type lines struct {
	o       Options
	prompts io.Writer // where the person sees them
	read    chan line
	signals chan os.Signal
}

// line is a line of the input, or why there are no more.
type line struct {
	text string
	err  error
}

func openLines(o Options) *lines {
	l := &lines{o: o, prompts: o.Out, read: make(chan line), signals: make(chan os.Signal, 1)}
	if !term.IsTerminal(int(o.Out.Fd())) {
		l.prompts = os.Stderr
	}
	signal.Notify(l.signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		r := bufio.NewReader(o.In)
		for {
			text, err := r.ReadString('\n')
			if text != "" {
				l.read <- line{text: strings.TrimRight(text, "\r\n")}
			}
			if err != nil {
				l.read <- line{err: err}
				return
			}
		}
	}()
	return l
}

// Write writes text as it is: it may go to a file.
func (l *lines) Write(p []byte) (int, error) { return l.o.Out.Write(p) }

// Next returns a line, or the lines between a pair of """.
func (l *lines) Next() (Message, error) {
	var text []string
	for {
		io.WriteString(l.prompts, promptOf(len(text))) //nolint:errcheck // the person sees that it is gone
		select {
		case s := <-l.signals:
			if s != os.Interrupt {
				return Message{}, io.EOF
			}
			io.WriteString(l.prompts, hint+"\n") //nolint:errcheck // as above
			text = nil
		case s := <-l.read:
			if s.err == io.EOF {
				return Message{}, io.EOF
			} else if s.err != nil {
				return Message{}, terminalError(s.err)
			}
			text = append(text, s.text)
			all := strings.Join(text, "\n")
			if open(all) {
				continue
			}
			return Message{Text: unquote(all), Command: strings.HasPrefix(all, "/")}, nil
		}
	}
}

func promptOf(line int) string {
	if line == 0 {
		return prompt
	}
	return promptMore
}

// Interruptible returns a context that ends with Ctrl-C.
func (l *lines) Interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case s := <-l.signals:
			cancel()
			if s != os.Interrupt {
				l.signals <- s // for Next
			}
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// Close stops listening to signals.
func (l *lines) Close() error {
	signal.Stop(l.signals)
	return nil
}

// quotes begin and end a message of several lines.
const quotes = `"""`

// open reports whether a message that was typed goes on in the next line: it
// begins with quotes that are not closed.
func open(text string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \t"), quotes)
	return ok && !strings.HasSuffix(strings.TrimRight(rest, " \t"), quotes)
}

// unquote returns what is between the quotes of a message, or the message.
func unquote(text string) string {
	rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \t"), quotes)
	if !ok {
		return text
	}
	if inner, ok := strings.CutSuffix(strings.TrimRight(rest, " \t"), quotes); ok {
		return inner
	}
	return text
}
