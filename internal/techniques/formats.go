package techniques

// Formats of weights, and files.
var formats = []Technique{
	{
		ID:      "gguf",
		What:    "GGUF reader and writer: v2, v3, shards, mmap, every type",
		Use:     "ridge inspect FILE",
		Code:    "weights/gguf/open.go",
		Tests:   []string{"weights/gguf TestRewrite"},
		Show:    "go test -v -run 'TestRewrite' ./weights/gguf",
		Bench:   "weights/gguf BenchmarkOpen",
		Missing: "a test that llama.cpp loads what is written: ridge bench --synthetic SHAPE --peer llama-bench does, where that is installed",
	},
	{
		ID:    "safetensors-hf",
		What:  "Hugging Face checkpoints: config.json, tokenizer.json, shards; weights packed by GPTQ and AWQ, found by their settings; GGUF files become checkpoints",
		Use:   "ridge run DIRECTORY",
		Code:  "model/names.go",
		Tests: []string{"model TestAgainstTransformers", "model TestQuantizedCheckpoints", "weights/quantized TestValuesOfTheLibraries", "model TestToCheckpoint"},
		Show:  "go test -v -run 'TestAgainstTransformers/llama-(shards|half)|TestQuantizedCheckpoints' ./model",
	},
	{
		ID:      "lora-adapters",
		What:    "LoRA adapters beside a model, of PEFT and of llama.cpp, different ones in one batch; prefixes stay apart",
		Use:     "ridge run --lora FILE[:SCALE] MODEL",
		Code:    "nn/adapter.go",
		Tests:   []string{"model TestAdapterGolden", "model TestAdaptersTogether", "model TestBadAdapters", "engine TestAdapters", "engine TestAdapterSessions"},
		Show:    "go test -v -run TestAdapterGolden ./model",
		Missing: "adapters of a server; DoRA; adapters of experts; a command that merges; throughput of eight adapters beside the base model",
	},
	{
		ID:      "gguf-quants",
		What:    "GGUF's block formats, bit-exact with their definition; llama.cpp's mixtures, tensor for tensor",
		Use:     "ridge quantize MODEL TYPE -o FILE",
		Code:    "compress/assign.go",
		Tests:   []string{"weights/tensor TestGoldenDecode", "weights/tensor TestGoldenEncode", "weights/tensor TestGoldenWeighted", "compress TestCalibrateAgainstTransformers", "compress TestTypesAreLlamaCpps", "compress TestQuantizeThreads", "compress TestQuantizeRefuses", "compress TestImportanceLowersDivergence"},
		Show:    "go test -v -run 'TestTypesAreLlamaCpps|TestImportanceLowersDivergence' ./compress",
		Bench:   "weights/tensor BenchmarkDecodeRow",
		Missing: "importance of the matrices of experts",
	},
	{
		ID:      "fp4",
		What:    "MXFP4 and NVFP4: floats of four bits (E2M1) with a scale for each 32 or 16",
		Use:     "ridge run MODEL",
		Code:    "weights/tensor/lowbit.go",
		Tests:   []string{"weights/tensor TestGoldenDecode", "model TestWidenedIsEqual", "model TestWidenedModel"},
		Show:    "go test -v -run 'TestWidened' ./model",
		Missing: "the perplexity of a model stored in FP4",
	},
	{
		ID:    "fp16-bf16",
		What:  "half precision of both kinds, bit-exact, read as it is",
		Use:   "ridge run MODEL",
		Code:  "weights/tensor/half.go",
		Tests: []string{"weights/tensor TestGoldenF16Codes", "weights/tensor TestF32ToF16", "weights/tensor TestF32ToBF16"},
		Show:  "ridge bench --synthetic smol:BF16 --synthetic smol:F32 -p 0 -n 32",
	},
}
