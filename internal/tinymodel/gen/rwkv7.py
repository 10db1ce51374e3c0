"""Makes the tiny model of RWKV-7 and its goldens by the authors' own package.

    pip install rwkv==0.8.32 gguf torch safetensors
    python rwkv7.py

transformers does not have the family. The logits are those of class RWKV_x070 of the package rwkv (BlinkDL) in float32, of the
prompt in one piece, and of its step form for the greedy tokens. The checkpoint has the names of the package fla, and the GGUF
file those of llama.cpp's converter. See make.py for the files.
"""
import json
import os
import pathlib
import shutil
import tempfile

os.environ.update({"RWKV_V7_ON": "1", "RWKV_JIT_ON": "0", "RWKV_CUDA_ON": "0"})

import gguf
import numpy as np
import torch
from rwkv.model import RWKV_x070
from safetensors.torch import save_file

from vocab import gguf_vocab, write_tokenizer

OUT = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "rwkv7"
VOCAB, HIDDEN, HEAD, FFN, LAYERS = 128, 32, 16, 48, 3
RANKS = {"w": 8, "a": 4, "v": 4, "g": 12}
PROMPT, EVERY, GREEDY, GRID, EFFECT, MARGIN = 200, 4, 16, 1 / 64, 0.05, 0.02
MIXES = "rwkvag"


