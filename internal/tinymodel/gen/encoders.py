"""Makes the tiny encoders and their goldens: random weights, states and scores from Hugging Face transformers.

    python encoders.py --llama-cpp DIR [--only NAME ...]

Every case becomes a folder ../encoders/NAME with a checkpoint as make.py writes it, NAME.gguf where llama.cpp's converter can
express the case, and golden.json with

    tokens, second   the text's ids, and how many of them come before a second text (0: there is one)
    states           the states behind the last layer of every 8th token
    pooling, embedding   how they become an embedding, and that embedding, scaled to length 1
    scores           of a classifier, before any sigmoid

All is computed in float32 from the files just written. That every tensor matters is checked as make.py does.
"""
import argparse
import json
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

import make
from vocab import gguf_vocab, write_tokenizer

OUT = make.HERE.parent / "encoders"
EVERY = 8
IDLE = (".key.bias", ".k_lin.bias", ".attn.k.bias")     # they add the same to all scores of a query
BASE = {"vocab_size": 128, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 96, "torch_dtype": "bfloat16", "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
ROBERTA = {**BASE, "max_position_embeddings": 98, "pad_token_id": 1, "type_vocab_size": 1}
GATED = {"num_key_value_heads": 2, "head_dim": 8}
MODERN = {**BASE, "num_hidden_layers": 4, "local_attention": 16, "cls_token_id": 1, "sep_token_id": 2, "global_attn_every_n_layers": 3}


def case(name, note, arch, model_type, config, **options):
    return {"name": name, "note": note, "gguf": True, "pooling": "mean", **options,
            "config": {"architectures": [arch], "model_type": model_type, **config}}


NOMIC_FIRST = {"n_embd": 32, "n_inner": 48, "n_layer": 2, "n_head": 4, "n_positions": 8192, "vocab_size": 128, "type_vocab_size": 2,
               "layer_norm_epsilon": 1e-12, "activation_function": "swiglu", "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0,
               "rotary_emb_interleaved": False, "rotary_emb_scale_base": None, "qkv_proj_bias": False, "mlp_fc1_bias": False,
               "mlp_fc2_bias": False, "prenorm": False, "causal": False, "max_trained_positions": 2048, "torch_dtype": "bfloat16"}

CASES = [
    case("bert", "types, learned positions, norms of sums", "BertModel", "bert", BASE, second=40, pooling="cls"),
    case("bert-class", "the pooler and three labels", "BertForSequenceClassification", "bert", {**BASE, "num_labels": 3}, second=40, gguf=False),
    case("bert-relu", "another activation, odd sizes", "BertModel", "bert", {**BASE, "hidden_act": "relu", "hidden_size": 40, "num_attention_heads": 5, "intermediate_size": 56, "layer_norm_eps": 1e-3}, second=17, gguf=False),
    case("distilbert", "no types", "DistilBertModel", "distilbert", {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "vocab_size": 128, "max_position_embeddings": 96, "torch_dtype": "bfloat16"}),
    case("distilbert-class", "one label behind ReLU", "DistilBertForSequenceClassification", "distilbert", {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "vocab_size": 128, "max_position_embeddings": 96, "num_labels": 1, "torch_dtype": "bfloat16"}, gguf=False),
    case("roberta", "positions behind those of padding", "RobertaModel", "roberta", ROBERTA),
    case("xlm-roberta-class", "one label behind tanh", "XLMRobertaForSequenceClassification", "xlm-roberta", {**ROBERTA, "num_labels": 1}, converter="RobertaModel"),
    case("mpnet", "biases by distance", "MPNetModel", "mpnet", {**ROBERTA, "relative_attention_num_buckets": 32}, gguf=False, bias_std=1.0),
    case("mpnet-class", "two labels", "MPNetForSequenceClassification", "mpnet", {**ROBERTA, "num_labels": 2}, gguf=False, bias_std=1.0),
    case("nomic-bert", "rotated, gated, types", "NomicBertModel", "nomic_bert", {**BASE, "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0}}, gguf=False,
         dense=[(32, 24, True)]),
    case("nomic-bert-first", "the same as its authors describe it", "NomicBertModel", "nomic_bert", {**BASE, "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0}}, published=NOMIC_FIRST),
    case("jina-bert-v3", "XLM-RoBERTa with rotated queries and keys", "JinaEmbeddingsV3Model", "jina_embeddings_v3", {
        **BASE, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0}}, gguf=False),
    case("jina-bert-v3-class", "the same with a label", "JinaEmbeddingsV3ForSequenceClassification", "jina_embeddings_v3", {
        **BASE, "type_vocab_size": 1, "num_labels": 1, "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0}}, gguf=False),
    case("modernbert", "two layers of four that see 8 tokens to either side", "ModernBertModel", "modernbert", MODERN, pooling="cls"),
    case("modernbert-class", "a classifier of the mean, biases everywhere", "ModernBertForSequenceClassification", "modernbert", {**MODERN, "num_labels": 1, "classifier_pooling": "mean", "norm_bias": True, "attention_bias": True, "mlp_bias": True, "classifier_bias": True}, gguf=False),
    case("modernbert-class-cls", "a classifier of the first token", "ModernBertForSequenceClassification", "modernbert", {**MODERN, "num_labels": 2, "classifier_pooling": "cls", "num_hidden_layers": 2}, gguf=False),
    case("gemma3-both", "Gemma 3 in both directions, two matrices for embeddings", "Gemma3TextModel", "gemma3_text", {
        **BASE, "num_key_value_heads": 1, "head_dim": 8, "num_hidden_layers": 3, "sliding_window": 16, "use_bidirectional_attention": True,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "query_pre_attn_scalar": 8,
        "rope_local_base_freq": 10000.0, "rope_theta": 1000000.0}, dense=[(32, 48, False), (48, 32, False)], norm_plus_one=True,
         gguf_extra={"gemma-embedding.attention.sliding_window_pattern": [True, False, True]}),
    case("llama-both", "a causal model's layers in both directions", "LlamaModel", "llama", {**BASE, "num_key_value_heads": 2, "is_causal": False}, gguf=False),
    case("qwen3-class", "a causal model with two labels of the last token", "Qwen3ForSequenceClassification", "qwen3", {**BASE, **GATED, "num_labels": 2}, gguf=False),
    case("qwen3-last", "embeddings of the last token, as Qwen3-Embedding's files have it", "Qwen3Model", "qwen3", {**BASE, **GATED, "tie_word_embeddings": True, "rms_norm_eps": 1e-6}, pooling="last",
         published={**BASE, **GATED, "tie_word_embeddings": True, "rms_norm_eps": 1e-6}, published_class="Qwen3ForCausalLM"),
    case("qwen3-judge", "a causal model that is asked whether a text answers: logits of two words, of the embedding", "Qwen3ForCausalLM", "qwen3", {**BASE, **GATED, "tie_word_embeddings": True}, judge=[70, 90]),
    case("qwen3-judge-own", "the same with an output matrix of its own", "Qwen3ForCausalLM", "qwen3", {**BASE, **GATED, "tie_word_embeddings": False}, judge=[70, 90]),
    case("llama-class", "a causal model with a reward", "LlamaForSequenceClassification", "llama", {**BASE, "num_key_value_heads": 2, "num_labels": 1, "pad_token_id": 0}, gguf=False),
]


JINA = {"architectures": ["JinaBertModel"], "model_type": "bert", **BASE, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu",
        "position_embedding_type": "alibi", "feed_forward_type": "geglu"}


def jina_tensors(gen):
    """Returns random tensors under the names of JinaBERT 2's checkpoints: transformers has no such class."""
    h, f, shapes = JINA["hidden_size"], JINA["intermediate_size"], {}
    for name, shape in {"embeddings.word_embeddings.weight": (128, h), "embeddings.token_type_embeddings.weight": (2, h),
                        "embeddings.LayerNorm.weight": (h,), "embeddings.LayerNorm.bias": (h,)}.items():
        shapes[name] = shape
    for i in range(JINA["num_hidden_layers"]):
        at = f"encoder.layer.{i}."
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            shapes |= {at + part + ".weight": (h, h), at + part + ".bias": (h,)}
        shapes |= {at + "mlp.gated_layers.weight": (2 * f, h), at + "mlp.wo.weight": (h, f), at + "mlp.wo.bias": (h,)}
        for part in ("attention.output.LayerNorm", "mlp.layernorm"):
            shapes |= {at + part + ".weight": (h,), at + part + ".bias": (h,)}
    return {k: make.random_values(k.replace("layernorm", "norm").replace("LayerNorm", "norm"), s, gen, {}) for k, s in shapes.items()}


def jina_states(w, tokens, second):
    """Computes JinaBERT 2 as its paper describes it (arXiv 2310.19923): ALiBi to both sides, GELU gates, norms of sums."""
    fn, heads = torch.nn.functional, JINA["num_attention_heads"]
    linear = lambda x, name: x @ w[name + ".weight"].T + w.get(name + ".bias", 0)
    norm = lambda x, name: fn.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], JINA["layer_norm_eps"])
    types = torch.tensor([int(i >= second > 0) for i in range(len(tokens))])
    x = norm(w["embeddings.word_embeddings.weight"][tokens] + w["embeddings.token_type_embeddings.weight"][types], "embeddings.LayerNorm")
    place = torch.arange(len(tokens))
    slopes = torch.tensor([2.0 ** (-8 * (i + 1) / heads) for i in range(heads)])     # of a power of 2 of heads
    bias = -slopes[:, None, None] * (place[:, None] - place[None]).abs()
    split = lambda y: y.view(len(tokens), heads, -1).transpose(0, 1)
    for i in range(JINA["num_hidden_layers"]):
        at = f"encoder.layer.{i}."
        q, k, v = (split(linear(x, at + "attention.self." + part)) for part in ("query", "key", "value"))
        y = torch.softmax(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5 + bias, -1) @ v
        x = norm(x + linear(y.transpose(0, 1).reshape(x.shape), at + "attention.output.dense"), at + "attention.output.LayerNorm")
        gate, up = linear(x, at + "mlp.gated_layers").chunk(2, -1)
        x = norm(x + linear(fn.gelu(gate) * up, at + "mlp.wo"), at + "mlp.layernorm")
    return x


NOMIC = {**NOMIC_FIRST, "layer_norm_epsilon": 1e-5, "activation_function": "gelu", "rotary_emb_base": 10000, "qkv_proj_bias": True, "mlp_fc1_bias": True,
         "mlp_fc2_bias": True, "n_layer": 4, "n_positions": 2048, "type_vocab_size": 1, "moe_every_n_layers": 2, "num_experts": 4, "moe_top_k": 2,
         "moe_normalize_expert_weights": False, "num_shared_experts": 0, "expert_choice_router": False, "moe_impl": "megablocks", "ffn_div": 1}


def nomic_tensors(gen):
    """Returns random tensors under the names of nomic-embed-text-v2's checkpoint: transformers has no such class."""
    h, f, n = NOMIC["n_embd"], NOMIC["n_inner"], NOMIC["num_experts"]
    shapes = {"embeddings.word_embeddings.weight": (128, h), "embeddings.token_type_embeddings.weight": (1, h), "emb_ln.weight": (h,), "emb_ln.bias": (h,)}
    for i in range(NOMIC["n_layer"]):
        at = f"encoder.layers.{i}."
        for part, size in {"attn.Wqkv": (3 * h, h), "attn.out_proj": (h, h), **({} if i % 2 else {"mlp.fc1": (f, h), "mlp.fc2": (h, f)})}.items():
            shapes |= {at + part + ".weight": size, at + part + ".bias": size[:1]}
        if i % 2:
            shapes |= {at + "mlp.router.layer.weight": (n, h), at + "mlp.experts.mlp.w1": (n * f, h), at + "mlp.experts.mlp.w2": (n * f, h), at + "mlp.experts.bias": (h,)}
        shapes |= {at + norm + end: (h,) for norm in ("norm1", "norm2") for end in (".weight", ".bias")}
    return {k: make.random_values(k.replace("emb_ln", "norm"), s, gen, {}) for k, s in shapes.items()}


def nomic_states(w, tokens, second):
    """Computes NomicBERT with experts as its paper describes it (arXiv 2502.07972): a softmax over all experts weighs the chosen ones,
    whose sum has a bias."""
    fn, heads, n = torch.nn.functional, NOMIC["n_head"], NOMIC["num_experts"]
    linear = lambda x, name: x @ w[name + ".weight"].T + w[name + ".bias"]
    norm = lambda x, name: fn.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], NOMIC["layer_norm_epsilon"])
    x = norm(w["embeddings.word_embeddings.weight"][tokens] + w["embeddings.token_type_embeddings.weight"][0], "emb_ln")
    dim = NOMIC["n_embd"] // heads
    angles = torch.arange(len(tokens))[:, None] * NOMIC["rotary_emb_base"] ** (-torch.arange(0, dim, 2) / dim)

    def turn(y):
        a, b = y.chunk(2, -1)
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)

    for i in range(NOMIC["n_layer"]):
        at = f"encoder.layers.{i}."
        q, k, v = (y.view(len(tokens), heads, dim).transpose(0, 1) for y in linear(x, at + "attn.Wqkv").chunk(3, -1))
        y = torch.softmax(turn(q) @ turn(k).transpose(1, 2) / dim ** 0.5, -1) @ v
        x = norm(x + linear(y.transpose(0, 1).reshape(x.shape), at + "attn.out_proj"), at + "norm1")
        if i % 2:
            share, chosen = torch.softmax(x @ w[at + "mlp.router.layer.weight"].T, -1).topk(NOMIC["moe_top_k"], -1)
            up, down = (w[at + "mlp.experts.mlp." + part].view(n, -1, x.shape[-1]) for part in ("w1", "w2"))
            y = torch.stack([sum(s * (fn.gelu(up[e] @ row) @ down[e]) for s, e in zip(shares, experts))
                             for row, shares, experts in zip(x, share, chosen)]) + w[at + "mlp.experts.bias"]
        else:
            y = linear(fn.gelu(linear(x, at + "mlp.fc1")), at + "mlp.fc2")
        x = norm(x + y, at + "norm2")
    return x


