package nn

import (
	"ridge/internal/pool"
	"ridge/kernel"
)

// MoE is a mixture of experts: an FFN of many MLPs, of which a row reads those
// that a router chooses (Shazeer et al. 2017, arXiv 1701.06538). Only the
// weights of experts that some row has chosen are read.
type MoE struct {
	Router  Router
	Experts []MLP // of equal shape, types, activation and kind
	// Shared is an MLP that all rows read; nil for none. Its part is multiplied by
	// the sigmoid of the product with SharedGate, [1][hidden], if that has weights.
	Shared     *MLP
	SharedGate Linear
	// Bias is added to the sum of a row's experts, [hidden]; nil for none.
	Bias []float32
	// Fetch, when not nil, is called with the experts that a step has chosen, each
	// once and rising, before their weights are read.
	Fetch func(chosen []int)

	load Load
}

// EarlyMoE is a mixture whose router reads the residual rows of its layer, before
// the mixer and without a norm (SmallThinker, Song et al. 2025, arXiv 2507.20984).
type EarlyMoE struct{ MoE }

// Look computes the logits of the router.
func (m *EarlyMoE) Look(e *Exec, x *kernel.Acts) {
	r := scratch[moeRows](e)
	form := FormOf(&m.Router.Logits)
	if form.Quant() {
		e.Norm(&r.early, x, &Norm{}, form)
		x = &r.early
	}
	e.Linear(x, Out{&m.Router.Logits, &r.logits})
}

// Keep keeps the logits of the given rows.
func (m *EarlyMoE) Keep(e *Exec, rows []int) { Keep(&scratch[moeRows](e).logits, rows) }

// Feed is MoE.Feed by the logits that Look computed.
func (m *EarlyMoE) Feed(e *Exec, x *kernel.Acts) (*kernel.Acts, *Linear) { return m.feed(e, x, true) }

// Load counts what routers have chosen since a model was opened.
type Load struct {
	Rows []int64 // per expert, the rows that chose it
	Read int64   // experts that were read: in a step one for all rows that chose it
	// Fetched counts those of them that were not in memory; who has set MoE.Fetch
	// counts it.
	Fetched int64
}

// Load returns what the mixture's router has chosen. It belongs to the mixture,
// and must not be read while one of its steps runs.
func (m *MoE) Load() *Load { return &m.load }

// add counts the experts of a step.
func (l *Load) add(experts int, spans []expertSpan) {
	if l.Rows == nil {
		l.Rows = make([]int64, experts)
	}
	for _, s := range spans {
		l.Rows[s.expert] += int64(s.hi - s.lo)
	}
	l.Read += int64(len(spans))
}

// Form returns the form of the rows that the router and the experts read.
func (m *MoE) Form() Form {
	first := &m.Experts[0]
	if m.Shared == nil {
		return FormOf(&m.Router.Logits, &m.SharedGate, &first.Gate, &first.Up)
	}
	return FormOf(&m.Router.Logits, &m.SharedGate, &first.Gate, &first.Up, &m.Shared.Gate, &m.Shared.Up)
}

// Reads returns the regions of the router, of the shared MLP and of the experts,
// of which a row reads its share.
func (m *MoE) Reads() Reads {
	out := Reads{Regions: []Region{reads(1, &m.Router.Logits)}}
	var downs []*Linear
	down := Region{Unit: 1, Active: m.active()}
	up := Region{Unit: groupsPerUnit, Active: m.active()}
	for i := range m.Experts {
		e := &m.Experts[i]
		if e.Gated {
			up.Mats = append(up.Mats, &e.Gate)
		}
		up.Mats, downs = append(up.Mats, &e.Up), append(downs, &e.Down)
	}
	if m.Shared != nil {
		out.Regions = append(out.Regions, m.Shared.Reads().Regions...)
		if m.SharedGate.W != nil {
			out.Regions = append(out.Regions, reads(1, &m.SharedGate))
		}
	}
	down.Mats = downs
	out.Regions = append(out.Regions, up, down)
	return out
}

// active returns the part of the experts that a row reads.
func (m *MoE) active() float64 { return float64(m.Router.TopK) / float64(len(m.Experts)) }

// moeRows is what a mixture computes on the way. A slot is a row for one of its
// experts; the slots of an expert lie side by side.
type moeRows struct {
	logits kernel.Acts // [rows][experts]
	choice choice
	slot   []int32 // [rows][top k]: the slot of each choice
	from   []int32 // per slot, the place of its choice
	spans  []expertSpan
	chosen []int // experts of the spans

	x        kernel.Acts // [slots][hidden], gathered
	gate, up kernel.Acts // [slots][ffn]
	y        kernel.Acts // [slots][hidden]
	shared   kernel.Acts // [rows][hidden]
	open     kernel.Acts // [rows][1], of the shared MLP's gate
	early    kernel.Acts // [rows][hidden], what an early router reads
	out      kernel.Acts // [rows][hidden]

	route   routeTask
	collect gatherTask
	hidden  expertHiddenTask
	down    expertDownTask
}

// expertSpan is an expert that was chosen, and its slots [lo, hi).
type expertSpan struct{ expert, lo, hi int }

