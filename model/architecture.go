package model

import (
	"fmt"
	"slices"
	"sort"
	"strconv"

	"ridge/nn"
)

// architecture is one family of models: how its description is read from either
// kind of file, where its weights lie in a Hugging Face checkpoint, and how they
// become a network. Each has a file of its own.
type architecture struct {
	name string   // GGUF's
	hf   []string // model_type values of config.json

	// layers counts the layers of a config.json that does not say how many there
	// are; nil where each says it.
	layers   func(d *description) int
	describe func(d *description, c *Config)
	names    hfNames
	// aliases are the names that parts have in GGUF files of this architecture
	// alone, such as "post_attention_norm" for "ffn_norm", or of parts with their suffix.
	aliases map[string]string
	build   func(b *builder) *Net
	latent  bool // keys and values are products with latents: their sizes are described elsewhere
	head    bool // a GGUF file has the output matrix always
	encoder bool // its attention is in both directions, and it has no output matrix
	// scores are the weights of a classifier beside its last matrix, as checkpoints
	// for classification have them.
	scores []string
	// stateOnly is set where no layer has attention, and files need not say anything of heads.
	stateOnly bool
	// joinedKV says that GGUF files have the matrices that make keys and values of
	// latents in one, attn_kv_b.
	joinedKV bool
	readOnly string   // why the family is not written as a checkpoint, "" if it is
	unused   []string // patterns of tensors that files have and the network does not need

	eps  float64                  // of the norms of a GGUF file without it, 0 if each has it
	acts map[string]nn.Activation // what names of activations mean other than to others
}

// architectures are all that Open knows.
var architectures = []*architecture{
	// Most with experts, or relatives of those.
	&glm4, &glm4moe, &ernie4_5, &ernie4_5moe, &dots1, &minimaxM2, &llama4, &afmoe, &hunyuanDense,
	&hunyuanMoE, &phimoe, &dbrx, &exaoneMoE, &flexOlmo, &bailing, &bailing2, &smallThinker, &arctic,

	&llama, &smollm3, &qwen2, &qwen3, &gemma, &gemma2, &gemma3, &gemma3n, &gemma4, &phi2, &phi3,
	&commandR, &cohere2, &granite, &gpt2, &starcoder, &starcoder2, &gptneox, &mpt, &bloom, &falcon, &olmo, &olmo2, &stablelm,
	&arcee, &seedoss, &exaone4, &apertus, &mistral3, &nemotron, &helium, &gptj, &codegen, &exaone, &opt,
	&qwen2moe, &qwen3moe, &olmoe, &granitemoe, &gptoss, &lfm2, &lfm2moe,
	&mamba, &mamba2, &jamba, &graniteHybrid, &bamba, &falconH1, &nemotronH, &nemotronHMoE, &recurrentGemma, &qwen3next, &qwen35, &qwen35moe, &rwkv4, &rwkv5, &rwkv6, &rwkv7,
	&deepseek, &deepseek2, &minicpm3,
	&internlm2, &minicpm, &xverse, &orion, &chatglm, &glm, &baichuan, &refact, &codeshell, &jais, &persimmon, &biogpt, &bitnet,

	&bert, &mpnet, &nomicBert, &nomicBertMoE, &jinaBert2, &jinaBert3, &modernBert, &gemmaEmbedding,
}

// architectureNames returns the names of the architectures that Open knows, as
// GGUF spells them, sorted.
func architectureNames() []string {
	var names []string
	for _, a := range architectures {
		names = append(names, a.name)
	}
	sort.Strings(names)
	return slices.Compact(names)
}

// hfTypes returns the model_type values that Open knows, sorted.
func hfTypes() []string {
	var names []string
	for _, a := range architectures {
		names = append(names, a.hf...)
	}
	sort.Strings(names)
	return names
}

// byName returns the architecture of a GGUF name, nil if there is none.
func byName(name string) *architecture {
	for _, a := range architectures {
		if a.name == name {
			return a
		}
	}
	return nil
}

// byType returns the architecture of a model_type, nil if there is none.
func byType(kind string) *architecture {
	for _, a := range architectures {
		for _, t := range a.hf {
			if t == kind {
				return a
			}
		}
	}
	return nil
}

