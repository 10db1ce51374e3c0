package compress

import (
	"fmt"

	"ridge/weights/tensor"
)

// What mixtures say of each role, which is llama.cpp's experience: values and the
// matrices back into the residual stream lose most by few bits, and the first and
// last layers more than those between.

// outputType returns the type of the output matrix, or of the embedding that is one.
func (a *assigner) outputType(cols int) tensor.DType {
	switch {
	case a.head != nil:
		return *a.head
	case a.m.in("MXFP4_MOE"), a.shape.arch == "falcon", cols%a.m.Type.BlockSize() != 0:
		return tensor.Q8_0
	case a.m.lowest(), a.m.in("IQ3_XXS"):
		return tensor.Q5_K
	case a.m.Type == tensor.Q8_0:
		return tensor.Q8_0
	}
	return tensor.Q6_K
}

// embeddingType returns the type of an embedding that is not the output matrix.
func (a *assigner) embeddingType() tensor.DType {
	switch {
	case a.embed != nil:
		return *a.embed
	case a.m.in("IQ2_XXS", "IQ2_XS", "IQ1_S", "IQ1_M"):
		return tensor.Q2_K
	case a.m.in("IQ2_S", "IQ2_M", "IQ3_XXS"):
		return tensor.IQ3_S
	case a.m.in("TQ1_0", "TQ2_0", "Q2_0"):
		return tensor.Q4_K
	}
	return a.m.Type
}

// lowestType is for mixtures of codebooks of two bits or fewer.
func (a *assigner) lowestType(r role) tensor.DType {
	above := tensor.Q2_K
	if a.m.in("IQ2_S", "IQ2_M") {
		above = tensor.IQ3_S
	}
	switch {
	case r == value && (a.shape.sharing >= 4 || a.shape.experts >= 4):
		return tensor.Q4_K
	case r == value:
		return above
	case r == key && a.shape.experts == 8:
		return tensor.Q4_K
	case r == down:
		a.nthDown++
		if a.nthDown <= a.shape.layers/8 {
			return above
		}
	case r == attnOutput && a.shape.experts == 8:
		return tensor.Q5_K
	case r == attnOutput && a.m.in("IQ1_S", "IQ1_M"):
		return tensor.IQ2_XXS
	case r == attnOutput && a.m.in("IQ2_S", "IQ2_M"):
		return tensor.IQ3_S
	}
	return a.m.Type
}

// more reports whether layer i of n is one that gets more bits.
func more(i, n int) bool { return i < n/8 || i >= 7*n/8 || (i-n/8)%3 == 2 }

// valueType is for attention's values, alone or with queries and keys.
func (a *assigner) valueType() tensor.DType {
	typ := a.sharedValueType()
	if a.shape.seventy && (typ == tensor.Q3_K || typ == tensor.Q4_K) {
		typ = tensor.Q5_K
	}
	if a.shape.experts == 8 {
		typ = tensor.Q8_0
	}
	return typ
}

// sharedValueType is valueType but for the sizes of models that have their own rule.
func (a *assigner) sharedValueType() tensor.DType {
	shared := a.shape.sharing >= 4
	switch {
	case a.m.in("Q2_K") && !shared:
		return tensor.Q3_K
	case a.m.in("Q2_K", "Q2_K_S", "IQ3_XXS", "IQ3_XS", "IQ3_S") && shared:
		return tensor.Q4_K
	case a.m.in("IQ3_XXS") && !a.measured:
		return tensor.IQ3_S
	case a.m.in("IQ3_M"), a.m.in("Q3_K_M") && a.nthValue >= 2:
		return tensor.Q4_K
	case a.m.in("Q3_K_M", "Q3_K_L"), a.m.in("IQ4_NL", "IQ4_XS") && shared, a.m.in("Q4_K_S") && a.nthValue < 4:
		return tensor.Q5_K
	case a.m.in("Q4_K_M", "Q5_K_M") && more(a.nthValue, a.values):
		return tensor.Q6_K
	}
	return a.m.Type
}

