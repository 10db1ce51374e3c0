package quant

import (
	"fmt"

	"ridge/compress"
)

// Recipe is a row of the table before it is measured.
type Recipe struct {
	// Method and Grid are what the row is called.
	Method, Grid string
	// Against is the method on the same grid or at the same bytes that it is compared
	// with token by token, "" for none.
	Against string

	source  source
	typ     string // of the matrices of layers
	pass    compress.Pass
	coarse  *coarse
	counted bool // a reference: bytes are counted, not those of a file
}

// coarse is what model.SetCoarse takes.
type coarse struct {
	bits  int
	apart float32
}

// source is the float model that is rounded: all of them compute the same.
type source int

const (
	plainSource source = iota
	rotatedSource
	outlierSource        // columns of inputs that are much larger than others
	rotatedOutlierSource // the same, turned
)

const (
	damp       = 0.01
	seed       = 1
	outlierAt  = 6 // of LLM.int8()
	planted    = 4 // columns
	plantedBy  = 40
	groupPlain = 64 // of GPTQ on a reference grid
	groupApart = 128
)

// Recipes returns all rows: methods whose files kernels run, methods on reference grids
// of so many bits at equal bytes, and grids of activations. A model's types must have rows
// of whole blocks.
func Recipes() []Recipe {
	var out []Recipe
	for _, typ := range []string{"Q8_0", "Q4_0", "Q3_K", "Q2_K"} {
		out = append(out,
			Recipe{Method: "rtn", Grid: typ, typ: typ, pass: compress.RTN{}},
			Recipe{Method: "gptq", Grid: typ, Against: "rtn", typ: typ, pass: compress.GPTQ{Damp: damp}},
			Recipe{Method: "awq", Grid: typ, Against: "rtn", typ: typ, pass: compress.AWQ{}},
			Recipe{Method: "rotation", Grid: typ, Against: "rtn", typ: typ, pass: compress.RTN{}, source: rotatedSource},
			Recipe{Method: "rotation+gptq", Grid: typ, Against: "gptq", typ: typ, pass: compress.GPTQ{Damp: damp}, source: rotatedSource},
		)
	}
	for _, typ := range []string{"Q5_1", "Q4_1"} {
		out = append(out,
			Recipe{Method: "rtn", Grid: typ, typ: typ, pass: compress.RTN{}},
			Recipe{Method: "hqq", Grid: typ, Against: "rtn", typ: typ, pass: compress.HQQ{}},
		)
	}
	for _, bits := range []int{4, 3, 2} {
		grid := fmt.Sprintf("%d bits", bits)
		apart := compress.Affine{Bits: bits, Group: groupApart}
		for _, p := range []compress.Pass{
			compress.ReferenceGPTQ{Grid: compress.Affine{Bits: bits, Group: groupPlain}, Damp: damp},
			compress.ReferenceGPTQ{Grid: apart, Damp: damp},
			compress.OWQ{Grid: apart, Share: 0.0156, Damp: damp},
			compress.SpQR{Grid: apart, Share: 0.0055, Damp: damp},
			compress.SqueezeLLM{Bits: bits, Share: 0.0005},
		} {
			r := Recipe{Method: p.Name(), Grid: grid, Against: "gptq-reference", typ: "F32", pass: p, counted: true}
			if g, ok := p.(compress.ReferenceGPTQ); ok && g.Grid == apart {
				r.Method += " of larger groups" // the grid of what keeps weights apart, in fewer bytes
			} else if ok {
				r.Against = ""
			}
			out = append(out, r)
		}
	}
	return append(out, coarseRecipes()...)
}

// coarseRecipes are rows of integers with one step for a row, of weights and of
// activations, with planted outliers and without.
func coarseRecipes() (out []Recipe) {
	for _, bits := range []int{8, 4} {
		for _, planted := range []bool{false, true} {
			grid, from, turned := fmt.Sprintf("W%dA%d a row", bits, bits), plainSource, rotatedSource
			if planted {
				grid, from, turned = grid+", outliers", outlierSource, rotatedOutlierSource
			}
			row := func(method, against string, p compress.Pass, s source, apart float32) {
				out = append(out, Recipe{Method: method, Grid: grid, Against: against, source: s, typ: "F32", pass: p, coarse: &coarse{bits: bits, apart: apart}, counted: true})
			}
			last := compress.PerRow{Bits: bits}
			row("rtn", "", last, from, 0)
			row("smoothquant", "rtn", compress.Then{First: compress.SmoothQuant{Strength: 0.5}, Last: last}, from, 0)
			row("llm-int8", "rtn", last, from, outlierAt)
			row("rotation", "rtn", last, turned, 0)
		}
	}
	return out
}
