package spec

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"time"

	"ridge/internal/logits"
	"ridge/model"
)

// Speller is how a model spells texts.
type Speller struct {
	// Tokens are the model's, as text/tokenizer has them.
	Tokens interface {
		VocabSize() int
		AppendPiece(dst []byte, id int32) []byte
		IsControl(id int32) bool
		IsEOG(id int32) bool
		Ends() []int32
		ID(text string) (int32, bool)
	}
	// Encode appends the tokens of a text without marks to dst.
	Encode func(dst []int32, text string) []int32
}

// foreign is a model that guesses for one with another vocabulary.
type foreign struct {
	s            *Small
	mine, theirs Speller
	marks        map[int32]int32 // of the other model's marks, those of the same text
	back         map[int32]int32 // the other way round, and what ends texts
	same         []int32         // by token of the model, that of the other with the same text, or -1; nil by strings
	outside      []int32         // tokens that have none
	hers         []int32         // the other way round
}

// NewForeign returns what makes drafters of m, which spells as mine, for a model that spells
// as theirs. Guesses are compared as tokens of the other one, like all guesses: no text
// depends on how well it is understood. By strings, the text goes to m and its guesses
// come back as texts, which are spelled anew; by tokens, it may guess those tokens alone
// that both vocabularies have (Timor et al., "Accelerating LLM Inference with Lossless
// Speculative Decoding Algorithms for Heterogeneous Vocabularies", 2025, arXiv 2502.05202:
// SLEM and TLI). Drafters must be used by one goroutine.
func NewForeign(m *model.Model, mine, theirs Speller, byTokens bool) (func() Costly, error) {
	f, err := newForeign(m, mine, theirs, byTokens)
	if err != nil {
		return nil, err
	}
	return f.drafter, nil
}

func newForeign(m *model.Model, mine, theirs Speller, byTokens bool) (*foreign, error) {
	if m.Pool().Stateful() {
		return nil, fmt.Errorf("spec: model that drafts: expected layers that can drop their last tokens, found some with states")
	}
	f := &foreign{s: &Small{m: m}, mine: mine, theirs: theirs, marks: map[int32]int32{}, back: map[int32]int32{}}
	var piece []byte
	for id := range int32(theirs.Tokens.VocabSize()) {
		if !theirs.Tokens.IsControl(id) {
			continue
		}
		piece = theirs.Tokens.AppendPiece(piece[:0], id)
		if own, ok := mine.Tokens.ID(string(piece)); ok && mine.Tokens.IsControl(own) {
			f.marks[id], f.back[own] = own, id
		}
	}
	if ends := theirs.Tokens.Ends(); len(ends) > 0 {
		for _, own := range mine.Tokens.Ends() {
			if _, known := f.back[own]; !known {
				f.back[own] = ends[0]
			}
		}
	}
	if byTokens {
		if f.intersect(); len(f.outside) == len(f.same) {
			return nil, fmt.Errorf("spec: model that drafts: expected tokens that both vocabularies have, found none")
		}
	}
	return f, nil
}

// intersect finds the tokens that both vocabularies have.
func (f *foreign) intersect() {
	n := f.mine.Tokens.VocabSize()
	f.same, f.hers = make([]int32, max(n, f.s.m.Config().Vocab)), make([]int32, f.theirs.Tokens.VocabSize())
	own := make(map[string]int32, n)
	var piece []byte
	for id := range f.same {
		f.same[id] = -1
		if id < n && !f.mine.Tokens.IsControl(int32(id)) {
			piece = f.mine.Tokens.AppendPiece(piece[:0], int32(id))
			own[string(piece)] = int32(id)
		}
	}
	for id := range f.hers {
		piece = f.theirs.Tokens.AppendPiece(piece[:0], int32(id))
		at, ok := own[string(piece)]
		if f.hers[id] = -1; ok && len(piece) > 0 && !f.theirs.Tokens.IsControl(int32(id)) {
			f.hers[id] = at
			if f.same[at] < 0 {
				f.same[at] = int32(id)
			}
		}
	}
	for own, id := range f.back {
		f.same[own] = id
	}
	for id, to := range f.same {
		if to < 0 {
			f.outside = append(f.outside, int32(id))
		}
	}
}

func (f *foreign) drafter() Costly { return &foreignSeq{reader: reader{s: f.s}, f: f} }

