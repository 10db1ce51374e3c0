"""Makes draft heads for tiny models, and the logits that PyTorch computes with them.

    python heads.py [NAME ...]

Every case becomes a folder heads/NAME beside testdata: the weights as such heads are released (bf16, multiples of 1/64),
config.json where the form has one, golden.json and logits.f32. The states are those that transformers computes of the base
in testdata for its prompt; layers are those of transformers, and what is around them is written down here as the papers
and the authors' code have it:

    medusa    head k gives lm_k(x + SiLU(W x + b)) for the state x behind the last norm                   (arXiv 2401.10774)
    eagle     a Llama layer without its first norm reads fc([embedding, state behind the last norm])      (arXiv 2401.15077)
    eagle3    states of three layers are fused by fc; attention reads [norm(embedding), norm(fused)]      (arXiv 2503.01840)
    mtp       a layer of the model reads eh_proj([enorm(embedding), hnorm(state behind the last norm)])   (arXiv 2412.19437);
              MiMo's has the state first

Row i reads the state of token i and the embedding of token i + 1. logits.f32 has one row in EVERY of the rows of the prompt,
and then those of OWN rows that go on from the head's own states, whose tokens are those of golden.json; of medusa it has
those of each head. The script checks that every tensor but those of experts matters.
"""
import copy
import json
import os
import pathlib
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRMSNorm, LlamaRotaryEmbedding

HERE = pathlib.Path(__file__).resolve().parent
BASES, OUT = HERE.parent / "testdata", HERE.parent / "heads"
ROWS, EVERY, OWN = 32, 8, 3


def values(name, shape, gen):
    r = torch.randn(shape, generator=gen)
    if "e_score_correction_bias" in name:
        v = 0.3 * r
    elif name.endswith("bias"):
        v = 0.15 * r
    elif "norm" in name:
        v = 0.25 * r + (0.0 if name.startswith("mtp.") else 1.0)
    elif "head" in name and "linear" not in name and "shared_head" not in name or "lm_head" in name:
        v = 0.4 * r
    else:
        v = 1.3 / shape[-1] ** 0.5 * r
    return (v * 64).round() / 64


def causal(n):
    return torch.full((1, 1, n, n), float("-inf")).triu(1)


def out(x):
    return x[0] if isinstance(x, tuple) else x


class Base:
    """A tiny model, and what its layers read of its prompt."""

    def __init__(self, name):
        self.name, self.dir = name, BASES / name
        self.model = AutoModelForCausalLM.from_pretrained(self.dir, dtype=torch.float32, attn_implementation="eager").eval()
        self.prompt = torch.tensor([json.loads((self.dir / "golden.json").read_text())["prompt"][:ROWS]])
        seen = {}
        self.model.model.norm.register_forward_pre_hook(lambda m, a: seen.update(last=a[0]))
        with torch.no_grad():
            r = self.model(self.prompt, output_hidden_states=True)
        self.read = [h[0] for h in r.hidden_states[:-1]] + [seen["last"][0]]
        self.state = r.hidden_states[-1][0]
        self.embed = lambda ids: self.model.get_input_embeddings().weight[ids].detach()
        self.head = lambda x: x @ self.model.get_output_embeddings().weight.detach().T


def goes_on(base, tensors, own, step):
    """Runs step(embeddings, states, own) -> (rows of states, rows of logits) for the prompt, then for own tokens. Without a
    cache: all rows are computed each time, those with own states at the end."""
    ids = base.prompt[0]
    embeddings, logits, states = base.embed(ids[1:]), None, None
    mine = []
    for i in range(len(own) + 1):
        states, logits = step(torch.cat([embeddings] + [base.embed(own[k:k + 1]) for k in range(i)]), mine)
        if i < len(own):
            mine.append(states[-1:])
    n = len(ids) - 1
    return torch.cat([logits[:n][EVERY - 1::EVERY], logits[n:]])


def medusa(base, w, own, case):
    rows = []
    for k in range(case["heads"]):
        x = base.state
        for i in range(case["blocks"]):
            x = x + F.silu(x @ case["w"](w, k, i).T + case["b"](w, k, i))
        rows.append((x @ case["out"](w, k).T)[EVERY - 1::EVERY])
    return torch.cat(rows)


