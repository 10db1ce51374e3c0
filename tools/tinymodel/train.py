"""Trains the embedded model on what the corpus command wrote.

The schedule follows the clock: the learning rate is constant and then falls to
nothing at --until, whatever number of steps that allows. A checkpoint is
written every few minutes; the same command goes on from it.
"""

import argparse
import math
import os
import time

import gguf
import numpy as np
import torch

import data
from student import SHAPE, Student


def initial_embedding(path, counts, hidden):
    """The teacher's embedding in its `hidden` most important directions, each
    token weighted by the root of how often it occurs."""
    reader = gguf.GGUFReader(path)
    t = next(t for t in reader.tensors if t.name == "token_embd.weight")
    e = gguf.dequantize(t.data, t.tensor_type).astype(np.float32)
    w = np.sqrt(counts + 0.01)[:, None] * e
    _, vec = np.linalg.eigh(w.T @ w)
    e = e @ vec[:, ::-1][:, :hidden]
    return torch.from_numpy(e / e.std() * 0.08).float()


def active_vocabulary(corpus, size):
    """The tokens that answers are made of, by the teacher's probability, and
    how often every token occurs."""
    mass = np.zeros(size)
    np.add.at(mass, corpus.ids.ravel(), np.exp(corpus.logp.astype(np.float64)).ravel())
    counts = np.bincount(corpus.tokens, minlength=size)
    answers = np.bincount(corpus.tokens[corpus.learned], minlength=size)
    return np.flatnonzero((mass > 0.3) | (answers > 0)), counts


class Muon:
    """Momentum whose matrix updates are made orthogonal by Newton-Schulz
    iterations (Jordan et al. 2024)."""

    def __init__(self, params):
        self.params = list(params)
        self.momentum = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self, lr, decay):
        for p, m in zip(self.params, self.momentum):
            m.mul_(0.95).add_(p.grad)
            x = p.grad.add(m, alpha=0.95)
            flip = x.shape[0] > x.shape[1]
            x = x.T if flip else x
            x = x / (x.norm() + 1e-7)
            for _ in range(5):
                a = x @ x.T
                x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
            x = x.T if flip else x
            p.mul_(1 - lr * decay).add_(x, alpha=-lr * math.sqrt(max(1, p.shape[0] / p.shape[1])))


def tensors(batch):
    return [torch.from_numpy(a) for a in batch]


@torch.no_grad()
def held_out(model, corpus, prefix_np, prefix, remap, a):
    total, nll, agree, n = 0.0, 0.0, 0.0, 0
    rng = np.random.default_rng(5)
    for shared, docs in data.batches(corpus, prefix_np, a.batch, rng, a.longest):
        skip = len(prefix_np) if shared else 0
        x, rows, y, ids, q = tensors(data.collate(corpus, docs, skip, a.longest, remap))
        kl, ce, same = model.loss(prefix if shared else None, x, rows, y, ids, q)
        total, nll, agree, n = total + kl.item(), nll + ce, agree + same, n + len(rows)
    return total / n, nll / n, agree / n


def prepare(a):
    """Vocabulary, embedding and student; kept in the folder so that a later
    run numbers tokens alike."""
    first = data.Corpus(data.parts(a.corpus))
    path = os.path.join(a.dir, "vocabulary.npz")
    if not os.path.exists(path):
        active, counts = active_vocabulary(first, a.vocab)
        np.savez(path, active=active, counts=counts)
    saved = np.load(path)
    active, counts = saved["active"], saved["counts"]
    rest = np.setdiff1d(np.arange(a.vocab), active)
    order = np.concatenate((active, rest))
    remap = np.empty(a.vocab, dtype=np.int64)
    remap[order] = np.arange(a.vocab)
    e = initial_embedding(a.teacher, counts, SHAPE["hidden"])[torch.from_numpy(order)]
    a.active = len(active)
    return first, remap, Student(SHAPE, e[: a.active].clone(), e[a.active :].clone())


