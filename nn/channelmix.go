package nn

import (
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// ChannelMix is the channel mixing of RWKV: an MLP with the square of ReLU over rows that
// are mixed with those before them, which makes a mixer of it. Up to version 6 a gate
// weighs what it gives.
type ChannelMix struct {
	Lerp     []float32 // how much of the row before is in a row, [hidden]
	Key, Out Linear    // [ffn][hidden], [hidden][ffn]

	Gate     Linear    // [hidden][hidden]; without a matrix: none
	GateLerp []float32 // what Lerp is to Key, [hidden]
}

// Form returns the form of the rows that the mixer reads: its matrix reads others.
func (m *ChannelMix) Form() Form { return Form{} }

// Keeps returns the state: the row before.
func (m *ChannelMix) Keeps() kvcache.LayerShape {
	return kvcache.LayerShape{State: 4 * len(m.Lerp), Parts: 1}
}

// Reads returns the regions of the matrices.
func (m *ChannelMix) Reads() Reads {
	r := []Region{reads(1, &m.Key), reads(1, &m.Out)}
	if m.Gate.W != nil {
		r = append(r, reads(1, &m.Gate))
	}
	return Reads{Regions: r}
}

// channelRows is what channel mixing computes on the way.
type channelRows struct {
	mixed, gated   kernel.Acts
	up, down, gate kernel.Acts

	shift  shiftTask
	square squareTask
}

// Mix computes the rows for the output matrix, or those that it gives if they are gated,
// and moves the state on.
func (m *ChannelMix) Mix(e *Exec, s *Step, layer int, x *kernel.Acts) (*kernel.Acts, *Linear) {
	r := scratch[channelRows](e)
	r.shift.begin(e, s, layer, 1, x)
	r.shift.add(&r.mixed, m.Lerp, nil, FormOf(&m.Key))
	if m.Gate.W != nil {
		r.shift.add(&r.gated, m.GateLerp, nil, FormOf(&m.Gate))
	}
	r.shift.run(e)
	r.shift.keep()
	f := FormOf(&m.Out)
	e.Linear(&r.mixed, Out{&m.Key, &r.up})
	formRows(&r.up, x.N, m.Key.W.Rows, f)
	r.square = squareTask{&r.up, f.Quant()}
	e.run(&r.square, r.up.N*r.up.K)
	if m.Gate.W == nil {
		return &r.up, &m.Out
	}
	e.Linear(&r.up, Out{&m.Out, &r.down})
	e.Linear(&r.gated, Out{&m.Gate, &r.gate})
	for i := range x.N {
		gate := Row(&r.gate, i)
		sigmoidRow(gate)
		kernel.Mul(Row(&r.down, i), gate)
	}
	return &r.down, nil
}

// squareTask is the square of ReLU. It is split by rows.
type squareTask struct {
	x     *kernel.Acts
	quant bool
}

func (t *squareTask) Do(worker, workers int) {
	lo, hi := pool.Split(t.x.N, worker, workers)
	for i := lo; i < hi; i++ {
		activate(ReLU2, Row(t.x, i), nil)
		if t.quant {
			t.x.Quantize(i, 0, t.x.K)
		}
	}
}
