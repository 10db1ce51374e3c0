package wire

import (
	"math"

	"ridge/server/run"
)

// Timings are llama-server's, with the time in the queue.
type Timings struct {
	CacheN         int     `json:"cache_n"`
	PromptN        int     `json:"prompt_n"`
	PromptMS       float64 `json:"prompt_ms"`
	PromptTokenMS  float64 `json:"prompt_per_token_ms"`
	PromptPerSec   float64 `json:"prompt_per_second"`
	PredictedN     int     `json:"predicted_n"`
	PredictedMS    float64 `json:"predicted_ms"`
	PredictedTokMS float64 `json:"predicted_per_token_ms"`
	PredictedSec   float64 `json:"predicted_per_second"`
	ForcedN        int     `json:"jump_ahead_n,omitempty"`     // of predicted_n, not drawn
	DraftN         int     `json:"draft_n,omitempty"`          // tokens that were guessed and computed
	DraftAccepted  int     `json:"draft_n_accepted,omitempty"` // of these, those that came true
	QueueMS        float64 `json:"queue_ms"`
	FirstMS        float64 `json:"first_token_ms"`
	Seed           *uint64 `json:"seed,omitempty"` // that the answers were drawn with
	// Read is how near the reads of memory came to the machine's limit while next
	// tokens were computed, for this request and others.
	Read float64 `json:"read_limit_percent,omitempty"`
	// Energy is an estimate: the request's share, by tokens, in what the
	// processor used meanwhile.
	Joules       *float64 `json:"energy_joules,omitempty"`
	EnergySource string   `json:"energy_source,omitempty"`
}

// NewTimings says how long generations took.
func NewTimings(t *run.Totals) *Timings {
	n := t.Prompt - t.Cached
	x := &Timings{
		CacheN: t.Cached, PromptN: n, PromptMS: Milliseconds(t.Prefill.Seconds()), PredictedN: t.Tokens, PredictedMS: Milliseconds(t.Decode.Seconds()),
		ForcedN: t.Forced, DraftN: t.Guessed, DraftAccepted: t.Right, QueueMS: Milliseconds(t.Queued.Seconds()), FirstMS: Milliseconds(t.TTFT.Seconds()),
	}
	x.PromptTokenMS, x.PromptPerSec = per(x.PromptMS, n), rate(n, x.PromptMS)
	x.Seed, x.Read = t.Seed, math.Round(1000*t.Read)/10
	if t.Meter != nil {
		x.Joules, x.EnergySource = &t.Joules, t.Meter.Source()
	}
	// The first token comes with the prompt.
	x.PredictedTokMS, x.PredictedSec = per(x.PredictedMS, t.Tokens-1), rate(t.Tokens-1, x.PredictedMS)
	return x
}

// Milliseconds are seconds in milliseconds.
func Milliseconds(s float64) float64 { return math.Round(s*1e6) / 1e3 }

func per(ms float64, n int) float64 {
	if n <= 0 {
		return 0
	}
	return ms / float64(n)
}

func rate(n int, ms float64) float64 {
	if ms <= 0 || n <= 0 {
		return 0
	}
	return float64(n) / ms * 1e3
}
