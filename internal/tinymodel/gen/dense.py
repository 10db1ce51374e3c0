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

CASES = LLAMA_LIKE
