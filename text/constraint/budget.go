package constraint

import (
	"math"
	"strings"
	"unicode/utf8"

	"ridge/text/chat"
	"ridge/text/tokenizer"
)

// Budget returns what makes the maskers that close the reasoning of answers to
// prompt after n tokens: then the tokens that close it are the only ones. nil:
// the model has no reasoning that could be closed.
func (c *Compiler) Budget(n int, prompt string) func() Masker {
	return Budget(n, c.tok, c.syntax, prompt)
}

// Budget is Compiler.Budget for the model with the tokenizer t and the syntax s.
func Budget(n int, t *tokenizer.Tokenizer, s chat.Syntax, prompt string) func() Masker {
	open, closing, forced := s.Reasoning()
	if closing == "" {
		return nil
	}
	var ids []int32
	for _, text := range forced { // each for itself: a tag is a token of its own
		ids = t.Encode(ids, text, tokenizer.EncodeOptions{ParseSpecial: true})
	}
	return func() Masker {
		b := &budget{left: max(n, 0), open: open, closing: closing, forced: ids, again: s.Harmony(), dec: t.NewDecoder()}
		b.dec.Special = true
		if s.Thinks(prompt) {
			b.enter()
		}
		return b
	}
}

// budget counts the tokens of reasoning and forces its end.
type budget struct {
	open, closing string
	forced        []int32 // the tokens that close a section
	again         bool    // sections may follow each other
	left          int

	dec   *tokenizer.Decoder
	state budgetState
	seen  string // text since the state began, or its end
	at    int    // in forced
}

type budgetState uint8

const (
	outside budgetState = iota // a section may begin
	inside
	forcing
	over
)

func (b *budget) enter() {
	b.state, b.seen = inside, ""
	if b.left == 0 {
		b.state, b.at = forcing, 0
	}
}

func (b *budget) leave() {
	b.seen = ""
	if b.state = over; b.again {
		b.state = outside
	}
}

// Mask forbids all tokens but the one that is forced, if one is.
func (b *budget) Mask(logits []float32) {
	if b.state != forcing || int(b.forced[b.at]) >= len(logits) {
		return
	}
	keep := logits[b.forced[b.at]]
	for i := range logits {
		logits[i] = float32(math.Inf(-1))
	}
	logits[b.forced[b.at]] = keep
}

// Free reports whether any token may follow, as long as no section begins: then
// what another masker forces is not in the way.
func (b *budget) Free() bool { return b.state == outside || b.state == over }

// Accept takes the next token of the answer.
func (b *budget) Accept(token int32) error {
	switch b.state {
	case over:
		return nil
	case forcing:
		if b.at++; b.at == len(b.forced) {
			b.leave()
		}
		return nil
	}
	b.seen += b.dec.Add(token)
	if b.state == outside {
		if b.again {
			if strings.HasSuffix(b.seen, b.open) {
				b.enter()
			}
			b.trim(len(b.open))
			return nil
		}
		switch text := strings.TrimLeft(b.seen, " \r\n\t"); {
		case strings.HasPrefix(text, b.open):
			b.enter()
		case !strings.HasPrefix(b.open, text):
			b.leave()
		}
		return nil
	}
	b.left--
	switch {
	case strings.Contains(b.seen, b.closing):
		b.leave()
	case b.left <= 0 && utf8.ValidString(b.seen[max(0, len(b.seen)-utf8.UTFMax):]):
		b.state, b.at = forcing, 0
	case b.left <= 0 && b.left < -utf8.UTFMax:
		b.state, b.at = forcing, 0
	}
	b.trim(len(b.closing))
	return nil
}

// trim keeps of the text seen what a tag of n bytes may begin in.
func (b *budget) trim(n int) {
	if keep := n + 64; len(b.seen) > 2*keep {
		b.seen = strings.Clone(b.seen[len(b.seen)-keep:])
	}
}
