package roofline

import (
	"ridge/kernel"
	"ridge/kvcache"
)

// Use is how a model is going to be used.
type Use struct {
	Context int // tokens of a sequence, prompt and answer
	Seqs    int // sequences at once; 0 means 1
	Chunk   int // rows computed at once; 0 means DefaultChunk
}

// Memory is what a model takes, in bytes.
type Memory struct {
	Weights     int64 `json:"weights"`     // packed matrices, norms, biases
	KV          int64 `json:"kv"`          // keys and values of all sequences when they are full
	Activations int64 `json:"activations"` // rows of one step
	Vocabulary  int64 `json:"vocabulary"`  // tokenizer, where Program has not been measured with it
	Program     int64 `json:"program"`     // ridge itself with the tokenizer; 0 if not measured
	// Measured is the most that a process had which filled the contexts, 0 if that
	// was not measured. Total does not have it.
	Measured int64 `json:"measured,omitempty"`
}

// Total adds everything up.
func (m Memory) Total() int64 { return m.Weights + m.KV + m.Activations + m.Vocabulary + m.Program }

// vocabEntry is about what the tokenizer keeps for an entry of the vocabulary:
// text, score and places in tables.
const vocabEntry = 120

// engineBytes is about what a process takes beside all that is counted once it
// computes: the code of kernels and engine, threads and their stacks, and what
// is on the heap and not collected yet. Measured it is 9 to 19 MiB, and varies
// by 3 with when the collector runs.
const engineBytes = 12 << 20

// Memory counts what the use of the model takes. The file itself is mapped and
// not counted: its pages are given back as they are packed, and rows of the
// embedding are read from the file.
func (s *Shape) Memory(u Use) Memory {
	chunk := u.Chunk
	if chunk <= 0 {
		chunk = DefaultChunk
	}
	m := Memory{
		Weights:     s.PackedBytes + s.apartBytes() + s.Outline.VectorSize,
		KV:          s.kvMemory(u.Context, u.Seqs, chunk),
		Activations: s.activations(max(min(chunk, u.Context), u.Seqs, 1), max(u.Seqs, 1)),
		Vocabulary:  vocabEntry * int64(s.Outline.Config.Vocab),
	}
	if s.Program > 0 {
		m.Program, m.Vocabulary = s.Program+engineBytes, 0 // it has the tokenizer
	}
	return m
}

// pageTokens is the default size of a page of keys and values.
const pageTokens = 64

// KVMemory returns the bytes of the pages that hold seqs sequences (0 means 1)
// of the given number of tokens, all of which they keep.
func (s *Shape) KVMemory(tokens, seqs int) int64 { return s.kvMemory(tokens, seqs, 0) }

// kvMemory is KVMemory for sequences that are computed by step tokens at a time
// and then keep what layers with windows still see; step 0 if they keep all.
func (s *Shape) kvMemory(tokens, seqs, step int) int64 {
	cfg := kvcache.Config{DType: s.KV, PageTokens: pageTokens}
	for _, l := range s.layers {
		keeps := l.keeps
		if keeps.Window >= tokens {
			keeps.Window = 0
		}
		cfg.Layers = append(cfg.Layers, keeps)
	}
	n, err := kvcache.SequenceBytes(cfg, max(tokens, 1), step)
	if err != nil {
		panic(err) // Read has checked the layers
	}
	return n * int64(max(seqs, 1))
}

// activations counts the buffers of a step of so many rows: see package model.
func (s *Shape) activations(rows, outputs int) int64 {
	c := &s.Outline.Config
	float := func(k int) int64 { return 4 * int64((k+15)&^15) }
	quant := func(k int) int64 { return int64(s.Act.Planes() * kernel.ActRowBytes(k)) }
	kv := 0
	for _, n := range c.KVHeads {
		kv = max(kv, n*c.HeadDim)
	}
	q := c.Heads * c.HeadDim
	row := 3*float(c.Hidden) + quant(c.Hidden) // residual, normalized, output of a block
	row += float(q) + 2*float(kv) + float(q) + quant(q)
	row += float(c.FFN) + quant(c.FFN)
	if c.Gated {
		row += float(c.FFN)
	}
	if c.Parallel {
		row += float(c.Hidden) + quant(c.Hidden)
	}
	if x := &c.Experts; x.Count > 0 { // rows are gathered for each expert that they choose
		slot := 2*float(c.Hidden) + quant(c.Hidden) + 2*float(x.FFN) + quant(x.FFN)
		row += int64(x.TopK)*slot + float(c.Hidden) + float(x.Count) + 2*float(x.SharedFFN) + quant(x.SharedFFN)
	}
	row += int64(len(c.Rope)) * 2 * float(c.RopeDim/2)
	out := float(c.Hidden) + quant(c.Hidden) + float(c.Vocab)
	return int64(rows)*row + int64(outputs)*out
}

// Fit says how far a memory of a given size goes.
type Fit struct {
	Fits    bool `json:"fits"`        // the use as asked for
	Context int  `json:"max_context"` // longest sequences, of as many as asked for; 0 if not even weights fit
	Seqs    int  `json:"max_seqs"`    // most sequences of the context asked for
}

// Fit says what fits in the given number of bytes. Contexts are not longer
// than what the model was made for, or what is asked for if that is more.
func (s *Shape) Fit(u Use, bytes int64) Fit {
	f := Fit{Fits: s.Memory(u).Total() <= bytes}
	most := max(s.Outline.Config.Context, u.Context)
	f.Context = largest(most, func(n int) bool {
		v := u
		v.Context = n
		return s.Memory(v).Total() <= bytes
	})
	f.Seqs = largest(maxSeqs, func(n int) bool {
		v := u
		v.Seqs = n
		return s.Memory(v).Total() <= bytes
	})
	return f
}

// maxSeqs bounds the sequences that Fit looks at.
const maxSeqs = 1 << 16

// largest returns the largest n up to most for which ok holds, 0 if there is
// none; ok must hold for all smaller ones too.
func largest(most int, ok func(n int) bool) int {
	lo, hi := 0, most
	for lo < hi {
		mid := lo + (hi-lo+1)/2
		if ok(mid) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// apartBytes returns the bytes of all columns apart.
func (s *Shape) apartBytes() int64 {
	n := 0.0
	for m := range s.matrices() {
		n += s.apart(m)
	}
	return int64(apartSize * n)
}
