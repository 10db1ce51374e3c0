package model

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"ridge/weights/tensor"
)

// presence says whether a model has a weight that not every model has. The
// weights of matrices and of norms need no word: a model has them all. Nothing
// that a file has is passed over: what no layer asks for is refused, see
// checkUnused.
type presence uint8

const (
	never presence = iota // a file that has it is refused
	may                   // all layers that ask for it have it, or none; only a GGUF file leaves it open
	must
)

// Names of weights without the layer, for must and with.
var (
	qkvBias     = []string{"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_qkv.bias"}
	attnBias    = slices.Concat(qkvBias, []string{"attn_output.bias"})
	mlpBias     = []string{"ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"}
	linearBias  = slices.Concat(attnBias, mlpBias)
	normBias    = []string{"attn_norm.bias", "attn_norm_2.bias", "ffn_norm.bias", "output_norm.bias", "token_embd_norm.bias"}
	qkNorms     = []string{"attn_q_norm.weight", "attn_k_norm.weight"}
	qkNormsBias = []string{"attn_q_norm.bias", "attn_k_norm.bias"}
)

// must says that the model cannot do without weights.
func (d *description) must(names ...string) {
	for _, n := range names {
		d.present[n] = must
	}
}

// with says that the model has weights or not, as a config.json has it. A GGUF
// file may have them, and does not say so.
func (d *description) with(yes bool, names ...string) {
	for _, n := range names {
		switch {
		case !d.hf:
			d.present[n] = max(d.present[n], may)
		case yes:
			d.present[n] = must
		default:
			d.present[n] = never
		}
	}
}

// head says whether there must be an output matrix. A config.json says whether it
// is the embedding, unless the checkpoint is of a model without a head, whose
// class is named after the model alone.
func (d *description) head(a *architecture, c *Config) {
	need := a.head
	if c.Encoder.Both || d.present["cls.output.weight"] == must {
		return
	}
	if d.hf {
		need = !c.Tied
		list, _ := d.get("architectures")
		if names, _ := list.([]any); len(names) == 1 {
			name, _ := names[0].(string)
			need = need && !(strings.HasSuffix(name, "Model") && !strings.HasSuffix(name, "HeadModel"))
		}
	}
	if need {
		d.must("output.weight")
	}
}

// asked counts what was found of a weight that a model may have.
type asked struct {
	layers, found int
	first         string // that was not found
}

// optional returns a tensor that not every model has. Shape is checked unless
// rows is 0.
func (b *builder) optional(name string, rows, cols int) (tensor.Mat, bool) {
	if b.err != nil {
		return tensor.Mat{}, false
	}
	_, part, suffix := splitName(name)
	p := b.present[part+suffix]
	if p == never {
		return tensor.Mat{}, false
	}
	m, ok := b.find(name, rows, cols)
	if p == must && !ok {
		b.missing(rows, cols, name)
	}
	n := b.asked[part+suffix]
	if n.layers++; ok {
		n.found++
	} else if n.first == "" {
		n.first = name
	}
	b.asked[part+suffix] = n
	return m, ok
}

// missing fails for a tensor, known under any of the names, that is not there.
func (b *builder) missing(rows, cols int, names ...string) {
	var known []string
	for _, n := range names {
		for _, n := range b.src.names(n) {
			known = append(known, strconv.Quote(n))
		}
	}
	if len(known) == 0 {
		known = append(known, strconv.Quote(names[0]))
	}
	want := fmt.Sprintf("%d x %d", rows, cols)
	if rows == 1 {
		want = fmt.Sprintf("%d elements", cols)
	} else if rows == 0 {
		want = "it"
	}
	b.fail("tensor %s: expected %s, found none", strings.Join(known, " or "), want)
}

// spelling returns what the file calls a weight that it has.
func (b *builder) spelling(name string) string {
	if names := b.src.names(name); len(names) > 0 {
		return names[0]
	}
	return name
}

// checkUnused refuses a file with weights that the network does not use: the
// model that they belong to is another.
func (b *builder) checkUnused(a *architecture) {
	for _, name := range slices.Sorted(maps.Keys(b.asked)) {
		if n := b.asked[name]; n.found > 0 && n.found < n.layers {
			b.missing(0, 0, n.first)
		}
	}
	for _, name := range b.src.tensors() {
		if b.used[name] || a.passedOver(name) || (b.c.Encoder.Both || b.scores) && outputMatrix(name) {
			continue
		}
		if layer := b.src.layer(name); layer >= b.c.Layers+b.c.Ahead {
			b.fail("tensor %q: expected layers 0 to %d, found layer %d", name, b.c.Layers-1, layer)
			return
		} else if layer >= b.c.Layers {
			continue
		}
		b.fail("tensor %q: expected no such tensor in a model of type %s, found one", name, a.name)
		return
	}
}

// outputMatrix reports whether a tensor is the output matrix, which a model in both
// directions, or one that gives scores, has no use for.
func outputMatrix(name string) bool { return name == "lm_head.weight" || name == "output.weight" }

// passedOver are patterns of tensors without meaning for any model: frequencies
// and tables that follow from the configuration.
var passedOver = []string{
	"*.rotary_emb.inv_freq", "*.rotary_emb.cos_cached", "*.rotary_emb.sin_cached", "blk.*.attn_rot_embd.weight",
	"*.input_scale", // of activations in NVFP4, which are not taken here
}

// passedOver reports whether a tensor of a file is known to be of no use.
func (a *architecture) passedOver(name string) bool {
	match := func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }
	return slices.ContainsFunc(passedOver, match) || slices.ContainsFunc(a.unused, match)
}

// visionParts are tensors of what looks at images beside a language model.
var visionParts = []string{"*vision_tower.*", "*multi_modal_projector.*", "v.*", "mm.*"}

// soundParts are those of what hears, and of what brings either into the model.
var soundParts = []string{"*audio_tower.*", "*embed_audio.*", "*embed_vision.*", "a.*"}
