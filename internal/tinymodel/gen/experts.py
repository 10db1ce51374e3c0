"""Tiny models of families with experts, and of their dense relatives."""
from base import BASE, WINDOW, family

HALF = {"torch_dtype": "bfloat16", "max_position_embeddings": 256}    # exact all the same, and half the size
DENSE = {**BASE, **HALF, "intermediate_size": 32, "num_key_value_heads": 1, "hidden_act": "silu", "rms_norm_eps": 1e-5,
         "rope_theta": 10000.0, "attention_bias": False, "tie_word_embeddings": True, "pad_token_id": 0}
MOE = {**DENSE, "moe_intermediate_size": 16}
DEEPSEEK = {**MOE, "num_experts_per_tok": 2, "n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 1, "norm_topk_prob": True,
            "routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1}
GROUPS = {"n_group": 2, "topk_group": 1, "routed_scaling_factor": 1.5, "norm_topk_prob": False, "n_shared_experts": 2,
          "first_k_dense_replace": 0}

glm4 = family("Glm4ForCausalLM", "glm4", {
    **DENSE, "head_dim": 16, "num_attention_heads": 2, "attention_bias": True, "rms_norm_eps": 1.5625e-07,
    "partial_rotary_factor": 0.5})
glm4moe = family("Glm4MoeForCausalLM", "glm4_moe", {
    **DEEPSEEK, "head_dim": 16, "num_attention_heads": 2, "attention_bias": True, "use_qk_norm": False,
    "partial_rotary_factor": 0.5, "tie_word_embeddings": False})
ernie = family("Ernie4_5ForCausalLM", "ernie4_5", {**DENSE, "head_dim": 16, "use_bias": False, "rope_theta": 500000.0}, )
erniemoe = family("Ernie4_5_MoeForCausalLM", "ernie4_5_moe", {
    **MOE, "moe_num_experts": 4, "moe_k": 2, "moe_num_shared_experts": 2, "moe_layer_start_index": 1, "moe_layer_end_index": -1,
    "moe_layer_interval": 1, "use_bias": False, "rope_theta": 500000.0})
dots1 = family("Dots1ForCausalLM", "dots1", {**DEEPSEEK, "head_dim": 16, "num_attention_heads": 2, "sliding_window": None,
                                             "max_window_layers": 2})
minimax = family("MiniMaxM2ForCausalLM", "minimax_m2", {
    **MOE, "num_experts_per_tok": 2, "head_dim": 16, "num_attention_heads": 2, "rotary_dim": 8, "num_local_experts": 4, "intermediate_size": 16})

CASES = [
    glm4("glm4", "norms before and after, half a head rotated, biases; 200 tokens", prompt=200),
    glm4("glm4-bare", "no biases, a whole head rotated, untied", {
        "attention_bias": False, "partial_rotary_factor": 1.0, "tie_word_embeddings": False}),
    glm4moe("glm4moe", "sigmoid router with a bias, a shared expert, a dense layer first; 200 tokens", prompt=200),
    glm4moe("glm4moe-qknorm", "norms of queries and keys, no biases, groups of experts, scaled and not normalized, tied",
            {**GROUPS, "use_qk_norm": True, "attention_bias": False, "tie_word_embeddings": True}, gguf=False),
    ernie("ernie4_5", "neighbours rotated; 200 tokens", prompt=200),
    ernie("ernie4_5-bias", "biases everywhere, untied", {"use_bias": True, "tie_word_embeddings": False}),
    erniemoe("ernie4_5-moe", "experts behind a dense layer, two shared; 200 tokens", prompt=200),
    erniemoe("ernie4_5-moe-step", "experts in every second layer but the last, none shared, biases, untied", {
        "num_hidden_layers": 4, "moe_layer_start_index": 0, "moe_layer_end_index": 2, "moe_layer_interval": 2,
        "moe_num_shared_experts": 0, "use_bias": True, "tie_word_embeddings": False}, gguf=False),
    dots1("dots1", "sigmoid router with a bias, norms of queries and keys; 200 tokens", prompt=200),
    dots1("dots1-groups", "groups of experts, a window in the second layer, biases", {
        **GROUPS, "sliding_window": WINDOW, "max_window_layers": 1, "attention_bias": True}, gguf=False),
    minimax("minimax-m2", "norms over all heads, half a head rotated, sigmoid router with a bias; 200 tokens", prompt=200),
]
