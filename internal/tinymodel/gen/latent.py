"""Tiny models of families with latent attention, and of their ancestor without."""
import deepseek  # noqa: F401: its classes are registered
from base import BASE, family

# Two layers, the second with experts. A rank is a multiple of 64.
LATENT = {**BASE, "hidden_size": 32, "intermediate_size": 24, "num_attention_heads": 2, "num_key_value_heads": 2,
          "max_position_embeddings": 256, "kv_lora_rank": 64, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16,
          "torch_dtype": "bfloat16", "rms_norm_eps": 1e-6, "tie_word_embeddings": True}
EXPERTS = {"moe_intermediate_size": 8, "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 1,
           "first_k_dense_replace": 1}
YARN = {"type": "yarn", "factor": 8.0, "original_max_position_embeddings": 32, "beta_fast": 32.0, "beta_slow": 1.0}

v2 = family("DeepseekV2ForCausalLM", "deepseek_v2", {**LATENT, **EXPERTS, "q_lora_rank": None, "topk_method": "greedy",
                                                   "routed_scaling_factor": 1.5, "n_shared_experts": 2})
v3 = family("DeepseekV3ForCausalLM", "deepseek_v3", {**LATENT, **EXPERTS, "q_lora_rank": 24, "n_group": 4, "topk_group": 2,
                                                   "routed_scaling_factor": 2.5, "num_mtp_layers": 0,
                                                   "scoring_func": "sigmoid", "topk_method": "noaux_tc"})
glm = family("Glm4MoeLiteForCausalLM", "glm4_moe_lite", {
    **LATENT, **{k: v for k, v in EXPERTS.items() if k != "first_k_dense_replace"}, "q_lora_rank": 24, "routed_scaling_factor": 1.8,
    "scoring_func": "sigmoid"})
youtu = family("YoutuForCausalLM", "youtu", {**LATENT, "q_lora_rank": 24})
minicpm3 = family("MiniCPM3ForCausalLM", "minicpm3", {**LATENT, "q_lora_rank": 24, "v_head_dim": 16, "scale_emb": 12, "scale_depth": 1.4,
                                                    "dim_model_base": 256}, embed_std=0.05)
v1 = family("DeepseekForCausalLM", "deepseek", {
    **BASE, **EXPERTS, "intermediate_size": 32, "max_position_embeddings": 256, "torch_dtype": "bfloat16", "rms_norm_eps": 1e-6,
    "num_attention_heads": 2, "num_key_value_heads": 2, "n_shared_experts": 2, "tie_word_embeddings": False})
LONG = {"type": "longrope", "original_max_position_embeddings": 256, "short_factor": [1.0, 1.5, 2.0, 3.0],
        "long_factor": [2.0, 3.0, 4.0, 6.0]}

CASES = [
    v1("deepseek", "V1: a dense layer, then small experts, two of them shared", prompt=200),
    v1("deepseek-norm", "experts in every second layer, weights that sum to 1, one kv head, biases, tied", {
        "norm_topk_prob": True, "moe_layer_freq": 2, "num_hidden_layers": 3, "first_k_dense_replace": 0, "num_key_value_heads": 1, "n_shared_experts": 1,
        "attention_bias": True, "tie_word_embeddings": True}, gguf=False),
    v2("deepseek2", "V2-Lite: queries without a low rank, a softmax over all experts, yarn with both of DeepSeek's factors", {
        "rope_scaling": {**YARN, "mscale": 0.707, "mscale_all_dim": 0.707}}, prompt=200),
    v2("deepseek2-groups", "V2: queries of a low rank, experts of the two best of four groups, biases, two factors of yarn", {
        "q_lora_rank": 24, "topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2, "num_experts_per_tok": 2,
        "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False,
        "rope_scaling": {**YARN, "mscale": 1.5, "mscale_all_dim": 0.5}}, gguf=False),
    v3("deepseek3", "V3: sigmoids with a bias, groups by their two best experts, weights that sum to the scaling factor, yarn", {
        "rope_scaling": {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}}, prompt=200),
    v3("deepseek3-plain", "Moonlight: one group, queries without a low rank, halves that are rotated, weights as they are", {
        "q_lora_rank": None, "n_group": 1, "topk_group": 1, "norm_topk_prob": False, "rope_interleave": False,
        "attention_bias": True, "tie_word_embeddings": False}, gguf=False),
    glm("glm4-flash", "GLM 4.7 Flash: a dense layer, then sigmoids with a bias", {"first_k_dense_replace": 1}, prompt=200),
    glm("glm4-flash-types", "the layers with experts by name, untied", {
        "mlp_layer_types": ["sparse", "dense"], "tie_word_embeddings": False}, gguf=False),
    youtu("youtu", "no experts, queries of a low rank", {"rope_theta": 50000.0}),
    minicpm3("minicpm3", "scaled embeddings, residuals and logits, divided frequencies", {"rope_scaling": LONG}, prompt=200),
    minicpm3("minicpm3-plain", "no low rank of queries, other scales, biases", {
        "q_lora_rank": None, "scale_emb": 3, "scale_depth": None, "dim_model_base": 16, "attention_bias": True, "mlp_bias": True,
        "v_head_dim": 32, "tie_word_embeddings": False}, embed_std=0.3, gguf=False),
]
