package roofline

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Report is everything that is known of a model on a machine.
type Report struct {
	Model       string       `json:"model"`
	File        string       `json:"file"`
	Parameters  int64        `json:"parameters"`
	WeightBytes int64        `json:"weight_bytes"` // read for each token
	KVBytes     int64        `json:"kv_bytes"`     // for each position
	Context     int          `json:"context"`      // that memory and predictions are for
	ContextMade int          `json:"context_made"` // that the model was made for
	Seqs        int          `json:"n_seqs"`
	Threads     int          `json:"n_threads"`
	Machine     *Machine     `json:"machine"`
	Memory      Memory       `json:"memory"`
	Available   int64        `json:"available_bytes"` // 0 if not known
	Fit         Fit          `json:"fit"`
	Predictions []Prediction `json:"predictions"`
	Checks      []Check      `json:"checks,omitempty"`
}

// Check compares a prediction with a measurement.
type Check struct {
	Test      string  `json:"test"`
	Predicted float64 `json:"predicted_t_per_s"`
	Measured  float64 `json:"measured_t_per_s"` // median
	Min       float64 `json:"measured_min"`
	Max       float64 `json:"measured_max"`
	Error     float64 `json:"error"` // predicted / measured - 1
	// Adjusted is the error of the prediction for the rates that the machine
	// had between the repetitions.
	Adjusted float64 `json:"adjusted_error"`
}

// NewCheck compares the prediction for m with what was observed. low and high
// are the least and the largest speed of a repetition.
func (m *Machine) NewCheck(o Observation, low, high float64) Check {
	c := Check{Test: o.Work.String(), Predicted: m.Predict(o.Shape, o.Work, o.Threads).Speed, Measured: rate(float64(o.Work.Tokens()), o.Seconds), Min: low, Max: high}
	c.Error, c.Adjusted = m.Error(o, &fitted), m.During(o).Error(o, &fitted)
	return c
}

// NewReport predicts the usual works for a use of the model: reading a prompt
// of 512 tokens and one as long as the context, and generating at the start and
// at the end of the context, for as many sequences at once. available is the
// memory in bytes, 0 if not known.
func NewReport(s *Shape, m *Machine, u Use, threads int, available int64) *Report {
	o := s.Outline
	if u.Seqs < 1 {
		u.Seqs = 1
	}
	if u.Context < 1 {
		u.Context = min(o.Config.Context, defaultContext)
	}
	r := &Report{
		Model: s.Name(), Parameters: o.Parameters, WeightBytes: s.WeightBytes, KVBytes: s.KVBytes, Context: u.Context, ContextMade: o.Config.Context,
		Seqs: u.Seqs, Threads: threads, Machine: m, Memory: s.Memory(u), Available: available,
	}
	if available > 0 {
		r.Fit = s.Fit(u, available)
	}
	for _, w := range usual(u) {
		r.Predictions = append(r.Predictions, m.Predict(s, w, threads))
	}
	return r
}

// defaultContext is the context of a report when none is asked for and the
// model was made for a longer one.
const defaultContext = 4096

// usual are the works that a report predicts.
func usual(u Use) []Work {
	prompt, gen := min(512, u.Context), min(128, u.Context)
	works := []Work{{Prompt: prompt, Chunk: u.Chunk}}
	if u.Context > prompt {
		works = append(works, Work{Prompt: u.Context, Chunk: u.Chunk})
	}
	works = append(works, Work{Gen: gen, Seqs: u.Seqs})
	if u.Context > gen {
		works = append(works, Work{Gen: gen, Depth: u.Context - gen, Seqs: u.Seqs})
	}
	return works
}

// Write prints the report for people.
func (r *Report) Write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(tw, name+"\t"+format+"\n", args...) }
	m := r.Machine
	row("machine", "%s, %s kernels, %d threads", m.Name, m.Tier, r.Threads)
	if m.Source == Measured {
		disturbed := ""
		if m.Disturbed {
			disturbed = "; other programs ran: these rates are too low"
		}
		row("", "measured %s, load average %.1f%s", m.Taken.Format("2006-01-02 15:04"), m.Load, disturbed)
	} else {
		row("", "%s", m.Note)
	}
	t := m.rates(r.Threads)
	row("", "reads %.1f GB/s of a buffer like these weights; %.0f int8 GOP/s, %.0f f32 GFLOP/s", t.read(r.WeightBytes)/1e9, t.IntOps/1e9, t.FloatOps/1e9)
	row("model", "%s, made for a context of %d", r.Model, r.ContextMade)
	row("", "%s of weights for a token, and %s for each position before it", bytesText(r.WeightBytes), bytesText(r.KVBytes))
	base := bytesText(r.Memory.Vocabulary) + " vocabulary"
	if r.Memory.Program > 0 {
		base = bytesText(r.Memory.Program) + " program and vocabulary"
	}
	row("memory", "%s weights + %s keys and values (%d x %d tokens) + %s activations + %s = %s",
		bytesText(r.Memory.Weights), bytesText(r.Memory.KV), r.Seqs, r.Context, bytesText(r.Memory.Activations), base, bytesText(r.Memory.Total()))
	if r.Available > 0 {
		row("", "%s", r.fitText())
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	tw = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "test\tt/s\tms/step\tof roofline\tweights\tattention\tother\t  limited by\n")
	for _, p := range r.Predictions {
		part := func(x float64) string { return fmt.Sprintf("%.0f%%", 100*x/max(p.Seconds, 1e-12)) }
		fmt.Fprintf(tw, "%s\t%.1f\t%.2f\t%.0f%%\t%s\t%s\t%s\t  %s\n", p.Work, p.Speed, 1e3*p.Seconds/float64(p.steps), 100*p.Speed/max(p.Ceiling, 1e-12),
			part(p.Parts.WeightRead+p.Parts.WeightOps), part(p.Parts.Attention), part(p.Parts.Elements+p.Parts.Regions), p.Limit)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	return r.writeChecks(w)
}

func (r *Report) fitText() string {
	have := bytesText(r.Available) + " available: "
	switch {
	case r.Fit.Fits && r.Fit.Context > r.Context:
		return have + fmt.Sprintf("fits, and would with up to %d tokens each, or %d sequences", r.Fit.Context, r.Fit.Seqs)
	case r.Fit.Fits:
		return have + fmt.Sprintf("fits, and would with up to %d sequences", r.Fit.Seqs)
	case r.Fit.Context > 0:
		return have + fmt.Sprintf("DOES NOT FIT; %d sequences of up to %d tokens would", r.Seqs, r.Fit.Context)
	}
	return have + "DOES NOT FIT with any context"
}

func (r *Report) writeChecks(w io.Writer) error {
	if len(r.Checks) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "test\tpredicted\tmeasured\tmin – max\terror\tadjusted\t\n")
	for _, c := range r.Checks {
		fmt.Fprintf(tw, "%s\t%.1f\t%.1f\t%.1f – %.1f\t%+.1f%%\t%+.1f%%\t\n", c.Test, c.Predicted, c.Measured, c.Min, c.Max, 100*c.Error, 100*c.Adjusted)
	}
	if err := tw.Flush(); err != nil || r.Memory.Measured == 0 {
		return err
	}
	p, m := r.Memory.Total(), r.Memory.Measured
	_, err := fmt.Fprintf(w, "\nmemory: predicted %s, measured %s with full contexts, error %+.1f%%\n", bytesText(p), bytesText(m), 100*(float64(p)/float64(m)-1))
	return err
}

func bytesText(n int64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	v := float64(n) / 1024
	for v >= 1000 && len(units) > 1 {
		v, units = v/1024, units[1:]
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + units[0]
}
