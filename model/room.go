package model

import (
	"fmt"
	"slices"

	"ridge/kvcache"
)

// MemoryError is Open's error for a model that does not fit into memory.
type MemoryError struct {
	Path    string
	Weights int64  // bytes of packed weights
	KV      int64  // bytes of keys and values of one sequence, 0 if others see to them
	Tokens  int    // of that sequence
	Left    int64  // bytes that may be taken
	Of      string // who sets that bound: the machine, the control group or Options.Memory
	Context int    // tokens that would fit, 0 if the weights alone do not
}

func (e *MemoryError) Error() string {
	const mib = 1 << 20
	text := fmt.Sprintf("model: %s: memory: expected at most %d MiB, what %s, found %d MiB of packed weights", e.Path, e.Left/mib, e.Of, e.Weights/mib)
	if e.KV > 0 {
		text += fmt.Sprintf(" and %d MiB of keys and values for %d tokens", e.KV/mib, e.Tokens)
	}
	if e.Context > 0 {
		text += fmt.Sprintf("; %d tokens would fit", e.Context)
	}
	return text
}

// left returns the memory that the model may take and who says so; 0 if nothing
// is known.
func (o *Options) left() (bytes int64, of string) {
	if o.Memory > 0 {
		return o.Memory, "was given"
	}
	l := kvcache.ReadLimits()
	of = "is free on this machine"
	if l.Group >= 0 && l.Left() == l.Group {
		of = "the control group leaves"
	}
	return l.Left(), of
}

// checkRoom returns a *MemoryError if the weights, and keys and values that come
// out of no budget, do not fit into memory.
func (m *Model) checkRoom(o *Options) (*MemoryError, error) {
	e := &MemoryError{Path: m.path, Tokens: m.context, Weights: m.src.size()}
	if e.Left, e.Of = o.left(); e.Left == 0 {
		return nil, nil
	}
	kv := func(int) int64 { return o.KVBytes }
	if m.gg != nil { // the weights of a checkpoint would be changed on the way, and copied
		net, b, err := m.shapes()
		if err != nil {
			return nil, err
		}
		e.Weights = net.packedBytes() + vectorBytes(net, b)
		if o.KVBytes == 0 && o.KVBudget == nil {
			cfg := m.poolConfig(net, o)
			kv = func(tokens int) int64 {
				n, err := kvcache.SequenceBytes(cfg, tokens+max(o.PageTokens, 64), 0)
				if err != nil {
					return 0 // openPool says why
				}
				return n
			}
		}
	}
	if e.KV = kv(m.context); e.Weights+e.KV <= e.Left {
		return nil, nil
	}
	for lo, hi := 0, m.context; lo < hi; e.Context = lo {
		if mid := (lo + hi + 1) / 2; e.Weights+kv(mid) <= e.Left {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	if o.KVBytes > 0 || o.KVBudget != nil {
		e.Context = 0
	}
	return e, nil
}

// shapes builds the network without its weights. The configuration stays what it
// is.
func (m *Model) shapes() (*Net, *builder, error) {
	c := m.cfg
	c.Rope = slices.Clone(c.Rope) // loading adds to it what the weights tell
	b := m.builder()
	b.shapes, b.c = true, &c
	net := m.arch.build(b)
	b.checkUnused(m.arch)
	return net, b, b.err
}

// packedBytes returns the bytes of all packed matrices.
func (n *Net) packedBytes() int64 {
	sum := int64(0)
	for r := range n.Regions() {
		for _, x := range r.Mats {
			sum += int64(x.W.Size())
		}
	}
	return sum
}

// vectorBytes returns the bytes of norms and biases, which are kept as float32.
func vectorBytes(net *Net, b *builder) int64 {
	e, p := net.Embed.Tokens, net.Embed.Positions
	vectors := b.w.params - int64(e.Rows)*int64(e.Cols) - int64(p.Rows)*int64(p.Cols)
	if t := net.Embed.PerLayer; t != nil {
		vectors -= int64(t.Tokens.Rows) * int64(t.Tokens.Cols)
	}
	for r := range net.Regions() {
		for _, x := range r.Mats {
			if !(x == &net.Head.Out && b.c.Tied) {
				vectors -= int64(x.W.Rows) * int64(x.W.Cols)
			}
		}
	}
	return 4 * vectors
}