// read fills c with what all architectures keep under the same keys, and then
// with what is particular to a.
func (a *architecture) read(d *description, c *Config) error {
	c.Arch = a.name
	ffn, context := required, required // a GGUF file has them always
	c.Hidden = d.int("embedding_length", "hidden_size|n_embd|d_model|dim", required)
	if d.hf {
		ffn, context = 4*c.Hidden, 2048
	}
	c.Vocab = d.int("", "vocab_size", required)
	layers := required
	if a.layers != nil && d.hf {
		layers = a.layers(d)
	}
	c.Layers = d.int("block_count", "num_hidden_layers|n_layer|n_layers", layers)
	// A GGUF file counts the layers that predict further tokens among the others.
	all := c.Layers
	if c.Ahead = d.int("nextn_predict_layers", "num_nextn_predict_layers|num_mtp_layers", 0); !d.hf {
		c.Layers -= c.Ahead
	}
	heads := required
	switch {
	case a.stateOnly:
		heads, ffn, context = 1, 1, 1
	case !d.hf && !d.has("feed_forward_length", "") && d.has("expert_feed_forward_length", ""): // all layers have experts
		ffn = d.int("expert_feed_forward_length", "", 0)
	}
	c.Heads = d.int("attention.head_count", "num_attention_heads|n_head|n_heads", heads)
	c.KVHeads = d.perLayer("attention.head_count_kv", "num_key_value_heads", all, c.Heads)
	c.KVHeads = c.KVHeads[:max(min(len(c.KVHeads), c.Layers), 0)]
	c.HeadDim = d.int("attention.key_length", "head_dim", 0)
	if c.HeadDim == 0 && c.Heads > 0 && d.hf {
		c.HeadDim = c.Hidden / c.Heads
	}
	if v := d.int("attention.value_length", "", c.HeadDim); v != c.HeadDim && c.HeadDim != 0 && !a.latent {
		d.fail("attention.value_length", fmt.Sprintf("%d as the key length", c.HeadDim), v)
	}
	c.readFFN(d.perLayer("feed_forward_length", "intermediate_size|n_inner|ffn_hidden_size|hidden_dim", all, ffn))
	c.Context = d.int("context_length", "max_position_embeddings|n_positions|max_seq_len|seq_length", context)
	c.Tied = d.bool("", "tie_word_embeddings", false)
	c.RopeDim = d.int("rope.dimension_count", "", 0)
	if part := d.rotaryPart(); part != 1 {
		c.RopeDim = int(float64(c.HeadDim) * part)
	}
	c.Rope = []RopeConfig{d.rope(c)}
	if causal := d.bool("attention.causal", "is_causal", !a.encoder); a.encoder && causal && !d.hf {
		d.fail("attention.causal", "false", true)
	} else {
		c.Encoder.Both = a.encoder || !causal
	}
	a.describe(d, c)
	d.classes(a, c)
	d.head(a, c)
	a.epsilon(d, c)
	a.activation(d, c)
	d.checkKeys()
	return *d.err
}

// epsilon reads what the norms add to the mean square. GGUF has a key for each
// kind of norm, and llama.cpp writes 0 under that of the other kind.
func (a *architecture) epsilon(d *description, c *Config) {
	if d.hf {
		def := 1e-5
		if a.encoder && a.eps != 0 {
			def = a.eps
		}
		c.NormEps = d.float32("", "rms_norm_eps|layer_norm_epsilon|layer_norm_eps|norm_epsilon|norm_eps", def)
		return
	}
	own, other := "attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"
	if c.Norm == nn.NormLayer {
		own, other = other, own
	}
	def := requiredFloat
	if a.eps != 0 {
		def = a.eps
	}
	c.NormEps = d.float32(own+"|"+other, "", def)
	if c.NormEps == 0 {
		c.NormEps = d.float32(other, "", 0)
	}
}

// rotaryPart returns the part of a head that is rotated, as far as a config.json
// says it.
func (d *description) rotaryPart() float64 {
	part := d.float("", "rotary_pct|partial_rotary_factor", 1)
	if o := d.object("rope_parameters"); o != nil {
		part = o.float("", "partial_rotary_factor", part)
	}
	return part
}

// activation honours the function that a config.json names.
func (a *architecture) activation(d *description, c *Config) {
	const keys = "hidden_act|hidden_activation|activation_function|activation"
	name := d.str("", keys, "")
	if name == "" {
		return
	}
	acts := map[string]nn.Activation{
		"silu": nn.SiLU, "swish": nn.SiLU, "relu": nn.ReLU, "relu2": nn.ReLU2, "gelu": nn.GELUErf,
		"gelu_new": nn.GELUTanh, "gelu_fast": nn.GELUTanh, "gelu_pytorch_tanh": nn.GELUTanh,
	}
	act, ok := a.acts[name]
	if !ok {
		act, ok = acts[name]
	}
	if !ok {
		key, _, _ := d.find("", keys, "a string")
		d.fail(key, "silu, relu, relu2, gelu or gelu_new", strconv.Quote(name))
	}
	c.Act = act
}

// windows reads the sliding window of each layer, 0 for none. Which layers have
// it is listed in the file; sliding says it of a file without a list.
func (d *description) windows(layers int, sliding func(layer int) bool) []int {
	out := everyLayer(layers, 0)
	size := d.int("attention.sliding_window", "sliding_window", 0)
	if listed := d.slidingLayers(layers); listed != nil {
		sliding = func(layer int) bool { return listed[layer] }
	}
	for i := range out {
		if sliding(i) {
			out[i] = size
		}
	}
	return out
}

// slidingLayers reads which layers have a window, nil if the file does not say.
func (d *description) slidingLayers(layers int) []bool {
	if types := d.strings("layer_types", layers); types != nil {
		out := make([]bool, layers)
		for i, t := range types {
			if out[i] = t == "sliding_attention"; !out[i] && t != "full_attention" {
				d.fail("layer_types", "full_attention or sliding_attention", strconv.Quote(t))
			}
		}
		return out
	}
	key, v, ok := d.find("attention.sliding_window_pattern", "", "a pattern")
	if !ok {
		return nil
	}
	if list, isList := asBools(v); isList && len(list) == layers {
		return list
	}
	n, isInt := asInt(v)
	if !isInt {
		d.fail(key, "an integer or one boolean per layer", describe(v))
	}
	out := make([]bool, max(min(layers, 1<<12), 0))
	for i := range out {
		out[i] = everyButNth(n)(i)
	}
	return out
}

// everyButNth is the pattern in which every n-th layer sees everything, and all
// others have a window: all of them for n up to 1.
func everyButNth(n int) func(layer int) bool {
	return func(layer int) bool { return n <= 1 || (layer+1)%n != 0 }
}

// from is the pattern in which the layers from the first on have a window.
func from(first int) func(layer int) bool { return func(layer int) bool { return layer >= first } }
