"""Tiny models of families whose layers keep a state of fixed size."""
import functools

import numpy as np
import torch

from base import BASE, family

# prompt: long enough for states to forget.
OPTIONS = {"prompt": 200}
STATE = {"vocab_size": 128, "hidden_size": 32, "num_hidden_layers": 2, "torch_dtype": "bfloat16", "tie_word_embeddings": True}
MIXED = {**BASE, **STATE, "max_position_embeddings": 256, "intermediate_size": 48, "num_attention_heads": 2, "num_key_value_heads": 1}


@functools.cache
def rates():
    """Logarithms of rates of decay whose exponential torch rounds right: a GGUF file has the exponentials."""
    x = torch.arange(-128, 129, dtype=torch.float32) / 64
    return x[torch.exp(x) == torch.from_numpy(np.exp(x.double().numpy()).astype(np.float32))]


def values(name, r):
    """Returns values of a recurrent layer's own tensors, None for others: states that last for some tens of tokens."""
    if name.endswith("A_log"):
        kept = rates()
        return kept[torch.argmin((r[..., None] - kept).abs(), dim=-1)]
    if name.endswith(("dt_proj.bias", "dt_bias")):
        return 0.7 * r - 2
    if name.endswith(("mixer.D", "mamba.D")):
        return 0.25 * r + 1
    if name.endswith("linear_attn.norm.weight"):
        return 0.25 * r + 1
    if name.endswith("recurrent_param"):
        return 0.5 * r - 3
    if "rg_lru" in name:
        return (0.3 if name.endswith("bias") else 0.6) * r
    if name.endswith("time_decay"):
        return 0.8 * r - 2
    if name.endswith("time_first"):
        return 0.5 * r
    if ".time_mix_" in name:
        return torch.sigmoid(r)
    if name.endswith(("conv1d.weight", "conv_1d.weight")):
        return 0.5 * r
    return None


mamba = family("MambaForCausalLM", "mamba", {
    **STATE, "state_size": 16, "expand": 2, "conv_kernel": 4, "time_step_rank": 4, "use_bias": False, "use_conv_bias": True,
    "layer_norm_epsilon": 1e-5, "intermediate_size": 64}, generate=True, **OPTIONS)
falcon = family("FalconMambaForCausalLM", "falcon_mamba", {
    **STATE, "state_size": 16, "expand": 2, "conv_kernel": 4, "time_step_rank": 8, "use_bias": False, "use_conv_bias": True,
    "layer_norm_epsilon": 1e-5, "mixer_rms_eps": 1e-5, "intermediate_size": 64}, generate=True, **OPTIONS)
jamba = family("JambaForCausalLM", "jamba", {
    **MIXED, "num_hidden_layers": 3, "intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2, "attn_layer_period": 3,
    "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1, "mamba_d_state": 8, "mamba_d_conv": 4,
    "mamba_expand": 2, "mamba_dt_rank": 4, "mamba_conv_bias": True, "mamba_proj_bias": False, "rms_norm_eps": 1e-6,
    "use_mamba_kernels": False}, **OPTIONS)
MAMBA2 = {**STATE, "state_size": 16, "expand": 2, "conv_kernel": 4, "num_heads": 4, "head_dim": 16, "n_groups": 2,
          "use_bias": False, "use_conv_bias": True, "layer_norm_epsilon": 1e-5, "chunk_size": 16}
mamba2 = family("Mamba2ForCausalLM", "mamba2", MAMBA2, generate=True, **OPTIONS)
SSD = {"mamba_n_heads": 4, "mamba_n_groups": 1, "mamba_d_state": 16, "mamba_d_head": 16, "mamba_d_conv": 4, "mamba_expand": 2,
       "mamba_chunk_size": 16, "mamba_conv_bias": True, "mamba_proj_bias": False}
granite = family("GraniteMoeHybridForCausalLM", "granitemoehybrid", {
    **MIXED, **SSD, "hidden_act": "silu", "rms_norm_eps": 1e-5, "embedding_multiplier": 3.0, "residual_multiplier": 0.7,
    "attention_multiplier": 0.6, "logits_scaling": 2.0, "attention_bias": False, "num_local_experts": 0, "num_experts_per_tok": 0,
    "intermediate_size": 32, "shared_intermediate_size": 32, "position_embedding_type": "nope", "num_hidden_layers": 3,
    "layer_types": ["mamba", "attention", "mamba"]}, **OPTIONS)
