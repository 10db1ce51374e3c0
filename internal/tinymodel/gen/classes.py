"""Records what the configuration class of each family reads, and what it takes for a key that a config.json leaves out.

    python classes.py

model/classes.jsonl gets a line for each model_type: keys with the class's defaults, and aliases, other names of keys.
Keys are the fields of the class, those that it or the model's code looks up by name, and those of rotary positions in each
form that transformers takes; NEUTRAL ones, which change no logits, are left out. A family whose code reads a key that package
model does not is refused when a config.json gives it another value.
"""
import ast
import dataclasses
import fnmatch
import importlib
import inspect
import json
import pathlib
import textwrap

from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

EXPERTS = ["afmoe", "dbrx", "dots1", "ernie4_5", "ernie4_5_moe", "exaone_moe", "flex_olmo", "glm4", "glm4_moe", "hunyuan_v1_dense",
           "hunyuan_v1_moe", "llama4_text", "minimax_m2", "phimoe", "sarvam_moe", "solar_open"]

OUT = pathlib.Path(__file__).resolve().parents[3] / "model/classes.jsonl"

TYPES = ["apertus", "arcee", "biogpt", "bitnet", "bloom", "codegen", "cohere", "cohere2", "exaone", "exaone4", "falcon", "gemma", "gemma2", "gemma3_text", "gemma3n_text", "gemma4_text", "glm", "gpt2", "gpt_bigcode", "gpt_neox", "gpt_oss", "gptj",
         "granite", "granitemoe", "granitemoeshared", "helium", "internlm3", "lfm2", "lfm2_moe", "llama", "ministral3", "mistral", "mixtral", "mpt", "nemotron", "olmo", "olmo2", "olmo3",
         "olmoe", "opt", "persimmon", "phi", "phi3", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "seed_oss", "smollm3", "stablelm", "starcoder2"]

ENCODERS = ["bert", "camembert", "distilbert", "jina_embeddings_v3", "modernbert", "mpnet", "nomic_bert", "roberta", "xlm-roberta"]

