"""Scores tasks as lm-eval defines them, over HTTP, for TestTasksOverHTTP.

  ridge serve tiny --act int16 --port 8099 &
  python gen_tasks.py http://127.0.0.1:8099 > tasks.json

Written from lm-eval's definitions, with its requests: token ids of /tokenize, a prompt that is
echoed with the log-probabilities of its tokens. White space at the end of a context
belongs to what follows; a continuation's tokens are those of both texts together beyond the
context's own; an empty context is the end token. Nothing of ridge's evaluation is used.
"""
import json
import math
import re
import statistics
import string
import sys
import urllib.request

BASE = sys.argv[1]


def post(path, body):
    r = urllib.request.Request(BASE + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(r))


def tokens(text):
    return post("/tokenize", {"model": "tiny", "prompt": text, "add_special_tokens": False})["tokens"]


def end_token():
    info = json.load(urllib.request.urlopen(BASE + "/tokenizer_info"))
    return post("/tokenize", {"model": "tiny", "prompt": info.get("bos_token") or info["eos_token"], "add_special_tokens": False})["tokens"][0]


def loglikelihood(context, continuation):
    spaces = len(context) - len(context.rstrip())
    if spaces:
        context, continuation = context[:-spaces], context[-spaces:] + continuation
    if context:
        whole, n = tokens(context + continuation), len(tokens(context))
    else:
        whole, n = [end_token()] + tokens(continuation), 1
    c = post("/v1/completions", {"model": "tiny", "prompt": [whole], "temperature": 0, "max_tokens": 1, "logprobs": 1, "echo": True})["choices"][0]["logprobs"]
    own, top = c["token_logprobs"][n:-1], c["top_logprobs"][n:-1]
    return sum(own), all(p == max(t.values()) for p, t in zip(own, top))


def exact(text, answer):
    for pattern in (",", r"\$", "(?s).*#### ", r"\.$"):
        text, answer = re.sub(pattern, "", text), re.sub(pattern, "", answer)
    return float(text.lower() == answer.lower())


def mean(x):
    return {"value": statistics.fmean(x), "std_err": statistics.stdev(x) / math.sqrt(len(x))}


out = {"likely": {"log_probs": [], "greedy": []}}
for line in open("tasks.jsonl"):
    t = json.loads(line)
    if "text" in t:
        t["context"], word = t["text"].rsplit(" ", 1)
        t["continuation"] = " " + word
    ll, greedy = loglikelihood(t["context"], t["continuation"])
    out["likely"]["log_probs"].append(ll)
    out["likely"]["greedy"].append(greedy)
out["likely"]["acc"] = mean([float(g) for g in out["likely"]["greedy"]])
out["likely"]["perplexity"] = math.exp(-statistics.fmean(out["likely"]["log_probs"]))

problems = [json.loads(line) for line in open("problems.jsonl")]
out["written"] = {"outputs": []}
strict, flexible = [], []
for p in problems:
    prompt = f"Question: {problems[0]['question']}\nAnswer: {problems[0]['answer']}\n\nQuestion: {p['question']}\nAnswer:"
    text = post("/v1/completions", {"model": "tiny", "prompt": prompt, "temperature": 0, "max_tokens": 24, "stop": ["Question:"]})["choices"][0]["text"]
    out["written"]["outputs"].append(text)
    m = re.findall(r"#### (\-?[0-9\.\,]+)", text)
    strict.append(exact(m[0].strip() if m else "[invalid]", p["answer"]))
    m = re.findall(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", text)
    flexible.append(exact(([v for v in m[-1] if v] or ["[invalid]"])[0].strip() if m else "[invalid]", p["answer"]))
out["written"]["strict"], out["written"]["flexible"] = mean(strict), mean(flexible)
print(json.dumps(out, indent=1))
