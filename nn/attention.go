package nn

import (
	"math"

	"ridge/kernel"
	"ridge/kvcache"
)

// Attention is causal attention over a sequence's keys and values: any number
// of query heads for each key-value head, an optional window, rotary positions
// or ALiBi, norms of queries and keys.
type Attention struct {
	Q, K, V, Out Linear // [heads·dim][hidden], twice [kv heads·dim][hidden], [hidden][heads·dim]

	Heads, KVHeads, HeadDim int

	QNorm, KNorm Norm    // applied before rotation; per head or over all heads, by their length
	Clip         float32 // queries, keys and values are limited to ±Clip first; 0 for none
	Rope         *Rope   // shared by layers that rotate alike; nil for none

	Scale   float32   // of query·key
	Temper  Temper    // of queries by their position
	Softcap float32   // 0 for none
	Window  int       // keys that a query sees at most, itself included; 0 for all
	Slopes  []float32 // ALiBi, per head; nil for none
	Sinks   []float32 // per head, the score of a key that is not there (Xiao et al. 2024); nil for none

	balance balance // see Balance
}

// Temper makes the queries of late positions larger: by 1 + Beta·ln(1 + ⌊position /
// Period⌋), as Llama 4 and Ministral 3 do. Beta 0 is none.
type Temper struct {
	Beta   float32
	Period int
}

// scale returns the factor of a position's queries.
func (t *Temper) scale(pos int) float32 {
	if t.Beta == 0 || t.Period <= 0 {
		return 1
	}
	return 1 + t.Beta*float32(math.Log1p(float64(pos/t.Period)))
}

// attnRows is what attention computes on the way from its input to the rows for
// its output matrix.
type attnRows struct {
	q, k, v kernel.Acts // [rows][heads·dim], twice [rows][kv heads·dim]
	out     kernel.Acts // [rows][heads·dim]
}

// Form returns the form of the rows that queries, keys and values are computed from.
func (a *Attention) Form() Form { return FormOf(&a.Q, &a.K, &a.V) }

// Keeps returns the shape of the keys and values of a sequence.
func (a *Attention) Keeps() kvcache.LayerShape {
	return kvcache.LayerShape{Heads: a.KVHeads, KDim: a.HeadDim, VDim: a.HeadDim, Window: a.Window}
}

// Reads returns the two regions of attention's matrices.
func (a *Attention) Reads() Reads {
	return Reads{Regions: []Region{reads(1, &a.Q, &a.K, &a.V), reads(1, &a.Out)}, Queries: a.Heads}
}

// Mix appends the rows' keys and values to their sequences, and computes what
// the rows' queries see of them.
func (a *Attention) Mix(e *Exec, s *Step, layer int, x *kernel.Acts) (*kernel.Acts, *Linear) {
	r := scratch[attnRows](e)
	e.Linear(x, Out{&a.Q, &r.q}, Out{&a.K, &r.k}, Out{&a.V, &r.v})
	e.appendKV(a, s, layer, &r.q, &r.k, &r.v)
	e.attend(a, s, layer, &r.out, &r.q, FormOf(&a.Out))
	return &r.out, &a.Out
}
