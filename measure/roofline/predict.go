package roofline

import (
	"math"
	"slices"

	"ridge/kvcache"
	"ridge/weights/tensor"
)

// Prediction is how fast a work will be, and why.
type Prediction struct {
	Work    Work    `json:"work"`
	Threads int     `json:"threads"`
	Seconds float64 `json:"seconds"` // of all of the work
	Speed   float64 `json:"tokens_per_s"`
	Parts   Parts   `json:"parts"`
	Limit   string  `json:"limit"` // the largest part, in words
	// Ceiling is the speed that the roofline alone allows: bytes at the rate
	// of reads, operations at the peak rates, whichever takes longer.
	Ceiling float64 `json:"ceiling_tokens_per_s"`
	Cost    Cost    `json:"cost"`

	steps int
}

// Parts is where the seconds of a prediction go.
type Parts struct {
	WeightRead float64 `json:"weight_read"` // matrices that are limited by memory
	WeightOps  float64 `json:"weight_ops"`  // matrices that are limited by arithmetic
	Attention  float64 `json:"attention"`
	Elements   float64 `json:"elements"` // norms, rotations, activations, quantization
	Regions    float64 `json:"regions"`  // starting and ending parallel regions
}

func (p *Parts) total() float64 {
	return p.WeightRead + p.WeightOps + p.Attention + p.Elements + p.Regions
}

func (p *Parts) add(q Parts) {
	p.WeightRead += q.WeightRead
	p.WeightOps += q.WeightOps
	p.Attention += q.Attention
	p.Elements += q.Elements
	p.Regions += q.Regions
}

// limit names the largest part.
func (p *Parts) limit() string {
	all := []struct {
		t    float64
		name string
	}{
		{p.WeightRead, "memory: reading weights"}, {p.WeightOps, "arithmetic: products with weights"}, {p.Attention, "attention"},
		{p.Elements, "norms and activations"}, {p.Regions, "starting parallel regions"},
	}
	best := all[0]
	for _, a := range all {
		if a.t > best.t {
			best = a
		}
	}
	return best.name
}

// Predict predicts the speed of a work on threads threads of m.
func (m *Machine) Predict(s *Shape, w Work, threads int) Prediction {
	return m.predict(s, w, threads, &fitted)
}

func (m *Machine) predict(s *Shape, w Work, threads int, c *Constants) Prediction {
	e := m.estimate(s, w, threads, c)
	p := Prediction{Work: w, Threads: threads, Parts: e.work(w)}
	p.Seconds = p.Parts.total()
	p.Limit = p.Parts.limit()
	least := 0.0
	for st := range w.Steps() {
		cost := s.Cost(st)
		p.Cost.Add(cost)
		p.steps++
		least += e.roofline(cost)
	}
	p.Speed = rate(float64(w.Tokens()), p.Seconds)
	p.Ceiling = rate(float64(w.Tokens()), least)
	return p
}

func rate(n, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return n / seconds
}

// estimate computes the parts of works.
type estimate struct {
	m          *Machine
	s          *Shape
	c          *Constants
	rates, one ThreadRates
	working    int64   // bytes that a step of the work at hand reads
	overlap    float64 // exponent for reads of such a working set
	windows    []layerWindow
	weights    map[[2]int]Parts      // by rows and outputs
	kernels    map[kernelKey]float64 // see kernelRate
}

type kernelKey struct {
	t    tensor.DType
	rows int
}

// estimate prepares for works that read as much in a step as w does.
func (m *Machine) estimate(s *Shape, w Work, threads int, c *Constants) *estimate {
	e := &estimate{
		m: m, s: s, c: c, rates: m.rates(threads), one: m.rates(1), working: s.working(w), windows: s.windows(),
		weights: map[[2]int]Parts{}, kernels: map[kernelKey]float64{},
	}
	// Loads from the shared cache come early enough to be hidden behind
	// products; those from memory stop them.
	e.overlap = 1 + (c.Overlap-1)*e.rates.cached(e.working, m.L2)
	return e
}

