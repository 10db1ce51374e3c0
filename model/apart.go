package model

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"ridge/kernel"
	"ridge/nn"
)

// Which columns of activations are larger than their neighbours is mostly a
// property of the model, whatever the text: a few rows of tokens without any
// sense show it as well as a text does. They are chosen once, when a model is
// first opened, and kept with the packed weights. All rows have the same
// columns apart, so none depends on what it is computed with.

// apartVersion stands for how columns are chosen. It changes with that, and
// with the plans.
const apartVersion = 1

// apartRows is the number of tokens whose rows the columns are chosen by: 128
// choose no better ones, and models start later.
const apartRows = 16

// tag names what of the packed weights depends on the choice of activations,
// "" if nothing does.
func (a Act) tag() string {
	if actPlans[a].apart == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d\n", a, apartVersion)
}

// input is matrices that read the same rows.
type input struct {
	site, layer int
	mats        []*nn.Linear
	ranked      []ranked // columns, the best ones to keep apart first
	cols        []int32  // kept apart, ascending
}

// ranked is a column and what is gained by keeping it apart, those before it
// being apart already.
type ranked struct {
	col  int32
	gain float64
}

// rows returns the products that a column has in all matrices.
func (in *input) rows() int {
	n := 0
	for _, l := range in.mats {
		n += l.W.Rows
	}
	return n
}

// stateful is a mixer with a state: it tells the matrices that read its input, and
// the one that reads what it computes.
type stateful interface {
	Inputs() []*nn.Linear
	Output() *nn.Linear
}

// inputs returns the inputs of the network's quantized matrices, but for those
// of experts, which hardly any two rows share.
func (n *Net) inputs() []*input {
	var list []*input
	n.sites(func(site, layer int, mats []*nn.Linear) {
		in := &input{site: site, layer: layer}
		for _, l := range mats {
			if l.W != nil && l.W.UsesQuant() {
				in.mats = append(in.mats, l)
			}
		}
		if len(in.mats) > 0 {
			list = append(list, in)
		}
	})
	return list
}

// sites calls add with the matrices that read the same rows, but for those of experts.
func (n *Net) sites(add func(site, layer int, mats []*nn.Linear)) {
	for i := range n.Layers {
		l := &n.Layers[i]
		mlp, dense := l.FFN.(*nn.MLP)
		var first, out []*nn.Linear
		switch m := l.Mix.(type) {
		case *nn.Attention:
			first, out = []*nn.Linear{&m.Q, &m.K, &m.V}, []*nn.Linear{&m.Out}
		case *nn.Latent:
			first, out = m.Inputs(), []*nn.Linear{&m.Out}
		case *nn.Joint:
			a := m.Attention
			first, out = append([]*nn.Linear{&a.Q, &a.K, &a.V}, m.SSD.Inputs()...), []*nn.Linear{&a.Out}
			add(siteOut, i, []*nn.Linear{m.SSD.Output()}) // rows of its own
		case *nn.ShortConv:
			first, out = []*nn.Linear{&m.In}, []*nn.Linear{&m.Out}
		case stateful:
			first, out = m.Inputs(), []*nn.Linear{m.Output()}
		}
		if l.Laurel != nil {
			first = append(first, &l.Laurel.Left)
		}
		if l.Wiring == ParallelShared && dense {
			first = append(first, &mlp.Gate, &mlp.Up)
		}
		if l.Wiring != ParallelShared || dense {
			add(siteQKV, i, first)
		}
		add(siteOut, i, out)
		if dense && l.Wiring != ParallelShared {
			add(siteFFN, i, []*nn.Linear{&mlp.Gate, &mlp.Up})
		}
		if dense {
			add(siteDown, i, []*nn.Linear{&mlp.Down})
		}
	}
	add(siteHead, len(n.Layers), []*nn.Linear{&n.Head.Out})
}

