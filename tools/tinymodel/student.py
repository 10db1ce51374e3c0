"""The student: a llama of a few layers over part of the teacher's vocabulary."""

import math

import torch
import torch.nn.functional as F
from torch import nn

SHAPE = dict(hidden=128, layers=6, heads=4, kv_heads=2, ffn=384, base=10000.0, eps=1e-5)


def rope_tables(positions, dim, base):
    inv = base ** (-torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    angle = positions.float()[:, None] * inv[None]
    return angle.cos(), angle.sin()


def rope(x, cos, sin):
    """Rotates the pairs (2i, 2i+1) of x [batch, heads, length, dim]."""
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.dim = c, c["hidden"] // c["heads"]
        h, kv = c["hidden"], c["kv_heads"] * self.dim
        self.attn_norm = nn.Parameter(torch.ones(h))
        self.ffn_norm = nn.Parameter(torch.ones(h))
        self.qkv = nn.Linear(h, h + 2 * kv, bias=False)
        self.attn_output = nn.Linear(h, h, bias=False)
        self.gate_up = nn.Linear(h, 2 * c["ffn"], bias=False)
        self.ffn_down = nn.Linear(c["ffn"], h, bias=False)
        for m in (self.qkv, self.gate_up):
            nn.init.normal_(m.weight, std=h**-0.5)
        for m, n in ((self.attn_output, h), (self.ffn_down, c["ffn"])):
            nn.init.normal_(m.weight, std=n**-0.5 / math.sqrt(2 * c["layers"]))

    def forward(self, x, cos, sin, mask, before):
        """before: keys and values of the shared prefix, or None. Returns the
        output and this block's own keys and values."""
        b, t, h = x.shape
        c, d = self.c, self.dim
        n = F.rms_norm(x, (h,), self.attn_norm, c["eps"])
        q, k, v = self.qkv(n).split([h, c["kv_heads"] * d, c["kv_heads"] * d], -1)
        q = rope(q.view(b, t, -1, d).transpose(1, 2), cos, sin)
        k = rope(k.view(b, t, -1, d).transpose(1, 2), cos, sin)
        v = v.view(b, t, -1, d).transpose(1, 2)
        own = (k, v)
        if before is not None:
            k = torch.cat((before[0].expand(b, -1, -1, -1), k), 2)
            v = torch.cat((before[1].expand(b, -1, -1, -1), v), 2)
        rep = c["heads"] // c["kv_heads"]
        k, v = k.repeat_interleave(rep, 1), v.repeat_interleave(rep, 1)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        x = x + self.attn_output(a.transpose(1, 2).reshape(b, t, h))
        n = F.rms_norm(x, (h,), self.ffn_norm, c["eps"])
        g, u = self.gate_up(n).chunk(2, -1)
        return x + self.ffn_down(F.silu(g) * u), own


class Student(nn.Module):
    """vocab: the [active, hidden] embedding that is trained and tied to the
    output; rest: rows of tokens that never occur in answers, not trained. In
    the output all of these share the row `unseen`, so that training keeps their
    probability down."""

    def __init__(self, c, active, rest):
        super().__init__()
        self.c = c
        self.vocab = nn.Parameter(active)
        self.register_buffer("rest", rest, persistent=False)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["layers"]))
        self.output_norm = nn.Parameter(torch.ones(c["hidden"]))
        self.unseen = nn.Parameter(torch.zeros(c["hidden"]))

    def embed(self, x):
        """The rows of x, trained or not, without a table of all of them."""
        active = len(self.vocab)
        trained = F.embedding(x.clamp(max=active - 1), self.vocab)
        return torch.where(x[..., None] < active, trained, F.embedding((x - active).clamp(min=0), self.rest))

    def run(self, x, at, before):
        """Blocks over embedded x; at: first position; before: per block."""
        t, p = x.shape[1], 0 if before is None else before[0][0].shape[2]
        cos, sin = rope_tables(torch.arange(at, at + t), self.c["hidden"] // self.c["heads"], self.c["base"])
        mask = None
        if before is not None:
            mask = torch.ones(t, p + t, dtype=torch.bool).tril(p)
        own = []
        for i, block in enumerate(self.blocks):
            x, kv = block(x, cos, sin, mask, None if before is None else before[i])
            own.append(kv)
        return x, own

    def forward(self, prefix, x, rows):
        """Final states [rows, hidden] of the flat positions rows of x [batch,
        length]; prefix: [tokens] before each of x, or None."""
        before, at = None, 0
        if prefix is not None:
            _, before = self.run(self.embed(prefix[None]), 0, None)
            at = len(prefix)
        x, _ = self.run(self.embed(x), at, before)
        x = x.flatten(0, 1)[rows]
        return F.rms_norm(x, (x.shape[-1],), self.output_norm, self.c["eps"])

    def loss(self, prefix, x, rows, y, ids, q):
        """SoftTargetLoss of a batch of data.collate."""
        states = self(prefix, x, rows)
        return SoftTargetLoss.apply(states, self.vocab, self.unseen, len(self.rest), y, ids, q)


class SoftTargetLoss(torch.autograd.Function):
    """KL divergence from the teacher's targets to softmax(x @ vocab.T), summed
    over rows. Works on a few rows at a time in one buffer and computes the
    gradients on the way: the logits of a batch never exist at once. The row
    `unseen` stands for as many tokens as `others` says.

    Also returns the summed negative log-probability of the tokens y, and how
    often the most probable token is the teacher's, both as plain numbers."""

    CHUNK = 128

    @staticmethod
    def forward(ctx, x, vocab, unseen, others, y, ids, q):
        active = len(vocab)
        vocab = torch.cat((vocab, unseen[None]))
        weight = math.log(max(others, 1e-9))
        known = ids < active
        q = torch.where(known, q, 0.0)
        q = q / q.sum(-1, keepdim=True).clamp_min(1e-6)
        ids = torch.where(known, ids, 0)
        seen = y < active
        y = torch.where(seen, y, 0)
        dx, dvocab = torch.empty_like(x), torch.zeros_like(vocab)
        buffer = torch.empty(SoftTargetLoss.CHUNK, active + 1)
        kl, nll, agree = 0.0, 0.0, 0
        for a in range(0, len(x), SoftTargetLoss.CHUNK):
            b = min(a + SoftTargetLoss.CHUNK, len(x))
            p = buffer[: b - a]
            torch.mm(x[a:b], vocab.T, out=p)
            p[:, -1] += weight
            top, arg = p.max(-1, keepdim=True)
            agree += (arg[:, 0] == ids[a:b, 0]).sum().item()
            z, zy = p.gather(1, ids[a:b]), p.gather(1, y[a:b, None])
            total = p.sub_(top).exp_().sum(-1, keepdim=True)
            lse = top + total.log()
            kl += (q[a:b] * (q[a:b].clamp_min(1e-9).log() - z + lse)).sum().item()
            nll += (lse - zy)[seen[a:b]].sum().item()
            p.div_(total).scatter_add_(1, ids[a:b], -q[a:b])
            torch.mm(p, vocab, out=dx[a:b])
            dvocab.addmm_(p.T, x[a:b])
        ctx.save_for_backward(dx, dvocab)
        return x.new_tensor(kl), nll / max(1, seen.sum().item()) * len(x), agree

    @staticmethod
    def backward(ctx, grad, *_):
        dx, dvocab = ctx.saved_tensors
        dvocab.mul_(grad)
        return dx.mul_(grad), dvocab[:-1], dvocab[-1], None, None, None, None
