"""Makes the tiny models of RWKV-5 and RWKV-6 and their goldens by the authors' own package.

    pip install rwkv==0.8.32 gguf torch safetensors transformers
    python rwkv56.py --llama-cpp CHECKOUT

transformers does not have the families. The logits are those of class RWKV of the package rwkv (BlinkDL) in float32, of the prompt
in one piece, and of its step form for the greedy tokens. The checkpoints have the names of the authors' Hugging Face repositories,
and llama.cpp's converter makes the GGUF file of RWKV-6. See make.py for the files.
"""
import argparse
import gc
import json
import os
import shutil
import sys
import tempfile

os.environ.update({"RWKV_V7_ON": "0", "RWKV_JIT_ON": "0", "RWKV_CUDA_ON": "0"})

import numpy as np
import torch
from rwkv.model import RWKV
from safetensors.torch import save_file

import make
from vocab import write_tokenizer

VOCAB, HIDDEN, HEAD, FFN, LAYERS, RANK, DECAY_RANK = 128, 32, 16, 48, 3, 4, 8
PROMPT, EVERY, GREEDY, GRID, EFFECT, MARGIN = 200, 4, 16, 1 / 64, 0.05, 0.02
gc.collect = lambda *a: 0     # the package calls it for each tensor
LONG = {"k": "key", "v": "value", "r": "receptance", "g": "gate"}


def shapes(version):
    """Returns the authors' tensors."""
    h, heads = HIDDEN, HIDDEN // HEAD
    out = {"emb.weight": (VOCAB, h), "head.weight": (VOCAB, h), "ln_out.weight": (h,), "ln_out.bias": (h,),
           "blocks.0.ln0.weight": (h,), "blocks.0.ln0.bias": (h,)}
    for i in range(LAYERS):
        b = f"blocks.{i}."
        for norm in ("ln1", "ln2", "att.ln_x"):
            out |= {f"{b}{norm}.weight": (h,), f"{b}{norm}.bias": (h,)}
        for n in ("receptance", "key", "value", "gate", "output"):
            out[f"{b}att.{n}.weight"] = (h, h)
        out[f"{b}att.time_faaaa"] = (heads, HEAD)
        out |= {f"{b}ffn.key.weight": (FFN, h), f"{b}ffn.receptance.weight": (h, h), f"{b}ffn.value.weight": (h, FFN)}
        if version == 5:
            out |= {f"{b}att.time_mix_{m}": (1, 1, h) for m in "kvrg"} | {f"{b}ffn.time_mix_{m}": (1, 1, h) for m in "kr"}
            out[f"{b}att.time_decay"] = (heads, HEAD)
        else:
            out |= {f"{b}att.time_maa_{m}": (1, 1, h) for m in "xwkvrg"} | {f"{b}ffn.time_maa_{m}": (1, 1, h) for m in "kr"}
            out |= {f"{b}att.time_maa_w1": (h, 5 * RANK), f"{b}att.time_maa_w2": (5, RANK, h), f"{b}att.time_decay": (1, 1, h),
                    f"{b}att.time_decay_w1": (h, DECAY_RANK), f"{b}att.time_decay_w2": (DECAY_RANK, h)}
    return out


def values(name, shape, gen):
    r = torch.randn(shape, generator=gen)
    last = name.rsplit(".", 1)[-1]
    if last.endswith(("_w1", "_w2")):
        v = 0.8 / shape[-2] ** 0.5 * r
    elif last.startswith(("time_mix", "time_maa")):
        v = torch.rand(shape, generator=gen)
    elif last == "time_decay":
        v = 1.2 * r - 2
    elif last == "time_faaaa":
        v = 0.5 * r
    elif last == "bias":
        v = 0.15 * r
    elif "ln" in name:
        v = 0.25 * r + 1
    elif name in ("emb.weight", "head.weight"):
        v = 0.4 * r
    else:
        v = 1.3 / shape[-1] ** 0.5 * r
    return (v.clamp(-3.9, 3.9) / GRID).round() * GRID     # exact in bfloat16


class Reference:
    """The authors' model of some tensors."""
    def __init__(self, tensors):
        with tempfile.TemporaryDirectory() as tmp:
            torch.save(tensors, f"{tmp}/tiny.pth")
            self.model = RWKV(f"{tmp}/tiny", "cpu fp32", verbose=False)

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
            row, state = self.model.forward([chosen[-1]], state)
        return chosen, lead


def check_every_tensor(tensors, prompt, logits):
    for name, t in tensors.items():
        moved = {**tensors, name: t.flatten().roll(1).view(t.shape)}
        if (by := float((Reference(moved).logits(prompt)[0] - logits).abs().max())) < EFFECT:
            raise SystemExit(f"{name} hardly matters: {by:.4f}")


def checkpoint(tensors):
    """Returns the tensors under the names of the authors' Hugging Face repositories."""
    out = {}
    for name, t in tensors.items():
        stem, last = name.rsplit(".", 1)
        if last.startswith("time_mix_"):
            name = f"{stem}.time_mix_{LONG[last[-1]]}"
        for a, b in {".att.": ".attention.", ".ffn.": ".feed_forward.", ".ln0.": ".pre_ln."}.items():
            name = name.replace(a, b)
        if name.startswith("emb."):
            name = "embeddings.weight"
        out[name if name.startswith("head.") else "rwkv." + name] = t.to(torch.bfloat16).contiguous()
    return out


def make_version(version):
    name = f"rwkv{version}"
    folder = make.OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for seed in range(1, 200):
        gen = torch.Generator().manual_seed(seed)
        tensors = {k: values(k, s, gen) for k, s in shapes(version).items()}
        prompt = [int(t) for t in np.random.default_rng(seed).integers(3, VOCAB, PROMPT)]
        model = Reference(tensors)
        ids, lead = model.greedy(prompt)
        if lead > MARGIN and len(set(ids)) > 3:
            break
    logits = model.logits(prompt)[0]
    check_every_tensor(tensors, prompt[:64], logits[:64])
    write_tokenizer(folder, VOCAB)
    config = {"architectures": ["Rwkv6ForCausalLM" if version == 6 else "RwkvForCausalLM"], "model_type": name, "hidden_size": HIDDEN,
              "attention_hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "head_size": HEAD, "head_size_divisor": 8, "intermediate_size": FFN,
              "vocab_size": VOCAB, "layer_norm_epsilon": 1e-5, "rescale_every": 0, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
              "bos_token_id": 1, "eos_token_id": 2}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    save_file(checkpoint(tensors), folder / "model.safetensors", metadata={"format": "pt"})
    case = {"name": name, "note": f"RWKV-{version} by the authors' package rwkv 0.8.32", "config": config, "gguf": version == 6}
    make.finish(case, seed, prompt, logits.numpy(), ids, lead)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--llama-cpp", required=True, help="a checkout of llama.cpp")
    ap.add_argument("--only", type=int, nargs="*", default=[5, 6], help="versions to make")
    args = ap.parse_args()
    torch.set_num_threads(1)
    sys.path[:0] = [args.llama_cpp, os.path.join(args.llama_cpp, "gguf-py")]
    for version in args.only:
        make_version(version)


if __name__ == "__main__":
    main()
