"""The table of tiny models. One entry a case; config is the config.json as checkpoints on the hub have it."""

BASE = {"vocab_size": 128, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
        "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32"}


def case(name, note, arch, model_type, base=BASE, drop_keys=(), opts=None, **config):
    conf = {"architectures": [arch], "model_type": model_type}
    conf.update({k: v for k, v in base.items() if k not in drop_keys})
    conf.update(config)
    return {"name": name, "note": note, "config": conf, **(opts or {})}


def llama(name, note, **kw):
    kw = {"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False, **kw}
    return case(name, note, "LlamaForCausalLM", "llama", **kw)


CASES = [
    llama("llama", "GQA, untied output"),
]
