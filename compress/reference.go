package compress

import "fmt"

// Reference describes a method on a grid that no file has: its values are written as
// floats into matrices that stay F32, and the bytes that codes would take are counted.
type Reference struct {
	// Name is rtn, gptq, obq, owq, spqr, squeezellm, quip, ldlq (QuIP without turns),
	// per-row, nf4 or nf4-double.
	Name string
	Bits int
	// Group is how many columns share a step; of the last six it is not used.
	Group int
	// Share is how much is kept as float16: of the columns (owq) or the weights (spqr,
	// squeezellm).
	Share float64
	Damp  float64
	Seed  uint64
	// Rank is that of the matrices that make good for a part of the error; 0 for none.
	Rank int
}

// Pass returns the method.
func (r Reference) Pass() (p Pass, err error) {
	if r.Bits < 1 || r.Bits > 8 || r.Share < 0 || r.Share > 1 || r.Rank < 0 {
		return nil, fmt.Errorf("compress: reference %q: expected 1 to 8 bits, a share of 0 to 1 and a rank of at least 0, found %d, %g and %d", r.Name, r.Bits, r.Share, r.Rank)
	}
	grid := affine{Bits: r.Bits, Group: r.Group}
	grouped := true
	switch r.Name {
	case "rtn":
		p = referenceRTN{Grid: grid}
	case "gptq":
		p = referenceGPTQ{Grid: grid, Damp: r.Damp}
	case "obq":
		p = obq{Grid: grid, Damp: r.Damp}
	case "owq":
		p = owq{Grid: grid, Share: r.Share, Damp: r.Damp}
	case "spqr":
		p = spqr{Grid: grid, Share: r.Share, Damp: r.Damp}
	default:
		grouped = false
	}
	switch r.Name {
	case "squeezellm":
		p = squeezeLLM{Bits: r.Bits, Share: r.Share}
	case "quip", "ldlq":
		p = quip{Bits: r.Bits, Damp: r.Damp, Seed: r.Seed, Plain: r.Name == "ldlq"}
	case "per-row":
		p = perRow{Bits: r.Bits}
	case "nf4", "nf4-double":
		p = nf4{Double: r.Name == "nf4-double"}
	}
	switch {
	case p == nil:
		return nil, fmt.Errorf("compress: reference %q: unknown", r.Name)
	case grouped && r.Group < 1:
		return nil, fmt.Errorf("compress: reference %q: expected groups of at least one column, found %d", r.Name, r.Group)
	case r.Rank > 0:
		p = lorc{Base: p, Rank: r.Rank}
	}
	return p, nil
}
