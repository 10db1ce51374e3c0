package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ServerStats are what the server says of itself, and the system of its
// process. The counters are those of the run: the difference between its end
// and its start. Only a ridge is asked.
type ServerStats struct {
	Ridge bool `json:"ridge"` // the server has ridge's counters

	Steps           float64 `json:"steps"`
	StepSeconds     float64 `json:"step_seconds"`
	KernelSeconds   float64 `json:"kernel_seconds"`   // of these, in the model
	SamplingSeconds float64 `json:"sampling_seconds"` // and drawing tokens
	// How far off the last few hundred predictions of step times were, at the
	// end: mean and median of their relative errors' magnitudes, and the median
	// error, negative if steps took longer.
	PredictionError  float64 `json:"step_prediction_error"`
	PredictionMedian float64 `json:"step_prediction_error_median"`
	PredictionBias   float64 `json:"step_prediction_bias"`
	Preemptions      float64 `json:"preemptions"`
	Recomputed       float64 `json:"recomputed_tokens"`
	PromptTokens     float64 `json:"prompt_tokens"`
	CachedTokens     float64 `json:"cached_tokens"`
	Generated        float64 `json:"generated_tokens"`
	Evicted          float64 `json:"evicted_pages"`

	Samples    int     `json:"samples"`       // of the gauges that follow
	WasteMean  float64 `json:"kv_waste_mean"` // part of the held slots without a token in them, 0 to 1
	WasteMax   float64 `json:"kv_waste_max"`
	UsedMax    float64 `json:"kv_used_max"` // part of all slots
	RunningMax float64 `json:"running_max"`
	WaitingMax float64 `json:"waiting_max"`

	CPUSeconds float64 `json:"cpu_seconds,omitempty"` // of the server's process
	PeakRSS    int64   `json:"peak_rss_bytes,omitempty"`
}

// watcher samples a server during a run.
type watcher struct {
	t     *Target
	first map[string]float64
	cpu   float64
	stats ServerStats
	waste float64
	quit  chan struct{}
	wg    sync.WaitGroup
}

// watchEvery is the time between samples. A ridge answers between two steps.
const watchEvery = 500 * time.Millisecond

func watchServer(ctx context.Context, t *Target) *watcher {
	w := &watcher{t: t, quit: make(chan struct{}), cpu: cpuSeconds(t.PID)}
	first, err := t.metrics(ctx)
	if _, ridge := first["ridge_steps_total"]; err != nil || !ridge {
		return w
	}
	w.first, w.stats.Ridge = first, true
	w.wg.Go(func() {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if m, err := t.metrics(ctx); err == nil {
					w.sample(m)
				}
			case <-w.quit:
				return
			}
		}
	})
	return w
}

func (w *watcher) sample(m map[string]float64) {
	s := &w.stats
	running := m["ridge_requests_running"]
	s.RunningMax, s.WaitingMax = max(s.RunningMax, running), max(s.WaitingMax, m["ridge_requests_waiting"])
	s.UsedMax = max(s.UsedMax, m["ridge_kv_used_ratio"])
	if running == 0 {
		return
	}
	s.Samples++
	waste := m["ridge_kv_waste_ratio"]
	w.waste += waste
	s.WasteMax = max(s.WasteMax, waste)
}

// end returns the differences. It asks once more even if the run was
// interrupted.
func (w *watcher) end() *ServerStats {
	close(w.quit)
	w.wg.Wait()
	s := &w.stats
	if w.t.PID > 0 {
		s.CPUSeconds, s.PeakRSS = cpuSeconds(w.t.PID)-w.cpu, peakRSS(w.t.PID)
	}
	if !s.Ridge {
		if s.PeakRSS == 0 {
			return nil
		}
		return s
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	last, err := w.t.metrics(ctx)
	if err != nil {
		return s
	}
	for name, to := range map[string]*float64{
		"ridge_steps_total": &s.Steps, "ridge_step_seconds_total": &s.StepSeconds, "ridge_kernel_seconds_total": &s.KernelSeconds,
		"ridge_sampling_seconds_total": &s.SamplingSeconds, "ridge_preemptions_total": &s.Preemptions, "ridge_recomputed_tokens_total": &s.Recomputed,
		"ridge_prompt_tokens_total": &s.PromptTokens, "ridge_prompt_tokens_cached_total": &s.CachedTokens, "ridge_generated_tokens_total": &s.Generated,
		"ridge_prefix_cache_evicted_pages_total": &s.Evicted,
	} {
		*to = last[name] - w.first[name]
	}
	s.PredictionError, s.PredictionMedian = last["ridge_step_prediction_error_ratio"], last["ridge_step_prediction_error_median_ratio"]
	s.PredictionBias = last["ridge_step_prediction_bias_ratio"]
	if s.Samples > 0 {
		s.WasteMean = w.waste / float64(s.Samples)
	}
	return s
}

// metrics asks for the server's counters: sums over all labels.
func (t *Target) metrics(ctx context.Context) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := t.request(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := t.http().Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("load: metrics: status %s", resp.Status)
	}
	return ParseMetrics(io.LimitReader(resp.Body, 16<<20))
}

// ParseMetrics reads Prometheus' text format and returns the sum of each name's
// values over all labels.
func ParseMetrics(r io.Reader) (map[string]float64, error) {
	out := map[string]float64{}
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line := strings.TrimSpace(in.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest := line, ""
		if i := strings.IndexAny(line, "{ \t"); i >= 0 {
			name, rest = line[:i], line[i:]
		}
		if rest != "" && rest[0] == '{' {
			end := labelsEnd(rest)
			if end < 0 {
				continue
			}
			rest = rest[end:]
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		if v, err := strconv.ParseFloat(fields[0], 64); err == nil {
			out[name] += v
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("load: metrics: %w", err)
	}
	return out, nil
}

// labelsEnd is where the labels at the start of s end, behind the brace; -1 if
// they do not.
func labelsEnd(s string) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '}' && !quoted:
			return i + 1
		}
	}
	return -1
}

// cpuSeconds is the processor time of a process, where the system tells it.
func cpuSeconds(pid int) float64 {
	if pid <= 0 {
		return 0
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name in parentheses may hold anything; utime and stime are the 12th
	// and 13th fields behind it, in hundredths of a second.
	s := string(b)
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 13 {
		return 0
	}
	u, err1 := strconv.ParseFloat(f[11], 64)
	k, err2 := strconv.ParseFloat(f[12], 64)
	if errors.Join(err1, err2) != nil {
		return 0
	}
	return (u + k) / 100
}

// peakRSS is the largest resident size of a process in bytes, where the system
// tells it.
func peakRSS(pid int) int64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var kb int64
		if n, _ := fmt.Sscanf(in.Text(), "VmHWM: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	return 0
}
