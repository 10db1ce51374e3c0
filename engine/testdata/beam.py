"""Beam searches of Hugging Face transformers on the tiny models, for beam_test.go.

Run from this folder: python beam.py > beam.json
"""

import json
import random
import sys

import torch
from transformers import AutoModelForCausalLM

MODELS = "../../internal/tinymodel/testdata/"
CASES = 24


def case(model, name, rng):
    width = rng.choice([2, 3, 4, 8])
    prompt = [rng.randrange(3, 128) for _ in range(rng.randrange(1, 20))]
    new = rng.randrange(2, 24)
    stops = sorted(rng.sample(range(3, 128), rng.choice([1, 2, 12])))
    penalty = rng.choice([0.0, 0.5, 1.0, 2.0])
    early = rng.random() < 0.3
    least = rng.choice([0, 0, 3])
    out = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        num_beams=width,
        num_return_sequences=width,
        do_sample=False,
        max_new_tokens=new,
        min_new_tokens=least,
        eos_token_id=stops,
        pad_token_id=0,
        length_penalty=penalty,
        early_stopping=early,
        return_dict_in_generate=True,
        output_scores=True,
    )
    answers = []
    for row, score in zip(out.sequences.tolist(), out.sequences_scores.tolist()):
        tokens = row[len(prompt):]
        stop = next((i for i, t in enumerate(tokens) if t in stops), None)
        end = tokens[stop] if stop is not None else -1
        answers.append({"tokens": tokens[:stop], "stop": end, "score": score})
    return {"model": name, "width": width, "prompt": prompt, "new": new, "min": least, "stops": stops,
            "penalty": penalty, "early": early, "answers": answers}


def main():
    torch.set_num_threads(1)
    rng = random.Random(5)
    cases = []
    for name in ["llama", "gemma3"]:
        model = AutoModelForCausalLM.from_pretrained(MODELS + name, dtype=torch.float32)
        cases += [case(model, name, rng) for _ in range(CASES)]
    print("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]")


if __name__ == "__main__":
    sys.exit(main())