def rate(a, now):
    """Share of the full learning rate at a time."""
    done = (now - a.start) / (a.until - a.start)
    return max(0.0, min(1.0, (1 - done) / a.decay))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--corpus", required=True, help="pattern of the corpus files; new ones are taken up as they appear")
    p.add_argument("--heldout", required=True, help="corpus file of prompts that are not in the others")
    p.add_argument("--teacher", required=True, help="GGUF whose embedding the student starts from")
    p.add_argument("--dir", required=True, help="folder of checkpoints and the log")
    p.add_argument("--minutes", type=float, default=80)
    p.add_argument("--batch", type=int, default=4096, help="tokens in a step")
    p.add_argument("--longest", type=int, default=256)
    p.add_argument("--lr", type=float, default=0.02, help="of matrices (Muon)")
    p.add_argument("--lr-adam", type=float, default=0.004, help="of the embedding and the norms")
    p.add_argument("--decay", type=float, default=0.45, help="last share of the time, in which the rate falls")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--vocab", type=int, default=49152)
    p.add_argument("--steps", type=int, default=0, help="stop after this many, to measure")
    a = p.parse_args()
    torch.manual_seed(a.seed)
    corpus, remap, model = prepare(a)
    held = data.Corpus([a.heldout])
    prefix_np = data.common_prefix(corpus)
    prefix = torch.from_numpy(remap[prefix_np])
    matrices = [w for n, w in model.named_parameters() if w.dim() == 2 and n != "vocab"]
    others = [w for n, w in model.named_parameters() if w.dim() != 2 or n == "vocab"]
    muon, adam = Muon(matrices), torch.optim.AdamW(others, lr=a.lr_adam, betas=(0.9, 0.98), weight_decay=0.0)
    print(
        f"{sum(w.numel() for w in matrices)} in matrices, {a.active} active tokens, prefix of {len(prefix)}, "
        f"{len(corpus)} documents, {len(corpus.ids)} answer tokens",
        flush=True,
    )
    train(a, corpus, held, remap, model, prefix_np, prefix, muon, adam)


def train(a, corpus, held, remap, model, prefix_np, prefix, muon, adam):
    a.start = time.time()
    a.until = a.start + a.minutes * 60
    path, log = os.path.join(a.dir, "checkpoint.pt"), open(os.path.join(a.dir, "log.tsv"), "a", buffering=1)
    step, seen, epoch, spent = 0, 0, 0, 0.0
    if os.path.exists(path):
        c = torch.load(path)
        model.load_state_dict(c["model"], strict=False)
        muon.momentum = c["muon"]
        adam.load_state_dict(c["adam"])
        step, seen, epoch, spent = c["step"], c["seen"], c["epoch"], c["spent"]
    saved = reported = last = time.time()
    sums = np.zeros(3)
    while rate(a, time.time()) > 0:
        found = data.parts(a.corpus)
        if found != corpus.paths:
            corpus = data.Corpus(found)
            print(f"{len(corpus)} documents, {len(corpus.ids)} answer tokens", flush=True)
        epoch += 1
        rng = np.random.default_rng(a.seed * 1000 + epoch)
        for shared, docs in data.batches(corpus, prefix_np, a.batch, rng, a.longest):
            skip = len(prefix_np) if shared else 0
            x, rows, y, ids, q = tensors(data.collate(corpus, docs, skip, a.longest, remap))
            kl, nll, _ = model.loss(prefix if shared else None, x, rows, y, ids, q)
            model.zero_grad()
            (kl / len(rows)).backward()
            warm = min(1.0, (step + 1) / 100)
            share = rate(a, time.time()) * warm
            muon.step(a.lr * share, 0.1)
            adam.param_groups[0]["lr"] = a.lr_adam * share
            adam.step()
            step, seen = step + 1, seen + len(rows)
            sums += kl.item(), nll, len(rows)
            now = time.time()
            spent += min(now - last, 10.0)
            last = now
            if step % 25 == 0:
                log.write(
                    f"{step}\t{seen}\t{epoch}\t{spent:.0f}\t{share:.3f}\t{sums[0] / sums[2]:.4f}\t{sums[1] / sums[2]:.4f}\n"
                )
                sums[:] = 0
            if now - reported > 240 or step == a.steps:
                reported = now
                v = held_out(model, held, prefix_np, prefix, remap, a)
                print(
                    f"step {step} seen {seen} epoch {epoch} {spent:.0f}s {seen / spent:.0f}/s held-out kl {v[0]:.4f} nll {v[1]:.4f} agree {v[2]:.4f}",
                    flush=True,
                )
                log.write(f"{step}\t{seen}\t{epoch}\t{spent:.0f}\theld\t{v[0]:.4f}\t{v[1]:.4f}\t{v[2]:.4f}\n")
            if now - saved > 240:
                saved = now
                save(path, model, muon, adam, step, seen, epoch, spent)
            if share == 0 or step == a.steps:
                break
        if step == a.steps:
            break
    save(path, model, muon, adam, step, seen, epoch, spent)
    v = held_out(model, held, prefix_np, prefix, remap, a)
    print(
        f"end: step {step} seen {seen} {spent:.0f}s held-out kl {v[0]:.4f} nll {v[1]:.4f} agree {v[2]:.4f}", flush=True
    )


def save(path, model, muon, adam, step, seen, epoch, spent):
    torch.save(
        {
            "model": model.state_dict(),
            "muon": muon.momentum,
            "adam": adam.state_dict(),
            "step": step,
            "seen": seen,
            "epoch": epoch,
            "spent": spent,
        },
        path + ".tmp",
    )
    os.replace(path + ".tmp", path)


if __name__ == "__main__":
    main()
