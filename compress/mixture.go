// Package compress makes models smaller: it chooses an element type for each
// weight, quantizes files, collects what the rows of a calibration text say about
// the inputs of each matrix, and rounds matrices so that their outputs change least.
// Nothing here runs while a model answers.
package compress

import (
	"fmt"
	"strings"

	"ridge/weights/tensor"
)

// Mixture is a named choice of element types: one for most matrices, others for
// those that matter more. Names and choices are llama.cpp's.
type Mixture struct {
	Name string
	// FileType is general.file_type of files in it.
	FileType uint32
	// Type is that of most matrices.
	Type tensor.DType
}

// Mixtures lists what ParseMixture knows, smallest first.
var Mixtures = []Mixture{
	{"Q1_0", 40, tensor.Q1_0},
	{"IQ1_S", 24, tensor.IQ1_S},
	{"IQ1_M", 31, tensor.IQ1_M},
	{"TQ1_0", 36, tensor.TQ1_0},
	{"IQ2_XXS", 19, tensor.IQ2_XXS},
	{"TQ2_0", 37, tensor.TQ2_0},
	{"Q2_0", 41, tensor.Q2_0},
	{"IQ2_XS", 20, tensor.IQ2_XS},
	{"IQ2_S", 28, tensor.IQ2_XS},
	{"IQ2_M", 29, tensor.IQ2_S},
	{"Q2_K_S", 21, tensor.Q2_K},
	{"Q2_K", 10, tensor.Q2_K},
	{"IQ3_XXS", 23, tensor.IQ3_XXS},
	{"IQ3_XS", 22, tensor.IQ3_S},
	{"IQ3_S", 26, tensor.IQ3_S},
	{"Q3_K_S", 11, tensor.Q3_K},
	{"IQ3_M", 27, tensor.IQ3_S},
	{"Q3_K_M", 12, tensor.Q3_K},
	{"Q3_K_L", 13, tensor.Q3_K},
	{"IQ4_XS", 30, tensor.IQ4_XS},
	{"MXFP4_MOE", 38, tensor.MXFP4},
	{"IQ4_NL", 25, tensor.IQ4_NL},
	{"Q4_0", 2, tensor.Q4_0},
	{"Q4_K_S", 14, tensor.Q4_K},
	{"Q4_K_M", 15, tensor.Q4_K},
	{"Q4_1", 3, tensor.Q4_1},
	{"Q5_0", 8, tensor.Q5_0},
	{"Q5_K_S", 16, tensor.Q5_K},
	{"Q5_K_M", 17, tensor.Q5_K},
	{"Q5_1", 9, tensor.Q5_1},
	{"Q6_K", 18, tensor.Q6_K},
	{"Q8_0", 7, tensor.Q8_0},
	{"F16", 1, tensor.F16},
	{"BF16", 32, tensor.BF16},
	{"F32", 0, tensor.F32},
}

// ParseMixture returns the mixture called name, in any letter case. Q3_K, Q4_K and
// Q5_K are their medium sizes.
func ParseMixture(name string) (Mixture, error) {
	want := strings.ToUpper(name)
	switch want {
	case "Q3_K", "Q4_K", "Q5_K":
		want += "_M"
	}
	var known []string
	for _, m := range Mixtures {
		if m.Name == want {
			return m, nil
		}
		known = append(known, m.Name)
	}
	return Mixture{}, fmt.Errorf("compress: type %q: unknown, expected one of %s", name, strings.Join(known, " "))
}

// in reports whether the mixture has one of these names.
func (m Mixture) in(names ...string) bool {
	for _, n := range names {
		if m.Name == n {
			return true
		}
	}
	return false
}

// lowest reports whether most weights have about two bits or fewer, and come from
// a codebook.
func (m Mixture) lowest() bool {
	return m.in("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M")
}
