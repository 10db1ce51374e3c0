package roofline

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
)

// Comparison is an observation beside its prediction.
type Comparison struct {
	Model     string  `json:"model"`
	Threads   int     `json:"n_threads"`
	Test      string  `json:"test"`
	Measured  float64 `json:"measured_t_per_s"`
	Predicted float64 `json:"predicted_t_per_s"`
	// Error is predicted / measured - 1; Adjusted is the same with the rates
	// that the machine had between the repetitions of the measurement.
	Error    float64 `json:"error"`
	Adjusted float64 `json:"adjusted_error"`
	Limit    string  `json:"limit"`
}

// Against predicts, with the constants c, what was observed.
func (m *Machine) Against(obs []Observation, c Constants) []Comparison {
	var out []Comparison
	for _, o := range obs {
		p := m.predict(o.Shape, o.Work, o.Threads, &c)
		out = append(out, Comparison{
			Model: o.Shape.Name(), Threads: o.Threads, Test: o.Work.String(), Measured: float64(o.Work.Tokens()) / o.Seconds, Predicted: p.Speed,
			Error: m.Error(o, &c), Adjusted: m.During(o).Error(o, &c), Limit: p.Limit,
		})
	}
	return out
}

// WriteComparisons prints comparisons, and the mean and the largest of their
// errors for prompts and for generation.
func WriteComparisons(w io.Writer, list []Comparison, obs []Observation) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "model\tthreads\ttest\tmeasured\tpredicted\terror\tadjusted\t  limited by\n")
	for _, c := range list {
		fmt.Fprintf(tw, "%s\t%d\t%s\t%.1f\t%.1f\t%+.1f%%\t%+.1f%%\t  %s\n", c.Model, c.Threads, c.Test, c.Measured, c.Predicted, 100*c.Error, 100*c.Adjusted, c.Limit)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, gen := range []bool{false, true} {
		n, mean, worst, adjMean, adjWorst := 0, 0.0, 0.0, 0.0, 0.0
		for i, c := range list {
			if obs[i].Work.Gen > 0 == gen {
				n++
				mean, worst = mean+math.Abs(c.Error), max(worst, math.Abs(c.Error))
				adjMean, adjWorst = adjMean+math.Abs(c.Adjusted), max(adjWorst, math.Abs(c.Adjusted))
			}
		}
		if n == 0 {
			continue
		}
		name := map[bool]string{false: "prompts", true: "generation"}[gen]
		if _, err := fmt.Fprintf(w, "%s: %d tests, off by %.1f%% on average and %.1f%% at most; adjusted %.1f%% and %.1f%%\n",
			name, n, 100*mean/float64(n), 100*worst, 100*adjMean/float64(n), 100*adjWorst); err != nil {
			return err
		}
	}
	return nil
}
