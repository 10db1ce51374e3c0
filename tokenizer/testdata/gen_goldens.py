#!/usr/bin/env python3
"""Records what the Hugging Face tokenizers library makes of the test texts.

  gen_goldens.py models DIR [DATA]  ids of the real models in DIR (their GGUF
                                    files), over the mixed text and, with DATA,
                                    over the files of the shared data folder
  gen_goldens.py speed DIR MODEL    encodes the mixed text over and over and
                                    prints MB/s
  gen_goldens.py fixtures           trains the small tokenizers of fixtures/
                                    and records their ids

Needs the packages tokenizers, gguf and numpy. The mixed text is made by the
same generator as in mixed_test.go.
"""
import hashlib
import json
import os
import sys
import time

import gguf
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

HERE = os.path.dirname(os.path.abspath(__file__))
M64 = (1 << 64) - 1
CHUNKS = 512
CHUNK_BYTES = 4096


# --- the mixed text -------------------------------------------------------

class Rand:
    """splitmix64"""

    def __init__(self, seed):
        self.s = seed & M64

    def next(self):
        self.s = (self.s + 0x9E3779B97F4A7C15) & M64
        z = self.s
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
        return z ^ (z >> 31)

    def n(self, n):
        return self.next() % n


def words():
    out, name = {}, None
    for line in open(os.path.join(HERE, "words.txt"), encoding="utf-8"):
        line = line.rstrip("\n")
        if line.startswith("# ") and line[2:].isalpha():
            name = line[2:]
        else:
            out[name] = line.split(" ")
    return out


SPACES = [" ", "  ", "   ", "\n", "\n\n", "\n\n\n", "\t", "\t\t", "\r\n", "\r", " \n", "\n ", "\u00a0", "\u2003",
          "\u3000", "\u200b", "\u2028", "\u0085", "\u000b", "\u000c", "\u1680", "        ", " \t ", "\ufeff", "\u202f"]


def rune(r):
    while True:
        kind = r.n(4)
        if kind == 0:
            c = r.n(0x110000)
        elif kind == 1:
            c = r.n(0x3000)
        elif kind == 2:
            c = r.n(0x10000)
        else:
            c = 0x1F000 + r.n(0x1000)
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def chunk(w, seed):
    r = Rand(seed)
    out, size = [], 0

    def put(s):
        nonlocal size
        out.append(s)
        size += len(s.encode("utf-8"))

    while size < CHUNK_BYTES:
        kind = r.n(20)
        count = 1 + r.n(12)
        if kind < 6:
            for _ in range(count):
                s = w["english"][r.n(len(w["english"]))]
                case = r.n(10)
                if case == 0:
                    s = s[:1].upper() + s[1:]
                elif case == 1:
                    s = s.upper()
                put(s)
                put(" " if r.n(8) else w["symbols"][r.n(len(w["symbols"]))])
            put(".\n" if r.n(3) == 0 else " ")
        elif kind < 9:
            put(" " * (4 * r.n(4)))
            for _ in range(count):
                put(w["code"][r.n(len(w["code"]))])
                put(" " if r.n(2) else "")
            put("\n")
        elif kind < 15:
            name = ["cjk", "arabic", "scripts", "emoji", "symbols", "numbers"][kind - 9]
            sep = ["", " ", ", "][r.n(3)]
            for _ in range(count):
                put(w[name][r.n(len(w[name]))])
                put(sep)
        elif kind == 15:
            for _ in range(count):
                put(SPACES[r.n(len(SPACES))])
        elif kind == 16:
            for _ in range(count):
                c = r.n(66)
                put(chr(c if c < 32 else 0x7F + c - 32) if c < 65 else "\x00")
        elif kind == 17:
            for _ in range(count):
                put(rune(r))
        elif kind == 18:
            for _ in range(count):
                put("aeiounsAE"[r.n(9)])
                for _ in range(r.n(4)):
                    put(chr(0x300 + r.n(0x50)))
        else:
            for _ in range(4 * count):
                put("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/_-"[r.n(66)])
            put(" ")
    return "".join(out)


def mixed():
    w = words()
    return [chunk(w, i) for i in range(CHUNKS)]


