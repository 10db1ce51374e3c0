package load

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Dist are the percentiles of a quantity.
type Dist struct {
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// DistOf sorts x and sums it up. Percentiles lie between neighbours, linearly,
// as numpy has them. Without values all numbers are 0.
func DistOf(x []float64) Dist {
	n := len(x)
	if n == 0 {
		return Dist{}
	}
	slices.Sort(x)
	d := Dist{N: n, Min: x[0], Max: x[n-1]}
	for _, v := range x {
		d.Mean += v / float64(n)
	}
	for _, v := range x {
		d.Std += (v - d.Mean) * (v - d.Mean)
	}
	d.Std = math.Sqrt(d.Std / float64(n))
	at := func(p float64) float64 {
		f := p * float64(n-1)
		i := int(f)
		if i >= n-1 {
			return x[n-1]
		}
		return x[i] + (f-float64(i))*(x[i+1]-x[i])
	}
	d.P50, d.P90, d.P95, d.P99 = at(.5), at(.9), at(.95), at(.99)
	return d
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Objective is a bound that a request should keep.
type Objective struct {
	Of    string        `json:"of"` // ttft, tpot, itl (the longest) or e2e
	Limit time.Duration `json:"limit_ns"`
}

// ParseSLO reads a list such as "ttft:500ms,tpot:50ms".
func ParseSLO(s string) ([]Objective, error) {
	var out []Objective
	for _, part := range strings.Split(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, limit, ok := strings.Cut(part, ":")
		d, err := time.ParseDuration(strings.TrimSpace(limit))
		name = strings.ToLower(strings.TrimSpace(name))
		if !ok || err != nil || d <= 0 || !slices.Contains([]string{"ttft", "tpot", "itl", "e2e"}, name) {
			return nil, fmt.Errorf("load: objective: expected ttft, tpot, itl or e2e with a time, such as ttft:500ms, found %q", part)
		}
		out = append(out, Objective{name, d})
	}
	return out, nil
}

func (o Objective) String() string { return o.Of + " ≤ " + o.Limit.String() }

// kept says whether a request that was answered kept the bound.
func (o Objective) kept(r *Record) bool {
	switch o.Of {
	case "ttft":
		return r.First-r.Due <= o.Limit
	case "tpot":
		return r.Output < 2 || (r.Last-r.First)/time.Duration(r.Output-1) <= o.Limit
	case "itl":
		for i := 1; i < len(r.Pieces); i++ {
			if r.Pieces[i]-r.Pieces[i-1] > o.Limit {
				return false
			}
		}
		return true
	}
	return r.Last-r.Due <= o.Limit
}

// Report is what a run measured. Times are in milliseconds, speeds per second
// of the whole run. Names are those of vLLM's benchmark where it has the same.
type Report struct {
	Target   string  `json:"target"`
	URL      string  `json:"base_url"`
	Model    string  `json:"model_id"`
	API      string  `json:"endpoint"`
	Workload string  `json:"workload"`
	Load     string  `json:"load"`
	Clients  int     `json:"max_concurrency"` // of a closed loop, else 0
	Rate     float64 `json:"request_rate"`    // of an open loop, else 0
	Round    int     `json:"round"`
	Start    string  `json:"date"`     // RFC 3339
	Duration float64 `json:"duration"` // seconds

	Completed   int               `json:"completed"`
	Failed      int               `json:"failed"`
	Stopped     int               `json:"stopped"` // under way at the end
	Failures    map[string]int    `json:"failures"`
	Examples    map[string]string `json:"failure_examples,omitempty"` // one for each kind
	Short       int               `json:"short"`                      // answered with fewer tokens than asked for
	Interrupted bool              `json:"interrupted"`
	Guessed     bool              `json:"tokens_guessed"` // the server did not count

	InputTokens  int `json:"total_input_tokens"`
	CachedTokens int `json:"total_cached_tokens"`
	OutputTokens int `json:"total_output_tokens"`

	RequestRate float64 `json:"request_throughput"`
	OutputRate  float64 `json:"output_throughput"`
	TotalRate   float64 `json:"total_token_throughput"`
	PeakOutput  float64 `json:"max_output_tokens_per_s"` // best second
	PeakRunning int     `json:"max_concurrent_requests"`
	Concurrency float64 `json:"mean_concurrency"`

	SLO       []Objective  `json:"goodput_objectives,omitempty"`
	Good      int          `json:"good_completed"`
	Goodput   float64      `json:"request_goodput"`
	TTFT      Dist         `json:"ttft_ms"` // to the first piece of text
	TPOT      Dist         `json:"tpot_ms"` // (end − first) / (tokens − 1), by request
	ITL       Dist         `json:"itl_ms"`  // between pieces, all requests together
	E2E       Dist         `json:"e2el_ms"`
	Late      Dist         `json:"late_ms"` // sent after they were due
	Disturbed *Disturbance `json:"intruder,omitempty"`
	Server    *ServerStats `json:"server,omitempty"`

	Seconds []Second `json:"timeline"`
	Records []Record `json:"requests,omitempty"`
}

// Second is a second of a run.
type Second struct {
	Output  float64 `json:"output_tokens"`
	Running float64 `json:"running"` // mean number of requests
}

// summary is the report of what was recorded.
func (r *runner) summary(took time.Duration) *Report {
	o := r.o
	rep := &Report{
		Target: o.Target.Name, URL: o.Target.base(), Model: o.Target.Model, API: o.Target.path(), Workload: o.Workload.String(), Load: o.describe(),
		Start: r.start.UTC().Format(time.RFC3339), Duration: took.Seconds(), Failures: map[string]int{}, Examples: map[string]string{}, SLO: o.SLO, Records: r.records,
	}
	if rep.Clients = o.Clients; o.Arrivals != nil {
		rep.Rate = o.Arrivals.Rate
	}
	slices.SortStableFunc(rep.Records, func(a, b Record) int { return int(min(max(a.Sent-b.Sent, -1), 1)) })
	var ttft, tpot, itl, e2e, late []float64
	for i := range rep.Records {
		q := &rep.Records[i]
		late = append(late, ms(max(q.Sent-q.Due, 0)))
		switch {
		case q.Stopped:
			rep.Stopped++
		case q.Failure != "":
			rep.Failed++
			rep.Failures[q.Failure]++
			rep.Examples[q.Failure] = q.Detail
			continue
		default:
			rep.Completed++
			if q.Output < q.Asked {
				rep.Short++
			}
			rep.InputTokens, rep.CachedTokens = rep.InputTokens+q.Prompt, rep.CachedTokens+q.Cached
			rep.Guessed = rep.Guessed || q.Guessed
		}
		rep.OutputTokens += q.Output
		if q.Intruder {
			continue // it has a place of its own
		}
		if q.First > 0 {
			ttft = append(ttft, ms(q.First-q.Sent))
		}
		for k := 1; k < len(q.Pieces); k++ {
			itl = append(itl, ms(q.Pieces[k]-q.Pieces[k-1]))
		}
		if !q.OK() {
			continue
		}
		e2e = append(e2e, ms(q.Last-q.Sent))
		if q.Output > 1 {
			tpot = append(tpot, ms(q.Last-q.First)/float64(q.Output-1))
		}
		if !slices.ContainsFunc(o.SLO, func(s Objective) bool { return !s.kept(q) }) {
			rep.Good++
		}
	}
	rep.TTFT, rep.TPOT, rep.ITL, rep.E2E, rep.Late = DistOf(ttft), DistOf(tpot), DistOf(itl), DistOf(e2e), DistOf(late)
	if s := took.Seconds(); s > 0 {
		rep.RequestRate, rep.OutputRate = float64(rep.Completed)/s, float64(rep.OutputTokens)/s
		rep.TotalRate, rep.Goodput = float64(rep.InputTokens+rep.OutputTokens)/s, float64(rep.Good)/s
	}
	rep.timeline(took)
	if k := o.Workload.Kind; k == Intruder || k == Agents {
		rep.Disturbed = disturbance(rep.Records, k == Agents)
	}
	return rep
}

// timeline sums up by seconds.
func (rep *Report) timeline(took time.Duration) {
	n := int(took/time.Second) + 1
	rep.Seconds = make([]Second, n)
	type edge struct {
		at   time.Duration
		step int
	}
	var edges []edge
	for i := range rep.Records {
		q := &rep.Records[i]
		if len(q.Pieces) > 0 {
			per := float64(q.Output) / float64(len(q.Pieces))
			for _, at := range q.Pieces {
				rep.Seconds[min(int(at/time.Second), n-1)].Output += per
			}
		}
		edges = append(edges, edge{q.Sent, 1}, edge{q.End, -1})
		for s := int(q.Sent / time.Second); s <= int(q.End/time.Second) && s < n; s++ {
			from, to := max(q.Sent, time.Duration(s)*time.Second), min(q.End, time.Duration(s+1)*time.Second)
			rep.Seconds[s].Running += (to - from).Seconds()
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return a.step - b.step
	})
	running, since := 0, time.Duration(0)
	area := 0.0
	for _, e := range edges {
		area += float64(running) * (e.at - since).Seconds()
		running, since = running+e.step, e.at
		rep.PeakRunning = max(rep.PeakRunning, running)
	}
	if took > 0 {
		rep.Concurrency = area / took.Seconds()
	}
	for _, s := range rep.Seconds {
		rep.PeakOutput = max(rep.PeakOutput, s.Output)
	}
	if took < time.Second {
		rep.PeakOutput = max(rep.PeakOutput, rep.OutputRate)
	}
}

// describe says in words how requests come.
func (o *Options) describe() string {
	var s string
	switch {
	case o.Workload.Kind == Intruder:
		return fmt.Sprintf("%d streams and an intruder", o.Workload.Streams)
	case o.Workload.Kind == Agents:
		return fmt.Sprintf("%d streams and %d agents", o.Workload.Streams, o.Workload.Intruders)
	case o.Clients > 0:
		s = fmt.Sprintf("closed loop, %d clients", o.Clients)
	case o.Arrivals != nil && (o.Arrivals.Burstiness == 0 || o.Arrivals.Burstiness == 1):
		s = fmt.Sprintf("Poisson arrivals, %g/s", o.Arrivals.Rate)
	case o.Arrivals != nil:
		s = fmt.Sprintf("gamma arrivals, %g/s, burstiness %g", o.Arrivals.Rate, o.Arrivals.Burstiness)
	default:
		s = "as recorded"
	}
	if o.MaxClients > 0 && o.Clients == 0 {
		s += fmt.Sprintf(", at most %d at one time", o.MaxClients)
	}
	return s
}
