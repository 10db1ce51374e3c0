"""Records the sums of squares of what matrices of a tiny model meet, by hooks on the
modules of Hugging Face transformers, in float32 on its own prompt: squares.json.

    python gen_squares.py FOLDER_OF_THE_MODEL
"""

import json
import os
import sys

import torch
from transformers import AutoModelForCausalLM

NAMES = {"q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output", "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down"}


def main():
    folder = sys.argv[1]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    prompt = json.load(open(os.path.join(folder, "golden.json")))["prompt"]
    out = {}
    for name, m in model.named_modules():
        parts = name.split(".")
        key = "output.weight" if name == "lm_head" else f"blk.{parts[2]}.{NAMES[parts[-1]]}.weight" if parts[-1] in NAMES else None
        if key:
            m.register_forward_hook(lambda m, args, y, key=key: out.__setitem__(key, [round(v, 6) for v in args[0].double().square().sum((0, 1)).tolist()]))
    with torch.no_grad():
        model(torch.tensor([prompt]))
    json.dump({"model": os.path.basename(os.path.normpath(folder)), "squares": out}, open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "squares.json"), "w"))
    print({k: len(v) for k, v in out.items()})


main()
