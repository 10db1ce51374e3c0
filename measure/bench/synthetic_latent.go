package bench

import (
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// synLatent is the part of a shape with latent attention and, behind a first
// dense layer, mixtures of experts.
type synLatent struct {
	rank, plainDim, ropeDim, valueDim int
	experts, used, shared, ffn        int
}

var v2Lite = &synLatent{rank: 512, plainDim: 128, ropeDim: 64, valueDim: 128, experts: 64, used: 6, shared: 2, ffn: 1408}

func (s *synthesizer) latentMetadata(arch string) {
	l := s.shape.latent
	for _, f := range []struct {
		key string
		v   int
	}{
		{"attention.q_lora_rank", 0}, {"attention.kv_lora_rank", l.rank}, {"rope.dimension_count", l.ropeDim},
		{"attention.key_length", l.rank + l.ropeDim}, {"attention.value_length", l.rank},
		{"attention.key_length_mla", l.plainDim + l.ropeDim}, {"attention.value_length_mla", l.valueDim},
		{"leading_dense_block_count", 1}, {"expert_count", l.experts}, {"expert_used_count", l.used},
		{"expert_shared_count", l.shared}, {"expert_feed_forward_length", l.ffn}, {"expert_gating_func", 1},
		{"rope.scaling.original_context_length", 4096},
	} {
		s.set(arch+f.key, uint32(f.v))
	}
	s.set(arch+"expert_weights_scale", float32(1))
	s.set(arch+"rope.scaling.type", "yarn")
	s.set(arch+"rope.scaling.factor", float32(40))
	s.set(arch+"rope.scaling.yarn_log_multiplier", float32(0.0707))
}

func (s *synthesizer) latentLayer(at string, i int) {
	h, l := s.shape, s.shape.latent
	s.norm(at + "attn_norm")
	s.matrix(at+"attn_q", "attn_q", i, h.heads*(l.plainDim+l.ropeDim), h.hidden)
	s.matrix(at+"attn_kv_a_mqa", "attn_k", i, l.rank+l.ropeDim, h.hidden)
	s.normOf(at+"attn_kv_a_norm", l.rank)
	s.stack(at+"attn_k_b", "attn_k", i, h.heads, l.rank, l.plainDim)
	s.stack(at+"attn_v_b", "attn_v", i, h.heads, l.valueDim, l.rank)
	s.matrix(at+"attn_output", "attn_output", i, h.hidden, h.heads*l.valueDim)
	s.norm(at + "ffn_norm")
	if i == 0 {
		s.matrix(at+"ffn_gate", "ffn_gate", i, h.ffn, h.hidden)
		s.matrix(at+"ffn_up", "ffn_up", i, h.ffn, h.hidden)
		s.matrix(at+"ffn_down", "ffn_down", i, h.hidden, h.ffn)
		return
	}
	s.router(at+"ffn_gate_inp", l.experts)
	s.stack(at+"ffn_gate_exps", "ffn_gate", i, l.experts, l.ffn, h.hidden)
	s.stack(at+"ffn_up_exps", "ffn_up", i, l.experts, l.ffn, h.hidden)
	s.stack(at+"ffn_down_exps", "ffn_down", i, l.experts, h.hidden, l.ffn)
	s.matrix(at+"ffn_gate_shexp", "ffn_gate", i, l.shared*l.ffn, h.hidden)
	s.matrix(at+"ffn_up_shexp", "ffn_up", i, l.shared*l.ffn, h.hidden)
	s.matrix(at+"ffn_down_shexp", "ffn_down", i, h.hidden, l.shared*l.ffn)
}

// router is the matrix that chooses experts, which all quantizations keep as
// float32.
func (s *synthesizer) router(name string, experts int) {
	bank, err := s.bank(tensor.F32)
	if err != nil {
		s.err = err
		return
	}
	s.n++
	s.add(gguf.TensorInfo{Name: name + ".weight", Type: tensor.F32, Dims: []uint64{uint64(s.shape.hidden), uint64(experts)}},
		&randomBlocks{bank: bank, block: 4, size: 4 * s.shape.hidden * experts, seed: s.seed, tensor: s.n})
}
