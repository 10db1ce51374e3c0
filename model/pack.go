package model

import (
	"sync/atomic"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/weights/tensor"
)

type packJob struct {
	dst *kernel.Packed
	src tensor.Mat
	reading
	at int64 // offset of its first group in the file of kept matrices
}

// reading says how the threads share a matrix when they multiply with it.
type reading struct {
	first, total int // its place among the groups that are read in one region
	unit         int // groups that stay together; with more than one the region's matrices are split alike
}

// share returns the groups that a worker reads of a matrix with n groups.
func (r *reading) share(n, worker, workers int) (g0, g1 int) {
	if r.unit > 1 {
		lo, hi := pool.Split((n+r.unit-1)/r.unit, worker, workers)
		return lo * r.unit, min(hi*r.unit, n)
	}
	lo, hi := pool.Split(r.total, worker, workers)
	return min(max(lo-r.first, 0), n), min(max(hi-r.first, 0), n)
}

// place tells the planned matrices of a layer how they will be read, which the
// layer knows, and packs them if many had to be copied.
func (b *builder) place(l *Layer) {
	if b.err != nil || b.shapes || b.later {
		return
	}
	for r := range l.Regions() {
		at := reading{unit: r.Unit}
		for _, m := range r.Mats {
			at.total += m.W.Groups
		}
		for _, m := range r.Mats {
			for i := b.placed; i < len(b.jobs); i++ {
				if b.jobs[i].dst == m.W {
					b.jobs[i].reading = at
				}
			}
			at.first += m.W.Groups
		}
	}
	b.placed = len(b.jobs)
	if b.copied()-b.packedCopies > maxCopied {
		b.packPlanned()
	}
}

// maxCopied is how many bytes of changed weights may wait for being packed.
const maxCopied = 32 << 20

// unitBytes is about how much is packed between two looks at the counter, and
// then given back of the file: so much of it per worker is in memory.
const unitBytes = 1 << 20

// packTask packs planned matrices: workers take runs of groups in turn, in the
// order of planning, and give back the pages of the file that they have read.
// So a model being loaded takes the memory of its packed form and little more.
//
// Where the workers lie on several memory nodes each packs what it will read:
// the system puts a page next to the processor that writes it first.
type packTask struct {
	jobs    []packJob
	units   []packUnit
	next    atomic.Int64
	apart   bool         // each worker packs what it reads
	done    atomic.Int64 // bytes of the source
	total   int64
	tell    func(done, total int64)
	release func(src []byte)
	kept    *keptMatrices // when not nil, has the groups packed
}

type packUnit struct{ job, g0, g1 int }

// packPlanned packs the planned matrices and forgets their sources.
func (b *builder) packPlanned() {
	t := &b.task
	t.jobs, t.units = b.jobs, t.units[:0]
	for i, j := range b.jobs {
		step := j.step()
		for g := 0; g < j.dst.Groups; g += step {
			t.units = append(t.units, packUnit{i, g, min(g+step, j.dst.Groups)})
		}
	}
	t.next.Store(0)
	b.pool.Run(t)
	clear(b.jobs)
	b.jobs, b.placed, b.packedCopies = b.jobs[:0], 0, b.copied()
}

func (t *packTask) Do(worker, workers int) {
	if t.apart {
		for i := range t.jobs {
			j := &t.jobs[i]
			g0, g1 := j.share(j.dst.Groups, worker, workers)
			step := j.step()
			for g := g0; g < g1; g += step {
				t.pack(worker, j, g, min(g+step, g1))
			}
		}
		return
	}
	for {
		i := int(t.next.Add(1)) - 1
		if i >= len(t.units) {
			return
		}
		u := t.units[i]
		t.pack(worker, &t.jobs[u.job], u.g0, u.g1)
	}
}

// step returns the groups of a unit.
func (j *packJob) step() int { return max(1, unitBytes/j.dst.GroupBytes) }

// pack packs the groups [g0, g1) of a matrix.
func (t *packTask) pack(worker int, j *packJob, g0, g1 int) {
	size := j.src.Type.RowBytes(j.src.Cols)
	lo, hi := g0*kernel.Lanes*size, min(g1*kernel.Lanes, j.src.Rows)*size
	if t.kept != nil {
		t.kept.copy(j, g0, g1)
	} else {
		j.dst.Pack(j.src, g0, g1)
		t.release(j.src.Data[lo:hi])
	}
	done := t.done.Add(int64(hi - lo))
	if worker == 0 && t.tell != nil {
		t.tell(done, t.total)
	}
}
