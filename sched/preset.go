package sched

import (
	"fmt"
	"time"
)

// presets are the configurations that have names, simplest first.
var presets = []struct {
	name   string
	config Config
}{
	// Request-level batching: FasterTransformer behind a server that
	// collects N requests or waits.
	{"static", Config{Static: true, Apart: true, MaxSeqs: 8, MaxTokens: 2048, Split: true, BatchWait: 50 * time.Millisecond}},
	// Yu et al. 2022: iteration-level, whole prompts beside answers, first
	// come first served.
	{"orca", Config{Order: ByRank, MaxSeqs: 32, MaxTokens: 1 << 20}},
	// Kwon et al. 2023, as released first: a step of prompts whenever one
	// can enter, else a step of answers; the last to come is preempted.
	{"vllm", Config{Order: PrefillFirst, Apart: true, MaxSeqs: 256, MaxTokens: 2560, Watermark: 10}},
	// The same system's later scheduler: one budget, running sequences
	// first, prompts in pieces.
	{"vllm-v1", Config{Order: ByRank, Split: true, MaxSeqs: 256, MaxTokens: 2048}},
	// Agrawal et al. 2024, Taming Throughput-Latency Tradeoff in LLM
	// Inference with Sarathi-Serve: answers never stall, a piece of a
	// prompt rides along, cut so that the step is a multiple of a tile.
	{"sarathi", Config{Order: DecodeFirst, Split: true, Quantum: 16, MaxSeqs: 128, MaxTokens: 512, Watermark: 10}},
	// Holmes et al. 2024, DeepSpeed-FastGen, Dynamic SplitFuse: long
	// prompts are split and short ones fused so that every step has the
	// same number of tokens.
	{"fastgen", Config{Order: DecodeFirst, Split: true, MaxSeqs: 256, MaxTokens: 768}},
	// LightLLM: prompts split and fused, first come first served, and
	// admission by the peak that all sequences can reach.
	{"lightllm", Config{Order: DecodeFirst, Split: true, Admission: PeakMax, MaxSeqs: 256, MaxTokens: 1024}},
	{"ridge", Config{Order: DecodeFirst, Split: true, Quantum: 16, Admission: PeakExpected, Recovery: Cheaper, MaxSeqs: 64, MaxTokens: 512, StepTime: 150 * time.Millisecond, ClassSlowdown: 1.25, Watermark: 10}},
}

// Presets are the names that [Preset] knows, simplest first.
func Presets() []string {
	names := make([]string, len(presets))
	for i := range presets {
		names[i] = presets[i].name
	}
	return names
}

// Preset returns the configuration that does what a known system does, as far
// as scheduling goes. They differ in what they expect of memory: "static" and
// "orca" are meant for [Contiguous], the others for [Paged]; "lightllm" had
// pages of one token.
func Preset(name string) (Config, error) {
	for i := range presets {
		if presets[i].name == name {
			return presets[i].config, nil
		}
	}
	return Config{}, fmt.Errorf("sched: preset: expected one of %v, found %q", Presets(), name)
}
