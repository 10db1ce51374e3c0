package load

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Print writes a report as a table.
func (rep *Report) Print(w io.Writer) {
	p := func(label, format string, args ...any) {
		fmt.Fprintf(w, "%-34s %s\n", label+":", fmt.Sprintf(format, args...))
	}
	title := " " + rep.Target + " "
	fmt.Fprintf(w, "%s\n", title+strings.Repeat("─", max(0, 78-len([]rune(title)))))
	p("Server", "%s%s", rep.URL+rep.API, with(", model ", rep.Model))
	p("Workload", "%s", rep.Workload)
	p("Load", "%s", rep.Load)
	p("Successful requests", "%d", rep.Completed)
	if rep.Failed > 0 {
		p("Failed requests", "%d (%s)", rep.Failed, rep.kinds())
		for _, k := range slices.Sorted(maps.Keys(rep.Examples)) {
			p("  "+k, "%s", clip(rep.Examples[k], 160))
		}
	}
	if rep.Stopped > 0 {
		p("Cut by the end of the run", "%d", rep.Stopped)
	}
	if rep.Short > 0 {
		p("Shorter than asked for", "%d", rep.Short)
	}
	p("Benchmark duration (s)", "%.2f", rep.Duration)
	p("Total input tokens", "%d", rep.InputTokens)
	if rep.CachedTokens > 0 {
		p("  of these from a cache", "%d (%.1f%%)", rep.CachedTokens, 100*ratio(float64(rep.CachedTokens), float64(rep.InputTokens)))
	}
	p("Total generated tokens", "%d", rep.OutputTokens)
	if rep.Guessed {
		p("  note", "%s", "the server does not count tokens: these are pieces of text")
	}
	p("Request throughput (req/s)", "%.2f", rep.RequestRate)
	p("Output token throughput (tok/s)", "%.2f", rep.OutputRate)
	p("Total token throughput (tok/s)", "%.2f", rep.TotalRate)
	p("Peak output throughput (tok/s)", "%.0f", rep.PeakOutput)
	p("Concurrency, mean / peak", "%.1f / %d", rep.Concurrency, rep.PeakRunning)
	if len(rep.SLO) > 0 {
		var names []string
		for _, o := range rep.SLO {
			names = append(names, o.String())
		}
		p("Goodput (req/s)", "%.2f (%d of %d with %s)", rep.Goodput, rep.Good, rep.Completed, strings.Join(names, ", "))
	}
	fmt.Fprintf(w, "%-34s %8s %8s %8s %8s %8s %8s %8s\n", "ms", "mean", "p50", "p90", "p95", "p99", "max", "n")
	row := func(name string, d Dist) {
		if d.N > 0 {
			fmt.Fprintf(w, "%-34s %8s %8s %8s %8s %8s %8s %8d\n", name, sig(d.Mean), sig(d.P50), sig(d.P90), sig(d.P95), sig(d.P99), sig(d.Max), d.N)
		}
	}
	row("Time to first token (TTFT)", rep.TTFT)
	row("Time per output token (TPOT)", rep.TPOT)
	row("Inter-token latency (ITL)", rep.ITL)
	row("End to end (E2E)", rep.E2E)
	if rep.Late.Max > 10 {
		row("Sent after it was due", rep.Late)
	}
	if d := rep.Disturbed; d != nil {
		row("ITL of streams before", d.Before)
		row("ITL of streams meanwhile", d.While)
		row("TTFT of long prompts", d.TTFT)
		p("Long prompts", "up to %d tokens; p99 ITL of streams %.1f times that before, longest gap %s ms; at most %s ms without a word", d.Prompt, d.Slower, sig(d.Stalled), sig(d.Silent))
	}
	rep.Server.print(p)
	if rep.Interrupted {
		fmt.Fprintln(w, "The run was interrupted: this is what there was until then.")
	}
}

