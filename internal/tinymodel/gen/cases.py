"""The table of tiny models: every architecture, and every setting in its config.json that changes the computation.

config is what config.json says, spelled as checkpoints on the hub spell it. Options beside it (see case):

    gguf=False        GGUF or llama.cpp's converter cannot express the case: there are only safetensors
    gguf_extra        metadata keys added to what the converter writes, without which the GGUF would be another model
    hparams           corrections to the converter's view of config.json
    strip_prefix      a prefix that old checkpoints lack in their tensor names
    norm_plus_one     norm weights are stored as w-1
    conv1d            linear weights are stored [in][out]
    shards            the number of files that the weights are spread over
    attention         the implementation of attention in transformers, if not eager
    generate          the greedy continuation is that of transformers' generate, which computes all keys again where longrope
                      changes its factors, or in families whose forward has another name for the cache; "again" is without a cache,
                      where the class computes a single row otherwise than many
    converter         the class within the converter's class that does the work
    no_mtp            the converter looks for no layers that predict further tokens
    prompt            the length of the prompt, a multiple of 4, if not 64
    idle              ends of the names of tensors that change nothing, such as biases of keys that are not rotated
    context           the context length to open the model with, where the computation depends on it
"""

import authors
import dense
import experts
import latent
import state
from base import BASE, ROPE, SLIM, WINDOW, case, family

