"""Records what Hugging Face transformers makes of 1,000 texts with the real all-MiniLM-L6-v2, for TestMiniLM.

    python minilm.py FOLDER

FOLDER has the model as sentence-transformers publishes it. ../../../testdata/minilm.json gets texts that no file of the tests has, the
number of tokens of each text, PARTS of the 384 numbers of each embedding (as multiples of 1/32767; number k of text i is that at
(7·i + 24·k) mod 384), and for the first QUERIES texts the NEAREST other texts, the nearest first.
"""
import base64
import bz2
import json
import pathlib
import sys

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = ROOT / "internal/testdata/data"
COUNT, PARTS, QUERIES, NEAREST, LENGTH = 1000, 16, 50, 10, 160
EXTRA = ["Café crème brûlée à la carte", "naïve façade", "ÀÉÎÕÜ ñandú", "北京 is 中国's capital 東京", "こんにちは世界", "Привет, мир! Ёлка", "مرحبا بالعالم",
         "a\u0301 combining", "\u00a0nbsp\u200b zero", "x" * 150, "don't can't I'll", "C++ vs. C#; 3.14e-10!", "@user #tag http://a.b/c?d=e",
         "\ttabs\nand\r\nlines", "😀 smile 👍🏽", "[SEP] literal [CLS] [MASK]", "İstanbul ŞĞÜ", "ß straße ﬁ ligature", "한국어 문장입니다", "a", "。", "…", "½ ¾ ²",
         "$100 €50 £20", "under_score", "ALL CAPS TEXT", "word " * 700, "A text that is longer than the context is cut. " * 60]


def packed(name):
    return bz2.decompress((DATA / (name + ".bz2")).read_bytes()).decode()


def texts():
    """Returns the texts: TestMiniLM makes the same."""
    out = list(EXTRA)
    for line in packed("spec_bench.jsonl").splitlines():
        out.append(json.loads(line)["turns"][0].encode()[:LENGTH].decode(errors="ignore"))
    for name, border in (("wikitext2_test.txt", "\n"), ("tinyshakespeare.txt", "\n\n")):
        parts = [p.encode()[:LENGTH].decode(errors="ignore") for p in packed(name).split(border) if len(p) > 40]
        out += parts[:(COUNT - len(out) + 1) // 2 if border == "\n" else COUNT - len(out)]
    assert len(out) == COUNT, len(out)
    return out


def main():
    torch.set_num_threads(2)
    tok = AutoTokenizer.from_pretrained(sys.argv[1])
    model = AutoModel.from_pretrained(sys.argv[1], attn_implementation="eager", dtype=torch.float32).eval()
    ids = [tok(t, truncation=True, max_length=512)["input_ids"] for t in texts()]
    counts = [len(i) for i in ids]
    e = np.zeros((COUNT, 384), np.float32)
    with torch.inference_mode():
        for n in sorted(set(counts)):     # texts of one length together: nothing is padded
            which = [i for i in range(COUNT) if counts[i] == n]
            x = model(input_ids=torch.tensor([ids[i] for i in which])).last_hidden_state.mean(1)
            e[which] = (x / x.norm(dim=1, keepdim=True)).numpy()
    kept = np.array([[e[i, (7 * i + 24 * k) % 384] for k in range(PARTS)] for i in range(COUNT)])
    near = e[:QUERIES].astype(np.float64) @ e.astype(np.float64).T
    near[np.arange(QUERIES), np.arange(QUERIES)] = -2
    order = np.argsort(-near, axis=1, kind="stable")[:, :NEAREST]
    lead = np.sort(-near, axis=1)[:, :NEAREST + 1]
    print("least lead of neighbours", np.diff(lead, axis=1).min())
    golden = {"extra": EXTRA, "tokens": counts, "parts": base64.b64encode(np.rint(kept * 32767).astype("<i2").tobytes()).decode(), "nearest": order.tolist()}
    (ROOT / "testdata/minilm.json").write_text(json.dumps(golden, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
