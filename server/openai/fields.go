package openai

import (
	"cmp"
	"encoding/json"
	"math"
	"time"

	"ridge/server/adapters"
	"ridge/server/fault"
	"ridge/server/run"
	"ridge/server/wire"
)

// Common are the fields that chat completions and completions share, beside
// those of sampling and structured output.
type Common struct {
	Model         string          `json:"model"`
	Stream        bool            `json:"stream"`
	StreamOptions *streamOpt      `json:"stream_options"`
	MaxTokens     *wire.Integer   `json:"max_tokens"`
	NPredict      *wire.Integer   `json:"n_predict"`
	N             *wire.Integer   `json:"n"`
	BestOf        *wire.Integer   `json:"best_of"`
	Stop          wire.StringList `json:"stop"`
	User          string          `json:"user"`

	StopTokenIDs   []int32       `json:"stop_token_ids"`
	IncludeStop    bool          `json:"include_stop_str_in_output"`
	IgnoreEOS      bool          `json:"ignore_eos"`
	EndLoops       *bool         `json:"end_loops"`
	MinTokens      *wire.Integer `json:"min_tokens"`
	UseBeam        bool          `json:"use_beam_search"`
	LengthPenalty  *float64      `json:"length_penalty"`
	EarlyStopping  bool          `json:"early_stopping"`
	PromptLogprobs *wire.Integer `json:"prompt_logprobs"`
	AllowedTokens  []int32       `json:"allowed_token_ids"`
	BadWords       []string      `json:"bad_words"`
	SkipSpecial    *bool         `json:"skip_special_tokens"`
	AddSpecial     *bool         `json:"add_special_tokens"`
	Slot           *wire.Integer `json:"id_slot"`
	Priority       *wire.Integer `json:"priority"`
	CacheSalt      string        `json:"cache_salt"`
	RequestID      string        `json:"request_id"`
	TokenIDs       bool          `json:"return_token_ids"`
	Trace          bool          `json:"ridge_trace"`
	TokensAsIDs    bool          `json:"return_tokens_as_token_ids"`
	TimeLimit      *wire.Integer `json:"t_max_predict_ms"`
	MaxDraft       *wire.Integer `json:"speculative.n_max"` // as llama-server has it
	Deadline       *wire.Integer `json:"deadline_ms"`
	ProbIDs        []int32       `json:"logprob_token_ids"`
	PostSampling   bool          `json:"post_sampling_probs"`
	Adapters       AdapterScales `json:"lora"`
	ReturnProgress bool          `json:"return_progress"` // in a stream, while the prompt is computed
	wire.TruncationFields
	aside
}

// asideResponses are the fields of the Responses API that change no answer here.
type asideResponses struct {
	User          wire.Idle `json:"user"`
	ServiceTier   wire.Idle `json:"service_tier"`
	CacheKey      wire.Idle `json:"prompt_cache_key"`
	CacheKept     wire.Idle `json:"prompt_cache_retention"`
	SafetyID      wire.Idle `json:"safety_identifier"`
	StreamOptions wire.Idle `json:"stream_options"` // padding against observers
}

// aside are the fields of OpenAI, vLLM and llama-server that change no answer
// here, and those that ask for what this server cannot do.
type aside struct {
	// of OpenAI: what is kept of requests elsewhere, and what they cost
	Metadata    wire.Idle `json:"metadata"`
	Store       wire.Idle `json:"store"`
	ServiceTier wire.Idle `json:"service_tier"`
	CacheKey    wire.Idle `json:"prompt_cache_key"`
	CacheKept   wire.Idle `json:"prompt_cache_retention"`
	SafetyID    wire.Idle `json:"safety_identifier"`
	Prediction  wire.Idle `json:"prediction"` // for speed alone

	// of vLLM: media, experts, other machines, how a stream is cut
	MediaArgs     wire.Idle    `json:"media_io_kwargs"`
	ProcessorArgs wire.Idle    `json:"mm_processor_kwargs"`
	RenderMedia   wire.Idle    `json:"return_mm_kwargs"`
	ExpertsFrom   wire.Idle    `json:"routed_experts_prompt_start"`
	SessionID     wire.Idle    `json:"session_id"`
	Interval      wire.Idle    `json:"stream_interval"`
	KVTransfer    wire.Refused `json:"kv_transfer_params"`
	ECTransfer    wire.Refused `json:"ec_transfer_params"`
	PromptEmbeds  wire.Refused `json:"prompt_embeds"`

	// of llama-server: answers are the same in any slot, with a cache and without;
	// nothing is ever shifted out of a context
	CachePrompt wire.Idle    `json:"cache_prompt"`
	CacheReuse  wire.Idle    `json:"n_cache_reuse"`
	KeepFirst   wire.Idle    `json:"n_keep"`
	Discard     wire.Idle    `json:"n_discard"`
	OnDevice    wire.Idle    `json:"backend_sampling"`
	ChatFormat  wire.Idle    `json:"chat_format"` // a number that its own parser wants
	PingEvery   wire.Idle    `json:"sse_ping_interval"`
	Lazy        wire.Refused `json:"grammar_lazy"`
}

