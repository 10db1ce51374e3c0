package compress

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// role is what a matrix is for, as far as the choice of its type goes.
type role int

const (
	other role = iota
	embedding
	query
	key
	value // also matrices of queries, keys and values together, and of latents
	attnOutput
	up
	gate
	down
	output
)

// roleOf tells a matrix's role by its name. The first that fits counts.
func roleOf(name string) role {
	switch name {
	case "output.weight":
		return output
	case "token_embd.weight", "per_layer_token_embd.weight":
		return embedding
	}
	for _, r := range []struct {
		part string
		role role
	}{
		{"attn_qkv.weight", value}, {"attn_kv_b.weight", value}, {"attn_v.weight", value}, {"attn_k.weight", key}, {"attn_q.weight", query},
		{"attn_output.weight", attnOutput}, {"ffn_up", up}, {"ffn_gate", gate}, {"ffn_down", down},
	} {
		if strings.Contains(name, r.part) {
			return r.role
		}
	}
	return other
}

// notQuantized are parts of names of matrices that stay as they are: small ones,
// routers, and those whose errors would spread.
var notQuantized = []string{
	"_norm.weight", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight", "altup", "laurel", "per_layer_model_proj", "ssm_conv1d",
	"shortconv.conv.weight", "indexer.k_proj.weight", "indexer.q_proj.weight", "time_mix_first.weight", "time_mix_w0.weight",
	"time_mix_w1.weight", "time_mix_w2.weight", "time_mix_v0.weight", "time_mix_v1.weight", "time_mix_v2.weight", "time_mix_a0.weight",
	"time_mix_a1.weight", "time_mix_a2.weight", "time_mix_g1.weight", "time_mix_g2.weight", "time_mix_decay_w1.weight",
	"time_mix_decay_w2.weight", "time_mix_lerp_fused.weight", "attn_rel_b.weight", ".position_embd", "sam.pos_embd", "sam.neck.",
	"sam.net_", ".rel_pos", ".patch_embd", ".patch_merger", "a.rvq.codebook", "mm.a.code_embd",
}

// quantizable reports whether a tensor is a matrix that may be quantized.
func quantizable(t gguf.TensorInfo) bool {
	rank := len(t.Dims)
	for rank > 1 && t.Dims[rank-1] == 1 {
		rank--
	}
	if rank < 2 || !strings.HasSuffix(t.Name, "weight") || t.Name == "position_embd.weight" || t.Name == "token_types.weight" {
		return false
	}
	for _, part := range notQuantized {
		if strings.Contains(t.Name, part) {
			return false
		}
	}
	return true
}

// Override gives the matrices whose names match Pattern a type.
type Override struct {
	Pattern *regexp.Regexp
	Type    tensor.DType
}

// shape is what the choice of types asks of a model.
type shape struct {
	arch            string
	layers, experts int
	sharing         int  // query heads to a key head
	seventy         bool // of the size that has its own rule, 70 billion weights
}

// shapeOf reads the shape from a file's metadata.
func shapeOf(f *gguf.File) shape {
	s := shape{arch: f.String("general.architecture", "")}
	s.layers = int(f.Uint(s.arch+".block_count", 0))
	s.experts = int(f.Uint(s.arch+".expert_count", 0))
	heads := firstOf(f, s.arch+".attention.head_count", 0)
	kv := firstOf(f, s.arch+".attention.head_count_kv", heads)
	if kv > 0 {
		s.sharing = heads / kv
	}
	switch s.arch {
	case "llama":
		s.seventy = s.layers == 80 && heads != kv && s.experts != 8
	case "qwen2", "deci", "olmo":
		s.seventy = s.layers == 80
	case "jais2":
		s.seventy = s.layers == 68
	}
	return s
}

// firstOf returns an integer of the metadata, of a list the first.
func firstOf(f *gguf.File, key string, def int) int {
	v, _ := f.Lookup(key)
	switch x := v.(type) {
	case []int32:
		if len(x) > 0 {
			return int(x[0])
		}
		return def
	case []uint32:
		if len(x) > 0 {
			return int(x[0])
		}
		return def
	}
	return int(f.Uint(key, uint64(def)))
}

// assigner chooses types of matrices one after the other, in the order of layers:
// some choices depend on how many of a kind came before.
type assigner struct {
	m             Mixture
	shape         shape
	tied          bool // the embedding is the output matrix too
	measured      bool // there is an importance matrix
	values        int  // matrices of role value in the model
	nthValue      int
	nthDown       int
	nthGate       int
	nthUp         int
	head, embed   *tensor.DType // asked for by the caller
	overrides     []Override
	pure          bool
	keepOutput    bool
	fallbackCount int
}

// all returns the types of the tensors of f by their names.
func (a *assigner) all(f *gguf.File) (map[string]tensor.DType, error) {
	tensors := inOrder(f)
	for _, t := range tensors {
		switch roleOf(t.Name) {
		case value:
			a.values++
		case output:
			a.tied = false
		}
	}
	types := map[string]tensor.DType{}
	for _, t := range tensors {
		to, err := a.typeOf(t)
		if err != nil {
			return nil, err
		}
		types[t.Name] = to
	}
	return types, nil
}

