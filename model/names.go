package model

import (
	"strconv"
	"strings"

	"ridge/weights/tensor"
)

// hfNames maps GGUF's names of weights to those of a Hugging Face checkpoint.
type hfNames struct {
	layers string // prefix of a layer, such as "layers.", or prefixes to try ("a|b")
	// home is the one of hfRoots that checkpoints of the family have, if that is not
	// "model.": it is written so.
	home string
	// names maps a part of a GGUF name ("attn_q", "token_embd") to the HF name,
	// or names to try ("a|b"), or vectors to stack ("a.#", numbered from 0). In the
	// entry of a numbered part ("ffn_up_exps.#") the # is the number, and that of a
	// part with its suffix ("exp_probs_b.bias") is a whole name.
	names map[string]string
	// fix returns how a weight is changed on the way, or nil. part is as in
	// names; bias tells the weight from the bias.
	fix func(c *Config, layer int, part string, bias bool) func(tensor.Mat) (tensor.Mat, error)
}

// hfRoots are the prefixes under which checkpoints put the language model.
var hfRoots = []string{"model.", "language_model.model.", "model.language_model.", "transformer.", "gpt_neox.", "backbone.", "rwkv.", "",
	"bert.", "roberta.", "distilbert.", "mpnet.", "nomic_bert."}

// hfOutside are the prefixes of what lies outside of the root, such as output
// matrices.
var hfOutside = []string{"", "language_model."}

// open returns the weights of a Hugging Face checkpoint under GGUF's names.
func (l *hfNames) open(st hfFiles, dir string, c *Config) source {
	has := map[string]bool{}
	for _, t := range st.Tensors() {
		has[t.Name] = true
	}
	return &hfSource{st: st, dir: dir,
		at:    func(name string) hfTensor { return l.at(name, has, c) },
		depth: func(name string) int { return l.layerOf(name, l.root(has)) }}
}

// root returns the prefix under which a checkpoint has the language model.
func (l *hfNames) root(has map[string]bool) string {
	for _, r := range hfRoots {
		if has[r+l.names["token_embd"]+".weight"] {
			return r
		}
	}
	return hfRoots[0]
}

// layerOf returns the layer of a tensor, -1 if it lies in none.
func (l *hfNames) layerOf(name, root string) int {
	for prefix := range strings.SplitSeq(l.layers, "|") {
		rest, ok := strings.CutPrefix(name, root+prefix)
		if !ok {
			continue
		}
		n, _, _ := strings.Cut(rest, ".")
		if i, err := strconv.Atoi(n); err == nil {
			return i
		}
	}
	return -1
}

// at says where a weight lies, or would lie, in a checkpoint of the tensors has.
func (l *hfNames) at(name string, has map[string]bool, c *Config) (t hfTensor) {
	layer, part, suffix := splitName(name)
	bias := suffix == ".bias"
	hf, ok := l.names[part+suffix]
	if ok {
		suffix = "" // it is the whole name
	} else if hf, ok = l.names[part]; !ok {
		dot := strings.LastIndexByte(part, '.')
		if hf, ok = l.names[part[:dot+1]+"#"]; ok {
			hf = strings.ReplaceAll(hf, "#", part[dot+1:])
		} else if !strings.HasPrefix(part, densePart) {
			return t
		} else {
			hf = part
		}
	}
	for _, full := range l.spellings(hf, suffix, layer, l.root(has)) {
		if before, after, ok := strings.Cut(full, "#"); ok {
			t = hfTensor{stack: true}
			at := func(n int) string { return before + strconv.Itoa(n) + after }
			for n := 0; n == 0 || has[at(n)] || has[at(n+1)]; n++ {
				t.names = append(t.names, at(n))
			}
			t.found = has[t.names[0]]
			return t
		}
		if t.found = has[full]; t.found {
			t.names = []string{full}
			break
		}
		t.names = append(t.names, full)
	}
	if l.fix != nil {
		t.fix = l.fix(c, layer, part, bias)
	}
	return t
}

// spellings returns the names that a weight may have.
func (l *hfNames) spellings(hf, suffix string, layer int, root string) (full []string) {
	for hf := range strings.SplitSeq(hf, "|") {
		if layer >= 0 {
			for prefix := range strings.SplitSeq(l.layers, "|") {
				full = append(full, root+prefix+strconv.Itoa(layer)+"."+hf+suffix)
			}
			continue
		}
		full = append(full, root+hf+suffix)
		for _, outside := range hfOutside {
			if outside != root {
				full = append(full, outside+hf+suffix)
			}
		}
	}
	return full
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
		"ffn_gate_inp": "mlp.gate", "exp_probs_b.bias": "mlp.gate.e_score_correction_bias", "ffn_gate_exps.#": "mlp.experts.#.gate_proj",
		"ffn_up_exps.#": "mlp.experts.#.up_proj", "ffn_down_exps.#": "mlp.experts.#.down_proj",
		"ffn_gate_shexp": "mlp.shared_experts.gate_proj", "ffn_up_shexp": "mlp.shared_experts.up_proj",
		"ffn_down_shexp": "mlp.shared_experts.down_proj", "cls.output": "score",
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