// foreignSeq is a sequence of a foreign.
type foreignSeq struct {
	reader
	f     *foreign
	read  int     // tokens of the other model that ids are of
	ids   []int32 // the text as the model spells it
	plain int     // where its text behind the last mark begins

	drafted []drafted // behind it
	end     int32     // the mark that ends what was drafted, -1 for none
	all     []int32   // ids and drafted
	buf     []byte
	spelled []int32
}

// drafted is a token that the model has guessed, how probable it is, and where in the
// text that was drafted it begins.
type drafted struct {
	id    int32
	p     float64
	start int
}

// lookBack is how many tokens at the end of a text may be spelled otherwise when the text
// goes on; they are at most so many.
const lookBack = 16

// seam returns where among the last tokens of ids to begin to spell anew: at a token that
// begins with a space or a line, as tokenizers cut there, or some tokens back.
func seam(s *Speller, ids []int32, least int, piece []byte) (int, []byte) {
	for i := len(ids) - 2; i > max(least, len(ids)-lookBack); i-- {
		piece = s.Tokens.AppendPiece(piece[:0], ids[i])
		if len(piece) > 0 && (piece[0] == ' ' || piece[0] == '\n') {
			return i, piece
		}
	}
	return max(least, len(ids)-lookBack/2), piece
}

// follow spells what has come since.
func (q *foreignSeq) follow(tokens []int32) {
	f := q.f
	if q.read > len(tokens) {
		q.read, q.ids, q.plain = 0, q.ids[:0], 0
	}
	q.drafted, q.end = q.drafted[:0], -1
	if f.same != nil {
		for ; q.read < len(tokens); q.read++ {
			q.ids = f.spell(q.ids, tokens[q.read])
		}
		return
	}
	for q.read < len(tokens) {
		first := q.read
		for q.read < len(tokens) && !f.theirs.Tokens.IsControl(tokens[q.read]) {
			q.read++
		}
		if q.read > first {
			q.addText(tokens[first:q.read])
		}
		if q.read < len(tokens) {
			if own, ok := f.marks[tokens[q.read]]; ok {
				q.ids = append(q.ids, own)
			} else {
				q.ids = f.spell(q.ids, tokens[q.read])
			}
			q.plain = len(q.ids)
			q.read++
		}
	}
}

// spell appends the model's spelling of one token.
func (f *foreign) spell(dst []int32, id int32) []int32 {
	if own, ok := f.marks[id]; ok {
		return append(dst, own)
	}
	if f.hers != nil && id >= 0 && int(id) < len(f.hers) && f.hers[id] >= 0 {
		return append(dst, f.hers[id])
	}
	return f.mine.Encode(dst, string(f.theirs.Tokens.AppendPiece(nil, id)))
}

// addText spells text behind that which is there: its last tokens may come out otherwise.
func (q *foreignSeq) addText(tokens []int32) {
	f := q.f
	at := q.plain
	if len(q.ids) > q.plain {
		at, q.buf = seam(&f.mine, q.ids, q.plain, q.buf)
	}
	q.buf = q.buf[:0]
	for _, id := range q.ids[at:] {
		q.buf = f.mine.Tokens.AppendPiece(q.buf, id)
	}
	for _, id := range tokens {
		q.buf = f.theirs.Tokens.AppendPiece(q.buf, id)
	}
	q.ids = f.mine.Encode(q.ids[:at], string(q.buf))
}

// Lag returns how many tokens are not computed, about.
func (q *foreignSeq) Lag(tokens []int32) int {
	return len(tokens) - min(q.read, len(tokens)-1)
}

// Draft is Stride for at most n guesses.
func (q *foreignSeq) Draft(dst []Guess, tokens []int32, n int) []Guess {
	return strides(q, dst, tokens, n)
}

// Trail has nothing that takes no time.
func (q *foreignSeq) Trail(dst []Guess, tokens []int32, n int) []Guess { return dst }

// mostTries bounds the passes that are made for a guess.
const mostTries = 4

// Stride makes passes of the model until there is a guess more. Those before may have
// become other ones: the model's next token can be the rest of a word.
func (q *foreignSeq) Stride(dst []Guess, tokens []int32, n int) []Guess {
	if len(tokens) == 0 || n <= 0 {
		return dst
	}
	if len(dst) == 0 {
		q.follow(tokens)
	}
	begin, known := time.Now(), len(dst)
	for range mostTries {
		rows, ok := q.pass()
		if !ok {
			return dst
		}
		got := q.guesses(dst[:0], tokens, known+n)
		if len(got) > known {
			q.s.learn(begin, rows, len(got)-known)
			return got
		}
		dst = got
		if q.end >= 0 {
			break
		}
	}
	return dst
}