func (s *ServerStats) print(p func(label, format string, args ...any)) {
	if s == nil {
		return
	}
	if s.Ridge && s.Steps > 0 {
		p("Server: steps", "%.0f, %.2f s, %.1f%% in the model, %.1f%% sampling", s.Steps, s.StepSeconds,
			100*ratio(s.KernelSeconds, s.StepSeconds), 100*ratio(s.SamplingSeconds, s.StepSeconds))
		p("Server: step time prediction", "%.1f%% mean error, %.1f%% median, %+.1f%% bias", 100*s.PredictionError, 100*s.PredictionMedian, 100*s.PredictionBias)
		if s.Samples > 0 {
			p("Server: keys and values", "%.1f%% used at most, waste %.1f%% mean, %.1f%% at most (%d samples)",
				100*s.UsedMax, 100*s.WasteMean, 100*s.WasteMax, s.Samples)
		}
		p("Server: sequences", "%.0f running, %.0f waiting at most; %.0f preemptions, %.0f tokens computed again, %.0f pages evicted",
			s.RunningMax, s.WaitingMax, s.Preemptions, s.Recomputed, s.Evicted)
	}
	if s.PeakRSS > 0 {
		p("Server: process", "%.2f s of processor time, %.0f MB at its peak", s.CPUSeconds, float64(s.PeakRSS)/1e6)
	}
}

func (rep *Report) kinds() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(rep.Failures)) {
		parts = append(parts, fmt.Sprintf("%s: %d", k, rep.Failures[k]))
	}
	return strings.Join(parts, ", ")
}

