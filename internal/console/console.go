// Package console is a conversation of a program with a person at a terminal:
// messages come in, text goes out, and each can happen while the other does.
package console

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// Message is what a person entered.
type Message struct {
	Text string
	// Command is true if it begins with a slash that was typed. A slash that was
	// pasted is text.
	Command bool
}

// Console is a terminal that a person reads and writes. What is written to it is
// text: control characters do not reach the terminal. Next, Interruptible and
// Close are for one goroutine, Write for any.
type Console interface {
	io.Writer
	// Next returns the next message; io.EOF when the person leaves.
	Next() (Message, error)
	// Interruptible returns a context that ends with ctx or when the person presses
	// Ctrl-C, and a function to call when nothing is left to interrupt.
	Interruptible(ctx context.Context) (context.Context, context.CancelFunc)
	// Close leaves the terminal as it was.
	Close() error
}

// Options say what a console has.
type Options struct {
	In, Out *os.File
	// History is the file in which messages are kept, "" for none.
	History string
	// Complete returns what the beginning of a command can become, whole lines.
	Complete func(line string) []string
}

// The prompts, of the first line of a message and of others.
const (
	prompt     = ">>> "
	promptMore = "... "
)

// hint is what Ctrl-C says when there is nothing to stop.
const hint = "Ctrl-D or /bye leaves."

// Open takes a terminal over. Where In or Out is none that can move its cursor, it
// reads lines and edits nothing.
func Open(o Options) (Console, error) {
	if o.Complete == nil {
		o.Complete = func(string) []string { return nil }
	}
	if !term.IsTerminal(int(o.In.Fd())) || !term.IsTerminal(int(o.Out.Fd())) || os.Getenv("TERM") == "dumb" {
		return openLines(o), nil
	}
	h, err := openHistory(o.History)
	if err != nil {
		return nil, err
	}
	return openScreen(o, h), nil
}

// terminalError is what went wrong with the terminal itself.
func terminalError(err error) error { return fmt.Errorf("console: terminal: %w", err) }