// work returns the parts of a work. Long generations are computed at some
// positions: what a token costs changes slowly.
func (e *estimate) work(w Work) (sum Parts) {
	stride := 1
	if w.Gen > 64 {
		stride = w.Gen / 32
	}
	skip := 0
	var last Parts
	for st := range w.Steps() {
		if skip > 0 {
			skip--
		} else {
			last = e.step(st)
			if w.Generates(st) {
				skip = stride - 1
			}
		}
		sum.add(last)
	}
	return sum
}

func (e *estimate) step(st Step) Parts {
	rows, outputs := st.Rows(), st.Outputs()
	p, ok := e.weights[[2]int{rows, outputs}]
	if !ok {
		for i := range e.s.regions {
			e.region(&p, &e.s.regions[i], rows)
		}
		e.region(&p, &e.s.head, outputs)
		e.elements(&p, rows)
		e.weights[[2]int{rows, outputs}] = p
	}
	p.Attention += e.attention(st)
	return p
}

// region adds the time of a region of matrices.
func (e *estimate) region(p *Parts, r *region, rows int) {
	if rows == 0 || len(r.mats) == 0 {
		return
	}
	n := float64(e.rates.Threads)
	rate := e.rates.read(e.working) * e.c.Stream
	read, ops, groups := 0.0, 0.0, 0
	for i := range r.mats {
		m := &r.mats[i]
		apart := e.s.apart(m)
		read += (float64(m.read(rows)) + apartSize*apart) / rate
		if apart > 0 {
			ops += 2 * float64(rows) * apart / (n * e.kernelRate(tensor.F16, rows) * e.c.Cache)
		}
		rows := rows * m.rows[e.s.Act]
		ops += 2 * float64(rows) * m.elems / (n * e.kernelRate(m.typ, rows) * e.c.Cache)
		groups += m.groups
	}
	t := norm(read, ops, e.overlap)
	if r.unit == 1 {
		t *= uneven(float64(groups), n)
	} else {
		t *= uneven(float64(groups)/float64(r.unit*len(r.mats)), n)
	}
	if read > ops {
		p.WeightRead += t
	} else {
		p.WeightOps += t
	}
	p.Regions += e.rates.Region + e.c.Region
}

// norm combines two times that overlap.
func norm(a, b, p float64) float64 {
	if a == 0 || b == 0 {
		return a + b
	}
	hi, lo := max(a, b), min(a, b)
	return hi * math.Pow(1+math.Pow(lo/hi, p), 1/p)
}

// uneven is how much longer the worker with the most units works than if units
// could be divided.
func uneven(units, workers float64) float64 {
	units = math.Ceil(units)
	return math.Ceil(units/workers) * workers / units
}

// kernelRate returns the operations per second of one of the threads in use,
// with weights of type t in the cache and rows of activations.
func (e *estimate) kernelRate(t tensor.DType, rows int) float64 {
	key := kernelKey{t, rows}
	if r, ok := e.kernels[key]; ok {
		return r
	}
	r := e.findKernelRate(t, rows)
	e.kernels[key] = r
	return r
}

func (e *estimate) findKernelRate(t tensor.DType, rows int) float64 {
	peak, all := e.one.IntOps, e.rates.IntOps
	if !quantized(t) {
		peak, all = e.one.FloatOps, e.rates.FloatOps
	}
	scale := all / (peak * float64(e.rates.Threads)) // threads slow each other down
	// Between the rows that are known, the time of a call is linear.
	last := [2]float64{}
	for _, k := range e.m.kernelTimes(t, peak) {
		if k[0] >= float64(rows) {
			f := 1.0
			if k[0] > last[0] {
				f = (float64(rows) - last[0]) / (k[0] - last[0])
			}
			return float64(rows) / (last[1] + f*(k[1]-last[1])) * scale
		}
		last = k
	}
	return last[0] / last[1] * scale
}

