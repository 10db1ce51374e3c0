package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/chzyer/readline"

	"ridge/hub"
)

// chat reads questions from the terminal until the user leaves.
func (s *session) chat(ctx context.Context, load time.Duration) error {
	dir := filepath.Join(filepath.Dir(hub.DefaultDir()), "chat")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("chat history: %w", err)
	}
	rl, err := readline.NewEx(&readline.Config{
		Prompt: ">>> ", HistoryFile: filepath.Join(dir, "history"), HistoryLimit: 1000,
		AutoComplete: completer(), InterruptPrompt: "^C", EOFPrompt: "",
	})
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer rl.Close()
	// The program's context does not tell SIGTERM from a Ctrl-C in an answer.
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	defer signal.Stop(end)
	left := make(chan struct{})
	defer close(left)
	go func() {
		select {
		case <-end:
			rl.Close() // ends the next or the present Readline
		case <-left:
		}
	}()
	fmt.Fprintf(s.err, "%s is ready. /? for help, Ctrl-D to leave.\n", s.m.Name)
	if s.o.verbose {
		fmt.Fprintf(s.err, "load     %8.3f s\n", load.Seconds())
	}
	for {
		text, err := readMessage(rl)
		switch {
		case errors.Is(err, readline.ErrInterrupt):
			fmt.Fprintln(s.err, "Ctrl-D or /bye leaves.")
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("terminal: %w", err)
		}
		if strings.HasPrefix(text, "/") {
			if done, err := s.command(text, dir); err != nil {
				fmt.Fprintln(s.err, "ridge:", err)
			} else if done {
				return nil
			}
			continue
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		s.answer(ctx, text)
	}
}

// answer asks one question of a chat. Ctrl-C stops the answer and not the
// program; errors do not end the chat either.
func (s *session) answer(ctx context.Context, text string) {
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, os.Interrupt)
	defer signal.Stop(stopped)
	// The program's own context also ends with Ctrl-C: an answer must not.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		select {
		case <-stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	switch err := s.ask(ctx, text); {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(s.err, "(stopped)")
	case err != nil:
		fmt.Fprintln(s.err, "ridge:", err)
	case s.o.verbose:
		s.report(0)
	}
	fmt.Fprintln(s.out)
}

const quotes = `"""`

// readMessage reads a line, or the lines between a pair of """.
func readMessage(rl *readline.Instance) (string, error) {
	rl.SetPrompt(">>> ")
	line, err := rl.Readline()
	rest, multi := strings.CutPrefix(strings.TrimSpace(line), quotes)
	if err != nil || !multi {
		return line, err
	}
	if text, closed := strings.CutSuffix(rest, quotes); closed {
		return text, nil
	}
	lines := []string{rest}
	rl.SetPrompt("... ")
	for {
		line, err := rl.Readline()
		if err != nil {
			return "", err
		}
		text, closed := strings.CutSuffix(strings.TrimRight(line, " \t"), quotes)
		if closed {
			return strings.Join(append(lines, text), "\n"), nil
		}
		lines = append(lines, line)
	}
}

func completer() readline.AutoCompleter {
	var params []readline.PrefixCompleterInterface
	for _, p := range setParams {
		params = append(params, readline.PcItem(p.name))
	}
	return readline.NewPrefixCompleter(
		readline.PcItem("/set", readline.PcItem("system"), readline.PcItem("parameter", params...), readline.PcItem("verbose"), readline.PcItem("quiet")),
		readline.PcItem("/show", readline.PcItem("info"), readline.PcItem("parameters"), readline.PcItem("system"), readline.PcItem("template")),
		readline.PcItem("/save"), readline.PcItem("/load"), readline.PcItem("/clear"), readline.PcItem("/bye"), readline.PcItem("/?"),
	)
}