// inOrder returns the tensors of f: those of no layer by name, then layer after layer
// by name.
func inOrder(f *gguf.File) []gguf.TensorInfo {
	tensors := f.Tensors()
	slices.SortStableFunc(tensors, func(a, b gguf.TensorInfo) int {
		if la, lb := layerOf(a.Name), layerOf(b.Name); la != lb {
			return la - lb
		}
		return strings.Compare(a.Name, b.Name)
	})
	return tensors
}

// layerOf returns the number in "blk.N.", -1 if there is none.
func layerOf(name string) int {
	rest, ok := strings.CutPrefix(name, "blk.")
	number, _, dot := strings.Cut(rest, ".")
	if n, err := strconv.Atoi(number); ok && dot && err == nil {
		return n
	}
	return -1
}

// typeOf returns the type that a tensor gets.
func (a *assigner) typeOf(t gguf.TensorInfo) (tensor.DType, error) {
	r := roleOf(t.Name)
	if !quantizable(t) || a.keepOutput && r == output {
		return t.Type, nil
	}
	named, isNamed := a.named(t.Name)
	if r == embedding && a.embed != nil && !(isNamed && t.Name == "per_layer_token_embd.weight") {
		return *a.embed, nil
	}
	if r == output && a.head != nil {
		return *a.head, nil
	}
	if a.m.Type.BlockSize() == 1 {
		return a.m.Type, nil
	}
	typ := a.m.Type
	switch {
	case isNamed:
		typ = named
	case !a.pure:
		var err error
		if typ, err = a.mixed(t, r); err != nil {
			return 0, err
		}
	}
	return a.fallback(t, typ)
}

// named returns the type of the first override that fits.
func (a *assigner) named(name string) (tensor.DType, bool) {
	for _, o := range a.overrides {
		if o.Pattern.MatchString(name) {
			return o.Type, true
		}
	}
	return 0, false
}

// mixed returns what the mixture says of a matrix.
func (a *assigner) mixed(t gguf.TensorInfo, r role) (tensor.DType, error) {
	cols := int(t.Dims[0])
	switch {
	case r == output || r == embedding && a.tied:
		return a.outputType(cols), nil
	case a.m.in("MXFP4_MOE"):
		if len(t.Dims) > 2 && t.Dims[2] > 1 {
			return tensor.MXFP4, nil
		}
		return tensor.Q8_0, nil
	case r == embedding:
		return a.embeddingType(), nil
	case a.m.lowest():
		return a.lowestType(r), nil
	}
	switch r {
	case value:
		typ := a.valueType()
		a.nthValue++
		return typ, nil
	case key, query:
		return a.keyType(r), nil
	case attnOutput:
		return a.attnOutputType(), nil
	case down, gate, up:
		return a.ffnType(t.Name, r)
	}
	return a.m.Type, nil
}

// fallback is for rows that are no multiple of the type's block: the nearest type
// of smaller blocks, float16 if none fits.
func (a *assigner) fallback(t gguf.TensorInfo, typ tensor.DType) (tensor.DType, error) {
	cols := int(t.Dims[0])
	if cols%typ.BlockSize() == 0 {
		return typ, nil
	}
	a.fallbackCount++
	small := typ
	switch typ {
	case tensor.IQ1_S, tensor.IQ1_M, tensor.IQ2_XXS, tensor.IQ2_XS, tensor.IQ2_S, tensor.IQ3_XXS, tensor.IQ3_S, tensor.IQ4_XS:
		small = tensor.IQ4_NL
	case tensor.Q2_0, tensor.Q2_K, tensor.Q3_K, tensor.TQ1_0, tensor.TQ2_0:
		small = tensor.Q4_0
	case tensor.Q4_K:
		small = tensor.Q5_0
	case tensor.Q5_K:
		small = tensor.Q5_1
	case tensor.Q6_K:
		small = tensor.Q8_0
	default:
		if typ.BlockSize() > 32 {
			return 0, fmt.Errorf("compress: tensor %q: rows of %d values: expected a multiple of %d for %s, which has no smaller kin",
				t.Name, cols, typ.BlockSize(), typ)
		}
	}
	if cols%small.BlockSize() != 0 {
		return tensor.F16, nil
	}
	return small, nil
}

// needsImportance reports whether a matrix of type typ is of no use without an
// importance matrix.
func (a *assigner) needsImportance(t gguf.TensorInfo, typ tensor.DType) bool {
	if r := roleOf(t.Name); r == embedding || r == output {
		return false
	}
	switch typ {
	case tensor.IQ1_S, tensor.IQ1_M, tensor.IQ2_XXS, tensor.IQ2_XS, tensor.IQ2_S, tensor.IQ3_XXS:
		return true
	case tensor.Q2_K:
		return a.m.in("Q2_K_S")
	}
	return false
}
