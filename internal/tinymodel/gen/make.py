"""Makes the tiny models and their goldens: random weights, logits from Hugging Face transformers.

    python make.py --llama-cpp DIR [--only NAME ...]

Every case of cases.CASES becomes a folder testdata/NAME with

    config.json, model.safetensors, tokenizer.json, tokenizer_config.json   the model as Hugging Face stores it
    NAME.gguf     the same model as llama.cpp's own converter writes it (F32)
    golden.json   the prompt (64 ids, or what the case says), the vocabulary size, the seed
    greedy.json   the 16 ids that greedy decoding with a KV cache appends to the prompt
    logits.f32    the logits of the prompt, [rows][vocab] little-endian float32; of a prompt of more than 64 ids those of every
                  EVERY-th row, the last one included

DIR is a checkout of llama.cpp: its conversion scripts and gguf-py are imported from there.
The logits are computed from the files just written, by transformers in float32.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np
import torch
import transformers
transformers.utils.logging.disable_progress_bar()
from safetensors.torch import load_file, save_file

import state
from cases import CASES
from vocab import write_tokenizer, gguf_vocab

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parent / "testdata"
PROMPT = 64
EVERY = 4            # of the rows of longer prompts, one in so many is kept
GREEDY = 16
GRID = 1 / 64        # weights are multiples of this: exact in bf16, f16 and f32, and they compress well
EFFECT = 0.05        # rolling the values of any one tensor by one place moves some logit by at least this
MARGIN = 0.02        # the best logit of every greedy step leads by at least this, so that rounding decides nothing


def random_values(name, shape, gen, case):
    """Returns values for a tensor, of a size that goes with its name."""
    r = torch.randn(shape, generator=gen)
    if (v := state.values(name, r)) is not None:
        pass
    elif len(shape) == 1 and name.endswith("bias"):
        v = 0.15 * r
    elif "norm" in name or "ln_" in name or (len(shape) == 1 and name.endswith("weight")):
        v = 0.25 * r + (0.0 if case.get("norm_plus_one") else 1.0)
    elif any(s in name for s in ("embed", "wte", "wpe", "lm_head")):
        v = case.get("embed_std", 0.4) * r
    else:
        fan_in = shape[0] if case.get("conv1d") else shape[-1]
        v = case.get("gain", 1.3) / fan_in ** 0.5 * r
    if case.get("signs") and len(shape) == 2 and "embed" not in name:     # a ternary model whose mean is its scale
        return torch.where(r < 0, -1.0, 1.0) * case["signs"]
    return (v / GRID).round() * GRID


def randomize(model, gen, case):
    """Gives every tensor random values on the grid, norms and biases included, so that none can be ignored unseen."""
    done = set()
    for name, p in model.named_parameters():
        if p.data_ptr() in done:
            continue
        done.add(p.data_ptr())
        p.data.copy_(random_values(name, p.shape, gen, case))
    for name, b in model.named_buffers():
        if name.endswith("layer_scalar"):
            b.copy_(((1 + 0.25 * torch.randn(b.shape, generator=gen)) / GRID).round() * GRID)
        if name.endswith(("expert_bias", "correction_bias")):     # for the choice of experts: weights in all but name
            b.copy_((0.3 * torch.randn(b.shape, generator=gen) / GRID).round() * GRID)


def greedy(model, prompt):
    """Continues the prompt with a KV cache, one token at a time; returns the ids and the smallest lead of a winner."""
    ids, lead = [], float("inf")
    out = model(input_ids=torch.tensor([prompt]), use_cache=True)
    for step in range(GREEDY):
        top = torch.topk(out.logits[0, -1], 2)
        ids.append(int(top.indices[0]))
        lead = min(lead, float(top.values[0] - top.values[1]))
        out = model(input_ids=torch.tensor([[ids[-1]]]), past_key_values=out.past_key_values, use_cache=True)
    return ids, lead


def recomputed(model, prompt):
    """Continues the prompt without a cache; returns what greedy does."""
    ids, lead = [], float("inf")
    for step in range(GREEDY):
        top = torch.topk(model(input_ids=torch.tensor([prompt + ids])).logits[0, -1], 2)
        ids.append(int(top.indices[0]))
        lead = min(lead, float(top.values[0] - top.values[1]))
    return ids, lead


def generated(model, prompt):
    """Continues the prompt with the class's own generate; returns what greedy does."""
    out = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), do_sample=False,
                         max_new_tokens=GREEDY, eos_token_id=None, output_logits=True, return_dict_in_generate=True)
    tops = [torch.topk(row[0], 2).values for row in out.logits]
    return [int(t) for t in out.sequences[0, len(prompt):]], min(float(t[0] - t[1]) for t in tops)


