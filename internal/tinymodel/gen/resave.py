"""Records what llama.cpp's library writes in the metadata of a model that it saves.

    python resave.py --resave ./resave

Every testdata/NAME/NAME.gguf is saved by the program of resave.c. model/testdata/resaved.txt gets the metadata: first, under
"= *", what most models have, then under "= NAME" what differs. A line is KEY TYPE JSON; an architecture's keys begin with
"%s.", arrays of one value are [value, count] with a type that ends in "*". Tokens, scores, token types and merges are left
out, which are as in the model.
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


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--resave", required=True, help="the program of resave.c")
    args = ap.parse_args()
    models = {}
    with tempfile.TemporaryDirectory() as tmp:
        to = pathlib.Path(tmp) / "saved.gguf"
        for folder in sorted(TESTDATA.iterdir()):
            for name in (f"{folder.name}.gguf", f"{folder.name}-00001-of-00002.gguf"):
                if (folder / name).exists():
                    done = subprocess.run([args.resave, folder / name, to])
                    if done.returncode == 0:
                        models[folder.name] = metadata(to)
                    else:
                        print(f"{folder.name}: not saved ({done.returncode})")
    counts = collections.defaultdict(collections.Counter)
    for kv in models.values():
        for key, v in kv.items():
            counts[key][v] += 1
    usual = {k: c.most_common(1)[0][0] for k, c in counts.items() if c.most_common(1)[0][1] > len(models) / 2}
    with open(TESTDATA.parents[2] / "model/testdata/resaved.txt", "w") as f:
        f.write("= *\n" + "".join(f"{k} {v}\n" for k, v in sorted(usual.items())))
        for name, kv in models.items():
            f.write(f"= {name}\n")
            f.write("".join(f"{k} {v}\n" for k, v in sorted(kv.items()) if usual.get(k) != v))
            f.write("".join(f"{k} none\n" for k in sorted(usual) if k not in kv))


if __name__ == "__main__":
    main()