// Feed computes what the mixture adds to the rows.
func (m *MoE) Feed(e *Exec, x *kernel.Acts) (*kernel.Acts, *Linear) { return m.feed(e, x, false) }

// feed is Feed. If the rows were looked at, their logits are there.
func (m *MoE) feed(e *Exec, x *kernel.Acts, looked bool) (*kernel.Acts, *Linear) {
	r := scratch[moeRows](e)
	var shared *kernel.Acts
	if m.Shared != nil {
		shared, _ = m.Shared.Feed(e, x)
		if m.SharedGate.W != nil {
			e.Linear(x, Out{&m.SharedGate, &r.open})
		}
	}
	if !looked {
		e.Linear(x, Out{&m.Router.Logits, &r.logits})
	}
	e.route(&r.route, &m.Router, &r.logits, &r.choice)
	r.assign(m, x.N)
	if m.Fetch != nil {
		r.chosen = r.chosen[:0]
		for _, s := range r.spans {
			r.chosen = append(r.chosen, s.expert)
		}
		m.Fetch(r.chosen)
	}
	in := x
	if x.N > 1 || m.Router.WeighInput {
		e.gather(m, r, x)
		in = &r.x
	}
	e.expertHidden(m, r, in)
	e.expertDown(m, r, shared, x.N)
	return &r.out, nil
}

// assign gives every choice of n rows a slot: expert by expert, and for an expert
// in the order of rows.
func (r *moeRows) assign(m *MoE, n int) {
	slots := n * m.Router.TopK
	if cap(r.slot) < slots {
		r.slot, r.from = make([]int32, slots), make([]int32, slots)
	}
	if cap(r.spans) < len(m.Experts) {
		r.spans = make([]expertSpan, len(m.Experts))
	}
	r.slot, r.from = r.slot[:slots], r.from[:slots]
	all := r.spans[:len(m.Experts)]
	clear(all)
	for _, e := range r.choice.expert {
		all[e].hi++
	}
	at := 0
	for e := range all {
		all[e], at = expertSpan{e, at, at}, at+all[e].hi
	}
	for i, e := range r.choice.expert {
		s := &all[e]
		r.slot[i], r.from[s.hi] = int32(s.hi), int32(i)
		s.hi++
	}
	r.spans = all[:0]
	for _, s := range all {
		if s.hi > s.lo {
			r.spans = append(r.spans, s)
		}
	}
	m.load.add(len(m.Experts), r.spans)
}

type gatherTask struct {
	m          *MoE
	r          *moeRows
	x          *kernel.Acts
	f32, quant bool // what experts read
}

// gather copies each row to its slots.
func (e *Exec) gather(m *MoE, r *moeRows, x *kernel.Acts) {
	w := &m.Experts[0]
	f := w.Form()
	f32 := !f.Quant() || w.Gated && w.Gate.W.UsesQuant() != w.Up.W.UsesQuant() || m.Router.WeighInput
	formRows(&r.x, len(r.from), x.K, f)
	r.collect = gatherTask{m, r, x, f32, f.Quant()}
	e.run(&r.collect, len(r.from)*x.K)
}

func (t *gatherTask) Do(worker, workers int) {
	dst, route := &t.r.x, &t.m.Router
	lo, hi := pool.Split(dst.N, worker, workers)
	for s := lo; s < hi; s++ {
		at := int(t.r.from[s])
		row := at / route.TopK
		if t.f32 {
			copy(Row(dst, s), Row(t.x, row))
		}
		switch {
		case route.WeighInput:
			kernel.Scale(Row(dst, s), t.r.choice.weight[at])
			if t.quant {
				dst.Quantize(s, 0, dst.K)
			}
		case t.quant:
			copy(dst.Q[s*dst.LDQ:][:dst.LDQ], t.x.Q[row*t.x.LDQ:])
			copy(dst.A[s*dst.LDA:][:dst.LDA], t.x.A[row*t.x.LDA:])
		}
	}
}

// product multiplies the rows of x that are in the slots of s. A single row that
// was not gathered is the row of all slots.
func (s *expertSpan) product(w *Linear, dst, x *kernel.Acts, g0, g1 int) {
	lo, hi := s.lo, s.hi
	out := dst.F32[lo*dst.LDF:]
	if x.N == 1 {
		lo, hi = 0, 1
	}
	in := *x
	in.N = hi - lo
	if w.W.UsesQuant() {
		in.Q, in.A = x.Q[lo*x.LDQ:], x.A[lo*x.LDA:]
	} else {
		in.F32 = x.F32[lo*x.LDF:]
	}
	w.W.Mul(out, dst.LDF, &in, 0, in.N, g0, g1)
	if w.Bias == nil {
		return
	}
	c0, c1 := 16*g0, min(16*g1, w.W.Rows)
	for slot := s.lo; slot < s.hi; slot++ {
		kernel.Add(Row(dst, slot)[c0:c1], w.Bias[c0:c1])
	}
}

type expertHiddenTask struct {
	m      *MoE
	r      *moeRows
	x      *kernel.Acts
	units  int // of an expert
	quant  bool
	shares pool.Shares
}

