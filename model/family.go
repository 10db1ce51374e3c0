package model

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"ridge/nn"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// family is one architecture: how its configuration is read from either kind
// of file, and where its weights lie in a Hugging Face checkpoint. Each family
// has a file of its own, which registers it.
type family struct {
	arch   string   // GGUF's name
	hf     []string // model_type values of config.json
	gguf   func(*ggufMeta, *Config)
	config func(*hfMeta, *Config)
	layout hfLayout
}

// hfLayout maps GGUF names to those of a Hugging Face checkpoint.
type hfLayout struct {
	layers string // prefix of a layer, such as "layers."
	// names maps a part of a GGUF name ("attn_q", "token_embd") to the HF name,
	// or names to try ("a|b"), or vectors to stack ("a.#", numbered from 0).
	names map[string]string
	// fix returns how a weight is changed on the way, or nil. part is as in
	// names; bias tells the weight from the bias.
	fix func(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error)
}

var (
	byArch = map[string]*family{}
	byHF   = map[string]*family{}
)

func register(f *family) {
	byArch[f.arch] = f
	for _, t := range f.hf {
		byHF[t] = f
	}
}

// Architectures returns the names of the architectures that Open knows, as
// GGUF spells them, sorted.
func Architectures() []string {
	var names []string
	for a := range byArch {
		names = append(names, a)
	}
	sort.Strings(names)
	return names
}

// readGGUF fills c with what all architectures keep under the same keys, and
// then with what is particular to f.
func (f *family) readGGUF(m *ggufMeta, c *Config) {
	c.Arch = f.arch
	c.Hidden = m.int("embedding_length", required)
	c.Layers = m.int("block_count", required)
	c.Heads = m.int("attention.head_count", required)
	c.KVHeads = m.perLayer("attention.head_count_kv", c.Layers, c.Heads)
	c.HeadDim = m.int("attention.key_length", 0)
	c.FFN = m.int("feed_forward_length", required)
	c.Context = m.int("context_length", required)
	c.NormEps = float32(m.float("attention.layer_norm_rms_epsilon", m.float("attention.layer_norm_epsilon", 1e-5)))
	c.RopeDim = m.int("rope.dimension_count", 0)
	if v := m.int("attention.value_length", c.HeadDim); v != c.HeadDim && c.HeadDim != 0 {
		m.fail(f.arch+".attention.value_length", fmt.Sprintf("%d as the key length", c.HeadDim), v)
	}
	r := RopeConfig{Base: m.float("rope.freq_base", 10000)}
	s := &r.Scaling
	s.Kind = m.str("rope.scaling.type", "")
	s.Factor = m.float("rope.scaling.factor", m.float("rope.scale_linear", 1))
	if s.Kind == "none" || s.Kind == "" && s.Factor == 1 {
		s.Kind = ""
	} else if s.Kind == "" {
		s.Kind = "linear"
	}
	s.Original = m.int("rope.scaling.original_context_length", c.Context)
	s.AttnFactor = m.float("rope.scaling.yarn_attn_factor", m.float("rope.scaling.attn_factor", 0))
	s.BetaFast, s.BetaSlow = m.float("rope.scaling.yarn_beta_fast", 32), m.float("rope.scaling.yarn_beta_slow", 1)
	switch s.Kind {
	case "", "linear", "yarn", "longrope":
	default:
		m.fail(f.arch+".rope.scaling.type", "none, linear, yarn or longrope", s.Kind)
	}
	c.Rope = []RopeConfig{r}
	f.gguf(m, c)
}

