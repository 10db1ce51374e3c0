"""The baseline: an interpolated Kneser-Ney model of the same text.

Prints what the compare command prints of the student: perplexity of held-out
sampled answers and agreement with held-out greedy ones.
"""

import argparse
import heapq
import math
from collections import Counter, defaultdict

import data


def sequences(corpus):
    """Each document's tokens and, for each, whether it is an answer's."""
    for i in range(len(corpus)):
        tokens, learned, _, _ = corpus.document(i)
        yield tokens.tolist(), learned.tolist()


class KneserNey:
    """Orders 1..order over the vocabulary; the lowest falls back to uniform.

    Below the highest order a token counts once for each different token that
    comes before it (Kneser and Ney 1995); the discounts are n1 / (n1 + 2 n2).
    """

    def __init__(self, corpus, order, vocab):
        self.order, self.vocab, self.likely = order, vocab, {}
        grams = [set() for _ in range(order)]
        top = Counter()
        for tokens, _ in sequences(corpus):
            for i in range(len(tokens)):
                for n in range(1, order + 1):
                    if i - n + 1 < 0:
                        break
                    gram = tuple(tokens[i - n + 1 : i + 1])
                    if n == order:
                        top[gram] += 1
                    else:
                        grams[n].add(tuple(tokens[max(0, i - n) : i + 1]))
        self.levels = []
        for n in range(1, order + 1):
            counts = top if n == order else Counter(g[1:] if len(g) > n else g for g in grams[n])
            once = sum(1 for c in counts.values() if c == 1)
            twice = sum(1 for c in counts.values() if c == 2)
            context = defaultdict(lambda: [0, 0])
            following = defaultdict(dict)
            for g, c in counts.items():
                at = context[g[:-1]]
                at[0] += c
                at[1] += 1
                following[g[:-1]][g[-1]] = c
            discount = once / (once + 2 * twice) if once else 0.5
            self.levels.append((discount, dict(context), dict(following)))

    def probability(self, history, token):
        p = 1 / self.vocab
        for n in range(1, self.order + 1):
            if len(history) < n - 1:
                break
            discount, context, following = self.levels[n - 1]
            key = tuple(history[len(history) - n + 1 :])
            if key not in context:
                break
            total, kinds = context[key]
            count = following[key].get(token, 0)
            p = max(count - discount, 0) / total + discount * kinds / total * p
        return p

    def best(self, history):
        """The most probable token: the best of those seen after the longest
        known context and the contexts that it ends in."""
        candidates = set()
        for n in range(self.order, 0, -1):
            if len(history) < n - 1:
                continue
            key = tuple(history[len(history) - n + 1 :])
            if key not in self.likely:
                following = self.levels[n - 1][2].get(key, {})
                self.likely[key] = heapq.nlargest(20, following, key=following.get)
            candidates.update(self.likely[key])
        return max(candidates, key=lambda t: self.probability(history, t))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--corpus", required=True, help="pattern of the corpus files")
    p.add_argument("--sampled", required=True)
    p.add_argument("--greedy", required=True)
    p.add_argument("--order", type=int, default=4)
    p.add_argument("--vocab", type=int, default=49152)
    a = p.parse_args()
    model = KneserNey(data.Corpus(data.parts(a.corpus)), a.order, a.vocab)
    nll, n = 0.0, 0
    for tokens, learned in sequences(data.Corpus([a.sampled])):
        for i, is_answer in enumerate(learned):
            if is_answer:
                nll -= math.log(model.probability(tokens[max(0, i - a.order + 1) : i], tokens[i]))
                n += 1
    print(f"{a.order}-gram: perplexity {math.exp(nll / n):.3f} of {n} held-out tokens")
    same, n = 0, 0
    for tokens, learned in sequences(data.Corpus([a.greedy])):
        for i, is_answer in enumerate(learned):
            if is_answer:
                same += model.best(tokens[max(0, i - a.order + 1) : i]) == tokens[i]
                n += 1
    print(f"{a.order}-gram: greedy agreement {100 * same / n:.1f}% of {n} tokens")


if __name__ == "__main__":
    main()