// Planes returns how many planes the quantized rows have that matrices read.
func (n *Net) Planes(a Act) map[*nn.Linear]int {
	plan, planes := &actPlans[a], map[*nn.Linear]int{}
	for r := range n.Regions() {
		for _, l := range r.Mats {
			planes[l] = a.Planes()
		}
	}
	for _, in := range n.inputs() {
		p := plan.planes[in.site]
		if in.layer == len(n.Layers)-1 && (in.site == siteFFN || in.site == siteDown) {
			p = plan.last
		}
		for _, l := range in.mats {
			planes[l] = max(p, 1)
		}
	}
	return planes
}

// keepApart chooses the columns that matrices keep apart, and packs them.
func (m *Model) keepApart() error {
	plan := &actPlans[m.act]
	if m.act.tag() == "" || m.w.apart {
		return nil
	}
	inputs := m.net.inputs()
	byMatrix := map[*kernel.Packed]*input{}
	for _, in := range inputs {
		for _, l := range in.mats {
			if l.Planes == 1 {
				byMatrix[l.W] = in
			}
		}
	}
	if len(byMatrix) == 0 {
		return nil
	}
	err := m.runRandom(func(x *kernel.Acts, l *nn.Linear) {
		if in := byMatrix[l.W]; in != nil {
			in.ranked = rankColumns(x, (x.K+mostApart-1)/mostApart)
		}
	})
	if err != nil {
		return err
	}
	plan.share(inputs, len(m.net.Layers))
	t := &apartTask{}
	for _, in := range inputs {
		if len(in.cols) == 0 {
			continue
		}
		for _, l := range in.mats {
			if err := m.w.addApart(t, l.W, in.cols); err != nil {
				return err
			}
		}
	}
	m.pool.Run(t)
	m.w.apart = true
	return nil
}

// mostApart bounds the columns apart of an input to one in so many.
const mostApart = 8

// share chooses columns of the inputs, so many of them that their products are
// plan.apart of all: those that lower the divergence most for a product.
func (plan *actPlan) share(inputs []*input, layers int) {
	type candidate struct {
		in   *input
		col  int32
		gain float64 // for a product
	}
	var all []candidate
	products := 0
	for _, in := range inputs {
		rows := in.rows()
		products += rows * in.mats[0].W.Cols
		weight := siteWeights[in.site]
		if in.layer == layers-1 && (in.site == siteFFN || in.site == siteDown) {
			weight = lastWeight
		}
		least := math.Inf(1)
		for _, c := range in.ranked {
			least = min(least, c.gain*weight/float64(rows))
			all = append(all, candidate{in, c.col, least})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.gain, a.gain) })
	left := plan.apart * float64(products)
	full := map[*input]bool{}
	for _, c := range all {
		rows := float64(c.in.rows())
		if full[c.in] = full[c.in] || rows > left; !full[c.in] {
			left -= rows
			c.in.cols = append(c.in.cols, c.col)
		}
	}
	for _, in := range inputs {
		slices.Sort(in.cols)
	}
}

// runRandom computes rows of tokens without any sense, and calls watch with the
// rows that matrices read. What they chose of experts does not count.
func (m *Model) runRandom(watch func(x *kernel.Acts, l *nn.Linear)) error {
	tokens := make([]int32, min(apartRows, m.cfg.Context))
	x := uint32(1)
	for i := range tokens {
		x = x*1664525 + 1013904223 // Numerical Recipes
		tokens[i] = int32(uint64(x) * uint64(m.cfg.Vocab) >> 32)
	}
	err := m.runTokens(tokens, watch)
	for i := range m.net.Layers {
		if x := m.net.Layers[i].mixture(); x != nil {
			*x.Load() = nn.Load{}
		}
	}
	return err
}

// runTokens computes the rows of tokens as a sequence of its own, and calls watch with
// the rows that matrices read.
func (m *Model) runTokens(tokens []int32, watch func(x *kernel.Acts, l *nn.Linear)) error {
	p, err := m.newPasses([][]int32{tokens}, "", watch)
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		more, err = p.next(context.Background())
	}
	return errors.Join(err, p.close())
}