// keyType is for attention's keys and queries.
func (a *assigner) keyType(r role) tensor.DType {
	switch {
	case r == key && a.shape.experts == 8:
		return tensor.Q8_0
	case a.m.in("IQ3_XS"):
		return tensor.IQ3_XXS
	case a.m.in("IQ3_XXS"):
		return tensor.IQ2_S
	}
	return a.m.Type
}

// attnOutputType is for attention's way back.
func (a *assigner) attnOutputType() tensor.DType {
	switch {
	case a.shape.arch == "falcon" && a.m.in("Q3_K_L"):
		return tensor.Q4_K
	case a.shape.arch == "falcon":
	case a.shape.experts == 8:
		if a.m.in("Q2_K", "IQ3_XS", "IQ3_XXS", "Q3_K_S", "Q3_K_M", "IQ4_NL", "Q4_K_S", "Q4_K_M", "IQ3_S", "IQ3_M", "IQ4_XS") {
			return tensor.Q5_K
		}
	case a.m.in("Q2_K"):
		return tensor.Q3_K
	case a.m.in("IQ3_XXS"):
		return tensor.IQ3_S
	case a.m.in("Q3_K_M", "IQ3_M"):
		return tensor.Q4_K
	case a.m.in("Q3_K_L"):
		return tensor.Q5_K
	}
	return a.m.Type
}

// ffnType is for the matrices of FFNs. Of models with experts the layer is in the
// name, of others they are counted.
func (a *assigner) ffnType(name string, r role) (tensor.DType, error) {
	counter := map[role]*int{down: &a.nthDown, gate: &a.nthGate, up: &a.nthUp}[r]
	layer, n := *counter, a.shape.layers
	*counter++
	if a.shape.experts > 1 {
		if layer = layerOf(name); layer < 0 || layer >= n {
			return 0, fmt.Errorf("compress: tensor %q: expected a layer from 0 to %d in its name", name, n-1)
		}
	}
	if r == down {
		return a.downType(layer, n), nil
	}
	if a.m.in("IQ3_XS") && layer >= n/8 && layer < 7*n/8 {
		return tensor.IQ3_XXS, nil
	}
	return a.m.Type, nil
}

// downType is for the FFN's way back, of layer i of n.
func (a *assigner) downType(i, n int) tensor.DType {
	falcon, first := a.shape.arch == "falcon", i < n/8
	switch a.m.Name {
	case "Q2_K":
		return tensor.Q3_K
	case "Q2_K_S":
		if first {
			return tensor.Q4_K
		}
	case "IQ3_XXS":
		switch {
		case a.measured:
		case first:
			return tensor.Q4_K
		default:
			return tensor.Q3_K
		}
	case "Q3_K_M":
		switch {
		case i < n/16:
			return tensor.Q5_K
		case !falcon || more(i, n):
			return tensor.Q4_K
		}
	case "IQ3_M":
		if first || a.shape.experts == 8 && more(i, n) {
			return tensor.Q4_K
		}
	case "Q3_K_L":
		if falcon {
			return tensor.Q4_K
		}
		return tensor.Q5_K
	case "Q4_K_M":
		switch {
		case falcon && i >= n/16 && more(i, n):
			return tensor.Q5_K
		case falcon && i < n/16, !falcon && more(i, n):
			return tensor.Q6_K
		}
	case "IQ4_NL", "IQ4_XS":
		if first && !a.measured {
			return tensor.Q5_K
		}
	case "Q5_K_M":
		if more(i, n) {
			return tensor.Q6_K
		}
	case "Q4_K_S":
		if first && !falcon {
			return tensor.Q5_K
		}
	case "Q4_0", "Q5_0":
		if first && a.measured {
			return a.m.Type + 1 // with a minimum
		}
	}
	return a.m.Type
}
