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


def layers(n, parts, per_expert=(), experts=0, where=lambda i: True):
    """Returns the tensors of n layers: parts, and per_expert ones for each expert of the layers that have some."""
    out = {}
    for i in range(n):
        for name, shape in parts(i).items():
            out[f"model.layers.{i}.{name}.weight" if not name.endswith("bias") else f"model.layers.{i}.{name}"] = shape
        for e in range(experts if where(i) else 0):
            out.update({f"model.layers.{i}.{name.replace('#', str(e))}.weight": shape for name, shape in per_expert})
    return out


def around(c, embed="embed_tokens"):
    """Returns the tensors around the layers."""
    wide = (c["vocab_size"], c["hidden_size"])
    return {f"model.{embed}.weight": wide, "model.norm.weight": wide[1:],
            **({} if c["tie_word_embeddings"] else {"lm_head.weight": wide})}


def experts_of(c, name, width, up="up_proj", gate="gate_proj", down="down_proj"):
    h = c["hidden_size"]
    return [(f"{name}.#.{gate}", (width, h)), (f"{name}.#.{up}", (width, h)), (f"{name}.#.{down}", (h, width))]


def mlp_of(c, name, width, up="up_proj", gate="gate_proj", down="down_proj"):
    return {k.replace(".#", ""): shape for k, shape in experts_of(c, f"{name}.#", width, up, gate, down)}


def bailing_tensors(c):
    h, d, q, kv, width = c["hidden_size"], c["head_dim"], c["num_attention_heads"], c["num_key_value_heads"], c["moe_intermediate_size"]
    second = "use_qk_norm" in c

    def parts(i):
        out = {"input_layernorm": (h,), "post_attention_layernorm": (h,), "attention.query_key_value": ((q + 2 * kv) * d, h),
               "attention.dense": (h, q * d)}
        if second:
            out.update({"attention.query_layernorm": (d,), "attention.key_layernorm": (d,)})
        if i < c["first_k_dense_replace"]:
            return {**out, **mlp_of(c, "mlp", c["intermediate_size"])}
        out.update({"mlp.gate": (c["num_experts"], h), **mlp_of(c, "mlp.shared_experts", width * c["num_shared_experts"])})
        return {**out, "mlp.gate.expert_bias": (c["num_experts"],)} if second else out
    return {**around(c, "word_embeddings"), **layers(c["num_hidden_layers"], parts, experts_of(c, "mlp.experts", width), c["num_experts"],
                                                     lambda i: i >= c["first_k_dense_replace"])}


def attention_of(c, d):
    h, q, kv = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"]
    return {"self_attn.q_proj": (q * d, h), "self_attn.k_proj": (kv * d, h), "self_attn.v_proj": (kv * d, h), "self_attn.o_proj": (h, q * d),
            "input_layernorm": (h,), "post_attention_layernorm": (h,)}


def smallthinker_tensors(c):
    width, n = c["moe_ffn_hidden_size"], c["moe_num_primary_experts"]
    parts = {**attention_of(c, c["head_dim"]), "block_sparse_moe.primary_router": (n, c["hidden_size"])}
    return {**around(c), **layers(c["num_hidden_layers"], lambda i: parts, experts_of(c, "block_sparse_moe.experts", width, "up", "gate", "down"), n)}


