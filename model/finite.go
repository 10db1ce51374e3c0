package model

import (
	"fmt"

	"ridge/kernel"
	"ridge/nn"
)

// FirstNonFinite computes tokens, as a sequence of their own, and returns where
// the first number came up that is none: NaN or an infinity. It returns "" if
// there is none, and an error if there is no memory for the tokens. It is for
// saying what is wrong with a model afterwards: Forward does not look.
func (m *Model) FirstNonFinite(tokens []int32) (where string, err error) {
	seq := m.kv.NewSeq()
	defer m.kv.Free(seq)
	length := m.RopeLength(len(tokens), len(tokens))
	const chunk = 256
	for len(tokens) > 0 && where == "" && err == nil {
		n := min(chunk, len(tokens))
		if m.cfg.Encoder.Both {
			n = len(tokens)
		}
		where, err = m.probe(&Step{Runs: []Run{{Seq: seq, Tokens: tokens[:n], Outputs: n, Length: length}}})
		tokens = tokens[n:]
	}
	return where, err
}

// probe is Forward, and looks at the rows behind each part of the network.
func (m *Model) probe(s *Step) (where string, err error) {
	if err := m.grow(s); err != nil {
		return "", err
	}
	s.Place()
	m.setWidth(s.Rows())
	m.pool.Enter()
	defer m.pool.Leave()
	m.exec.Begin(s)
	// In rows of its own: those of the last step may still be read.
	rows := new(netRows)
	err = m.lookUp(s, rows)
	if err == nil {
		err = m.guard(func() { where = m.probeRows(s, rows) })
	}
	if err != nil {
		m.shrink(s.Runs)
	}
	return where, err
}

func (m *Model) probeRows(s *Step, r *netRows) string {
	n := m.net
	if !finite(&r.x) {
		return "the embedding"
	}
	n.begin(m.exec, r)
	for i := range n.Layers {
		if n.Layers[i].run(m.exec, s, i, i == len(n.Layers)-1, &r.layerRows); !finite(&r.x) {
			return fmt.Sprintf("layer %d of %d", i, len(n.Layers))
		}
	}
	if n.finish(m.exec, s, r); !finite(&r.out) {
		return "the norm behind the last layer"
	}
	for i := range r.out.N {
		if n.project(m.exec, r, i, 1); !finite(&r.logits) {
			return "the output matrix"
		}
	}
	return ""
}

// finite reports whether all numbers of all rows are.
func finite(x *kernel.Acts) bool {
	for i := range x.N {
		for _, v := range nn.Row(x, i) {
			if v-v != 0 {
				return false
			}
		}
	}
	return true
}
