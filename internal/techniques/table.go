// Package techniques lists the techniques of the field that ridge has: what
// each is, how it is used, and the test and the benchmark that prove it. The
// page docs/techniques.md is generated from it.
package techniques

import (
	"encoding/json"
	"strings"
)

// Technique is one row of the list.
type Technique struct {
	ID    string `json:"id"`    // name in the surveys' atlas
	What  string `json:"what"`  // one line
	Use   string `json:"use"`   // flag, command or call
	Code  string `json:"code"`  // file to begin reading
	Test  string `json:"test"`  // package directory and test function
	Bench string `json:"bench"` // package directory and benchmark, or a command; "" if speed is not the point

	// Show is a command whose output shows the claim; "": that of the test, see
	// [Technique.Command].
	Show string `json:"-"`
	// Missing is what the atlas asks for and ridge has not; "": nothing.
	Missing string `json:"missing"`
}

// Command returns a command whose output shows what the technique claims.
func (t *Technique) Command() string {
	if t.Show != "" {
		return t.Show
	}
	dir, name, _ := strings.Cut(t.Test, " ")
	return "go test -count=1 -v -run '^" + name + "$' ./" + strings.TrimPrefix(dir, ".")
}

// MarshalJSON writes the fields and the command.
func (t Technique) MarshalJSON() ([]byte, error) {
	type fields Technique
	return json.Marshal(struct {
		fields
		Command string `json:"command"`
	}{fields(t), t.Command()})
}