CONTINUE = {False: greedy, True: generated, "again": recomputed}


def vocab_size(case):
    return case["config"].get("text_config", case["config"])["vocab_size"]


def check_every_tensor(name, model, prompt, logits, idle):
    """Fails if some tensor could be wrong without the logits showing it."""
    for tensor, p in model.named_parameters():
        if "vision" in tensor or "projector" in tensor or tensor.endswith(idle):
            continue    # not part of the language model, or without effect
        kept = p.data.clone()
        p.data.copy_(kept + 0.5 if kept.numel() == 1 else kept.flatten().roll(1).view(kept.shape))
        moved = float((model(input_ids=torch.tensor([prompt])).logits[0] - logits).abs().max())
        p.data.copy_(kept)
        if moved < EFFECT:
            raise SystemExit(f"{name}: {tensor} hardly matters: {moved:.4f}")


def load(folder, attention):
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation=attention, dtype=torch.float32).eval()


def write_model(folder, case, seed):
    """Writes config.json and the safetensors of a new random model."""
    (folder / "config.json").write_text(json.dumps(case["config"], indent=1) + "\n")
    config = transformers.AutoConfig.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
    randomize(model, torch.Generator().manual_seed(seed), case)
    with tempfile.TemporaryDirectory() as tmp:
        model.save_pretrained(tmp)     # gives the tensors the names that checkpoints have
        tensors = load_file(pathlib.Path(tmp) / "model.safetensors")
    dtype = getattr(torch, case["config"]["torch_dtype"])
    tensors = {k.removeprefix(case.get("strip_prefix", "")): v.to(dtype).contiguous() for k, v in tensors.items()}
    shards = case.get("shards", 1)
    if shards == 1:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = sorted(tensors)
    index = {"metadata": {"total_size": sum(v.nbytes for v in tensors.values())}, "weight_map": {}}
    for i in range(shards):
        part, file = names[i::shards], f"model-{i + 1:05}-of-{shards:05}.safetensors"
        save_file({k: tensors[k] for k in part}, folder / file, metadata={"format": "pt"})
        index["weight_map"].update({k: file for k in part})
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


def stack_head_norms(tensors):
    """Joins stablelm's norms, one tensor a head, into one [heads][head_dim] tensor: the converter forgets to."""
    stacks = {}
    for name, tensor in tensors:
        stem, found, head = name.removesuffix(".weight").partition(".norms.")
        if not found:
            yield name, tensor
            continue
        stacks.setdefault(stem, {})[int(head)] = tensor
    for stem, heads in stacks.items():
        yield f"{stem}.weight", torch.stack([heads[h] for h in sorted(heads)])


