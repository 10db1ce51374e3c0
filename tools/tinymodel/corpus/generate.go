package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"ridge/kernel"
	"ridge/kvcache"
	"ridge/model"
	"ridge/text/chat"
	"ridge/text/tokenizer"
)

// candidates is the number of tokens that an answer's next token is drawn from.
const candidates = 32

// generator answers prompts in many slots at once.
type generator struct {
	m       *model.Model
	s       *settings
	tok     *tokenizer.Tokenizer
	tmpl    *chat.Template
	grammar *grammar
	rng     *rand.Rand
	eog     int32
	ends    []bool // tokens after which a sentence may have ended
	prefix  []int32
	shared  *kvcache.Seq // the template's usual start
	seen    map[string]bool
	dropped int
}

// slot is one conversation under way.
type slot struct {
	seq     *kvcache.Seq
	doc     *document
	pending []int32 // tokens to compute
	temp    float64
	count   int // answer tokens of this turn
	turns   int // answers still to come after this one
	raw     bool
	rng     *rand.Rand
	next    int32 // chosen by the step
	target  target
}

func newGenerator(m *model.Model, s *settings) (*generator, error) {
	tok := m.Tokenizer()
	g := &generator{m: m, s: s, tok: tok, rng: rand.New(rand.NewPCG(s.seed, 77)), seen: map[string]bool{}}
	var err error
	if g.grammar, err = readGrammar(); err != nil {
		return nil, err
	}
	g.eog, _ = tok.ID("<|im_end|>")
	if g.tmpl, err = chat.Compile(m.ChatTemplate(), chat.Options{Name: s.model}); err != nil {
		return nil, err
	}
	g.ends = make([]bool, tok.VocabSize())
	for id := range g.ends {
		p := tok.Piece(int32(id))
		if len(p) > 0 {
			switch p[len(p)-1] {
			case '.', '!', '?':
				g.ends[id] = true
			}
		}
	}
	a, err := g.render("a")
	if err != nil {
		return nil, err
	}
	b, err := g.render("b")
	if err != nil {
		return nil, err
	}
	n := 0
	for n < len(a) && a[n] == b[n] {
		n++
	}
	g.prefix = a[:n]
	g.shared = m.Pool().NewSeq()
	return g, m.Forward(&model.Step{Runs: []model.Run{{Seq: g.shared, Tokens: g.prefix}}})
}

// render returns the tokens of a conversation of one question.
func (g *generator) render(question string) ([]int32, error) {
	text, err := g.tmpl.Render(chat.Input{Messages: []chat.Message{{Role: "user", Content: question}}, AddGenerationPrompt: true})
	if err != nil {
		return nil, err
	}
	return g.encode(text), nil
}

func (g *generator) encode(text string) []int32 {
	return g.tok.Encode(nil, text, tokenizer.EncodeOptions{ParseSpecial: true})
}

// start begins a conversation with a prompt of the set that is wanted.
func (g *generator) start() (*slot, error) {
	var text string
	var raw bool
	for {
		text, raw = g.grammar.prompt(g.rng)
		if isHeldOut(text) == g.s.heldout && !(g.s.greedy && g.seen[text]) {
			break
		}
	}
	sl := &slot{doc: &document{}, raw: raw, rng: rand.New(rand.NewPCG(g.rng.Uint64(), 1)), temp: 0.7}
	if g.rng.Float64() < 0.4 {
		sl.temp = 0.4
	}
	if g.s.greedy || !g.seen[text] && g.rng.Float64() < 0.25 {
		sl.temp = 0
	}
	g.seen[text] = true
	if !raw && !g.s.greedy && g.rng.Float64() < 0.2 {
		sl.turns = 1
	}
	tokens := g.encode(text)
	if !raw {
		var err error
		if tokens, err = g.render(text); err != nil {
			return nil, err
		}
	}
	for _, t := range tokens {
		sl.doc.add(t, nil)
	}
	if n := len(g.prefix); len(tokens) > n && slices.Equal(tokens[:n], g.prefix) {
		sl.seq = g.m.Pool().Fork(g.shared)
		sl.pending = tokens[n:]
		return sl, nil
	}
	sl.seq, sl.pending = g.m.Pool().NewSeq(), tokens
	return sl, nil
}

