package roofline

import (
	"context"

	"ridge/measure/machine"
)

// look is what a machine was seen to do at some moment, per second; 0 for what
// was not measured.
type look struct {
	bytes               int64   // of the buffer that was read
	reads, ints, floats float64 // by all threads
	kernels             float64 // rate of kernels over the usual one, or 0 if it is that of their operations
}

// During returns the machine as it was during an observation: its rates scaled
// so that they are those that were measured then. A machine with other work on
// it, or a virtual one whose host has, changes from minute to minute.
func (m *Machine) During(o Observation) *Machine {
	cost := Cost{}
	for st := range o.Work.Steps() {
		cost.Add(o.Shape.Cost(st))
		break
	}
	return m.scaled(o.Threads, look{bytes: min(cost.Bytes(), probeCap), reads: o.Read, ints: o.Int, floats: o.Float})
}

// Now returns the machine as it is at this moment, of which it takes a look of
// some tenths of a second: its rates scaled to those at which so many threads
// read a buffer as large as the weights of s, and multiply. If other programs
// take processor time meanwhile, or there is no memory for the buffer, it is m
// itself: what a machine can do is not seen then.
func (m *Machine) Now(ctx context.Context, s *Shape, threads int) *Machine {
	return usualEffort.now(ctx, m, s, threads)
}

func (e effort) now(ctx context.Context, m *Machine, s *Shape, threads int) *Machine {
	l := look{bytes: min(s.WeightBytes, probeCap)}
	if free := machine.Read().MemoryFree; free > 0 {
		l.bytes = min(l.bytes, free/4)
	}
	p, err := machine.NewProber(threads, int(l.bytes))
	if err != nil {
		return m
	}
	defer p.Close()
	e.windows = max(e.windows/2, 1)
	reads, calm := e.collect(threads, func(n int) []float64 { return p.Reads(int(l.bytes), e.readWindow, n) })
	ints, floats, _, calmOps := e.ops(p)
	rates, err := e.kernelRates(ctx, s.commonType())
	if err != nil || !calm || !calmOps {
		return m
	}
	l.reads, l.ints, l.floats, l.kernels = sustained(reads), ints, floats, m.against(rates)
	return m.scaled(threads, l)
}

// against returns the median of the rates of kernels over those of m, 0 if m
// has none of these.
func (m *Machine) against(rates []KernelRate) float64 {
	var x []float64
	for _, now := range rates {
		for _, k := range m.Kernels {
			if k.Type == now.Type && k.Rows == now.Rows {
				x = append(x, now.OpRate/k.OpRate)
			}
		}
	}
	if len(x) == 0 {
		return 0
	}
	return sustained(x)
}

// probeCap is the largest buffer that is read to find a rate: larger ones are
// no slower.
const probeCap = 1 << 30

// scaled returns the machine with rates for 1 and for so many threads, all in
// proportion to what was seen of the latter.
func (m *Machine) scaled(threads int, l look) *Machine {
	r, one := m.rates(threads), m.rates(1)
	n := *m
	n.Threads, n.Kernels = nil, nil
	scale := func(now, usual, or float64) float64 {
		if now <= 0 {
			return or
		}
		return now / usual
	}
	reads, floats := scale(l.reads, r.read(l.bytes), 1), scale(l.floats, r.FloatOps, 1)
	ints := scale(l.ints, r.IntOps, floats)
	kernels := scale(l.kernels, 1, ints)
	for _, t := range []ThreadRates{one, r} {
		t.IntOps, t.FloatOps, t.BrainOps = t.IntOps*ints, t.FloatOps*floats, t.BrainOps*floats
		points := t.Read
		t.Read = nil
		for _, p := range points {
			t.Read = append(t.Read, ReadPoint{p.Bytes, p.Rate * reads})
		}
		if len(n.Threads) == 0 || n.Threads[0].Threads < t.Threads {
			n.Threads = append(n.Threads, t)
		}
	}
	for _, k := range m.Kernels {
		k.OpRate *= kernels
		n.Kernels = append(n.Kernels, k)
	}
	return &n
}