def shapes():
    """Returns the authors' tensors: those of the first layer's values are there, and mean nothing."""
    h = HIDDEN
    out = {"emb.weight": (VOCAB, h), "head.weight": (VOCAB, h), "ln_out.weight": (h,), "ln_out.bias": (h,),
           "blocks.0.ln0.weight": (h,), "blocks.0.ln0.bias": (h,)}
    for i in range(LAYERS):
        b = f"blocks.{i}."
        for norm in ("ln1", "ln2", "att.ln_x"):
            out |= {f"{b}{norm}.weight": (h,), f"{b}{norm}.bias": (h,)}
        for m in MIXES:
            out[f"{b}att.x_{m}"] = (1, 1, h)
        for low, rank in RANKS.items():
            out |= {f"{b}att.{low}1": (h, rank), f"{b}att.{low}2": (rank, h)}
            if low != "g":
                out[f"{b}att.{low}0"] = (1, 1, h)
        out |= {f"{b}att.{n}.weight": (h, h) for n in ("receptance", "key", "value", "output")}
        out |= {f"{b}att.k_k": (1, 1, h), f"{b}att.k_a": (1, 1, h), f"{b}att.r_k": (h // HEAD, HEAD)}
        out |= {f"{b}ffn.x_k": (1, 1, h), f"{b}ffn.key.weight": (FFN, h), f"{b}ffn.value.weight": (h, FFN)}
    return out


def values(name, shape, gen):
    r = torch.randn(shape, generator=gen)
    last = name.rsplit(".", 1)[-1]
    if ".x_" in name:
        v = torch.rand(shape, generator=gen)
    elif last == "w0":
        v = 1.5 * r - 3
    elif last in ("a0", "v0", "r_k"):
        v = 0.5 * r
    elif last in ("k_k", "k_a"):
        v = 0.25 * r + 1
    elif last == "bias":
        v = 0.15 * r
    elif "ln" in name:
        v = 0.25 * r + 1
    elif name in ("emb.weight", "head.weight"):
        v = 0.4 * r
    else:
        v = 1.3 / (shape[0] if last[-1] in "12" else shape[-1]) ** 0.5 * r
    return (v.clamp(-3.9, 3.9) / GRID).round() * GRID     # exact in bfloat16


class Reference:
    """The authors' model of some tensors."""
    def __init__(self, tensors):
        with tempfile.TemporaryDirectory() as tmp:
            torch.save(tensors, f"{tmp}/tiny.pth")
            self.model = RWKV_x070(f"{tmp}/tiny", "cpu fp32")

    def logits(self, ids):
        out, state = self.model.forward(ids, None, full_output=True)
        return out.float(), state

    def greedy(self, ids):
        out, state = self.logits(ids)
        row, chosen, lead = out[-1], [], float("inf")
        for _ in range(GREEDY):
            top = torch.topk(row.float(), 2)
            chosen.append(int(top.indices[0]))
            lead = min(lead, float(top.values[0] - top.values[1]))
            row, state = self.model.forward(chosen[-1], state)
        return chosen, lead


def check_every_tensor(tensors, prompt, logits):
    for name, t in tensors.items():
        if name.startswith("blocks.0.att.v") and name[-1] in "012":
            continue
        moved = {**tensors, name: t.flatten().roll(1).view(t.shape)}
        if (by := float((Reference(moved).logits(prompt)[0] - logits).abs().max())) < EFFECT:
            raise SystemExit(f"{name} hardly matters: {by:.4f}")


def fla(tensors):
    """Returns the tensors under the names of the package fla."""
    out = {}
    low = lambda n, k: f"attn.{n}_lora.lora.{k}"
    for name, t in tensors.items():
        if not name.startswith("blocks."):
            root = {"emb": "model.embeddings", "head": "lm_head", "ln_out": "model.norm"}[name.split(".")[0]]
            out[root + name[name.rindex("."):]] = t
            continue
        _, i, part = name.split(".", 2)
        if i == "0" and part in ("att.v0", "att.v1", "att.v2"):
            continue
        for n in RANKS:
            part = {f"att.{n}0": low(n, 2) + ".bias", f"att.{n}1": low(n, 0) + ".weight", f"att.{n}2": low(n, 2) + ".weight"}.get(part, part)
        if part.startswith("attn.") and part.endswith("weight"):
            t = t.T
        elif part.startswith("attn."):
            t = t.flatten()
        for a, b in {"att.receptance": "attn.r_proj", "att.key": "attn.k_proj", "att.value": "attn.v_proj", "att.output": "attn.o_proj",
                     "att.ln_x": "attn.g_norm", "att.": "attn.", "ln0": "pre_norm", "ln1": "attn_norm", "ln2": "ffn_norm"}.items():
            part = part.replace(a, b) if part.startswith(a) else part
        if part in ("attn.k_k", "attn.k_a", "ffn.x_k"):
            t = t.flatten()
        out[f"model.layers.{i}.{part}"] = t
    return {k: v.contiguous() for k, v in out.items()}


def write_gguf(tensors, path):
    w = gguf.GGUFWriter(path, "rwkv7")
    w.add_context_length(1048576)
    w.add_embedding_length(HIDDEN)
    w.add_block_count(LAYERS)
    w.add_layer_norm_eps(1e-5)
    w.add_wkv_head_size(HEAD)
    w.add_decay_lora_rank(RANKS["w"])
    w.add_iclr_lora_rank(RANKS["a"])
    w.add_value_residual_mix_lora_rank(RANKS["v"])
    w.add_gate_lora_rank(RANKS["g"])
    w.add_feed_forward_length(FFN)
    w.add_head_count(0)
    w.add_token_shift_count(2)
    gguf_vocab(w, VOCAB)
    add = lambda name, t: w.add_tensor(name, t.float().numpy())
    for a, b in {"emb": "token_embd", "head": "output", "ln_out": "output_norm", "blocks.0.ln0": "token_embd_norm"}.items():
        for end in ("weight", "bias"):
            if f"{a}.{end}" in tensors:
                add(f"{b}.{end}", tensors[f"{a}.{end}"])
    for i in range(LAYERS):
        t = {k.split(".", 2)[2]: v for k, v in tensors.items() if k.startswith(f"blocks.{i}.")}
        for a, b in {"ln1": "attn_norm", "ln2": "attn_norm_2", "att.ln_x": "time_mix_ln"}.items():
            for end in ("weight", "bias"):
                add(f"blk.{i}.{b}.{end}", t[f"{a}.{end}"])
        add(f"blk.{i}.time_mix_lerp_fused.weight", torch.stack([t[f"att.x_{m}"] for m in MIXES]))
        for n in RANKS:
            if n != "g":
                add(f"blk.{i}.time_mix_{n}0.weight", t[f"att.{n}0"].flatten())
            add(f"blk.{i}.time_mix_{n}1.weight", t[f"att.{n}1"].T.contiguous())
            add(f"blk.{i}.time_mix_{n}2.weight", t[f"att.{n}2"].T.contiguous())
        for n in ("k_k", "k_a", "r_k"):
            add(f"blk.{i}.time_mix_{n}.weight", t[f"att.{n}"].flatten())
        for n in ("receptance", "key", "value", "output"):
            add(f"blk.{i}.time_mix_{n}.weight", t[f"att.{n}.weight"])
        add(f"blk.{i}.channel_mix_lerp_k.weight", t["ffn.x_k"])
        for n in ("key", "value"):
            add(f"blk.{i}.channel_mix_{n}.weight", t[f"ffn.{n}.weight"])
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    torch.set_num_threads(1)
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    for seed in range(1, 200):
        gen = torch.Generator().manual_seed(seed)
        tensors = {k: values(k, s, gen) for k, s in shapes().items()}
        prompt = [int(t) for t in np.random.default_rng(seed).integers(3, VOCAB, PROMPT)]
        model = Reference(tensors)
        ids, lead = model.greedy(prompt)
        if lead > MARGIN and len(set(ids)) > 3:
            break
    logits = model.logits(prompt)[0]
    check_every_tensor(tensors, prompt[:64], logits[:64])
    write_tokenizer(OUT, VOCAB)
    config = {"architectures": ["RWKV7ForCausalLM"], "model_type": "rwkv7", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "head_dim": HEAD,
              "intermediate_size": FFN, "vocab_size": VOCAB, "norm_eps": 1e-5, "norm_first": True, "norm_bias": True, "hidden_act": "sqrelu",
              "decay_low_rank_dim": RANKS["w"], "a_low_rank_dim": RANKS["a"], "v_low_rank_dim": RANKS["v"], "gate_low_rank_dim": RANKS["g"],
              "tie_word_embeddings": False, "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2}
    (OUT / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    save_file({k: v.to(torch.bfloat16) for k, v in fla(tensors).items()}, OUT / "model.safetensors", metadata={"format": "pt"})
    write_gguf(tensors, OUT / "rwkv7.gguf")
    logits.numpy()[EVERY - 1::EVERY].astype("<f4").tofile(OUT / "logits.f32")
    golden = {"arch": "RWKV7ForCausalLM", "note": "RWKV-7 by the authors' package rwkv 0.8.32", "seed": seed, "vocab": VOCAB, "prompt": prompt, "every": EVERY}
    (OUT / "golden.json").write_text(json.dumps(golden) + "\n")
    (OUT / "greedy.json").write_text(json.dumps(ids) + "\n")
    for f in OUT.iterdir():
        f.chmod(0o644)
    print(f"seed {seed}  logits std {logits.std():.2f}  lead {lead:.3f}  {sum(f.stat().st_size for f in OUT.iterdir()) >> 10} KiB")


if __name__ == "__main__":
    main()
