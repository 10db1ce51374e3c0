package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// decoding says how tokens become text.
type decoding struct {
	byteLevel bool       // tokens are byte-level text
	ops       []decodeOp // else: what is done to the text of each token, in order
	wordMark  string     // WordPiece: before tokens that continue a word; others get a space in front
	isWords   bool       // wordMark counts
	cleanup   bool       // WordPiece: spaces before punctuation go
	between   string     // goes between tokens
	suffix    string     // ends a word: becomes a space, or nothing at the end of the text
	mark      string     // what stands for a space in the vocabulary, for ID

	// At the start of the text up to lead characters leadByte are dropped.
	lead     int
	leadByte byte
	// Each invalid byte becomes U+FFFD; else each run of bytes that could
	// have started a character does.
	eachByte bool
}

// decodeOp is one step of a token's way to text.
type decodeOp struct {
	kind     decodeKind
	old, new string
	start    int // opStrip: most characters old to drop at the start
	stop     int // and at the end
}

type decodeKind int

const (
	opReplace decodeKind = iota // old becomes new
	opByte                      // <0xHH> becomes that byte
	opMeta                      // old becomes a space, in the first token nothing
	opStrip                     // old goes from the start and the end
)

// appendToken appends the bytes of a token to dst. first: it starts the text.
func (t *Tokenizer) appendToken(dst []byte, id int32, first bool) []byte {
	if !t.vocab.valid(id) {
		return dst
	}
	text, typ := t.vocab.text[id], t.vocab.typ[id]
	d := &t.decode
	switch {
	case d.byteLevel:
		if typ == tokNormal || typ == tokUnused {
			return appendTextBytes(dst, text)
		}
		if b, ok := byteValue(text); ok && typ == tokByte {
			return append(dst, b)
		}
		return append(dst, text...)
	case d.isWords:
		if !first {
			if rest, ok := strings.CutPrefix(text, d.wordMark); ok && d.wordMark != "" {
				text = rest
			} else {
				text = " " + text
			}
		}
		if d.cleanup {
			text = cleanUp(text)
		}
		return append(dst, text...)
	}
	if !first {
		dst = append(dst, d.between...)
	}
	for _, op := range d.ops {
		switch op.kind {
		case opByte:
			if b, ok := byteValue(text); ok {
				return append(dst, b)
			}
		case opReplace:
			text = strings.ReplaceAll(text, op.old, op.new)
		case opMeta:
			with := " "
			if first {
				with = ""
			}
			text = strings.ReplaceAll(text, op.old, with)
		case opStrip:
			for k := 0; k < op.start && strings.HasPrefix(text, op.old); k++ {
				text = text[len(op.old):]
			}
			for k := 0; k < op.stop && strings.HasSuffix(text, op.old); k++ {
				text = text[:len(text)-len(op.old)]
			}
		}
	}
	if d.cleanup {
		text = cleanUp(text)
	}
	return append(dst, text...)
}

