package chat

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strings"
)

// PartKind says what a piece of an answer is.
type PartKind int

// The kinds of Part.
const (
	PartText      PartKind = iota // text for the user
	PartReasoning                 // the model's thinking
	PartCall                      // a tool call begins: Name, and ID if the model wrote one
	PartArguments                 // Text is the next piece of the call's arguments, JSON
	PartCallEnd                   // the call is over; Text is all that the model wrote for it
	partWait                      // the parser has read all of its input
)

// Part is a piece of an answer, in the order in which the model wrote it.
type Part struct {
	Kind     PartKind
	Text     string
	Name, ID string
	// Valid is set in a PartCallEnd whose arguments are a JSON object. If it is
	// not set, a caller that has not shown the call yet can show Text instead,
	// which is "" for a call that was cut off.
	Valid bool
}

// ParseOptions say what to look for in an answer.
type ParseOptions struct {
	// Tools are the tools that the model was offered, as in Input. Without
	// them no calls are looked for.
	Tools []json.RawMessage
	// Prompt is the rendered prompt, or its end: it may have begun the
	// reasoning section or the answer's header.
	Prompt string
	// KeepReasoning leaves reasoning and its tags in the text.
	KeepReasoning bool
	// Continue: the prompt ends with text of the answer, which goes on.
	Continue bool
	// OnlyCalls: the text is known to be nothing but calls (a grammar held
	// the model to them), which may lack their tags.
	OnlyCalls bool
}

// Parser finds the reasoning and the tool calls in an answer that arrives in
// pieces. What it finds does not depend on where the pieces are cut, and a
// text that only resembles a call stays text: there are no errors. Flush (or
// Close) must be called in the end. A Parser is used by one goroutine.
type Parser struct {
	syn   Syntax
	o     ParseOptions
	tools toolSet

	buf     []byte   // input not dropped yet
	pos     int      // what is before is consumed
	openers []opener // marks that are looked for
	drops   bool     // the opener was no call but a mark that is left out
	keep    int      // start of what may have to be read again, or -1
	eof     bool
	closed  bool

	kind     PartKind // of text that is no call: PartReasoning while the reasoning is not over
	cut      bool     // the answer was cut off
	starved  bool     // the parser wanted more than there was
	space    []byte   // white space that may turn out to be the end of the text
	failures int      // texts that resembled calls and were none
	call     []byte   // arguments of the call under way
	inCall   bool
	noArgs   bool // the call's tool takes none
	thinking bool
	calls    int

	yield func(Part) bool
	next  func() (Part, bool)
	stop  func()
}

// maxFailures bounds the work on a text full of what resembles calls.
const maxFailures = 64

// NewParser returns a parser for one answer in the given syntax.
func NewParser(s Syntax, o ParseOptions) *Parser {
	p := &Parser{syn: s, o: o, keep: -1}
	p.tools.read(o.Tools)
	if !o.KeepReasoning {
		p.openers = s.drops
	} else {
		p.openers = slices.DeleteFunc(slices.Clone(s.drops), func(d opener) bool { return strings.Contains(d.mark, "channel") })
	}
	if len(p.tools) > 0 {
		p.openers = append(slices.Clip(s.openers), p.openers...)
	}
	p.next, p.stop = iter.Pull(func(yield func(Part) bool) {
		p.yield = yield
		p.answer()
	})
	return p
}

// Add takes the next piece of the answer and returns what is certain now.
func (p *Parser) Add(text string) []Part {
	if text == "" || p.eof {
		return nil
	}
	p.buf = append(p.buf, text...)
	return p.run(nil)
}

// Flush returns the rest, at the end of the answer.
func (p *Parser) Flush() []Part {
	p.eof = true
	parts := p.run(nil)
	p.Close()
	return parts
}

// Cut is Flush for an answer that was cut off: of a call that had only begun
// nothing is given out.
func (p *Parser) Cut() []Part {
	p.cut = true
	return p.Flush()
}

// Close gives up the parser. It may be called more than once.
func (p *Parser) Close() {
	p.eof, p.closed = true, true
	p.stop()
}

// Thinking reports whether the text that comes next is reasoning, as far as
// is known.
func (p *Parser) Thinking() bool { return p.thinking }

func (p *Parser) run(parts []Part) []Part {
	for {
		part, ok := p.next()
		if !ok || part.Kind == partWait {
			return parts
		}
		// Neighbouring pieces of the same kind are one.
		if n := len(parts); n > 0 && parts[n-1].Kind == part.Kind && part.Kind <= PartArguments && part.Kind != PartCall {
			parts[n-1].Text += part.Text
			continue
		}
		parts = append(parts, part)
	}
}