// readHF does the same from a config.json.
func (f *family) readHF(h *hfMeta, c *Config) {
	c.Arch = f.arch
	c.Vocab = h.int(required, "vocab_size")
	c.Hidden = h.int(required, "hidden_size", "n_embd", "d_model")
	c.Layers = h.int(required, "num_hidden_layers", "n_layer", "n_layers")
	c.Heads = h.int(required, "num_attention_heads", "n_head", "n_heads")
	c.KVHeads = everyLayer(c.Layers, h.int(c.Heads, "num_key_value_heads"))
	c.HeadDim = h.int(0, "head_dim")
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	c.FFN = h.int(4*c.Hidden, "intermediate_size", "n_inner", "ffn_hidden_size")
	c.Context = h.int(2048, "max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
	c.NormEps = float32(h.float(1e-5, "rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_epsilon"))
	c.Tied = h.bool(false, "tie_word_embeddings")
	part := h.float(1, "partial_rotary_factor", "rotary_pct")
	if o, ok := h.object("rope_parameters"); ok {
		part = (&hfMeta{path: h.path, m: o}).float(part, "partial_rotary_factor")
	}
	if part != 1 {
		c.RopeDim = int(float64(c.HeadDim) * part)
	}
	c.Rope = []RopeConfig{hfRope(h, c, h.m)}
	f.config(h, c)
	f.activation(h, c)
}

// activation honours the function that a config.json names. Gemma's early
// files name another than the model was trained with.
func (f *family) activation(h *hfMeta, c *Config) {
	name := h.str("", "hidden_act", "activation_function", "activation")
	if name == "" || strings.HasPrefix(f.arch, "gemma") {
		return
	}
	acts := map[string]nn.Activation{
		"silu": nn.SiLU, "swish": nn.SiLU, "relu": nn.ReLU, "gelu": nn.GELUErf,
		"gelu_new": nn.GELUTanh, "gelu_fast": nn.GELUTanh, "gelu_pytorch_tanh": nn.GELUTanh,
	}
	act, ok := acts[name]
	if !ok {
		h.fail("hidden_act", "silu, relu, gelu or gelu_new", strconv.Quote(name))
	}
	c.Act = act
}

// hfRope reads a set of rotary frequencies: rope_theta and rope_scaling of
// older configurations, rope_parameters of newer ones.
func hfRope(h *hfMeta, c *Config, m map[string]any) RopeConfig {
	sub := &hfMeta{path: h.path, m: m}
	r := RopeConfig{Base: sub.float(10000, "rope_theta", "rotary_emb_base")}
	o, ok := sub.object("rope_parameters")
	if !ok {
		o, ok = sub.object("rope_scaling")
	}
	if !ok {
		return r
	}
	p := &hfMeta{path: h.path + ": rope_scaling", m: o}
	r.Base = p.float(r.Base, "rope_theta")
	s := &r.Scaling
	switch s.Kind = p.str("", "rope_type", "type"); s.Kind {
	case "default":
		s.Kind = ""
	case "su":
		s.Kind = "longrope"
	case "", "linear", "llama3", "yarn", "longrope", "dynamic":
	default:
		p.fail("rope_type", "default, linear, dynamic, llama3, yarn or longrope", s.Kind)
	}
	s.Factor = p.float(1, "factor")
	s.Original = p.int(sub.int(h.int(c.Context, "original_max_position_embeddings"), "original_max_position_embeddings"), "original_max_position_embeddings")
	s.LowFreq, s.HighFreq = p.float(1, "low_freq_factor"), p.float(4, "high_freq_factor")
	s.BetaFast, s.BetaSlow = p.float(32, "beta_fast"), p.float(1, "beta_slow")
	s.AttnFactor = p.float(0, "attention_factor")
	s.MScale, s.MScaleAll = p.float(0, "mscale"), p.float(0, "mscale_all_dim")
	s.NoTruncate = !p.bool(true, "truncate")
	s.Short, s.Long = floats(o["short_factor"]), floats(o["long_factor"])
	if s.Kind == "longrope" && s.Original > 0 && p.m["factor"] == nil {
		s.Factor = float64(c.Context) / float64(s.Original)
	}
	if h.err == nil {
		h.err = p.err
	}
	return r
}

func floats(v any) []float32 {
	list, _ := v.([]any)
	var out []float32
	for _, x := range list {
		f, _ := x.(float64)
		out = append(out, float32(f))
	}
	return out
}

// hfRoots are the prefixes under which checkpoints put the language model.
var hfRoots = []string{"model.", "language_model.model.", "model.language_model.", "transformer.", "gpt_neox.", ""}

// open returns the weights of a Hugging Face checkpoint under GGUF's names.
func (l *hfLayout) open(st *safetensors.File, dir string, c *Config) source {
	has := map[string]bool{}
	for _, t := range st.Tensors() {
		has[t.Name] = true
	}
	root := ""
	for _, r := range hfRoots {
		if has[r+l.names["token_embd"]+".weight"] {
			root = r
			break
		}
	}
	at := func(name string) hfTensor {
		layer, part, suffix := splitName(name)
		hf, ok := l.names[part]
		if !ok {
			return hfTensor{}
		}
		for _, hf := range strings.Split(hf, "|") {
			full := root + hf + suffix
			if layer >= 0 {
				full = root + l.layers + strconv.Itoa(layer) + "." + hf + suffix
			}
			if before, after, ok := strings.Cut(full, "#"); ok {
				var stack []string
				for has[before+strconv.Itoa(len(stack))+after] {
					stack = append(stack, before+strconv.Itoa(len(stack))+after)
				}
				return hfTensor{stack: stack}
			}
			if layer < 0 && !has[full] {
				full = hf + suffix // output matrices often lie outside the root
			}
			if !has[full] {
				continue
			}
			t := hfTensor{name: full}
			if l.fix != nil {
				t.fix = l.fix(c, layer, part, suffix == ".bias")
			}
			return t
		}
		return hfTensor{}
	}
	return &hfSource{st: st, dir: dir, at: at}
}

// splitName takes a GGUF name such as "blk.3.attn_q.weight" apart. layer is -1
// for names outside the layers.
func splitName(name string) (layer int, part, suffix string) {
	layer = -1
	if rest, ok := strings.CutPrefix(name, "blk."); ok {
		n, after, _ := strings.Cut(rest, ".")
		if i, err := strconv.Atoi(n); err == nil {
			layer, name = i, after
		}
	}
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return layer, name[:i], name[i:]
	}
	return layer, name, ""
}

// llamaNames are the names that most Hugging Face architectures share.
func llamaNames(more map[string]string) map[string]string {
	names := map[string]string{
		"token_embd": "embed_tokens", "output_norm": "norm", "output": "lm_head",
		"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
		"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
		"attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
		"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
	}
	for k, v := range more {
		if v == "" {
			delete(names, k)
		} else {
			names[k] = v
		}
	}
	return names
}
