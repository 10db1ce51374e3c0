package main

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"ridge/hub"
)

// lockedBuffer is written by the bars' goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// Whatever state bars are in, closing comes back.
func TestProgressCloses(t *testing.T) {
	var out lockedBuffer
	p := &progress{w: &out, tty: true, text: hub.TextProgress(&out)}
	finished, failed, open := p.hub().Start("finished", 10), p.hub().Start("failed", 10), p.hub().Start("open", -1)
	finished.Add(10)
	finished.Done(nil)
	failed.Set(3)
	failed.Done(errors.New("broken"))
	open.Add(5)
	p.note("a remark")
	p.count("windows", 3).Set(1)
	load := p.load("model")
	load(1, 2) // too early for a bar
	done := make(chan bool)
	go func() { p.close(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("close does not return")
	}
}

func TestProgressWithoutTerminal(t *testing.T) {
	var out lockedBuffer
	p := &progress{w: &out, text: hub.TextProgress(&out)}
	b := p.hub().Start("file", 10)
	b.Add(10)
	b.Done(nil)
	p.note("a remark")
	p.close()
	if got := out.b.String(); !strings.Contains(got, "a remark\n") || strings.Contains(got, "\x1b") {
		t.Errorf("printed %q", got)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"500": 500, "2K": 2048, "1.5M": 1.5 * (1 << 20), "1GB": 1 << 30, "3MiB": 3 << 20} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "fast", "-1", "0", "2X", "1Kilo"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("parseSize(%q) = %d, want an error", text, got)
		}
	}
}
