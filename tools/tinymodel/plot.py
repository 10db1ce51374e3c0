"""Draws the loss curve of a training log as a PNG."""

import argparse

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--log", required=True, help="log.tsv of the training folder")
    p.add_argument("--out", required=True)
    a = p.parse_args()
    train, held = [], []
    with open(a.log) as f:
        for line in f:
            v = line.rstrip("\n").split("\t")
            if v[4] == "held":
                held.append((int(v[1]) / 1e6, float(v[5]), float(v[7])))
            else:
                train.append((int(v[1]) / 1e6, float(v[5])))
    fig, left = plt.subplots(figsize=(7, 4), dpi=110)
    left.plot(*zip(*train), lw=1, color="0.6", label="training")
    left.plot(*zip(*[h[:2] for h in held]), "o-", ms=3, color="tab:blue", label="held-out prompts")
    left.set_xlabel("answer tokens seen, millions")
    left.set_ylabel("KL divergence from the teacher, nats per token")
    left.set_ylim(0.5, 4)
    left.grid(alpha=0.3)
    right = left.twinx()
    right.plot(
        [h[0] for h in held], [100 * h[2] for h in held], "s--", ms=3, color="tab:orange", label="same first choice, %"
    )
    right.set_ylabel("same first choice, held-out, %")
    lines = left.get_lines() + right.get_lines()
    left.legend(lines, [line.get_label() for line in lines], loc="center right")
    fig.tight_layout()
    fig.savefig(a.out, metadata={"Software": None})


if __name__ == "__main__":
    main()
