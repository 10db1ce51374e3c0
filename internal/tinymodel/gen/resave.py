"""Records what llama.cpp's library writes in the metadata of a model that it saves.

    python resave.py --resave ./resave [--only NAME ...]

Every testdata/NAME/NAME.gguf is saved by the program of resave.c. model/testdata/resaved.txt gets the metadata: first, under
"= *", what most models have, then under "= NAME" what differs. A line is KEY TYPE JSON; an architecture's keys begin with
"%s.", arrays of one value are [value, count] with a type that ends in "*". Tokens, scores, token types and merges are left
out, which are as in the model. With --only what is recorded of other models stays, and so does what most of them have.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import tempfile

from gguf import GGUFReader, GGUFValueType

TESTDATA = pathlib.Path(__file__).resolve().parent.parent / "testdata"
LEFT_OUT = {"tokenizer.ggml." + k for k in ("tokens", "scores", "token_type", "merges")}


def value(field, arch):
    """Returns TYPE JSON of a metadata field."""
    kinds = [GGUFValueType(t).name.lower() for t in field.types]
    v = field.contents()
    if kinds[0] == "array":
        kind = kinds[1] if len(kinds) > 1 else "uint32"
        if len(v) > 8 and len(set(v)) == 1:
            return f"{kind}[]* {json.dumps([v[0], len(v)])}"
        return f"{kind}[] {json.dumps(v)}"
    return f"{kinds[0]} {json.dumps(v)}"


def metadata(path):
    reader = GGUFReader(path)
    arch = reader.fields["general.architecture"].contents()
    out = {}
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key in LEFT_OUT:
            continue
        key = "%s" + key[len(arch):] if key.startswith(arch + ".") else key
        out[key] = value(field, arch)
    return out


def lines(kv, usual):
    """Returns what is recorded of a model."""
    return [f"{k} {v}" for k, v in sorted(kv.items()) if usual.get(k) != v] + [f"{k} none" for k in sorted(usual) if k not in kv]


def recorded_in(path):
    """Returns the lines of each model, and under "*" those of most."""
    out = {}
    for line in path.read_text().splitlines():
        if line.startswith("= "):
            out[line[2:]] = found = []
        else:
            found.append(line)
    return out


def write(path, usual, recorded):
    with open(path, "w") as f:
        f.write("= *\n" + "".join(f"{k} {v}\n" for k, v in sorted(usual.items())))
        for name in sorted(recorded):
            f.write("".join(line + "\n" for line in [f"= {name}", *recorded[name]]))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--resave", required=True, help="the program of resave.c")
    ap.add_argument("--only", nargs="*", help="names of the models to save; all if absent")
    args = ap.parse_args()
    out = TESTDATA.parents[2] / "model/testdata/resaved.txt"
    recorded = recorded_in(out) if args.only else {}
    models = {}
    with tempfile.TemporaryDirectory() as tmp:
        to = pathlib.Path(tmp) / "saved.gguf"
        for folder in sorted(TESTDATA.iterdir()):
            if args.only and folder.name not in args.only:
                continue
            for name in (f"{folder.name}.gguf", f"{folder.name}-00001-of-00002.gguf"):
                if (folder / name).exists():
                    done = subprocess.run([args.resave, folder / name, to])
                    if done.returncode == 0:
                        models[folder.name] = metadata(to)
                    else:
                        print(f"{folder.name}: not saved ({done.returncode})")
    if args.only:
        usual = dict(line.split(" ", 1) for line in recorded.pop("*"))
        recorded.update((name, lines(kv, usual)) for name, kv in models.items())
        write(out, usual, recorded)
        return
    counts = collections.defaultdict(collections.Counter)
    for kv in models.values():
        for key, v in kv.items():
            counts[key][v] += 1
    usual = {k: c.most_common(1)[0][0] for k, c in counts.items() if c.most_common(1)[0][1] > len(models) / 2}
    write(out, usual, {name: lines(kv, usual) for name, kv in models.items()})


if __name__ == "__main__":
    main()
