package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"ridge/weights/tensor"
)

// fingerprint sums up what a model computes with while it is loaded. It looks at
// the matrices themselves and not at the file's name, size and time, which say
// nothing of a file that was replaced in place, and differ for a copy.
type fingerprint struct{ hash.Hash }

// Of each matrix so many samples of so many bytes are looked at, evenly spread:
// other training or another quantization changes whole matrices. Each costs a
// page of the file, and may cost a wait for the disk.
const (
	samples     = 8
	sampleBytes = 64
)

func newFingerprint(c *Config) fingerprint {
	f := fingerprint{sha256.New()}
	f.Write([]byte(c.identity()))
	return f
}

// add takes a matrix in, in the order of loading, which an architecture fixes.
func (f fingerprint) add(name string, m tensor.Mat) {
	fmt.Fprintf(f, "%s %v %d %d\n", name, m.Type, m.Rows, m.Cols)
	if len(m.Data) <= samples*sampleBytes {
		f.Write(m.Data)
		return
	}
	for i := range samples {
		at := (len(m.Data) - sampleBytes) / (samples - 1) * i
		f.Write(m.Data[at : at+sampleBytes])
	}
}

// Fingerprint identifies what the model computes: its configuration, samples of
// each of its matrices, as they were loaded, the rotary frequencies, the
// precision of activations, whether keys are balanced, and what rows are steered by. Keys and values that were computed by a model are of
// use to those with the same fingerprint only.
func (m *Model) Fingerprint() string {
	h := sha256.New()
	h.Write(m.w.sum)
	for _, r := range m.ropes {
		fmt.Fprintln(h, r.Inv, r.Scale)
		if r.Grow != nil {
			fmt.Fprintln(h, "by length", r.Limit)
		}
	}
	if m.act != ActInt8 {
		fmt.Fprint(h, m.act, m.act.tag())
	}
	if m.balanced() {
		fmt.Fprint(h, "balanced keys")
	}
	if m.steerID != "" {
		fmt.Fprint(h, "steered by ", m.steerID)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// balanced reports whether keys are stored other than they are: see
// nn.Attention.Balance.
func (m *Model) balanced() bool {
	if m.kv == nil || m.kv.DType() != tensor.Q8_0 {
		return false
	}
	for i := range m.net.Layers {
		if a, ok := m.net.Layers[i].Mix.(interface{ Balanced() bool }); ok && a.Balanced() {
			return true
		}
	}
	return false
}
