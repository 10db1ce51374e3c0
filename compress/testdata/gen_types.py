"""Records which type llama.cpp's quantizer gives each tensor of some shapes of
models, in every mixture, without and with an importance matrix: types.jsonl. A mixture
without types is one that it refuses.

    python gen_types.py --quantize PATH_OF_llama-quantize
"""

import argparse
import json
import os
import re
import subprocess
import tempfile

import gguf
import numpy as np

MIXTURES = """Q1_0 IQ1_S IQ1_M TQ1_0 IQ2_XXS TQ2_0 Q2_0 IQ2_XS IQ2_S IQ2_M Q2_K_S Q2_K IQ3_XXS IQ3_XS IQ3_S Q3_K_S IQ3_M Q3_K_M
Q3_K_L IQ4_XS MXFP4_MOE IQ4_NL Q4_0 Q4_K_S Q4_K_M Q4_1 Q5_0 Q5_K_S Q5_K_M Q5_1 Q6_K Q8_0 F16 BF16 F32""".split()


def dense(h, kv, ffn):
    return {"attn_norm.weight": [h], "attn_q.weight": [h, h], "attn_k.weight": [h, kv], "attn_v.weight": [h, kv], "attn_output.weight": [h, h],
            "ffn_norm.weight": [h], "ffn_gate.weight": [h, ffn], "ffn_up.weight": [h, ffn], "ffn_down.weight": [ffn, h]}


def experts(h, kv, ffn, n):
    t = {k: v for k, v in dense(h, kv, ffn).items() if k not in ("ffn_gate.weight", "ffn_up.weight", "ffn_down.weight")}
    return t | {"ffn_gate_inp.weight": [h, n], "ffn_gate_exps.weight": [h, ffn, n], "ffn_up_exps.weight": [h, ffn, n], "ffn_down_exps.weight": [ffn, h, n]}


TOP, HEAD = {"token_embd.weight": [256, 512], "output_norm.weight": [256]}, {"output.weight": [256, 512]}
SHAPES = {
    "shared": dict(arch="llama", layers=17, heads=4, kv=1, top=TOP | HEAD, layer=dense(256, 64, 512)),
    "tied": dict(arch="llama", layers=8, heads=4, kv=4, top=TOP, layer=dense(256, 256, 256)),
    "odd": dict(arch="llama", layers=6, heads=4, kv=2, top={"token_embd.weight": [128, 512], "output_norm.weight": [128]}, layer=dense(128, 64, 360)),
    "eight-experts": dict(arch="llama", layers=9, heads=4, kv=1, experts=8, top=TOP | HEAD, layer=experts(256, 64, 256, 8)),
    "experts": dict(arch="qwen3moe", layers=12, heads=4, kv=2, experts=4, top=TOP | HEAD, layer=experts(256, 128, 256, 4)),
    "falcon": dict(arch="falcon", layers=18, heads=4, kv=1, top=TOP | {"output_norm.bias": [256]} | HEAD,
                   layer={"attn_norm.weight": [256], "attn_norm.bias": [256], "attn_qkv.weight": [256, 384], "attn_output.weight": [256, 256],
                          "ffn_up.weight": [256, 512], "ffn_down.weight": [512, 256]}),
    "seventy": dict(arch="llama", layers=80, heads=4, kv=1, top=TOP | HEAD, layer=dense(256, 64, 256)),
}


def write(path, s):
    w = gguf.GGUFWriter(path, s["arch"])
    h = s["top"]["token_embd.weight"][0]
    w.add_block_count(s["layers"])
    w.add_context_length(256)
    w.add_embedding_length(h)
    w.add_feed_forward_length(256)
    w.add_head_count(s["heads"])
    w.add_head_count_kv(s["kv"])
    w.add_layer_norm_rms_eps(1e-5)
    w.add_layer_norm_eps(1e-5)
    w.add_rope_dimension_count(h // s["heads"])
    w.add_vocab_size(512)
    if "experts" in s:
        w.add_expert_count(s["experts"])
        w.add_expert_used_count(2)
        w.add_expert_feed_forward_length(256)
    for name, dims in list(s["top"].items()) + [(f"blk.{i}.{n}", d) for i in range(s["layers"]) for n, d in s["layer"].items()]:
        w.add_tensor(name, np.zeros(dims[::-1], np.float32 if len(dims) == 1 else np.float16))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def imatrix(path):
    w = gguf.GGUFWriter(path, "")
    w.add_type("imatrix")
    w.add_array("imatrix.datasets", ["none"])
    w.add_uint32("imatrix.chunk_count", 1)
    w.add_uint32("imatrix.chunk_size", 1)
    w.add_tensor("none.in_sum2", np.ones((1, 32), np.float32))
    w.add_tensor("none.counts", np.ones((1, 1), np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def types(a, model, mixture, im):
    out = subprocess.run([a.quantize, "--dry-run", *(["--imatrix", im] if im else []), model, mixture, "1"], capture_output=True, text=True)
    if "no tensor type fallback" in out.stdout + out.stderr:
        return None
    assert out.returncode == 0, out.stdout + out.stderr
    rows = {}
    for name, was, now in re.findall(r"\] (\S+) +- \[.*?type = +(\w+), size = .*?MiB(?: -> .*?\((\w+)\))?\n", out.stdout + out.stderr):
        rows[name] = (now or was).upper()
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--quantize", required=True)
    a = p.parse_args()
    out = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "types.jsonl"), "w")
    with tempfile.TemporaryDirectory() as dir:
        im = os.path.join(dir, "im.gguf")
        imatrix(im)
        for name, s in SHAPES.items():
            path = os.path.join(dir, name + ".gguf")
            write(path, s)
            out.write(json.dumps({"shape": name, **s}) + "\n")
            for m in MIXTURES:
                for measured in (False, True):
                    rows = types(a, path, m, im if measured else None)
                    if rows is None:
                        out.write(json.dumps({"mixture": m, "measured": measured}) + "\n")
                        continue
                    assert len(rows) == len(s["top"]) + s["layers"] * len(s["layer"]), (name, m, len(rows))
                    # what differs from layer to layer is written for each, the rest once
                    got = {n: rows[n] for n in s["top"] if len(s["top"][n]) > 1}
                    for n in s["layer"]:
                        if len(s["layer"][n]) > 1:
                            each = [rows[f"blk.{i}.{n}"] for i in range(s["layers"])]
                            got[n] = each[0] if len(set(each)) == 1 else " ".join(each)
                    out.write(json.dumps({"mixture": m, "measured": measured, "types": got}) + "\n")


main()
