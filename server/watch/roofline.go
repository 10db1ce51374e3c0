package watch

import (
	"fmt"
	"net/http"
	"time"

	"ridge/engine/trace"
	"ridge/measure/roofline"
	"ridge/server/run"
	"ridge/server/wire"
)

// Roofline is the answer of GET /ridge/roofline: what the machine can do, and what the
// steps of the last ten seconds did of it.
type Roofline struct {
	Model   string  `json:"model"`
	Machine Machine `json:"machine"`
	Dots    struct {
		Prefill   *Dot `json:"prefill"`   // steps with tokens of prompts
		Decode    *Dot `json:"decode"`    // steps with next tokens alone
		Attention *Dot `json:"attention"` // the part of all of them that reads keys and values
	} `json:"dots"`
	Limit string `json:"limit"` // what limits now, in a sentence
}

// Dot is a kind of computation in the diagram.
type Dot struct {
	OpsPerByte float64 `json:"ops_per_byte"`
	Ops        float64 `json:"gop_s"`
	Read       float64 `json:"gb_s"`
	Percent    float64 `json:"percent_of_limit"` // the least time that it could take, of the time that it took; 0 if the machine is not known
	Seconds    float64 `json:"seconds"`          // in the model
	// Estimated says that the seconds are a part of a step's, by what the parts should
	// take.
	Estimated bool `json:"estimated,omitempty"`
}

// dotsOver is how long dots look back.
const dotsOver = 10 * time.Second

// work is what some steps computed, and the time that they had.
type work struct {
	cost          roofline.Cost
	took, kernels time.Duration
	steps         int
}

func (k *work) add(s *roofline.Shape, x *trace.Step) {
	st := make(roofline.Step, len(x.Rows))
	for i, r := range x.Rows {
		st[i] = roofline.Run{Seq: i, Pos: int(r.Context - r.Tokens), Rows: int(r.Tokens), Outputs: 1}
	}
	k.cost.Add(s.Cost(st))
	k.took += x.Took
	k.kernels += x.Kernels
	k.steps++
}

// dot is nil for nothing.
func (k *work) dot(r rates) *Dot {
	return newDot(k.cost.Ops(), float64(k.cost.Bytes()), k.kernels.Seconds(), limitOf(r, k.cost))
}

func limitOf(r rates, c roofline.Cost) float64 {
	memory, arithmetic := r.limit(c)
	return max(memory, arithmetic)
}

func newDot(ops, bytes, seconds, limit float64) *Dot {
	if ops <= 0 || bytes <= 0 || seconds <= 0 {
		return nil
	}
	return &Dot{OpsPerByte: ops / bytes, Ops: ops / seconds / 1e9, Read: bytes / seconds / 1e9, Percent: 100 * limit / seconds, Seconds: seconds}
}

// What attention reaches of the machine's rates, by which its part of a step is
// estimated: see roofline.Fitted.
var fitted = roofline.Fitted()

// attention is the dot of all attention in two kinds of steps.
func attention(r rates, prefill, decode *work) *Dot {
	var ops, bytes, seconds, limit float64
	for _, k := range []*work{prefill, decode} {
		part := roofline.Cost{KVRead: k.cost.KVRead, AttnOps: k.cost.AttnOps, BrainAttn: k.cost.BrainAttn}
		rest := k.cost
		rest.KVRead, rest.AttnOps, rest.BrainAttn = 0, 0, 0
		memory, arithmetic := r.limit(part)
		own, others := max(memory/fitted.AttnStream, arithmetic/fitted.Attention), limitOf(r, rest)
		if own+others <= 0 {
			continue
		}
		ops, bytes, limit = ops+part.Ops(), bytes+float64(part.KVRead), limit+max(memory, arithmetic)
		seconds += k.kernels.Seconds() * own / (own + others)
	}
	d := newDot(ops, bytes, seconds, limit)
	if d != nil {
		d.Estimated = true
	}
	return d
}