def write_gguf(folder, path, case, dtype=None):
    """Converts the folder with llama.cpp's converter; only the vocabulary is ours. dtype is that of the file, if not the case's."""
    from conversion import ModelBase, ModelType, get_model_architecture, get_model_class
    import gguf
    hparams = {**case["config"], **ModelBase.load_hparams(folder, False), **case.get("hparams", {})}
    for key in case.get("unsaid", ()):     # that the class has a default for
        hparams.pop(key, None)
    cls = get_model_class(get_model_architecture(hparams, ModelType.TEXT))
    cls = getattr(cls, case.get("converter", ""), cls)
    vocab = vocab_size(case)

    class Tiny(cls):
        model_arch = cls.model_arch
        no_mtp = case.get("no_mtp", getattr(cls, "no_mtp", False))

        def set_vocab(self):
            gguf_vocab(self.gguf_writer, vocab)

        def get_tensors(self):
            return stack_head_norms(super().get_tensors())

        def modify_tensors(self, data_torch, name, bid):
            if cls.__name__ == "BaichuanModel" and "W_pack" not in name:    # the converter asks itself without end
                return [(self.map_tensor_name(name), data_torch)]
            # BitNet's converter knows the names of its first checkpoints
            name = name.replace("self_attn.attn_sub_norm", "self_attn.inner_attn_ln").replace("mlp.ffn_sub_norm", "mlp.ffn_layernorm")
            return super().modify_tensors(data_torch, name, bid)

        def set_gguf_parameters(self):
            super().set_gguf_parameters()
            for key, value in case.get("gguf_extra", {}).items():
                add = {bool: self.gguf_writer.add_bool, int: self.gguf_writer.add_uint32, float: self.gguf_writer.add_float32}
                add.get(type(value), self.gguf_writer.add_array)(key, value)

    kind = {"float32": gguf.LlamaFileType.ALL_F32, "bfloat16": gguf.LlamaFileType.MOSTLY_F16}
    split = 0
    if (shards := case.get("shards", 1)) > 1:
        split = -(-len(list(Tiny(folder, kind["float32"], path, hparams=hparams).get_tensors())) // shards)
    with torch.inference_mode():
        Tiny(folder, kind[dtype or case["config"]["torch_dtype"]], path, eager=True, model_name="tiny", hparams=hparams,
             split_max_tensors=split).write()


def llama_cpp_logits(program, folder, case, prompt, steps=0):
    """Computes the prompt, and steps more ids, with llama.cpp from float32 weights; returns rows of logits."""
    with tempfile.TemporaryDirectory() as tmp:
        model, out = pathlib.Path(tmp) / "model.gguf", pathlib.Path(tmp) / "logits"
        write_gguf(folder, model, case, "float32")
        subprocess.run([program, model, ",".join(map(str, prompt)), str(steps), out], check=True)
        return torch.from_numpy(np.fromfile(out, "<f4").reshape(-1, vocab_size(case)))


def check_every_tensor_by_llama_cpp(program, folder, case, prompt, logits):
    """Is check_every_tensor for a model that transformers does not have."""
    tensors = load_file(folder / "model.safetensors")
    with tempfile.TemporaryDirectory() as tmp:
        shutil.copytree(folder, tmp, dirs_exist_ok=True)
        for tensor, kept in tensors.items():
            rolled = {**tensors, tensor: kept.flatten().roll(1).view(kept.shape)}
            save_file(rolled, pathlib.Path(tmp) / "model.safetensors", metadata={"format": "pt"})
            moved = float((llama_cpp_logits(program, pathlib.Path(tmp), case, prompt) - logits).abs().max())
            if moved < EFFECT:
                raise SystemExit(f"{case['name']}: {tensor} hardly matters: {moved:.4f}")


def make_by_llama_cpp(case, program):
    """Makes a case of a family that transformers does not have: case["tensors"] gives the shapes of a checkpoint's tensors, and
    the oracle is llama.cpp on the file that its converter writes of them."""
    name, folder, vocab = case["name"], OUT / case["name"], vocab_size(case)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_tokenizer(folder, vocab)
    (folder / "config.json").write_text(json.dumps(case["config"], indent=1) + "\n")
    dtype = getattr(torch, case["config"]["torch_dtype"])
    for seed in range(1, 200):
        gen = torch.Generator().manual_seed(seed)
        save_file({k: random_values(k, shape, gen, case).to(dtype) for k, shape in case["tensors"](case["config"]).items()},
                  folder / "model.safetensors", metadata={"format": "pt"})
        prompt = [int(t) for t in np.random.default_rng(seed).integers(3, vocab, case.get("prompt", PROMPT))]
        rows = llama_cpp_logits(program, folder, case, prompt, GREEDY)
        top = torch.topk(rows[len(prompt) - 1:-1], 2)
        ids, lead = top.indices[:, 0].tolist(), float((top.values[:, 0] - top.values[:, 1]).min())
        if lead > MARGIN and len(set(ids)) > 3:
            break
    else:
        raise SystemExit(f"{name}: no seed gives a clear greedy continuation")
    logits = rows[:len(prompt)]
    check_every_tensor_by_llama_cpp(program, folder, case, prompt, logits)
    finish(case, seed, prompt, logits.numpy(), ids, lead)


def write_renamed(home, folder, case):
    """Writes a model that another class computed under the names of its own family."""
    (folder / "config.json").write_text(json.dumps(case["config"], indent=1) + "\n")
    tensors = case["rename"](load_file(home / "model.safetensors"))
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "model.safetensors", metadata={"format": "pt"})


