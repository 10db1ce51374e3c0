"""Writes a checkpoint as a GGUF file of F32 tensors, with the teacher's
tokenizer and chat template. `go run ./tools/tinymodel/quantize` makes the file
that is embedded out of it."""

import argparse
import os

import gguf
import numpy as np
import torch

import data
from student import SHAPE, Student
from train import initial_embedding, tensors

COPIED = (
    "tokenizer.ggml.add_space_prefix",
    "tokenizer.ggml.add_bos_token",
    "tokenizer.ggml.model",
    "tokenizer.ggml.pre",
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.merges",
    "tokenizer.ggml.bos_token_id",
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.unknown_token_id",
    "tokenizer.ggml.padding_token_id",
    "tokenizer.chat_template",
)


def load(folder, teacher):
    """The student of a checkpoint, and the token of each of its rows."""
    saved = np.load(os.path.join(folder, "vocabulary.npz"))
    active, counts = saved["active"], saved["counts"]
    order = np.concatenate((active, np.setdiff1d(np.arange(len(counts)), active)))
    e = initial_embedding(teacher, counts, SHAPE["hidden"])[torch.from_numpy(order)]
    model = Student(SHAPE, e[: len(active)].clone(), e[len(active) :].clone())
    model.load_state_dict(torch.load(os.path.join(folder, "checkpoint.pt"))["model"], strict=False)
    return model.eval(), order, len(active)


@torch.no_grad()
def final_states(model, corpus, order, longest=256, enough=4000):
    """Final states of some of the answers, to judge the whole vocabulary by."""
    remap = np.empty(len(order), dtype=np.int64)
    remap[order] = np.arange(len(order))
    prefix_np = data.common_prefix(corpus)
    prefix = torch.from_numpy(remap[prefix_np])
    out = []
    for shared, docs in data.batches(corpus, prefix_np, 4096, np.random.default_rng(1), longest):
        batch = data.collate(corpus, docs, len(prefix_np) if shared else 0, longest, remap)
        x, rows = tensors(batch[:2])
        out.append(model(prefix if shared else None, x, rows)[::8])
        if sum(map(len, out)) > enough:
            break
    return torch.cat(out)


@torch.no_grad()
def unseen_rows(model, states, counts, total, steps=80):
    """Rows of tokens that training did not learn. As inputs, in questions, they
    were what they are in model.rest; as outputs they must be improbable. The
    smallest change that does it: squared hinges on the log-probabilities above
    a bound (e^2 times the token's share of the answers, at least e^-13.5), with
    a small penalty on the change, minimized by Nesterov's method."""
    lse = torch.logsumexp(states @ model.vocab.T, -1)
    bound = (torch.log((counts + 1e-9) / total) + 2).clamp_min(-13.5)
    rate = 1 / torch.linalg.eigvalsh(states.T @ states / len(states))[-1]
    rest = look = model.rest
    for step in range(steps):
        over = (states @ look.T - lse[:, None] - bound).clamp_min(0)
        grad = over.T @ states / len(states) + 1e-4 * (look - model.rest)
        new = look - rate * grad
        look = new + step / (step + 3) * (new - rest)
        rest = new
    change = (rest - model.rest).norm(dim=1)
    both = torch.logaddexp(lse, torch.logsumexp(states @ rest.T, -1))
    print(f"norms: rows {model.rest.norm(dim=1).mean():.2f}, changes {change.mean():.2f}, most {change.max():.2f}")
    print(
        f"tokens not learned: {100 * counts.sum() / total:.2f}% of the answers, given {100 * (1 - (lse - both).exp().mean()):.2f}%"
    )
    return rest


def unpermuted(w):
    return w.detach().numpy().astype(np.float32)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--dir", required=True, help="folder of the checkpoint")
    p.add_argument("--teacher", required=True)
    p.add_argument("--corpus", required=True, help="pattern of the corpus files")
    p.add_argument("--out", required=True)
    a = p.parse_args()
    model, order, active = load(a.dir, a.teacher)
    corpus = data.Corpus(data.parts(a.corpus))
    answers = np.bincount(corpus.tokens[corpus.learned], minlength=len(order))
    counts = torch.from_numpy(answers[order[active:]]).float()
    rest = unseen_rows(model, final_states(model, corpus, order), counts, answers.sum())
    table = np.empty((len(order), SHAPE["hidden"]), dtype=np.float32)
    table[order] = torch.cat((model.vocab, rest)).detach().numpy()
    write(a, model, table)


def write(a, model, table):
    w = gguf.GGUFWriter(a.out, "llama")
    dim = SHAPE["hidden"] // SHAPE["heads"]
    w.add_name("tiny")
    w.add_description("Distilled from SmolLM2-135M-Instruct; made by tools/tinymodel")
    w.add_license("apache-2.0")
    w.add_block_count(SHAPE["layers"])
    w.add_context_length(2048)
    w.add_embedding_length(SHAPE["hidden"])
    w.add_feed_forward_length(SHAPE["ffn"])
    w.add_head_count(SHAPE["heads"])
    w.add_head_count_kv(SHAPE["kv_heads"])
    w.add_rope_freq_base(SHAPE["base"])
    w.add_layer_norm_rms_eps(SHAPE["eps"])
    w.add_vocab_size(len(table))
    w.add_rope_dimension_count(dim)
    copy_tokenizer(w, a.teacher)
    w.add_tensor("token_embd.weight", table)
    w.add_tensor("output_norm.weight", unpermuted(model.output_norm))
    h, kv = SHAPE["hidden"], SHAPE["kv_heads"] * dim
    for i, b in enumerate(model.blocks):
        q, k, v = b.qkv.weight.split([h, kv, kv])
        g, u = b.gate_up.weight.chunk(2)
        parts = dict(attn_norm=b.attn_norm, attn_q=q, attn_k=k, attn_v=v, attn_output=b.attn_output.weight)
        parts.update(ffn_norm=b.ffn_norm, ffn_gate=g, ffn_up=u, ffn_down=b.ffn_down.weight)
        for name, t in parts.items():
            w.add_tensor(f"blk.{i}.{name}.weight", np.ascontiguousarray(unpermuted(t)))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def copy_tokenizer(w, teacher):
    reader = gguf.GGUFReader(teacher)
    for key in COPIED:
        f = reader.get_field(key)
        if f is None:
            continue
        kind = f.types[0]
        if kind == gguf.GGUFValueType.ARRAY:
            w.add_array(key, f.contents())
        else:
            w.add_key_value(key, f.contents(), kind)


if __name__ == "__main__":
    main()