// run generates until take returns false.
func (g *generator) run(take func(*document) (bool, error)) error {
	slots := make([]*slot, g.s.slots)
	next := model.Step{Runs: make([]model.Run, g.s.slots)}
	for {
		for i := range slots {
			if slots[i] == nil {
				var err error
				if slots[i], err = g.start(); err != nil {
					return err
				}
			}
			next.Runs[i] = model.Run{Seq: slots[i].seq, Tokens: slots[i].pending, Outputs: 1}
		}
		if err := g.m.Forward(&next); err != nil {
			return err
		}
		var wg sync.WaitGroup
		for part := range 2 {
			wg.Go(func() {
				for i := part; i < len(slots); i += 2 {
					slots[i].choose(g, g.m.Logits(i))
				}
			})
		}
		wg.Wait()
		for i, sl := range slots {
			done, keep := g.advance(sl)
			if !done {
				continue
			}
			g.m.Pool().Free(sl.seq)
			slots[i] = nil
			if !keep {
				g.dropped++
				continue
			}
			if more, err := take(sl.doc); err != nil || !more {
				return err
			}
		}
	}
}

// choose draws the next token from the logits, which it overwrites, and notes
// the soft target.
func (sl *slot) choose(g *generator, logits []float32) {
	kernel.SoftmaxInPlace(logits)
	var ids [candidates]int32
	var p [candidates]float32
	n := 0
	for id, v := range logits {
		if n == candidates && v <= p[n-1] {
			continue
		}
		if n < candidates {
			n++
		}
		j := n - 1
		for ; j > 0 && p[j-1] < v; j-- {
			p[j], ids[j] = p[j-1], ids[j-1]
		}
		p[j], ids[j] = v, int32(id)
	}
	if e := sl.ending(g); e > 0 {
		shorten(ids[:], p[:], g.eog, e)
	}
	for i := range topK {
		sl.target.set(i, ids[i], float32(math.Log(float64(max(p[i], 1e-9)))))
	}
	sl.next = ids[draw(p[:], sl.temp, sl.rng)]
}

// ending is the probability that an answer as long as this one is ended here,
// beyond what the teacher wants: answers of a small model should be short.
func (sl *slot) ending(g *generator) float32 {
	last := sl.doc.tokens[len(sl.doc.tokens)-1]
	if g.s.natural || sl.count < 36 || sl.raw || !g.ends[last] {
		return 0
	}
	return min(0.9, 0.15+float32(sl.count-36)/60)
}

// shorten moves a share e of the probability to the token end and sorts again.
func shorten(ids []int32, p []float32, end int32, e float32) {
	at := slices.Index(ids, end)
	if at < 0 {
		at = len(ids) - 1
		ids[at], p[at] = end, 0
	}
	for i := range p {
		p[i] *= 1 - e
	}
	p[at] += e
	for ; at > 0 && p[at] > p[at-1]; at-- {
		p[at], p[at-1], ids[at], ids[at-1] = p[at-1], p[at], ids[at-1], ids[at]
	}
}

// draw picks among the sorted probabilities at a temperature, within the
// smallest set that holds 0.95 of them.
func draw(p []float32, temp float64, rng *rand.Rand) int {
	if temp == 0 {
		return 0
	}
	w, sum := make([]float64, len(p)), 0.0
	for i, v := range p {
		w[i] = math.Pow(float64(v), 1/temp)
		sum += w[i]
	}
	limit, cut := sum*0.95, 0.0
	n := 0
	for n < len(w) && cut < limit {
		cut += w[n]
		n++
	}
	x := rng.Float64() * cut
	for i := range n {
		if x -= w[i]; x < 0 {
			return i
		}
	}
	return 0
}

// advance takes the chosen token into the document and says whether the
// document is complete, and whether it is fit to be learned from.
func (g *generator) advance(sl *slot) (done, keep bool) {
	sl.doc.add(sl.next, &sl.target)
	sl.count++
	sl.pending = []int32{sl.next}
	if g.tok.IsEOG(sl.next) {
		if sl.turns == 0 || sl.raw {
			return true, sl.count > 1
		}
		sl.turns--
		sl.count = 0
		follow := g.encode("\n<|im_start|>user\n" + g.grammar.followUp(g.rng) + "<|im_end|>\n<|im_start|>assistant\n")
		for _, t := range follow {
			sl.doc.add(t, nil)
		}
		sl.pending = append(sl.pending, follow...)
		return false, false
	}
	if repeats(sl.doc.tokens[len(sl.doc.tokens)-sl.count:]) {
		return true, false
	}
	return sl.count >= g.s.limit, true
}

// repeats reports whether the last four tokens occurred twice before.
func repeats(t []uint16) bool {
	const n = 4
	if len(t) < 3*n {
		return false
	}
	last, found := t[len(t)-n:], 0
	for i := range len(t) - n {
		if slices.Equal(t[i:i+n], last) {
			found++
		}
	}
	return found >= 2
}

// show prints conversations.
func (g *generator) show(n int) error {
	return g.run(func(d *document) (bool, error) {
		ids := make([]int32, len(d.tokens))
		for i, t := range d.tokens {
			ids[i] = int32(t)
		}
		fmt.Printf("%d tokens: %s\n----\n", d.answer, g.tok.Decode(ids))
		n--
		return n > 0, nil
	})
}
