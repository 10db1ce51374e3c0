"""Write goldens.zip, the block codecs of independent implementations:

  TYPE.blocks   blocks of TYPE, random and extreme ones
  TYPE.values   their float32 values by the Python package gguf, which must
                equal those of ggml's C library
  inputs        float32 values, a multiple of 256
  TYPE.encoded  inputs as blocks of TYPE by ggml's C library, as its quantizer
                program writes them without an importance matrix

Usage: python gen_goldens.py LIBGGML_BASE [--scale N] [--seed N] [--out FILE]

The committed file has scale 1. A larger one, for a search beyond it, is tested
with RIDGE_GOLDENS=FILE go test ./tensor -run Golden.
"""
import argparse
import ctypes
import zipfile

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf import quants

# For each type the offsets of its float16 scales in a block.
DECODED = {
    T.F16: [], T.BF16: [],
    T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0],
    T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208], T.Q8_K: [],
    T.IQ4_NL: [0], T.IQ4_XS: [0], T.TQ1_0: [52], T.TQ2_0: [64], T.MXFP4: [],
    T.IQ1_S: [0], T.IQ1_M: [], T.IQ2_XXS: [0], T.IQ2_XS: [0], T.IQ2_S: [0],
    T.IQ3_XXS: [0], T.IQ3_S: [0],
}
# Formats that came later: their blocks are drawn last, so that those of the others stay. Of some the Python package
# has nothing but the name.
LATER = {T.NVFP4: [], T.Q1_0: [0], T.Q2_0: [0]}
ENCODED = [
    T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K,
    T.Q8_K, T.IQ4_NL, T.IQ4_XS, T.TQ1_0, T.TQ2_0, T.MXFP4, T.IQ2_S, T.IQ3_XXS, T.IQ3_S,
]
# float16 bits: zeros, smallest and largest subnormal, smallest normal, one,
# largest, infinities, NaN
EXTREME = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00]


def set_scales(t, block, bits):
    """Set all float16 (or, for types without, equivalent) scales of a block."""
    if t == T.IQ1_M:  # spread over the top nibbles of four words
        for i in range(4):
            block[49 + 2 * i] = (block[49 + 2 * i] & 0x0F) | (bits >> (4 * i) & 15) << 4
    elif t == T.Q8_K:
        block[:4] = np.array([bits], np.uint16).view(np.float16).astype("<f4").view(np.uint8)
    elif t == T.MXFP4:
        block[0] = bits >> 7 & 255
    elif t == T.NVFP4:
        block[:4] = [bits & 255, bits >> 8, bits >> 4 & 255, bits >> 7 & 127]
    for at in (DECODED | LATER)[t]:
        block[at : at + 2] = [bits & 255, bits >> 8]


def make_blocks(rng, t, scale):
    size, nbytes = GGML_QUANT_SIZES[t]
    if t in (T.F16, T.BF16):
        return rng.integers(0, 256, (512 * scale, nbytes), dtype=np.uint8)
    n = (8 if size == 256 else 48 if size == 32 else 16) * scale
    usual = rng.integers(0, 256, (n, nbytes), dtype=np.uint8)
    for block in usual:
        h = (rng.standard_normal(1) * 0.02).astype(np.float16).view(np.uint16)[0]
        set_scales(t, block, int(h))
    extreme = rng.integers(0, 256, (len(EXTREME), nbytes), dtype=np.uint8)
    for block, bits in zip(extreme, EXTREME):
        set_scales(t, block, bits)
    low, high = np.zeros((2, nbytes), np.uint8), np.full((2, nbytes), 255, np.uint8)
    for block in (low[1], high[1]):
        set_scales(t, block, 0x3C00)
    wild = rng.integers(0, 256, (2 * scale, nbytes), dtype=np.uint8)
    return np.concatenate([usual, extreme, low, high, wild])