// expertHidden computes what goes into the down matrices, in the slots of r.up.
func (e *Exec) expertHidden(m *MoE, r *moeRows, x *kernel.Acts) {
	first := &m.Experts[0]
	t := &r.hidden
	f := FormOf(&first.Down)
	t.m, t.r, t.x, t.quant = m, r, x, f.Quant()
	w := first.Up.W
	formRows(&r.up, len(r.from), w.Rows, f)
	matrices := 1
	if first.Gated {
		Rows(&r.gate, len(r.from), w.Rows, false)
		matrices = 2
	}
	t.units = (w.Groups + groupsPerUnit - 1) / groupsPerUnit
	rows := (len(r.from) + len(r.spans) - 1) / len(r.spans)
	e.pool.RunShared(t, &t.shares, t.units*len(r.spans), pieceGroups(rows, matrices*w.GroupBytes)/groupsPerUnit)
}

func (t *expertHiddenTask) Do(worker, _ int) {
	groups := t.m.Experts[0].Up.W.Groups
	for lo, hi, ok := t.shares.Next(worker); ok; lo, hi, ok = t.shares.Next(worker) {
		for lo < hi {
			s := &t.r.spans[lo/t.units]
			u0 := lo % t.units
			u1 := min(u0+hi-lo, t.units)
			t.part(s, u0*groupsPerUnit, min(u1*groupsPerUnit, groups))
			lo += u1 - u0
		}
	}
}

// part computes the columns of the groups [g0, g1) of an expert's slots.
func (t *expertHiddenTask) part(s *expertSpan, g0, g1 int) {
	m, up := &t.m.Experts[s.expert], &t.r.up
	c0, c1 := 16*g0, min(16*g1, m.Up.W.Rows)
	if m.Gated {
		s.product(&m.Gate, &t.r.gate, t.x, g0, g1)
	}
	s.product(&m.Up, up, t.x, g0, g1)
	for slot := s.lo; slot < s.hi; slot++ {
		var gate []float32
		if m.Gated {
			gate = Row(&t.r.gate, slot)[c0:c1]
		}
		activate(m.Act, Row(up, slot)[c0:c1], gate)
		if t.quant {
			up.Quantize(slot, c0, c1)
		}
	}
}

type expertDownTask struct {
	m      *MoE
	r      *moeRows
	hidden *kernel.Acts // of the shared MLP; nil for none
	rows   int
	shares pool.Shares
}

// expertDown sums the experts of each of n rows, and the shared MLP, in r.out.
func (e *Exec) expertDown(m *MoE, r *moeRows, shared *kernel.Acts, n int) {
	w := m.Experts[0].Down.W
	Rows(&r.y, len(r.from), w.Rows, false)
	Rows(&r.out, n, w.Rows, false)
	if shared != nil {
		Rows(&r.shared, n, w.Rows, false)
	}
	t := &r.down
	t.m, t.r, t.hidden, t.rows = m, r, shared, n
	// A group is read of every expert that was chosen.
	e.pool.RunShared(t, &t.shares, w.Groups, pieceGroups(n, len(r.spans)*w.GroupBytes))
}

func (t *expertDownTask) Do(worker, _ int) {
	for lo, hi, ok := t.shares.Next(worker); ok; lo, hi, ok = t.shares.Next(worker) {
		t.part(lo, hi)
	}
}

// part computes the columns of the groups [g0, g1). A row's experts are summed
// in the order of their scores, whatever other rows have chosen.
func (t *expertDownTask) part(g0, g1 int) {
	m, r := t.m, t.r
	for i := range r.spans {
		s := &r.spans[i]
		s.product(&m.Experts[s.expert].Down, &r.y, &r.up, g0, g1)
	}
	w := m.Experts[0].Down.W
	c0, c1 := 16*g0, min(16*g1, w.Rows)
	if t.hidden != nil {
		down := &m.Shared.Down
		down.W.Mul(r.shared.F32, r.shared.LDF, t.hidden, 0, t.rows, g0, g1)
	}
	k := m.Router.TopK
	for row := range t.rows {
		out := Row(&r.out, row)[c0:c1]
		t.shared(out, row, c0, c1)
		for i := row * k; i < (row+1)*k; i++ {
			slot, weight := r.slot[i], r.choice.weight[i]
			if m.Router.WeighInput {
				weight = 1
			}
			kernel.AddScaled(out, Row(&r.y, int(slot))[c0:c1], weight)
		}
		if m.Bias != nil {
			kernel.Add(out, m.Bias[c0:c1])
		}
	}
}

// shared begins a row's sum with the shared MLP's part, or with nothing.
func (t *expertDownTask) shared(out []float32, row, c0, c1 int) {
	if t.hidden == nil {
		clear(out)
		return
	}
	copy(out, Row(&t.r.shared, row)[c0:c1])
	if b := t.m.Shared.Down.Bias; b != nil {
		kernel.Add(out, b[c0:c1])
	}
	if t.m.SharedGate.W != nil {
		kernel.Scale(out, sigmoid(Row(&t.r.open, row)[0]))
	}
}
