"""Trains a small float llama on plain English text and writes it as a GGUF file
of bfloat16 matrices: a model for measuring what quantization costs.

Its matrices have columns that are multiples of 256, so that every block format
can hold them, and they have never been in a grid. The vocabulary is a byte-level
BPE of the same text. The last twentieth of every text is held out.
"""

import argparse
import json
import math
import os
import time

import gguf
import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import nn

from student import Block
from train import Muon

SHAPE = dict(hidden=256, layers=4, heads=4, kv_heads=2, ffn=768, base=10000.0, eps=1e-5)
WINDOW = 256


class Prose(nn.Module):
    def __init__(self, c, vocab):
        super().__init__()
        self.c = c
        self.vocab = nn.Parameter(torch.randn(vocab, c["hidden"]) * 0.05)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["layers"]))
        self.output_norm = nn.Parameter(torch.ones(c["hidden"]))
        dim = c["hidden"] // c["heads"]
        angle = torch.arange(WINDOW).float()[:, None] * c["base"] ** (-torch.arange(0, dim, 2).float() / dim)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, x):
        h, n = F.embedding(x, self.vocab), x.shape[1]
        for b in self.blocks:
            h, _ = b(h, self.cos[:n], self.sin[:n], None, None)
        return F.rms_norm(h, (h.shape[-1],), self.output_norm, self.c["eps"]) @ self.vocab.T


def tokenizer_of(texts, size):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=alphabet))
    return t


def loss_of(model, x):
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(x[:, :-1])
    return F.cross_entropy(logits.float().flatten(0, 1), x[:, 1:].flatten())


@torch.no_grad()
def held_out(model, tokens):
    n = len(tokens) // (WINDOW + 1)
    x = tokens[: n * (WINDOW + 1)].view(n, -1)
    return sum(loss_of(model, part).item() * len(part) for part in x.split(16)) / n


def train(model, text, held, a):
    matrices = [w for n, w in model.named_parameters() if w.dim() == 2 and n != "vocab"]
    others = [w for n, w in model.named_parameters() if w.dim() != 2 or n == "vocab"]
    muon, adam = Muon(matrices), torch.optim.AdamW(others, lr=a.lr_adam, betas=(0.9, 0.98), weight_decay=0.0)
    start, seen, step = time.time(), 0, 0
    while (now := (time.time() - start) / (60 * a.minutes)) < 1:
        at = torch.randint(len(text) - WINDOW - 1, (a.batch,))
        x = torch.stack([text[i : i + WINDOW + 1] for i in at])
        rate = min(1, (step + 1) / 50, (1 - now) / a.decay)
        loss = loss_of(model, x)
        loss.backward()
        adam.param_groups[0]["lr"] = a.lr_adam * rate
        muon.step(a.lr * rate, a.weight_decay)
        adam.step()
        model.zero_grad(set_to_none=True)
        seen, step = seen + a.batch * WINDOW, step + 1
        if step % 50 == 0:
            print(f"{step}\t{time.time() - start:.0f} s\t{seen} tokens\tloss {loss.item():.3f}\theld out {held_out(model, held[:40000]):.3f}", flush=True)
            write(a, model)
    print(f"{step} steps, {seen} tokens, held out {held_out(model, held):.4f}, {seen / len(text):.1f} passes", flush=True)


def write(a, model):
    c, path = SHAPE, a.out + ".part"
    w = gguf.GGUFWriter(path, "llama")
    w.add_name("prose")
    w.add_description("A small model of English for measuring quantization; made by tools/tinymodel/prose.py")
    w.add_block_count(c["layers"])
    w.add_context_length(WINDOW)
    w.add_embedding_length(c["hidden"])
    w.add_feed_forward_length(c["ffn"])
    w.add_head_count(c["heads"])
    w.add_head_count_kv(c["kv_heads"])
    w.add_rope_freq_base(c["base"])
    w.add_layer_norm_rms_eps(c["eps"])
    w.add_vocab_size(a.vocab)
    w.add_rope_dimension_count(c["hidden"] // c["heads"])
    w.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    bpe = json.loads(a.tokenizer.to_str())["model"]
    tokens = sorted(bpe["vocab"], key=bpe["vocab"].get)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(tokens)
    w.add_token_types([3 if t == "<|endoftext|>" else 1 for t in tokens])
    w.add_token_merges([" ".join(m) if isinstance(m, list) else m for m in bpe["merges"]])
    w.add_bos_token_id(0)
    w.add_eos_token_id(0)
    w.add_add_bos_token(False)

    def put(name, t):
        x = t.detach().float()
        if x.dim() == 2:
            bits = x.to(torch.bfloat16).contiguous().view(torch.int16).numpy().view(np.uint16)
            w.add_tensor(name, bits.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
        else:
            w.add_tensor(name, x.numpy())

    put("token_embd.weight", model.vocab)
    put("output_norm.weight", model.output_norm)
    kv = c["kv_heads"] * (c["hidden"] // c["heads"])
    for i, b in enumerate(model.blocks):
        q, k, v = b.qkv.weight.split([c["hidden"], kv, kv])
        g, u = b.gate_up.weight.chunk(2)
        parts = dict(attn_norm=b.attn_norm, attn_q=q, attn_k=k, attn_v=v, attn_output=b.attn_output.weight)
        parts.update(ffn_norm=b.ffn_norm, ffn_gate=g, ffn_up=u, ffn_down=b.ffn_down.weight)
        for name, t in parts.items():
            put(f"blk.{i}.{name}.weight", t)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    os.replace(path, a.out)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("texts", nargs="+", help="files of plain text")
    p.add_argument("--out", required=True)
    p.add_argument("--minutes", type=float, default=60)
    p.add_argument("--vocab", type=int, default=2048)
    p.add_argument("--batch", type=int, default=16, help=f"windows of {WINDOW} tokens in a step")
    p.add_argument("--lr", type=float, default=0.02, help="of matrices (Muon)")
    p.add_argument("--lr-adam", type=float, default=0.004, help="of the embedding and the norms")
    p.add_argument("--weight-decay", type=float, default=0.2)
    p.add_argument("--decay", type=float, default=0.6, help="last share of the time, in which the rate falls")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=1)
    a = p.parse_args()
    torch.manual_seed(a.seed)
    torch.set_num_threads(a.threads)
    texts = [open(f, encoding="utf-8").read() for f in a.texts]
    cut = [len(t) * 19 // 20 for t in texts]
    a.tokenizer = tokenizer_of([t[:n] for t, n in zip(texts, cut)], a.vocab)

    def ids(part):
        return torch.tensor([i for t in part for i in a.tokenizer.encode(t).ids + [0]])

    text, held = ids(t[:n] for t, n in zip(texts, cut)), ids(t[n:] for t, n in zip(texts, cut))
    model = Prose(SHAPE, a.vocab)
    print(f"{sum(w.numel() for w in model.parameters())} parameters, {len(text)} tokens, {len(held)} held out, {math.log(a.vocab):.2f} at first", flush=True)
    train(model, text, held, a)
    write(a, model)


if __name__ == "__main__":
    main()
