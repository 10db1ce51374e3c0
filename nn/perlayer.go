package nn

import (
	"math"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/weights/tensor"
)

// PerLayerEmbedding gives each layer an input of its own for each token: what a
// table has for the token and the layer, and a product of the token's embedding.
// Rows of the table are decoded as they are looked up.
type PerLayerEmbedding struct {
	Tokens tensor.Mat // [tokens][layers·width]; tokens beyond it have row 0
	Scale  float32    // of its rows
	Proj   Linear     // [layers·width][hidden]
	Norm   Norm       // of the products, per layer
}

// LookUp writes the scaled rows of the table for the tokens of s to dst.
func (p *PerLayerEmbedding) LookUp(s *Step, dst *kernel.Acts) {
	Rows(dst, s.Rows(), p.Tokens.Cols, false)
	row := 0
	for _, run := range s.Runs {
		for _, t := range run.Tokens {
			if int(t) >= p.Tokens.Rows {
				t = 0
			}
			p.Tokens.DecodeRow(Row(dst, row), int(t))
			kernel.Scale(Row(dst, row), p.Scale)
			row++
		}
	}
}

type perLayerRows struct {
	in, out kernel.Acts
	project projectTask
	gate    inputGateTask
}

// Project adds the products of the embedded rows x to what LookUp gave.
func (p *PerLayerEmbedding) Project(e *Exec, inputs, x *kernel.Acts) {
	r := scratch[perLayerRows](e)
	e.Norm(&r.in, x, nil, FormOf(&p.Proj))
	e.Linear(&r.in, Out{&p.Proj, &r.out})
	r.project = projectTask{p, inputs, &r.out, float32(1 / math.Sqrt(float64(x.K)))}
	e.run(&r.project, r.out.N*r.out.K)
}

type projectTask struct {
	p        *PerLayerEmbedding
	dst, out *kernel.Acts
	scale    float32
}

func (t *projectTask) Do(worker, workers int) {
	lo, hi := pool.Split(t.dst.N, worker, workers)
	for i := lo; i < hi; i++ {
		y, x := Row(t.out, i), Row(t.dst, i)
		kernel.Scale(y, t.scale)
		heads(y, &t.p.Norm)
		kernel.Add(x, y)
		kernel.Scale(x, 1/math.Sqrt2)
	}
}

// PerLayer adds the product of a layer's rows and of the inputs that a
// PerLayerEmbedding gives the layer.
type PerLayer struct {
	Gate, Proj Linear // [width][hidden], [hidden][width]
	Act        Activation
	Post       Norm
}

// Reads returns the regions of the two matrices.
func (p *PerLayer) Reads() Reads {
	return Reads{Regions: []Region{reads(1, &p.Gate), reads(1, &p.Proj)}}
}

// Run writes what is to be added for the rows x of layer number layer to dst.
func (p *PerLayer) Run(e *Exec, dst, x, inputs *kernel.Acts, layer int) {
	r := scratch[perLayerRows](e)
	e.Norm(&r.in, x, nil, FormOf(&p.Gate))
	e.Linear(&r.in, Out{&p.Gate, &r.out})
	f := FormOf(&p.Proj)
	formRows(&r.out, r.out.N, r.out.K, f)
	r.gate = inputGateTask{p.Act, &r.out, inputs, layer, f.Quant()}
	e.run(&r.gate, r.out.N*r.out.K)
	e.Linear(&r.out, Out{&p.Proj, dst})
	for i := range dst.N {
		p.Post.Apply(Row(dst, i), Row(dst, i))
	}
}

type inputGateTask struct {
	act       Activation
	x, inputs *kernel.Acts
	layer     int
	quant     bool
}

func (t *inputGateTask) Do(worker, workers int) {
	lo, hi := pool.Split(t.x.N, worker, workers)
	for i := lo; i < hi; i++ {
		x := Row(t.x, i)
		activate(t.act, x, nil)
		kernel.Mul(x, Row(t.inputs, i)[t.layer*len(x):][:len(x)])
		if t.quant {
			t.x.Quantize(i, 0, t.x.K)
		}
	}
}
