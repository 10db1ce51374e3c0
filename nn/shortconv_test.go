package nn

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ridge/kernel"
	"ridge/kvcache"
	"ridge/weights/tensor"
)

// A short convolution is that of its definition, over several sequences, in one
// piece and in pieces with the same bits, on any number of workers.
func TestShortConv(t *testing.T) {
	const hidden, taps = 96, 4
	for _, typ := range execTypes {
		r := rand.New(rand.NewPCG(11, uint64(typ)))
		in, out := newMatrix(t, r, typ, 3*hidden, hidden, true), newMatrix(t, r, typ, hidden, hidden, false)
		c := &ShortConv{In: in.Linear, Out: out.Linear, Bias: randomRow(r, hidden)}
		for range taps {
			c.Taps = append(c.Taps, randomRow(r, hidden))
		}
		lens := []int{9, 1, 70}
		x := randomActs(r, 80, hidden)
		withWorkers(t, func(e *Exec) []*kernel.Acts {
			whole := mixAll(t, e, c, x, lens, 1000)
			at := 0
			for _, n := range lens {
				want := c.naive(in, x, at, n)
				for i := 0; i < n && typ == tensor.F32; i++ { // errors of quantized rows are multiplied
					near(t, fmt.Sprintf("row %d of %d", i, n), whole, at+i, want[i], false)
				}
				at += n
			}
			for _, piece := range []int{1, 2, 5} {
				parts := mixAll(t, e, c, x, lens, piece)
				for i := range x.N {
					if !same(Row(parts, i), Row(whole, i)) {
						t.Fatalf("row %d in pieces of %d: other bits than in one", i, piece)
					}
				}
			}
			return []*kernel.Acts{whole}
		})
	}
}

func randomRow(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func same(a, b []float32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// naive computes the rows first to first+n-1, a sequence, in float64.
func (c *ShortConv) naive(in *matrix, x *kernel.Acts, first, n int) [][]float64 {
	var gated, out [][]float64
	for i := range n {
		p := in.times(values(x, first+i))
		hidden := len(p) / 3
		u, y := make([]float64, hidden), make([]float64, hidden)
		for j := range u {
			u[j] = p[j] * p[2*hidden+j]
		}
		gated = append(gated, u)
		for j := range y {
			y[j] = float64(c.Bias[j])
			for k, tap := range c.Taps {
				if row := i - (len(c.Taps) - 1) + k; row >= 0 {
					y[j] += float64(tap[j]) * gated[row][j]
				}
			}
			y[j] *= p[hidden+j]
		}
		out = append(out, y)
	}
	return out
}

// mixAll mixes sequences, whose rows lie one after the other in x, in steps of
// at most piece rows of each, and returns the rows for the output matrix.
func mixAll(t *testing.T, e *Exec, c Mixer, x *kernel.Acts, lens []int, piece int) *kernel.Acts {
	t.Helper()
	kv, err := kvcache.New(kvcache.Config{
		Layers:     []kvcache.LayerShape{{Heads: 1, KDim: 8, VDim: 8}, c.Keeps()},
		PageTokens: 16, DType: tensor.F32, MaxBytes: 8 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer kv.Close()
	e.KV = kv
	seqs := make([]*kvcache.Seq, len(lens))
	for i := range seqs {
		seqs[i] = kv.NewSeq()
	}
	out := &kernel.Acts{}
	for done, left := 0, true; left; done += piece {
		left = false
		var step Step
		var from []int // rows of x
		at := 0
		for i, n := range lens {
			if rows := min(piece, n-done); rows > 0 {
				left = true
				if err := kv.Grow(seqs[i], rows); err != nil {
					t.Fatal(err)
				}
				step.Runs = append(step.Runs, Run{Seq: seqs[i], Tokens: make([]int32, rows)})
				for j := range rows {
					from = append(from, at+done+j)
				}
			}
			at += n
		}
		step.Place()
		part := kernel.Acts{}
		Rows(&part, len(from), x.K, true)
		for i, row := range from {
			copy(Row(&part, i), Row(x, row))
			part.Quantize(i, 0, x.K)
		}
		if !left {
			break
		}
		got, w := c.Mix(e, &step, 1, &part)
		if gated, ok := c.(*ChannelMix); w == nil && (!ok || gated.Gate.W == nil) {
			t.Fatal("expected the output matrix")
		}
		Rows(out, x.N, got.K, false)
		for i, row := range from {
			copy(Row(out, row), Row(got, i))
		}
	}
	return out
}