// All are the techniques, by area.
var All = []Technique{
	// Architectures.
	{"transformer-decoder", "decoder-only transformer; every architecture is data for one forward pass", "ridge run MODEL", "model/net.go", "model TestAgainstTransformers", "ridge run --verbose", "", ""},
	{"llama", "Llama 1 to 3", "ridge run MODEL", "model/llama.go", "model TestAgainstTransformers", "", "", ""},
	{"llama-derivatives", "SmolLM, TinyLlama and others of Llama's shape", "ridge run smollm2", "model/llama.go", "model TestOneAnswerOfRealModels", "", "", "models that leave out parts of layers (Nemotron); a golden of infilling"},
	{"mistral", "Mistral 7B", "ridge run MODEL", "model/llama.go", "model TestAgainstTransformers", "", "", ""},
	{"qwen", "Qwen 2, 2.5 and 3", "ridge run qwen2.5-coder:0.5b", "model/qwen.go", "model TestOneAnswerOfRealModels", "", "", ""},
	{"gemma", "Gemma 1 to 3", "ridge run gemma3:270m", "model/gemma.go", "model TestOneAnswerOfRealModels", "", "", ""},
	{"phi", "Phi 1 to 4", "ridge run MODEL", "model/phi.go", "model TestAgainstTransformers", "", "", ""},
	{"gpt-family", "GPT-2 and StarCoder", "ridge run MODEL", "model/gpt.go", "model TestAgainstTransformers", "", "", "GPT-Neo; sizes of GPT-3 in ridge plan"},
	{"pythia-neox", "GPT-NeoX, Pythia, StableLM", "ridge run MODEL", "model/neox.go", "model TestAgainstTransformers", "", "", ""},
	{"falcon", "Falcon 7B, 40B, 11B and RefinedWeb", "ridge run MODEL", "model/falcon.go", "model TestAgainstTransformers", "", "", ""},
	{"bloom", "BLOOM (ALiBi)", "ridge run MODEL", "model/bloom.go", "model TestAgainstTransformers", "", "", ""},
	{"gqa", "grouped-query attention: query heads share the conversion of their keys", "ridge run MODEL", "kernel/attn.go", "kernel TestAttendAgainstNaive", "kernel BenchmarkAttendPrefill", "", "a test that equal and single key heads give the bits of multi-head and multi-query attention"},
	{"mqa", "multi-query attention", "ridge run MODEL", "kernel/attn.go", "model TestAgainstTransformers", "", "", "a test against repeated heads; conversion of multi-head models to one key head"},
	{"swa", "sliding-window attention", "ridge run gemma3:270m", "nn/attend.go", "model TestAgainstTransformers", "", "", "giving back memory outside the window: what is kept grows with the length; time against full attention"},
	{"rope", "rotary positions with linear, dynamic, Llama 3, YaRN and LongRoPE scaling", "ridge run MODEL", "model/rope.go", "model TestAgainstTransformers", "", "", "a test that scores depend on relative positions only"},
	{"tokenizers", "byte-level BPE, SentencePiece, unigram, WordPiece", "ridge tokenize", "text/tokenizer/tokenizer.go", "text/tokenizer TestPairs", "text/tokenizer BenchmarkEncode", "", ""},

	// Kernels.
	{"isa-dispatch", "kernels for AVX-512 VNNI, AVX2, NEON and plain Go, picked at run time", "RIDGE_CPU=avx512|avx2|neon|generic|ref", "internal/cpu/cpu.go", "kernel TestMulAgainstDefinition", "kernel BenchmarkMulHot", "ridge bench kernels --types Q8_0 --rows 1,16 --tiers generic,avx2", ""},
	{"autotune", "numbers of threads for decoding and for prompts, measured in turns and kept for the machine and the build", "ridge doctor", "measure/machine/threads.go", "measure/machine TestChooseThreads", "ridge doctor", "ridge doctor", "tuning of tiles and chunk sizes; a report of tuned beside default"},
	{"library-gemm", "blocked products on repacked weights, one layout for one row and for many", "always on", "kernel/packed.go", "kernel TestMulAgainstDefinition", "kernel BenchmarkMulHot", "ridge bench kernels --types Q8_0,Q4_K --rows 1,16,512", "a comparison with a product on unpacked rows"},
	{"int8-kernels", "int8 dot products with exact integer sums inside a block", "always on", "kernel/packed_generic.go", "kernel TestMulAgainstDefinition", "kernel BenchmarkMulHot", "ridge bench kernels --types Q8_0 --rows 1,16 --tiers generic,avx2", ""},
	{"w8a8", "activations as bytes with a scale for 32 values, or as two such rows, nearly exact", "--act int8|int16", "kernel/acts.go", "model TestActInt16", "measure/eval BenchmarkFormats", "", ""},
	{"fast-gemv", "decode products that read weights strictly forward", "always on", "kernel/packed.go", "kernel TestMulAgainstDefinition", "kernel BenchmarkMulCold", "ridge bench kernels --types Q8_0,Q4_K --rows 1,16,512", ""},
	{"flash-attention", "attention by blocks with an online softmax, no matrix of scores", "always on", "kernel/attn.go", "kernel TestAttendAgainstNaive", "kernel BenchmarkAttendPrefill", "", "error against float64 by tile and type; speed and memory beside naive attention from 4K tokens"},
	{"flash-decoding", "long contexts split over threads at fixed borders, merged in order", "always on", "nn/attend.go", "model TestOneAnswer", "kernel BenchmarkAttendDecode", "", "a comparison with one thread a head at 16K tokens"},
	{"kernel-fusion", "gate, up, activation and quantization in one region; residual addition in the product's", "always on", "nn/mlp.go", "model TestAgainstTransformers", "", "", "counts of operations; a switch that shows the difference in speed"},

	// Formats and files.
	{"gguf", "GGUF reader and writer: v2, v3, shards, mmap, every type", "ridge inspect FILE", "weights/gguf/open.go", "weights/gguf TestRewrite", "weights/gguf BenchmarkOpen", "ridge inspect tiny", ""},
	{"safetensors-hf", "Hugging Face checkpoints: config.json, tokenizer.json, shards", "ridge run DIRECTORY", "model/names.go", "model TestAgainstTransformers", "", "", "checkpoints packed by GPTQ and AWQ"},
	{"gguf-quants", "GGUF's block formats, bit-exact with their definition", "ridge run MODEL", "weights/tensor/codec.go", "weights/tensor TestGoldenDecode", "weights/tensor BenchmarkDecodeRow", "", "a command that quantizes, and with it the size and the perplexity of a Q4_K_M file"},

	// Keys and values.
	{"kv-cache", "keys and values are kept and appended", "ridge run MODEL", "kvcache/pool.go", "model TestAgainstTransformers", "", "", ""},
	{"paged-attention", "keys and values in pages of a pool, a page table for each sequence", "--page-size", "kvcache/pool.go", "kvcache TestPoolAgainstNaiveModel", "", "", ""},
	{"prefix-sharing", "pages shared by reference between sequences, copied when one writes", "ridge serve", "kvcache/seq.go", "kvcache TestForkCopiesOnWrite", "", "", ""},
	{"radix-attention", "a radix tree of prefixes, to the token, that evicts the least recently used leaves", "ridge serve", "kvcache/tree.go", "kvcache TestPrefixToTheToken", "", "", ""},
	{"prompt-precompute", "sessions kept on disk and taken up again", "ridge serve: /slots", "kvcache/snapshot.go", "kvcache TestSnapshotFormat", "", "", ""},
	{"contiguous-kv", "keys and values reserved for the longest case: the measured baseline", "engine.Options.Contiguous", "kvcache/contiguous.go", "kvcache TestContiguousAgainstNaiveModel", "", "", ""},
	{"kv-quant-generic", "keys and values as bytes with a scale for each token and head, read by the kernels as they are", "--kv q8_0", "kernel/kvstore.go", "measure/eval TestKVQ8Drift", "kernel BenchmarkAttendDecode", "", "4, 3 and 2 bits and FP8, axes, before or after the rotation; Q8_0 costs Qwen 2.5 more than 0.5% of perplexity"},
	{"tenant-isolation", "prefixes of one tenant are never found by another", "ridge serve: cache_salt, API keys", "kvcache/tree.go", "kvcache TestSalt", "", "", ""},

	// Scheduling.
	{"continuous-batching", "every step's batch is put together anew", "ridge serve", "sched/sched.go", "sched/sim TestContinuousBeatsStatic", "", "", ""},
	{"chunked-prefill", "prompts are computed in chunks beside running answers", "ridge serve", "sched/steps.go", "sched/sim TestLongPromptDoesNotStall", "", "", ""},
	{"static-batching", "one batch until its last answer ends: the measured baseline", "ridge serve --preset static", "sched/preset.go", "sched/sim TestContinuousBeatsStatic", "", "", "its place as the base of every published serving table"},
	{"orca", "iteration-level scheduling with contiguous memory", "ridge serve --preset orca", "sched/preset.go", "sched/sim TestPresetsFinish", "", "", ""},
	{"sarathi-serve", "a token budget for each step, answers first", "ridge serve --preset sarathi", "sched/preset.go", "sched/sim TestPresetsFinish", "", "", "the cost of piggybacked answers, a chunk size tuned at the knee, pipeline bubbles"},
	{"splitfuse", "prompts split and fused into even steps", "ridge serve --preset fastgen", "sched/preset.go", "sched/sim TestFastGenStepsAreEven", "", "", "the variance of token times beside whole prompts"},
	{"fcfs", "first come, first served", "ridge serve --policy fcfs", "sched/fcfs.go", "sched/sim TestLadder", "", "", ""},
	{"fair-ageing", "priorities that grow with waiting", "ridge serve --policy priority", "sched/priority.go", "sched/sim TestNobodyStarves", "", "", "fairness, throughput and completion times of vtc and mlfq together"},
	{"fastserve", "preemptive multi-level queues that long prompts skip into", "ridge serve --policy mlfq", "sched/mlfq.go", "sched/sim TestMLFQLowersCompletionTimes", "", "", ""},
	{"vtc", "virtual token counters: fairness between tenants", "ridge serve --policy vtc", "sched/vtc.go", "sched/sim TestVTCBoundsTheGap", "", "", ""},
	{"slo-scheduling", "order by deadline, and shedding of what would be late", "ridge serve --policy deadline", "sched/deadline.go", "sched/sim TestDeadlinesAndShedding", "", "", ""},
	{"length-prediction", "answer lengths learned online", "ridge serve --policy shortest", "sched/length.go", "sched/sim TestShortestFirst", "", "", ""},
	{"serving-simulator", "the real scheduler and pages on a simulated machine", "package sched/sim", "sched/sim/sim.go", "sched/sim TestRandomConfigurations", "", "", "validation within 15% of real runs; routing; a command"},

	// Serving.
	{"openai-api", "OpenAI's API, with Ollama's and Anthropic's beside it", "ridge serve", "server/openai/chat.go", "server TestChatStream", "", "", ""},
	{"embed-rerank-serving", "embeddings, and scores of texts by the angle between them", "POST /v1/embeddings, /v1/rerank, /v1/score", "server/openai/rerank.go", "server TestRerank", "", "", "encoder models, reference vectors, recall of reranking"},
	{"constrained-decoding", "JSON schema, regular expressions, GBNF and structural tags compiled to token masks; jump-ahead of forced text", "response_format, structured_outputs, jump_ahead", "text/grammar/doc.go", "text/grammar/schema TestSchemaGenerations", "text/grammar/schema BenchmarkMaskTime", "", ""},
	{"ttft", "time to the first token, as clients see it and as the server counts it", "ridge bench serve", "measure/bench/load/report.go", "measure/bench/load TestClosedLoop", "ridge bench serve MODEL", "ridge bench serve tiny --workload fixed --clients 1,4 --requests 8", ""},
	{"tpot-itl", "time per output token and between tokens; with the first they add up to the whole", "ridge bench serve", "measure/bench/load/report.go", "measure/bench/load TestClosedLoop", "ridge bench serve MODEL", "ridge bench serve tiny --workload fixed --clients 1,4 --requests 8", ""},
	{"e2e-tail-latency", "percentiles of whole requests, and stalls of running streams when a long prompt enters", "ridge bench serve -w intruder", "measure/bench/load/intrude.go", "measure/bench/load TestIntruder", "ridge bench serve MODEL -w intruder", "ridge bench serve tiny --workload fixed --clients 1,4 --requests 8", ""},
	{"throughput", "tokens and requests per second under declared loads, beside other servers in turns", "ridge bench serve --peer COMMAND", "measure/bench/load/run.go", "measure/bench/load TestClosedLoop", "ridge bench serve MODEL", "ridge bench serve tiny --workload fixed --clients 1,4 --requests 8", "the machine in the table of ridge bench serve; spread over repeated runs"},
	{"goodput", "requests that keep declared bounds, and the highest load with nine of ten in time", "ridge bench serve --slo BOUNDS --rate LIST", "measure/bench/load/report.go", "measure/bench/load TestSweep", "ridge bench serve MODEL", "ridge bench serve tiny --workload fixed --rate 2,8 --requests 8 --slo ttft:1s,tpot:100ms", "a command that shows the curve fall past saturation without rates chosen for the machine"},
	{"kv-waste-utilisation", "used, wasted and cached slots, and hits of the prefix cache, as counters", "ridge top, /metrics", "kvcache/usage.go", "kvcache TestWaste", "", "", "counters of core and bandwidth utilisation"},
	{"observability", "Prometheus metrics, traces, logs with request ids", "ridge serve: /metrics", "server/metrics.go", "server TestMetrics", "", "", "a dashboard, shadow runs, goodput as a metric"},

	// Choosing tokens, and measuring.
	{"sampling", "greedy, temperature, top-k, top-p, min-p, typical, penalties, bias, seed", "ridge run --temp …", "sample/sampler.go", "sample TestNaiveModel", "sample BenchmarkSample", "", ""},
	{"perplexity", "perplexity as llama.cpp computes it, and KL divergence from another model", "ridge eval ppl, ridge eval kl", "measure/eval/perplexity.go", ". TestPerplexityAgainstPeer", "", "ridge eval ppl tiny -f README.md --tokens 2048", "agreement to two decimals: the test allows 1%"},
	{"roofline-report", "speeds and memory predicted from a file's header and the measured machine; every measured speed beside its part of the limit", "ridge plan MODEL, ridge bench MODEL", "measure/roofline/predict.go", "measure/roofline TestObserved", "ridge plan MODEL --check", "ridge plan smollm2 --check", "errors within 20%: the test allows 25%, and models as small as tiny are further off"},
	{"go-llm-api", "open, generate as an iterator, chat, embed, tokenize from Go", "package ridge", "ridge.go", ". ExampleModel_Generate", "", "", ""},
}
