package model

import (
	"context"
	"fmt"
	"slices"

	"ridge/kernel"
	"ridge/nn"
)

// siteParts are what matrices that read at a site are called in a GGUF file, within
// their layer. A model has some of them.
var siteParts = map[int][]string{
	siteQKV:  {"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_q_a", "attn_kv_a_mqa", "shortconv.in_proj"},
	siteOut:  {"attn_output", "shortconv.out_proj"},
	siteFFN:  {"ffn_gate", "ffn_up"},
	siteDown: {"ffn_down"},
	siteHead: {"output"},
}

// Taps computes texts, each as a sequence of its own, and shows what matrices read. It
// goes layer by layer and not text by text, so that only the weights of one layer have
// to be in memory, and what lies in a file is read once. Matrices of experts are left
// out: rows are dealt out to them. The model must not compute anything else meanwhile.
type Taps struct {
	p    *passes
	look func(layer int, parts []string, rows int, row func(r int) []float32)
}

// Tap begins with texts. The rows between two layers lie in a file within dir that has
// no name, or in memory if dir is "".
func (m *Model) Tap(texts [][]int32, dir string) (*Taps, error) {
	for i, tokens := range texts {
		if len(tokens) == 0 || len(tokens) > m.context {
			return nil, fmt.Errorf("model: tap: text %d: expected 1 to %d tokens, found %d", i, m.context, len(tokens))
		}
	}
	type place struct {
		layer int
		parts []string
	}
	places := map[*nn.Linear]place{}
	m.net.sites(func(site, layer int, mats []*nn.Linear) {
		p := place{layer, siteParts[site]}
		if site == siteQKV && m.net.Layers[layer].Wiring == ParallelShared {
			p.parts = slices.Concat(p.parts, siteParts[siteFFN])
		}
		for _, l := range mats {
			places[l] = p
		}
	})
	t := &Taps{}
	var err error
	t.p, err = m.newPasses(texts, dir, func(x *kernel.Acts, l *nn.Linear) {
		if p, ok := places[l]; ok {
			t.look(p.layer, p.parts, x.N, func(r int) []float32 { return nn.Row(x, r)[:x.K] })
		}
	})
	return t, err
}

// Layers returns the layers that Next computes next: from first to before end, which is
// one more than there are layers where the output matrix is among them. Of most models
// it is one layer; where layers read what others have computed they come together.
func (t *Taps) Layers() (first, end int) { return t.p.layer, t.p.end() }

// Next computes the next layers for all texts, and says whether there are more. look is
// shown the rows that matrices of a layer read, [rows][columns] of one text; row r of
// them is row(r), which is valid during the call. parts are what these matrices may be
// called in a GGUF file, within their layer: "attn_q" stands for blk.N.attn_q.weight, and
// "output" for the output matrix, whose layer is the number of layers.
func (t *Taps) Next(ctx context.Context, look func(layer int, parts []string, rows int, row func(r int) []float32)) (more bool, err error) {
	t.look = look
	return t.p.next(ctx)
}

// Close gives the memory and the file back.
func (t *Taps) Close() error { return t.p.close() }
