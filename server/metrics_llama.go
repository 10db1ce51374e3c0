package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ridge/server/run"
)

// llamaMetrics are the numbers of GET /metrics under llama-server's names: sums over
// all models, without labels, as its dashboards read them.
type llamaMetrics struct {
	models func() []*run.Model

	mu                        sync.Mutex
	prompt, cached, predicted int           // tokens
	prompting, predicting     time.Duration // time that they took
	longest                   int           // tokens of a sequence
}

// add counts a generation.
func (l *llamaMetrics) add(o *run.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prompt += o.Prompt.Tokens - o.Prompt.Cached
	l.cached += o.Prompt.Cached
	l.prompting += o.Prompt.Computed
	l.predicted += o.Tokens
	if o.Tokens > 0 {
		l.predicting += o.Last.Sub(o.First)
	}
	l.longest = max(l.longest, o.Prompt.Tokens+o.Tokens/max(1, o.Choices))
}

// Describe sends nothing: the collector is unchecked.
func (l *llamaMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends the sums.
func (l *llamaMetrics) Collect(out chan<- prometheus.Metric) {
	var running, waiting, steps, drafts, right float64
	for _, m := range l.models() {
		st := m.Stats()
		running, waiting = running+float64(st.Sched.Running), waiting+float64(st.Waiting)
		steps, drafts, right = steps+float64(st.Steps), drafts+float64(st.Guessed), right+float64(st.Right)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range []struct {
		name, help string
		typ        prometheus.ValueType
		value      float64
	}{
		{"prompt_tokens_total", "Tokens of prompts that were computed.", prometheus.CounterValue, float64(l.prompt)},
		{"prompt_tokens_cached_total", "Tokens of prompts that were found in the prefix cache.", prometheus.CounterValue, float64(l.cached)},
		{"prompt_seconds_total", "Time that prompts took.", prometheus.CounterValue, l.prompting.Seconds()},
		{"tokens_predicted_total", "Tokens of answers.", prometheus.CounterValue, float64(l.predicted)},
		{"tokens_predicted_seconds_total", "Time that answers took.", prometheus.CounterValue, l.predicting.Seconds()},
		{"n_decode_total", "Steps of the engines.", prometheus.CounterValue, steps},
		{"n_tokens_max", "Tokens of the longest sequence so far.", prometheus.CounterValue, float64(l.longest)},
		{"spec_decode_num_draft_tokens_total", "Tokens that were guessed.", prometheus.CounterValue, drafts},
		{"spec_decode_num_accepted_tokens_total", "Guessed tokens that became part of answers.", prometheus.CounterValue, right},
		{"prompt_tokens_seconds", "Mean speed of prompts in tokens per second.", prometheus.GaugeValue, ratio(float64(l.prompt), l.prompting.Seconds())},
		{"predicted_tokens_seconds", "Mean speed of answers in tokens per second.", prometheus.GaugeValue, ratio(float64(l.predicted), l.predicting.Seconds())},
		{"requests_processing", "Sequences being computed.", prometheus.GaugeValue, running},
		{"requests_deferred", "Requests whose computation has not begun.", prometheus.GaugeValue, waiting},
	} {
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("llamacpp:"+x.name, x.help, nil, nil), x.typ, x.value)
	}
}

// stamped adds the time of the server's start to answers, as llama-server does.
func stamped(h http.Handler, started time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Process-Start-Time-Unix", strconv.FormatInt(started.Unix(), 10))
		h.ServeHTTP(w, r)
	})
}