def digest(ids):
    """FNV-1a of the ids, 32 bits each, little-endian, and how many they are."""
    h = 0xCBF29CE484222325
    for i in ids:
        for b in i.to_bytes(4, "little"):
            h = ((h ^ b) * 0x100000001B3) & M64
    return "%d:%016x" % (len(ids), h)


# --- the real models ------------------------------------------------------

FILES = {
    "smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "gemma3": "gemma-3-270m-q4_k_m.gguf",
    "qwen": "qwen-0.5b.gguf",
}
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def real(dir, name):
    """The tokenizer of a real model, put together as its own tokenizer.json has it."""
    r = gguf.GGUFReader(os.path.join(dir, FILES[name]))
    texts = r.fields["tokenizer.ggml.tokens"].contents()
    types = r.fields["tokenizer.ggml.token_type"].contents()
    vocab = {t: i for i, t in enumerate(texts) if types[i] != 5}
    if name == "gemma3":
        # The merges are all splits of all tokens, by falling score, as the converter from SentencePiece makes them.
        scores = r.fields["tokenizer.ggml.scores"].contents()
        merges = []
        for i, t in enumerate(texts):
            for k in range(1, len(t)):
                if t[:k] in vocab and t[k:] in vocab:
                    merges.append((-scores[i], -k, k - len(t), t[:k], t[k:]))
        merges.sort(key=lambda m: m[:3])
        tok = Tokenizer(models.BPE(vocab=vocab, merges=[m[3:] for m in merges], unk_token="<unk>", fuse_unk=True,
                                   byte_fallback=True))
        tok.normalizer = normalizers.Replace(" ", "▁")
        tok.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
        tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    else:
        merges = [tuple(m.split(" ")) for m in r.fields["tokenizer.ggml.merges"].contents()]
        tok = Tokenizer(models.BPE(vocab=vocab, merges=merges))
        if name == "smollm2":
            tok.pre_tokenizer = pre_tokenizers.Sequence(
                [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
        else:
            tok.normalizer = normalizers.NFC()
            tok.pre_tokenizer = pre_tokenizers.Sequence(
                [pre_tokenizers.Split(Regex(QWEN), "isolated"),
                 pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens([AddedToken(t, normalized=False, special=True) for i, t in enumerate(texts) if types[i] == 3])
    tok.add_tokens([AddedToken(t, normalized=False) for i, t in enumerate(texts) if types[i] == 4])
    return tok


DATA_FILES = ["wikitext2_test.txt", "tinyshakespeare.txt", "spec_bench.jsonl", "vicuna80.jsonl"]


def pieces(text):
    """Cuts a text into parts of 16384 characters."""
    return [text[i:i + 16384] for i in range(0, len(text), 16384)]


def record_models(dir, data):
    texts = mixed()
    for name in FILES:
        tok = real(dir, name)
        out = {"chunks": [], "text": hashlib.sha256("".join(texts).encode()).hexdigest()}
        for t in texts:
            ids = tok.encode(t, add_special_tokens=False).ids
            out["chunks"].append(digest(ids))
        out["whole"] = digest(tok.encode("".join(texts), add_special_tokens=False).ids)
        if data:
            out["data"] = {}
            for f in DATA_FILES:
                with open(os.path.join(data, f), encoding="utf-8", newline="") as fh:
                    text = fh.read()
                out["data"][f] = [digest(tok.encode(p, add_special_tokens=False).ids) for p in pieces(text)]
        with open(os.path.join(HERE, name + ".json"), "w") as fh:
            json.dump(out, fh, separators=(",", ":"))
            fh.write("\n")
        print(name, "done")


def speed(dir, name):
    tok = real(dir, name)
    texts = mixed()
    size = sum(len(t.encode()) for t in texts)
    for _ in range(3):
        start = time.perf_counter()
        for t in texts:
            tok.encode(t, add_special_tokens=False)
        each = time.perf_counter() - start
        start = time.perf_counter()
        tok.encode_batch_fast(texts, add_special_tokens=False)
        batch = time.perf_counter() - start
        print("%s: %.2f MB/s by chunk, %.2f MB/s as a batch" % (name, size / each / 1e6, size / batch / 1e6), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "models":
        record_models(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
    elif what == "speed":
        speed(sys.argv[2], sys.argv[3])
    else:
        sys.exit(__doc__)
