package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"ridge/internal/atomicfile"
)

// Bounds of a history: its entries, and the bytes of one that is kept in the file.
const (
	historyEntries = 1000
	historyBytes   = 64 << 10
)

// history is what was entered before, oldest first. Its file has an entry on each
// line, quoted as Go does if it has more than one line.
type history struct {
	path    string
	entries []string
}

// openHistory reads a history, of which the last entries are kept.
func openHistory(path string) (*history, error) {
	h := &history{path: path}
	if path == "" {
		return h, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return h, nil
	} else if err != nil {
		return nil, fmt.Errorf("console: history: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\r\n")
		if s, err := strconv.Unquote(line); err == nil {
			line = s
		}
		if line != "" {
			h.entries = append(h.entries, line)
		}
	}
	if over := len(h.entries) - historyEntries; over > 0 {
		h.entries = h.entries[over:]
		err = atomicfile.Write(path, func(w io.Writer) error {
			for _, e := range h.entries {
				if _, err := io.WriteString(w, historyLine(e)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return h, err
}

func historyLine(entry string) string {
	if strings.ContainsAny(entry, "\n\r") || strings.ContainsAny(entry[:1], "\"'`") {
		entry = strconv.Quote(entry)
	}
	return entry + "\n"
}

// add appends an entry, in memory and to the file.
func (h *history) add(entry string) error {
	if strings.TrimSpace(entry) == "" || len(h.entries) > 0 && h.entries[len(h.entries)-1] == entry {
		return nil
	}
	h.entries = append(h.entries, entry)
	if h.path == "" || len(entry) > historyBytes {
		return nil
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(historyLine(entry))
	return errors.Join(err, f.Close())
}

// before is the last entry before i that contains part, or -1.
func (h *history) before(i int, part string) int {
	for i--; i >= 0; i-- {
		if strings.Contains(h.entries[i], part) {
			return i
		}
	}
	return -1
}