def arctic_tensors(c):
    h, n = c["hidden_size"], c["num_local_experts"]
    parts = {**attention_of(c, h // c["num_attention_heads"]), "residual_layernorm": (h,), "block_sparse_moe.gate": (n, h),
             **mlp_of(c, "residual_mlp", h, "w3", "w1", "w2")}
    return {**around(c), **layers(c["num_hidden_layers"], lambda i: parts,
                                  experts_of(c, "block_sparse_moe.experts", c["intermediate_size"], "w3", "w1", "w2"), n)}


BAILING = {**{k: v for k, v in MOE.items() if k not in ("attention_bias", "tie_word_embeddings")}, "head_dim": 16, "num_attention_heads": 2, "num_experts": 4, "num_experts_per_tok": 2,
           "num_shared_experts": 1, "norm_topk_prob": True, "first_k_dense_replace": 0, "use_qkv_bias": False, "use_bias": False, "norm_head": False,
           "tie_word_embeddings": False}
bailing = family("BailingMoeForCausalLM", "bailing_moe", BAILING, tensors=bailing_tensors)
bailing2 = family("BailingMoeV2ForCausalLM", "bailing_moe", {
    **BAILING, "use_qk_norm": True, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.5, "first_k_dense_replace": 1,
    "partial_rotary_factor": 0.5, "score_function": "sigmoid", "num_nextn_predict_layers": 0, "moe_router_enable_expert_bias": True}, tensors=bailing_tensors)
smallthinker = family("SmallThinkerForCausalLM", "smallthinker", {
    **HALF, "vocab_size": 128, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
    "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": True, "moe_num_primary_experts": 3,
    "moe_num_active_primary_experts": 2, "moe_ffn_hidden_size": 16, "moe_enable_early_router": True,
    "moe_primary_router_apply_softmax": False, "rope_layout": [0, 1, 1], "sliding_window_layout": [0, 1, 1],
    "sliding_window_size": 4096}, tensors=smallthinker_tensors)
arctic = family("ArcticForCausalLM", "arctic", {
    **HALF, **{k: v for k, v in BASE.items() if k != "max_position_embeddings"}, "intermediate_size": 16, "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_layer_frequency": 1, "parallel_attn_mlp_res": True,
    "use_residual": True, "tie_word_embeddings": True}, tensors=arctic_tensors)

solar = family("SolarOpenForCausalLM", "solar_open", {
    **{k: v for k, v in DEEPSEEK.items() if k not in ("intermediate_size", "first_k_dense_replace")}, "head_dim": 16, "num_attention_heads": 2})
sarvam = family("SarvamMoEForCausalLM", "sarvam_moe", {
    **DEEPSEEK, "head_dim": 16, "num_attention_heads": 2, "use_qk_norm": True, "tie_word_embeddings": False})

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
    dots1("dots1", "sigmoid router with a bias, norms of queries and keys; 200 tokens", {"tie_word_embeddings": False}, prompt=200),
    dots1("dots1-groups", "groups of experts, a window in the second layer, biases", {
        **GROUPS, "sliding_window": WINDOW, "max_window_layers": 1, "attention_bias": True}, gguf=False),
    minimax("minimax-m2", "norms over all heads, half a head rotated, sigmoid router with a bias; 200 tokens", {"tie_word_embeddings": False}, prompt=200),
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
              gguf_extra={"exaone-moe.expert_gating_func": 2, "exaone-moe.attention.sliding_window_pattern": 2}),
    exaonemoe("exaone-moe-plain", "listed layers, groups of experts, not normalized, untied", {
        **{k: v for k, v in GROUPS.items() if k != "n_shared_experts"}, "tie_word_embeddings": False, "num_shared_experts": 2,
        "layer_types": ["full_attention", "sliding_attention"], "mlp_layer_types": ["sparse", "dense"]}, gguf=False),
    bailing("bailingmoe", "Ling 1: attention from one matrix, a shared expert; 200 tokens, by llama.cpp", prompt=200),
    bailing2("bailingmoe2", "Ling 2: half a head rotated, sigmoid router with a bias, a dense layer first; 200 tokens, by llama.cpp", prompt=200),
    smallthinker("smallthinker", "routers before attention, ReLU gates, a layer without rotation; 200 tokens, by llama.cpp", prompt=200),
    smallthinker("smallthinker-softmax", "softmax router, all layers rotated, untied; by llama.cpp", {
        "num_hidden_layers": 2, "moe_primary_router_apply_softmax": True, "rope_layout": [1, 1], "sliding_window_layout": [0, 0],
        "tie_word_embeddings": False}),
    arctic("arctic", "experts beside a dense layer; 200 tokens, by llama.cpp", prompt=200),
    solar("solar-open", "GLM 4.5's layers without dense ones, a whole head rotated; 200 tokens", prompt=200, gguf=False),
    sarvam("sarvam", "Ling 2's layers under other names; 200 tokens", prompt=200, gguf=False),
]
