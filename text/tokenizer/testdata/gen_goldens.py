#!/usr/bin/env python3
"""Records what the Hugging Face tokenizers library makes of the test texts.

  gen_goldens.py models DIR [DATA]  ids of the real models in DIR (their GGUF
                                    files), over the mixed text and, with DATA,
                                    over the texts of DATA
  gen_goldens.py speed DIR MODEL    encodes the mixed text over and over and
                                    prints MB/s
  gen_goldens.py spm DATA           what SentencePiece itself makes of the mixed
                                    text with the vocabularies of DATA/tokenizers
                                    and with two small models that it trains
  gen_goldens.py fixtures           trains the small tokenizers of fixtures/
                                    and records their ids

DATA has what internal/testdata/data has, unpacked by bunzip2. Needs the packages
tokenizers, gguf, sentencepiece and numpy. The mixed text is made by the same
generator as in mixed_test.go.
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


# --- small tokenizers with every part ---------------------------------------

LLAMA3 = QWEN.replace(r"\p{N}|", r"\p{N}{1,3}|", 1)
UP, LO = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TEKKEN = (r"[^\r\n\p{L}\p{N}]?" + UP + "*" + LO + r"+|[^\r\n\p{L}\p{N}]?" + UP + "+" + LO +
          r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
EN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (r"[^\r\n\p{L}\p{N}]?" + UP + "*" + LO + "+" + EN + r"|[^\r\n\p{L}\p{N}]?" + UP + "+" + LO + "*" + EN +
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = ["\\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
            "| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"]
ODD = r"[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n/]?|\s{4}(?!\S)|\s+$|\s"
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def byte_level(*stages):
    return pre_tokenizers.Sequence([*stages, BYTES])


def split(re):
    return pre_tokenizers.Split(Regex(re), "isolated")


def train(tok, trainer, names=None):
    w = words()
    if names:
        tok.train_from_iterator([" ".join(w[n]) for n in names] * 3, trainer)
        return tok
    lines = [" ".join(ws) for ws in w.values()] * 3 + [chunk(w, 1000 + i)[:1500] for i in range(40)]
    tok.train_from_iterator(lines, trainer)
    return tok


def bpe(pre, norm=None, size=900, special=("<s>", "</s>", "<|end|>"), alphabet=True, trainer={}, **kw):
    tok = Tokenizer(models.BPE(**kw))
    if norm:
        tok.normalizer = norm
    if pre:
        tok.pre_tokenizer = pre
    if alphabet:
        trainer = dict(trainer, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    train(tok, trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), show_progress=False, **trainer))
    if alphabet:
        tok.decoder = decoders.ByteLevel()
    return tok


def template(tok, single):
    names = [p.split(":")[0] for p in single.split() if not p.startswith("$")]
    tok.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=[(n, tok.token_to_id(n)) for n in names])
    return tok


def with_config(tok, change):
    """Changes the JSON of a tokenizer where the library has no setter."""
    j = json.loads(tok.to_str())
    change(j)
    return Tokenizer.from_str(json.dumps(j))


def charsmap():
    """A small precompiled charsmap, made by SentencePiece from a rule file."""
    import base64
    import tempfile

    import sentencepiece as spm
    from sentencepiece import sentencepiece_model_pb2 as pb
    rules = {"\uff21": "A", "\uff22": "B", "\uff11": "1", "\u3000": " ", "\t": " ", "\n": " ", "\r": " ", "\u00a0": " ",
             "\u2026": "...", "\u00bd": "1/2", "\ufb01": "fi", "e\u0301": "\u00e9", "a\u0308": "\u00e4", "\u200b": "",
             "\u0131": "i", "\u33a1": "m2", "\r\n": " "}
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/rules.tsv", "w") as fh:
            for k, v in rules.items():
                fh.write("%s\t%s\n" % (" ".join("%X" % ord(c) for c in k), " ".join("%X" % ord(c) for c in v)))
        with open(d + "/text", "w") as fh:
            fh.write("\n".join(words()["english"] * 3))
        spm.SentencePieceTrainer.train(input=d + "/text", model_prefix=d + "/m", vocab_size=300, minloglevel=2,
                                       normalization_rule_tsv=d + "/rules.tsv", hard_vocab_limit=False)
        m = pb.ModelProto()
        m.ParseFromString(open(d + "/m.model", "rb").read())
    return base64.b64encode(m.normalizer_spec.precompiled_charsmap).decode()


def unigram(norm, pre, size=700, special=("<unk>", "<s>", "</s>"), **kw):
    tok = Tokenizer(models.Unigram())
    if norm:
        tok.normalizer = norm
    tok.pre_tokenizer = pre
    extra = ["<0x%02X>" % b for b in range(256)] if kw.get("byte_fallback") else []
    train(tok, trainers.UnigramTrainer(vocab_size=size, special_tokens=list(special) + extra, unk_token="<unk>",
                                       show_progress=False), ["english", "code", "numbers", "arabic"])
    if extra:
        def change(j):
            j["model"]["byte_fallback"] = True
            j["added_tokens"] = [a for a in j["added_tokens"] if a["content"] not in extra]
        tok = with_config(tok, change)
    return tok


def wordpiece(norm, size=900):
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=40))
    tok.normalizer, tok.pre_tokenizer = norm, pre_tokenizers.BertPreTokenizer()
    train(tok, trainers.WordPieceTrainer(vocab_size=size, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
                                         show_progress=False))
    tok.decoder = decoders.WordPiece()
    return tok


def fixtures():
    out = {}
    out["gpt2-prefix"] = bpe(pre_tokenizers.ByteLevel(add_prefix_space=True))
    t = bpe(byte_level(split(LLAMA3)), size=1100, ignore_merges=True)
    out["llama3"] = template(t, "<s> $A")
    out["o200k"] = bpe(byte_level(split(O200K)))
    out["tekken"] = bpe(byte_level(split(TEKKEN)), ignore_merges=True)
    out["deepseek3"] = bpe(byte_level(*map(split, DEEPSEEK)))
    out["falcon"] = bpe(pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(individual_digits=False), split("[0-9][0-9][0-9]")]))
    out["odd-regex"] = bpe(byte_level(split(ODD)))
    t = bpe(pre_tokenizers.ByteLevel(add_prefix_space=True), normalizers.NFC())
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True), AddedToken("<rs>", rstrip=True)])
    t.add_tokens([AddedToken("whole", single_word=True), AddedToken("Ünïcode", normalized=True), "   ", "\n\n\n"])
    out["roberta"] = t
    out["clip"] = bpe(pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation()]),
                      normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]), alphabet=False,
                      trainer={"end_of_word_suffix": "</w>", "limit_alphabet": 120}, end_of_word_suffix="</w>",
                      unk_token="<s>")
    out["clip"].decoder = decoders.BPEDecoder("</w>")
    out["subword"] = bpe(pre_tokenizers.WhitespaceSplit(), alphabet=False, size=1100,
                         trainer={"continuing_subword_prefix": "@@", "limit_alphabet": 150},
                         continuing_subword_prefix="@@", unk_token="<s>", fuse_unk=True)
    byte_tokens = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)]

    def fallback(j):
        j["model"].update(byte_fallback=True, fuse_unk=True, unk_token="<unk>")
        j["added_tokens"] = j["added_tokens"][:3]
    legacy = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t = with_config(bpe(pre_tokenizers.Metaspace(prepend_scheme="never"), legacy, alphabet=False, special=byte_tokens,
                        trainer={"limit_alphabet": 200}), fallback)
    t.pre_tokenizer = pre_tokenizers.Sequence([])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    out["llama2"] = template(t, "<s> $A </s>")
    t = Tokenizer.from_str(t.to_str())
    t.normalizer = normalizers.Sequence([])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    out["llama2-first"] = t
    t = unigram(None, pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]))

    def precompiled(j):
        j["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": charsmap()}
    t = with_config(t, precompiled)
    t.decoder = decoders.Metaspace()
    out["t5"] = template(t, "$A </s>")
    t = unigram(normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "),
                                      normalizers.Strip()]),
                pre_tokenizers.Metaspace(prepend_scheme="always"), byte_fallback=True)
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="always")])
    out["xlmr-bytes"] = t
    t = wordpiece(normalizers.BertNormalizer())
    t.post_processor = processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))
    out["bert"] = t
    t = wordpiece(normalizers.BertNormalizer(lowercase=False, strip_accents=False, handle_chinese_chars=False))
    out["bert-cased"] = template(t, "[CLS] $A [SEP]")
    t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(),
                                         normalizers.Replace(Regex("[0-9]+"), "0"), normalizers.Strip(left=True, right=False)])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"[\r\n]+"), "removed"), pre_tokenizers.Split(",", "merged_with_previous"),
        pre_tokenizers.Split(Regex("[(]"), "merged_with_next"), pre_tokenizers.Split(Regex("[.!?]"), "contiguous"),
        pre_tokenizers.Split(Regex(r"\S+"), "removed", invert=True), pre_tokenizers.CharDelimiterSplit("-"),
        pre_tokenizers.Digits(individual_digits=True)])
    train(t, trainers.WordLevelTrainer(vocab_size=1500, special_tokens=["[UNK]", "[PAD]"], show_progress=False))
    out["words"] = t
    return out


def fixture_texts():
    w = words()
    texts = ["", " ", "  ", "\n", "a", " a", "Hello, world!", "  Hello   world  ", "<s>", "</s>", "a<s>b", "<s> x </s>y <s>",
             "[CLS] hello [SEP] [MASK] x", "hello <mask> world", "hello   <mask>  .", "x <rs>   y", "whole wholesome whole, a whole",
             "\u00dcn\u00efcode U\u0308ni\u0308code", "a   b      c", "x\n\n\ny\n\n\n\nz", "I'm you'LL we'\u017f 'tis 's",
             "1 22 333 4444 55555 \u00bd\u00bd \u0663\u0664", "foo(bar), baz... what?! no-one", "\ufb01ne e\u0301a\u0308 \uff21\uff22\u2026",
             "\u200b\u3000\t\r\n x", "▁a ▁ b▁", "\u4f60\u597d\u4e16\u754c", "don't do not can ' t", "z" * 50, "A" * 300, "\u0301" * 5,
             "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u00f5\u00f7", "0\u0301\u0327\u0301", "\U00010ffff\ud7ff\ue000"]
    texts += [" ".join(ws)[:600] for ws in w.values()]
    return texts + [chunk(w, 2000 + i) for i in range(24)]


def record_fixtures():
    texts = fixture_texts()
    dir = os.path.join(HERE, "fixtures")
    os.makedirs(dir, exist_ok=True)
    for name, tok in fixtures().items():
        with open(os.path.join(dir, name + ".json"), "w") as fh:
            fh.write(tok.to_str() + "\n")
        rows = []
        for t in texts:
            ids = tok.encode(t, add_special_tokens=False).ids
            rows.append([digest(ids), digest(tok.encode(t, add_special_tokens=True).ids),
                         hashlib.sha256(tok.decode(ids).encode()).hexdigest()[:16]])
        with open(os.path.join(dir, name + ".golden"), "w") as fh:
            for r in rows:
                fh.write(" ".join(r) + "\n")
        print(name, tok.get_vocab_size())
    with open(os.path.join(dir, "texts.txt"), "w") as fh:
        json.dump(texts[:-24], fh)
        fh.write("\n")


# --- SentencePiece ----------------------------------------------------------

SPM_VOCABS = ["llama-spm", "baichuan"]
SPM_CHUNKS = 96


def spm_processor(tokens, scores, types, kind, charsmap=b"", trim=False):
    import sentencepiece as spm
    from sentencepiece import sentencepiece_model_pb2 as pb
    m = pb.ModelProto()
    for t, s, k in zip(tokens, scores, types):
        p = m.pieces.add()
        p.piece, p.score, p.type = t, s, k
    m.trainer_spec.model_type = kind
    m.trainer_spec.unk_id = types.index(2)
    m.trainer_spec.byte_fallback = 6 in types
    m.trainer_spec.unk_piece = tokens[types.index(2)]
    m.normalizer_spec.name = "rules"
    m.normalizer_spec.precompiled_charsmap = charsmap
    m.normalizer_spec.add_dummy_prefix = True
    m.normalizer_spec.remove_extra_whitespaces = trim
    m.normalizer_spec.escape_whitespaces = True
    p = spm.SentencePieceProcessor()
    p.LoadFromSerializedProto(m.SerializeToString())
    return p


def record_spm(data):
    import base64
    import tempfile

    import sentencepiece as spm
    from sentencepiece import sentencepiece_model_pb2 as pb
    w = words()
    texts = [chunk(w, i) for i in range(SPM_CHUNKS)]
    out = {}
    for name in SPM_VOCABS:
        f = gguf.GGUFReader(os.path.join(data, "tokenizers", name + ".gguf")).fields
        tokens, scores, types = (f["tokenizer.ggml." + k].contents() for k in ("tokens", "scores", "token_type"))
        p = spm_processor(tokens, scores, types, 2)
        out[name] = [digest(p.Encode(t)) for t in texts]
    small = {}
    for name, kind in ("unigram", 1), ("bpe", 2):
        with tempfile.TemporaryDirectory() as d:
            with open(d + "/text", "w") as fh:
                for n in "english", "code", "scripts", "numbers":
                    fh.write((" ".join(w[n]) + "\n") * 3)
            spm.SentencePieceTrainer.train(input=d + "/text", model_prefix=d + "/m", vocab_size=480, minloglevel=2,
                                           model_type=name)
            m = pb.ModelProto()
            m.ParseFromString(open(d + "/m.model", "rb").read())
        cm = base64.b64decode(charsmap()) if name == "unigram" else b""
        tokens, scores = [p.piece for p in m.pieces], [p.score for p in m.pieces]
        types = [p.type for p in m.pieces]
        trim = name == "unigram"
        p = spm_processor(tokens, scores, types, kind, cm, trim)
        small[name] = {"tokens": tokens, "scores": scores, "types": types, "charsmap": base64.b64encode(cm).decode(),
                       "trim": trim, "ids": [digest(p.Encode(t)) for t in fixture_texts()]}
    with open(os.path.join(HERE, "spm.json"), "w") as fh:
        json.dump({"chunks": out, "small": small}, fh, separators=(",", ":"))
        fh.write("\n")


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "models":
        record_models(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
    elif what == "speed":
        speed(sys.argv[2], sys.argv[3])
    elif what == "spm":
        record_spm(sys.argv[2])
    elif what == "fixtures":
        record_fixtures()
    else:
        sys.exit(__doc__)
