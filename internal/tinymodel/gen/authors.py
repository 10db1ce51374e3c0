"""Cases of dense decoders that transformers does not have: llama.cpp computes them, or another class of the same layers does."""
import torch

import refact as refact_layers
from base import BASE, family
from experts import attention_of, around, layers, mlp_of

HALF = {"max_position_embeddings": 256, "torch_dtype": "bfloat16"}
PLAIN = {**BASE, **HALF, "intermediate_size": 32, "hidden_act": "silu", "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
ROTATED = {**PLAIN, "rope_theta": 20000.0, "rope_scaling": None}


def under(root, n, around, parts):
    """Returns the tensors around n layers, and those of the layers under a root; biases have their whole names."""
    weight = lambda name: name if name.endswith(".bias") else f"{name}.weight"
    return {**{weight(k): v for k, v in around.items()},
            **{weight(f"{root}.{i}.{k}"): v for i in range(n) for k, v in parts.items()}}


def llama_tensors(c):
    parts = {**attention_of(c, c["hidden_size"] // c["num_attention_heads"]), **mlp_of(c, "mlp", c["intermediate_size"])}
    return {**around(c), **layers(c["num_hidden_layers"], lambda i: parts)}


def bitnet_tensors(c):
    own = {"self_attn.attn_sub_norm": c["hidden_size"], "mlp.ffn_sub_norm": c["intermediate_size"]}
    return {**llama_tensors(c), **layers(c["num_hidden_layers"], lambda i: {k: (n,) for k, n in own.items()})}


def orion_tensors(c):
    tensors = llama_tensors(c)
    return {**tensors, **{k.replace("weight", "bias"): v for k, v in tensors.items() if "norm" in k}}


def internlm2_tensors(c):
    h, q, kv = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"]
    wide = (c["vocab_size"], h)
    return under("model.layers", c["num_hidden_layers"], {"model.tok_embeddings": wide, "model.norm": (h,), "output": wide}, {
        "attention.wqkv": (h // q * (q + 2 * kv), h), "attention.wo": (h, h), "attention_norm": (h,), "ffn_norm": (h,),
        **mlp_of(c, "feed_forward", c["intermediate_size"], "w3", "w1", "w2")})


def baichuan_tensors(c):
    h = c["hidden_size"]
    parts = {"self_attn.W_pack": (3 * h, h), "self_attn.o_proj": (h, h), "input_layernorm": (h,), "post_attention_layernorm": (h,),
             **mlp_of(c, "mlp", c["intermediate_size"])}
    return {**around(c), **layers(c["num_hidden_layers"], lambda i: parts)}


def chatglm_tensors(c):
    h, ffn, qkv = c["hidden_size"], c["ffn_hidden_size"], c["hidden_size"] + 2 * c["multi_query_group_num"] * c["kv_channels"]
    wide = (c["padded_vocab_size"], h)
    return under("transformer.encoder.layers", c["num_layers"], {
        "transformer.embedding.word_embeddings": wide, "transformer.encoder.final_layernorm": (h,), "transformer.output_layer": wide}, {
        "input_layernorm": (h,), "post_attention_layernorm": (h,), "self_attention.query_key_value": (qkv, h),
        "self_attention.dense": (h, h), "mlp.dense_h_to_4h": (2 * ffn, h), "mlp.dense_4h_to_h": (h, ffn),
        **({"self_attention.query_key_value.bias": (qkv,)} if c["add_qkv_bias"] else {})})


def jais_tensors(c):
    h, ffn = c["n_embd"], c["n_inner"]
    wide = (c["vocab_size"], h)
    conv1d = {"attn.c_attn": (h, 3 * h), "attn.c_proj": (h, h), "mlp.c_fc": (h, ffn), "mlp.c_fc2": (h, ffn), "mlp.c_proj": (ffn, h)}
    return under("transformer.h", c["n_layer"], {
        "transformer.wte": wide, "transformer.ln_f": (h,), "transformer.ln_f.bias": (h,), "lm_head": wide}, {
        "ln_1": (h,), "ln_1.bias": (h,), "ln_2": (h,), "ln_2.bias": (h,), **conv1d, **{f"{k}.bias": v[1:] for k, v in conv1d.items()}})


def codeshell_names(tensors):
    """Gives StarCoder 2's tensors the names of CodeShell."""
    out = {}
    for name, t in tensors.items():
        for a, b in {"model.embed_tokens": "transformer.wte", "model.norm": "transformer.ln_f", "model.layers": "transformer.h",
                     "input_layernorm": "ln_1", "post_attention_layernorm": "ln_2", "self_attn.o_proj": "attn.c_proj",
                     "self_attn.q_proj": "attn.c_attn"}.items():
            name = name.replace(a, b)
        if "attn.c_attn" in name:
            at = name.replace("transformer.h", "model.layers").replace("attn.c_attn", "self_attn.#_proj")
            t = torch.cat([tensors[at.replace("#", x)] for x in "qkv"])
        if "_proj." not in name or "c_proj." in name:
            out[name] = t
    return out


internlm2 = family("InternLM2ForCausalLM", "internlm2", {**ROTATED, "bias": False}, tensors=internlm2_tensors)
minicpm = family("MiniCPMForCausalLM", "minicpm", {
    **ROTATED, "tie_word_embeddings": True, "scale_emb": 4, "dim_model_base": 16, "scale_depth": 1.4}, tensors=llama_tensors, embed_std=0.2)
xverse = family("XverseForCausalLM", "xverse", {**{k: v for k, v in ROTATED.items() if k != "rope_scaling"}, "num_key_value_heads": 4},
                tensors=llama_tensors)
orion = family("OrionForCausalLM", "orion", {**PLAIN, "rope_theta": 10000.0}, tensors=orion_tensors)
chatglm = family("ChatGLMModel", "chatglm", {
    "vocab_size": 128, "padded_vocab_size": 128, "hidden_size": 32, "ffn_hidden_size": 32, "kv_channels": 8, "num_layers": 2, "num_attention_heads": 4,
    "seq_length": 256, "layernorm_epsilon": 1e-5, "rmsnorm": True, "post_layer_norm": True, "apply_residual_connection_post_layernorm": False,
    "add_bias_linear": False, "add_qkv_bias": True, "multi_query_attention": True, "multi_query_group_num": 2, "rope_ratio": 1,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16"}, tensors=chatglm_tensors)
glm = family("GlmForCausalLM", "glm", {
    **PLAIN, "head_dim": 8, "attention_bias": True, "partial_rotary_factor": 0.5, "rope_theta": 10000.0, "pad_token_id": 0})
refact = family("GPTRefactForCausalLM", "gpt_refact", {
    "vocab_size": 104, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 256, "multi_query": True, "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16"}, rename=refact_layers.names, reference={
    "architectures": ["RefactLayersForCausalLM"], "model_type": "refact-layers", "vocab_size": 104, "d_model": 16, "n_layers": 2, "n_heads": 2,
    "max_seq_len": 256, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": False, "torch_dtype": "bfloat16"})
jais = family("JAISLMHeadModel", "jais", {
    "vocab_size": 128, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_inner": 32, "n_positions": 256, "activation_function": "swiglu",
    "layer_norm_epsilon": 1e-5, "position_embedding_type": "alibi", "scale_attn_weights": True, "mup_embeddings_scale": 4.0,
    "mup_output_alpha": 2.0, "mup_width_scale": 0.25, "mup_scale_qk_dot_by_d": True, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16"}, tensors=jais_tensors, conv1d=True)
codeshell = family("CodeShellForCausalLM", "codeshell", {
    "vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_pytorch_tanh",
    "group_query_attention": True, "num_query_groups": 2, "position_embedding_type": "rope", "tie_word_embeddings": False, "torch_dtype": "bfloat16"},
                   rename=codeshell_names, reference={
    "architectures": ["Starcoder2ForCausalLM"], "model_type": "starcoder2", **PLAIN, "vocab_size": 100, "intermediate_size": 128, "norm_epsilon": 1e-5, "use_bias": True,
    "hidden_act": "gelu_pytorch_tanh", "rope_theta": 10000.0, "sliding_window": None, "bos_token_id": 1, "eos_token_id": 2})
BAICHUAN = {"vocab_size": 104, "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2, "hidden_act": "silu",
            "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
baichuan = family("BaichuanForCausalLM", "baichuan", BAICHUAN, tensors=baichuan_tensors)

bitnet = family("BitNetForCausalLM", "bitnet", {**PLAIN, "rope_theta": 10000.0, "attention_bias": False, "tie_word_embeddings": True},
                tensors=bitnet_tensors, signs=0.25)

CASES = [
    bitnet("bitnet-signs", "weights of -1 and 1 times a scale, SiLU; 200 tokens, by llama.cpp", prompt=200),
    internlm2("internlm2", "queries, keys and values of each group of heads in one matrix; 200 tokens, by llama.cpp", prompt=200),
    minicpm("minicpm", "scales of embedding, layers and logits; 200 tokens, by llama.cpp", prompt=200),
    minicpm("minicpm4", "LongRoPE within the context that it was trained on, untied; by llama.cpp", {
        "tie_word_embeddings": False, "max_position_embeddings": 512, "rope_scaling": {
            "rope_type": "longrope", "short_factor": [1.0, 1.5, 2.0, 3.0], "long_factor": [1.0, 2.0, 4.0, 8.0],
            "original_max_position_embeddings": 512}}),
    xverse("xverse", "Llama under another name; 200 tokens, by llama.cpp", prompt=200),
    orion("orion", "LayerNorm; 200 tokens, by llama.cpp", prompt=200),
    chatglm("chatglm", "half of each head rotated, fused projections with biases; 200 tokens, by llama.cpp", prompt=200),
    chatglm("chatglm-ratio", "another base, one head of keys, no biases; by llama.cpp", {
        "rope_ratio": 50, "multi_query_group_num": 1, "add_qkv_bias": False}),
    glm("glm", "ChatGLM's layers as transformers has them; 200 tokens", prompt=200, gguf=False),
    glm("glm-bare", "no biases, a whole head rotated, tied", {
        "attention_bias": False, "partial_rotary_factor": 1.0, "tie_word_embeddings": True}, gguf=False),
    refact("refact", "LayerNorm, ALiBi, one head of keys; 200 tokens, by the class of MPT with the authors' attention and MLP", prompt=200),
    jais("jais", "ALiBi, gated MLP, muP's scales; 200 tokens, by llama.cpp", prompt=200),
    codeshell("codeshell", "few heads of keys in one matrix; 200 tokens, by the class of StarCoder 2", prompt=200),
    baichuan("baichuan-7b", "projections in one matrix, 32 layers, which rotate; 200 tokens, by llama.cpp", {
        "num_hidden_layers": 32, "max_position_embeddings": 256, "model_max_length": 256}, prompt=200),
    baichuan("baichuan-13b", "ALiBi, 40 layers; 128 tokens, by llama.cpp", {
        "num_hidden_layers": 40, "model_max_length": 256}, prompt=128),
]