llama = family("LlamaForCausalLM", "llama", {
    **BASE, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None,
    "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False})
mistral = family("MistralForCausalLM", "mistral", {
    **BASE, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "sliding_window": None,
    "tie_word_embeddings": False})
smollm3 = family("SmolLM3ForCausalLM", "smollm3", {
    **BASE, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 50000.0, "pad_token_id": 0,
    "use_sliding_window": False, "sliding_window": None, "attention_bias": False, "mlp_bias": False})
qwen2 = family("Qwen2ForCausalLM", "qwen2", {
    **BASE, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "sliding_window": WINDOW,
    "max_window_layers": 1, "use_sliding_window": False, "tie_word_embeddings": True})
qwen3 = family("Qwen3ForCausalLM", "qwen3", {
    **BASE, "head_dim": 16, "num_key_value_heads": 1, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "attention_bias": False,
    "sliding_window": None, "max_window_layers": 2, "use_sliding_window": False, "tie_word_embeddings": True})
gemma = family("GemmaForCausalLM", "gemma", {
    **BASE, "num_key_value_heads": 1, "head_dim": 16, "hidden_act": "gelu_pytorch_tanh", "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0, "pad_token_id": 0}, norm_plus_one=True, embed_std=0.2, gain=2.0)
gemma2 = family("Gemma2ForCausalLM", "gemma2", {
    **BASE, "head_dim": 16, "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
    "query_pre_attn_scalar": 16, "sliding_window": WINDOW, "attn_logit_softcapping": 5.0,
    "final_logit_softcapping": 6.0, "pad_token_id": 0}, norm_plus_one=True, embed_std=0.2, gain=2.0)
gemma3 = family("Gemma3ForCausalLM", "gemma3_text", {
    **BASE, "intermediate_size": 32, "num_hidden_layers": 6, "num_key_value_heads": 1, "head_dim": 16,
    "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
    "query_pre_attn_scalar": 16, "sliding_window": WINDOW, "sliding_window_pattern": 6,
    "attn_logit_softcapping": None, "final_logit_softcapping": None, "pad_token_id": 0}, norm_plus_one=True, embed_std=0.2, gain=2.0)
phi3 = family("Phi3ForCausalLM", "phi3", {
    **BASE, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None,
    "original_max_position_embeddings": 128, "sliding_window": None, "tie_word_embeddings": False, "pad_token_id": 0})
phi = family("PhiForCausalLM", "phi", {
    **BASE, "intermediate_size": 128, "num_key_value_heads": 4, "hidden_act": "gelu_new", "layer_norm_eps": 1e-5,
    "rope_theta": 10000.0, "rope_scaling": None, "partial_rotary_factor": 0.5, "qk_layernorm": False,
    "tie_word_embeddings": False})
gpt2 = family("GPT2LMHeadModel", "gpt2", {
    "vocab_size": 128, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, "n_ctx": 128, "n_inner": None,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}, conv1d=True)
bigcode = family("GPTBigCodeForCausalLM", "gpt_bigcode", {
    "vocab_size": 128, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, "n_inner": 128,
    "activation_function": "gelu_pytorch_tanh", "layer_norm_epsilon": 1e-5, "multi_query": True})
neox = family("GPTNeoXForCausalLM", "gpt_neox", {
    "vocab_size": 128, "hidden_size": 32, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
    "max_position_embeddings": 128, "hidden_act": "gelu", "layer_norm_eps": 1e-5, "rotary_pct": 0.25,
    "rotary_emb_base": 10000, "use_parallel_residual": True, "tie_word_embeddings": False})
falcon = family("FalconForCausalLM", "falcon", {
    "vocab_size": 128, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "layer_norm_epsilon": 1e-5,
    "multi_query": True, "parallel_attn": True, "new_decoder_architecture": False, "bias": False, "alibi": False})
mpt = family("MPTForCausalLM", "mpt", {
    "vocab_size": 128, "d_model": 32, "n_heads": 4, "n_layers": 2, "expansion_ratio": 4, "max_seq_len": 128,
    "no_bias": True, "learned_pos_emb": True, "norm_type": "low_precision_layernorm", "tie_word_embeddings": True})
MPT_ATTN = {"attn_type": "multihead_attention", "attn_impl": "torch", "clip_qkv": None, "softmax_scale": None,
            "qk_ln": False, "alibi": True, "alibi_bias_max": 8}
starcoder2 = family("Starcoder2ForCausalLM", "starcoder2", {
    **BASE, "hidden_act": "gelu_pytorch_tanh", "norm_epsilon": 1e-5, "rope_theta": 100000.0, "use_bias": True,
    "sliding_window": None})
olmo = family("OlmoForCausalLM", "olmo", {
    **BASE, "hidden_act": "silu", "rope_theta": 10000.0, "clip_qkv": None, "attention_bias": False, "pad_token_id": 0,
    "tie_word_embeddings": False})
olmo2 = family("Olmo2ForCausalLM", "olmo2", {
    **BASE, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 500000.0, "attention_bias": False, "pad_token_id": 0,
    "tie_word_embeddings": False})
stablelm = family("StableLmForCausalLM", "stablelm", {
    **BASE, "hidden_act": "silu", "layer_norm_eps": 1e-5, "rope_theta": 10000.0, "partial_rotary_factor": 0.5,
    "use_qkv_bias": False, "use_parallel_residual": False, "qk_layernorm": False, "tie_word_embeddings": False})
cohere = family("CohereForCausalLM", "cohere", {
    **BASE, "hidden_act": "silu", "layer_norm_eps": 1e-5, "rope_theta": 8000000.0, "logit_scale": 0.25,
    "attention_bias": False, "use_qk_norm": False, "pad_token_id": 0, "tie_word_embeddings": True})
cohere2 = family("Cohere2ForCausalLM", "cohere2", {
    **BASE, "intermediate_size": 32, "num_hidden_layers": 4, "head_dim": 8, "hidden_act": "silu", "layer_norm_eps": 1e-5,
    "rope_theta": 50000.0, "rotary_pct": 1.0, "logit_scale": 0.25, "sliding_window": WINDOW, "sliding_window_pattern": 4,
    "attention_bias": False, "pad_token_id": 0, "tie_word_embeddings": True})
granite = family("GraniteForCausalLM", "granite", {
    **BASE, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None,
    "embedding_multiplier": 3.0, "residual_multiplier": 0.7, "attention_multiplier": 0.6, "logits_scaling": 2.0,
    "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False})
MOE = {**BASE, "intermediate_size": 32, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0}
mixtral = family("MixtralForCausalLM", "mixtral", {
    **MOE, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None, "tie_word_embeddings": False})
qwen2moe = family("Qwen2MoeForCausalLM", "qwen2_moe", {
    **MOE, "rms_norm_eps": 1e-6, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 32, "norm_topk_prob": False, "decoder_sparse_step": 1, "mlp_only_layers": [],
    "use_sliding_window": False, "tie_word_embeddings": False})
qwen3moe = family("Qwen3MoeForCausalLM", "qwen3_moe", {
    **MOE, "rms_norm_eps": 1e-6, "head_dim": 16, "num_key_value_heads": 1, "num_experts": 8, "num_experts_per_tok": 3,
    "moe_intermediate_size": 16, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [],
    "attention_bias": False, "use_sliding_window": False, "tie_word_embeddings": False})
olmoe = family("OlmoeForCausalLM", "olmoe", {
    **MOE, "num_experts": 6, "num_experts_per_tok": 2, "norm_topk_prob": False, "clip_qkv": None, "attention_bias": False,
    "intermediate_size": 16, "pad_token_id": 0, "tie_word_embeddings": False})
granitemoe = family("GraniteMoeForCausalLM", "granitemoe", {
    **MOE, "intermediate_size": 16, "num_local_experts": 6, "num_experts_per_tok": 2, "embedding_multiplier": 3.0,
    "residual_multiplier": 0.7, "attention_multiplier": 0.6, "logits_scaling": 2.0, "attention_bias": False,
    "pad_token_id": 0, "tie_word_embeddings": True})
gptoss = family("GptOssForCausalLM", "gpt_oss", {
    **MOE, "num_local_experts": 6, "num_experts_per_tok": 2, "head_dim": 16, "sliding_window": WINDOW, "attention_bias": True,
    "rope_theta": 150000.0, "swiglu_limit": 7.0, "tie_word_embeddings": False, "intermediate_size": 24,
    "layer_types": ["sliding_attention", "full_attention"]})
lfm2 = family("Lfm2ForCausalLM", "lfm2", {
    **BASE, "norm_eps": 1e-5, "rope_theta": 1000000.0, "conv_L_cache": 3, "conv_bias": False, "block_multiple_of": 16,
    "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": True, "num_hidden_layers": 4, "pad_token_id": 0,
    "layer_types": ["conv", "full_attention", "conv", "conv"], "tie_word_embeddings": True})
lfm2moe = family("Lfm2MoeForCausalLM", "lfm2_moe", {
    **BASE, "norm_eps": 1e-5, "rope_theta": 1000000.0, "conv_L_cache": 3, "conv_bias": False, "num_hidden_layers": 3,
    "intermediate_size": 32, "moe_intermediate_size": 16, "num_experts": 6, "num_experts_per_tok": 2, "num_dense_layers": 1,
    "norm_topk_prob": True, "use_expert_bias": True, "routed_scaling_factor": 1.0, "pad_token_id": 0,
    "layer_types": ["conv", "full_attention", "conv"], "tie_word_embeddings": True})
bloom = family("BloomForCausalLM", "bloom", {
    "vocab_size": 128, "hidden_size": 32, "n_layer": 2, "n_head": 4, "layer_norm_epsilon": 1e-5,
    "apply_residual_connection_post_layernorm": False, "seq_length": 128})

LLAMA_CASES = [
    llama("llama", "grouped queries, separate output matrix"),
    llama("llama-tied-mha", "tied output, as many kv heads as heads (key absent)", SLIM,
          drop=["num_key_value_heads"]),
    llama("llama-mqa-bias", "one kv head, biases in attention and MLP",
          {**SLIM, "num_key_value_heads": 1, "attention_bias": True, "mlp_bias": True}),
    llama("llama-headdim", "head_dim that is not hidden/heads", {**SLIM, "head_dim": 16, "rope_theta": 500000.0}),
    llama("llama-odd", "sizes that are no multiple of 32 or 16", {
        "vocab_size": 107, "hidden_size": 36, "intermediate_size": 50, "num_attention_heads": 3,
        "num_key_value_heads": 3}),
    llama("llama-rope-llama3", "RoPE scaling llama3", {**ROPE, "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32}}),
    llama("llama-rope-linear", "RoPE scaling linear, older spelling", {**ROPE, "rope_scaling": {
        "type": "linear", "factor": 4.0}}),
    llama("llama-rope-dynamic", "RoPE scaling dynamic: no effect within max_position_embeddings", {
        **ROPE, "rope_scaling": {"type": "dynamic", "factor": 2.0}}),
    llama("llama-rope-dynamic-long", "RoPE scaling dynamic past max_position_embeddings: the base follows the prompt, then each token", {
        **ROPE, "max_position_embeddings": 32, "rope_scaling": {"type": "dynamic", "factor": 2.0}}, gguf=False, context=128),
    llama("llama-rope-yarn", "RoPE scaling yarn, default attention factor", {**ROPE, "rope_scaling": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}}),
    llama("llama-rope-yarn-custom", "yarn with its own betas and attention factor, config of transformers 5",
          {**ROPE, "rope_parameters": {
              "rope_type": "yarn", "rope_theta": 20000.0, "factor": 4.0, "original_max_position_embeddings": 64,
              "beta_fast": 8.0, "beta_slow": 0.5, "attention_factor": 0.8}},
          drop=["rope_theta", "rope_scaling"]),
    llama("llama-half", "bf16 in safetensors and f16 in GGUF, the same numbers", {**SLIM, "torch_dtype": "bfloat16"}),
    llama("llama-shards", "in two files, with an index; the GGUF split too", SLIM, shards=2),
    mistral("mistral", "no sliding window, head_dim given", {"head_dim": 16, "intermediate_size": 32}),
    mistral("mistral-swa", "sliding window in every layer", {**SLIM, "sliding_window": WINDOW},
            gguf_extra={"llama.attention.sliding_window": WINDOW}),
    smollm3("smollm3", "no RoPE in every fourth layer", {"num_hidden_layers": 4, "intermediate_size": 32}),
    smollm3("smollm3-custom", "listed layers without RoPE, sliding window in those, untied", {
        "no_rope_layers": [0, 1], "use_sliding_window": True, "sliding_window": WINDOW,
        "layer_types": ["sliding_attention", "full_attention"], "tie_word_embeddings": False, "intermediate_size": 32}, gguf=False),
]

QWEN_GEMMA_CASES = [
    qwen2("qwen2", "biases of q, k, v; tied"),
    qwen2("qwen2-swa", "sliding window from layer max_window_layers on; untied",
          {"use_sliding_window": True, "tie_word_embeddings": False, "intermediate_size": 32},
          gguf_extra={"qwen2.attention.sliding_window": WINDOW,
                      "qwen2.attention.sliding_window_pattern": [False, True]}),
    qwen3("qwen3", "norms of q and k per head"),
    qwen3("qwen3-bias-swa", "attention biases, sliding window from layer_types, untied", {
        "attention_bias": True, "intermediate_size": 32, "use_sliding_window": True, "sliding_window": WINDOW, "tie_word_embeddings": False,
        "layer_types": ["sliding_attention", "full_attention"]}, gguf=False),
    gemma("gemma", "one kv head, scaled embeddings, norms of 1+w"),
    gemma2("gemma2", "soft caps, post norms, alternating window"),
    gemma2("gemma2-qpas", "query_pre_attn_scalar that is not head_dim, no soft caps", {
        "intermediate_size": 32, "query_pre_attn_scalar": 24, "attn_logit_softcapping": None, "final_logit_softcapping": None}, gguf=False),
    gemma3("gemma3", "five local layers to one global, linear RoPE scaling of the global one",
           {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}),
    gemma3("gemma3-layers", "layer_types and rope_parameters of transformers 5, final soft cap, query_pre_attn_scalar",
           {"num_hidden_layers": 3, "final_logit_softcapping": 6.0, "query_pre_attn_scalar": 16,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 500000.0},
                                "sliding_attention": {"rope_type": "default", "rope_theta": 20000.0}}},
           drop=["rope_theta", "rope_local_base_freq", "sliding_window_pattern"],
           gguf_extra={"gemma3.attention.sliding_window_pattern": [True, False, True]}),
    gemma3("gemma3-qpas", "query_pre_attn_scalar that is not head_dim, window pattern 2",
           {"num_hidden_layers": 2, "query_pre_attn_scalar": 24, "sliding_window_pattern": 2}, gguf=False, gain=3.0),
]

# The larger Gemma 3 are multimodal: the text model is one part of the configuration and of the tensors.
GEMMA3_TEXT = {k: v for k, v in gemma3("", "")["config"].items() if k not in ("architectures", "torch_dtype")}
QWEN_GEMMA_CASES.append(case(
    "gemma3-nested", "text_config, and tensors beside those of a vision tower", "Gemma3ForConditionalGeneration", "gemma3",
    {"text_config": {**GEMMA3_TEXT, "num_hidden_layers": 2, "sliding_window_pattern": 2}, "image_token_index": 127,
     "boi_token_index": 125, "eoi_token_index": 126, "mm_tokens_per_image": 1, "vision_config": {
         "model_type": "siglip_vision_model", "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
         "num_attention_heads": 1, "image_size": 4, "patch_size": 4}},
    gguf=False, norm_plus_one=True, embed_std=0.2, gain=3.0, vocab=124))

PHI_CASES = [
    phi3("phi3", "fused qkv and gate_up"),
    phi3("phi3-swa", "sliding window in every layer, as many kv heads as heads, tied",
         {**SLIM, "sliding_window": WINDOW, "num_key_value_heads": 4}),
    phi3("phi3-longrope-short", "longrope within the original context: short factors; partial rotary", {
        **SLIM, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 512,
        "original_max_position_embeddings": 256, "partial_rotary_factor": 0.75, "rope_scaling": {
            "type": "longrope", "short_factor": [1.0, 1.1, 1.25, 1.5, 1.75, 2.0],
            "long_factor": [1.5, 2.0, 4.0, 8.0, 12.0, 16.0]}}, context=256),
    phi3("phi3-longrope-long", "longrope past the original context: long factors; older spelling", {
        **SLIM, "num_attention_heads": 2, "num_key_value_heads": 1, "original_max_position_embeddings": 32,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7],
                         "long_factor": [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0]}}, context=128),
    phi3("phi3-longrope-cross", "longrope, an answer that passes the original context: all keys are computed again", {
        **SLIM, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 256,
        "original_max_position_embeddings": 70, "rope_scaling": {
            "type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7],
            "long_factor": [1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0, 48.0]}}, context=128, generate=True),
    phi("phi", "one norm for attention and MLP in parallel, biases everywhere, half rotary"),
    phi("phi-qknorm", "norms of q and k with biases, grouped queries, config of transformers 5",
        {"qk_layernorm": True, "num_key_value_heads": 2, "intermediate_size": 32,
         "rope_parameters": {"rope_type": "default", "rope_theta": 20000.0, "partial_rotary_factor": 0.75}},
        drop=["rope_theta", "rope_scaling", "partial_rotary_factor"], gguf=False),
]

GPT_CASES = [
    gpt2("gpt2", "learned positions, tied"),
    gpt2("gpt2-bare", "tensor names without the prefix, n_inner given", {"n_inner": 64},
         strip_prefix="transformer.", gguf=False),
    gpt2("gpt2-scale", "attention scaled by layer and not by head_dim", {
        "scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True, "n_inner": 64}, gguf=False, gain=0.6),
    bigcode("bigcode", "one kv head, learned positions"),
    bigcode("bigcode-mha", "every head its own k and v, fused per head", {"multi_query": False, "n_inner": 64}, gguf=False),
    neox("neox", "parallel residual, a quarter rotary"),
    neox("neox-seq", "sequential residual, other rotary base and share", {
        "use_parallel_residual": False, "rotary_pct": 0.5, "rotary_emb_base": 25000, "intermediate_size": 64},
         gguf_extra={"gptneox.rope.freq_base": 25000.0}),
    neox("neox-nobias", "no attention biases, half rotary, ReLU, tied, config of transformers 5", {
        "attention_bias": False, "hidden_act": "relu", "intermediate_size": 64, "tie_word_embeddings": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}},
         drop=["rotary_pct", "rotary_emb_base"], gguf=False),
    falcon("falcon-7b", "one kv head, attention and MLP in parallel", hparams={"num_kv_heads": 1}),
    falcon("falcon-40b", "new decoder: kv groups, two norms in parallel", {
        "new_decoder_architecture": True, "num_kv_heads": 2}),
    falcon("falcon-11b", "new decoder with one norm, rope_theta", {
        "new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1, "ffn_hidden_size": 64,
        "rope_theta": 500042.0}, gguf=False),
    falcon("falcon-rw", "ALiBi, biases, sequential, fused per head", {
        "alibi": True, "bias": True, "parallel_attn": False, "multi_query": False}, gguf=False,
           attention="sdpa"),   # eager adds the bias twice: in the mask and to the scores
    falcon("falcon-bias", "one kv head with biases, untied", {
        "bias": True, "tie_word_embeddings": False, "ffn_hidden_size": 64}, gguf=False),
    mpt("mpt", "ALiBi, no biases", {"attn_config": MPT_ATTN}),
    mpt("mpt-clip", "clipped q, k, v; heads that are no power of two", {
        "d_model": 48, "n_heads": 6, "n_layers": 1, "attn_config": {**MPT_ATTN, "clip_qkv": 0.75}}),
    mpt("mpt-scale", "own softmax scale", {"attn_config": {**MPT_ATTN, "softmax_scale": 0.5}}, gguf=False),
    starcoder2("starcoder2", "norms and linears with biases, grouped queries, tied"),
    starcoder2("starcoder2-swa", "sliding window in every layer, no biases, untied",
               {"sliding_window": WINDOW, "use_bias": False, "tie_word_embeddings": False, "intermediate_size": 32},
               gguf_extra={"starcoder2.attention.sliding_window": WINDOW}),
    bloom("bloom", "ALiBi, norm of the embeddings"),
    bloom("bloom-postln", "residual taken after the norm", {"apply_residual_connection_post_layernorm": True}, gguf=False),
]

OTHER_CASES = [
    olmo("olmo", "norms without weights, clipped q, k, v", {"clip_qkv": 0.75}),
    olmo("olmo-bias", "no clipping, attention biases, tied", {**SLIM, "attention_bias": True},
         gguf=False),
    olmo2("olmo2", "norms after attention and MLP only, norms of the whole q and k"),
    stablelm("stablelm", "sequential, partial rotary, biases of q, k, v", {"use_qkv_bias": True}),
    stablelm("stablelm-parallel", "parallel residual, norms of q and k per head",
             {"intermediate_size": 32, "use_parallel_residual": True, "qk_layernorm": True}),
]

COHERE_GRANITE_CASES = [
    cohere("command-r", "one norm without bias for attention and MLP in parallel, RoPE over neighbours, scaled logits"),
    cohere("command-r-qknorm", "norms of q and k with weights per head, another logit scale",
           {"use_qk_norm": True, "logit_scale": 0.8333, "rope_theta": 75000.0, "intermediate_size": 32}),
    cohere2("cohere2", "three sliding layers with RoPE, then a full one without"),
    granite("granite", "scaled embeddings, attention, residuals and logits; untied"),
    granite("granite-tied", "other scales, biases in attention and MLP, as many kv heads as heads (key absent), tied", {
        **SLIM, "embedding_multiplier": 2.0, "residual_multiplier": 1.25, "attention_multiplier": 0.15, "logits_scaling": 0.75,
        "attention_bias": True, "mlp_bias": True}, drop=["num_key_value_heads"]),
]

EXPERT_CASES = [
    mixtral("mixtral", "two of four experts, weights that sum to 1"),
    mixtral("mixtral-swa", "one of three experts, a sliding window in every layer, tied", {
        "num_local_experts": 3, "num_experts_per_tok": 1, "sliding_window": WINDOW, "tie_word_embeddings": True,
        "intermediate_size": 24}, gguf_extra={"llama.attention.sliding_window": WINDOW}),
    qwen2moe("qwen2moe", "two of six experts, weights as they are, an MLP beside them behind a gate"),
    qwen2moe("qwen2moe-sparse", "experts in every second layer but one, weights that sum to 1, tied", {
        "num_hidden_layers": 4, "decoder_sparse_step": 2, "mlp_only_layers": [3], "norm_topk_prob": True,
        "num_experts": 4, "tie_word_embeddings": True}, gguf=False),
    qwen3moe("qwen3moe", "three of eight experts, weights that sum to 1, norms of q and k"),
    qwen3moe("qwen3moe-plain", "weights as they are, the first layer dense, biases of q, k, v", {
        "norm_topk_prob": False, "mlp_only_layers": [0], "attention_bias": True, "num_experts": 4}, gguf=False),
    olmoe("olmoe", "two of six experts, norms of the whole q and k"),
    olmoe("olmoe-norm", "weights that sum to 1, tied",
          {"norm_topk_prob": True, "num_experts": 4, "tie_word_embeddings": True},
          gguf_extra={"olmoe.expert_weights_norm": True}),
    granitemoe("granitemoe", "gate and up in one tensor, softmax over the chosen experts"),
    granitemoe("granitemoe-shared", "an MLP beside the experts, untied", {
        "architectures": ["GraniteMoeSharedForCausalLM"], "model_type": "granitemoeshared",
        "shared_intermediate_size": 24, "tie_word_embeddings": False, "num_local_experts": 4}),
    gptoss("gpt-oss", "sinks, every second layer with a window, clamped gates, biases everywhere",
           {"rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
                             "original_max_position_embeddings": 32}}),
]

CONV_CASES = [
    lfm2("lfm2", "three layers with a short convolution, one with attention"),
    lfm2("lfm2-bias", "biases, four rows in a sum, untied, the width of the MLP as it is", {
        "conv_bias": True, "conv_L_cache": 4, "block_auto_adjust_ff_dim": False, "intermediate_size": 48, "num_hidden_layers": 2,
        "layer_types": ["full_attention", "conv"], "tie_word_embeddings": False}, gguf=False),
    lfm2moe("lfm2moe", "a dense layer, then experts with a sigmoid and a bias for the choice"),
]

CASES = (LLAMA_CASES + QWEN_GEMMA_CASES + PHI_CASES + GPT_CASES + OTHER_CASES + COHERE_GRANITE_CASES + EXPERT_CASES
         + CONV_CASES + dense.CASES + experts.CASES + latent.CASES + authors.CASES + state.CASES)
