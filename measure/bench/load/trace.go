package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// TraceRow is a recorded request.
type TraceRow struct {
	At     time.Duration // since the first one
	Input  int           // tokens of the prompt; 0 if there is a text
	Output int           // tokens of the answer
	Prompt string        // the text itself, "" if only its length is known
	Hashes []uint64      // of the prompt's blocks: equal ones at equal places are equal text
}

// Bounds of a trace: files come from elsewhere.
const (
	maxTraceLine = 16 << 20
	maxTraceRows = 10_000_000
	maxTraceSize = 10_000_000 // tokens of one request
)

// traceLine has the names that Mooncake's traces have, and the usual others.
type traceLine struct {
	Timestamp    *float64 `json:"timestamp"` // milliseconds
	Input        *int     `json:"input_length"`
	InputTokens  *int     `json:"input_tokens"`
	PromptTokens *int     `json:"prompt_tokens"`
	Output       *int     `json:"output_length"`
	OutputTokens *int     `json:"output_tokens"`
	Completion   *int     `json:"completion_tokens"`
	Prompt       string   `json:"prompt"`
	Hashes       []uint64 `json:"hash_ids"`
	PrefixHash   *uint64  `json:"prefix_hash"`
}

// ReadTrace reads a trace of JSON lines. A line has a "timestamp" in
// milliseconds, the tokens of the prompt as "input_length" (or "input_tokens"
// or "prompt_tokens") and of the answer as "output_length" ("output_tokens",
// "completion_tokens"). "hash_ids" are the hashes of the prompt's blocks, as in
// Mooncake's traces; a single "prefix_hash" is the hash of the first block;
// "prompt" is a text in place of a length. The rows are sorted by time, which
// begins at 0.
func ReadTrace(r io.Reader) ([]TraceRow, error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxTraceLine)
	var rows []TraceRow
	for n := 1; in.Scan(); n++ {
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		row, err := traceRow(line)
		if err != nil {
			return nil, fmt.Errorf("load: trace: line %d: %w", n, err)
		}
		if len(rows) == maxTraceRows {
			return nil, fmt.Errorf("load: trace: line %d: expected at most %d requests", n, maxTraceRows)
		}
		rows = append(rows, row)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("load: trace: %w", err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("load: trace: expected requests, found none: %w", io.ErrUnexpectedEOF)
	}
	slices.SortStableFunc(rows, func(a, b TraceRow) int { return int(min(max(a.At-b.At, -1), 1)) })
	for i, start := 0, rows[0].At; i < len(rows); i++ {
		rows[i].At -= start
	}
	return rows, nil
}

func traceRow(line []byte) (row TraceRow, err error) {
	var l traceLine
	if err := json.Unmarshal(line, &l); err != nil {
		return row, err
	}
	if l.Timestamp == nil {
		return row, fmt.Errorf("timestamp: expected milliseconds, found none")
	}
	if !(*l.Timestamp >= 0 && *l.Timestamp < 1e12) {
		return row, fmt.Errorf("timestamp: expected milliseconds from 0 to 1e12, found %v", *l.Timestamp)
	}
	row.At = time.Duration(*l.Timestamp * float64(time.Millisecond))
	row.Prompt, row.Hashes = l.Prompt, l.Hashes
	if l.PrefixHash != nil && len(row.Hashes) == 0 {
		row.Hashes = []uint64{*l.PrefixHash}
	}
	if row.Output, err = traceCount("output_length", l.Output, l.OutputTokens, l.Completion); err != nil {
		return row, err
	}
	if row.Prompt == "" {
		row.Input, err = traceCount("input_length", l.Input, l.InputTokens, l.PromptTokens)
	}
	return row, err
}

// traceCount returns the first number that is there.
func traceCount(name string, of ...*int) (int, error) {
	for _, n := range of {
		if n == nil {
			continue
		}
		if *n < 0 || *n > maxTraceSize {
			return 0, fmt.Errorf("%s: expected 0 to %d tokens, found %d", name, maxTraceSize, *n)
		}
		return max(*n, 1), nil
	}
	return 0, fmt.Errorf("%s: expected a number of tokens, found none", name)
}
