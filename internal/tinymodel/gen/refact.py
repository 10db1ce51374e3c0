"""Refact, which transformers has no class for: its MPT, whose layers have the same norms, with the attention and the MLP of the authors' code
(modeling_gpt_refact.py beside the checkpoint Refact-1_6B-fim). llama.cpp computes RMSNorm in place of its LayerNorm."""
import torch
from huggingface_hub.dataclasses import strict
from transformers import AutoConfig, AutoModelForCausalLM, MptConfig, MptForCausalLM


@strict
class RefactLayersConfig(MptConfig):
    model_type = "refact-layers"


class OneKey(torch.nn.Module):
    """Queries of all heads, and one key and value that all heads share."""
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.q = torch.nn.Linear(hidden, hidden, bias=False)
        self.kv = torch.nn.Linear(hidden, 2 * (hidden // heads), bias=False)

    def forward(self, x):
        k, v = self.kv(x).chunk(2, -1)
        return torch.cat([self.q(x), k.repeat(1, 1, self.heads), v.repeat(1, 1, self.heads)], -1)


class Gated(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        width = (4 * hidden * 2 // 3 + 255) // 256 * 256
        self.gate_up_proj = torch.nn.Linear(hidden, 2 * width, bias=False)
        self.c_proj = torch.nn.Linear(width, hidden, bias=False)

    def forward(self, x, residual):
        gate, up = self.gate_up_proj(x).chunk(2, -1)
        return residual + self.c_proj(torch.nn.functional.silu(gate) * up)


class RefactLayersForCausalLM(MptForCausalLM):
    config_class = RefactLayersConfig

    def __init__(self, config):
        super().__init__(config)
        for block in self.transformer.blocks:
            block.attn.Wqkv, block.ffn = OneKey(config.d_model, config.n_heads), Gated(config.d_model)
        self.post_init()


AutoConfig.register("refact-layers", RefactLayersConfig)
AutoModelForCausalLM.register(RefactLayersConfig, RefactLayersForCausalLM)


def names(tensors):
    """Gives the tensors the names that Refact's checkpoints have."""
    out = {}
    for name, t in tensors.items():
        for a, b in {"transformer.norm_f": "ln_f", "transformer.blocks": "transformer.h", "norm_": "ln_", "attn.Wqkv.": "attn.",
                     "attn.out_proj": "attn.c_proj", "ffn.": "mlp."}.items():
            name = name.replace(a, b)
        out[name] = t
    return out
