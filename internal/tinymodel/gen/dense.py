"""Cases of decoders without experts."""
from base import BASE, SLIM, WINDOW, family

LONG = {"max_position_embeddings": 256, "torch_dtype": "bfloat16"}     # with a prompt of 200
LLAMA = {**BASE, **LONG, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "pad_token_id": 0, "tie_word_embeddings": False}

arcee = family("ArceeForCausalLM", "arcee", {
    **LLAMA, "hidden_act": "relu2", "rope_scaling": None, "attention_bias": False, "mlp_bias": False}, prompt=200)
seed = family("SeedOssForCausalLM", "seed_oss", {
    **LLAMA, "intermediate_size": 48, "head_dim": 16, "num_key_value_heads": 1, "hidden_act": "silu", "attention_bias": True, "attention_out_bias": False,
    "mlp_bias": False}, prompt=200)
exaone4 = family("Exaone4ForCausalLM", "exaone4", {
    **LLAMA, **SLIM, "hidden_act": "silu", "num_hidden_layers": 4, "intermediate_size": 24, "sliding_window": WINDOW, "sliding_window_pattern": 4,
    "layer_types": ["sliding_attention"] * 3 + ["full_attention"]}, prompt=200)
olmo3 = family("Olmo3ForCausalLM", "olmo3", {
    **LLAMA, "hidden_act": "silu", "rope_theta": 500000.0, "intermediate_size": 16, "attention_bias": False, "num_hidden_layers": 4,
    "sliding_window": WINDOW, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]}, prompt=200)
apertus = family("ApertusForCausalLM", "apertus", {
    **LLAMA, "hidden_act": "xielu", "attention_bias": False}, prompt=200)
