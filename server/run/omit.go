package run

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ridge/text/chat"
)

// billingHeader matches the line with which Claude Code begins its system
// messages. It is for the accounts of a server and no text for a model, and it
// changes with each conversation, so that none would find the others' prompt
// computed.
const billingHeader = "x-anthropic-billing-header:.*"

// omission is what lines of system messages are left out of prompts. A nil one
// leaves nothing out.
type omission struct {
	patterns []string
	lines    []*regexp.Regexp
}

// newOmission returns one of patterns, regular expressions that a whole line
// matches, and billingHeader. "none" forgets those before it.
func newOmission(patterns []string) (*omission, error) {
	var o omission
	for _, p := range append([]string{billingHeader}, patterns...) {
		if p == "none" {
			o = omission{}
			continue
		}
		re, err := regexp.Compile(`^(?:` + p + `)\r?$`)
		if err != nil {
			return nil, fmt.Errorf("expected none or a regular expression, found %q: %w", p, err)
		}
		o.patterns, o.lines = append(o.patterns, p), append(o.lines, re)
	}
	return &o, nil
}

// from returns messages without the lines that o leaves out, and the patterns
// that have matched. A message of which nothing is left is left out, too.
func (o *omission) from(in []chat.Message) (out []chat.Message, matched []string) {
	if o == nil || len(o.lines) == 0 {
		return in, nil
	}
	out = in
	for i := len(in) - 1; i >= 0; i-- {
		if in[i].Role != "system" {
			continue
		}
		text, found := o.cut(in[i].Content)
		if len(found) == 0 {
			continue
		}
		if len(matched) == 0 {
			out = slices.Clone(in) // the caller keeps what it has
		}
		for _, p := range found {
			if !slices.Contains(matched, p) {
				matched = append(matched, p)
			}
		}
		if out[i].Content = text; strings.TrimSpace(text) == "" && len(out) > 1 {
			out = slices.Delete(out, i, i+1)
		}
	}
	return out, matched
}

// cut returns text without the lines that o leaves out, and the patterns that
// have matched.
func (o *omission) cut(text string) (rest string, found []string) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		k := slices.IndexFunc(o.lines, func(re *regexp.Regexp) bool { return re.MatchString(strings.TrimSuffix(line, "\n")) })
		if k < 0 {
			b.WriteString(line)
			continue
		}
		if p := o.patterns[k]; !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	return b.String(), found
}
