package model

import (
	"sync/atomic"

	"ridge/kernel"
	"ridge/tensor"
)

type packJob struct {
	dst *kernel.Packed
	src tensor.Mat
}

// maxCopied is how many bytes of changed weights may wait for being packed.
const maxCopied = 32 << 20

// unitBytes is about how much is packed between two looks at the counter, and
// then given back of the file: so much of it per worker is in memory.
const unitBytes = 1 << 20

// packTask packs planned matrices: workers take runs of groups in turn, in the
// order of planning, and give back the pages of the file that they have read.
// So a model being loaded takes the memory of its packed form and little more.
type packTask struct {
	jobs    []packJob
	units   []packUnit
	next    atomic.Int64
	done    atomic.Int64 // bytes of the source
	total   int64
	tell    func(done, total int64)
	release func(src []byte)
}

type packUnit struct{ job, g0, g1 int }

// packPlanned packs the planned matrices and forgets their sources.
func (l *loader) packPlanned() {
	t := &l.task
	t.jobs, t.units = l.jobs, t.units[:0]
	for i, j := range l.jobs {
		step := max(1, unitBytes/j.dst.GroupBytes)
		for g := 0; g < j.dst.Groups; g += step {
			t.units = append(t.units, packUnit{i, g, min(g+step, j.dst.Groups)})
		}
		l.w.bytes += int64(len(j.dst.Data))
	}
	t.next.Store(0)
	l.pool.Run(t)
	clear(l.jobs)
	l.jobs, l.packedCopies = l.jobs[:0], l.src.copied()
}

func (t *packTask) Do(worker, workers int) {
	for {
		i := int(t.next.Add(1)) - 1
		if i >= len(t.units) {
			return
		}
		u := t.units[i]
		j := t.jobs[u.job]
		j.dst.Pack(j.src, u.g0, u.g1)
		size := j.src.Type.RowBytes(j.src.Cols)
		read := j.src.Data[u.g0*kernel.Lanes*size : min(u.g1*kernel.Lanes, j.src.Rows)*size]
		t.release(read)
		done := t.done.Add(int64(len(read)))
		if worker == 0 && t.tell != nil {
			t.tell(done, t.total)
		}
	}
}