// rankColumns returns the n columns of x that, kept apart, lower the scales of
// the rows' blocks most, and what each gains: squares of scales over those of
// the row's values.
func rankColumns(x *kernel.Acts, n int) []ranked {
	blocks := make([]largest, (x.K+31)/32)
	weight := make([]float64, x.N) // of rows, so that those with large values do not decide alone
	for r := range weight {
		sum := 0.0
		for _, v := range nn.Row(x, r) {
			sum += float64(v) * float64(v)
		}
		if sum > 0 && !math.IsInf(sum, 0) && !math.IsNaN(sum) {
			weight[r] = 1 / sum / float64(x.N)
		}
	}
	apart := make([]bool, x.K)
	for b := range blocks {
		blocks[b] = largestOf(x, weight, apart, b)
	}
	var cols []ranked
	for len(cols) < n {
		at := 0
		for b := range blocks {
			if blocks[b].gain > blocks[at].gain {
				at = b
			}
		}
		if !(blocks[at].gain > 0) {
			break
		}
		apart[blocks[at].col] = true
		cols = append(cols, ranked{int32(blocks[at].col), blocks[at].gain})
		blocks[at] = largestOf(x, weight, apart, at)
	}
	return cols
}

// largest is the column of a block that is the best to keep apart next.
type largest struct {
	col  int
	gain float64 // of all rows, in squares of scales
}

// largestOf looks at the columns of block b that are not apart yet. A column
// gains what the square of the block's largest value falls without it, and half
// of that where it is the second: it may become the first.
func largestOf(x *kernel.Acts, weight []float64, apart []bool, b int) largest {
	var gain [32]float64
	lo, hi := 32*b, min(32*b+32, x.K)
	for r, w := range weight {
		var top [3]float32
		var at [2]int
		for i, v := range nn.Row(x, r)[lo:hi] {
			switch v *= v; {
			case apart[lo+i]:
			case v > top[0]:
				top[0], top[1], top[2], at[0], at[1] = v, top[0], top[1], i, at[0]
			case v > top[1]:
				top[1], top[2], at[1] = v, top[1], i
			case v > top[2]:
				top[2] = v
			}
		}
		gain[at[0]] += w * float64(top[0]-top[1])
		gain[at[1]] += w * float64(top[1]-top[2]) / 2
	}
	best := largest{}
	for i, g := range gain {
		if g > best.gain {
			best = largest{lo + i, g}
		}
	}
	return best
}

// addApart plans the columns cols of p to be kept apart.
func (w *weights) addApart(t *apartTask, p *kernel.Packed, cols []int32) error {
	a, err := kernel.ApartShape(p, cols, p.WideApart(cols, 0, min(p.Groups, apartSample)))
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	mem := w.alloc(apartHead(len(cols)) + a.W.Size())
	if mem == nil {
		return fmt.Errorf("model: no memory for %d columns apart", len(cols))
	}
	for i, c := range cols {
		binary.LittleEndian.PutUint32(mem[4*i:], uint32(c))
	}
	a.W.Data = mem[apartHead(len(cols)):]
	p.Apart = a
	w.aparts = append(w.aparts, keptApart{p, mem})
	for g := 0; g < p.Groups; g += apartStep {
		t.units = append(t.units, packUnit{len(t.mats), g, min(g+apartStep, p.Groups)})
	}
	t.mats = append(t.mats, p)
	return nil
}

const (
	apartSample = 4  // groups that are looked at to choose a type
	apartStep   = 16 // groups of a unit of work
)

// keptApart is the columns apart of a matrix as they are kept: their numbers,
// then their weights.
type keptApart struct {
	p   *kernel.Packed
	mem []byte
}

// apartHead returns the bytes of n numbers of columns.
func apartHead(n int) int { return (4*n + 63) &^ 63 }

// apartTask fills columns apart.
type apartTask struct {
	mats  []*kernel.Packed
	units []packUnit
	next  atomic.Int64
}

func (t *apartTask) Do(int, int) {
	for {
		i := int(t.next.Add(1)) - 1
		if i >= len(t.units) {
			return
		}
		u := t.units[i]
		t.mats[u.job].Apart.Fill(t.mats[u.job], u.g0, u.g1)
	}
}
