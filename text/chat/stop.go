package chat

import "strings"

// StopMatcher finds stop strings in text that arrives in pieces. It gives out
// text as soon as it cannot be the beginning of a stop string. The result
// does not depend on where the pieces are cut: the text stops at the first
// position at which it ends with a stop string; of several that end there,
// the longest counts.
type StopMatcher struct {
	stops   []string
	held    string // may be the beginning of a stop string
	matched string
	stopped bool
}

// NewStopMatcher returns a matcher of the given stop strings. Empty ones are
// ignored.
func NewStopMatcher(stops []string) *StopMatcher {
	m := &StopMatcher{}
	for _, s := range stops {
		if s != "" {
			m.stops = append(m.stops, s)
		}
	}
	return m
}

// Add takes the next piece of text. It returns text that can be given out,
// without the stop string, and whether the text has stopped; from then on
// everything is swallowed.
func (m *StopMatcher) Add(text string) (emit string, stopped bool) {
	if m.stopped {
		return "", true
	}
	if len(m.stops) == 0 {
		return text, false
	}
	if m.held != "" {
		text = m.held + text
	}
	start, end := -1, len(text)+1
	for _, s := range m.stops {
		// Only matches that end before the best one matter.
		if i := strings.Index(text[:min(len(text), end)], s); i >= 0 {
			if i+len(s) < end || i < start {
				start, end = i, i+len(s)
			}
		}
	}
	if start >= 0 {
		m.stopped, m.matched, m.held = true, text[start:end], ""
		return text[:start], true
	}
	n := m.pending(text)
	m.held = text[len(text)-n:]
	return text[:len(text)-n], false
}

// pending is the length of the longest end of text that a stop string begins
// with.
func (m *StopMatcher) pending(text string) int {
	longest := 0
	for _, s := range m.stops {
		for n := min(len(s)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, s[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// Flush returns the text held back, at the end of the input.
func (m *StopMatcher) Flush() string {
	s := m.held
	m.held = ""
	return s
}

// Matched returns the stop string that was found, or "".
func (m *StopMatcher) Matched() string { return m.matched }