bamba = family("BambaForCausalLM", "bamba", {
    **MIXED, **SSD, "hidden_act": "silu", "rms_norm_eps": 1e-5, "attention_bias": False, "mlp_bias": False, "rope_theta": 10000.0,
    "attn_layer_indices": [1]}, gguf=False, generate=True, **OPTIONS)
MULTIPLIERS = {"embedding_multiplier": 2.0, "lm_head_multiplier": 0.5, "key_multiplier": 0.5, "attention_in_multiplier": 2.0,
               "attention_out_multiplier": 0.5, "ssm_in_multiplier": 0.5, "ssm_out_multiplier": 2.0, "mlp_multipliers": [2.0, 0.5],
               "ssm_multipliers": [0.5, 2.0, 2.0, 0.5, 2.0]}
falcon_h1 = family("FalconH1ForCausalLM", "falcon_h1", {
    **MIXED, **SSD, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "head_dim": 16, "mamba_d_ssm": 32, "mamba_n_groups": 2,
    "mamba_n_heads": 2, "mamba_d_state": 8, "intermediate_size": 32,
    "tie_word_embeddings": False, **MULTIPLIERS}, generate=True, **OPTIONS)
nemotron_h = family("NemotronHForCausalLM", "nemotron_h", {
    **MIXED, "num_hidden_layers": 4, "hybrid_override_pattern": "M-*M", "head_dim": 16, "layer_norm_epsilon": 1e-5,
    "mlp_hidden_act": "relu2", "ssm_state_size": 8, "mamba_num_heads": 4, "mamba_head_dim": 16, "n_groups": 2, "conv_kernel": 4,
    "time_step_min": 1e-12, "use_conv_bias": True, "use_bias": False, "attention_bias": False, "mlp_bias": False, "chunk_size": 16, "tie_word_embeddings": False},
    generate=True, **OPTIONS)
recurrent_gemma = family("RecurrentGemmaForCausalLM", "recurrent_gemma", {
    **MIXED, "num_hidden_layers": 3, "attention_window_size": 16, "lru_width": 32, "conv1d_width": 4, "logits_soft_cap": 30.0,
    "rms_norm_eps": 1e-6, "hidden_activation": "gelu_pytorch_tanh", "block_types": ["recurrent", "attention"]},
    gguf=False, norm_plus_one=True, embed_std=0.15, generate="again", **OPTIONS)
DELTA = {**MIXED, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "head_dim": 16, "attention_bias": False,
         "linear_conv_kernel_dim": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 16, "linear_num_key_heads": 2,
         "linear_num_value_heads": 4, "layer_types": ["linear_attention", "full_attention"]}
qwen3next = family("Qwen3NextForCausalLM", "qwen3_next", {
    **DELTA, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
    "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": []}, no_mtp=True, norm_plus_one=True, generate=True, **OPTIONS)
qwen35 = family("Qwen3_5ForCausalLM", "qwen3_5_text", DELTA, no_mtp=True, norm_plus_one=True, generate=True, **OPTIONS)
qwen35moe = family("Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", {
    **{k: v for k, v in DELTA.items() if k != "intermediate_size"}, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16}, no_mtp=True, norm_plus_one=True, generate=True, **OPTIONS)
rwkv = family("RwkvForCausalLM", "rwkv", {
    **STATE, "num_hidden_layers": 3, "attention_hidden_size": 32, "intermediate_size": 48, "layer_norm_epsilon": 1e-5, "rescale_every": 6,
    "tie_word_embeddings": False}, gguf=False, generate="again", **OPTIONS)

