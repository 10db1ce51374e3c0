package model

import (
	"iter"
	"math"

	"ridge/kernel"
	"ridge/kvcache"
	"ridge/nn"
	"ridge/weights/tensor"
)

// Net is a network of layers, with its weights.
type Net struct {
	Embed   Embedding
	Layers  []Layer
	Norm    nn.Norm     // of the rows behind the last layer
	Head    Head        // without weights of encoders
	Dense   []dense     // that make an embedding of pooled states, one after the other
	Classes *classifier // nil for none

	steer [][]float32 // added to all rows behind each layer, nil for nothing; see Model.Steer

	// ahead, when not nil, is called before each layer: see readAhead.
	ahead func(layer int)
}

// Embedding turns tokens into rows. They are decoded as they are looked up.
type Embedding struct {
	Tokens    tensor.Mat // [vocabulary][hidden]
	Positions tensor.Mat // [positions][hidden], learned ones; or no rows
	Types     tensor.Mat // [types][hidden], of the first text and the second; or no rows
	Scale     float32
	Norm      nn.Norm   // without weights: none
	In        nn.Linear // [hidden][width of Tokens]; without weights: they are as wide

	// read, when not nil, copies a row of Tokens, whose pages then stay out of
	// memory: the system would map some 64 KiB around each row.
	read func(dst, row []byte) error
	row  []byte

	PerLayer *nn.PerLayerEmbedding // of inputs of the layers; nil for none
	Streams  *nn.Streams           // of layers with AltUp; nil for none
}

// lookUp decodes the row of a token.
func (e *Embedding) lookUp(x []float32, token int) error {
	if e.read == nil {
		e.Tokens.DecodeRow(x, token)
		return nil
	}
	row := e.Tokens.Row(token)
	if len(e.row) < len(row) {
		e.row = make([]byte, len(row))
	}
	if err := e.read(e.row, row); err != nil {
		return err
	}
	e.Tokens.Type.Decode(x, e.row[:len(row)])
	return nil
}

// typeOf returns the type of token i of a run.
func (e *Embedding) typeOf(r *nn.Run, i int) int {
	if r.Second > 0 && i >= r.Second && e.Types.Rows > 1 {
		return 1
	}
	return 0
}

// Head turns rows into logits.
type Head struct {
	In      nn.Linear // [width of Out][hidden], of the normalized rows; without weights: as they are
	Out     nn.Linear // [vocabulary][hidden]
	Scale   float32
	Softcap float32 // 0 for none
}

// Keeps returns what each layer keeps of a sequence.
func (n *Net) Keeps() []kvcache.LayerShape {
	var shapes []kvcache.LayerShape
	for i := range n.Layers {
		shape := kvcache.LayerShape{}
		if mix := n.Layers[i].Mix; mix != nil {
			shape = mix.Keeps()
		}
		shapes = append(shapes, shape)
	}
	return shapes
}

// Regions gives what all layers read, and then the output matrix.
func (n *Net) Regions() iter.Seq[nn.Region] {
	return func(yield func(nn.Region) bool) {
		if p := n.Embed.PerLayer; p != nil && !yield(nn.Region{Mats: []*nn.Linear{&p.Proj}, Unit: 1, Active: 1}) {
			return
		}
		if t := n.Embed.Streams; t != nil && !yield(nn.Region{Mats: t.Matrices(), Unit: 1, Active: 1}) {
			return
		}
		if in := &n.Embed.In; in.W != nil && !yield(nn.Region{Mats: []*nn.Linear{in}, Unit: 1, Active: 1}) {
			return
		}
		for i := range n.Layers {
			for r := range n.Layers[i].Regions() {
				if !yield(r) {
					return
				}
			}
		}
		if n.Head.In.W != nil && !yield(nn.Region{Mats: []*nn.Linear{&n.Head.In}, Unit: 1, Active: 1}) {
			return
		}
		if n.Head.Out.W != nil {
			yield(n.head())
		}
	}
}

// head is the region of the output matrix.
func (n *Net) head() nn.Region {
	if n.Head.Out.W == nil {
		return nn.Region{}
	}
	return nn.Region{Mats: []*nn.Linear{&n.Head.Out}, Unit: 1, Active: 1}
}

// activeBytes returns the bytes of packed matrices that one token reads.
func (n *Net) activeBytes() int64 {
	sum := 0.0
	for r := range n.Regions() {
		for _, m := range r.Mats {
			sum += r.Active * float64(m.W.Size())
		}
	}
	return int64(math.Round(sum))
}

// netRows is every buffer of a step. They grow to the largest one and are kept.
type netRows struct {
	layerRows
	out    kernel.Acts   // final normalized rows, [outputs][hidden]
	part   kernel.Acts   // those of out that project reads
	logits kernel.Acts   // [outputs][vocabulary]
	taps   []kernel.Acts // of each tap of the step, [rows][hidden]
}

