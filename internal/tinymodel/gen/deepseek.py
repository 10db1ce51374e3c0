"""DeepSeek's first mixture of experts, which transformers has no class for: its Llama with the mixture of the authors' code
(DeepSeek-MoE, arXiv 2401.06066, equations 9 to 11; modeling_deepseek.py beside the checkpoint deepseek-moe-16b-base)."""
import torch
from huggingface_hub.dataclasses import strict
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaMLP


@strict
class DeepseekConfig(LlamaConfig):
    model_type = "deepseek"
    moe_intermediate_size: int = 1407
    n_shared_experts: int | None = None
    n_routed_experts: int | None = None
    num_experts_per_tok: int | None = None
    moe_layer_freq: int = 1
    first_k_dense_replace: int = 0
    norm_topk_prob: bool = False
    scoring_func: str = "softmax"


def mlp(config, width):
    return LlamaMLP(LlamaConfig(hidden_size=config.hidden_size, intermediate_size=width, hidden_act=config.hidden_act))


class DeepseekMoE(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.top_k, self.norm = config.num_experts_per_tok, config.norm_topk_prob
        self.gate = torch.nn.Linear(config.hidden_size, config.n_routed_experts, bias=False)
        self.experts = torch.nn.ModuleList(mlp(config, config.moe_intermediate_size) for _ in range(config.n_routed_experts))
        self.shared_experts = mlp(config, config.moe_intermediate_size * config.n_shared_experts)

    def forward(self, x):
        weights, chosen = torch.topk(self.gate(x).softmax(-1), self.top_k, dim=-1)
        if self.norm and self.top_k > 1:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        out = self.shared_experts(x)
        for i, expert in enumerate(self.experts):
            out = out + expert(x) * (weights * (chosen == i)).sum(-1, keepdim=True)
        return out


class DeepseekForCausalLM(LlamaForCausalLM):
    config_class = DeepseekConfig

    def __init__(self, config):
        super().__init__(config)
        for i, layer in enumerate(self.model.layers):
            if i >= config.first_k_dense_replace and i % config.moe_layer_freq == 0:
                layer.mlp = DeepseekMoE(config)
        self.post_init()


AutoConfig.register("deepseek", DeepseekConfig)
AutoModelForCausalLM.register(DeepseekConfig, DeepseekForCausalLM)