def llama_layer(w, config, prefix):
    layer = LlamaDecoderLayer(config, 0)
    layer.load_state_dict({k[len(prefix):]: v for k, v in w.items() if k.startswith(prefix)}, strict=False)
    return layer.eval()


def eagle(base, w, own, case):
    config = LlamaConfig(**case["config"], attn_implementation="eager")
    layer, rotary = llama_layer(w, config, "layers.0."), LlamaRotaryEmbedding(config)
    layer.input_layernorm = torch.nn.Identity()

    def step(e, mine):
        h = torch.cat([base.state[:len(e) - len(mine)], *mine])
        x = (torch.cat([e, h], -1) @ w["fc.weight"].T + w.get("fc.bias", 0))[None]
        pos = torch.arange(x.shape[1])[None]
        x = out(layer(x, attention_mask=causal(x.shape[1]), position_ids=pos, position_embeddings=rotary(x, pos)))[0]
        return x, base.head(x)
    return goes_on(base, w, own, step)


def eagle3(base, w, own, case):
    config = LlamaConfig(**case["config"], attn_implementation="eager")
    p = "midlayer."
    layer, rotary = LlamaDecoderLayer(config, 0), LlamaRotaryEmbedding(config)
    for part in "qkv":
        proj = torch.nn.Linear(2 * config.hidden_size, w[f"{p}self_attn.{part}_proj.weight"].shape[0], bias=False)
        setattr(layer.self_attn, f"{part}_proj", proj)
    layer.load_state_dict({k[len(p):]: v for k, v in w.items() if k.startswith(p)}, strict=False)
    layer.eval()
    eps = config.rms_norm_eps

    def norm(x, name):
        return w[name] * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)

    def step(e, mine):
        n = len(e) - len(mine)
        h = torch.cat([torch.cat([base.read[i][:n] for i in case["taps"]], -1) @ w["fc.weight"].T, *mine])
        normed = norm(h, p + "hidden_norm.weight")
        x = torch.cat([norm(e, p + "input_layernorm.weight"), normed], -1)[None]
        pos = torch.arange(len(e))[None]
        x = out(layer.self_attn(x, attention_mask=causal(len(e)), position_embeddings=rotary(x, pos)))[0]
        x = x + (normed if case["config"].get("norm_before_residual") else h)
        x = x + layer.mlp(norm(x, p + "post_attention_layernorm.weight")[None])[0]
        return x, norm(x, "norm.weight") @ w["lm_head.weight"].T
    return goes_on(base, w, own, step)


def mtp(base, w, own, case):
    model, p = base.model, case["prefix"]
    n = model.config.num_hidden_layers
    config = copy.deepcopy(model.config)
    config.num_hidden_layers = n + 1
    for key, more in (("layer_types", "full_attention"), ("mlp_layer_types", "sparse")):
        if getattr(config, key, None):
            setattr(config, key, list(getattr(config, key)) + [more])
    layer = type(model.model.layers[-1])(config, n).eval()
    state = {k[len(p):]: v for k, v in w.items() if k.startswith(p)}
    for name, stacks in case.get("stacked", {}).items():         # experts in one tensor
        state[name] = stacks(state)
    missing, _ = layer.load_state_dict(state, strict=False)
    assert not [m for m in missing if "inv_freq" not in m], missing
    eps, plus = config.rms_norm_eps, case["plus"]

    def norm(x, name):
        return (w[name] + plus) * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)

    enorm, hnorm, proj, last = case["parts"]

    def step(e, mine):
        h = torch.cat([base.state[:len(e) - len(mine)], *mine])
        both = [norm(e, enorm), norm(h, hnorm)]
        x = (torch.cat(both[::-1] if case["reversed"] else both, -1) @ w[proj].T)[None]
        pos = torch.arange(len(e))[None]
        x = out(layer(x, attention_mask=causal(len(e)), position_ids=pos, position_embeddings=model.model.rotary_emb(x, pos)))[0]
        normed = norm(x, last)
        return (normed if case["normed"] else x), base.head(normed)
    return goes_on(base, w, own, step)


