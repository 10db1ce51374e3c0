package model

import (
	"fmt"
	"regexp"
	"strconv"

	"ridge/kernel"
	"ridge/nn"
)

// placeHead guesses the token of one place ahead: blocks that add SiLU(W x + b) to x, and
// an output matrix.
type placeHead struct {
	blocks []nn.Linear
	out    nn.Linear // [tokens][hidden]
}

// run computes the logits of h for a state.
func (p *placeHead) run(h *DraftHead, state []float32) {
	e, r := h.exec, &h.rows
	nn.Rows(&r.x, 1, len(state), false)
	copy(nn.Row(&r.x, 0), state)
	for i := range p.blocks {
		l := &p.blocks[i]
		e.Norm(&r.h, &r.x, nil, nn.FormOf(l))
		e.Linear(&r.h, nn.Out{L: l, Dst: &r.y})
		y := nn.Row(&r.y, 0)
		kernel.SiLU(y, y)
		kernel.Add(nn.Row(&r.x, 0), y)
	}
	e.Norm(&r.out, &r.x, nil, nn.FormOf(&p.out))
	e.Linear(&r.out, nn.Out{L: &p.out, Dst: &r.logits})
}

// Medusa (Cai et al., 2024, arXiv 2401.10774): a matrix for each of the next places, which
// reads the state behind the last norm. Files are those of the authors, whose tensors are
// named by numbers of heads and blocks, "0.0.linear.weight", and those with the names that
// vLLM has for them, "blocks.0.layers.0.weight" and "lm_heads.0.weight".
var medusaKind = headKind{
	name: "medusa",
	is: func(has func(name string) bool) bool {
		for _, name := range medusaNames("head.0.block.0.weight") {
			if has(name) {
				return true
			}
		}
		return false
	},
	names: medusaNames,
	build: (*headBuilder).medusa,
}

var medusaPart = regexp.MustCompile(`^head\.(\d+)\.(block\.(\d+)|out)\.(weight|bias)$`)

// medusaNames returns what files call "head.N.block.M" and "head.N.out". The authors number
// the output matrix behind the blocks: "head.N.out" is found as "head.N.block.M" is, by
// medusaOut.
func medusaNames(name string) (names []string) {
	part := medusaPart.FindStringSubmatch(name)
	if part == nil {
		return []string{name}
	}
	head, block, suffix := part[1], part[3], part[4]
	for _, prefix := range []string{"", "medusa_head.", "medusa_heads."} {
		if block == "" {
			names = append(names, prefix+"lm_heads."+head+"."+suffix)
			continue
		}
		names = append(names, prefix+head+"."+block+".linear."+suffix, prefix+"blocks."+head+".layers."+block+"."+suffix)
	}
	return names
}

// medusa builds as many heads as there are tensors of.
func (b *headBuilder) medusa(h *DraftHead) {
	b.behindNorm(h)
	hidden, vocab := b.m.cfg.Hidden, b.m.cfg.Vocab
	tokens := vocab
	if m, ok, err := b.src.mat("token_map"); err == nil && ok {
		tokens = m.Cols
		h.ids = b.tokenIDs("token_map", tokens, false)
	}
	for i := 0; b.err == nil; i++ {
		at := fmt.Sprintf("head.%d.", i)
		if !b.has(at + "block.0.weight") {
			break
		}
		var p placeHead
		for k := 0; b.has(fmt.Sprint(at, "block.", k, ".weight")); k++ {
			name := fmt.Sprint(at, "block.", k)
			m, _ := b.find(name+".weight", hidden, hidden)
			l := nn.Linear{W: b.pack(name, m)}
			if b.has(name + ".bias") {
				l.Bias = b.vector(name+".bias", hidden)
			}
			p.blocks = append(p.blocks, l)
		}
		p.out = b.medusaOut(h, at, i, len(p.blocks), tokens)
		h.places = append(h.places, p)
	}
}

// medusaOut builds the output matrix of a head, which may be that of the first head or of
// the model.
func (b *headBuilder) medusaOut(h *DraftHead, at string, head, blocks, tokens int) nn.Linear {
	own := at + "out.weight"
	for _, prefix := range []string{"", "medusa_head.", "medusa_heads."} {
		if numbered := prefix + strconv.Itoa(head) + "." + strconv.Itoa(blocks) + ".weight"; b.has(numbered) {
			own = numbered
		}
	}
	if m, ok := b.find(own, tokens, b.m.cfg.Hidden); ok {
		return nn.Linear{W: b.pack(own, m)}
	}
	switch {
	case head > 0 && b.has("head.0.out.weight"):
		return h.places[0].out
	case tokens != b.m.cfg.Vocab:
		b.missing(tokens, b.m.cfg.Hidden, own)
	}
	return b.m.net.Head.Out
}
