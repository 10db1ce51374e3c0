package server

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"ridge/engine"
	"ridge/server/run"
)

// metrics are the server's numbers. Those that requests produce are counted
// here; those of the engines are asked for when somebody looks.
type metrics struct {
	registry *prometheus.Registry

	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	panics   prometheus.Counter
	gone     prometheus.Counter

	promptTokens, cachedTokens, tokens *twin
	success                            *twin
	ttft, itl, e2e, queue, prefill     *twinHistogram
	decode, tpot                       *twinHistogram
	promptSize, answerSize, choices    *twinHistogram
	inference, computed                *twinHistogram
	llama                              *llamaMetrics
}

// twin is a counter under ridge's name and the one that vLLM's users expect.
type twin struct{ ridge, vllm *prometheus.CounterVec }

func (t *twin) add(n float64, labels ...string) {
	t.ridge.WithLabelValues(labels...).Add(n)
	// vLLM has the number of the engine in a label of its own.
	t.vllm.WithLabelValues(append([]string{labels[0], "0"}, labels[1:]...)...).Add(n)
}

type twinHistogram struct{ ridge, vllm *prometheus.HistogramVec }

func (t *twinHistogram) observe(v float64, model string) { t.of(model)(v) }

// of returns a function that observes values of one model without looking for
// its series each time.
func (t *twinHistogram) of(model string) func(v float64) {
	a, b := t.ridge.WithLabelValues(model), t.vllm.WithLabelValues(model, "0")
	return func(v float64) {
		a.Observe(v)
		b.Observe(v)
	}
}

// seconds are the borders of times from a millisecond to ten minutes, tokens
// those of counts.
var (
	seconds    = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640}
	tokenSteps = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000}
)

func newMetrics(models func() []*run.Model) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), llama: &llamaMetrics{models: models}}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &engineCollector{models: models}, m.llama)
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ridge_http_requests_total", Help: "HTTP requests by route and status."}, []string{"route", "status"})
	m.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "ridge_http_request_duration_seconds", Help: "Time from a request's headers to the end of its answer.", Buckets: seconds}, []string{"route"})
	m.inFlight = prometheus.NewGauge(prometheus.GaugeOpts{Name: "ridge_http_requests_in_flight", Help: "HTTP requests being answered."})
	m.panics = prometheus.NewCounter(prometheus.CounterOpts{Name: "ridge_panics_total", Help: "Panics turned into a status 500."})
	m.gone = prometheus.NewCounter(prometheus.CounterOpts{Name: "ridge_clients_gone_total", Help: "Requests whose client left before the end."})
	m.registry.MustRegister(m.requests, m.duration, m.inFlight, m.panics, m.gone)

	counter := func(name, vllm, help string, labels ...string) *twin {
		t := &twin{
			prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ridge_" + name + "_total", Help: help}, append([]string{"model"}, labels...)),
			prometheus.NewCounterVec(prometheus.CounterOpts{Name: "vllm:" + vllm + "_total", Help: help}, append([]string{"model_name", "engine"}, labels...)),
		}
		m.registry.MustRegister(t.ridge, t.vllm)
		return t
	}
	m.promptTokens = counter("prompt_tokens", "prompt_tokens", "Tokens of prompts.")
	m.cachedTokens = counter("prompt_tokens_cached", "prompt_tokens_cached", "Tokens of prompts that were found in the prefix cache.")
	m.tokens = counter("generated_tokens", "generation_tokens", "Tokens of answers.")
	m.success = counter("requests_finished", "request_success", "Answers by how they ended.", "finished_reason")

	histogram := func(name, vllm, help string, buckets []float64) *twinHistogram {
		t := &twinHistogram{
			prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "ridge_" + name, Help: help, Buckets: buckets}, []string{"model"}),
			prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "vllm:" + vllm, Help: help, Buckets: buckets}, []string{"model_name", "engine"}),
		}
		m.registry.MustRegister(t.ridge, t.vllm)
		return t
	}
	m.ttft = histogram("time_to_first_token_seconds", "time_to_first_token_seconds", "Time to the first token.", seconds)
	m.itl = histogram("inter_token_latency_seconds", "inter_token_latency_seconds", "Time between tokens of an answer.", seconds)
	m.tpot = histogram("time_per_output_token_seconds", "request_time_per_output_token_seconds", "Mean time per token after the first, by request.", seconds)
	m.e2e = histogram("request_seconds", "e2e_request_latency_seconds", "Time from the submission of a request to its last token.", seconds)
	m.queue = histogram("request_queue_seconds", "request_queue_time_seconds", "Time before the computation began.", seconds)
	m.prefill = histogram("request_prefill_seconds", "request_prefill_time_seconds", "Time from there to the first token.", seconds)
	m.decode = histogram("request_decode_seconds", "request_decode_time_seconds", "Time from the first token to the last.", seconds)
	m.promptSize = histogram("request_prompt_tokens", "request_prompt_tokens", "Tokens of a prompt.", tokenSteps)
	m.answerSize = histogram("request_generated_tokens", "request_generation_tokens", "Tokens of a request's answers.", tokenSteps)
	m.inference = histogram("request_inference_seconds", "request_inference_time_seconds", "Time from the beginning of the computation to the last token.", seconds)
	m.computed = histogram("request_prompt_computed_tokens", "request_prefill_kv_computed_tokens", "Tokens of a prompt that were not found in the prefix cache.", tokenSteps)
	m.choices = histogram("request_choices", "request_params_n", "Answers that were asked for.", []float64{1, 2, 5, 10, 20})
	return m
}