STATE = ["bamba", "falcon_h1", "falcon_mamba", "granitemoehybrid", "jamba", "mamba", "mamba2", "nemotron_h", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_next", "recurrent_gemma", "rwkv"]

LATENT = ["deepseek_v2", "deepseek_v3", "glm4_moe_lite", "minicpm3", "youtu"]

# Types of checkpoints with code of their own, whose keys had other names.
LEGACY = {
    "RefinedWeb": ("falcon", {"n_layer": "num_hidden_layers", "n_head": "num_attention_heads", "n_head_kv": "num_kv_heads"}),
    "RefinedWebModel": ("falcon", {"n_layer": "num_hidden_layers", "n_head": "num_attention_heads", "n_head_kv": "num_kv_heads"}),
    "kimi_k2": ("deepseek_v3", {}),
    "mimo": ("qwen2", {}),
    "stablelm_epoch": ("stablelm", {"norm_eps": "layer_norm_eps", "rope_pct": "partial_rotary_factor"}),
}

ROTARY = {"rope_theta": 10000.0, "rope_scaling": None}
COMMON = {"vocab_size": None, "hidden_size": None, "num_hidden_layers": None, "num_attention_heads": None, "num_key_value_heads": None,
          "max_position_embeddings": None, "tie_word_embeddings": False, **ROTARY}
BAILING = {**COMMON, "intermediate_size": None, "hidden_act": "silu", "use_qkv_bias": False, "use_bias": True, "rms_norm_eps": 1e-5,
           "norm_head": False, "use_sliding_window": False, "num_experts": 16, "num_shared_experts": 0, "num_experts_per_tok": 2,
           "norm_topk_prob": True, "moe_intermediate_size": None, "first_k_dense_replace": 0, "head_dim": None}
BAILING2 = {**BAILING, "use_qk_norm": False, "n_group": 8, "topk_group": 4, "routed_scaling_factor": 2.5,
            "partial_rotary_factor": 1.0, "num_nextn_predict_layers": 0, "moe_router_enable_expert_bias": True}

# Types whose configuration class is the authors' own, beside their checkpoints.
REMOTE = {
    "deepseek": {
        "vocab_size": 102400, "hidden_size": 4096, "intermediate_size": 11008, "moe_intermediate_size": 1407, "num_hidden_layers": 30,
        "num_attention_heads": 32, "num_key_value_heads": None, "n_shared_experts": None, "n_routed_experts": None,
        "num_experts_per_tok": None, "moe_layer_freq": 1, "first_k_dense_replace": 0, "norm_topk_prob": False,
        "scoring_func": "softmax", "hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False, "rope_theta": 10000.0, "rope_scaling": None, "attention_bias": False},
    "bailing_moe/BailingMoeForCausalLM": BAILING, "bailing_moe/BailingMoeV2ForCausalLM": BAILING2, "bailing_moe_v2": BAILING2,
    "arctic": {**COMMON, "intermediate_size": None, "hidden_act": "silu", "rms_norm_eps": 1e-5, "num_experts_per_tok": 1,
               "num_local_experts": 8, "moe_layer_frequency": 2, "parallel_attn_mlp_res": False, "use_residual": False,
               "sliding_window": None},
    "smallthinker": {**COMMON, "head_dim": 128, "rms_norm_eps": 1e-6, "tie_word_embeddings": True, "rope_theta": 1e6,
                     "rope_layout": None, "sliding_window_layout": None, "sliding_window_size": 4096,
                     "moe_num_primary_experts": 32, "moe_num_active_primary_experts": 4, "moe_ffn_hidden_size": 768,
                     "moe_enable_early_router": True, "moe_primary_router_apply_softmax": False,
                     "moe_enable_secondary_experts": False, "use_qk_norm": False},
}

PLAIN = {**COMMON, "intermediate_size": None, "hidden_act": "silu", "rms_norm_eps": 1e-6}
REMOTE.update({
    "internlm2": {**PLAIN, "bias": True},
    "minicpm": {**PLAIN, "tie_word_embeddings": True, "attention_bias": False, "scale_emb": 1, "dim_model_base": 1, "scale_depth": 1},
    "xverse": {k: v for k, v in PLAIN.items() if k not in ("num_key_value_heads", "rope_scaling")},
    "orion": {**PLAIN, "rms_norm_eps": 1e-5},
    "baichuan": {**{k: v for k, v in PLAIN.items() if k not in ("num_key_value_heads", "rope_scaling", "rope_theta")},
                 "model_max_length": None, "z_loss_weight": None},
    "chatglm": {"vocab_size": None, "hidden_size": None, "num_hidden_layers": None, "num_attention_heads": None, "head_dim": None, "ffn_hidden_size": None,
                "seq_length": None, "layer_norm_eps": 1e-5, "rmsnorm": True, "apply_residual_connection_post_layernorm": False,
                "post_layer_norm": True, "add_bias_linear": False, "add_qkv_bias": False, "multi_query_attention": False,
                "multi_query_group_num": 1, "rope_ratio": 1, "tie_word_embeddings": False},
    "gpt_refact": {"vocab_size": None, "n_embd": None, "n_layer": None, "n_head": None, "n_positions": None, "multi_query": True,
                   "layer_norm_epsilon": 1e-5, "tie_word_embeddings": False},
    "jais": {"vocab_size": None, "n_embd": None, "n_layer": None, "n_head": None, "n_positions": None, "n_inner": None,
             "activation_function": "gelu", "layer_norm_epsilon": 1e-5, "position_embedding_type": "learned", "scale_attn_weights": True,
             "scale_attn_by_inverse_layer_idx": False, "alibi_scaling": None, "mup_embeddings_scale": None, "embeddings_scale": None,
             "mup_output_alpha": None, "mup_width_scale": None, "width_scale": None, "mup_scale_qk_dot_by_d": False, "scale_qk_dot_by_d": False,
             "tie_word_embeddings": True},
    "codeshell": {"vocab_size": None, "n_embd": None, "n_layer": None, "n_head": None, "n_positions": None, "n_inner": None,
                  "layer_norm_epsilon": 1e-5, "activation_function": "gelu_pytorch_tanh", "group_query_attention": True, "num_query_groups": 1,
                  "position_embedding_type": "learned_absolute", "rope_scaling": None, "tie_word_embeddings": False},
})

# The package fla's class. Ranks and widths of values are those of the tensors.
REMOTE["nomic_bert/moe"] = {
    "vocab_size": 50257, "hidden_size": 768, "intermediate_size": None, "num_hidden_layers": 12, "num_attention_heads": 12,
    "hidden_act": "gelu_new", "max_position_embeddings": 1024, "type_vocab_size": 2, "layer_norm_eps": 1e-5, "rope_theta": 10000.0,
    "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "rotary_emb_scale_base": None, "rotary_scaling_factor": None,
    "qkv_proj_bias": True, "mlp_fc1_bias": True, "mlp_fc2_bias": True, "use_rms_norm": False, "prenorm": False, "causal": False,
    "parallel_block": False, "scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "moe_every_n_layers": 0,
    "num_experts": 8, "moe_top_k": 1, "num_shared_experts": 0, "moe_normalize_expert_weights": False, "expert_choice_router": False}
REMOTE["rwkv7"] = {
    "vocab_size": 32000, "hidden_size": 2048, "hidden_ratio": 4, "intermediate_size": None, "num_hidden_layers": 24, "head_dim": 64,
    "hidden_act": "sqrelu", "norm_first": True, "norm_bias": True, "norm_eps": 1e-5, "attn": None, "tie_word_embeddings": False}

# The authors' classes. Ranks are those of the tensors.
REMOTE["rwkv5"] = REMOTE["rwkv6"] = {
    "vocab_size": 65536, "hidden_size": 4096, "num_hidden_layers": 32, "attention_hidden_size": None, "head_size": 64, "head_size_divisor": 8,
    "intermediate_size": None, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": False}

# What a class takes under a name of its first checkpoints.
ALIASES = {"bloom": {"n_embed": "hidden_size"}, "falcon": {"n_embed": "hidden_size"},
           "chatglm": {"padded_vocab_size": "vocab_size", "num_layers": "num_hidden_layers", "kv_channels": "head_dim",
                       "layernorm_epsilon": "layer_norm_eps"},
           "nomic_bert": {"n_embd": "hidden_size", "n_inner": "intermediate_size", "n_layer": "num_hidden_layers",
                          "n_head": "num_attention_heads", "n_positions": "max_position_embeddings",
                          "layer_norm_epsilon": "layer_norm_eps", "rotary_emb_base": "rope_theta", "activation_function": "hidden_act"}}
ALIASES["nomic_bert/moe"] = ALIASES["nomic_bert"]

# What a config.json tells of a model, though its class does not look at it.
TOLD = {"bloom": ["seq_length"], "falcon_h1": ["head_dim"], "gemma4_text": ["per_layer_config"], "opt": ["_remove_final_layer_norm"]}

# What a class has, though its model does not look at it: BioGPT's norms add 1e-5 whatever their configuration says, and RWKV has
# no longest text.
UNREAD = {"biogpt": ["layer_norm_eps"], "rwkv": ["context_length"]}

# The same in parts of a model, and what parts take from what else they have, with its defaults.
COPIED = ["hidden_size"]
TOLD_OF_PARTS = {"dbrx": {"attn_config: rope_theta": 10000.0}, "nomic_bert": {
    "causal": False, "prenorm": False, "parallel_block": False, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
    "rotary_emb_scale_base": None, "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False, "use_rms_norm": False,
    "moe_every_n_layers": None, "rotary_scaling_factor": None, "scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False}}
JINA = {"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
        "hidden_act": "gelu", "max_position_embeddings": 512, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
        "position_embedding_type": "absolute", "feed_forward_type": "original", "is_causal": True}

# What others have for training alone.
COMPUTES = {"phimoe": ["router_jitter_noise"]}

NEUTRAL = ["*_token_id", "*_token_index", "*_token_ids", "use_cache", "initializer_range", "*dropout*", "*_pdrop", "output_*",
           "return_dict", "num_labels", "problem_type", "pretraining_tp", "slow_but_exact", "summary_*", "init_device",
           "attn_impl", "attn_uses_sequence_id", "is_decoder", "reorder_and_upcast_attn", "attention_softmax_in_fp32",
           "scale_attention_softmax_in_fp32", "dtype", "_*", "router_aux_loss_coef", "router_jitter_noise", "input_jitter_noise", "moe_jitter_eps", "moe_loss_weight", "get_text_config",
           "vision_config", "text_config", "mm_tokens_per_image", "altup_coef_clip",
           "n_ctx", "layerdrop", "init_std", "deterministic_flash_attn", "sparse_pred*", "decoder_bias",
           "initializer_cutoff_factor",
           "w_init_variance_scale", "time_step_scale", "time_step_min", "time_step_max", "time_step_init_scheme", "time_step_floor", "rescale_prenorm_residual",
           "residual_in_fp32", "rescale_every", "use_mambapy", "use_falcon_mambapy", "use_associative_scan", "use_mamba_kernels", "use_mem_eff_path",
           "chunk_size", "mamba_chunk_size", "mamba_dt_min", "mamba_dt_max", "mamba_dt_init_floor", "mamba_ssm_cache_dtype",
           "mtp_layers_block_type", "mtp_hybrid_override_pattern", "moe_shared_expert_overlap", "num_logits_to_keep", "z_loss_coefficient"]


def neutral(key):
    return any(fnmatch.fnmatch(key, p) for p in NEUTRAL)


def fields(cls):
    """Returns the fields that a class adds to those of every class, with their defaults."""
    base = {f.name for f in dataclasses.fields(PreTrainedConfig)}
    out = {}
    for f in dataclasses.fields(cls):
        if f.name in base and f.name not in cls.__dict__.get("__annotations__", {}):
            continue
        out[f.name] = f.default if f.default is not dataclasses.MISSING else None
    return out


def looked_up(cls, values):
    """Returns the keys that the class takes from what else a config.json has, with their defaults."""
    out = {}
    for n in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(cls)))):
        if not (isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and getattr(n.func.value, "id", "") == "kwargs"):
            continue
        if n.func.attr in ("get", "pop", "setdefault"):
            default = ast.unparse(n.args[1]) if len(n.args) > 1 else "None"
            if default.removeprefix("self.") in values:
                default = "None"    # it goes before another key
            try:
                out[n.args[0].value] = eval(default, {"self": cls, "default_theta": cls.default_theta})
            except (AttributeError, NameError):
                out[n.args[0].value] = None    # it follows from other keys
    return out


def read_by_model(cls):
    """Returns the keys that the model's code asks its configuration for that may be missing, with their defaults."""
    try:
        module = importlib.import_module(cls.__module__.replace("configuration_", "modeling_"))
    except ModuleNotFoundError:     # it is a Llama under other names
        module = importlib.import_module("transformers.models.llama.modeling_llama")
    source = inspect.getsource(module)
    out = {}
    for n in ast.walk(ast.parse(source)):
        if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "getattr" and len(n.args) == 3:
            if ast.unparse(n.args[0]) in ("config", "self.config") and isinstance(n.args[1], ast.Constant):
                try:
                    out[n.args[1].value] = ast.literal_eval(n.args[2])
                except ValueError:
                    pass    # it follows from other keys
    return out


def describe(cls):
    own = fields(cls)
    keys = {**read_by_model(cls), **looked_up(cls, own), **own, "is_causal": True}
    if "rope_parameters" in own:
        theta = cls.default_theta
        rotary = {"rope_theta": theta if isinstance(theta, float) else theta["global"], "rope_scaling": None,
                  "partial_rotary_factor": None, "original_max_position_embeddings": None}
        keys = {**rotary, **keys}
        if "self.rope_parameters =" in inspect.getsource(cls.__post_init__):
            keys["rope_parameters"] = {k: v for k, v in cls().rope_parameters.items() if k != "rope_theta" or v != theta}
    from transformers.models.mpt.configuration_mpt import MptAttentionConfig
    for name in {"attn_config", "ffn_config"} & set(own):
        part = getattr(cls, "sub_configs", {}).get(name, MptAttentionConfig)
        keys.update({f"{name}: {k}": v for k, v in fields(part).items() if not neutral(k) and k not in COPIED})
    keys.update(TOLD_OF_PARTS.get(cls.model_type, {}))
    keys = {k: None if isinstance(v, (list, tuple)) and float("inf") in v else v for k, v in keys.items()}   # no limit
    return {k: v for k, v in sorted(keys.items()) if not neutral(k) or k in COMPUTES.get(cls.model_type, [])}


def main():
    lines = {}
    REMOTE.update({f"bert/JinaBert{end}": JINA for end in ("Model", "ForMaskedLM", "ForSequenceClassification")})
    for kind in [*TYPES, *EXPERTS, *LATENT, *ENCODERS, *STATE]:
        cls = CONFIG_MAPPING[kind]
        aliases = {**cls.attribute_map, **ALIASES.get(kind, {})}
        keys = describe(cls)
        for k in [*ALIASES.get(kind, {}), *UNREAD.get(kind, [])]:
            keys.pop(k, None)
        keys.update(dict.fromkeys(TOLD.get(kind, [])))
        aliases = dict((a, k) if k in keys else (k, a) for a, k in aliases.items())
        lines[kind] = {"type": kind, "aliases": aliases, "keys": keys}
    for kind, keys in REMOTE.items():
        lines[kind] = {"type": kind, "aliases": ALIASES.get(kind, {}), "keys": keys}
    for kind, (like, aliases) in LEGACY.items():
        lines[kind] = {"type": kind, "aliases": {**lines[like]["aliases"], **aliases}, "keys": lines[like]["keys"]}
    with open(OUT, "w") as f:
        for kind in sorted(lines):
            f.write(json.dumps(lines[kind]) + "\n")


if __name__ == "__main__":
    main()
