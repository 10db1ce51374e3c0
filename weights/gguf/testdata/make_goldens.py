#!/usr/bin/env python3
"""Makes the goldens of the gguf tests with the gguf Python package, an
independent implementation of the format.

    make_goldens.py all_types.gguf               writes a file with every value type
    make_goldens.py digest FILE... > digests.json  what that package reads in FILEs
"""
import hashlib
import json
import os
import struct
import sys

import gguf
import numpy as np


def write_all_types(path):
    w = gguf.GGUFWriter(path, "llama")
    t = gguf.GGUFValueType
    w.add_uint8("t.uint8", 200)
    w.add_int8("t.int8", -100)
    w.add_uint16("t.uint16", 60000)
    w.add_int16("t.int16", -30000)
    w.add_uint32("t.uint32", 4000000000)
    w.add_int32("t.int32", -2000000000)
    w.add_float32("t.float32", 0.15625)
    w.add_uint64("t.uint64", 2**63 + 5)
    w.add_int64("t.int64", -(2**62))
    w.add_float64("t.float64", 1e-300)
    w.add_bool("t.true", True)
    w.add_bool("t.false", False)
    w.add_string("t.string", "na\u00efve \U0001f600\n")
    w.add_string("t.empty", "x")
    w.add_key_value("a.uint8", [1, 2, 255], t.ARRAY, sub_type=t.UINT8)
    w.add_key_value("a.int8", [-1, 2, -128], t.ARRAY, sub_type=t.INT8)
    w.add_key_value("a.uint16", [1, 65535], t.ARRAY, sub_type=t.UINT16)
    w.add_key_value("a.int16", [-1, 32767], t.ARRAY, sub_type=t.INT16)
    w.add_key_value("a.uint32", [1, 2**32 - 1], t.ARRAY, sub_type=t.UINT32)
    w.add_key_value("a.int32", [-1, 2**31 - 1], t.ARRAY, sub_type=t.INT32)
    w.add_key_value("a.uint64", [1, 2**64 - 1], t.ARRAY, sub_type=t.UINT64)
    w.add_key_value("a.int64", [-1, 2**63 - 1], t.ARRAY, sub_type=t.INT64)
    w.add_key_value("a.float32", [0.5, -1.25], t.ARRAY, sub_type=t.FLOAT32)
    w.add_key_value("a.float64", [1e300, -1e-300], t.ARRAY, sub_type=t.FLOAT64)
    w.add_key_value("a.bool", [True, False, True], t.ARRAY, sub_type=t.BOOL)
    w.add_array("a.string", ["", "a", "\u4e2d\u6587"])
    w.add_key_value("a.nested", [[1, 2, 3], [4]], t.ARRAY, sub_type=t.ARRAY)
    w.add_key_value("a.nested.string", [["x", ""], ["yz"]], t.ARRAY, sub_type=t.ARRAY)
    w.add_custom_alignment(64)
    rng = np.random.default_rng(1)
    w.add_tensor("vector", rng.standard_normal(5).astype(np.float32))
    w.add_tensor("half", rng.standard_normal((3, 4)).astype(np.float16))
    q = gguf.quants.quantize(rng.standard_normal((4, 64)).astype(np.float32), gguf.GGMLQuantizationType.Q8_0)
    w.add_tensor("quant", q, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    w.add_tensor("experts", rng.standard_normal((2, 3, 4)).astype(np.float32))
    w.add_tensor("ints", np.arange(6, dtype=np.int32).reshape(2, 3))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def value_bytes(field):
    """The values of a field, one after the other, in a form that does not
    depend on the layout of the file: strings and decimal numbers end with a
    newline, floats are 8 bytes."""
    elem = field.types[-1]
    out = []
    for i in field.data:
        part = field.parts[i]
        if elem == gguf.GGUFValueType.STRING:
            out.append(part.tobytes() + b"\n")
        elif elem in (gguf.GGUFValueType.FLOAT32, gguf.GGUFValueType.FLOAT64):
            out.append(b"".join(struct.pack("<d", x) for x in part.tolist()))
        else:
            out.append(b"".join(b"%d\n" % int(x) for x in part.tolist()))
    return b"".join(out)


def digest(path):
    r = gguf.GGUFReader(path)
    fields = [f for k, f in r.fields.items() if not k.startswith("GGUF.")]
    meta = hashlib.sha256()
    for f in fields:
        names = "/".join(t.name.lower() for t in f.types)
        meta.update(f"{f.name} {names} {len(f.data)}\n".encode())
        meta.update(value_bytes(f))
    tensors = hashlib.sha256()
    for t in r.tensors:
        dims = " ".join(str(int(d)) for d in t.shape)
        tensors.update(f"{t.name} {t.tensor_type.name} {dims} {t.data_offset - r.data_offset} {t.n_bytes}\n".encode())
    d = {
        "version": int(r.fields["GGUF.version"].parts[-1][0]),
        "keys": len(fields),
        "metadata_sha256": meta.hexdigest(),
        "tensors": len(r.tensors),
        "directory_sha256": tensors.hexdigest(),
    }
    if r.tensors:
        last = r.tensors[-1]
        d["last_tensor"] = last.name
        d["last_data_sha256"] = hashlib.sha256(last.data.tobytes()).hexdigest()
    return d


if __name__ == "__main__":
    if sys.argv[1] == "digest":
        json.dump({os.path.basename(p): digest(p) for p in sys.argv[2:]}, sys.stdout, indent=1)
        print()
    else:
        write_all_types(sys.argv[1])
