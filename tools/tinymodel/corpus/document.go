package main

import (
	"encoding/binary"
	"io"

	"ridge/weights/tensor"
)

// topK is the number of the teacher's tokens kept as soft targets.
const topK = 16

// target is what the teacher thought of one place: its most probable tokens,
// best first, and the natural logarithms of their probabilities.
type target struct {
	id   [topK]uint16
	logp [topK]uint16 // F16
}

// document is one conversation or text.
type document struct {
	tokens  []uint16
	learned []byte   // per token: 1 if an answer's token, which has a target
	targets []target // one per learned token, in order
	answer  int      // learned tokens
}

func (d *document) add(tok int32, t *target) {
	d.tokens = append(d.tokens, uint16(tok))
	if t == nil {
		d.learned = append(d.learned, 0)
		return
	}
	d.learned = append(d.learned, 1)
	d.targets = append(d.targets, *t)
	d.answer++
}

func (t *target) set(i int, id int32, logp float32) {
	t.id[i], t.logp[i] = uint16(id), tensor.F32ToF16(logp)
}

// write appends the document to w, all little-endian: u16 number of tokens n;
// n u16 tokens; n bytes, 1 where a token has a target; per target topK u16 ids
// and topK F16 log-probabilities.
func (d *document) write(w io.Writer) error {
	b := binary.LittleEndian.AppendUint16(nil, uint16(len(d.tokens)))
	for _, t := range d.tokens {
		b = binary.LittleEndian.AppendUint16(b, t)
	}
	b = append(b, d.learned...)
	for i := range d.targets {
		for _, id := range d.targets[i].id {
			b = binary.LittleEndian.AppendUint16(b, id)
		}
		for _, p := range d.targets[i].logp {
			b = binary.LittleEndian.AppendUint16(b, p)
		}
	}
	_, err := w.Write(b)
	return err
}
