package chat

import "ridge/text/tokenizer"

// AnswerOptions say how the tokens of an answer become text.
type AnswerOptions struct {
	Syntax Syntax
	Parse  *ParseOptions // look for reasoning and calls; nil: all is text
	// Marks are the control tokens that the parser wants to see, see
	// [Syntax.MarkTokens]. Others are not written out, unless Special is set.
	Marks   map[int32]bool
	Special bool

	Stops       []string // texts that end the answer
	IncludeStop bool     // the one that ended it stays in the text
	MinTokens   int      // a stop text is text like any other until so many tokens have come
	OneCall     bool     // the answer ends after one call
}

// Answer turns the tokens of one answer into its parts, as they come: the way
// back from tokens to messages. Characters that are not complete, and what may
// be the beginning of a stop text or of a call, are held back. Close must be
// called in the end. It is used by one goroutine.
type Answer struct {
	o      AnswerOptions
	dec    *tokenizer.Decoder
	stop   *StopMatcher
	parser *Parser // nil: all is text
	tokens int
	calls  int
	ended  bool
	added  string
}

// NewAnswer returns the parts of an answer whose tokens are those of t.
func NewAnswer(t *tokenizer.Tokenizer, o AnswerOptions) *Answer {
	a := &Answer{o: o, dec: t.NewDecoder(), stop: NewStopMatcher(o.Stops)}
	if o.Parse != nil {
		a.parser = NewParser(o.Syntax, *o.Parse)
	}
	return a
}

// Add takes the next token. It returns what is certain now, and whether the
// answer ends here: by a stop text, or by the one call that was wanted.
func (a *Answer) Add(token int32) (parts []Part, ended bool) {
	if a.ended {
		return nil, true
	}
	a.tokens++
	a.dec.Special = a.o.Special || a.parser != nil && a.o.Marks[token]
	text, stopped := a.dec.Add(token), false
	if a.tokens > a.o.MinTokens {
		text, stopped = a.stop.Add(text)
	}
	if stopped && a.o.IncludeStop {
		text += a.stop.Matched()
	}
	a.added = text
	parts = a.add(text)
	if stopped || a.o.OneCall && endsCall(parts) {
		return append(parts, a.end()...), true
	}
	return parts, false
}

// End returns what was held back, when no more tokens come.
func (a *Answer) End() []Part { return a.finish(false) }

// Cut is End for an answer that was cut off, by a limit of its tokens: of marks
// and calls that had only begun nothing is given out.
func (a *Answer) Cut() []Part { return a.finish(true) }

func (a *Answer) finish(cut bool) []Part {
	if a.ended {
		return nil
	}
	text, stopped := a.stop.Add(a.dec.Flush())
	if !stopped {
		text += a.stop.Flush()
	}
	parts := a.add(text)
	if a.parser != nil && cut && !stopped {
		a.ended = true
		return append(parts, a.count(a.parser.Cut())...)
	}
	return append(parts, a.end()...)
}

func (a *Answer) end() []Part {
	a.ended = true
	if a.parser == nil {
		return nil
	}
	return a.count(a.parser.Flush())
}

// Close gives the answer up. It may be called more than once.
func (a *Answer) Close() {
	a.ended = true
	if a.parser != nil {
		a.parser.Close()
	}
}

// Stopped returns the stop text that ended the answer, or "".
func (a *Answer) Stopped() string { return a.stop.Matched() }

// Added returns the text that the last token added, before it was taken apart.
func (a *Answer) Added() string { return a.added }

// Calls returns how many calls of tools were found.
func (a *Answer) Calls() int { return a.calls }

// Thinking reports whether the text that comes next is reasoning, as far as is
// known.
func (a *Answer) Thinking() bool { return a.parser != nil && a.parser.Thinking() }

func (a *Answer) add(text string) []Part {
	if a.parser != nil {
		return a.count(a.parser.Add(text))
	}
	if text == "" {
		return nil
	}
	return []Part{{Kind: PartText, Text: text}}
}

func (a *Answer) count(parts []Part) []Part {
	for _, p := range parts {
		if p.Kind == PartCall {
			a.calls++
		}
	}
	return parts
}

func endsCall(parts []Part) bool {
	for _, p := range parts {
		if p.Kind == PartCallEnd {
			return true
		}
	}
	return false
}

// MarkTokens returns the control tokens of t that a parser of s wants to see.
func (s Syntax) MarkTokens(t *tokenizer.Tokenizer) map[int32]bool {
	marks := map[int32]bool{}
	for _, text := range s.Marks() {
		if id, ok := t.ID(text); ok && t.IsControl(id) {
			marks[id] = true
		}
	}
	return marks
}

// EndTokens returns the tokens of t that end an answer in this syntax.
func (s Syntax) EndTokens(t *tokenizer.Tokenizer) []int32 {
	var ends []int32
	for _, id := range t.Ends() {
		if !s.harmony || string(t.Piece(id)) != "<|end|>" {
			ends = append(ends, id)
		}
	}
	return ends
}
