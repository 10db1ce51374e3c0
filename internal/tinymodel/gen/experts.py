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

llama4 = family("Llama4ForCausalLM", "llama4_text", {
    **DENSE, "head_dim": 8, "num_attention_heads": 2, "intermediate_size": 16, "intermediate_size_mlp": 32, "num_hidden_layers": 4,
    "num_local_experts": 3, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "use_qk_norm": True,
    "no_rope_layer_interval": 4, "attention_chunk_size": WINDOW, "attn_temperature_tuning": True, "floor_scale": 32,
    "attn_scale": 0.4, "rope_theta": 500000.0})
afmoe = family("AfmoeForCausalLM", "afmoe", {
    **MOE, "head_dim": 16, "num_attention_heads": 2, "num_experts": 4, "num_experts_per_tok": 2, "num_shared_experts": 1,
    "num_dense_layers": 1, "route_scale": 1.5, "global_attn_every_n_layers": 2, "sliding_window": WINDOW, "mup_enabled": True},
    embed_std=0.1, gain=2.0)
hunyuan = family("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", {**DENSE, "head_dim": 16, "num_attention_heads": 2})
hunyuanmoe = family("HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", {
    **DENSE, "intermediate_size": 16, "head_dim": 16, "num_attention_heads": 2, "num_experts": 4, "moe_topk": 2})
phimoe = family("PhiMoEForCausalLM", "phimoe", {
    **DENSE, "intermediate_size": 16, "num_local_experts": 4, "num_experts_per_tok": 2, "router_jitter_noise": 0.01,
    "original_max_position_embeddings": 256,
    "attention_bias": True, "lm_head_bias": True, "sliding_window": None, "tie_word_embeddings": False})
dbrx = family("DbrxForCausalLM", "dbrx", {
    "torch_dtype": "bfloat16", "vocab_size": 128, "d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 256, "tie_word_embeddings": False,
    "attn_config": {"kv_n_heads": 2, "clip_qkv": 1.5, "rope_theta": 10000.0},
    "ffn_config": {"ffn_hidden_size": 16, "moe_num_experts": 4, "moe_top_k": 2, "moe_normalize_expert_weights": 1.0}})
flexolmo = family("FlexOlmoForCausalLM", "flex_olmo", {
    **DENSE, "intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2, "norm_topk_prob": False}, gguf=False)
exaonemoe = family("ExaoneMoeForCausalLM", "exaone_moe", {
    **MOE, "head_dim": 16, "num_attention_heads": 2, "num_experts": 4, "num_experts_per_tok": 2, "num_shared_experts": 1,
    "first_k_dense_replace": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5, "sliding_window": WINDOW,
    "sliding_window_pattern": 2, "n_group": 1, "topk_group": 1})

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
    llama4("llama4", "chunks, a layer without rotation that sees all, queries that grow, input-weighed experts in every second layer; 200 tokens",
           gguf_extra={"llama4.attention.chunk_size": WINDOW, "llama4.attention.temperature_length": 32,
                       "llama4.attention.temperature_scale": 0.4}, prompt=200),
    llama4("llama4-plain", "listed layers with experts and rotation, no norms, no growing queries, untied, biases", {
        "num_hidden_layers": 2, "moe_layers": [0], "no_rope_layer_interval": 2, "no_rope_layers": [1, 1],
        "layer_types": ["chunked_attention", "full_attention"], "use_qk_norm": False, "attn_temperature_tuning": False,
        "tie_word_embeddings": False, "attention_bias": True, "num_experts_per_tok": 2}, gguf=False),
    afmoe("afmoe", "gated attention, windows in every second layer, scaled embedding; 200 tokens", prompt=200,
          gguf_extra={"afmoe.attention.sliding_window_pattern": 2}),
    afmoe("afmoe-plain", "listed windows, embedding not scaled, biases, untied, two experts shared", {
        "layer_types": ["full_attention", "sliding_attention"], "mup_enabled": False, "attention_bias": True,
        "tie_word_embeddings": False, "num_shared_experts": 2, "num_dense_layers": 0}, gguf=False, embed_std=0.4),
    hunyuan("hunyuan-dense", "norms behind the rotation; 200 tokens", prompt=200),
    hunyuan("hunyuan-dense-alpha", "a base scaled by alpha, biases, untied", {
        "rope_scaling": {"type": "dynamic", "alpha": 50.0, "factor": 1.0}, "attention_bias": True, "tie_word_embeddings": False}, gguf=False),
    hunyuanmoe("hunyuan-moe", "experts beside an MLP that all read; 200 tokens", prompt=200,
               hparams={"moe_intermediate_size": [16], "moe_topk": [2], "num_shared_expert": [1]}),
    phimoe("phimoe", "SparseMixer, LayerNorm, biases; 200 tokens", prompt=200),
    phimoe("phimoe-wide", "a wide SparseMixer, a window, LongRoPE with a scale of its own, no biases", {
        "router_jitter_noise": 0.2, "sliding_window": WINDOW, "attention_bias": False, "lm_head_bias": False, "tie_word_embeddings": True, "rope_scaling": {
            "type": "longrope", "short_factor": [1.0, 1.5, 2.0, 3.0], "long_factor": [2.0, 3.0, 4.0, 8.0],
            "short_mscale": 1.2, "long_mscale": 1.2, "original_max_position_embeddings": 256}}, gguf=False),
    dbrx("dbrx", "limited queries, keys and values; 200 tokens", prompt=200),
    dbrx("dbrx-plain", "no limit, one expert, weights as they are", {
        "attn_config": {"kv_n_heads": 1, "clip_qkv": 8.0, "rope_theta": 20000.0}, "rope_theta": 20000.0,
        "ffn_config": {"ffn_hidden_size": 16, "moe_num_experts": 4, "moe_top_k": 1, "moe_normalize_expert_weights": None}}, gguf=False),
    flexolmo("flexolmo", "OLMo 2's norms around experts; 200 tokens", prompt=200),
    flexolmo("flexolmo-norm", "normalized weights, biases, untied", {
        "norm_topk_prob": True, "attention_bias": True, "tie_word_embeddings": False}),
    exaonemoe("exaone-moe", "norms before the parts, windows, sigmoid router; 200 tokens", prompt=200,
              gguf_extra={"exaone-moe.attention.sliding_window_pattern": 2}),
    exaonemoe("exaone-moe-plain", "listed layers, groups of experts, not normalized, untied", {
        **{k: v for k, v in GROUPS.items() if k != "n_shared_experts"}, "tie_word_embeddings": False, "num_shared_experts": 2,
        "layer_types": ["full_attention", "sliding_attention"], "mlp_layer_types": ["sparse", "dense"]}, gguf=False),
]
