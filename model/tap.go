package model

import (
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

// Tap computes tokens as a sequence of its own and calls look with the rows that
// matrices read, [tokens][columns]; row r of them is row(r), which is valid during the
// call. parts are what these matrices may be called in a GGUF file, within their layer:
// "attn_q" stands for blk.N.attn_q.weight, and "output" for the output matrix, whose
// layer is the number of layers. Matrices of experts are left out: rows are dealt out to them. The model must not
// compute anything else meanwhile.
func (m *Model) Tap(tokens []int32, look func(layer int, parts []string, rows int, row func(r int) []float32)) error {
	if len(tokens) == 0 || len(tokens) > m.context {
		return fmt.Errorf("model: tap: expected 1 to %d tokens, found %d", m.context, len(tokens))
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
	return m.runTokens(tokens, func(x *kernel.Acts, l *nn.Linear) {
		if p, ok := places[l]; ok {
			look(p.layer, p.parts, x.N, func(r int) []float32 { return nn.Row(x, r)[:x.K] })
		}
	})
}
