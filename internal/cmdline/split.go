// Package cmdline reads commands that users give as one string.
package cmdline

import (
	"fmt"
	"strings"
)

// Split splits a command at spaces outside of quotes.
func Split(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, in := rune(0), false
	for _, c := range s {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, in = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if in {
				words = append(words, word.String())
			}
			word.Reset()
			in = false
		default:
			word.WriteRune(c)
			in = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("expected a closing %c, found the end", quote)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}
