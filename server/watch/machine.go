package watch

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"ridge/engine"
	"ridge/measure/machine"
	"ridge/measure/roofline"
	"ridge/server/run"
)

// Machine is what this computer can do with the threads that a model has.
type Machine struct {
	Read   float64    `json:"read_gb_s"`
	Int8   float64    `json:"int8_gop_s"` // multiplications and additions
	F32    float64    `json:"f32_gflop_s"`
	BF16   float64    `json:"bf16_gflop_s,omitempty"` // F32 where the processor has no such products, 0 where it is not known
	Source string     `json:"source"`                 // measured by ridge plan or doctor; estimated by a short look, or from what setting the threads told; unknown
	At     *time.Time `json:"at"`
}

// rates are a machine's per second, 0 where they are not known.
type rates struct{ read, int8, f32, bf16 float64 }

func (m *Machine) rates() rates { return rates{1e9 * m.Read, 1e9 * m.Int8, 1e9 * m.F32, 1e9 * m.BF16} }

// limit is the least time that a computation can take.
func (r rates) limit(c roofline.Cost) (memory, arithmetic float64) {
	if r.read > 0 {
		memory = float64(c.Bytes()) / r.read
	}
	if r.int8 > 0 && r.f32 > 0 {
		arithmetic = c.IntOps/r.int8 + c.Floats()/r.f32
	}
	if r.bf16 > 0 { // without it they count as nothing, which is less than they take
		arithmetic += c.Brains() / r.bf16
	}
	return memory, arithmetic
}

// machines finds out what the computer can do, once for each number of threads.
type machines struct {
	mu    sync.Mutex
	known map[int]*Machine
}

// of returns what so many threads can do. With look, nothing else being known and the
// machine having nothing to do, it measures for some tenths of a second.
func (m *machines) of(threads int, look bool) Machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x := m.known[threads]; x != nil && (x.Read > 0 || !look) {
		return *x
	}
	x := fromFiles(threads)
	if x.Read == 0 && look {
		x = glance(threads)
	}
	if m.known == nil {
		m.known = map[int]*Machine{}
	}
	m.known[threads] = x
	return *x
}

// Look finds out what the machine can do for the models that are loaded, so that their
// answers can be compared with it: by some hundredths of a second of measuring if it is
// not known, and if nothing runs.
func (s *API) Look() {
	for _, m := range s.Models.Loaded() {
		s.machine.of(max(1, m.Info().Workers), m.Stats().Requests == 0)
	}
}

// fromFiles is what was measured before.
func fromFiles(threads int) *Machine {
	if path := roofline.CachePath(); path != "" {
		if r, err := roofline.LoadMachine(path); err == nil && r.Source == roofline.Measured {
			at := slices.IndexFunc(r.Threads, func(t roofline.ThreadRates) bool { return t.Threads >= threads })
			if at < 0 {
				at = len(r.Threads) - 1
			}
			t := r.Threads[at]
			// The largest buffer fits in no cache.
			return &Machine{t.Read[len(t.Read)-1].Rate / 1e9, t.IntOps / 1e9, t.FloatOps / 1e9, t.BrainOps / 1e9, "measured", &r.Taken}
		}
	}
	if path := machine.ThreadsPath(); path != "" {
		if t, err := machine.LoadThreads(path); err == nil && len(t.Points) > 0 {
			near := slices.MinFunc(t.Points, func(a, b machine.ThreadPoint) int {
				return cmp.Compare(abs(a.Threads-threads), abs(b.Threads-threads))
			})
			return &Machine{near.Read / 1e9, near.Ops / 1e9, near.Ops / 4e9, 0, "estimated", &t.Taken}
		}
	}
	return &Machine{Source: "unknown"}
}

func abs(n int) int { return max(n, -n) }

const (
	glanceBytes = 64 << 20
	glanceRead  = 40 * time.Millisecond
	glanceOps   = 10 * time.Millisecond
)

// glance measures for some hundredths of a second.
func glance(threads int) *Machine {
	p, err := machine.NewProber(threads, glanceBytes)
	if err != nil {
		return &Machine{Source: "unknown"}
	}
	defer p.Close()
	now := time.Now()
	floats := p.Ops(false, glanceOps) / 1e9
	return &Machine{p.Read(glanceBytes, glanceRead) / 1e9, p.Ops(true, glanceOps) / 1e9, floats, cmp.Or(p.BrainOps(glanceOps)/1e9, floats), "estimated", &now}
}

// shapes keeps what the steps of models cost.
type shapes struct {
	mu    sync.Mutex
	known map[*engine.Engine]*roofline.Shape // nil for what cannot be known
}

// of returns what steps of a model cost, nil if that is not known.
func (s *shapes) of(m *run.Model) *roofline.Shape {
	e := m.Engine()
	if e == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x, ok := s.known[e]; ok {
		return x
	}
	if len(s.known) >= 64 { // engines come and go
		clear(s.known)
	}
	if s.known == nil {
		s.known = map[*engine.Engine]*roofline.Shape{}
	}
	x, err := roofline.Read(m.Info().Path, e.Model().Pool().DType())
	if err != nil {
		x = nil
	} else {
		x.Act = m.Info().Act
	}
	s.known[e] = x
	return x
}
