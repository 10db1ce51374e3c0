package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"ridge/hub"
	"ridge/measure/bench"
	"ridge/measure/bench/suite"
)

// rowRunner measures a row by a process of its own: the kernels are picked when
// a process starts, and what one row leaves in memory does not touch the next.
type rowRunner struct{ self string }

// stopTime is how long a row may take to stop its peers after Ctrl-C.
const stopTime = 10 * time.Second

func (r *rowRunner) measure(ctx context.Context, c *suite.Case, path string, repeat int, peers []string) (*bench.Result, error) {
	p := exec.CommandContext(ctx, r.self, rowArgs(c, path, repeat, peers)...)
	p.Env = os.Environ()
	if c.Tier != "" {
		p.Env = append(p.Env, "RIDGE_CPU="+c.Tier)
	}
	// Not killed at once: it ends the program that it measures first.
	p.Cancel = func() error {
		if p.Process.Signal(os.Interrupt) == nil {
			return nil
		}
		return p.Process.Kill()
	}
	p.WaitDelay = stopTime
	var out, stderr bytes.Buffer
	p.Stdout, p.Stderr = &out, &stderr
	if err := p.Run(); err != nil {
		text := strings.TrimSpace(stderr.String())
		return nil, fmt.Errorf("%w: %s", err, strings.TrimPrefix(text[strings.LastIndexByte(text, '\n')+1:], "ridge: "))
	}
	var results []*bench.Result
	if err := json.Unmarshal(out.Bytes(), &results); err != nil {
		return nil, err
	}
	if len(results) != 1 || results[0] == nil {
		return nil, fmt.Errorf("expected one result, found %d", len(results))
	}
	return results[0], nil
}

// rowArgs are the arguments of ridge for a row. Activations are as exact as those
// of the programs beside it.
func rowArgs(c *suite.Case, path string, repeat int, peers []string) []string {
	n := strconv.Itoa
	w := c.Work
	args := []string{"bench", "-o", "json", "-r", n(repeat), "-t", n(c.Threads), "--kv", strings.ToLower(c.KV.String()), "--act", "int8", "-d", n(w.Depth), "--npl", n(w.Seqs)}
	if w.Prompt > 0 && w.Gen > 0 {
		args = append(args, "-p", "0", "-n", "0", "--pg", n(w.Prompt)+","+n(w.Gen))
	} else {
		args = append(args, "-p", n(w.Prompt), "-n", n(w.Gen))
	}
	for _, p := range peers {
		args = append(args, "--peer", p)
	}
	return append(args, "--", path)
}

// buildText names this program: its version, and a checksum of the file, which
// differs where the version does not.
func buildText(self string) (string, error) {
	f, err := os.Open(self)
	if err != nil {
		return "", fmt.Errorf("bench suite: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("bench suite: %w", err)
	}
	return fmt.Sprintf("%s %x", version(), h.Sum(nil)[:6]), nil
}

// rowProgress prints a line before and after each row, and shows a bar on a
// terminal.
func rowProgress(bars *progress, total int) func(suite.Row) {
	var bar hub.Bar
	var began time.Time
	return func(r suite.Row) {
		if bars.tty && bar == nil {
			bar = bars.count("rows", total)
			bar.Set(int64(r.N - 1))
		}
		where := fmt.Sprintf("[%d/%d] %s", r.N, r.Of, r.Name())
		switch {
		case r.Measured != nil:
			bars.note(fmt.Sprintf("%s: %s; %.1f s", where, resultText(r.Measured.Result), r.Measured.Seconds))
		case r.LeftOut != "":
			bars.note(where + " is left out: " + r.LeftOut)
		case r.Err != nil:
			bars.note(fmt.Sprintf("%s failed after %.1f s: %v", where, time.Since(began).Seconds(), r.Err))
		default:
			began = time.Now()
			bars.note(where)
			return
		}
		if bar != nil {
			bar.Set(int64(r.N))
		}
	}
}

// resultText is "256 tok/s, 3.05 × llama.cpp".
func resultText(r *bench.Result) string {
	text := fmt.Sprintf("%.1f tok/s", r.Speed.Median)
	for _, p := range r.Peers {
		text += fmt.Sprintf(", %.2f × %s", p.Ratio, p.Name)
	}
	return text
}
