"""Write weighted.zip: rows as blocks of each type that ggml's C library makes of them
with an importance matrix.

  inputs         float32 values, rows of 512
  importance     that of the 512 columns
  TYPE.encoded   inputs as blocks of TYPE

Usage: python gen_weighted.py LIBGGML_BASE
"""
import ctypes
import sys
import zipfile

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T

TYPES = [T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K, T.IQ4_NL, T.IQ4_XS, T.IQ3_XXS, T.IQ3_S, T.IQ2_S,
         T.IQ2_XS, T.IQ2_XXS, T.IQ1_S, T.IQ1_M, T.TQ1_0, T.TQ2_0, T.MXFP4, T.NVFP4, T.Q1_0, T.Q2_0]
COLS = 512


def inputs(rng):
    rows = [rng.standard_normal(COLS) * 0.02 for _ in range(8)]
    rows += [rng.standard_normal(COLS), rng.standard_normal(COLS) * 50, rng.laplace(size=COLS) * 0.05, rng.standard_t(2, COLS) * 0.01]
    rows += [rng.standard_normal(COLS) * 0.01 + 0.1, rng.standard_normal(COLS) * 0.01 - 0.1, np.abs(rng.standard_normal(COLS)) * 0.03]
    rows += [np.round(rng.standard_normal(COLS) * 3) / 8, rng.integers(-1, 2, COLS) * 0.5]
    rows += [rng.standard_normal(COLS) * np.repeat(10.0 ** rng.uniform(-4, 1, 32), 16), rng.standard_normal(COLS) * 1e-5]
    return np.concatenate(rows).astype(np.float32)


def main():
    lib = ctypes.CDLL(sys.argv[1])
    lib.ggml_quantize_chunk.restype = ctypes.c_size_t
    rng = np.random.default_rng(3)
    x = inputs(rng)
    w = (rng.standard_normal(COLS) ** 2 * np.exp(rng.standard_normal(COLS))).astype(np.float32)
    w[rng.integers(0, COLS, 6)] *= 1000
    with zipfile.ZipFile("weighted.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        def put(name, array):
            z.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), array.tobytes(), zipfile.ZIP_DEFLATED, 9)

        put("inputs", x)
        put("importance", w)
        for t in TYPES:
            size, nbytes = GGML_QUANT_SIZES[t]
            out = np.zeros(x.size // size * nbytes, np.uint8)
            n = lib.ggml_quantize_chunk(ctypes.c_int(t), x.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(0),
                                        ctypes.c_int64(x.size // COLS), ctypes.c_int64(COLS), w.ctypes.data_as(ctypes.c_void_p))
            assert n == out.size, t.name
            put(t.name + ".encoded", out)


main()