CASES = [
    mamba("mamba", "selective state-space layers alone"),
    mamba("mamba-bias", "biases, a sum of three rows without, fewer states, untied, a rank that follows from the width", {
        "use_bias": True, "use_conv_bias": False, "conv_kernel": 3, "state_size": 5, "time_step_rank": "auto",
        "tie_word_embeddings": False}, gguf=False),
    falcon("falcon-mamba", "time steps, what is written and what is read are normalized"),
    jamba("jamba", "attention without positions in the second of three layers, which has experts"),
    jamba("jamba-dense", "no experts, biases, untied", {
        "num_experts": 1, "num_experts_per_tok": 1, "mamba_proj_bias": True, "mamba_conv_bias": False, "mamba_dt_rank": "auto",
        "num_hidden_layers": 2, "attn_layer_period": 2, "tie_word_embeddings": False}, gguf=False),
    mamba2("mamba2", "state-space layers whose heads share rates of decay, in two groups"),
    mamba2("mamba2-bias", "biases, a sum of three rows without, one group, untied, limits of time steps", {
        "use_bias": True, "use_conv_bias": False, "conv_kernel": 3, "state_size": 12, "n_groups": 1, "num_heads": 2, "head_dim": 32,
        "time_step_limit": [0.05, 0.2], "tie_word_embeddings": False}, gguf=False, generate="again"),
    granite("granitehybrid", "no experts, attention without positions in the second of three layers",
            hparams={"layer_types": ["mamba", "attention", "mamba"]}),
    granite("granitehybrid-moe", "experts, positions, biases, untied", {
        "num_hidden_layers": 2, "layer_types": ["attention", "mamba"], "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 16,
        "position_embedding_type": "rope", "rope_theta": 10000.0, "attention_bias": True, "mamba_proj_bias": True,
        "mamba_conv_bias": False, "mamba_n_groups": 2, "tie_word_embeddings": False}, gguf=False),
    bamba("bamba", "half of a head is rotated in the second of two layers"),
    bamba("bamba-bias", "biases, untied, another base", {
        "attention_bias": True, "mlp_bias": True, "mamba_proj_bias": True, "mamba_conv_bias": False, "rope_theta": 500.0,
        "mamba_n_groups": 2, "tie_word_embeddings": False}),
    falcon_h1("falcon-h1", "attention and a state-space mixer side by side, powers of two as multipliers"),
    falcon_h1("falcon-h1-norm", "a norm before the gate, other multipliers, biases, a width of its own, tied", {
        "num_hidden_layers": 1, "mamba_rms_norm": True, "mamba_norm_before_gate": True, "embedding_multiplier": 1.7, "lm_head_multiplier": 0.6,
        "key_multiplier": 0.4, "attention_in_multiplier": 1.2, "attention_out_multiplier": 0.9, "ssm_in_multiplier": 1.3,
        "ssm_out_multiplier": 0.7, "mlp_multipliers": [0.8, 1.1], "ssm_multipliers": [0.7, 1.2, 0.8, 0.9, 1.1], "attention_bias": True,
        "mlp_bias": True, "mamba_proj_bias": True, "projectors_bias": True, "mamba_conv_bias": False, "mamba_d_ssm": 48,
        "mamba_d_head": "auto", "mamba_n_heads": 3, "mamba_n_groups": 1, "tie_word_embeddings": True}, gguf=False),
    falcon_h1("falcon-h1-after", "a norm behind the gate, no multipliers, the width that follows from another", {
        "num_hidden_layers": 1, "mamba_rms_norm": True, "mamba_norm_before_gate": False, "mamba_d_ssm": None, "mamba_n_heads": 4,
        "tie_word_embeddings": True}, drop=MULTIPLIERS, gguf=False),
    nemotron_h("nemotron-h", "layers of a state-space mixer, an MLP or attention without positions alone", unsaid=["num_experts_per_tok"]),
    nemotron_h("nemotron-h-moe", "experts, a list of layers, biases, one group", {
        "layers_block_type": ["linear_attention", "moe", "full_attention", "moe"], "n_routed_experts": 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": 16, "moe_shared_expert_intermediate_size": 24, "routed_scaling_factor": 1.5, "n_group": 2, "topk_group": 1,
        "n_groups": 1, "use_conv_bias": False, "use_bias": True, "mlp_bias": True}, drop=["hybrid_override_pattern", "intermediate_size", "num_hidden_layers"], gguf=False),
    recurrent_gemma("recurrent-gemma", "recurrent blocks around attention with a window"),
    recurrent_gemma("recurrent-gemma-wide", "states wider than the model, biases of attention, all of a head is rotated", {
        "num_hidden_layers": 2, "lru_width": 64, "attention_bias": True, "partial_rotary_factor": 1.0, "logits_soft_cap": 8.0,
        "tie_word_embeddings": False}),
    qwen3next("qwen3next", "the gated delta rule, two heads of values for one of keys, then attention with a gate; experts"),
    qwen3next("qwen3next-dense", "no experts in the first layer, biases, untied, half of a head is rotated", {
        "mlp_only_layers": [0], "attention_bias": True, "partial_rotary_factor": 0.5, "linear_num_value_heads": 2,
        "linear_conv_kernel_dim": 3, "tie_word_embeddings": False}, gguf=False),
    qwen35("qwen35", "no experts, projections apart"),
    qwen35moe("qwen35moe", "experts in every layer"),
    rwkv("rwkv4", "RWKV-4: means of values before, weighted by keys that fade"),
    rwkv("rwkv4-wide", "widths that follow from the model's, two layers", {"num_hidden_layers": 2, "hidden_size": 48}, drop=["attention_hidden_size", "intermediate_size"]),
]
