package nn

import (
	"math"

	"ridge/internal/pool"
	"ridge/kernel"
)

// AltUp is alternating updates (Baykal et al. 2023): the residual stream is several
// streams. A layer computes on one of them, predicted from all, and all are
// corrected by what it has changed. How much each counts follows from the rows.
type AltUp struct {
	Active     int
	Router     Linear // [streams][hidden]
	RouterNorm Norm
	Predictor  [][]float32 // [streams·streams][streams]: of the stream predicted, from the stream
	Corrector  [][]float32 // [streams][streams]
	Scale      []float32   // [hidden], of what Output gives; nil for none
}

// Streams makes the streams from embedded rows, and one from all behind the last
// layer: each but the first is a product, made as large as the first. It holds those
// of the step at hand, [streams] of [rows][hidden].
type Streams struct {
	In, Out []Linear // of the streams but the first, [hidden][hidden]

	now, next []kernel.Acts
	in, mode  kernel.Acts // of the router: its rows, and its results
	task      streamTask
}

// Keep is [Keep] for all streams.
func (s *Streams) Keep(rows []int) {
	if s == nil {
		return
	}
	for i := range s.now {
		Keep(&s.now[i], rows)
	}
}

// AddToOthers adds rows to all streams but the first.
func (s *Streams) AddToOthers(y *kernel.Acts) {
	for i := 1; i < len(s.now); i++ {
		for row := range y.N {
			kernel.Add(Row(&s.now[i], row), Row(y, row))
		}
	}
}

// Reads returns the region of the router.
func (a *AltUp) Reads() Reads { return Reads{Regions: []Region{reads(1, &a.Router)}} }

// route computes how the streams are mixed by the rows x.
func (a *AltUp) route(e *Exec, s *Streams, x *kernel.Acts) {
	e.Norm(&s.in, x, &a.RouterNorm, FormOf(&a.Router))
	e.Linear(&s.in, Out{&a.Router, &s.mode})
	for i := range s.mode.N {
		m := Row(&s.mode, i)
		for k, v := range m {
			m[k] = float32(math.Tanh(float64(v)))
		}
	}
}

// Predict predicts all streams, and copies the one that the layer computes on to x.
func (a *AltUp) Predict(e *Exec, s *Streams, x *kernel.Acts) {
	a.route(e, s, &s.now[a.Active])
	for i := range s.next {
		Rows(&s.next[i], s.now[i].N, s.now[i].K, false)
	}
	Rows(x, s.now[0].N, s.now[0].K, false)
	s.task = streamTask{a: a, s: s, x: x, predict: true}
	e.run(&s.task, len(s.now)*x.N*x.K)
	s.now, s.next = s.next, s.now
}

// Correct corrects all streams by what the layer has made of the predicted one, x,
// which is overwritten.
func (a *AltUp) Correct(e *Exec, s *Streams, x *kernel.Acts) {
	a.route(e, s, x)
	s.task = streamTask{a: a, s: s, x: x}
	e.run(&s.task, len(s.now)*x.N*x.K)
}

// Output returns the rows of the corrected stream, scaled, in x.
func (a *AltUp) Output(s *Streams, x *kernel.Acts) *kernel.Acts {
	for i := range x.N {
		copy(Row(x, i), Row(&s.now[a.Active], i))
		if a.Scale != nil {
			kernel.Mul(Row(x, i), a.Scale)
		}
	}
	return x
}

// streamTask predicts or corrects the streams of rows.
type streamTask struct {
	a       *AltUp
	s       *Streams
	x       *kernel.Acts
	predict bool
}

func (t *streamTask) Do(worker, workers int) {
	lo, hi := pool.Split(t.x.N, worker, workers)
	for i := lo; i < hi; i++ {
		if t.predict {
			t.predictRow(i)
		} else {
			t.correctRow(i)
		}
	}
}

func (t *streamTask) predictRow(i int) {
	s, n := t.s, len(t.s.now)
	mode := Row(&s.mode, i)
	for to := range n {
		y := Row(&s.next[to], i)
		copy(y, Row(&s.now[to], i))
		for from := range n {
			kernel.AddScaled(y, Row(&s.now[from], i), dot(t.a.Predictor[to*n+from], mode))
		}
	}
	copy(Row(t.x, i), Row(&s.next[t.a.Active], i))
}

func (t *streamTask) correctRow(i int) {
	s, x := t.s, Row(t.x, i)
	mode := Row(&s.mode, i)
	kernel.AddScaled(x, Row(&s.now[t.a.Active], i), -1)
	for to := range s.now {
		kernel.AddScaled(Row(&s.now[to], i), x, 1+dot(t.a.Corrector[to], mode))
	}
}

func dot(a, b []float32) float32 {
	sum := float32(0)
	for i, v := range a {
		sum += float32(v * b[i])
	}
	return sum
}

// Matrices returns all matrices.
func (s *Streams) Matrices() (all []*Linear) {
	for i := range s.In {
		all = append(all, &s.In[i])
	}
	for i := range s.Out {
		all = append(all, &s.Out[i])
	}
	return all
}

// Begin makes the streams from the rows x.
func (s *Streams) Begin(e *Exec, x *kernel.Acts) {
	if n := 1 + len(s.In); len(s.now) != n {
		s.now, s.next = make([]kernel.Acts, n), make([]kernel.Acts, n)
	}
	Rows(&s.now[0], x.N, x.K, false)
	for i := range x.N {
		copy(Row(&s.now[0], i), Row(x, i))
	}
	for k := range s.In {
		e.Norm(&s.in, x, nil, FormOf(&s.In[k]))
		e.Linear(&s.in, Out{&s.In[k], &s.now[k+1]})
		for i := range x.N {
			resize(Row(&s.now[k+1], i), Row(x, i))
		}
	}
}

// End makes the mean of all streams, in x.
func (s *Streams) End(e *Exec, x *kernel.Acts) {
	first := &s.now[0]
	Rows(x, first.N, first.K, false)
	for i := range x.N {
		copy(Row(x, i), Row(first, i))
	}
	for k := range s.Out {
		e.Norm(&s.in, &s.now[k+1], nil, FormOf(&s.Out[k]))
		e.Linear(&s.in, Out{&s.Out[k], &s.next[k+1]})
		for i := range x.N {
			resize(Row(&s.next[k+1], i), Row(first, i))
			kernel.Add(Row(x, i), Row(&s.next[k+1], i))
		}
	}
	for i := range x.N {
		kernel.Scale(Row(x, i), 1/float32(len(s.now)))
	}
}

// resize makes the mean square of y that of x.
func resize(y, x []float32) {
	size, want := math.Sqrt(max(meanSquare(y), 1e-5)), math.Sqrt(meanSquare(x))
	kernel.Scale(y, float32(want/size))
}

// meanSquare returns the mean of the squares.
func meanSquare(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum / float64(len(x))
}