ministral3 = family("Ministral3ForCausalLM", "ministral3", {
    **{k: v for k, v in LLAMA.items() if k != "rope_theta"}, **SLIM, "head_dim": 16, "num_key_value_heads": 1, "num_attention_heads": 2,
    "hidden_act": "silu", "sliding_window": None, "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 32.0,
        "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.3}}, prompt=200, converter="Ministral3Model")
nemotron = family("NemotronForCausalLM", "nemotron", {
    **{k: v for k, v in LLAMA.items() if k != "rms_norm_eps"}, "norm_eps": 1e-5, "hidden_act": "relu2", "partial_rotary_factor": 0.5,
    "attention_bias": False, "mlp_bias": False}, norm_plus_one=True, prompt=200)
helium = family("HeliumForCausalLM", "helium", {
    **LLAMA, "hidden_act": "silu", "head_dim": 8, "rms_norm_eps": 1e-8, "attention_bias": False, "mlp_bias": False}, gguf=False, prompt=200)

GEMMA = {**BASE, **LONG, "hidden_size": 16, "num_key_value_heads": 1, "num_attention_heads": 2, "head_dim": 16, "intermediate_size": 32, "pad_token_id": 0,
         "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-6, "sliding_window": WINDOW, "vocab_size_per_layer_input": 128,
         "tie_word_embeddings": True, "attention_bias": False}
gemma4 = family("Gemma4ForCausalLM", "gemma4_text", {
    **GEMMA, "global_head_dim": 32, "num_global_key_value_heads": None, "attention_k_eq_v": False, "num_kv_shared_layers": 0,
    "enable_moe_block": False, "use_double_wide_mlp": False, "num_experts": None, "top_k_experts": None,
    "moe_intermediate_size": None, "hidden_size_per_layer_input": 0, "use_bidirectional_attention": None, "rope_parameters": {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}, embed_std=0.2, gain=2.0, prompt=200)
gemma3n = family("Gemma3nForCausalLM", "gemma3n_text", {
    **GEMMA, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "num_hidden_layers": 4, "hidden_size_per_layer_input": 4,
    "num_kv_shared_layers": 2, "altup_num_inputs": 4, "altup_active_idx": 0, "altup_correct_scale": True, "altup_coef_clip": 120.0,
    "laurel_rank": 4, "final_logit_softcapping": 30.0, "activation_sparsity_pattern": [0.75, 0.0, 0.0, 0.6],
    "layer_types": ["sliding_attention", "full_attention"] * 2}, embed_std=0.2, gain=2.0, prompt=200)

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 32.0, "beta_slow": 1.0}

LLAMA_LIKE = [
    arcee("arcee", "an MLP without a gate and with the square of ReLU"),
    arcee("arcee-yarn", "biases, yarn, tied", {**SLIM, "attention_bias": True, "mlp_bias": True, "rope_scaling": YARN}),
    seed("seed-oss", "biases of q, k and v, heads wider than hidden/heads"),
    seed("seed-oss-plain", "no biases but that behind attention and of the MLP, tied", {
        **SLIM, "attention_bias": False, "attention_out_bias": True, "mlp_bias": True}),
    exaone4("exaone4", "norms behind the parts, three layers with a window, which alone rotate"),
    exaone4("exaone4-plain", "no window: all layers rotate, untied", {
        "sliding_window": None, "layer_types": ["full_attention"] * 2, "num_hidden_layers": 2, "tie_word_embeddings": False,
        "rope_scaling": {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 32}}),
    exaone4("exaone4-pattern", "the pattern of windows by its number", {
        "num_hidden_layers": 2, "sliding_window_pattern": 2}, drop=["layer_types"]),
    olmo3("olmo3", "three layers with a window, whose positions yarn does not stretch", {"rope_scaling": YARN}),
    olmo3("olmo3-bias", "the default pattern of windows, biases, tied", {
        **SLIM, "attention_bias": True, "num_hidden_layers": 2}, drop=["layer_types"], gguf=False),
    apertus("apertus", "an MLP without a gate and with xIELU, norms of q and k per head, rotary scaling llama3", {"rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}}),
    apertus("apertus-bias", "biases, tied, plain positions", {**SLIM, "attention_bias": True, "rope_parameters": {
        "rope_type": "default", "rope_theta": 20000.0}}, drop=["rope_theta"], gguf=False),
    ministral3("ministral3", "yarn without a factor of its own, queries that grow with their position"),
    ministral3("ministral3-swa", "a window in every layer, other numbers of yarn, untied", {
        "sliding_window": WINDOW, "tie_word_embeddings": False, "rope_parameters": {
            "rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 64, "beta_fast": 16.0,
            "beta_slow": 2.0, "mscale": 1.0, "mscale_all_dim": 0.5, "llama_4_scaling_beta": 0.1}},
               gguf_extra={"mistral3.attention.sliding_window": WINDOW}),
    nemotron("nemotron", "norms of 1+w with biases, half rotary, an MLP without a gate and with the square of ReLU"),
    nemotron("nemotron-bias", "biases, other part rotary, tied, heads wider than hidden/heads", {
        **SLIM, "attention_bias": True, "mlp_bias": True, "partial_rotary_factor": 0.25, "head_dim": 16, "num_attention_heads": 2,
        "num_key_value_heads": 1}, gguf=False),
    helium("helium", "rotated neighbours"),
    helium("helium-bias", "biases of q, k and v and of the MLP, tied", {**SLIM, "attention_bias": True, "mlp_bias": True}),
]

gptj = family("GPTJForCausalLM", "gptj", {
    "vocab_size": 128, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 256, "n_inner": None, "rotary_dim": 8,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": False, "torch_dtype": "bfloat16"},
              gguf=False, prompt=200)
codegen = family("CodeGenForCausalLM", "codegen", {
    "vocab_size": 128, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256, "n_ctx": 256, "n_inner": 64, "rotary_dim": 4,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": False, "torch_dtype": "bfloat16"},
                 gguf=False, prompt=200)
opt = family("OPTForCausalLM", "opt", {
    "vocab_size": 128, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64, "max_position_embeddings": 256,
    "do_layer_norm_before": True, "word_embed_proj_dim": 32, "activation_function": "relu", "enable_bias": True, "pad_token_id": 1,
    "layer_norm_elementwise_affine": True, "tie_word_embeddings": True, "torch_dtype": "bfloat16"},
             gguf=False, prompt=200, idle=("k_proj.bias",))
exaone = family("ExaoneForCausalLM", "exaone", {
    **{k: v for k, v in LLAMA.items() if k not in ("rms_norm_eps", "num_hidden_layers")}, "num_hidden_layers": 2, "rms_norm_eps": 1e-5,
    "hidden_act": "silu", "intermediate_size": 32}, prompt=200)
internlm3 = family("InternLM3ForCausalLM", "internlm3", {
    **LLAMA, **SLIM, "hidden_act": "silu", "head_dim": 16, "num_attention_heads": 2, "num_key_value_heads": 1, "bias": False,
    "qkv_bias": False}, prompt=200)

persimmon = family("PersimmonForCausalLM", "persimmon", {
    **{k: v for k, v in LLAMA.items() if k not in ("rms_norm_eps", "num_key_value_heads", "rope_theta")}, "intermediate_size": 32,
    "layer_norm_eps": 1e-5, "hidden_act": "relu2", "qk_layernorm": True, "rope_parameters": {
        "rope_type": "default", "rope_theta": 25000.0, "partial_rotary_factor": 0.5}}, gguf=False, prompt=200)
biogpt = family("BioGptForCausalLM", "biogpt", {
    **{k: v for k, v in BASE.items() if k != "num_key_value_heads"}, **LONG, "intermediate_size": 32, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "scale_embedding": True, "pad_token_id": 1,
    "tie_word_embeddings": True}, gguf=False, prompt=200, idle=("k_proj.bias",), embed_std=0.25, gain=3.0)

bitnet = family("BitNetForCausalLM", "bitnet", {**LLAMA, **SLIM, "hidden_act": "relu2", "attention_bias": False}, prompt=200)

GPT_LIKE = [
    bitnet("bitnet", "norms before the output matrices, the square of ReLU, tied", gguf=False),
    bitnet("bitnet-bias", "biases, untied", {"attention_bias": True, "tie_word_embeddings": False}, gguf=False),
    persimmon("persimmon", "norms of queries and keys with biases, half a head rotated, an MLP without a gate and with the square of ReLU"),
    persimmon("persimmon-plain", "no norms of queries and keys, another part rotated, tied", {
        "qk_layernorm": False, "tie_word_embeddings": True, "rope_parameters": {
            "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}}),
    biogpt("biogpt", "learned positions behind two rows, a scaled embedding, tied"),
    biogpt("biogpt-plain", "no scale, untied, another activation", {
        "scale_embedding": False, "tie_word_embeddings": False, "hidden_act": "relu"}, embed_std=0.4, gain=1.3),
    gptj("gptj", "attention and MLP in parallel behind one norm, a part of neighbours rotated, biases but those of attention"),
    codegen("codegen", "four parts of queries, values and keys in one matrix"),
    opt("opt", "learned positions behind two rows, ReLU, tied"),
    opt("opt-sums", "norms behind the sums, a narrow embedding, no last norm", {
        "do_layer_norm_before": False, "word_embed_proj_dim": 16}),
    opt("opt-nobias", "no biases, no last norm, untied, another activation", {
        "enable_bias": False, "_remove_final_layer_norm": True, "tie_word_embeddings": False, "activation_function": "gelu", "ffn_dim": 32}),
    exaone("exaone", "Llama under other names", {"rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}}),
    internlm3("internlm3", "heads wider than hidden/heads, tied", gguf=False),
    internlm3("internlm3-bias", "biases in attention and MLP", {"attention_bias": True, "mlp_bias": True}, drop=["bias", "qkv_bias"], gguf=False),
]

GEMMAS = [
    gemma4("gemma4", "inputs of layers, two layers with the keys of earlier ones and wide MLPs, partly rotated wide heads", {
        "num_hidden_layers": 6, "intermediate_size": 16, "hidden_size_per_layer_input": 4, "num_kv_shared_layers": 2,
        "use_double_wide_mlp": True, "final_logit_softcapping": 30.0,
        "layer_types": ["sliding_attention", "full_attention"] * 3}),
    gemma4("gemma4-keys", "values that are the keys, other numbers of heads in layers that see all, untied", {
        "num_hidden_layers": 4, "attention_k_eq_v": True, "num_key_value_heads": 2, "num_global_key_value_heads": 1,
        "use_bidirectional_attention": "vision", "tie_word_embeddings": False, "layer_types": ["sliding_attention", "full_attention"] * 2}),
    gemma4("gemma4-config", "what layers have of their own by their numbers, the default pattern of windows, biases", {
        "num_hidden_layers": 2, "attention_bias": True, "per_layer_config": {"1": {"head_dim": 24}}},
           drop=["global_head_dim", "num_global_key_value_heads"], gguf=False),
    gemma4("gemma4-moe", "experts beside each MLP, values that are the keys; 200 tokens", {
        "num_hidden_layers": 2, "attention_k_eq_v": True, "num_global_key_value_heads": 1, "enable_moe_block": True, "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 16,
        "intermediate_size": 16, "final_logit_softcapping": 30.0, "layer_types": ["sliding_attention", "full_attention"]}),
    gemma3n("gemma3n", "four streams, inputs of layers, sparse gates, two layers with the keys of earlier ones"),
    gemma3n("gemma3n-streams", "three streams and another active one, no shared keys, MLPs of several widths, biases", {
        "altup_num_inputs": 3, "altup_active_idx": 1, "num_kv_shared_layers": 0, "num_hidden_layers": 2, "intermediate_size": [24, 32],
        "activation_sparsity_pattern": None, "layer_types": None, "attention_bias": True, "vocab_size_per_layer_input": 100,
        "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 500000.0},
                            "sliding_attention": {"rope_type": "default", "rope_theta": 20000.0}}},
            drop=["rope_theta", "rope_local_base_freq"], gguf=False),
]

CASES = LLAMA_LIKE + GPT_LIKE + GEMMAS
