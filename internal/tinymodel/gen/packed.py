"""Makes tiny checkpoints whose weights are quantized, each by the library that its method comes from.

    python packed.py [--only NAME ...]

Every case becomes a folder weights/quantized/testdata/NAME with the checkpoint as the library saves it and

    golden.json   the prompt, the vocabulary size; for each quantized weight the type, the shape and the sha256 of the values that the
                  library dequantizes it to; "by", what made it and what dequantized it
    greedy.json   the 16 ids that greedy decoding appends
    logits.f32    logits of every fourth row of the prompt, of a transformers model in float32 with the dequantized weights: as the library
                  rounds them where a case says so, else with the products of codes and scales that it rounds

Made with Python 3.11, torch 2.15.0, transformers 5.24.0 and gptqmodel 7.7.0, autoawq 0.2.9, compressed-tensors 0.20.1,
bitsandbytes 0.50.2, hqq 0.2.8, optimum-quanto 0.2.7; GPTQMODEL_CPU_WORKERS=2 is needed on small machines.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("GPTQMODEL_CPU_WORKERS", "2")

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

import packed_float
from packed_float import save
from vocab import write_tokenizer

OUT = pathlib.Path(__file__).resolve().parents[3] / "weights" / "quantized" / "testdata"
KEPT = ("config.json", "model.safetensors", "quantize_config.json", "hf_quant_config.json")
PROMPT, EVERY, GREEDY, MARGIN = 64, 4, 16, 0.03
LLAMA = {"vocab_size": 128, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": True,
         "architectures": ["LlamaForCausalLM"], "model_type": "llama"}
ONE = {"num_hidden_layers": 1}
WIDE = {"hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 1}     # for groups of 128


def source(config, dtype, seed):
    """Saves a random model of a configuration, as transformers does, and returns where."""
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "config.json").write_text(json.dumps({**config, "torch_dtype": str(dtype).removeprefix("torch.")}))
    conf = transformers.AutoConfig.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_config(conf, attn_implementation="eager", dtype=torch.float32)
    gen = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        r = torch.randn(p.shape, generator=gen)
        if "norm" in name:
            v = 1 + 0.25 * r
        elif p.dim() == 1 or name.endswith(("bias", "sinks")):
            v = 0.15 * r
        elif "embed" in name or "lm_head" in name:
            v = 0.4 * r
        else:
            v = 1.3 / p.shape[-1] ** 0.5 * r
        p.data.copy_((v * 64).round() / 64)
    model.to(dtype).save_pretrained(folder)
    write_tokenizer(folder, config["vocab_size"])
    return folder


def calibration(vocab, rows=8):
    gen = torch.Generator().manual_seed(7)
    return [{"input_ids": torch.randint(3, vocab, (1, 64), generator=gen), "attention_mask": torch.ones(1, 64, dtype=torch.long)}
            for _ in range(rows)]


def gptq(case, folder, out):
    """GPTQModel quantizes; dequantize_weight of its torch layer dequantizes."""
    from gptqmodel import GPTQModel, QuantizeConfig
    model = GPTQModel.load(str(folder), QuantizeConfig(**case["quantize"]), device="cpu")
    model.quantize(calibration(case["config"]["vocab_size"]), batch_size=1)
    model.save(str(out))
    config = json.loads((out / "config.json").read_text())
    q = config["quantization_config"]
    q.get("meta", {}).pop("offload_to_disk_path", None)
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    return gptq_values(load_file(out / "model.safetensors"), q)


def gptq_values(tensors, q):
    from gptqmodel.nn_modules.qlinear.torch import TorchLinear
    from gptqmodel.utils.model import convert_gptq_v1_to_v2_format_module
    for name in [n.removesuffix(".qweight") for n in tensors if n.endswith(".qweight")]:
        part = {k: tensors[f"{name}.{k}"] for k in ("qweight", "qzeros", "scales", "g_idx")}
        cols, rows = part["g_idx"].numel(), part["scales"].shape[1]
        bits = part["qweight"].shape[0] * 32 // cols
        groups = part["scales"].shape[0]
        layer = TorchLinear(bits=bits, group_size=cols // groups, sym=q["sym"], desc_act=q["desc_act"], in_features=cols,
                            out_features=rows, bias=False, register_buffers=True)
        for k, v in part.items():
            setattr(layer, k, v)
        if q.get("checkpoint_format", "gptq") == "gptq":
            convert_gptq_v1_to_v2_format_module(layer, bits, torch.int32)
        layer.optimized = True
        layer.post_init()
        layer.eval()
        value = layer.dequantize_weight().T.contiguous()
        layer.scales = layer.scales.float()
        yield name + ".weight", value, layer.dequantize_weight().T.contiguous()


def awq(case, folder, out):
    """Codes and scales of AutoAWQ's own layers, of a plain minimum and maximum; its dequantize_gemm dequantizes."""
    from awq.modules.linear.gemm import WQLinear_GEMM
    from awq.modules.linear.gemv import WQLinear_GEMV
    from awq.utils.packing_utils import dequantize_gemm
    size, gemv = case["quantize"]["group_size"], case["quantize"]["version"] == "gemv"
    tensors, values = {}, []
    for name, w in load_file(folder / "model.safetensors").items():
        if not name.endswith("proj.weight"):
            tensors[name] = w
            continue
        module = name.removesuffix(".weight")
        groups = w.float().reshape(w.shape[0], -1, size)
        top, low = groups.amax(2), groups.amin(2)
        scales = ((top - low).clamp(min=1e-5) / 15).half()
        zeros = (-(low / scales.float()).round()).clamp(0, 15)
        linear = torch.nn.Linear(w.shape[1], w.shape[0], bias=False)
        q = ((groups / scales.float()[..., None]).round() + zeros[..., None]).clamp(0, 15)
        linear.weight.data = ((q - zeros[..., None]) * scales.float()[..., None]).reshape(w.shape).half()
        args = (scales, zeros) if gemv else (scales.t().contiguous(), zeros.t().contiguous())
        layer = (WQLinear_GEMV if gemv else WQLinear_GEMM).from_linear(linear, 4, size, scales=args[0], zeros=args[1])
        for part in ("qweight", "qzeros", "scales"):
            tensors[f"{module}.{part}"] = getattr(layer, part).contiguous()
        same = WQLinear_GEMM.from_linear(linear, 4, size, scales=scales.t().contiguous(), zeros=zeros.t().contiguous())
        value = dequantize_gemm(same.qweight, same.qzeros, same.scales, 4, size)
        exact = dequantize_gemm(same.qweight, same.qzeros, same.scales.float(), 4, size)
        values.append((name, value.t().contiguous(), exact.t().contiguous()))
    save(folder, out, tensors, {"quant_method": "awq", "bits": 4, "zero_point": True, "modules_to_not_convert": None, **case["quantize"]})
    return values