// embed looks the tokens of a step up.
func (n *Net) embed(s *nn.Step, r *netRows) error {
	e := &n.Embed
	rows := &r.x
	if e.In.W != nil {
		rows = &r.y
	}
	nn.Rows(rows, s.Rows(), e.Tokens.Cols, false)
	if e.PerLayer != nil {
		e.PerLayer.LookUp(s, &r.inputs)
	}
	row := 0
	for _, run := range s.Runs {
		for i, t := range run.Tokens {
			x := nn.Row(rows, row)
			if err := e.lookUp(x, int(t)); err != nil {
				return err
			}
			if e.Scale != 1 {
				kernel.Scale(x, e.Scale)
			}
			if e.Positions.Rows > 0 && e.In.W == nil {
				nn.Rows(&r.y, 1, e.Positions.Cols, false)
				e.Positions.DecodeRow(nn.Row(&r.y, 0), s.Pos(row))
				kernel.Add(x, nn.Row(&r.y, 0))
			}
			if e.Types.Rows > 0 {
				nn.Rows(&r.y, 1, e.Types.Cols, false)
				e.Types.DecodeRow(nn.Row(&r.y, 0), e.typeOf(&run, i))
				kernel.Add(x, nn.Row(&r.y, 0))
			}
			if e.Norm.W != nil {
				e.Norm.Apply(x, x)
			}
			row++
		}
	}
	if e.In.W != nil && e.Positions.Rows > 0 {
		nn.Rows(&r.x, s.Rows(), e.Positions.Cols, false)
		for i := range r.x.N {
			e.Positions.DecodeRow(nn.Row(&r.x, i), s.Pos(i))
		}
	}
	return nil
}

// run computes the layers, and the final rows of those that give an output.
func (n *Net) run(e *nn.Exec, s *nn.Step, r *netRows) {
	n.begin(e, r)
	for i := range n.Layers {
		n.fetch(i)
		n.layer(e, s, r, i)
	}
	n.fetch(len(n.Layers))
	if behind(s, n) {
		r.tap(s, len(n.Layers))
		nn.Keep(&r.x, s.Wanted())
		e.KeepOutputs(0, len(s.Wanted()))
	}
	n.finish(e, s, r)
}

// fetch has the weights of a layer read that lie in a file.
func (n *Net) fetch(layer int) {
	if n.ahead != nil {
		n.ahead(layer)
	}
}

// layer computes layer i from the rows behind the one before.
func (n *Net) layer(e *nn.Exec, s *nn.Step, r *netRows, i int) {
	r.tap(s, i)
	n.Layers[i].run(e, s, i, i == len(n.Layers)-1 && !behind(s, n), &r.layerRows)
	e.Steer(&r.x, i)
	if i < len(n.steer) && n.steer[i] != nil {
		for row := range r.x.N {
			kernel.Add(nn.Row(&r.x, row), n.steer[i])
		}
	}
}

// begin computes from the embedded rows what layers want beside them.
func (n *Net) begin(e *nn.Exec, r *netRows) {
	if in := &n.Embed.In; in.W != nil {
		e.Norm(&r.h, &r.y, nil, nn.FormOf(in))
		e.Linear(&r.h, nn.Out{L: in, Dst: &r.h2})
		if n.Embed.Positions.Rows == 0 {
			nn.Rows(&r.x, r.h2.N, r.h2.K, false)
			clear(r.x.F32)
		}
		e.AddNorm(&r.x, &r.h2, nil, 1)
	}
	if p := n.Embed.PerLayer; p != nil {
		p.Project(e, &r.inputs, &r.x)
	}
	if t := n.Embed.Streams; t != nil {
		r.streams = t
		t.Begin(e, &r.x)
	}
}

// finish computes the final rows from those behind the last layer.
func (n *Net) finish(e *nn.Exec, s *nn.Step, r *netRows) {
	wanted := s.Wanted()
	nn.Rows(&r.out, len(wanted), r.x.K, false)
	r.logits.N = 0
	if len(wanted) == 0 {
		return
	}
	if t := n.Embed.Streams; t != nil {
		t.End(e, &r.x)
	}
	if in := &n.Head.In; in.W != nil {
		e.Norm(&r.h, &r.x, &n.Norm, nn.FormOf(in))
		e.Linear(&r.h, nn.Out{L: in, Dst: &r.y})
		e.Norm(&r.out, &r.y, nil, nn.FormOf(&n.Head.Out))
		return
	}
	e.Norm(&r.out, &r.x, &n.Norm, nn.FormOf(&n.Head.Out))
}

// project computes the logits of count final rows from row first on.
func (n *Net) project(e *nn.Exec, r *netRows, first, count int) {
	h := &n.Head
	if h.Out.W == nil {
		return
	}
	r.part = r.out
	r.part.N = count
	e.KeepOutputs(first, count)
	r.part.F32 = r.out.F32[first*r.out.LDF:]
	if nn.FormOf(&h.Out).Quant() {
		r.part.Q = r.out.Q[first*r.out.LDQ:]
		r.part.A = r.out.A[first*r.out.LDA:]
	}
	e.Linear(&r.part, nn.Out{L: &h.Out, Dst: &r.logits})
	for i := range count {
		y := nn.Row(&r.logits, i)
		if h.Scale != 1 {
			kernel.Scale(y, h.Scale)
		}
		if h.Softcap != 0 {
			kernel.Softcap(y, h.Softcap)
		}
	}
}
