package console

import (
	"fmt"
	"strings"
)

// What is pasted is shown by a label if it is longer than this.
const (
	labelLines = 50
	labelBytes = 8 << 10
)

// maxLines is how many lines the text area holds.
const maxLines = 10000

// pastes are the long pieces of text in a message, which the editor shows by
// labels.
type pastes struct {
	labels, texts []string
}

// insert returns how the editor shows a text.
func (p *pastes) insert(text string) string {
	n := strings.Count(text, "\n") + 1
	if n <= labelLines && len(text) <= labelBytes {
		return shown(text)
	}
	label := fmt.Sprintf("[text %d: %d lines, %d bytes]", len(p.labels)+1, n, len(text))
	p.labels, p.texts = append(p.labels, label), append(p.texts, text)
	return label
}

// expand replaces the labels in a message.
func (p *pastes) expand(message string) string {
	var pairs []string
	for i, label := range p.labels {
		pairs = append(pairs, label, p.texts[i])
	}
	return strings.NewReplacer(pairs...).Replace(message)
}

// The text area has no tabs: it shows them as tabMark, and a tabMark in a text as
// noCharacter, which no text has.
const (
	tabMark     = "\u2409"
	noCharacter = "\uffff"
)

var (
	toShown = strings.NewReplacer(noCharacter, "", tabMark, noCharacter, "\t", tabMark)
	toMeant = strings.NewReplacer(tabMark, "\t", noCharacter, tabMark)
)

// shown is a text as the text area has it, meant the text again.
func shown(text string) string { return toShown.Replace(text) }
func meant(area string) string { return toMeant.Replace(area) }
