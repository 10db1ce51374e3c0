package nn

import (
	"math"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// Attention is attention over a sequence's keys and values, causal or in both
// directions: any number of query heads for each key-value head, an optional
// window, rotary positions, ALiBi or biases by distance, norms of queries and keys.
type Attention struct {
	Q, K, V, Out Linear // [heads·dim][hidden], twice [kv heads·dim][hidden], [hidden][heads·dim]
	// Gate, [heads·dim][hidden], multiplies what the heads give by the sigmoid of
	// its product (Qiu et al. 2025, arXiv 2505.06708); without weights: none.
	Gate Linear

	// Sub is the norm of what the heads give, before Out; without weights: none.
	Sub Norm

	Heads, KVHeads, HeadDim int

	QNorm, KNorm Norm    // per head or over all heads, by their length
	NormRotated  bool    // they are applied after the rotation, and not before it
	VNorm        Norm    // of values, per head
	KeyIsValue   bool    // values are the keys' products, before norm and rotation; V has no weights
	Clip         float32 // queries, keys and values are limited to ±Clip first; 0 for none
	Rope         *Rope   // shared by layers that rotate alike; nil for none

	Scale   float32   // of query·key
	Temper  Temper    // of queries by their position
	Softcap float32   // 0 for none
	Window  int       // keys that a query sees at most, itself included; 0 for all
	Chunk   int       // positions in a chunk: queries see the keys of their own one alone; 0 for all
	Slopes  []float32 // ALiBi, per head; nil for none
	Sinks   []float32 // per head, the score of a key that is not there (Xiao et al. 2024); nil for none

	// Both lets rows see those behind them as well. A run is a whole text then: its
	// keys and values are of use while the mixer runs, and lie in the pages of layer
	// KeysLayer, whose attention is alike, if Lodges is set.
	Both   bool
	Lodges bool
	Reach  int       // with Both: how far before and behind itself a row sees; 0 for all
	Bias   *Distance // added to scores; nil for none

	// KeysOf, when not nil, is the attention of layer KeysLayer, an earlier one with
	// the same heads and the same window, whose keys and values this one reads: it
	// has none of its own, and keeps nothing (You Only Cache Once, Sun et al. 2024).
	KeysOf    *Attention
	KeysLayer int

	balance balance // see Balance
	// valuesInKeys is how many elements of a key are its value, 0 where values are
	// kept beside keys: see Latent.
	valuesInKeys int
}

// valueDim returns the elements of a head's value.
func (a *Attention) valueDim() int {
	if a.valuesInKeys > 0 {
		return a.valuesInKeys
	}
	return a.HeadDim
}

// Temper makes the queries of late positions larger: by 1 + Beta·ln(1 + ⌊(position +
// Shift) / Period⌋), as Llama 4 and Ministral 3 do (Nakanishi 2025, arXiv
// 2501.19399). Beta 0 is none.
type Temper struct {
	Beta          float32
	Period, Shift int
}

// scale returns the factor of a position's queries.
func (t *Temper) scale(pos int) float32 {
	if t.Beta == 0 || t.Period <= 0 {
		return 1
	}
	return 1 + t.Beta*float32(math.Log1p(float64((pos+t.Shift)/t.Period)))
}

// attnRows is what attention computes on the way from its input to the rows for
// its output matrix.
type attnRows struct {
	q, k, v kernel.Acts // [rows][heads·dim], twice [rows][kv heads·dim]
	out     kernel.Acts // [rows][heads·dim]
	gate    kernel.Acts // [rows][heads·dim]
	normed  kernel.Acts // [rows][heads·dim]
}

// Form returns the form of the rows that queries, keys and values are computed from.
func (a *Attention) Form() Form { return FormOf(&a.Q, &a.K, &a.V, &a.Gate) }

// Keeps returns the shape of the keys and values of a sequence.
func (a *Attention) Keeps() kvcache.LayerShape {
	if a.KeysOf != nil || a.Lodges {
		return kvcache.LayerShape{}
	}
	return a.shape()
}

// shape is that of the keys and values that the rows are multiplied with.
func (a *Attention) shape() kvcache.LayerShape {
	window := a.Window
	if a.Chunk > 0 && (window == 0 || a.Chunk < window) {
		window = a.Chunk
	}
	return kvcache.LayerShape{Heads: a.KVHeads, KDim: a.HeadDim, VDim: a.HeadDim, Window: window}
}

// Reads returns the two regions of attention's matrices.
func (a *Attention) Reads() Reads {
	in, out := reads(1, &a.Q, &a.K, &a.V), Reads{Queries: a.Heads}
	switch {
	case a.KeysOf != nil:
		in, out.Shared = reads(1, &a.Q), a.KeysOf.Keeps()
	case a.KeyIsValue:
		in = reads(1, &a.Q, &a.K)
	case a.Lodges:
		out.Shared = a.shape()
	}
	if a.Gate.W != nil {
		in.Mats = append(in.Mats, &a.Gate)
	}
	out.Regions = []Region{in, reads(1, &a.Out)}
	return out
}

// Mix appends the rows' keys and values to their sequences, and computes what
// the rows' queries see of them.
func (a *Attention) Mix(e *Exec, s *Step, layer int, x *kernel.Acts) (*kernel.Acts, *Linear) {
	r := scratch[attnRows](e)
	switch {
	case a.KeysOf != nil:
		e.Linear(x, Out{&a.Q, &r.q})
		Rows(&r.k, x.N, 0, false)
		Rows(&r.v, x.N, 0, false)
		layer = a.KeysLayer
	case a.KeyIsValue:
		e.Linear(x, Out{&a.Q, &r.q}, Out{&a.K, &r.k})
		Rows(&r.v, x.N, r.k.K, false)
		copy(r.v.F32, r.k.F32)
	case a.Gate.W != nil:
		e.Linear(x, Out{&a.Q, &r.q}, Out{&a.K, &r.k}, Out{&a.V, &r.v}, Out{&a.Gate, &r.gate})
	default:
		e.Linear(x, Out{&a.Q, &r.q}, Out{&a.K, &r.k}, Out{&a.V, &r.v})
	}
	if a.Lodges {
		layer = a.KeysLayer
	}
	e.appendKV(a, s, layer, &r.q, &r.k, &r.v)
	form := FormOf(&a.Out)
	if a.Sub.W != nil {
		e.attend(a, s, layer, &r.out, &r.q, Form{})
		e.Norm(&r.normed, &r.out, &a.Sub, form)
		return &r.normed, &a.Out
	}
	if a.Gate.W == nil {
		e.attend(a, s, layer, &r.out, &r.q, form)
		return &r.out, &a.Out
	}
	e.attend(a, s, layer, &r.out, &r.q, Form{})
	e.openGate(&r.out, &r.gate, form)
	return &r.out, &a.Out
}

// gateTask multiplies rows of x by the sigmoids of rows of gate.
type gateTask struct {
	x, gate *kernel.Acts
	quant   bool
}

// openGate multiplies the rows of x by the sigmoids of those of gate, and gives
// them the form f.
func (e *Exec) openGate(x, gate *kernel.Acts, f Form) {
	formRows(x, x.N, x.K, f)
	e.gate = gateTask{x, gate, f.Quant()}
	e.run(&e.gate, 8*x.N*x.K)
}

func (t *gateTask) Do(worker, workers int) {
	lo, hi := pool.Split(t.x.N, worker, workers)
	for r := lo; r < hi; r++ {
		x, gate := Row(t.x, r), Row(t.gate, r)
		for i, g := range gate {
			x[i] *= sigmoid(g)
		}
		if t.quant {
			t.x.Quantize(r, 0, t.x.K)
		}
	}
}