def make_inputs(rng, scale):
    rows = []
    add = lambda x: rows.append(np.asarray(x, np.float32).reshape(256))
    normal = lambda: rng.standard_normal(256)
    for _ in range(scale):
        for _ in range(8):
            add(normal() * 0.02)
        add(normal())
        add(normal() * 300)
        add(rng.laplace(size=256) * 0.05)
        add(rng.standard_t(2, 256) * 0.01)
        add(normal() * 0.01 + 0.1)
        add(normal() * 0.01 - 0.1)
        add(np.abs(normal()) * 0.03)
        add(np.round(normal() * 3) / 8)  # many ties
        add(rng.integers(-1, 2, 256) * 0.5)  # ternary
        add(normal() * (rng.random(256) < 0.1))  # sparse
        add(normal() * np.repeat(10.0 ** rng.uniform(-6, 2, 16), 16))  # uneven sub-blocks
        add(normal() * np.repeat(rng.integers(0, 2, 8), 32) * 0.1)  # zero sub-blocks
        for magnitude in (1e-5, 1e-7, 1e-9, 1e-16, 1e-20, 1e-37, 1e-39, 1e-43):
            add(normal() * magnitude)
    add(np.zeros(256))
    add(np.full(256, -0.0))
    add(np.full(256, 0.37))
    add(np.full(256, -0.37))
    add(np.where(np.arange(256) == 77, -5.0, 0.0))  # one spike
    add(np.linspace(-1, 1, 256))
    add(np.where(np.arange(256) % 2, 1.0, -1.0))
    add(np.repeat(np.arange(8), 32) / 8)  # constant sub-blocks
    add(np.ldexp(1.0, rng.integers(-12, 4, 256)))  # powers of two
    return np.concatenate(rows)


class Lib:
    """The functions of ggml's base library."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.ggml_quantize_chunk.restype = ctypes.c_size_t

    def decode(self, t, blocks):
        size, _ = GGML_QUANT_SIZES[t]
        blocks = np.ascontiguousarray(blocks)
        out = np.empty(len(blocks) * size, np.float32)
        fn = getattr(self.lib, "dequantize_row_" + t.name.lower().replace("_k", "_K"))
        fn(blocks.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(out.size))
        return out

    def encode(self, t, x):
        size, nbytes = GGML_QUANT_SIZES[t]
        out = np.zeros(x.size // size * nbytes, np.uint8)
        src, dst = x.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p)
        if t == T.Q8_K:
            self.lib.quantize_row_q8_K_ref(src, dst, ctypes.c_int64(x.size))
        else:
            n = self.lib.ggml_quantize_chunk(
                ctypes.c_int(t), src, dst, ctypes.c_int64(0), ctypes.c_int64(x.size // 256), ctypes.c_int64(256), None)
            assert n == out.size
        return out


def same(a, b):
    """Equal bits, but for the payload and sign of NaN."""
    return ((a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))).all()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("lib")
    ap.add_argument("--scale", type=int, default=1)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--out", default="goldens.zip")
    args = ap.parse_args()
    lib = Lib(args.lib)
    rng = np.random.default_rng(args.seed)

    with zipfile.ZipFile(args.out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        def put(name, array):
            z.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), array.tobytes(), zipfile.ZIP_DEFLATED, 9)

        for t in DECODED:
            blocks = make_blocks(rng, t, args.scale)
            if t == T.Q8_K:  # not in the Python package
                values = lib.decode(t, blocks)
            else:
                with np.errstate(all="ignore"):
                    values = quants.dequantize(blocks, t).reshape(-1).astype(np.float32)
                if t not in (T.F16, T.BF16):
                    assert same(values, lib.decode(t, blocks)), t.name
            put(t.name + ".blocks", blocks)
            put(t.name + ".values", values)

        x = make_inputs(rng, args.scale)
        put("inputs", x)
        for t in ENCODED:
            put(t.name + ".encoded", lib.encode(t, x))
        for t in LATER:
            blocks = make_blocks(rng, t, args.scale)
            values = lib.decode(t, blocks)
            if t in quants._type_traits:
                with np.errstate(all="ignore"):
                    assert same(values, quants.dequantize(blocks, t).reshape(-1).astype(np.float32)), t.name
            put(t.name + ".blocks", blocks)
            put(t.name + ".values", values)


main()