// roofline answers GET /ridge/roofline.
func (s *API) roofline(w http.ResponseWriter, r *http.Request) error {
	m, err := s.model(r)
	if err != nil {
		return err
	}
	out := &Roofline{Model: m.Info().Name}
	st := m.Stats()
	out.Machine = s.machine.of(max(1, m.Info().Workers), st.Requests == 0)
	shape := s.shapes.of(m)
	if shape == nil {
		out.Limit = "What this model computes is not known."
		wire.WriteJSON(w, http.StatusOK, out)
		return nil
	}
	var prefill, decode work
	after := time.Now().Add(-dotsOver)
	for _, x := range m.Engine().Trace().Steps(0, mostSteps) {
		if x.At.Before(after) {
			continue
		}
		kind := &decode
		for i := range x.Rows {
			if x.Rows[i].Kind == trace.Prefill {
				kind = &prefill
			}
		}
		kind.add(shape, &x)
	}
	rt := out.Machine.rates()
	out.Dots.Prefill, out.Dots.Decode, out.Dots.Attention = prefill.dot(rt), decode.dot(rt), attention(rt, &prefill, &decode)
	out.Limit = limit(rt, &prefill, &decode, st.Waiting)
	wire.WriteJSON(w, http.StatusOK, out)
	return nil
}

// limit says in a sentence what limits now.
func limit(r rates, prefill, decode *work, waiting int) string {
	k, what := decode, "Answers"
	if prefill.took > decode.took {
		k, what = prefill, "Prompts"
	}
	if k.steps == 0 {
		return "Nothing was computed in the last ten seconds."
	}
	text := ""
	memory, arithmetic := r.limit(k.cost)
	seconds := k.kernels.Seconds()
	switch rest := 1 - seconds/k.took.Seconds(); {
	case rest > 0.4:
		text = fmt.Sprintf("%s wait for what is not arithmetic: sampling, grammars and books take %.0f%% of the time", what, 100*rest)
	case memory == 0:
		text = fmt.Sprintf("%s are computed with %.1f GOP/s and read %.1f GB/s; what the machine can do is not known", what, k.cost.Ops()/seconds/1e9, float64(k.cost.Bytes())/seconds/1e9)
	case memory >= arithmetic && k.cost.KVRead > k.cost.Weights:
		text = fmt.Sprintf("%s are limited by reading keys and values from memory, at %.0f%% of what the machine reads", what, 100*memory/seconds)
	case memory >= arithmetic:
		text = fmt.Sprintf("%s are limited by reading weights from memory, at %.0f%% of what the machine reads", what, 100*memory/seconds)
	default:
		text = fmt.Sprintf("%s are limited by arithmetic, at %.0f%% of what the machine computes", what, 100*arithmetic/seconds)
	}
	if waiting > 0 {
		text += fmt.Sprintf(", and %d wait", waiting)
	}
	return text + "."
}

// Reads begins to watch how fast the steps of a model that compute next tokens read
// memory, and returns what tells the part of the machine's limit that they reached
// since, 0 if that is not known.
func (s *API) Reads(m *run.Model) func() float64 {
	e := m.Engine()
	if e == nil {
		return func() float64 { return 0 }
	}
	before := e.Trace().Decode()
	return func() float64 {
		now := e.Trace().Decode()
		steps, rows, keys, took := now.Steps-before.Steps, now.Rows-before.Rows, now.Keys-before.Keys, now.Took-before.Took
		if steps == 0 || rows == 0 || took <= 0 {
			return 0
		}
		mach := s.machine.of(max(1, m.Info().Workers), false)
		r, shape := mach.rates(), s.shapes.of(m)
		if shape == nil || r.read == 0 {
			return 0
		}
		// A step with as many rows, and as much before each, as they had on average.
		st := make(roofline.Step, (rows+steps-1)/steps)
		for i := range st {
			st[i] = roofline.Run{Seq: i, Pos: int(keys / rows), Rows: 1, Outputs: 1}
		}
		return float64(shape.Cost(st).Bytes()) * float64(steps) / took.Seconds() / r.read
	}
}
