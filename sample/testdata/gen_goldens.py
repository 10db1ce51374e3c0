"""Records what transformers' logits processors leave of random logits:
goldens.json. Each case lists parameters, a history, logits, and for every
token that is left its probability; the order of the processors is the
sampler's: penalty, top-k, typical, top-p, min-p, temperature.

Cases in which a filter's decision hangs on rounding are left out.
"""
import json
import os

import torch
from transformers.generation.logits_process import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

torch.manual_seed(7)
CASES = [
    dict(TopK=5),
    dict(TopP=0.9),
    dict(TopP=0.3),
    dict(MinP=0.1),
    dict(TypicalP=0.5),
    dict(TypicalP=0.9),
    dict(RepetitionPenalty=1.3),
    dict(RepetitionPenalty=0.7),
    dict(TopK=20, TopP=0.8),
    dict(TopK=40, TopP=0.95, MinP=0.05),
    dict(TopK=30, TypicalP=0.7, TopP=0.9, MinP=0.02),
    dict(RepetitionPenalty=1.1, TopK=40, TopP=0.9),
    dict(),
]
TEMPERATURES = [0.5, 1.0, 1.5]


def run(p, temperature, history, logits):
    ps = LogitsProcessorList()
    if "RepetitionPenalty" in p:
        ps.append(RepetitionPenaltyLogitsProcessor(p["RepetitionPenalty"]))
    if "TopK" in p:
        ps.append(TopKLogitsWarper(p["TopK"]))
    if "TypicalP" in p:
        ps.append(TypicalLogitsWarper(p["TypicalP"]))
    if "TopP" in p:
        ps.append(TopPLogitsWarper(p["TopP"]))
    if "MinP" in p:
        ps.append(MinPLogitsWarper(p["MinP"]))
    ps.append(TemperatureLogitsWarper(temperature))
    probs = ps(history[None], logits[None].clone())[0].double().softmax(-1)
    return {int(i): float(f"{probs[i]:.7g}") for i in probs.nonzero()[:, 0]}


out = []
for p in CASES:
    for temperature in TEMPERATURES:
        vocab = 64
        logits = (torch.randn(vocab) * 2.5).half().float()
        history = torch.randint(0, vocab, (12,))
        want = run(p, temperature, history, logits)
        nudged = [
            run({k: (v if k == "TopK" else v * f) for k, v in p.items()}, temperature, history, logits)
            for f in (0.9999, 1.0001)
        ]
        if any(set(n) != set(want) for n in nudged):
            continue
        out.append(
            dict(
                params=dict(p, Temperature=temperature, PenaltyLastN=-1),
                history=history.tolist(),
                logits=logits.tolist(),
                probs={str(k): v for k, v in want.items()},
            )
        )
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "goldens.json")
with open(path, "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in out) + "\n]\n")
print(len(out), "cases")
