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
	groupRow   = 1 << 30 // a whole row
	lorcRank   = 2
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
			Recipe{Method: "quantease", Grid: typ, Against: "gptq", typ: typ, pass: method("quantease")},
			Recipe{Method: "signround", Grid: typ, Against: "gptq", typ: typ, pass: method("signround")},
			Recipe{Method: "clip", Grid: typ, Against: "rtn", typ: typ, pass: method("clip")},
			Recipe{Method: "awq", Grid: typ, Against: "rtn", typ: typ, pass: compress.AWQ{}},
			Recipe{Method: "awq+clip", Grid: typ, Against: "awq", typ: typ, pass: method("awq+clip")},
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
	out = append(out,
		Recipe{Method: "rtn", Grid: "TQ2_0", typ: "TQ2_0", pass: compress.RTN{}},
		Recipe{Method: "absmean", Grid: "TQ2_0", Against: "rtn", typ: "TQ2_0", pass: method("absmean")},
	)
	for _, bits := range []int{4, 3, 2} {
		out = append(out, referenceRecipes(bits, fmt.Sprintf("%d bits", bits), plainSource)...)
	}
	out = append(out, referenceRecipes(3, "3 bits, outliers", outlierSource)...)
	counted := func(method, against string, p compress.Reference) {
		out = append(out, Recipe{Method: method, Grid: "4 bits, quantiles", Against: against, typ: "F32", pass: pass(p), counted: true})
	}
	counted("rtn-reference", "", compress.Reference{Name: "rtn", Bits: 4, Group: groupPlain})
	counted("nf4", "rtn-reference", compress.Reference{Name: "nf4", Bits: 4})
	counted("nf4-double", "nf4", compress.Reference{Name: "nf4-double", Bits: 4})
	return append(out, coarseRecipes()...)
}

// referenceRecipes are rows of methods on reference grids at about equal bytes: those of
// GPTQ in small groups, but for QuIP and what it is compared with, which have one step for a
// row. LoRC's ranks are those that small groups would pay for.
func referenceRecipes(bits int, grid string, from source) (out []Recipe) {
	row := func(method, against string, p compress.Reference) {
		p.Bits, p.Damp, p.Seed = bits, damp, seed
		out = append(out, Recipe{Method: method, Grid: grid, Against: against, source: from, typ: "F32", pass: pass(p), counted: true})
	}
	const gptq, larger, rows = "gptq-reference", "rtn-reference of larger groups", "gptq-reference of rows"
	row(gptq, "", compress.Reference{Name: "gptq", Group: groupPlain})
	row(gptq+" of larger groups", gptq, compress.Reference{Name: "gptq", Group: groupApart})
	row("owq", gptq, compress.Reference{Name: "owq", Group: groupApart, Share: 0.0156})
	row("spqr", gptq, compress.Reference{Name: "spqr", Group: groupApart, Share: 0.0055})
	row("squeezellm", gptq, compress.Reference{Name: "squeezellm", Share: 0.0005})
	row(larger, gptq, compress.Reference{Name: "rtn", Group: groupApart})
	row("rtn-reference+lorc", larger, compress.Reference{Name: "rtn", Group: groupApart, Rank: lorcRank})
	row("gptq-reference+lorc", gptq, compress.Reference{Name: "gptq", Group: groupApart, Rank: lorcRank})
	row(rows, "", compress.Reference{Name: "gptq", Group: groupRow})
	row("ldlq", rows, compress.Reference{Name: "ldlq"})
	row("quip", rows, compress.Reference{Name: "quip"})
	return out
}

// coarseRecipes are rows of integers with one step for a row, of weights and of
// activations, with planted outliers and without.
func coarseRecipes() (out []Recipe) {
	for _, bits := range [][2]int{{8, 8}, {4, 8}, {4, 4}} { // of weights, of activations
		for _, planted := range []bool{false, true} {
			grid, from, turned := fmt.Sprintf("W%dA%d a row", bits[0], bits[1]), plainSource, rotatedSource
			if planted {
				grid, from, turned = grid+", outliers", outlierSource, rotatedOutlierSource
			}
			row := func(method, against string, p compress.Pass, s source, apart float32) {
				out = append(out, Recipe{Method: method, Grid: grid, Against: against, source: s, typ: "F32", pass: p, coarse: &coarse{bits: bits[1], apart: apart}, counted: true})
			}
			last := pass(compress.Reference{Name: "per-row", Bits: bits[0]})
			row("rtn", "", last, from, 0)
			row("smoothquant", "rtn", compress.Then{First: compress.SmoothQuant{Strength: 0.5}, Last: last}, from, 0)
			row("llm-int8", "rtn", last, from, outlierAt)
			row("rotation", "rtn", last, turned, 0)
			row("zeroquant", "rtn", pass(compress.Reference{Name: "rtn", Bits: bits[0], Group: groupPlain}), from, 0)
			if bits[0] == 4 {
				gptq := pass(compress.Reference{Name: "gptq", Bits: bits[0], Group: groupRow, Damp: damp})
				row("gptq-reference", "rtn", gptq, from, 0)
				row("rotation+gptq-reference", "gptq-reference", gptq, turned, 0)
				row("quip", "gptq-reference", pass(compress.Reference{Name: "quip", Bits: bits[0], Damp: damp, Seed: seed}), from, 0)
			}
		}
	}
	return out
}

// method returns a method of ridge quantize, pass one on a reference grid. The table's are
// known ones.
func method(name string) compress.Pass {
	p, err := compress.ParsePass(name, false, damp)
	if err != nil {
		panic(err)
	}
	return p
}

func pass(r compress.Reference) compress.Pass {
	p, err := r.Pass()
	if err != nil {
		panic(err)
	}
	return p
}