def layer_shapes(hidden, heads, kv, dim, ffn, width=None, first=True):
    width = width or hidden
    s = {"self_attn.q_proj.weight": (heads * dim, width), "self_attn.k_proj.weight": (kv * dim, width), "self_attn.v_proj.weight": (kv * dim, width),
         "self_attn.o_proj.weight": (hidden, heads * dim), "post_attention_layernorm.weight": (hidden,),
         "mlp.gate_proj.weight": (ffn, hidden), "mlp.up_proj.weight": (ffn, hidden), "mlp.down_proj.weight": (hidden, ffn)}
    if first:
        s["input_layernorm.weight"] = (hidden,)
    return s


def prefixed(prefix, shapes):
    return {prefix + k: v for k, v in shapes.items()}


LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
         "max_position_embeddings": 128, "vocab_size": 128, "tie_word_embeddings": False, "hidden_act": "silu"}

CASES = {
    "medusa": dict(base="llama", run=medusa, heads=3, blocks=1, file="medusa_lm_head.safetensors",
                   shapes={**{f"{k}.0.linear.weight": (32, 32) for k in range(3)}, **{f"{k}.0.linear.bias": (32,) for k in range(3)},
                           **{f"{k}.1.weight": (128, 32) for k in range(3)}},
                   w=lambda w, k, i: w[f"{k}.{i}.linear.weight"], b=lambda w, k, i: w[f"{k}.{i}.linear.bias"], out=lambda w, k: w[f"{k}.1.weight"]),
    "medusa-map": dict(base="llama", run=medusa, heads=2, blocks=2,
                       shapes={**{f"medusa_heads.blocks.{k}.layers.{i}.weight": (32, 32) for k in range(2) for i in range(2)},
                               **{f"medusa_heads.lm_heads.{k}.weight": (40, 32) for k in range(2)}},
                       ints={"token_map": sorted(torch.randperm(128, generator=torch.Generator().manual_seed(4))[:40].tolist())},
                       w=lambda w, k, i: w[f"medusa_heads.blocks.{k}.layers.{i}.weight"], b=lambda w, k, i: 0,
                       out=lambda w, k: w[f"medusa_heads.lm_heads.{k}.weight"]),
    "eagle": dict(base="llama", run=eagle, config={**LLAMA, "bias": True},
                  shapes={"fc.weight": (32, 64), "fc.bias": (32,), **prefixed("layers.0.", layer_shapes(32, 4, 2, 8, 48, first=False))}),
    "eagle3": dict(base="llama", run=eagle3, taps=[0, 1, 2], config={**LLAMA, "draft_vocab_size": 40, "eagle_aux_hidden_state_layer_ids": [0, 1, 2]},
                   shapes={"fc.weight": (32, 96), **prefixed("midlayer.", layer_shapes(32, 4, 2, 8, 48, width=64)), "midlayer.hidden_norm.weight": (32,),
                           "norm.weight": (32,), "lm_head.weight": (40, 32)},
                   d2t=sorted(torch.randperm(128, generator=torch.Generator().manual_seed(5))[:40].tolist())),
    "eagle3-normed": dict(base="llama", run=eagle3, taps=[1, 2], file="model.safetensors",
                          config={**LLAMA, "norm_before_residual": True, "eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1]}},
                          shapes={"fc.weight": (32, 64), **prefixed("midlayer.", layer_shapes(32, 4, 2, 8, 48, width=64)), "midlayer.hidden_norm.weight": (32,),
                                  "norm.weight": (32,), "lm_head.weight": (128, 32)}),
}


def mtp_case(base, prefix, parts, plus, normed, stacked=None, reversed=False):
    """A layer that is shaped as the last one of the base."""
    from safetensors import safe_open
    with safe_open(BASES / base / "model.safetensors", "pt") as f:
        n = json.loads((BASES / base / "config.json").read_text())["num_hidden_layers"] - 1
        like = n
        while not f.keys() or not any(k.startswith(f"model.layers.{like}.self_attn.") for k in f.keys()):
            like -= 1
        mix = {k[len(f"model.layers.{like}."):]: tuple(f.get_slice(k).get_shape()) for k in f.keys() if k.startswith(f"model.layers.{like}.")}
        hidden = f.get_slice("model.norm.weight").get_shape()[0]
    shapes = prefixed(prefix, mix)
    enorm, hnorm, proj, last = parts
    shapes |= {enorm: (hidden,), hnorm: (hidden,), proj: (hidden, 2 * hidden), last: (hidden,)}
    return dict(base=base, run=mtp, shapes=shapes, prefix=prefix, parts=parts, plus=plus, normed=normed, stacked=stacked or {}, reversed=reversed)


def stack(experts, *parts):
    return lambda s: torch.stack([torch.cat([s[f"mlp.experts.{i}.{p}.weight"] for p in parts]) for i in range(experts)])


def make_mtp(name, base, apart):
    config = json.loads((BASES / base / "config.json").read_text())
    n = config["num_hidden_layers"]
    experts = config.get("n_routed_experts") or config.get("num_experts")
    both = {"mlp.experts.gate_up_proj": stack(experts, "gate_proj", "up_proj"), "mlp.experts.down_proj": stack(experts, "down_proj")}
    if apart:
        return mtp_case(base, "mtp.layers.0.", ("mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight", "mtp.fc.weight", "mtp.norm.weight"), 1, True, both)
    p = f"model.layers.{n}."
    return mtp_case(base, p, (p + "enorm.weight", p + "hnorm.weight", p + "eh_proj.weight", p + "shared_head.norm.weight"), 0, False, both)


p = "model.mtp_layers.0."      # MiMo's, whose other layers are Qwen 2's
CASES["mtp-qwen2"] = mtp_case("qwen2", p, (p + "token_layernorm.weight", p + "hidden_layernorm.weight", p + "input_proj.weight", p + "final_layernorm.weight"),
                              0, True, reversed=True)
for base, apart in (("deepseek3", False), ("glm4moe", False), ("qwen3next", True)):
    CASES["mtp-" + base] = make_mtp("mtp-" + base, base, apart)


def make(name, case):
    base, gen = Base(case["base"]), torch.Generator().manual_seed(sum(map(ord, name)))
    w = {k: values(k, s, gen) for k, s in sorted(case["shapes"].items())}
    own = torch.randint(5, 120, (0 if case["run"] is medusa else OWN,), generator=gen)
    with torch.no_grad():
        logits = case["run"](base, w, own, case)
        for k in w:
            other = {**w, k: w[k].roll(1, -1)}
            if w[k].numel() > 1 and ".experts." not in k:     # few rows choose each expert, and none may
                moved = (case["run"](base, other, own, case) - logits).abs().max()
                assert moved > 0.01, f"{name}: {k} moves no logit by more than {moved}"
    dir = OUT / name
    dir.mkdir(parents=True, exist_ok=True)
    ints = {k: torch.tensor(v) for k, v in case.get("ints", {}).items()}
    golden = {"base": base.name, "rows": ROWS, "every": EVERY, "own": own.tolist(), "vocab": logits.shape[1]}
    if "d2t" in case:
        ids = torch.tensor(case["d2t"])
        t2d = torch.zeros(128, dtype=torch.bool)
        t2d[ids] = True
        ints |= {"d2t": ids - torch.arange(len(ids)), "t2d": t2d}
        golden["ids"] = ids.tolist()
    if "token_map" in ints:
        golden["ids"] = ints["token_map"].tolist()
    save_file({k: v.to(torch.bfloat16).contiguous() for k, v in w.items()} | ints, dir / case.get("file", "model.safetensors"), {"format": "pt"})
    if "config" in case:
        (dir / "config.json").write_text(json.dumps(case["config"], indent=1, sort_keys=True) + "\n")
    logits.numpy().astype("<f4").tofile(dir / "logits.f32")
    (dir / "golden.json").write_text(json.dumps(golden) + "\n")
    print(name, tuple(logits.shape), float(logits.abs().max()))


if __name__ == "__main__":
    for name, case in CASES.items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            make(name, case)
