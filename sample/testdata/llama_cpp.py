"""Writes llama_cpp.json: what llama.cpp's samplers leave of random logits, and of which logits.

    python llama_cpp.py LIBLLAMA MODEL.gguf > llama_cpp.json

LIBLLAMA is the shared library, MODEL any small model (its vocabulary is only asked for how many tokens there are).
"""
import ctypes as C
import json
import random
import sys


class Data(C.Structure):
    _fields_ = [("id", C.c_int32), ("logit", C.c_float), ("p", C.c_float)]


class Array(C.Structure):
    _fields_ = [("data", C.POINTER(Data)), ("size", C.c_size_t), ("selected", C.c_int64), ("sorted", C.c_bool)]


lib = C.CDLL(sys.argv[1])
F, I, U, Z, P = C.c_float, C.c_int32, C.c_uint32, C.c_size_t, C.c_void_p
for name, args in {"top_n_sigma": [F], "temp_ext": [F, F, F], "xtc": [F, F, Z, U], "mirostat": [I, U, F, F, I],
                   "mirostat_v2": [U, F, F], "dry": [P, F, F, I, I, P, Z], "top_k": [I], "top_p": [F, Z], "min_p": [F, Z], "typical": [F, Z],
                   "penalties": [I, I, F, F, F]}.items():
    f = getattr(lib, "llama_sampler_init_" + name)
    f.restype, f.argtypes = P, args
lib.llama_sampler_apply.argtypes = [P, C.POINTER(Array)]
lib.llama_sampler_accept.argtypes = [P, I]
for name in ("llama_model_load_from_file", "llama_model_get_vocab"):
    getattr(lib, name).restype = P


class ModelParams(C.Structure):
    _fields_ = [("raw", C.c_byte * 512)]


quiet = C.CFUNCTYPE(None, C.c_int, C.c_char_p, P)(lambda *a: None)
lib.llama_log_set(quiet, None)
lib.ggml_backend_load_all()
lib.llama_model_default_params.restype = ModelParams
lib.llama_model_load_from_file.argtypes = [C.c_char_p, ModelParams]
lib.llama_model_get_vocab.argtypes = [P]
params = lib.llama_model_default_params()
vocab = lib.llama_model_get_vocab(lib.llama_model_load_from_file(sys.argv[2].encode(), params))

N = 64
rng = random.Random(7)


def run(name, args, history=()):
    logits = [round(rng.gauss(0, 2.5), 3) for _ in range(N)]
    s = getattr(lib, "llama_sampler_init_" + name)(*args)
    for t in history:
        lib.llama_sampler_accept(s, t)
    data = (Data * N)(*[Data(i, l, 0) for i, l in enumerate(logits)])
    arr = Array(data, N, -1, False)
    lib.llama_sampler_apply(s, C.byref(arr))
    left = sorted((arr.data[i].id, arr.data[i].logit) for i in range(arr.size))
    left = [[i, round(l, 5)] for i, l in left if l > -1e30]
    return {"sampler": name, "args": [a for a in args if not isinstance(a, int) or a < 1 << 31][:6], "logits": logits,
            "history": list(history), "left": left}


out = []
for n in (0.5, 1.0, 2.0):
    out.append(run("top_n_sigma", [n]))
for t, d, e in ((1.0, 0.5, 1.0), (0.7, 0.7, 2.0), (1.5, 0.2, 0.5)):
    out.append(run("temp_ext", [t, d, e]))
for th in (0.02, 0.05, 0.2, 0.45):
    out.append(run("xtc", [1.0, th, 0, 1]))
for tau in (1.0, 3.0, 5.0):
    out.append(run("mirostat", [N, 1, tau, 0.1, 100]))
    out.append(run("mirostat_v2", [1, tau, 0.1]))
for m, b, a, last in ((0.8, 1.75, 2, -1), (1.5, 2.0, 1, -1), (0.5, 1.1, 3, 40)):
    for words in ([5, 6, 7, 8], [1, 2]):
        history = [rng.choice(words) for _ in range(60)]
        c = run("dry", [vocab, m, b, a, last if last > 0 else 4096, None, 0], history)
        c["args"] = [m, b, a, last]
        out.append(c)
for a, last in ((0, 64), (0, 10)):
    history = [rng.choice([5, 6, 7, 8]) for _ in range(60)]
    c = run("dry", [vocab, 0.8, 1.75, a, last, None, 0], history)
    c["args"] = [0.8, 1.75, a, last]
    out.append(c)


def chain(steps):
    history = [rng.randrange(N) for _ in range(30)]
    logits = [round(rng.gauss(0, 2.5), 3) for _ in range(N)]
    data = (Data * N)(*[Data(i, l, 0) for i, l in enumerate(logits)])
    arr = Array(data, N, -1, False)
    for name, args in steps:
        s = getattr(lib, "llama_sampler_init_" + name)(*({"dry": [vocab], "penalties": [N]}.get(name, []) + args + {
            "dry": [None, 0], "xtc": [0, 1], "top_p": [0], "min_p": [0], "typical": [0]}.get(name, [])))
        for t in history:
            lib.llama_sampler_accept(s, t)
        lib.llama_sampler_apply(s, C.byref(arr))
    left = sorted((arr.data[i].id, arr.data[i].logit) for i in range(arr.size))
    return {"chain": steps, "logits": logits, "history": history, "left": [[i, round(l, 5)] for i, l in left if l > -1e30]}


T, TP, TK, MP, TY = ("temp_ext", [2.0, 0.0, 1.0]), ("top_p", [0.8]), ("top_k", [12]), ("min_p", [0.1]), ("typical", [0.7])
X, D, PE, S = ("xtc", [1.0, 0.1]), ("dry", [2.0, 1.75, 1, 64]), ("penalties", [20, 1.5, 0.3, 0.4]), ("top_n_sigma", [1.5])
for steps in ([T, TP], [TP, T], [TK, PE], [PE, TK], [MP, X, T], [X, MP], [TY, TK, T], [TK, TY], [TP, D, PE, T], [T, S, TP], [TP, TP], [T, MP, T],
              [X, X], [PE, D, S, TK, TY, TP, MP, X, T]):
    out.append(chain([list(s) for s in steps]))
json.dump(out, sys.stdout, separators=(",", ":"))
