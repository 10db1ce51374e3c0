package suite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"ridge/internal/atomicfile"
	"ridge/measure/bench"
)

// Identity is all that a measurement depends on and that is known before it:
// with the same identity it is not done again.
type Identity struct {
	Model   string `json:"model"`
	Source  string `json:"source"` // file, with its size and time, or synthetic weights with their seed
	Test    string `json:"test"`
	Threads int    `json:"n_threads"`
	KV      string `json:"kv"`
	Tier    string `json:"kernels"`
	Repeat  int    `json:"repeat"`
	Peers   string `json:"peers"` // names and commands
	Build   string `json:"build"`
	CPU     string `json:"cpu"`
	Day     string `json:"day"`
}

// Measured is a row that was measured.
type Measured struct {
	Identity Identity      `json:"identity"`
	Seconds  float64       `json:"took_s"` // that it took, with loading and the peers
	Result   *bench.Result `json:"result"`
}

// Kept is a file of measured rows, one JSON object a line. A nil Kept keeps
// nothing.
type Kept struct {
	path  string
	lines []byte
	rows  []Measured
}

// OpenKept reads the file at path and makes it if it is not there.
func OpenKept(path string) (*Kept, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("bench suite: kept results: %w", err)
	}
	k := &Kept{path: path, lines: data}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var m Measured
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("bench suite: kept results: %s: line %d: expected a measured row: %w", path, n, err)
		}
		if m.Result == nil {
			return nil, fmt.Errorf("bench suite: kept results: %s: line %d: result: expected an object, found none", path, n)
		}
		k.rows = append(k.rows, m)
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		k.lines = append(k.lines, '\n')
	}
	if err != nil { // before a row takes minutes that then cannot be written
		if err := k.write(); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// find returns the last row of that identity, nil if there is none.
func (k *Kept) find(id Identity) *Measured {
	if k == nil {
		return nil
	}
	for i := len(k.rows) - 1; i >= 0; i-- {
		if k.rows[i].Identity == id {
			return &k.rows[i]
		}
	}
	return nil
}

// add writes a row to the file.
func (k *Kept) add(m Measured) error {
	if k == nil {
		return nil
	}
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("bench suite: kept results: %w", err)
	}
	k.lines = append(append(k.lines, line...), '\n')
	k.rows = append(k.rows, m)
	return k.write()
}

// write replaces the file whole, so that no line of it is ever half-written.
func (k *Kept) write() error {
	err := atomicfile.Write(k.path, func(w io.Writer) error {
		_, err := w.Write(k.lines)
		return err
	})
	if err != nil {
		return fmt.Errorf("bench suite: kept results: %w", err)
	}
	return nil
}
