package tokenizer

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// Bounds of a regular expression from a file. The engine backtracks, so time
// and memory have limits; what is left of a piece when they are reached is
// taken as not matching.
const (
	maxPatternLen = 1 << 14
	maxMatchTime  = 2 * time.Second
	maxBacktrack  = 1 << 20
)

// regex is a pattern that is not among the hand-written ones.
type regex struct {
	re *regexp2.Regexp
}

// compileRegex compiles a pattern in the syntax of Oniguruma, which published
// tokenizers use: $ and ^ hold at line breaks, and possessive quantifiers are
// known.
func compileRegex(pattern string) (*regex, error) {
	if len(pattern) > maxPatternLen {
		return nil, fmt.Errorf("pattern of %d bytes, at most %d are supported", len(pattern), maxPatternLen)
	}
	re, err := regexp2.Compile(atomic(pattern), regexp2.Multiline, regexp2.OptionMaxBacktrackingStackSize(maxBacktrack))
	if err != nil {
		return nil, fmt.Errorf("pattern %.60q: %.200q", pattern, err.Error())
	}
	re.MatchTimeout = maxMatchTime
	return &regex{re}, nil
}

// split appends the matches of s and the gaps between them to dst, in order.
func (r *regex) split(dst []part, s string) []part {
	// The engine reports positions in bytes of valid UTF-8 only.
	clean := s
	if !utf8.ValidString(s) {
		clean = maskInvalid(s)
	}
	found, _ := r.re.FindAllStringIndex(clean, -1)
	at := 0
	for _, m := range found {
		lo, hi := m[0], m[1]
		if lo < at || hi > len(s) {
			continue
		}
		if lo > at {
			dst = append(dst, part{at, lo, false})
		}
		if hi > lo {
			dst = append(dst, part{lo, hi, true})
		}
		at = hi // an empty match only splits
	}
	if at < len(s) {
		dst = append(dst, part{at, len(s), false})
	}
	return dst
}

// maskInvalid replaces each invalid byte of s by one that patterns treat much
// like U+FFFD and that keeps positions: the control character SUB.
func maskInvalid(s string) string {
	b := []byte(s)
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			b[i] = 0x1A
		}
		i += n
	}
	return string(b)
}

// atomic rewrites possessive quantifiers, X?+ X*+ X++, as atomic groups,
// (?>X?) and so on, which the engine knows.
func atomic(pattern string) string {
	if !strings.Contains(pattern, "?+") && !strings.Contains(pattern, "*+") && !strings.Contains(pattern, "++") {
		return pattern
	}
	var out strings.Builder
	var open []int // where the groups that are open start in out
	last := -1     // where the last item starts in out, -1: none
	emit := func(s string) { out.WriteString(s) }
	wrap := func(from int, quant string) {
		all := out.String()
		out.Reset()
		emit(all[:from])
		emit("(?>" + all[from:] + quant + ")")
	}
	for i := 0; i < len(pattern); {
		switch c := pattern[i]; c {
		case '\\':
			last = out.Len()
			n := 2
			if i+2 < len(pattern) && (pattern[i+1]|0x20) == 'p' && pattern[i+2] == '{' {
				if end := strings.IndexByte(pattern[i:], '}'); end > 0 {
					n = end + 1
				}
			}
			n = min(n, len(pattern)-i)
			emit(pattern[i : i+n])
			i += n
		case '[':
			last = out.Len()
			n := classLen(pattern[i:])
			emit(pattern[i : i+n])
			i += n
		case '(':
			open = append(open, out.Len())
			last = -1
			emit("(")
			i++
		case ')':
			last = -1
			if len(open) > 0 {
				last = open[len(open)-1]
				open = open[:len(open)-1]
			}
			emit(")")
			i++
		case '?', '*', '+':
			if last >= 0 && i+1 < len(pattern) && pattern[i+1] == '+' {
				wrap(last, pattern[i:i+1])
				i += 2
				continue
			}
			emit(pattern[i : i+1])
			i++
		default:
			last = out.Len()
			_, n := utf8.DecodeRuneInString(pattern[i:])
			emit(pattern[i : i+n])
			i += n
		}
	}
	return out.String()
}

// classLen returns the length of the character class that s starts with.
func classLen(s string) int {
	i := 1
	if i < len(s) && s[i] == '^' {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++
	}
	for i < len(s) && s[i] != ']' {
		if s[i] == '\\' {
			i++
		}
		i++
	}
	return min(i+1, len(s))
}
