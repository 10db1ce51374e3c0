#!/usr/bin/env python3
"""Records what the authors' tokenizer of RWKV (TRIE_TOKENIZER of the package rwkv 0.8.32) makes of texts.

    python gen_world.py DIR      DIR is the package's folder, with rwkv_vocab_v20230424.txt

world.json has a part of their vocabulary, each 29th token beside all single bytes, as GGUF files spell it, and texts with
their ids. Token 0 is the mark <s>.
"""
import ast
import base64
import json
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
from rwkv_tokenizer import TRIE_TOKENIZER

HERE = pathlib.Path(__file__).resolve().parent
EVERY, TEXTS = 29, 60


def vocabulary():
    for line in open(f"{sys.argv[1]}/rwkv_vocab_v20230424.txt", encoding="utf-8"):
        token = ast.literal_eval(line[line.index(" "):line.rindex(" ")].strip())
        yield token.encode("utf-8") if isinstance(token, str) else token


tokens = [t for i, t in enumerate(vocabulary()) if len(t) == 1 or i % EVERY == 0]
with tempfile.NamedTemporaryFile("w", encoding="utf-8") as f:
    for i, t in enumerate(tokens, 1):
        f.write(f"{i} {t!r} {len(t)}\n")
    f.flush()
    original = TRIE_TOKENIZER(f.name)
rng = random.Random(7)
words = (HERE / "words.txt").read_text(encoding="utf-8").split()
texts = [b"", b"\x00\xff\xfe'\"\\", "naïve 北京 🙂\n\n\tx = [1, 2];\r\n".encode(), b" " * 40]
for i in range(TEXTS):
    if i % 3 == 0:      # tokens beside each other, which others may cut elsewhere
        texts.append(b"".join(rng.choice(tokens) for _ in range(20)))
    elif i % 3 == 1:
        texts.append(" ".join(rng.choice(words) for _ in range(20)).encode())
    else:
        texts.append(bytes(rng.randrange(256) for _ in range(30)))
out = {"tokens": ["<s>"] + [repr(t)[2:-1] for t in tokens],
       "texts": [{"text": base64.b64encode(t).decode(), "ids": original.encodeBytes(t)} for t in texts]}
(HERE / "world.json").write_text(json.dumps(out) + "\n")
print(len(tokens), "tokens,", sum(len(t["ids"]) for t in out["texts"]), "ids")