def make(case):
    """Makes a case by transformers. case["reference"], if there is one, is the config of a class whose layers are the same,
    and case["rename"] gives a checkpoint of it the names of its own."""
    name, vocab = case["name"], vocab_size(case)
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_tokenizer(folder, vocab)
    home = pathlib.Path(tempfile.mkdtemp()) if "reference" in case else folder
    for seed in range(1, 200):
        write_model(home, {**case, "config": case.get("reference", case["config"])}, seed)
        model = load(home, case.get("attention", "eager"))
        rng = np.random.default_rng(seed)
        prompt = [int(t) for t in rng.integers(3, case.get("vocab", vocab), case.get("prompt", PROMPT))]
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([prompt])).logits[0].float()
            ids, lead = CONTINUE[case.get("generate", False)](model, prompt)
        if lead > MARGIN and len(set(ids)) > 3:
            break
    else:
        raise SystemExit(f"{name}: no seed gives a clear greedy continuation")
    with torch.inference_mode():
        check_every_tensor(name, model, prompt, logits, case.get("idle", ()))
    if home != folder:
        write_renamed(home, folder, case)
        shutil.rmtree(home)
    finish(case, seed, prompt, logits.numpy(), ids, lead)


def finish(case, seed, prompt, logits, ids, lead):
    """Writes what was computed of a case, and its GGUF file."""
    name, vocab, folder = case["name"], vocab_size(case), OUT / case["name"]
    every = EVERY if len(prompt) > PROMPT else 1
    logits = logits[every - 1::every]
    logits.astype("<f4").tofile(folder / "logits.f32")
    golden = {"arch": case["config"]["architectures"][0], "note": case["note"], "seed": seed, "vocab": vocab,
              **{k: case[k] for k in ("context", "gguf_extra") if k in case}, "prompt": prompt}
    if every > 1:
        golden["every"] = every
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    (folder / "greedy.json").write_text(json.dumps(ids) + "\n")
    if case["gguf"]:
        write_gguf(folder, folder / f"{name}.gguf", case)
    for file in folder.iterdir():
        file.chmod(0o644)
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name:28} seed {seed:3}  logits std {logits.std():.2f}  max {np.abs(logits).max():.2f}  lead {lead:.3f}  {size >> 10} KiB", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--llama-cpp", required=True, help="a checkout of llama.cpp")
    ap.add_argument("--logits", help="the program of logits.c, for families that transformers does not have")
    ap.add_argument("--only", nargs="*", help="names of the cases to make; all if absent")
    args = ap.parse_args()
    torch.set_num_threads(1)
    sys.path[:0] = [args.llama_cpp, os.path.join(args.llama_cpp, "gguf-py")]
    for case in CASES:
        if args.only and case["name"] not in args.only:
            continue
        if "tensors" not in case:
            make(case)
        elif args.logits:
            make_by_llama_cpp(case, args.logits)
        else:
            print(f"{case['name']:28} left out: it needs --logits")


if __name__ == "__main__":
    main()