// request counts an HTTP request. Unknown paths share a route, so that nobody
// can make up series.
func (m *metrics) request(pattern string, status int, took time.Duration) {
	if pattern == "" || pattern == "/" {
		pattern = "other"
	}
	m.requests.WithLabelValues(pattern, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(pattern).Observe(took.Seconds())
}

// TokenTimes counts the times between tokens.
func (m *metrics) TokenTimes(model string) func(time.Duration) {
	itl := m.itl.of(model)
	return func(d time.Duration) { itl(d.Seconds()) }
}

// Generation counts what a generation did, complete or not.
func (m *metrics) Generation(o *run.Outcome) {
	m.llama.add(o)
	m.promptTokens.add(float64(o.Prompt.Tokens), o.Model)
	m.cachedTokens.add(float64(o.Prompt.Cached), o.Model)
	m.tokens.add(float64(o.Tokens), o.Model)
	for _, f := range o.Finishes {
		m.success.add(1, o.Model, f)
	}
	if o.Prompt.Tokens == 0 {
		return // it never ran
	}
	m.promptSize.observe(float64(o.Prompt.Tokens), o.Model)
	m.answerSize.observe(float64(o.Tokens), o.Model)
	m.choices.observe(float64(o.Choices), o.Model)
	m.queue.observe(o.Prompt.Queued.Seconds(), o.Model)
	m.prefill.observe(o.Prompt.Computed.Seconds(), o.Model)
	took := time.Since(o.Submitted)
	m.e2e.observe(took.Seconds(), o.Model)
	m.inference.observe(max(0, took-o.Prompt.Queued).Seconds(), o.Model)
	m.computed.observe(float64(o.Prompt.Tokens-o.Prompt.Cached), o.Model)
	if o.Tokens > 0 {
		m.ttft.observe(o.First.Sub(o.Submitted).Seconds(), o.Model)
		m.decode.observe(o.Last.Sub(o.First).Seconds(), o.Model)
	}
	if n := o.Tokens - o.Choices; n > 0 {
		m.tpot.observe(o.Last.Sub(o.First).Seconds()*float64(o.Choices)/float64(n), o.Model)
	}
}

// engineCollector reads the engines' numbers when they are asked for.
type engineCollector struct{ models func() []*run.Model }

// gauge is a number of an engine, with the name that vLLM has for it, if any.
type gauge struct {
	name, vllm, help string
	typ              prometheus.ValueType
	value            func(m *run.Model, s *engine.Stats) float64
}

var engineGauges = []gauge{
	{"ridge_requests_running", "vllm:num_requests_running", "Sequences being computed.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Sched.Running) }},
	{"ridge_requests_waiting", "vllm:num_requests_waiting", "Requests whose computation has not begun.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Waiting) }},
	{"ridge_requests_paused", "", "Requests whose client reads slowly.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Paused) }},
	{"ridge_kv_used_ratio", "vllm:kv_cache_usage_perc", "Part of the slots for keys and values that running sequences use, 0 to 1.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 {
		return ratio(float64(s.Usage.Used+s.Usage.Internal), float64(s.Usage.Slots))
	}},
	{"ridge_kv_slots", "", "Slots for the keys and values of one token.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Usage.Slots) }},
	{"ridge_kv_waste_slots", "", "Slots held without a token in them.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Usage.Internal + s.Usage.External) }},
	{"ridge_kv_waste_ratio", "", "Part of the slots that are held, or lie where they cannot be given, without a token in them, 0 to 1.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 {
		return ratio(float64(s.Usage.Internal+s.Usage.External), float64(s.Usage.Used+s.Usage.Internal+s.Usage.External))
	}},
	{"ridge_kv_cached_slots", "", "Slots that only the prefix cache holds.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Usage.Cached) }},
	{"ridge_kv_held_bytes", "", "Memory for keys and values that the model has now.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Pool.HeldBytes) }},
	{"ridge_kv_budget_bytes", "", "Memory for keys and values of all models together; 0 if the model has memory of its own.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Pool.Budget.Bytes) }},
	{"ridge_kv_chunks_taken_total", "", "Pieces of memory that the model took from the budget.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Pool.Taken) }},
	{"ridge_kv_chunks_returned_total", "", "Pieces of memory that the model gave back.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Pool.Given) }},
	{"ridge_prefix_cache_queries_total", "vllm:prefix_cache_queries_total", "Tokens looked for in the prefix cache.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Tree.HitTokens + s.Tree.MissTokens) }},
	{"ridge_prefix_cache_hits_total", "vllm:prefix_cache_hits_total", "Tokens found there.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Tree.HitTokens) }},
	{"ridge_prefix_cache_evicted_pages_total", "", "Pages taken from the prefix cache.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Tree.Evicted) }},
	{"ridge_prefix_pinned_pages", "", "Pages that the prefix cache lets go last.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Prefixes.Pinned) }},
	{"ridge_prefix_disk_bytes", "", "Beginnings of prompts on disk, of all models.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Prefixes.Bytes) }},
	{"ridge_prefix_disk_hits_total", "", "Beginnings of prompts that were read from disk.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Prefixes.Hits) }},
	{"ridge_prefix_disk_tokens_total", "", "Tokens that were read from disk in place of being computed.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Prefixes.Tokens) }},
	{"ridge_prefix_disk_written_total", "", "Files of prefixes that were written.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Prefixes.Written) }},
	{"ridge_prefix_disk_refused_total", "", "Files of prefixes that were damaged, or not what they should be.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Prefixes.Refused) }},
	{"ridge_preemptions_total", "vllm:num_preemptions_total", "Sequences that had to give their memory to others.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Sched.Recomputes + s.Sched.SwapOuts) }},
	{"ridge_requests_swapped", "vllm:num_requests_swapped", "Waiting sequences whose keys and values were written out.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Sched.Swapped) }},
	{"ridge_swap_ram_bytes", "", "Keys and values written out to memory.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Swap.RAMBytes) }},
	{"ridge_swap_disk_bytes", "", "Keys and values written out to disk.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Swap.DiskBytes) }},
	{"ridge_swapped_out_total", "", "Preempted sequences that were written out.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Sched.SwapOuts) }},
	{"ridge_swapped_in_total", "", "Sequences that came back from there.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Sched.SwapIns) }},
	{"ridge_swap_failures_total", "", "Sequences that could not be written out or read back, and were computed again.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Swap.Failures) }},
	{"ridge_requests_shed_total", "", "Waiting sequences that were dropped because their deadline could not be met.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Sched.Shed) }},
	{"ridge_recomputed_tokens_total", "", "Tokens computed again after a preemption.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Sched.LostTokens) }},
	{"ridge_jump_ahead_tokens_total", "", "Tokens of answers that a grammar forced and that were not drawn.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Forced) }},
	{"ridge_draft_tokens_total", "vllm:spec_decode_num_draft_tokens_total", "Tokens that were guessed and computed.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Guessed) }},
	{"ridge_draft_accepted_tokens_total", "vllm:spec_decode_num_accepted_tokens_total", "Guessed tokens that became part of answers.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Right) }},
	{"ridge_draft_seconds_total", "", "Time that guessing took, between steps.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return s.Drafting.Seconds() }},
	{"ridge_draft_saved_seconds", "", "Time that guesses have saved, as estimated from predicted times of steps; negative if they cost time.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return s.Saved.Seconds() }},
	{"ridge_draft_bytes", "", "Memory of what guesses are looked up in.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.DraftBytes) }},
	{"ridge_steps_total", "", "Steps of the engine.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return float64(s.Steps) }},
	{"ridge_step_seconds_total", "", "Time of all steps.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return s.Busy.Seconds() }},
	{"ridge_kernel_seconds_total", "", "Time of all steps in the model.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return s.Kernels.Seconds() }},
	{"ridge_sampling_seconds_total", "", "Time of all steps that drawing tokens took.", prometheus.CounterValue, func(_ *run.Model, s *engine.Stats) float64 { return s.Sampling.Seconds() }},
	{"ridge_step_prediction_error_ratio", "", "Mean relative error, in magnitude, of the last few hundred step times that were predicted.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return s.Predicted.Mean }},
	{"ridge_step_prediction_error_median_ratio", "", "Median relative error, in magnitude, of the last few hundred step times that were predicted.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return s.Predicted.Median }},
	{"ridge_step_prediction_bias_ratio", "", "Median relative error, negative if steps take longer, of the last few hundred step times that were predicted.", prometheus.GaugeValue, func(_ *run.Model, s *engine.Stats) float64 { return s.Predicted.Bias }},
	{"ridge_model_load_seconds", "", "Time that loading the model took.", prometheus.GaugeValue, func(m *run.Model, _ *engine.Stats) float64 { return m.LoadTime().Seconds() }},
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Describe sends nothing: the collector is unchecked, its models come and go.
func (c *engineCollector) Describe(chan<- *prometheus.Desc) {}

// Collect asks the engines.
func (c *engineCollector) Collect(out chan<- prometheus.Metric) {
	for _, m := range c.models() {
		st := m.Stats()
		for _, g := range engineGauges {
			v := g.value(m, &st)
			out <- prometheus.MustNewConstMetric(prometheus.NewDesc(g.name, g.help, []string{"model"}, nil), g.typ, v, m.Info().Name)
			if g.vllm != "" {
				out <- prometheus.MustNewConstMetric(prometheus.NewDesc(g.vllm, g.help, []string{"model_name", "engine"}, nil), g.typ, v, m.Info().Name, "0")
			}
		}
		collectExperts(out, m.Info().Name, &st)
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("vllm:cache_config_info", "Size of the cache for keys and values.", []string{"model_name", "engine", "block_size", "num_gpu_blocks"}, nil),
			prometheus.GaugeValue, 1, m.Info().Name, "0", strconv.Itoa(m.Info().PageTokens), strconv.Itoa(m.Info().Pages))
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("ridge_model_info", "What is loaded.", []string{"model", "arch", "quant", "parameters", "kv", "activations", "lossy"}, nil),
			prometheus.GaugeValue, 1, m.Info().Name, m.Info().Arch, m.Info().Quant, strconv.FormatInt(m.Info().Parameters, 10), m.Info().KV, m.Info().Act.String(), m.Info().Lossy)
	}
}
