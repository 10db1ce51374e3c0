package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"ridge/hub"
	"ridge/internal/console"
)

// chat reads questions from the terminal until the user leaves.
func (s *session) chat(ctx context.Context, load time.Duration) error {
	dir := filepath.Join(filepath.Dir(hub.DefaultDir()), "chat")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("chat history: %w", err)
	}
	fmt.Fprintf(s.err, "%s is ready. /? for help, Ctrl-D to leave.\n", s.m.Name)
	if s.o.verbose {
		fmt.Fprintf(s.err, "load     %8.3f s\n", load.Seconds())
	}
	con, err := console.Open(console.Options{In: os.Stdin, Out: os.Stdout, History: filepath.Join(dir, "history"), Complete: completeCommand})
	if err != nil {
		return err
	}
	s.chatting = true
	if s.out = con; term.IsTerminal(int(os.Stdout.Fd())) {
		s.err = con
	}
	// The program's context does not tell SIGTERM from SIGINT: the console does.
	return errors.Join(s.converse(context.WithoutCancel(ctx), con, dir), con.Close())
}

// converse answers messages and runs commands.
func (s *session) converse(ctx context.Context, con console.Console, dir string) error {
	for {
		m, err := con.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.Command:
			if done, err := s.command(m.Text, dir); err != nil {
				printError(s.err, err)
			} else if done {
				return nil
			}
		case strings.TrimSpace(m.Text) != "":
			s.answer(ctx, con, m.Text)
		}
	}
}

// answer asks one question of a chat. Ctrl-C stops the answer and not the
// program; errors do not end the chat either.
func (s *session) answer(ctx context.Context, con console.Console, text string) {
	ctx, done := con.Interruptible(ctx)
	defer done()
	switch err := s.ask(ctx, text); {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(s.err, "(stopped)")
	case err != nil:
		printError(s.err, err)
	case s.o.verbose:
		s.report(0)
	}
	fmt.Fprintln(s.out)
}

// completions are the commands that Tab can complete; those that end with a blank
// want something after it.
func completions() []string {
	all := []string{"/set system ", "/set verbose", "/set quiet", "/set overflow stop", "/set overflow shift", "/show info", "/show parameters", "/show system", "/show template", "/save ", "/load ", "/clear", "/bye", "/?"}
	for _, p := range setParams {
		all = append(all, "/set parameter "+p.name+" ")
	}
	return all
}

// completeCommand returns what a command can become by its next word.
func completeCommand(line string) (out []string) {
	words := strings.Count(line, " ")
	for _, c := range completions() {
		if !strings.HasPrefix(c, line) || c == line {
			continue
		}
		// As far as the word that line ends in.
		n, end := 0, len(c)
		for i, r := range c {
			if r == ' ' {
				if n++; n > words {
					end = i + 1
					break
				}
			}
		}
		if s := c[:end]; len(out) == 0 || out[len(out)-1] != s {
			out = append(out, s)
		}
	}
	return out
}