func (p *Parser) emit(part Part) {
	if !p.closed && !p.yield(part) {
		p.closed, p.eof = true, true
	}
}

// more waits for more input. It returns false at the end of the text.
func (p *Parser) more() bool {
	if p.eof {
		p.starved = true
		return false
	}
	cut := p.pos
	if p.keep >= 0 {
		cut = min(cut, p.keep)
	}
	if cut > 1024 && cut > len(p.buf)/2 {
		p.buf = p.buf[:copy(p.buf, p.buf[cut:])]
		p.pos -= cut
		if p.keep >= 0 {
			p.keep -= cut
		}
	}
	n := len(p.buf)
	p.emit(Part{Kind: partWait})
	if len(p.buf) > n || !p.eof {
		return true
	}
	p.starved = true
	return false
}

// rest is the input that has arrived and is not consumed.
func (p *Parser) rest() []byte { return p.buf[p.pos:] }

// peek returns the next byte, or -1 at the end.
func (p *Parser) peek() int { return p.ahead(0) }

// accept consumes lit if it comes next.
func (p *Parser) accept(lit string) bool {
	if !p.hasAt(0, lit) {
		return false
	}
	p.pos += len(lit)
	return true
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// skipSpace consumes white space.
func (p *Parser) skipSpace() {
	for {
		c := p.peek()
		if c < 0 || !isSpace(byte(c)) {
			return
		}
		p.pos++
	}
}

// until consumes text up to the first of the marks and the mark. It fails,
// and consumes nothing, if none comes within limit bytes or if a byte comes
// that accepts refuses.
func (p *Parser) until(limit int, accepts func(byte) bool, marks ...string) (text, mark string, ok bool) {
	seen := 0
	for {
		r := p.rest()
		for ; seen < len(r); seen++ {
			whole := true
			for _, m := range marks {
				if bytes.HasPrefix(r[seen:], []byte(m)) {
					p.pos += seen + len(m)
					return string(r[:seen]), m, true
				}
				// A mark may be cut by the end of the input so far.
				if len(r)-seen < len(m) && strings.HasPrefix(m, string(r[seen:])) {
					whole = false
				}
			}
			if !whole && !p.eof {
				break
			}
			if seen >= limit || accepts != nil && !accepts(r[seen]) {
				return "", "", false
			}
		}
		if n := len(r); !p.more() && len(p.rest()) == n {
			if seen >= n {
				return "", "", false
			}
		}
	}
}

// untilEnd consumes text up to the first of the marks and the mark, or up to
// the end of the answer: then mark is "".
func (p *Parser) untilEnd(marks ...string) (text, mark string) {
	text, mark, ok := p.until(1<<30, nil, marks...)
	if !ok {
		text, p.pos = string(p.rest()), len(p.buf)
	}
	return text, mark
}

// answer reads the whole answer.
func (p *Parser) answer() {
	if p.syn.harmony {
		p.harmony()
	} else {
		if !p.o.KeepReasoning {
			p.reasoning()
		} else if p.syn.Thinks(p.o.Prompt) && !p.o.Continue && !strings.HasPrefix(p.syn.ThinkOpen, "<|") {
			// The tag that opens the reasoning is in the prompt.
			p.text([]byte(p.o.Prompt[strings.LastIndex(p.o.Prompt, p.syn.ThinkOpen):]))
		}
		p.content()
	}
	// What is left is text, whatever it is.
	for {
		r := p.rest()
		if p.cut {
			r = r[:len(r)-p.beginnings(r)]
		}
		p.text(r)
		p.pos = len(p.buf)
		if !p.more() && p.pos == len(p.buf) {
			break
		}
	}
	if p.calls == 0 && p.kind == PartText {
		p.flushSpace()
	}
}

// text gives out text for the user. White space is held back: it is dropped
// if a call follows.
func (p *Parser) text(b []byte) {
	n := len(bytes.TrimRight(b, " \n\r\t"))
	if n > 0 {
		p.flushSpace()
		p.emit(Part{Kind: p.kind, Text: string(b[:n])})
	}
	p.space = append(p.space, b[n:]...)
}

func (p *Parser) flushSpace() {
	if len(p.space) > 0 {
		p.emit(Part{Kind: p.kind, Text: string(p.space)})
		p.space = p.space[:0]
	}
}

// content reads what follows the reasoning: text with calls in it.
func (p *Parser) content() {
	if strings.HasSuffix(strings.TrimRight(p.o.Prompt, " \n"), ">>>") && p.syn.recipients {
		p.recipients()
		return
	}
	if len(p.tools) > 0 && p.kind == PartText && (p.o.OnlyCalls || p.syn.bare) {
		p.attempt(0, (*Parser).bareCalls)
	}
	for p.failures < maxFailures {
		o, ok := p.opener()
		if !ok {
			return
		}
		p.attempt(len(o.mark), o.parse)
	}
}

// opener gives out text up to the next mark that begins a call. The mark is
// not consumed.
func (p *Parser) opener() (opener, bool) {
	for {
		r := p.rest()
		at, found := len(r), opener{}
		for _, o := range p.openers {
			if i := bytes.Index(r[:min(len(r), at+len(o.mark))], []byte(o.mark)); i >= 0 && (i < at || i == at && len(o.mark) > len(found.mark)) {
				at, found = i, o
			}
		}
		// A longer mark may begin here, or a mark may begin before its end.
		hold := len(r)
		for _, o := range p.openers {
			for n := min(len(o.mark)-1, len(r)); n > 0 && !p.eof; n-- {
				if len(r)-n < hold && strings.HasPrefix(o.mark, string(r[len(r)-n:])) {
					hold = len(r) - n
				}
			}
		}
		if found.parse != nil && at < hold {
			p.text(r[:at])
			p.pos += at
			return found, true
		}
		hold = min(hold, at)
		p.text(r[:hold])
		p.pos += hold
		n := len(p.rest())
		if !p.more() && len(p.rest()) == n && (found.parse == nil || n == 0) {
			return opener{}, false
		}
	}
}

// beginnings returns the length of the end of r that only the beginning of a
// mark can be.
func (p *Parser) beginnings(r []byte) (longest int) {
	for _, o := range p.openers {
		for n := min(len(o.mark)-1, len(r)); n > max(longest, 3); n-- {
			if strings.HasPrefix(o.mark, string(r[len(r)-n:])) {
				longest = n
			}
		}
	}
	return longest
}

// attempt consumes n bytes, a mark, and parses the calls after it. If there
// are none, the mark is text, and what follows it is read again.
func (p *Parser) attempt(n int, parse func(*Parser) bool) {
	p.keep = p.pos
	p.pos += n
	calls := p.calls
	p.starved, p.drops = false, false
	ok := parse(p)
	p.end()
	if p.calls > calls {
		p.kind = PartText
	}
	switch {
	case ok && (p.calls > calls || n > 0 && p.drops):
	case p.cutWithin() && (n > 0 || p.calls > calls):
		p.pos = len(p.buf)
	case p.calls > calls:
		p.failures++
		p.pos = p.keep // the end of the last call
	default:
		p.failures++
		p.pos = p.keep + n
		p.text(p.buf[p.keep:p.pos])
	}
	p.keep = -1
}

// begin starts a call.
func (p *Parser) begin(name, id string) {
	p.space = p.space[:0]
	p.inCall, p.call = true, p.call[:0]
	p.calls++
	p.emit(Part{Kind: PartCall, Name: name, ID: id})
	p.noArgs = p.tools.takeNone(name)
}

func (p *Parser) arguments(b []byte) {
	if len(b) == 0 {
		return
	}
	p.call = append(p.call, b...)
	if !p.noArgs {
		p.emit(Part{Kind: PartArguments, Text: string(b)})
	}
}

// end ends a call.
func (p *Parser) end() {
	if !p.inCall {
		return
	}
	p.inCall = false
	raw := ""
	if p.keep >= 0 {
		raw = string(p.buf[p.keep:p.pos])
		p.keep = p.pos
	}
	valid := isObject(p.call)
	if p.noArgs && (valid || len(p.call) > 0 && !p.cut) { // broken ones are for the client to see
		if valid {
			p.call = append(p.call[:0], "{}"...)
		}
		p.emit(Part{Kind: PartArguments, Text: string(p.call)})
	}
	if p.cut && !valid {
		raw = ""
	}
	p.emit(Part{Kind: PartCallEnd, Text: raw, Valid: valid})
}

// whole is a call whose arguments are known.
func (p *Parser) whole(name, id string, args []byte) {
	p.begin(name, id)
	p.arguments(args)
	p.end()
}

// quoteJSON returns s as a JSON string, without HTML escapes.
func quoteJSON(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// validName reports whether s can be the name of a tool.
func validName(s string) bool {
	return s != "" && len(s) <= 256 && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || strings.ContainsRune("<>{}[]()\"'`|=,;", r)
	})
}