// pass has the model guess one token more.
func (q *foreignSeq) pass() (rows int, ok bool) {
	m := q.s.m
	if q.end >= 0 || len(q.ids) == 0 || len(q.ids)+len(q.drafted)+1 > m.Context() {
		return 0, false
	}
	q.all = append(q.all[:0], q.ids...)
	for _, d := range q.drafted {
		q.all = append(q.all, d.id)
	}
	if rows, ok = q.catchUp(nil, q.all, nil); !ok {
		q.free()
		return 0, false
	}
	row := m.Logits(0)
	for _, id := range q.f.outside {
		if int(id) < len(row) {
			row[id] = float32(math.Inf(-1))
		}
	}
	best := logits.Argmax(row)
	if best < 0 {
		return 0, false
	}
	p := 1 / logits.Weight(row, row[best], 1)
	if !(p >= 0) {
		p = 0
	}
	if id := int32(best); q.f.mine.Tokens.IsControl(id) || q.f.mine.Tokens.IsEOG(id) {
		to, known := q.f.back[id]
		if !known {
			return 0, false
		}
		q.end = to
	}
	q.drafted = append(q.drafted, drafted{int32(best), p, 0})
	return rows, true
}

// guesses appends at most n tokens of the other model for what was drafted.
func (q *foreignSeq) guesses(dst []Guess, tokens []int32, n int) []Guess {
	f := q.f
	if f.same != nil {
		for _, d := range q.drafted[:min(len(q.drafted), n)] {
			dst = append(dst, Guess{Token: f.same[d.id], Class: classOf(d.p)})
		}
		return dst
	}
	// The text that was drafted is spelled together with what is before it. If that
	// comes out otherwise than it is, as models do not always spell as their tokenizers
	// do, it is spelled alone.
	least := len(tokens) - 1
	for least > 0 && !f.theirs.Tokens.IsControl(tokens[least]) && least > len(tokens)-2*lookBack {
		least--
	}
	var at int
	at, q.buf = seam(&f.theirs, tokens, min(least+1, len(tokens)), q.buf)
	q.buf = q.buf[:0]
	for _, id := range tokens[at:] {
		q.buf = f.theirs.Tokens.AppendPiece(q.buf, id)
	}
	before := len(q.buf)
	words := q.drafted
	if q.end >= 0 {
		words = words[:len(words)-1]
	}
	for i := range words {
		q.drafted[i].start = len(q.buf) - before
		q.buf = f.mine.Tokens.AppendPiece(q.buf, words[i].id)
	}
	q.spelled = f.theirs.Encode(q.spelled[:0], string(q.buf))
	rest := q.spelled
	if known := tokens[at:]; len(rest) >= len(known) && slices.Equal(rest[:len(known)], known) {
		rest = rest[len(known):]
	} else {
		q.spelled = f.theirs.Encode(q.spelled[:0], string(q.buf[before:]))
		rest = q.spelled
	}
	return q.append(dst, rest, words, q.buf[before:], n)
}

// append appends tokens as guesses, as far as they spell the text that the words do. Each
// is as probable as the words that begin in it are together.
func (q *foreignSeq) append(dst []Guess, tokens []int32, words []drafted, text []byte, n int) []Guess {
	next, from := 0, 0
	var piece []byte
	for _, id := range tokens {
		if piece = q.f.theirs.Tokens.AppendPiece(piece[:0], id); len(dst) == n || !bytes.HasPrefix(text[from:], piece) {
			return dst
		}
		from += len(piece)
		p := 1.0
		for ; next < len(words) && words[next].start < from; next++ {
			p *= words[next].p
		}
		dst = append(dst, Guess{Token: id, Class: classOf(p)})
	}
	if q.end >= 0 && len(dst) < n && from == len(text) {
		dst = append(dst, Guess{Token: q.end, Class: classOf(q.drafted[len(q.drafted)-1].p)})
	}
	return dst
}

// Bytes returns the memory of keys and values and of what was spelled.
func (q *foreignSeq) Bytes() int64 {
	return q.reader.Bytes() + 4*int64(cap(q.ids)+cap(q.all)+cap(q.spelled)) + int64(cap(q.buf))
}

// Close gives it back.
func (q *foreignSeq) Close() {
	q.free()
	*q = foreignSeq{reader: reader{s: q.s}, f: q.f}
}
