#!/usr/bin/env python3
"""Records what llama.cpp makes of the small real models, for peer_test.go.

usage: gen_peer.py BIN MODELS DATA > peer.json

BIN     folder with llama.cpp's llama-server and llama-perplexity
MODELS  folder with the model files named below
DATA    folder with spec_bench.jsonl and wikitext2_test.txt: those of
        internal/testdata/data, unpacked by bunzip2

Greedy continuations of 64 tokens for 20 prompts spread over spec_bench, raw
(no chat template); for how many prompts the first 16 tokens are the same without
flash attention (instruct models with their chat template); and the perplexity
of the first 39 windows of 512 tokens.
"""
import json
import re
import subprocess
import sys
import time
import urllib.request

BIN, MODELS, DATA = sys.argv[1:4]
URL = "http://127.0.0.1:8123"
FILES = {
    "smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "gemma3": "gemma-3-270m-q4_k_m.gguf",
    "qwen": "qwen-0.5b.gguf",
}
WINDOWS = 39


def post(path, body):
    req = urllib.request.Request(URL + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(req))


def wait_ready():
    for _ in range(200):
        try:
            urllib.request.urlopen(URL + "/health")
            return
        except OSError:
            time.sleep(0.3)
    sys.exit("the server did not start")


def greedy(file, prompts, template=False, flags=()):
    server = subprocess.Popen(
        [BIN + "/llama-server", "-m", file, "--port", "8123", "-t", "1", "-c", "8192", "-np", "1", "--jinja", *flags],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_ready()
        out = []
        for text in prompts:
            if template:
                text = post("/apply-template", {"messages": [{"role": "user", "content": text}]})["prompt"]
            ids = post("/tokenize", {"content": text, "add_special": True, "parse_special": True})["tokens"]
            r = post("/completion", {"prompt": text, "n_predict": 64, "temperature": 0, "top_k": 1,
                                     "samplers": ["top_k"], "repeat_penalty": 1.0,
                                     "cache_prompt": False, "return_tokens": True})
            out.append({"prompt_tokens": len(ids), "tokens": r["tokens"]})
        return out
    finally:
        server.terminate()
        server.wait()


def perplexity(file):
    r = subprocess.run([BIN + "/llama-perplexity", "-m", file, "-f", DATA + "/wikitext2_test.txt",
                        "--chunks", str(WINDOWS), "-t", "1"], capture_output=True, text=True)
    return float(re.search(r"Final estimate: PPL = ([0-9.]+)", r.stdout + r.stderr).group(1))


def main():
    rows = [json.loads(line) for line in open(DATA + "/spec_bench.jsonl")]
    rows = [rows[i * (len(rows) // 20)] for i in range(20)]
    out = {"source": "llama.cpp as in llama-cpp-python 0.3.36", "prompts": [{"id": r["question_id"]} for r in rows],
           "models": {}}
    for name, file in FILES.items():
        path = MODELS + "/" + file
        prompts = [r["turns"][0] for r in rows]
        chat = name != "gemma3"  # a base model
        with_fa, without = greedy(path, prompts, chat), greedy(path, prompts, chat, ("-fa", "off"))
        out["models"][name] = {
            "perplexity": perplexity(path), "windows": WINDOWS, "greedy": greedy(path, prompts),
            "self_agreement": sum(a["tokens"][:16] == b["tokens"][:16] for a, b in zip(with_fa, without))}
    json.dump(out, sys.stdout, separators=(",", ":"))


main()
