package nn

import (
	"sync/atomic"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// attendRows is the number of rows in a unit of work of a long run.
const attendRows = 32

// attnUnit is a piece of attention: some rows of a run for one key-value
// head, or for a run of few rows one split of its keys.
type attnUnit struct {
	run, head int
	row, rows int
	split     int // -1: all keys
	merge     int // with a split, the attnMerge that it is a part of
	node      int // of the last row, if ancestors of the rows in a tree lie apart; else -1
}

// attnMerge is the splits of one run and head: whoever computes the last of
// them folds them all.
type attnMerge struct {
	first, n int   // their units
	left     int32 // how many are not computed yet, changed atomically
}

type attnTask struct {
	dst, q *kernel.Acts
	a      *Attention
	runs   []Run
	layer  int
	kv     *kvcache.Pool
	spec   kernel.AttnSpec
	units  []attnUnit
	merges []attnMerge
	shares pool.Shares

	start, end []int32 // per row, the keys it sees
	parts      []float32
	partAt     []int                       // per unit with a split, its place in parts
	work       [pool.MaxWorkers]attnWorker // of each worker
}

type attnWorker struct {
	call    kernel.AttnCall
	scratch kernel.AttnScratch
	bias    kernel.AttnBias
	tail    []byte   // tiles of a path of a tree
	_       [64]byte // workers do not share cache lines
}

// attend writes the attention of the rows of q over the keys and values of
// their sequences to dst, [rows][heads·value dim]; q is [rows][heads·dim]. The rows' own keys and values
// must be stored. The result has the form f.
func (e *Exec) attend(a *Attention, s *Step, layer int, dst, q *kernel.Acts, f Form) {
	formRows(dst, q.N, a.Heads*a.valueDim(), f)
	t := &e.attn
	t.dst, t.q, t.a, t.runs, t.layer, t.kv = dst, q, a, s.Runs, layer, e.KV
	t.spec = kernel.AttnSpec{HeadDim: a.HeadDim, VHeadDim: a.valueDim(), Scale: a.Scale, Softcap: a.Softcap, KV: e.KV.DType(), ValuesInKeys: a.valuesInKeys > 0}
	t.plan()
	// Kernels fetch the keys behind those at hand: a worker takes units that lie
	// one after the other.
	t.shares.Anywhere = true // keys and values lie where there was room
	e.pool.RunShared(t, &t.shares, len(t.units), 1)
	if f.Quant() {
		e.Quantize(dst)
	}
}

// plan cuts the work into units. How it is cut does not change results.
func (t *attnTask) plan() {
	a := t.a
	t.units, t.merges = t.units[:0], t.merges[:0]
	t.partAt, t.parts = t.partAt[:0], t.parts[:0]
	if cap(t.start) < t.q.N {
		t.start, t.end = make([]int32, t.q.N), make([]int32, t.q.N)
	}
	t.start, t.end = t.start[:t.q.N], t.end[:t.q.N]
	for i := range t.runs {
		run := &t.runs[i]
		for r := range run.Rows() {
			end := run.position(r) + 1
			if a.Both {
				t.start[run.row+r], t.end[run.row+r] = bothWays(run, r, a.Reach)
				continue
			}
			t.end[run.row+r] = int32(end)
			t.start[run.row+r] = 0
			if a.Window > 0 {
				t.start[run.row+r] = int32(max(0, end-a.Window))
			}
			if a.Chunk > 0 {
				t.start[run.row+r] = max(t.start[run.row+r], int32((end-1)/a.Chunk*a.Chunk))
			}
		}
		for h := range a.KVHeads {
			t.cut(i, h)
		}
	}
}

// cut makes the units of one run and head: those of each path of a tree.
func (t *attnTask) cut(run, head int) {
	r := &t.runs[run]
	if r.Tree == nil {
		t.cutPath(run, head, 0, r.Rows(), -1)
		return
	}
	for row := 0; row < r.Rows(); {
		end, node := r.path(row)
		t.cutPath(run, head, row, end-row, node)
		row = end
	}
}

// cutPath makes the units of n rows on one path: by rows, and by splits of the keys
// when there are few rows and many keys.
func (t *attnTask) cutPath(run, head, from, n, node int) {
	if n <= 4 {
		t.call(&t.work[0], attnUnit{run: run, head: head, row: from, rows: n})
		c := &t.work[0].call
		if lo, hi := c.Splits(); hi-lo > 1 {
			m := len(t.merges)
			t.merges = append(t.merges, attnMerge{first: len(t.units), n: hi - lo, left: int32(hi - lo)})
			for split := lo; split < hi; split++ {
				t.units = append(t.units, attnUnit{run, head, from, n, split, m, node})
				t.partAt = append(t.partAt, len(t.parts))
				t.parts = grow(t.parts, c.PartFloats())
			}
			return
		}
	}
	for r := 0; r < n; r += attendRows {
		// The last rows see most keys and come first, so that the workers
		// finish together.
		row := (n - 1 - r) / attendRows * attendRows
		rows := min(attendRows, n-row)
		last := node
		if node >= 0 {
			last -= n - row - rows
		}
		t.units = append(t.units, attnUnit{run, head, from + row, rows, -1, -1, last})
		t.partAt = append(t.partAt, -1)
	}
}

// bothWays returns the keys that row r of a run sees that sees before and behind
// itself: all of the run, or those at most reach away.
func bothWays(run *Run, r, reach int) (start, end int32) {
	first, last := run.pos, run.pos+run.Rows()
	if pos := run.pos + r; reach > 0 {
		first, last = max(first, pos-reach), min(last, pos+reach+1)
	}
	return int32(first), int32(last)
}

func grow(s []float32, n int) []float32 {
	if cap(s) < len(s)+n {
		s = append(make([]float32, 0, 2*(len(s)+n)), s...)
	}
	return s[:len(s)+n]
}

// call fills the call of w for a unit.
func (t *attnTask) call(w *attnWorker, u attnUnit) {
	c := &w.call
	a, run := t.a, &t.runs[u.run]
	group, row := a.Heads/a.KVHeads, run.row+u.row
	pl := t.kv.Place(t.layer, u.head)
	c.Spec, c.Rows, c.Heads = &t.spec, u.rows, group
	c.Q, c.LDQ = t.q.F32[row*t.q.LDF+u.head*group*a.HeadDim:], t.q.LDF
	c.Out, c.LDO = t.dst.F32[row*t.dst.LDF+u.head*group*a.valueDim():], t.dst.LDF
	c.Start, c.End = t.start[row:row+u.rows], t.end[row:row+u.rows]
	c.Slope, c.Sink, c.Bias = nil, nil, nil
	if a.Sinks != nil {
		c.Sink = a.Sinks[u.head*group:][:group]
	}
	if a.Slopes != nil {
		c.Slope = a.Slopes[u.head*group:][:group]
	}
	if b := a.Bias; b != nil {
		w.bias = kernel.AttnBias{Table: b.table[u.head*group*b.stride:], Stride: b.stride, Zero: b.zero, First: run.position(u.row)}
		c.Bias = &w.bias
	}
	c.Tiles = kernel.Tiles{Pages: t.kv.Bases(t.layer, run.Seq), PerPage: pl.PerPage, K: pl.K, V: pl.V, Step: pl.Step}
}

func (t *attnTask) Do(worker, _ int) {
	for lo, hi, ok := t.shares.Next(worker); ok; lo, hi, ok = t.shares.Next(worker) {
		for i := lo; i < hi; i++ {
			t.unit(i, &t.work[worker])
		}
	}
}

// unit computes one unit.
func (t *attnTask) unit(i int, w *attnWorker) {
	u := t.units[i]
	t.call(w, u)
	if u.node >= 0 && (u.split < 0 || (u.split+1)*kernel.AttnSplit > t.runs[u.run].trunk()) {
		t.gather(w, u)
	}
	if u.split < 0 {
		kernel.Attend(&w.call, &w.scratch)
		return
	}
	at := t.partAt[i]
	kernel.AttendSplits(&w.call, &w.scratch, u.split, u.split+1, t.parts[at:at+w.call.PartFloats()])
	if m := &t.merges[u.merge]; atomic.AddInt32(&m.left, -1) == 0 {
		at := t.partAt[m.first]
		kernel.MergeSplits(&w.call, t.parts[at:at+m.n*w.call.PartFloats()])
	}
}
