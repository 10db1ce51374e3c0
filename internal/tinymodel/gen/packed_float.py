"""Checkpoints of packed.py with weights of floats of 8 and 4 bits, and those of compressed-tensors and bitsandbytes."""
import json
import types

import torch
from safetensors.torch import load_file, save_file

QWEN3MOE = {"vocab_size": 128, "hidden_size": 64, "intermediate_size": 96, "moe_intermediate_size": 32, "num_experts": 4,
            "num_experts_per_tok": 2, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
            "norm_topk_prob": True, "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": True,
            "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe"}
BITNET = {"vocab_size": 128, "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4,
          "num_key_value_heads": 2, "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False,
          "hidden_act": "relu2", "architectures": ["BitNetForCausalLM"], "model_type": "bitnet"}
GPTOSS = {"vocab_size": 128, "hidden_size": 64, "intermediate_size": 64, "num_local_experts": 3, "num_experts_per_tok": 2,
          "num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 16,
          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 128, "bos_token_id": 1,
          "eos_token_id": 2, "pad_token_id": 0, "tie_word_embeddings": False, "architectures": ["GptOssForCausalLM"],
          "model_type": "gpt_oss", "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                                                    "truncate": False, "original_max_position_embeddings": 32}}


def save(folder, out, tensors, quantization, side=None):
    config = json.loads((folder / "config.json").read_text())
    if side:
        (out / side).write_text(json.dumps(quantization) + "\n")
    else:
        config["quantization_config"] = quantization
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    save_file({k: v.contiguous() for k, v in tensors.items()}, out / "model.safetensors", metadata={"format": "pt"})


def linears(folder, out, quantize):
    """Calls quantize for each matrix of attention and MLPs; it returns tensors by their ends, the value, and perhaps the value without rounding."""
    tensors, values = {}, []
    for name, w in load_file(folder / "model.safetensors").items():
        if not name.endswith("proj.weight"):
            tensors[name] = w
            continue
        module = name.removesuffix(".weight")
        parts, value, *exact = quantize(w)
        tensors.update({f"{module}.{k}": v for k, v in parts.items()})
        values.append((name, value, exact[0] if exact else value))
    return tensors, values


def fp8(case, folder, out):
    """Codes and scales of the largest magnitude; Fp8Dequantize of transformers dequantizes."""
    from transformers.integrations.finegrained_fp8 import Fp8Dequantize
    q, dtype = case["quantize"], case["dtype"]
    code = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}[q.get("fmt", "e4m3")]
    kind = case["scales"]

    def quantize(w):
        f = w.float()
        bh, bw = q["weight_block_size"] or {"tensor": f.shape, "row": (1, f.shape[1])}[kind]
        blocks = f.reshape(f.shape[0] // bh, bh, f.shape[1] // bw, bw)
        scale = blocks.abs().amax((1, 3)) / torch.finfo(code).max
        weight = (blocks / scale[:, None, :, None]).reshape(f.shape).to(code)
        value = Fp8Dequantize(types.SimpleNamespace())._dequantize_one(weight, scale, dtype)
        if kind == "tensor":
            return {"weight": weight, "weight_scale": scale.reshape(()), "input_scale": torch.tensor(0.5)}, value
        return {"weight": weight, {"block": "weight_scale_inv", "row": "weight_scale"}[kind]: scale}, value
    tensors, values = linears(folder, out, quantize)
    save(folder, out, tensors, q)
    return values


def mxfp4(case, folder, out):
    """Blocks packed here, as gpt-oss has them; convert_moe_packed_tensors of transformers dequantizes."""
    from transformers.integrations.mxfp4 import FP4_VALUES, convert_moe_packed_tensors
    tensors, values = {}, []
    table = torch.tensor(FP4_VALUES)
    for name, w in load_file(folder / "model.safetensors").items():
        if not name.endswith(("gate_up_proj", "down_proj")):
            tensors[name] = w
            continue
        f = w.float().transpose(1, 2)
        blocks = f.reshape(*f.shape[:-1], -1, 32)
        e = torch.floor(torch.log2(blocks.abs().amax(-1).clamp(min=2.0 ** -100))) - 2
        codes = ((blocks / torch.exp2(e)[..., None])[..., None] - table).abs().argmin(-1).to(torch.uint8)
        tensors[name + "_blocks"] = codes[..., 0::2] | codes[..., 1::2] << 4
        tensors[name + "_scales"] = (e + 127).to(torch.uint8)
        value = convert_moe_packed_tensors(tensors[name + "_blocks"], tensors[name + "_scales"]).transpose(1, 2).contiguous()
        values.append((name, value, value))
    save(folder, out, tensors, {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]})
    return values


