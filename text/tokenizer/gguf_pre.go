package tokenizer

// preTokenizer is what a name in tokenizer.ggml.pre stands for.
type preTokenizer struct {
	stages  []string // regular expressions, applied in order; or names of the form "@..."
	nfc     bool     // text is normalized to NFC first
	whole   bool     // pieces that are tokens are not merged
	bos     bool     // BOS is added unless the file says otherwise
	spm     bool     // spaces become ▁ and tokens are text, not bytes
	newline bool     // with spm: line breaks are pieces of their own
}

// Stages that are not one regular expression.
const (
	stageDigitsGPT2  = "@digits+gpt2" // \p{N} isolated, then reGPT2
	stagePunctuation = "@punctuation" // runs of punctuation
	stageByteNumbers = "@bytenumbers" // runs of digits of byte-level text
	stageDefaultPunc = `[\p{P}\$\+<=>\^~\|]+`
)

// preTokenizers has every name that is supported.
//
// The names are those that GGUF writers use for the tokenizers of published
// models; the patterns and NFC are those of the models' own tokenizer.json.
var preTokenizers = func() map[string]preTokenizer {
	m := map[string]preTokenizer{}
	add := func(p preTokenizer, names ...string) {
		for _, n := range names {
			m[n] = p
		}
	}
	add(preTokenizer{stages: []string{stageDefaultPunc, reGPT2, `\p{N}+`, reDigits3}}, "default")
	add(preTokenizer{stages: []string{reGPT2}},
		"gpt-2", "phi-2", "jais", "trillion", "granite-docling", "exaone4", "gigachat", "a.x-4.0", "mellum",
		"jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en", "jina-v2-code", "roberta-bpe")
	add(preTokenizer{stages: []string{reGPT2}, nfc: true}, "mpt", "olmo", "modern-bert")
	add(preTokenizer{stages: []string{stageDigitsGPT2}},
		"starcoder", "refact", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2")
	add(preTokenizer{stages: []string{stageDigitsGPT2}, nfc: true}, "command-r")
	add(preTokenizer{stages: []string{stagePunctuation, reGPT2, stageByteNumbers, reDigits3}}, "falcon")
	add(preTokenizer{stages: []string{reLlama3}, whole: true, bos: true},
		"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano")
	add(preTokenizer{stages: []string{reLlama3}}, "dbrx", "smaug-bpe", "chatglm-bpe")
	add(preTokenizer{stages: []string{reLlama3}, whole: true}, "glm4", "glm5")
	add(preTokenizer{stages: []string{reQwen2}, nfc: true},
		"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2")
	add(preTokenizer{stages: []string{reQwen2}}, "hunyuan", "solar-open", "grok-2")
	add(preTokenizer{stages: []string{reQwen35}, nfc: true}, "qwen35")
	add(preTokenizer{stages: []string{`[^\n]+|[\n]+`, reQwen2}}, "laguna")
	add(preTokenizer{stages: []string{reNumbers3, reMiniCPM}, whole: true}, "minicpm5")
	add(preTokenizer{stages: []string{`[` + "\r\n" + `]`, reDeepseekAbc, reDeepseekSym, `\s+$`, reDeepseekCJK, `\p{N}`}}, "deepseek-llm")
	add(preTokenizer{stages: []string{`[` + "\r\n" + `]`, `\s?\p{L}+`, `\s?\p{P}+`, reDeepseekCJK, `\p{N}`}}, "deepseek-coder")
	add(preTokenizer{stages: []string{reNumbers3, reDeepseekCJ, reDeepseek3}},
		"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4")
	add(preTokenizer{stages: []string{reO200k}}, "gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2")
	add(preTokenizer{stages: []string{reO200k}, whole: true}, "granite-embed-multi-97m")
	add(preTokenizer{stages: []string{reTekken}, whole: true, bos: true}, "tekken")
	add(preTokenizer{stages: []string{reKimi}}, "kimi-k2")
	add(preTokenizer{stages: []string{reBloom}}, "bloom", "poro-chat", "gpt3-finnish")
	add(preTokenizer{stages: []string{reBloom, `\p{N}`}}, "viking")
	add(preTokenizer{stages: []string{reBailing}}, "bailingmoe", "bailingmoe2", "llada-moe")
	add(preTokenizer{stages: []string{reSeed}}, "seed-coder")
	add(preTokenizer{stages: []string{reUfak}}, "ufakzeka")
	add(preTokenizer{stages: []string{`\p{N}+`, `(?=(\d{3})+(?!\d))`}}, "superbpe")
	add(preTokenizer{stages: []string{`\d{1,3}(?=(?:\d{3})*\b)`, reO200k}}, "tiny_aya", "cohere2moe")
	add(preTokenizer{stages: []string{reJais2}}, "jais-2")
	add(preTokenizer{stages: []string{reExaoneMoE}}, "exaone-moe")
	add(preTokenizer{stages: []string{reNumbers3, reDeepseekCJ, reSpark, `\p{N}`}}, "spark2_5")
	add(preTokenizer{stages: []string{reYoutuCJK, reO200k1}, whole: true}, "youtu")
	add(preTokenizer{spm: true, newline: true, bos: true}, "gemma4")
	add(preTokenizer{spm: true, newline: true}, "granite-embed-multi-311m", "sarvam-moe")
	return m
}()

// preByArch names the pre-tokenizer of architectures that had one tokenizer
// each when files did not name it yet.
var preByArch = map[string]string{
	"gpt2":      "gpt-2",
	"gptneox":   "olmo",
	"mpt":       "mpt",
	"falcon":    "falcon",
	"starcoder": "starcoder",
	"refact":    "refact",
	"codeshell": "codeshell",
	"bloom":     "bloom",
	"qwen2":     "qwen2",
	"command-r": "command-r",
	"phi2":      "phi-2",
}
