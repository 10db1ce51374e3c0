"""Makes adapters of tiny models, and the logits that PEFT computes with them.

    python adapters.py --llama-cpp DIR

Every case becomes a folder adapters/NAME beside testdata: adapter_config.json and adapter_model.safetensors as PEFT saves
them (values are multiples of 1/64), golden.json (the base model in testdata, whose prompt is used), logits.f32 (every 8th
row) and, where llama.cpp's converter takes the base, NAME.gguf. The logits are those of the base with the adapter beside
it, and the script checks that the merged model has the same.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
BASES, OUT = HERE.parent / "testdata", HERE.parent / "adapters"
EVERY = 8
ATTN, MLP = ["q_proj", "k_proj", "v_proj", "o_proj"], ["gate_proj", "up_proj", "down_proj"]

CASES = {
    "llama": dict(base="llama", r=4, lora_alpha=8, target_modules=ATTN + MLP),
    "llama-rs": dict(base="llama", r=3, lora_alpha=5, use_rslora=True, target_modules=["q_proj", "down_proj"]),
    "llama-patterns": dict(base="llama", r=4, lora_alpha=4, target_modules=ATTN + MLP, rank_pattern={"q_proj": 2, r"layers\.1\.mlp\.up_proj": 6},
                           alpha_pattern={"down_proj": 12}),
    "gpt2": dict(base="gpt2", r=4, lora_alpha=8, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True),
    "neox": dict(base="neox", r=4, lora_alpha=8, target_modules=["query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"]),
    "phi3": dict(base="phi3", r=4, lora_alpha=8, target_modules=["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]),
    "llama-dora": dict(base="llama", r=4, lora_alpha=8, use_dora=True, target_modules=ATTN + MLP),
    "gpt2-dora": dict(base="gpt2", r=4, lora_alpha=8, use_dora=True, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True),
    "phi3-dora": dict(base="phi3", r=4, lora_alpha=8, use_dora=True, target_modules=["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]),
    "gemma2": dict(base="gemma2", r=4, lora_alpha=8, target_modules=ATTN + MLP),
}


def make(name, case, llama_cpp):
    case = dict(case)
    base, out = BASES / case.pop("base"), OUT / name
    load = lambda: AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, attn_implementation="eager").eval()
    model = get_peft_model(load(), LoraConfig(task_type="CAUSAL_LM", **case))
    gen = torch.Generator().manual_seed(sum(map(ord, name)))
    for key, p in model.named_parameters():
        if "lora_" in key:
            if "magnitude" in key:
                p.data.copy_((p.data * (1 + torch.randn(p.shape, generator=gen) * 0.25) * 64).round() / 64)
            else:
                p.data.copy_((torch.randn(p.shape, generator=gen) * 0.25 * 64).round() / 64)
    model.save_pretrained(out)
    file = out / "adapter_model.safetensors"
    save_file({k: v.to(torch.bfloat16).contiguous() for k, v in load_file(file).items()}, file, {"format": "pt"})
    config = json.loads((out / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = base.name
    for key in ("target_modules", "exclude_modules"):
        config[key] = sorted(config[key]) if config[key] else config[key]
    (out / "adapter_config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")
    (out / "README.md").unlink(missing_ok=True)

    prompt = torch.tensor([json.loads((base / "golden.json").read_text())["prompt"][:64]])
    with torch.no_grad():
        plain = load()(prompt).logits[0]
        model = PeftModel.from_pretrained(load(), out).eval()
        logits = model(prompt).logits[0]
        merged = model.merge_and_unload()(prompt).logits[0]
    assert (logits - merged).abs().max() < 1e-4, f"{name}: merged differs by {(logits - merged).abs().max()}"
    assert (logits - plain).abs().max() > 0.5, f"{name}: the adapter changes little"
    logits[EVERY - 1::EVERY].numpy().astype("<f4").tofile(out / "logits.f32")
    (out / "golden.json").write_text(json.dumps({"base": base.name, "every": EVERY}) + "\n")
    if (base / f"{base.name}.gguf").exists() and name in ("llama", "neox"):
        subprocess.run([sys.executable, llama_cpp / "convert_lora_to_gguf.py", "--outtype", "bf16", "--base", base, "--outfile", out / f"{name}.gguf", out],
                       check=True)


if __name__ == "__main__":
    args = argparse.ArgumentParser()
    args.add_argument("--llama-cpp", type=pathlib.Path, required=True)
    args.add_argument("--only", nargs="*")
    args = args.parse_args()
    for name, case in CASES.items():
        if not args.only or name in args.only:
            make(name, case, args.llama_cpp)