def compressed(case, folder, out):
    """Compressors of compressed-tensors compress and decompress."""
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationConfig, QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams
    q = case["quantize"]
    args = QuantizationArgs(**q["weights"])
    scheme = QuantizationScheme(targets=["Linear"], weights=args, input_activations=QuantizationArgs(**q["input"]) if q.get("input") else None)
    compressor = BaseCompressor.get_value_from_registry(q["format"])

    def quantize(w):
        f, strategy = w, q["weights"]["strategy"]
        if strategy == "channel":
            view = f[:, None, :]
        elif strategy == "block":
            h, b = q["weights"]["block_structure"]
            view = f.reshape(f.shape[0] // h, h, f.shape[1] // b, b).transpose(1, 2).flatten(2)
        else:
            view = f.reshape(f.shape[0], -1, q["weights"]["group_size"])
        state = {"weight": w}
        if strategy == "tensor_group":
            total = (448 * 6 / f.abs().max().float()).reshape(1)
            state["weight_global_scale"] = total
            state["weight_scale"] = (view.abs().amax(-1).float() / 6 * total).to(torch.float8_e4m3fn).float()
            state["weight_zero_point"] = torch.zeros_like(state["weight_scale"])
        elif q["format"] == "mxfp4-pack-quantized":
            state["weight_scale"] = torch.exp2(torch.floor(torch.log2(view.abs().amax(-1).float())) - 2)
            state["weight_zero_point"] = torch.zeros_like(state["weight_scale"])
        else:
            state["weight_scale"], state["weight_zero_point"] = calculate_qparams(view.amin(-1), view.amax(-1), args)
        packed = compressor.compress(state, scheme)
        value = compressor.decompress(packed, scheme)["weight"]
        if q["format"] == "mxfp4-pack-quantized":
            return packed, value + 0     # GGUF's MXFP4 has one zero
        if args.type == "float":
            return packed, value
        return packed, value, compressor.decompress({**packed, "weight_scale": packed["weight_scale"].float()}, scheme)["weight"]
    tensors, values = linears(folder, out, quantize)
    config = QuantizationConfig(config_groups={"group_0": scheme}, quant_method="compressed-tensors", format=q["format"],
                                quantization_status="compressed", ignore=["lm_head"]).model_dump(mode="json")
    save(folder, out, tensors, config)
    return values


def bitsandbytes(case, folder, out):
    """quantize_4bit and int8_vectorwise_quant of bitsandbytes, and its functions that dequantize."""
    from bitsandbytes import functional as F
    q, dtype = case["quantize"], case["dtype"]

    def quantize(w):
        if q.get("load_in_8bit"):
            codes, scb, _ = F.int8_vectorwise_quant(w.half())
            value = F.int8_vectorwise_dequant(codes, scb)
            return {"weight": codes, "SCB": scb, "weight_format": torch.tensor(0, dtype=torch.uint8)}, value.to(dtype)
        codes, state = F.quantize_4bit(w, quant_type=q["bnb_4bit_quant_type"], compress_statistics=q["bnb_4bit_use_double_quant"], blocksize=64)
        parts = {"weight": codes, **{f"weight.{k}": v for k, v in state.as_dict(packed=True).items()}}
        return parts, F.dequantize_4bit(codes, state)
    tensors, values = linears(folder, out, quantize)
    save(folder, out, tensors, {"quant_method": "bitsandbytes", **q})
    return values


def modelopt(case, folder, out):
    """NVFP4QTensor of ModelOpt quantizes and dequantizes."""
    from modelopt.torch.quantization.qtensor.nvfp4_tensor import NVFP4QTensor
    dtype = case["dtype"]

    def quantize(w):
        codes, scale, total = NVFP4QTensor.quantize(w, 16)
        value = codes.dequantize(dtype, scale=scale, double_scale=total, block_sizes={-1: 16})
        return {"weight": codes._quantized_data, "weight_scale": scale, "weight_scale_2": total, "input_scale": torch.tensor(0.1)}, value
    tensors, values = linears(folder, out, quantize)
    save(folder, out, tensors, {"producer": {"name": "modelopt", "version": "0.47.0"}, "quantization": case["quantize"]}, "hf_quant_config.json")
    return values


def bitnet(case, folder, out):
    """pack_weights of transformers' BitNet packs what its WeightQuant rounds; unpack_weights and the scale of its layers dequantize."""
    from transformers.integrations.bitnet import pack_weights, unpack_weights
    q, dtype = case["quantize"], case["dtype"]
    divides = q["linear_class"] == "bitlinear"

    def quantize(w):
        mean = w.float().abs().mean().to(dtype)
        codes = (w.float() / mean.float()).round().clamp(-1, 1)
        scale = (1 / mean.float()).to(dtype) if divides else mean
        packed = pack_weights(codes.clone())
        by = (1 / scale.float()).to(dtype) if divides else scale
        return {"weight": packed, "weight_scale": scale.reshape(1)}, unpack_weights(packed, dtype) * by
    tensors, values = linears(folder, out, quantize)
    save(folder, out, tensors, q)
    return values


def cases(g, llama, one):
    bf16 = {"dtype": torch.bfloat16, "rounded": True}

    def ct(name, fmt, weights, inputs=None, rounded=True, **more):
        return g(name, compressed, {"format": fmt, "weights": weights, "input": inputs}, **{**bf16, "rounded": rounded, **more})
    dynamic = {"num_bits": 8, "strategy": "token", "dynamic": True, "symmetric": True}
    return [
        g("fp8-block-experts", fp8, {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [32, 32]},
          base=QWEN3MOE, scales="block", **bf16),
        g("fp8-tensor", fp8, {"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": None}, one, scales="tensor", **bf16),
        g("fp8-row-e5m2", fp8, {"quant_method": "fbgemm_fp8", "fmt": "e5m2", "weight_block_size": None}, one, scales="row", **{**bf16, "dtype": torch.float16}),
        g("mxfp4-experts", mxfp4, {}, base=GPTOSS, turned=True, **bf16),
        ct("ct-int4", "pack-quantized", {"num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": True}, rounded=False),
        ct("ct-int4-zeros", "pack-quantized", {"num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": False}, config=one, rounded=False),
        ct("ct-int3", "pack-quantized", {"num_bits": 3, "strategy": "group", "group_size": 32, "symmetric": True}, config=one, rounded=False),
        ct("ct-int8", "pack-quantized", {"num_bits": 8, "strategy": "channel", "symmetric": True}, config=one, rounded=False),
        ct("ct-w8a8", "int-quantized", {"num_bits": 8, "strategy": "channel", "symmetric": True}, dynamic, config=one, rounded=False),
        ct("ct-fp8", "float-quantized", {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True}, {**dynamic, "type": "float"}, config=one),
        ct("ct-fp8-block", "float-quantized", {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [32, 32], "symmetric": True},
           {**dynamic, "type": "float"}, config=one),
        ct("ct-nvfp4", "nvfp4-pack-quantized", {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": True}, config=one),
        ct("ct-mxfp4", "mxfp4-pack-quantized", {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True}, config=one),
        g("bnb-nf4", bitsandbytes, {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True},
          {**one, "intermediate_size": 128}, **bf16),     # its kernel takes rows of whole blocks
        g("bnb-fp4", bitsandbytes, {"load_in_4bit": True, "bnb_4bit_quant_type": "fp4", "bnb_4bit_use_double_quant": False},
          {**one, "intermediate_size": 128}, **{**bf16, "dtype": torch.float16}),
        g("bnb-int8", bitsandbytes, {"load_in_8bit": True}, one, **{**bf16, "dtype": torch.float16}),
        g("bitnet", bitnet, {"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "offline", "modules_to_not_convert": None},
          base=BITNET, off=2, **bf16),
        g("bitnet-divided", bitnet, {"quant_method": "bitnet", "linear_class": "bitlinear", "quantization_mode": "offline", "modules_to_not_convert": None},
          {**one, "tie_word_embeddings": False}, off=2, **bf16),
        g("modelopt-nvfp4", modelopt, {"quant_algo": "NVFP4", "group_size": 16, "kv_cache_quant_algo": None, "exclude_modules": ["lm_head"]}, one, **bf16),
    ]