// ThinkingBudget says how many tokens of reasoning an answer may have, by the
// names that vLLM and llama-server have for it.
type ThinkingBudget struct {
	VLLM   *wire.Integer `json:"thinking_token_budget"`
	Short  *wire.Integer `json:"reasoning_budget"`
	Llama  *wire.Integer `json:"reasoning_budget_tokens"`
	Llama2 *wire.Integer `json:"thinking_budget_tokens"`
}

func (f *ThinkingBudget) budget() *int {
	return cmp.Or(f.VLLM, f.Short, f.Llama, f.Llama2).Pointer()
}

// streamOpt is OpenAI's stream_options.
type streamOpt struct {
	IncludeUsage    bool `json:"include_usage"`
	ContinuousUsage bool `json:"continuous_usage_stats"`
}

// AdapterScales are how much of adapters an answer has, as llama-server's clients say
// it: what is not named is left out.
type AdapterScales []struct {
	ID    *wire.Integer `json:"id"`
	Scale *float64      `json:"scale"`
}

// Scales are the numbers, nil if there is no list; what is missing is none.
func (a AdapterScales) Scales() []adapters.Scale {
	if a == nil {
		return nil
	}
	out := []adapters.Scale{}
	for i := range a {
		scale := math.NaN()
		if a[i].Scale != nil {
			scale = *a[i].Scale
		}
		out = append(out, adapters.Scale{ID: a[i].ID.Value(-1), Scale: float32(scale)})
	}
	return out
}

// check refuses fields that leave nothing to answer with.
func (f *Common) check() error {
	if f.AllowedTokens != nil && len(f.AllowedTokens) == 0 {
		return fault.BadRequest("allowed_token_ids", "expected tokens, found an empty list, which allows none")
	}
	return nil
}

// Options are what the fields say.
func (f *Common) Options() run.Options {
	return run.Options{
		Stream: f.Stream, MaxTokens: cmp.Or(f.MaxTokens, f.NPredict).Pointer(), N: f.N.Pointer(), BestOf: f.BestOf.Pointer(), Stop: f.Stop,
		StopTokens: f.StopTokenIDs, IncludeStop: f.IncludeStop, IgnoreEOS: f.IgnoreEOS, EndLoops: f.EndLoops, MinTokens: f.MinTokens.Value(0),
		Beam: f.UseBeam, LengthPenalty: f.LengthPenalty, EarlyStopping: f.EarlyStopping, PromptLogProbs: f.PromptLogprobs.Pointer(), Trace: f.Trace, ProbIDs: f.ProbIDs, Drawn: f.PostSampling,
		AllowedTokens: f.AllowedTokens, BadWords: f.BadWords, ShowSpecial: f.SkipSpecial != nil && !*f.SkipSpecial, AddSpecial: f.AddSpecial,
		Truncate: f.Keep.Pointer(), TruncateSide: f.Side, Slot: f.Slot.Pointer(), Priority: f.Priority.Value(0), CacheSalt: f.CacheSalt, MaxDraft: f.MaxDraft.Pointer(), Adapters: f.Adapters.Scales(), RequestID: f.RequestID, Deadline: f.Deadline.Milliseconds(),
		TimeLimit: time.Duration(max(0, f.TimeLimit.Value(0))) * time.Millisecond,
	}
}

// templateArgs reads a client's extra variables for the template. Their order
// of keys is kept.
func templateArgs(raw map[string]json.RawMessage) map[string]any {
	if len(raw) == 0 {
		return nil
	}
	out := map[string]any{}
	for k, v := range raw {
		var x any
		var n int64
		switch {
		case json.Unmarshal(v, &n) == nil && string(v) != "null":
			out[k] = n
		case len(v) > 0 && v[0] != '{' && v[0] != '[' && json.Unmarshal(v, &x) == nil:
			out[k] = x
		default:
			out[k] = v
		}
	}
	return out
}
