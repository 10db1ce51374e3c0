package machine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ridge/internal/arena"
	"ridge/internal/cpu"
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/weights/tensor"
)

// Threads are the numbers of threads that were measured to be best on this
// machine.
type Threads struct {
	pool.Counts
	Points  []ThreadPoint `json:"points"`
	Taken   time.Time     `json:"taken"`
	Seconds float64       `json:"seconds"` // that measuring took
	// Odd says why the counts are not to be relied on, "" if they are.
	Odd string `json:"odd,omitempty"`
}

// ThreadPoint is what a number of threads reached.
type ThreadPoint struct {
	Threads int     `json:"threads"`
	Read    float64 `json:"read_bytes_per_second"` // of weights, with one row of activations
	Ops     float64 `json:"ops_per_second"`        // int8 multiplications and additions, with tuneRows rows
}

// TuneOptions say how much effort measuring threads may take.
type TuneOptions struct {
	Budget time.Duration // about how long it may take in all
	Bytes  int64         // of weights: larger than the caches, at best
}

const (
	tuneDim    = 2048 // rows and columns of a matrix
	tuneRows   = 64   // activations of a batch
	tuneMats   = 2    // matrices of a batch
	tuneRounds = 5    // the fewest rounds that say something
	tuneMost   = 200  // rounds
	// tuneNear is how near to the best the fewer threads that are taken must be.
	tuneNear = 0.98
	// tuneSpread is how far the median may be from the fast quarter on a machine
	// with nothing else to do.
	tuneSpread = 1.25
)

// TuneThreads measures how fast 1 to pool.DefaultWorkers threads decode and
// read prompts: in turns, so that what else runs on the machine disturbs all of
// them alike. The fewest threads within 2% of the best are taken.
func TuneThreads(ctx context.Context, o TuneOptions) (*Threads, error) {
	begin := time.Now()
	t, err := newTuner(pool.DefaultWorkers(), o.Bytes)
	if err != nil {
		return nil, err
	}
	defer t.close()
	counts := tuneCounts(t.pool.Workers())
	decode, batch := make([][]float64, len(counts)), make([][]float64, len(counts))
	crowded := false
	for round := 0; ; round++ {
		for i, n := range counts {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if round == 0 && i > 0 && time.Since(begin) > o.Budget {
				most := t.pool.Workers()
				return &Threads{Counts: pool.Counts{Decode: most, Batch: most}, Taken: begin.UTC().Truncate(time.Second),
					Seconds: time.Since(begin).Seconds(), Odd: "there was no time for each number of threads"}, nil
			}
			t.pool.SetWidth(n)
			t.run(1, t.mats[:1]) // those who slept come
			decode[i] = append(decode[i], t.run(1, t.mats))
			batch[i] = append(batch[i], t.run(tuneRows, t.mats[:min(tuneMats, len(t.mats))]))
			crowded = crowded || t.pool.Crowded()
		}
		took := time.Since(begin)
		if took+took/time.Duration(round+1) > o.Budget || round+1 == tuneMost {
			break
		}
	}
	r := &Threads{Taken: begin.UTC().Truncate(time.Second)}
	if r.choose(counts, decode, batch); crowded {
		r.Odd = "other programs kept threads waiting"
	}
	bytes, ops := 0.0, 2.0*tuneRows*tuneDim*tuneDim*float64(min(tuneMats, len(t.mats)))
	for _, w := range t.mats {
		bytes += float64(len(w.Data))
	}
	for i, n := range counts {
		r.Points = append(r.Points, ThreadPoint{n, bytes / fast(decode[i]), ops / fast(batch[i])})
	}
	r.Seconds = time.Since(begin).Seconds()
	return r, nil
}

// choose takes the fewest threads that are near the best, from seconds by count
// and round.
func (r *Threads) choose(counts []int, decode, batch [][]float64) {
	pick := func(what string, times [][]float64) int {
		best := math.Inf(1)
		for _, x := range times {
			best = min(best, fast(x))
		}
		for i, n := range counts {
			if fast(times[i])*tuneNear > best {
				continue
			}
			rounds, median := len(times[i]), quantileOf(times[i], 0.5)
			switch {
			case rounds < tuneRounds:
				r.Odd = fmt.Sprintf("there was time for %d of %d rounds", rounds, tuneRounds)
			case median > tuneSpread*fast(times[i]):
				r.Odd = fmt.Sprintf("%s with %d threads took between %.2f and %.2f ms, half the time: other programs ran", what, n, 1e3*fast(times[i]), 1e3*median)
			}
			return n
		}
		return counts[len(counts)-1]
	}
	r.Decode, r.Batch = pick("decoding", decode), pick("a batch", batch)
}

