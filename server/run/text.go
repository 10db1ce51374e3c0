package run

import (
	"strconv"
	"unicode/utf8"
)

// TokenText is how a token is shown among log-probabilities: its text, or its
// bytes where they are no characters.
func (m *Model) TokenText(id int32) string {
	b := m.tok.Piece(id)
	if utf8.Valid(b) {
		return string(b)
	}
	s := "bytes:"
	for _, c := range b {
		s += `\x` + strconv.FormatInt(int64(c)|0x100, 16)[1:]
	}
	return s
}