// kernelTimes returns pairs of rows and of seconds per operation of one row, in
// rising order. A time at 0 rows stands before the first.
func (m *Machine) kernelTimes(t tensor.DType, peak float64) [][2]float64 {
	var out [][2]float64
	for _, k := range m.Kernels {
		if k.Type == t.String() {
			out = append(out, [2]float64{float64(k.Rows), float64(k.Rows) / k.OpRate})
		}
	}
	if len(out) == 0 {
		for _, f := range peakFraction {
			out = append(out, [2]float64{float64(f.rows), float64(f.rows) / (f.part * peak)})
		}
	}
	slices.SortFunc(out, func(a, b [2]float64) int { return int(a[0] - b[0]) })
	return out
}

// serialElems is the number of elements below which element-wise work runs on
// one thread: see package nn.
const serialElems = 8192

// elements adds the time of everything that is done element by element, and of
// the regions that it takes.
func (e *estimate) elements(p *Parts, rows int) {
	c := &e.s.Outline.Config
	single, all := e.one.FloatOps, e.rates.FloatOps
	run := func(elems int, regions float64) {
		t := float64(elems*rows) * e.c.Element
		if elems*rows < serialElems {
			p.Elements += t / single
			return
		}
		p.Elements += t / all
		p.Regions += regions * (e.rates.Region + e.c.Region)
	}
	for _, l := range e.s.layers {
		run(c.Hidden, 1)
		run(c.Hidden, 1)
		run(l.queries*l.reads.KDim+l.keeps.Heads*(l.keeps.KDim+l.keeps.VDim), 1)
		run(l.queries*l.values, 1)
		if c.PostNorms {
			run(2*c.Hidden, 2)
		}
		// Residual additions and activations are part of the regions of
		// matrices.
		p.Elements += float64((2*c.Hidden+2*c.FFN)*rows) * e.c.Element / all
	}
}

// attnTile is the number of queries that share converted keys at most; a unit
// of work has attnRows rows of a span, or attnSplit keys when there are few
// rows: see packages kernel and nn.
const (
	attnTile  = 6
	attnRows  = 32
	attnSplit = 256
	fewRows   = 4
)

// attention returns the time of attention in all layers, without that of the
// matrices around it.
func (e *estimate) attention(st Step) float64 {
	n := float64(e.rates.Threads)
	i := slices.IndexFunc(e.s.layers, func(l layer) bool { return l.queries > 0 && l.reads.Heads > 0 })
	if i < 0 {
		return 0 // no layer looks back but by its state
	}
	first := &e.s.layers[i]
	group := first.queries / first.reads.Heads
	ops, units, read := 0.0, 0.0, 0.0
	for _, g := range st {
		share := float64(min(attnTile, g.Rows*group)) // queries for which a key is converted once
		per := 1 + e.c.Convert/share
		for _, w := range e.windows {
			ops += w.attnOps * keysSeen(g, w.size) * per
		}
		read += float64(e.s.kvRead(g))
		pieces := math.Ceil(float64(g.Rows) / attnRows)
		if g.Rows <= fewRows {
			pieces = max(1, math.Ceil(float64(g.Pos+g.Rows)/attnSplit))
		}
		units += pieces * float64(first.reads.Heads)
	}
	t := norm(read/(e.rates.read(e.working)*e.c.AttnStream), ops/(e.rates.FloatOps*e.c.Attention), e.overlap)
	return t*uneven(units, n) + float64(len(e.s.layers))*(e.rates.Region+e.c.Region)
}

// roofline returns the least seconds in which a step can be done.
func (e *estimate) roofline(c Cost) float64 {
	read := float64(c.Bytes()) / e.rates.read(c.Bytes())
	ops := c.IntOps/e.rates.IntOps + c.Floats()/e.rates.FloatOps
	if e.rates.BrainOps > 0 {
		ops += c.Brains() / e.rates.BrainOps
	}
	return max(read, ops)
}

// tiles keeps the constants of attention in step with the cache's.
var _ = [1]struct{}{}[attnSplit%kvcache.TileTokens]
