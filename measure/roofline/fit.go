package roofline

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"ridge/model"
	"ridge/weights/tensor"
)

// Observation is a measured work, as "ridge bench -o json" prints it.
type Observation struct {
	Shape   *Shape
	Work    Work
	Threads int
	Seconds float64 // of all of the work
	// What the machine did between the repetitions, per second; 0 if not
	// measured.
	Read, Int, Float float64
}

// quietShare is the part of the processor time of its threads that a repetition
// must have got to be believed: less means that other programs ran.
const quietShare = 0.93

// ReadObservations reads what "ridge bench -o json" or "-o jsonl" printed. Of
// each test it takes the median of the repetitions that other programs did not
// disturb; busy is the number of tests without any, which are left out. The
// models must still be where they were measured.
func ReadObservations(path string) (obs []Observation, busy int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("roofline: observations: %w", err)
	}
	defer f.Close()
	shapes := map[string]*Shape{}
	add := func(r record) error {
		w := Work{Prompt: r.Prompt, Gen: r.Gen, Depth: r.Depth, Seqs: r.Seqs, Chunk: r.Chunk}
		if r.Speed <= 0 || r.Threads < 1 || w.Tokens() <= 0 {
			return fmt.Errorf("roofline: observations: %s: record %d: expected tokens, threads and a speed, found %+v", path, len(obs)+busy+1, r)
		}
		kv, err := tensor.ParseDType(r.KV)
		if err != nil {
			return fmt.Errorf("roofline: observations: %s: type_k: %w", path, err)
		}
		act, err := model.ParseAct(cmp.Or(r.Act, model.ActInt8.String())) // there was no other before it was told
		if err != nil {
			return fmt.Errorf("roofline: observations: %s: %w", path, err)
		}
		key := fmt.Sprint(r.File, kv, act)
		if shapes[key] == nil {
			if shapes[key], err = Read(r.File, kv); err != nil {
				return err
			}
			shapes[key].Act = act
		}
		speed := r.quiet()
		if speed == 0 {
			busy++
			return nil
		}
		obs = append(obs, Observation{shapes[key], w, r.Threads, float64(w.Tokens()) / speed, r.Read, r.Int, r.Float})
		return nil
	}
	for d := json.NewDecoder(f); ; {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		var many []record
		if err == nil && raw[0] == '[' {
			err = json.Unmarshal(raw, &many)
		} else if err == nil {
			many = make([]record, 1)
			err = json.Unmarshal(raw, &many[0])
		}
		if err != nil {
			return nil, 0, fmt.Errorf("roofline: observations: %s: expected what ridge bench prints as JSON: %w", path, err)
		}
		for _, r := range many {
			if err := add(r); err != nil {
				return nil, 0, err
			}
		}
	}
	if len(obs) == 0 {
		return nil, 0, fmt.Errorf("roofline: observations: %s: expected at least one undisturbed test, found none and %d disturbed ones", path, busy)
	}
	return obs, busy, nil
}

// record is what is read of a result of package bench.
type record struct {
	File    string    `json:"model_filename"`
	Threads int       `json:"n_threads"`
	KV      string    `json:"type_k"`
	Act     string    `json:"activations"`
	Chunk   int       `json:"n_batch"`
	Prompt  int       `json:"n_prompt"`
	Gen     int       `json:"n_gen"`
	Depth   int       `json:"n_depth"`
	Seqs    int       `json:"n_seqs"`
	Speed   float64   `json:"median_ts"`
	Samples []float64 `json:"samples_ts"`
	Shares  []float64 `json:"samples_cpu_share"`
	Read    float64   `json:"probe_read_bytes_per_s"`
	Int     float64   `json:"probe_int8_ops_per_s"`
	Float   float64   `json:"probe_f32_ops_per_s"`
}

// quiet returns the median speed of the undisturbed repetitions, 0 if there is
// none. Without shares all count.
func (r *record) quiet() float64 {
	if len(r.Shares) == 0 || len(r.Shares) != len(r.Samples) {
		return r.Speed
	}
	var good []float64
	for i, s := range r.Samples {
		if r.Shares[i] >= quietShare && s > 0 {
			good = append(good, s)
		}
	}
	if len(good) == 0 {
		return 0
	}
	slices.Sort(good)
	n := len(good)
	return (good[(n-1)/2] + good[n/2]) / 2
}

// Error is how far off the prediction of an observation is: predicted over
// measured speed, minus one.
func (m *Machine) Error(o Observation, c *Constants) float64 {
	return o.Seconds/m.seconds(o.Shape, o.Work, o.Threads, c) - 1
}

// seconds is predict for what fitting needs of it.
func (m *Machine) seconds(s *Shape, w Work, threads int, c *Constants) float64 {
	p := m.estimate(s, w, threads, c).work(w)
	return p.total()
}

// FitConstants finds the constants that predict observations best: those with
// the least sum of squares of the logarithms of predicted over measured time,
// and of a weak pull towards start for what the observations do not tell. It
// searches along each constant in turn with shrinking steps, from start and
// from each corner around it in which one constant is half or twice as large.
// machine gives the machine for an observation.
func FitConstants(obs []Observation, machine func(Observation) *Machine, start Constants) Constants {
	machines := make([]*Machine, len(obs))
	for i, o := range obs {
		machines[i] = machine(o)
	}
	const pull = 0.003
	loss := func(c *Constants) float64 {
		sum := 0.0
		for i, o := range obs {
			e := math.Log(machines[i].seconds(o.Shape, o.Work, o.Threads, c) / o.Seconds)
			sum += e * e
		}
		from := start.all()
		for i, p := range c.all() {
			e := math.Log(*p.value / *from[i].value)
			sum += pull * e * e
		}
		return sum
	}
	best, least := start, loss(&start)
	for i := range start.all() {
		for _, f := range []float64{0.5, 2} {
			c := start
			p := c.all()[i]
			*p.value = p.limit(*p.value * f)
			if l := descend(&c, loss); l < least {
				best, least = c, l
			}
		}
	}
	return best
}

// descend changes c, one constant at a time, until no step makes the loss
// smaller.
func descend(c *Constants, loss func(*Constants) float64) float64 {
	best := loss(c)
	for step := 1.6; step > 1.005; {
		better := false
		for _, p := range c.all() {
			for _, f := range []float64{step, 1 / step} {
				old := *p.value
				*p.value = p.limit(old * f)
				if l := loss(c); l < best {
					best, better = l, true
				} else {
					*p.value = old
				}
			}
		}
		if !better {
			step = math.Sqrt(step)
		}
	}
	return best
}

// bounded is a constant with the range in which it makes sense.
type bounded struct {
	value     *float64
	low, high float64
}

func (b *bounded) limit(v float64) float64 { return min(max(v, b.low), b.high) }

func (c *Constants) all() []bounded {
	return []bounded{
		{&c.Stream, 0.5, 1.1}, {&c.Cache, 0.3, 1}, {&c.Overlap, 1, 20}, {&c.Region, 1e-8, 2e-5}, {&c.Element, 1, 500},
		{&c.Attention, 0.02, 1}, {&c.Convert, 0.01, 20}, {&c.AttnStream, 0.1, 1.1},
	}
}
