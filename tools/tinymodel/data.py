"""Reads what the corpus command writes and makes batches of it."""

import glob
import os

import numpy as np

TOP_K = 16
END_OF_TEXT, START, END = 0, 1, 2


class Corpus:
    """Documents of one or more files.

    tokens, learned: flat arrays over all documents, cut by bounds.
    ids, logp: [learned tokens, TOP_K], the teacher's targets, cut by targets.
    """

    def __init__(self, paths):
        tokens, learned, ids, logp = [], [], [], []
        self.bounds, self.targets = [0], [0]
        for path in paths:
            raw = np.fromfile(path, dtype=np.uint8)
            at = 0
            while at < len(raw):
                if at + 2 > len(raw):
                    break
                n = int(raw[at]) | int(raw[at + 1]) << 8
                k = int(raw[at + 2 + 2 * n : at + 2 + 3 * n].sum())
                if at + 2 + 3 * n + k * TOP_K * 4 > len(raw):
                    break  # the file is still being written
                at += 2
                tokens.append(raw[at : at + 2 * n].view(np.uint16))
                at += 2 * n
                learned.append(raw[at : at + n])
                at += n
                block = raw[at : at + k * TOP_K * 4].reshape(k, TOP_K * 4)
                at += k * TOP_K * 4
                ids.append(np.ascontiguousarray(block[:, : 2 * TOP_K]).view(np.uint16))
                logp.append(np.ascontiguousarray(block[:, 2 * TOP_K :]).view(np.float16))
                self.bounds.append(self.bounds[-1] + n)
                self.targets.append(self.targets[-1] + k)
        self.tokens = np.concatenate(tokens).astype(np.int64)
        self.learned = np.concatenate(learned).astype(bool)
        self.ids = np.concatenate(ids).astype(np.int64)
        self.logp = np.concatenate(logp)
        self.paths = list(paths)

    def __len__(self):
        return len(self.bounds) - 1

    def document(self, i):
        """Tokens, flags and targets of document i."""
        a, b = self.bounds[i], self.bounds[i + 1]
        c, d = self.targets[i], self.targets[i + 1]
        return self.tokens[a:b], self.learned[a:b], self.ids[c:d], self.logp[c:d]


def parts(pattern):
    """The corpus files that are complete, in order."""
    return sorted(glob.glob(pattern), key=lambda p: (os.path.getmtime(p), p))


def common_prefix(corpus):
    """The tokens that nearly every conversation starts with (the template's
    system message): they are computed once for a whole batch."""
    chats = [corpus.document(i)[0] for i in range(min(len(corpus), 400))]
    chats = [t for t in chats if t[0] == START]
    n = 0
    while all(len(t) > n and t[n] == chats[0][n] for t in chats):
        n += 1
    return chats[0][:n]


def batches(corpus, prefix, tokens, rng, longest):
    """Yields lists of documents of about the same length, `tokens` padded
    tokens each, in random order; `shared` says that all begin with the prefix,
    which is not counted."""
    p = len(prefix)
    groups = {True: [], False: []}
    for i in range(len(corpus)):
        t = corpus.document(i)[0]
        shared = len(t) > p and bool((t[:p] == prefix).all())
        groups[shared].append((min(len(t) - p * shared, longest) + rng.random() * 8, i))
    out = []
    for shared, docs in groups.items():
        docs.sort()
        batch = []
        for length, i in docs:
            if batch and (len(batch) + 1) * int(length) > tokens:
                out.append((shared, batch))
                batch = []
            batch.append(i)
        if batch:
            out.append((shared, batch))
    rng.shuffle(out)
    return out


def collate(corpus, docs, skip, longest, remap):
    """Arrays of a batch: x [docs, length] token ids, rows the flat positions
    of x that predict a learned token, and for these the token y, the targets
    ids and their probabilities q, all in the numbering of remap."""
    seqs = [corpus.document(i) for i in docs]
    length = min(max(len(s[0]) - skip for s in seqs), longest)
    x = np.zeros((len(docs), length), dtype=np.int64)
    rows, y, ids, logp = [], [], [], []
    for b, (tokens, learned, tid, tlp) in enumerate(seqs):
        t = tokens[skip : skip + length]
        x[b, : len(t)] = remap[t]
        at = np.flatnonzero(learned)
        keep = at < skip + len(t)
        at = at[keep]
        rows.append(at - 1 - skip + b * length)
        y.append(tokens[at])
        ids.append(tid[keep])
        logp.append(tlp[keep])
    q = np.exp(np.concatenate(logp).astype(np.float32))
    return x, np.concatenate(rows), remap[np.concatenate(y)], remap[np.concatenate(ids)], q