func with(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// sig shows three digits, more of large numbers.
func sig(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// measure is a quantity that is compared.
type measure struct {
	name   string
	of     func(*Report) float64
	higher bool // is better
}

var measures = []measure{
	{"Output throughput (tok/s)", func(r *Report) float64 { return r.OutputRate }, true},
	{"Total throughput (tok/s)", func(r *Report) float64 { return r.TotalRate }, true},
	{"Output tokens per CPU second", func(r *Report) float64 {
		if r.Server == nil {
			return 0
		}
		return ratio(float64(r.OutputTokens), r.Server.CPUSeconds)
	}, true},
	{"Goodput (req/s)", func(r *Report) float64 { return r.Goodput }, true},
	{"TTFT p50 (ms)", func(r *Report) float64 { return r.TTFT.P50 }, false},
	{"TTFT p99 (ms)", func(r *Report) float64 { return r.TTFT.P99 }, false},
	{"TPOT p50 (ms)", func(r *Report) float64 { return r.TPOT.P50 }, false},
	{"TPOT p99 (ms)", func(r *Report) float64 { return r.TPOT.P99 }, false},
	{"ITL p99 (ms)", func(r *Report) float64 { return r.ITL.P99 }, false},
	{"E2E mean (ms)", func(r *Report) float64 { return r.E2E.Mean }, false},
	{"E2E p50 (ms)", func(r *Report) float64 { return r.E2E.P50 }, false},
	{"Streams' ITL p99 before (ms)", func(r *Report) float64 { return r.intruded().Before.P99 }, false},
	{"Streams' ITL p99 while (ms)", func(r *Report) float64 { return r.intruded().While.P99 }, false},
	{"Streams' longest gap while (ms)", func(r *Report) float64 { return r.intruded().While.Max }, false},
	{"TTFT of the long prompt (ms)", func(r *Report) float64 { return r.intruded().TTFT.P50 }, false},
	{"KV waste, mean (%)", func(r *Report) float64 {
		if r.Server == nil {
			return 0
		}
		return 100 * r.Server.WasteMean
	}, false},
	{"Failed requests", func(r *Report) float64 { return float64(r.Failed) }, false},
}

func (r *Report) intruded() *Disturbance {
	if r.Disturbed == nil {
		return &Disturbance{}
	}
	return r.Disturbed
}

// Compare writes the medians over the rounds of each target, and how many times
// better the first target is than each other, with the extremes of the rounds.
// All reports are of the same load.
func Compare(w io.Writer, reports []*Report) {
	var names []string
	rounds := map[string][]*Report{}
	for _, r := range reports {
		if rounds[r.Target] == nil {
			names = append(names, r.Target)
		}
		rounds[r.Target] = append(rounds[r.Target], r)
	}
	if len(names) < 2 {
		return
	}
	fmt.Fprintf(w, "%s; %s; medians of %d rounds; × is how many times better %s is (range over rounds)\n",
		reports[0].Workload, reports[0].Load, len(rounds[names[0]]), names[0])
	fmt.Fprintf(w, "%-34s", "")
	for i, n := range names {
		fmt.Fprintf(w, " %12s", clip(n, 11))
		if i > 0 {
			fmt.Fprintf(w, " %18s", "")
		}
	}
	fmt.Fprintln(w)
	for _, m := range measures {
		values := make([][]float64, len(names))
		some := false
		for i, n := range names {
			for _, r := range rounds[n] {
				v := m.of(r)
				values[i] = append(values[i], v)
				some = some || v != 0
			}
		}
		if !some {
			continue
		}
		fmt.Fprintf(w, "%-34s", m.name)
		for i := range names {
			med := median(values[i])
			fmt.Fprintf(w, " %12s", sig(med))
			if i > 0 {
				fmt.Fprintf(w, " %18s", m.better(values[0], values[i]))
			}
		}
		fmt.Fprintln(w)
	}
}

// better says how many times better a is than b.
func (m *measure) better(a, b []float64) string {
	times := func(x, y float64) float64 {
		if !m.higher {
			x, y = y, x
		}
		return ratio(x, y)
	}
	r := times(median(a), median(b))
	if r == 0 {
		return ""
	}
	lo, hi := r, r
	for i := range min(len(a), len(b)) {
		if v := times(a[i], b[i]); v > 0 {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	return fmt.Sprintf("×%.2f (%.2f–%.2f)", r, lo, hi)
}

func median(x []float64) float64 { return DistOf(slices.Clone(x)).P50 }

// attained is the part of requests that must keep all bounds for a load to
// count as borne.
const attained = 0.9

// Sweep writes how many requests keep their bounds at each rate or number of
// clients, and the highest load that each target bears. It writes nothing
// unless there are bounds and several loads.
func Sweep(w io.Writer, reports []*Report) {
	type load struct {
		clients int
		rate    float64
	}
	var targets []string
	var loads []load
	for _, r := range reports {
		if !slices.Contains(targets, r.Target) {
			targets = append(targets, r.Target)
		}
		if l := (load{r.Clients, r.Rate}); !slices.Contains(loads, l) {
			loads = append(loads, l)
		}
	}
	if len(loads) < 2 || len(reports[0].SLO) == 0 {
		return
	}
	for _, t := range targets {
		fmt.Fprintf(w, "%-24s %14s %14s %14s %14s\n", clip(t, 23), "in time", "goodput req/s", "TTFT p99 ms", "TPOT p99 ms")
		best := ""
		for _, l := range loads {
			var part, good, ttft, tpot []float64
			for _, r := range reports {
				if r.Target == t && r.Clients == l.clients && r.Rate == l.rate {
					part = append(part, ratio(float64(r.Good), float64(r.Completed+r.Failed)))
					good, ttft, tpot = append(good, r.Goodput), append(ttft, r.TTFT.P99), append(tpot, r.TPOT.P99)
				}
			}
			name := fmt.Sprintf("%g requests/s", l.rate)
			if l.rate == 0 {
				name = fmt.Sprintf("%d clients", l.clients)
			}
			fmt.Fprintf(w, "  %-22s %13.1f%% %14s %14s %14s\n", name, 100*median(part), sig(median(good)), sig(median(ttft)), sig(median(tpot)))
			if median(part) >= attained {
				best = name
			}
		}
		if best == "" {
			best = "none of these"
		}
		fmt.Fprintf(w, "  the last load with at least %.0f%% in time: %s\n", 100*attained, best)
	}
}
