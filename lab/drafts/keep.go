package drafts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Keep is a file of what was measured, a JSON object a line: answers without guesses,
// which all settings share, and finished pairs, which are not measured again. Nil keeps
// nothing.
type Keep struct {
	file  *os.File
	plain map[string][]int32
	pairs map[string]*pair
}

// kept is a line of the file.
type kept struct {
	Plain  string  `json:"plain,omitempty"` // whose answer it is
	Tokens []int32 `json:"tokens,omitempty"`
	Pair   string  `json:"pair,omitempty"` // which it is
	Is     *pair   `json:"is,omitempty"`
}

// OpenKeep reads a file, and makes it if there is none. A last line that was not written
// to its end is dropped.
func OpenKeep(path string) (*Keep, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("drafts: %w", err)
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	k := &Keep{plain: map[string][]int32{}, pairs: map[string]*pair{}}
	n := 0
	for line := range bytes.Lines(data[:whole]) {
		n++
		var x kept
		err := json.Unmarshal(line, &x)
		switch {
		case err != nil:
			return nil, fmt.Errorf("drafts: %s: line %d: expected an answer or a pair: %w", path, n, err)
		case x.Plain != "":
			k.plain[x.Plain] = x.Tokens
		case x.Pair != "" && x.Is != nil:
			k.pairs[x.Pair] = x.Is
		default:
			return nil, fmt.Errorf("drafts: %s: line %d: expected plain or pair, found neither", path, n)
		}
	}
	if k.file, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return nil, fmt.Errorf("drafts: %w", err)
	}
	if err = k.file.Truncate(int64(whole)); err == nil {
		_, err = k.file.Seek(int64(whole), io.SeekStart)
	}
	if err != nil {
		k.file.Close()
		return nil, fmt.Errorf("drafts: %w", err)
	}
	return k, nil
}

// Close closes the file.
func (k *Keep) Close() error {
	if k == nil {
		return nil
	}
	return k.file.Close()
}

// put writes a line.
func (k *Keep) put(x kept) error {
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	_, err = k.file.Write(append(b, '\n'))
	return err
}

// answer returns a kept answer.
func (k *Keep) answer(id string) (tokens []int32, known bool) {
	if k == nil {
		return nil, false
	}
	tokens, known = k.plain[id]
	return tokens, known
}

func (k *Keep) putAnswer(id string, tokens []int32) error {
	if k == nil {
		return nil
	}
	k.plain[id] = tokens
	return k.put(kept{Plain: id, Tokens: tokens})
}

// pair returns a kept pair, nil for none.
func (k *Keep) pair(id string) *pair {
	if k == nil {
		return nil
	}
	return k.pairs[id]
}

func (k *Keep) putPair(id string, p *pair) error {
	if k == nil {
		return nil
	}
	k.pairs[id] = p
	return k.put(kept{Pair: id, Is: p})
}

// idOf returns a short name of what something depends on.
func idOf(parts ...any) string {
	b, err := json.Marshal(parts)
	if err != nil {
		panic(err) // numbers and texts
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}