def make_own(name, note, config, tensors, compute_states, second, tokenizer=None):
    """Makes a case of a definition of its own in place of a class of transformers."""
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_tokenizer(folder, 128)
    conf = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    w = tensors(torch.Generator().manual_seed(1))
    save_file({k: v.to(torch.bfloat16) for k, v in w.items()}, folder / "model.safetensors", metadata={"format": "pt"})
    c = {"config": config, "pooling": "mean"}
    write_parts(folder, c, None)
    tokens = [int(t) for t in np.random.default_rng(1).integers(3, 128, 64)]
    states = compute_states(w, tokens, second)
    for tensor in w:
        moved = float((compute_states({**w, tensor: w[tensor].flatten().roll(1).view(w[tensor].shape)}, tokens, second) - states).abs().max())
        if moved < make.EFFECT and not tensor.endswith(IDLE):
            raise SystemExit(f"{name}: {tensor} hardly matters: {moved:.4f}")
    golden = {"note": note, "seed": 1, "tokens": tokens, "second": second, "every": EVERY,
              "states": states[EVERY - 1::EVERY].tolist(), "pooling": "mean", "embedding": embed(c, states, [])}
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    if tokenizer:
        (folder / "tokenizer_config.json").write_text(json.dumps({**conf, "tokenizer_class": tokenizer}) + "\n")
        tiny_gguf(folder, folder / f"{name}.gguf", c)
        (folder / "tokenizer_config.json").write_text(json.dumps(conf) + "\n")
    for file in folder.rglob("*"):
        if file.is_file():
            file.chmod(0o644)
    print(f"{name:24} states std {float(states.std()):.2f}")