// fast is the time of the fast quarter.
func fast(x []float64) float64 { return quantileOf(x, 0.25) }

func quantileOf(x []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return s[int(q*float64(len(s)-1))]
}

// tuneCounts are the numbers of threads that are tried on most cores: all of
// few, and of many those that can make a difference.
func tuneCounts(most int) []int {
	var n []int
	for i := 1; i <= min(most, 8); i++ {
		n = append(n, i)
	}
	for eighths := 2; eighths <= 8; eighths++ {
		n = append(n, most*eighths/8)
	}
	slices.Sort(n)
	n = slices.DeleteFunc(slices.Compact(n), func(i int) bool { return i < 1 || i > 4 && i < most/8 })
	return n
}

// tuner multiplies matrices whose weights are zero: the kernels' speed does not
// depend on them.
type tuner struct {
	pool *pool.Pool
	mem  *arena.Arena
	mats []*kernel.Packed
	x    kernel.Acts
	dst  []float32
	task tuneTask
}

type tuneTask struct {
	t    *tuner
	w    *kernel.Packed
	rows int
}

func (k *tuneTask) Do(worker, workers int) {
	g0, g1 := pool.Split(k.w.Groups, worker, workers)
	k.w.Mul(k.t.dst, tuneDim, &k.t.x, 0, k.rows, g0, g1)
}

// tuneTouch gets the memory from the system: pages that nobody wrote to are all
// one page.
type tuneTouch struct{ b []byte }

func (k *tuneTouch) Do(worker, workers int) {
	pages := len(k.b) / page
	lo, hi := pool.Split(pages, worker, workers)
	for i := lo; i < hi; i++ {
		k.b[i*page] = 0
	}
}

func newTuner(workers int, bytes int64) (*tuner, error) {
	m := tensor.Mat{Type: tensor.Q8_0, Rows: tuneDim, Cols: tuneDim}
	m.Data = make([]byte, m.Rows*m.Type.RowBytes(m.Cols))
	size, err := kernel.PackedBytes(m)
	if err != nil {
		return nil, fmt.Errorf("machine: threads: %w", err)
	}
	n := max(int(bytes)/size, 1)
	t := &tuner{x: kernel.Acts{N: tuneRows, K: tuneDim, LDF: tuneDim, LDQ: kernel.ActRowBytes(tuneDim)}}
	if t.mem, err = arena.New(n * (size + 64)); err != nil {
		return nil, fmt.Errorf("machine: threads: %w", err)
	}
	pl, err := pool.Place(workers, int64(n*size), false)
	if err == nil {
		t.pool, err = pool.NewPlaced(pl)
	}
	if err != nil {
		t.pool = pool.New(workers)
	}
	for range n {
		w, err := kernel.NewPacked(m, t.mem.Alloc)
		if err != nil {
			t.close()
			return nil, fmt.Errorf("machine: threads: %w", err)
		}
		t.mats = append(t.mats, w)
	}
	t.pool.Run(&tuneTouch{t.mem.Bytes()})
	t.x.F32, t.x.Q = make([]float32, tuneRows*tuneDim), make([]byte, tuneRows*t.x.LDQ)
	for i := range t.x.F32 {
		t.x.F32[i] = float32(i%17 - 8)
	}
	for r := range tuneRows {
		kernel.QuantizeRow(t.x.Q[r*t.x.LDQ:][:t.x.LDQ], t.x.F32[r*tuneDim:][:tuneDim])
	}
	t.dst = make([]float32, tuneRows*tuneDim)
	return t, nil
}

func (t *tuner) close() {
	t.pool.Close()
	t.mem.Free()
}

// run multiplies rows with the matrices, a region each, and returns the seconds
// that it took.
func (t *tuner) run(rows int, mats []*kernel.Packed) float64 {
	t.pool.Enter()
	defer t.pool.Leave()
	start := time.Now()
	for _, w := range mats {
		t.task = tuneTask{t, w, rows}
		t.pool.Run(&t.task)
	}
	return time.Since(start).Seconds()
}

// tuneTier reports whether the kernels are worth measuring: the plain ones are
// limited by arithmetic with any number of threads.
func tuneTier() bool { return cpu.Current() > cpu.Generic }
