package model

import (
	"fmt"
	"iter"
	"sync"

	"ridge/kernel"
	"ridge/nn"
)

// Act says how activations are kept that are multiplied with quantized
// matrices. Those that are multiplied with matrices of floats stay float32, but
// with ActBF16. The zero value is the default, ActMixed.
type Act int

// The choices.
const (
	ActMixed  Act = iota // as ActInt8, with the largest columns as float32
	ActInt8              // 8 bits and a scale for 32 values, as most engines have them
	ActFine              // as ActMixed with more columns, and 15 bits where they cost least
	ActInt16             // 8 bits, and 8 more for what these leave: 15 in all, for twice the products
	ActBF16              // as ActInt8; those of bfloat16 matrices rounded to bfloat16
	ActBF16x2            // as ActInt8; those of matrices of floats, and weights of float32, as sums of two bfloat16
)

var actNames = [...]string{ActInt8: "int8", ActMixed: "mixed", ActFine: "fine", ActInt16: "int16", ActBF16: "bf16", ActBF16x2: "bf16x2"}

// Acts returns the choices from the quickest to the most exact.
func Acts() []Act { return []Act{ActBF16, ActBF16x2, ActInt8, ActMixed, ActFine, ActInt16} }

// String returns the name that ParseAct reads.
func (a Act) String() string {
	if a.valid() {
		return actNames[a]
	}
	return fmt.Sprintf("Act(%d)", int(a))
}

func (a Act) valid() bool { return a >= 0 && int(a) < len(actNames) }

// Planes returns how many quantized rows most rows of activations have.
func (a Act) Planes() int {
	if a == ActInt16 {
		return 2
	}
	return 1
}

// Apart returns how many of the products with quantized matrices that are not
// experts' are those of columns apart: of float32 activations, with weights
// that are read as float16 as well.
func (a Act) Apart() float64 { return actPlans[a].apart }

// ParseAct returns the choice of the given name, the default for "".
func ParseAct(name string) (Act, error) {
	if name == "" {
		return ActMixed, nil
	}
	for a, n := range actNames {
		if n == name {
			return Act(a), nil
		}
	}
	return 0, fmt.Errorf("model: activations: expected bf16, bf16x2, int8, mixed, fine or int16, found %q", name)
}

// The inputs of a network's matrices.
const (
	siteQKV  = iota // of the first matrices of a mixer
	siteOut         // of a mixer's output matrix
	siteFFN         // of the first matrices of an FFN
	siteDown        // of its output matrix
	siteHead        // of the output matrix
	sites
)

// actPlan says how the inputs of matrices are kept.
type actPlan struct {
	planes [sites]int // of quantized rows; 0 means 1
	last   int        // planes of the last layer's FFN
	apart  float64    // how many of all products are those of columns apart
}

// siteWeights has how much the errors of an input, over its values, change what
// a model predicts. They are the rounded means of what was measured with three
// models.
var siteWeights = [sites]float64{siteQKV: 1, siteOut: 0.25, siteFFN: 0.5, siteDown: 0.5, siteHead: 16}

// lastWeight is that of the inputs of the last FFN.
const lastWeight = 3

// actPlans has what the choices mean. docs/kernels.md has what each of them
// gains and costs.
var actPlans = [...]actPlan{
	ActInt8:   {},
	ActMixed:  {apart: 1. / 100},
	ActFine:   {planes: [sites]int{siteDown: 2, siteHead: 2}, last: 2, apart: 1.5 / 100},
	ActInt16:  {planes: [sites]int{2, 2, 2, 2, 2}, last: 2},
	ActBF16:   {},
	ActBF16x2: {},
}

// brainPlanes has how many planes of bfloat16 the choices make of activations.
var brainPlanes = map[Act]int{ActBF16: 1, ActBF16x2: 2}

// setBrain has the bfloat16 matrices read activations rounded to that, or also those
// in float32 as sums of two, if act asks for it: of the layers, and of the output,
// that have no quantized ones, which could read the same rows.
func (n *Net) setBrain(act Act) {
	planes := brainPlanes[act]
	if planes == 0 {
		return
	}
	mats := map[*kernel.Packed]bool{} // layers may share them
	set := func(regions iter.Seq[nn.Region]) {
		for r := range regions {
			for _, l := range r.Mats {
				if l.W.UsesQuant() {
					return
				}
			}
		}
		for r := range regions {
			if r.Floats {
				continue
			}
			for _, l := range r.Mats {
				mats[l.W] = true
			}
		}
	}
	for i := range n.Layers {
		set(n.Layers[i].Regions())
	}
	if out := n.Head.Out.W; out != nil && !out.UsesQuant() {
		mats[out] = true
	}
	var wg sync.WaitGroup
	for w := range mats {
		wg.Go(func() { w.SetBrain(planes) })
	}
	wg.Wait()
}
