"""Makes a control vector for a tiny model in llama.cpp's GGUF form, and the logits with it.

    python control.py

It becomes controls/NAME beside testdata: control.gguf, golden.json (the base model in testdata, whose prompt is used)
and logits.f32 (every 8th row). The logits are those of transformers with the vectors added to what each layer gives.
"""
import json
import pathlib

import gguf
import numpy as np
import torch
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
BASES, OUT = HERE.parent / "testdata", HERE.parent / "controls"
EVERY = 8


def make(name):
    base, out = BASES / name, OUT / name
    out.mkdir(parents=True, exist_ok=True)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, attn_implementation="eager").eval()
    layers, hidden = model.config.num_hidden_layers, model.config.hidden_size
    gen = torch.Generator().manual_seed(sum(map(ord, name)))
    directions = {n: (torch.randn(hidden, generator=gen) * 64).round() / 64 for n in range(1, layers)}
    w = gguf.GGUFWriter(out / "control.gguf", "controlvector")
    w.add_string("controlvector.model_hint", {"llama": "llama", "gemma2": "gemma2"}[name])
    w.add_uint32("controlvector.layer_count", layers - 1)
    for n, v in directions.items():
        w.add_tensor(f"direction.{n}", v.numpy().astype(np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    for n, v in directions.items():
        model.model.layers[n].register_forward_hook(lambda _m, _a, o, v=v: (o[0] + v,) + o[1:] if isinstance(o, tuple) else o + v)
    prompt = torch.tensor([json.loads((base / "golden.json").read_text())["prompt"][:64]])
    with torch.no_grad():
        logits = model(prompt).logits[0]
    logits[EVERY - 1::EVERY].numpy().astype("<f4").tofile(out / "logits.f32")
    (out / "golden.json").write_text(json.dumps({"base": name, "every": EVERY}) + "\n")


if __name__ == "__main__":
    for name in ("llama", "gemma2"):
        make(name)