def g(name, make, quantize, config=None, dtype=torch.float16, base=LLAMA, **more):
    return {"name": name, "make": make, "quantize": quantize, "config": {**base, **(config or {})}, "dtype": dtype, **more}


CASES = [
    g("gptq-4", gptq, {"bits": 4, "group_size": 32, "desc_act": False, "sym": True}),
    g("gptq-4-act", gptq, {"bits": 4, "group_size": 32, "desc_act": True, "sym": False}, rounded=True),
    g("gptq-4-zeros-v2", gptq, {"bits": 4, "group_size": 32, "desc_act": False, "sym": False, "format": "gptq_v2"}),
    g("gptq-4-128", gptq, {"bits": 4, "group_size": 128, "desc_act": False, "sym": True}, WIDE),
    g("gptq-4-row-head", gptq, {"bits": 4, "group_size": -1, "desc_act": False, "act_group_aware": False, "sym": True, "lm_head": True}, {**ONE, "tie_word_embeddings": False}),
    g("gptq-3", gptq, {"bits": 3, "group_size": 32, "desc_act": False, "sym": False}),
    g("gptq-2", gptq, {"bits": 2, "group_size": 32, "desc_act": False, "sym": True}, off=1.5),
    g("gptq-8", gptq, {"bits": 8, "group_size": 32, "desc_act": False, "sym": True}, ONE),
    g("gptq-mixed", gptq, {"bits": 4, "group_size": 32, "desc_act": False, "sym": True,
                           "dynamic": {r"+:.*down_proj": {"bits": 8, "group_size": 32}, r"-:.*k_proj": {}}}, ONE),
    g("awq", awq, {"group_size": 32, "version": "gemm"}),
    g("awq-gemv", awq, {"group_size": 32, "version": "gemv"}, ONE),
] + packed_float.cases(g, LLAMA, ONE)


