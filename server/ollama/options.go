package ollama

import (
	"context"
	"fmt"

	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/run"
	"ridge/server/wire"
)

// options are the options of a request.
type options struct {
	Temperature *float64        `json:"temperature"`
	TopK        *wire.Integer   `json:"top_k"`
	TopP        *float64        `json:"top_p"`
	MinP        *float64        `json:"min_p"`
	TypicalP    *float64        `json:"typical_p"`
	RepeatLastN *wire.Integer   `json:"repeat_last_n"`
	Repeat      *float64        `json:"repeat_penalty"`
	Presence    *float64        `json:"presence_penalty"`
	Frequency   *float64        `json:"frequency_penalty"`
	Seed        *wire.Seed      `json:"seed"`
	Stop        wire.StringList `json:"stop"`
	NumPredict  *wire.Integer   `json:"num_predict"`
	wire.SamplerFields

	// Memory and speed, which are the server's matter, and what is kept of a
	// context that is shifted, which none is.
	NumBatch   wire.Idle     `json:"num_batch"`
	NumGPU     wire.Idle     `json:"num_gpu"`
	MainGPU    wire.Idle     `json:"main_gpu"`
	NumThread  wire.Idle     `json:"num_thread"`
	MMap       wire.Idle     `json:"use_mmap"`
	MLock      wire.Idle     `json:"use_mlock"`
	LowVRAM    wire.Idle     `json:"low_vram"`
	NUMA       wire.Idle     `json:"numa"`
	F16KV      wire.Idle     `json:"f16_kv"`
	DraftCount *wire.Integer `json:"draft_num_predict"`
	NumKeep    wire.Idle     `json:"num_keep"`
	NumCtx     *wire.Integer `json:"num_ctx"`
}

// sampling is what the options say of that.
func (o *options) sampling() run.Sampling {
	s := run.Sampling{Temperature: o.Temperature, TopK: o.TopK.Pointer(), TopP: o.TopP, MinP: o.MinP, TypicalP: o.TypicalP, PenaltyLastN: o.RepeatLastN.Pointer(),
		RepetitionPenalty: o.Repeat, PresencePenalty: o.Presence, FrequencyPenalty: o.Frequency, Seed: o.Seed.Pointer()}
	o.Into(&s)
	return s
}

// window looks at num_ctx, the tokens that prompt and answer must at least have
// room for. A model's context is set when the server starts: one that is smaller is
// told to the client, a larger one cuts nothing.
func (o *options) window(ctx context.Context, m *run.Model) error {
	if o == nil || o.NumCtx == nil {
		return nil
	}
	switch n := *o.NumCtx; {
	case n < 1:
		return fault.BadRequest("options.num_ctx", "expected 1 or more, found %d", n)
	case int64(n) > int64(m.Info().Context):
		caller.Note(ctx, func(l *caller.Record) {
			l.Ignored = append(l.Ignored, fmt.Sprintf("options.num_ctx=%d (this server gives %s a context of %d tokens)", n, m.Info().Name, m.Info().Context))
		})
	}
	return nil
}
