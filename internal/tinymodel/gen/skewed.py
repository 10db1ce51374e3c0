"""Trains a tiny mixture of experts on texts of four kinds, so that its router has preferences: model/testdata/skewed.

    python skewed.py --texts DIR [--steps N]

DIR has wikitext2_valid.txt, wikitext2_test.txt, HumanEval.jsonl.gz, gsm8k_test.jsonl and tinyshakespeare.txt. Random routers choose all experts
alike, and nothing about loads, caches or placement of experts can be seen with them. The folder has config.json, model.safetensors (bfloat16) and
tokenizer files as the other cases do, and

    golden.json   of each kind of text 200 held-out ids, the loss of transformers on them (nats a token), and how often it chooses each expert of each layer

Trained on one processor core in a few minutes, without a loss that balances the load.
"""
import argparse
import gzip
import json
import os
import pathlib
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file, save_file

from vocab import write_tokenizer

OUT = pathlib.Path(__file__).resolve().parents[3] / "model" / "testdata" / "skewed"
CONFIG = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2,
          "vocab_size": 128, "hidden_size": 64, "intermediate_size": 64, "moe_intermediate_size": 32, "num_experts": 8, "num_experts_per_tok": 2,
          "norm_topk_prob": True, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
          "max_position_embeddings": 256, "tie_word_embeddings": True, "rope_theta": 10000.0, "rms_norm_eps": 1e-6}
ROWS, BATCH, HELD = 128, 24, 200


def texts(folder):
    """Returns the texts of each kind, and held-out ones."""
    plain = lambda s: "".join(c for c in s if c == "\n" or " " <= c <= "~")
    code = [json.loads(line) for line in gzip.open(folder / "HumanEval.jsonl.gz", "rt")]
    code = "\n".join(c["prompt"] + c["canonical_solution"] for c in code)
    sums = "\n".join(json.loads(line)["answer"] for line in open(folder / "gsm8k_test.jsonl"))
    plays = (folder / "tinyshakespeare.txt").read_text()
    prose, held = (folder / "wikitext2_valid.txt").read_text(), (folder / "wikitext2_test.txt").read_text()
    cut = lambda s: (plain(s[:-20000]), plain(s[-20000:]))
    return {"prose": (plain(prose), plain(held)[2000:22000]), "code": cut(code), "sums": cut(sums), "plays": cut(plays)}


def chosen(model, ids):
    """Returns the loss on ids and how often each expert of each layer is chosen."""
    with torch.inference_mode():
        out = model(input_ids=torch.tensor([ids]), labels=torch.tensor([ids]), output_router_logits=True)
        k, n = CONFIG["num_experts_per_tok"], CONFIG["num_experts"]
        counts = [torch.bincount(r.softmax(-1).topk(k, -1).indices.flatten(), minlength=n).tolist() for r in out.router_logits]
        return float(F.cross_entropy(out.logits[0, :-1], torch.tensor(ids[1:]))), counts


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--texts", required=True, type=pathlib.Path)
    ap.add_argument("--steps", type=int, default=2500)
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    OUT.mkdir(parents=True, exist_ok=True)
    write_tokenizer(OUT, CONFIG["vocab_size"])
    (OUT / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")
    tok = transformers.PreTrainedTokenizerFast.from_pretrained(OUT)
    encode = lambda s: torch.tensor(tok(s, add_special_tokens=False)["input_ids"])
    data = {kind: (encode(train), encode(held)) for kind, (train, held) in texts(args.texts).items()}
    config = transformers.AutoConfig.from_pretrained(OUT)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa", dtype=torch.float32)
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.95), weight_decay=0.05)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: min(1, i / 100) * max(0.02, 1 - i / args.steps))
    gen, kinds, start = torch.Generator().manual_seed(2), list(data), time.time()
    for step in range(args.steps):
        rows = []
        for i in range(BATCH):
            train = data[kinds[i % len(kinds)]][0]
            at = int(torch.randint(len(train) - ROWS - 1, (1,), generator=gen))
            rows.append(train[at:at + ROWS + 1])
        batch = torch.stack(rows)
        loss = F.cross_entropy(model(input_ids=batch[:, :-1]).logits.flatten(0, 1), batch[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        if step % 100 == 0:
            print(f"{step:5} loss {loss.item():.3f}  {time.time() - start:.0f} s", flush=True)
    model.to(torch.bfloat16).save_pretrained(OUT / "saved")
    save_file({k: v.contiguous() for k, v in load_file(OUT / "saved" / "model.safetensors").items()}, OUT / "model.safetensors", metadata={"format": "pt"})
    for file in (OUT / "saved").iterdir():
        file.unlink()
    (OUT / "saved").rmdir()
    model = transformers.AutoModelForCausalLM.from_pretrained(OUT, attn_implementation="eager", dtype=torch.float32).eval()
    golden = {}
    for kind, (_, held) in data.items():
        ids = held[:HELD].tolist()
        loss, counts = chosen(model, ids)
        golden[kind] = {"ids": ids, "loss": round(loss, 5), "chosen": counts}
        print(kind, f"{loss:.3f}", counts)
    (OUT / "golden.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