def tiny_gguf(folder, path, case):
    from conversion import ModelBase, ModelType, get_model_architecture, get_model_class
    import gguf
    hparams = {**ModelBase.load_hparams(folder, False), **case["config"]}
    if "published" in case:
        hparams = {"architectures": case["config"]["architectures"], **case["published"]}
    cls = get_model_class(get_model_architecture({**hparams, "architectures": case["config"]["architectures"]}, ModelType.TEXT))

    class Tiny(cls):
        model_arch = cls.model_arch
        module_paths = []
        dense_features_dims = {}

        def set_vocab(self):
            gguf_vocab(self.gguf_writer, 128)
            if hasattr(self, "cls_out_labels"):
                self.gguf_writer.add_token_type_count(hparams.get("type_vocab_size", 2))

        def _is_qwen3_reranker(self):
            return bool(case.get("judge"))

        def _find_rerank_config(self):
            self.is_rerank, self.is_tied_embeddings = True, hparams["tie_word_embeddings"]
            self.token_true_id, self.token_false_id = case["judge"]

        def _is_tokenizer_xlmroberta(self):
            return False

        def _xlmroberta_tokenizer_init(self):
            from conversion.bert import BertModel
            BertModel._xlmroberta_tokenizer_init(self)

        def set_gguf_parameters(self):
            super().set_gguf_parameters()
            for key, value in case.get("gguf_extra", {}).items():
                self.gguf_writer.add_array(key, value)

    with torch.inference_mode():
        Tiny(folder, gguf.LlamaFileType.MOSTLY_F16, path, eager=True, model_name="tiny", hparams=hparams,
             sentence_transformers_dense_modules=bool(case.get("dense"))).write()


