"""What the cases of tiny models share."""

BASE = {"vocab_size": 128, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128}
IDS = {"bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32"}
WINDOW = 16
SLIM = {"intermediate_size": 32, "tie_word_embeddings": True}     # keeps the variations small
ROPE = {**SLIM, "head_dim": 16, "num_attention_heads": 2, "num_key_value_heads": 1}


def case(name, note, arch, model_type, config, **options):
    return {"name": name, "note": note, "gguf": True, **options,
            "config": {"architectures": [arch], "model_type": model_type, **IDS, **config}}


def family(arch, model_type, defaults, **family_options):
    """Returns a function that makes cases of one architecture from what differs."""
    def make(name, note, config=None, drop=(), **options):
        conf = {**defaults, **(config or {})}
        for key in drop:
            del conf[key]
        return case(name, note, arch, model_type, conf, **{**family_options, **options})
    return make
