package techniques

// Choosing tokens, and measuring.
var measuring = []Technique{
	{
		ID:    "sampling",
		What:  "greedy, temperature, top-k, top-p, min-p, typical, penalties, bias, seed; llama.cpp's top-n-sigma, XTC, dynamic temperature, DRY, mirostat 1 and 2, any order",
		Use:   "ridge run --temp …, --dry-multiplier …",
		Code:  "sample/sampler.go",
		Tests: []string{"sample TestNaiveModel", "sample TestDistribution", "sample TestStepsAgainstLlamaCpp", "sample TestOrderAgainstLlamaCpp", ". TestBreakersAgainstLlamaCpp", "server TestSamplersOfRequests", "engine TestOneAnswer"},
		Show:  "go test -v -run 'TestNaiveModel|TestDistribution|TestGreedy|TestStepsAgainstLlamaCpp|TestOrderAgainstLlamaCpp' ./sample",
		Bench: "sample BenchmarkSample",
	},
	{
		ID:      "perplexity",
		What:    "perplexity as llama.cpp computes it, and KL divergence from another model; paired differences of several models with intervals",
		Use:     "ridge eval ppl, ridge eval kl",
		Code:    "measure/eval/perplexity.go",
		Tests:   []string{". TestPerplexityAgainstPeer", "measure/eval TestIntervalCovers", "measure/eval TestCompareAll"},
		Show:    "go test -v -run 'TestPerplexityAgainstPeer' .",
		Missing: "agreement to two decimals: within 1%",
	},
	{
		ID:    "llama-cpp",
		What:  "the same greedy tokens as llama.cpp from the same file, and speeds beside it",
		Use:   "ridge bench MODEL --peer llama-bench",
		Code:  "measure/bench/peer.go",
		Tests: []string{". TestGreedyAgainstPeer"},
		Show:  "go test -v -run 'TestGreedyAgainstPeer' .",
		Bench: "ridge bench MODEL --peer llama-bench",
	},
	{
		ID:    "flops-intensity",
		What:  "operations and bytes of each operation, and which of the two limits a phase",
		Use:   "ridge plan MODEL",
		Code:  "measure/roofline/work.go",
		Tests: []string{"measure/roofline TestCostAgainstNaiveCount"},
		Show:  "ridge plan tiny",
	},
	{
		ID:      "roofline-report",
		What:    "speeds and memory predicted from a file's header and the measured machine; every measured speed beside its part of the limit",
		Use:     "ridge plan MODEL, ridge bench MODEL",
		Code:    "measure/roofline/predict.go",
		Tests:   []string{"measure/roofline TestObserved"},
		Show:    "ridge plan smollm2 --check",
		Bench:   "ridge plan MODEL --check",
		Missing: "errors within 20% everywhere: the test allows 25% of speeds, and models as small as tiny are further off",
	},
	{
		ID:    "go-llm-api",
		What:  "open, generate as an iterator, chat, embed, tokenize from Go",
		Use:   "package ridge",
		Code:  "ridge.go",
		Tests: []string{". ExampleModel_Generate", ". ExampleModel_Chat"},
		Show:  "go test -v -run 'ExampleModel' .",
	},
}