def write_parts(folder, case, gen):
    """Writes what sentence-transformers has behind a model."""
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling")] + [(f"{i + 2}_Dense", "Dense") for i in range(len(case.get("dense", [])))]
    kinds.append((f"{len(kinds)}_Normalize", "Normalize"))
    (folder / "modules.json").write_text(json.dumps([
        {"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind} for i, (path, kind) in enumerate(kinds)]) + "\n")
    if "judge" in case:
        library = "sentence_transformers."
        (folder / "1_LogitScore").mkdir()
        (folder / "1_LogitScore/config.json").write_text(json.dumps(dict(zip(("true_token_id", "false_token_id"), case["judge"]))) + "\n")
        (folder / "modules.json").write_text(json.dumps([
            {"idx": 0, "name": "0", "path": "", "type": library + "base.modules.transformer.Transformer"},
            {"idx": 1, "name": "1", "path": "1_LogitScore", "type": library + "cross_encoder.modules.logit_score.LogitScore"}]) + "\n")
        return []
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps({
        "word_embedding_dimension": 32, "pooling_mode_cls_token": case["pooling"] == "cls", "pooling_mode_mean_tokens": case["pooling"] == "mean",
        "pooling_mode_lasttoken": case["pooling"] == "last"}) + "\n")
    matrices = []
    for i, (n_in, n_out, tanh) in enumerate(case.get("dense", [])):
        at = folder / f"{i + 2}_Dense"
        at.mkdir()
        w = (torch.randn(n_out, n_in, generator=gen) / n_in ** 0.5 / make.GRID).round() * make.GRID
        save_file({"linear.weight": w.to(torch.bfloat16)}, at / "model.safetensors", metadata={"format": "pt"})
        (at / "config.json").write_text(json.dumps({"in_features": n_in, "out_features": n_out, "bias": False, "activation_function":
                                                    "torch.nn.modules.activation.Tanh" if tanh else "torch.nn.modules.linear.Identity"}) + "\n")
        matrices.append((w, tanh))
    return matrices


def auto(case):
    name = case["config"]["architectures"][0]
    if "judge" in case:
        return transformers.AutoModelForCausalLM
    return transformers.AutoModelForSequenceClassification if name.endswith("ForSequenceClassification") else transformers.AutoModel


def compute(model, case, tokens, second):
    """Returns the states and the scores of a text."""
    more = {}
    if second and case["config"].get("type_vocab_size", 2) > 1 and "bert" == case["config"]["model_type"]:
        more["token_type_ids"] = torch.tensor([[0] * second + [1] * (len(tokens) - second)])
    out = model(input_ids=torch.tensor([tokens]), output_hidden_states=True, **more)
    states = out.last_hidden_state if hasattr(out, "last_hidden_state") else out.hidden_states[-1]
    if "judge" in case:
        return states[0], out.logits[0, -1, case["judge"]]
    return states[0], (out.logits[0] if hasattr(out, "logits") else None)


def embed(case, states, matrices):
    x = {"cls": lambda: states[0], "last": lambda: states[-1], "mean": lambda: states.mean(0)}[case["pooling"]]()
    for w, tanh in matrices:
        x = w @ x
        x = torch.tanh(x) if tanh else x
    return (x / x.norm()).tolist()


def make_case(case):
    name, folder = case["name"], OUT / case["name"]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_tokenizer(folder, 128)
    seed = 1
    gen = torch.Generator().manual_seed(seed)
    (folder / "config.json").write_text(json.dumps(case["config"], indent=1) + "\n")
    config = transformers.AutoConfig.from_pretrained(folder)
    model = auto(case).from_config(config, attn_implementation="eager", dtype=torch.float32)
    make.randomize(model, gen, case)
    with tempfile.TemporaryDirectory() as tmp:
        model.save_pretrained(tmp)
        tensors = {k: v.to(torch.bfloat16) for k, v in load_file(pathlib.Path(tmp) / "model.safetensors").items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    model = auto(case).from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    tokens = [int(t) for t in np.random.default_rng(seed).integers(3, 128, 64)]
    second = case.get("second", 0)
    matrices = write_parts(folder, case, gen) if auto(case) is transformers.AutoModel or "judge" in case else []
    with torch.inference_mode():
        states, scores = compute(model, case, tokens, second)
        for tensor, p in model.named_parameters():
            if "pooler" in tensor and scores is None or tensor.endswith(IDLE) or scores is not None and "layer" in tensor:
                continue    # layers are those of a case without a classifier
            kept = p.data.clone()
            p.data.copy_(kept + 0.5 if kept.numel() == 1 else kept.flatten().roll(1).view(kept.shape))
            s, k = compute(model, case, tokens, second)
            moved = float((k - scores if scores is not None else s - states).abs().max())
            p.data.copy_(kept)
            if moved < (0.005 if scores is not None else make.EFFECT):
                raise SystemExit(f"{name}: {tensor} hardly matters: {moved:.4f}")
    golden = {"note": case["note"], "seed": seed, "tokens": tokens, "second": second, "every": EVERY,
              "states": states[EVERY - 1::EVERY].tolist(), "pooling": case["pooling"]}
    if scores is not None:
        golden["scores"] = scores.tolist()
    else:
        golden["embedding"] = embed(case, states, matrices)
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    if "published" in case:
        (folder / "config.json").write_text(json.dumps({"architectures": [case.get("published_class") or case["config"]["architectures"][0]], "model_type": case["config"]["model_type"], **case["published"]}, indent=1) + "\n")
    if case["gguf"]:
        tiny_gguf(folder, folder / f"{name}.gguf", case)
    for file in folder.rglob("*"):
        if file.is_file():
            file.chmod(0o644)
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    print(f"{name:24} states std {float(states.std()):.2f}  scores {golden.get('scores')}  {size >> 10} KiB", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--llama-cpp", required=True)
    ap.add_argument("--only", nargs="*")
    args = ap.parse_args()
    for part in ("", "gguf-py"):
        sys.path.insert(0, str(pathlib.Path(args.llama_cpp, part).resolve()))
    for c in CASES:
        if not args.only or c["name"] in args.only:
            make_case(c)
    if not args.only or "jina-bert-v2" in args.only:
        make_own("jina-bert-v2", "ALiBi to both sides, gated, types", JINA, jina_tensors, jina_states, 40, "BertTokenizer")
    if not args.only or "nomic-bert-moe" in args.only:
        make_own("nomic-bert-moe", "experts in every second layer, and a bias of their sum",
                 {"architectures": ["NomicBertModel"], "model_type": "nomic_bert", **NOMIC}, nomic_tensors, nomic_states, 0)


if __name__ == "__main__":
    main()