def greedy(model, prompt):
    ids, lead = list(prompt), float("inf")
    for _ in range(GREEDY):
        top = torch.topk(model(input_ids=torch.tensor([ids])).logits[0, -1], 2)
        ids.append(int(top.indices[0]))
        lead = min(lead, float(top.values[0] - top.values[1]))
    return ids[len(prompt):], lead


def make(case, seed=1):
    out = OUT / case["name"]
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    folder = source(case["config"], case["dtype"], seed)
    values = list(case["make"](case, folder, out))
    state, weights = {k: v.float() for k, v in load_file(folder / "model.safetensors").items()}, {}
    for name, value, exact in values:
        assert name in state, name
        old, new = state[name], (value if case.get("rounded") else exact).float()
        if case.get("turned"):              # those of gpt-oss lie the other way round when they are not quantized
            new = new.transpose(1, 2)
        assert new.shape == old.shape, (name, new.shape, old.shape)
        off = float((new - old).abs().max() / old.abs().max())
        assert off < case.get("off", 0.6), (name, off)
        state[name] = new.contiguous()
        weights[name] = {"type": {torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32"}[value.dtype], "shape": list(value.shape),
                         "sha256": hashlib.sha256(value.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()}
    assert weights
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    for attempt in range(500):
        rng = np.random.default_rng(attempt)
        prompt = [int(t) for t in rng.integers(3, case["config"]["vocab_size"], PROMPT)]
        with torch.inference_mode():
            ids, lead = greedy(model, prompt)
        if lead > MARGIN and len(set(ids)) > 3:
            break
    else:
        raise SystemExit(f"{case['name']}: no prompt gives a clear greedy continuation")
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([prompt])).logits[0].float().numpy()
    logits[EVERY - 1::EVERY].astype("<f4").tofile(out / "logits.f32")
    (out / "golden.json").write_text(json.dumps({"vocab": case["config"]["vocab_size"], "every": EVERY, "prompt": prompt, "by": case["make"].__doc__,
                                                 "weights": weights}, indent=0) + "\n")
    (out / "greedy.json").write_text(json.dumps(ids) + "\n")
    for file in list(out.iterdir()):
        if file.name not in KEPT + ("golden.json", "greedy.json", "logits.f32"):
            file.unlink()
    if "quantization_config" in json.loads((out / "config.json").read_text()):
        (out / "quantize_config.json").unlink(missing_ok=True)
    write_tokenizer(out, case["config"]["vocab_size"])
    shutil.rmtree(folder)
    size = sum(f.stat().st_size for f in out.iterdir())
    print(f"{case['name']:24} {len(weights)} weights, logits std {logits.std():.2f}, lead {lead:.3f}, {size >> 10} KiB", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--only", nargs="*", help="names of the cases to make; all if absent")
    args = ap.parse_args()
    torch.set_num_threads(1)
    for case in CASES:
        if not args.only or case["name"] in args.only:
            make(case)


if __name__ == "__main__":
    main()