// cleanUp drops the spaces that word-splitting puts before punctuation and
// English contractions in the text of one token.
func cleanUp(s string) string {
	if strings.IndexByte(s, ' ') < 0 {
		return s
	}
	for _, p := range [...][2]string{{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"},
		{" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}} {
		s = strings.ReplaceAll(s, p[0], p[1])
	}
	return s
}

// vocabForm returns text as the vocabulary spells it.
func (d *decoding) vocabForm(text string) string {
	switch {
	case d.byteLevel:
		return string(appendByteText(nil, text))
	case d.mark != "":
		return strings.ReplaceAll(text, " ", d.mark)
	}
	return text
}

// Piece returns the bytes that a token adds to a text that it does not start;
// for a mark, its text. Not every token is valid UTF-8 on its own. The caller
// owns the result.
func (t *Tokenizer) Piece(id int32) []byte { return t.AppendPiece(nil, id) }

// AppendPiece appends Piece(id) to dst and returns it.
func (t *Tokenizer) AppendPiece(dst []byte, id int32) []byte {
	n := len(dst)
	dst = t.appendToken(dst, id, false)
	if s := t.decode.suffix; s != "" && strings.HasSuffix(view(dst[n:]), s) {
		dst = append(dst[:len(dst)-len(s)], ' ')
	}
	return dst
}

// Decode returns the text of ids without marks (see IsControl). Bytes that do
// not form characters become U+FFFD.
func (t *Tokenizer) Decode(ids []int32) string { return t.decodeAll(ids, false) }

// DecodeSpecial is Decode with the text of marks.
func (t *Tokenizer) DecodeSpecial(ids []int32) string { return t.decodeAll(ids, true) }

func (t *Tokenizer) decodeAll(ids []int32, special bool) string {
	d := Decoder{t: t, Special: special, lead: t.decode.lead, first: true}
	d.buf = make([]byte, 0, 8*len(ids))
	for _, id := range ids {
		d.push(id)
	}
	if utf8.Valid(d.buf) {
		return string(d.buf)
	}
	return string(t.decode.appendValid(make([]byte, 0, len(d.buf)+16), d.buf))
}

// Decoder turns a stream of tokens into text, character by character. It is
// not safe for use by several goroutines at once.
type Decoder struct {
	// Special makes Add return the text of marks too (see IsControl); it is
	// off in a new Decoder.
	Special bool

	t     *Tokenizer
	buf   []byte // not returned yet
	lead  int    // how many characters the start may still lose
	first bool   // no token yet
	space bool   // a word has ended: a space is due before more
}

// NewDecoder returns a decoder for one text.
func (t *Tokenizer) NewDecoder() *Decoder {
	return &Decoder{t: t, lead: t.decode.lead, first: true}
}

// push appends the bytes of a token to d.buf.
func (d *Decoder) push(id int32) {
	if !d.Special && d.t.IsControl(id) || !d.t.vocab.valid(id) {
		return
	}
	if d.space {
		d.buf = append(d.buf, ' ')
		d.space = false
	}
	n := len(d.buf)
	d.buf = d.t.appendToken(d.buf, id, d.first)
	d.first = false
	if s := d.t.decode.suffix; s != "" && strings.HasSuffix(view(d.buf[n:]), s) {
		d.buf = d.buf[:len(d.buf)-len(s)]
		d.space = true
	}
	for d.lead > 0 && len(d.buf) > 0 {
		if d.buf[0] != d.t.decode.leadByte {
			d.lead = 0
			break
		}
		d.buf = slices.Delete(d.buf, 0, 1)
		d.lead--
	}
}

// Add takes the next token and returns the text that is complete with it: an
// unfinished character at its end waits for the tokens to come.
func (d *Decoder) Add(id int32) string {
	d.push(id)
	cut := len(d.buf)
	for k := 1; k <= 3 && k <= cut; k++ {
		if _, state := charPrefix(d.buf[cut-k:]); state == charOpen {
			cut -= k
			break
		}
	}
	return d.take(cut)
}

// Flush returns what is left when the text has ended: U+FFFD for an unfinished
// character. The decoder may be used for another text then.
func (d *Decoder) Flush() string {
	s := d.take(len(d.buf))
	d.lead, d.first, d.space = d.t.decode.lead, true, false
	return s
}

// take returns the first n bytes of d.buf as text and drops them.
func (d *Decoder) take(n int) string {
	if n == 0 {
		return ""
	}
	var s string
	if b := d.buf[:n]; utf8.Valid(b) {
		s = string(b)
	} else {
		s = string(d.t.decode.appendValid(nil, b))
	}
	d.buf = append(d.buf[:0], d.buf[n:]...)
	return s
}

// appendValid appends b to dst with U+FFFD for what is not valid UTF-8.
func (d *decoding) appendValid(dst, b []byte) []byte {
	for i := 0; i < len(b); {
		n, state := charPrefix(b[i:])
		switch {
		case state == charFull:
			dst = append(dst, b[i:i+n]...)
		case d.eachByte:
			for range n {
				dst = append(dst, "\uFFFD"...)
			}
		default:
			dst = append(dst, "\uFFFD"...)
		}
		i += n
	}
	return dst
}

// charState says what a start of a text is.
type charState int

const (
	charBad  charState = iota // no character, whatever follows
	charOpen                  // the start of a character that the text does not end
	charFull                  // a character
)

// charPrefix returns the length of the longest start of b, which is not empty,
// that is a character of UTF-8 or could become one; 1 where neither.
func charPrefix(b []byte) (n int, state charState) {
	c := b[0]
	lo, hi, size := byte(0x80), byte(0xBF), 0
	switch {
	case c < 0x80:
		return 1, charFull
	case c < 0xC2 || c > 0xF4:
		return 1, charBad
	case c < 0xE0:
		size = 2
	case c < 0xF0:
		size = 3
	default:
		size = 4
	}
	switch c {
	case 0xE0:
		lo = 0xA0
	case 0xED:
		hi = 0x9F
	case 0xF0:
		lo = 0x90
	case 0xF4:
		hi = 0x8F
	}
	for n = 1; n < size; n++ {
		if n >= len(b) {
			return n, charOpen
		}
		if b[n] < lo || b[n] > hi {
			return n, charBad
		}
		lo, hi = 0x80, 0xBF
	}
	return size, charFull
}
