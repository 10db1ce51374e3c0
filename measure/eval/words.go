package eval

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// indexWord returns where word first is in s, not as a part of a longer word or
// number; -1 if it is not.
func indexWord(s, word string) int {
	for from := 0; ; {
		i := strings.Index(s[from:], word)
		if i < 0 {
			return -1
		}
		i += from
		if !wordEnd(s[:i]) && !wordStart(s[i+len(word):]) {
			return i
		}
		from = i + 1
	}
}

// wordEnd reports whether what follows s would go on with a word or number.
func wordEnd(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	if unicode.IsLetter(r) || unicode.IsDigit(r) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(s[:len(s)-n])
	return (r == '.' || r == ',') && unicode.IsDigit(before)
}

// wordStart reports whether s goes on with the word or number before it.
func wordStart(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	if unicode.IsLetter(r) || unicode.IsDigit(r) {
		return true
	}
	next, _ := utf8.DecodeRuneInString(s[n:])
	return (r == '.' || r == ',') && unicode.IsDigit(next)
}

// readLines calls do for each line of r that is not empty; at least one must be
// there. name is that of the file, for errors.
func readLines(r io.Reader, name string, do func(line []byte) error) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	n, found := 0, 0
	for in.Scan() {
		n++
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		if found++; found > maxQuestions {
			return fmt.Errorf("eval: %s: expected at most %d questions, found more", name, maxQuestions)
		}
		if err := do(line); err != nil {
			return fmt.Errorf("eval: %s: line %d: %w", name, n, err)
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("eval: %s: line %d: %w", name, n+1, err)
	}
	if found == 0 {
		return fmt.Errorf("eval: %s: expected at least one question, found none", name)
	}
	return nil
}
