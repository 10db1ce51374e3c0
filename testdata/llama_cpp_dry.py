"""Writes llama_cpp_dry.json: what llama.cpp's DRY sampler takes from the logits of tokens after a text, with breakers that are texts.

    python llama_cpp_dry.py LIBLLAMA MODEL.gguf > llama_cpp_dry.json

LIBLLAMA is the shared library, MODEL the built-in model (internal/builtin).
"""
import ctypes as C
import json
import sys


class Data(C.Structure):
    _fields_ = [("id", C.c_int32), ("logit", C.c_float), ("p", C.c_float)]


class Array(C.Structure):
    _fields_ = [("data", C.POINTER(Data)), ("size", C.c_size_t), ("selected", C.c_int64), ("sorted", C.c_bool)]


class ModelParams(C.Structure):
    _fields_ = [("raw", C.c_byte * 512)]


lib = C.CDLL(sys.argv[1])
I, F, P, Z = C.c_int32, C.c_float, C.c_void_p, C.c_size_t
lib.llama_sampler_init_dry.restype, lib.llama_sampler_init_dry.argtypes = P, [P, F, F, I, I, P, Z]
lib.llama_sampler_apply.argtypes = [P, C.POINTER(Array)]
lib.llama_sampler_accept.argtypes = [P, I]
for name in ("llama_model_load_from_file", "llama_model_get_vocab"):
    getattr(lib, name).restype = P
quiet = C.CFUNCTYPE(None, C.c_int, C.c_char_p, P)(lambda *a: None)
lib.llama_log_set(quiet, None)
lib.ggml_backend_load_all()
lib.llama_model_default_params.restype = ModelParams
lib.llama_model_load_from_file.argtypes = [C.c_char_p, ModelParams]
lib.llama_model_get_vocab.argtypes = [P]
lib.llama_vocab_n_tokens.argtypes = [P]
lib.llama_tokenize.argtypes = [P, C.c_char_p, I, C.POINTER(I), I, C.c_bool, C.c_bool]
vocab = lib.llama_model_get_vocab(lib.llama_model_load_from_file(sys.argv[2].encode(), lib.llama_model_default_params()))
n = lib.llama_vocab_n_tokens(vocab)

TEXTS = [
    "Once upon a time, there was a cat. The cat said: hello. The cat said: hello. The cat",
    "She said \"I am happy.\" He said \"I am happy.\" She said \"I am",
    "one two three four\none two three four\none two three four\none two",
    "the big red ball the big red ball the big red ball the big",
    "a list: * apple * pear * apple * pear * apple",
]
DEFAULT = ["\n", ":", "\"", "*"]
CASES = [(b, a, last) for b, a, last in (
    (DEFAULT, 2, 64), (DEFAULT, 0, 64), (DEFAULT, 1, 20), ([], 2, 64), (["red"], 2, 64), ([" said"], 1, 64), (["d tw", "ball the"], 1, 64),
    (["e", "upon a time"], 1, 64), (["apple * pe", "r\no", "happy.\" S"], 0, 64), (["y."], 2, 40))]
out = []
for breakers, allowed, last in CASES:
    for text in TEXTS:
        ids = (I * 200)()
        k = lib.llama_tokenize(vocab, text.encode(), len(text.encode()), ids, 200, False, False)
        texts = (C.c_char_p * max(1, len(breakers)))(*[b.encode() for b in breakers])
        s = lib.llama_sampler_init_dry(vocab, 0.5, 1.5, allowed, last, texts, len(breakers))
        for t in ids[:k]:
            lib.llama_sampler_accept(s, t)
        data = (Data * n)(*[Data(i, 0, 0) for i in range(n)])
        arr = Array(data, n, -1, False)
        lib.llama_sampler_apply(s, C.byref(arr))
        held = sorted([arr.data[i].id, round(-arr.data[i].logit, 5)] for i in range(n) if arr.data[i].logit != 0)
        out.append({"breakers": breakers, "allowed": allowed, "last": last, "tokens": ids[:k], "held": held})
json.dump(out, sys.stdout, separators=(",", ":"))
