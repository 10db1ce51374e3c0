package nn

import "math"

// balance is what queries and keys are multiplied with before keys are stored as
// bytes. A key as bytes has one scale, which its largest element sets: elements
// that are always small lose what they say beside ones that are always large,
// such as those with a large bias. Dividing an element of all keys by about its
// usual size, and multiplying that of all queries by it, makes them alike and
// leaves each product as it is (as SmoothQuant does for activations, Xiao et al.
// 2022).
type balance struct {
	q, k []float32 // [heads·dim], [kv heads·dim]; nil for none
}

// balanceShare is the exponent of the usual size in the factors: with 1 elements
// of keys become equally large, and queries as unequal as keys were.
const balanceShare = 0.75

// Balance finds out which elements of keys are larger than others by what is
// known of them without any input: the weights of their norm, else their bias.
// Elements that are rotated together get the same factor. It changes how keys
// are stored as bytes, and nothing else.
func (a *Attention) Balance() {
	a.balance = balance{}
	sizes := a.keySizes()
	if sizes == nil {
		return
	}
	even := true
	for i, s := range sizes {
		sizes[i] = float32(math.Pow(float64(s), balanceShare))
		even = even && sizes[i] == sizes[0]
	}
	if even {
		return
	}
	dim, group := a.HeadDim, a.Heads/a.KVHeads
	b := balance{q: make([]float32, 0, a.Heads*dim), k: make([]float32, len(sizes))}
	for i, s := range sizes {
		b.k[i] = 1 / s
	}
	for h := range a.Heads {
		b.q = append(b.q, sizes[h/group*dim:][:dim]...)
	}
	a.balance = b
}

// balanced returns how the keys that a reads are stored as bytes.
func (a *Attention) balanced() *balance {
	if a.KeysOf != nil {
		return &a.KeysOf.balance
	}
	return &a.balance
}

// Balanced reports whether keys as bytes are stored other than they are.
func (a *Attention) Balanced() bool { return a.balance.k != nil }

// keySizes returns about how large the elements of keys are, [kv heads·dim], nil
// if nothing is known. A product with normalized rows is taken to be of size 1.
func (a *Attention) keySizes() []float32 {
	sizes := make([]float32, a.KVHeads*a.HeadDim)
	switch norm, bias := a.KNorm.W, a.K.Bias; {
	case norm != nil:
		for i := range sizes {
			sizes[i] = norm[i%len(norm)]
		}
	case len(bias) >= len(sizes):
		for i := range sizes {
			sizes[i] = float32(math.Hypot(1, float64(bias[i])))
		}
	default:
		return nil
	}
	for h := 0; h < len(sizes); h += a.HeadDim {
		a.pairs(sizes[h : h+a.HeadDim])
	}
	for i, s := range sizes {
		if s != s {
			return nil
		}
		sizes[i] = min(max(s, leastSize), 1/leastSize)
	}
	return sizes
}

// leastSize bounds the sizes on which factors depend.
const leastSize = 1. / (1 << 12)

// pairs sets the elements of a head that are rotated together to their mean
// square's root, and others to their magnitude.
func (a *Attention) pairs(x []float32) {
	rotated := 0
	if a.Rope != nil {
		half := len(a.Rope.Inv)
		rotated = 2 * half
		for i := range half {
			p, q := i, i+half
			if a.Rope.Style == RopeNorm {
				p, q = 2*i, 2*i+1
			}
			size := float32(math.Hypot(float64(x[p]), float64(x[q])) / math.Sqrt2)
			x[p], x[q] = size, size
		}
	}
	for i := rotated; i < len(x); i++ {
		x[i] = max(x[i], -x[i])
	}
}
