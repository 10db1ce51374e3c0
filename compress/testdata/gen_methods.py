"""Rounds one matrix as GPTQ and AWQ do, by their definitions in numpy, for TestMethodsAgainstNumpy.

  python gen_methods.py > methods.json

GPTQ: the inverse of the damped products, its upper Cholesky factor by numpy's lower one
transposed, one column at a time, no lazy updates. AWQ: outputs are computed, not their
products' forms. Formats are ggml's Q4_0 and Q4_1, written here from their definition.
"""
import json
import numpy as np

ROWS, COLS, SAMPLES, BLOCK = 12, 96, 160, 32
f32, f16 = np.float32, np.float16


def fit(kind, x):
    """Scale as it is before it is stored, and low and step as a reader sees them."""
    x = x.astype(f32)
    if kind == "Q4_0":
        far = x[np.argmax(np.abs(x))]
        d = f32(far / f32(-8))
        step = f32(f16(d))
        return d, f32(0), f32(-8) * step, step
    d = f32((x.max() - x.min()) / f32(15))
    return d, x.min(), f32(f16(x.min())), f32(f16(d))


def encode(kind, x):
    """Codes as ggml's quantizer chooses them, and the values that they stand for."""
    x = x.astype(f32)
    d, least, low, step = fit(kind, x)
    inverse = f32(1) / d if d else f32(0)
    if kind == "Q4_0":
        codes = np.minimum(15, np.trunc((x * inverse).astype(f32) + f32(8.5)))
    else:
        codes = np.minimum(15, np.trunc(((x - least) * inverse).astype(f32) + f32(0.5)))
    return codes, (low + (codes.astype(f32) * step).astype(f32)).astype(f32)


def block_bytes(kind, low, step, codes):
    codes = codes.astype(np.uint8)
    head = f16(step).tobytes() + (f16(low).tobytes() if kind == "Q4_1" else b"")
    return head + (codes[:16] | codes[16:] << 4).tobytes()


def gptq(kind, w, h, act_order, damp=0.01):
    h, w = h.copy(), w.astype(np.float64).copy()
    n = len(h)
    mean = np.mean(np.diag(h))
    dead = np.diag(h) == 0
    h[dead, dead] = mean
    order = np.argsort(-np.diag(h) if not dead.any() else -np.where(dead, 0, np.diag(h)), kind="stable") if act_order else np.arange(n)
    h[np.arange(n), np.arange(n)] += damp * mean
    u = np.linalg.cholesky(np.linalg.inv(h[np.ix_(order, order)])).T
    out = b""
    for row in w:
        grids = [fit(kind, row[b:b + BLOCK]) for b in range(0, n, BLOCK)]
        v, codes = row[order].copy(), np.zeros(n)
        for t, c in enumerate(order):
            b = c // BLOCK
            if not act_order and c % BLOCK == 0:
                grids[b] = fit(kind, v[c:c + BLOCK])
            low, step = float(grids[b][2]), float(grids[b][3])
            codes[c] = min(max(np.floor((v[t] - low) / step + 0.5), 0), 15)
            v[t:] -= (v[t] - (low + codes[c] * step)) / u[t, t] * u[t, t:]
        for b, (_, _, low, step) in enumerate(grids):
            out += block_bytes(kind, low, step, codes[b * BLOCK:(b + 1) * BLOCK])
    return out


def quantize(kind, w):
    codes, values = np.zeros(w.shape), np.zeros(w.shape, f32)
    for r, row in enumerate(w):
        for b in range(0, len(row), BLOCK):
            codes[r, b:b + BLOCK], values[r, b:b + BLOCK] = encode(kind, row[b:b + BLOCK])
    return codes, values


def awq(kind, w, x):
    magnitudes = np.abs(x.astype(np.float64)).mean(0)
    best = None
    for k in range(20):
        s = np.maximum(magnitudes ** (k / 20), 1e-4)
        s = (s / np.sqrt(s.max() * s.min())).astype(f32)
        wide = (w * s).astype(f32)
        error = quantize(kind, wide)[1].astype(np.float64) / s - w
        loss = ((x.astype(np.float64) @ error.T) ** 2).sum()
        if best is None or loss < best[0]:
            best = loss, k, s, wide
    _, k, s, wide = best
    codes, _ = quantize(kind, wide)
    out = b""
    for r in range(len(wide)):
        for b in range(0, COLS, BLOCK):
            _, _, low, step = fit(kind, wide[r, b:b + BLOCK])
            out += block_bytes(kind, low, step, codes[r, b:b + BLOCK])
    return k, s, out


rng = np.random.default_rng(14)
w = np.round(rng.normal(size=(ROWS, COLS)) * 64).astype(int)
mix = rng.normal(size=(24, COLS)) * np.exp(rng.normal(size=COLS))
x = np.round((rng.normal(size=(SAMPLES, 24)) @ mix + 0.5 * rng.normal(size=(SAMPLES, COLS))) * 16).astype(int)
x[:, 37] = 0  # a column that meets nothing
W, X = (w / 1024).astype(f32), (x / 16).astype(f32)
H = X.astype(np.float64).T @ X.astype(np.float64)
golden = {"rows": ROWS, "cols": COLS, "w_1024": w.flatten().tolist(), "samples": SAMPLES, "x_16": x.flatten().tolist(), "gptq": [], "awq": []}
for kind in ("Q4_0", "Q4_1"):
    for act_order in (False, True):
        golden["gptq"].append({"type": kind, "act_order": act_order, "bytes": gptq(kind, W, H, act_order).hex()})
    k, s, out = awq(kind, W, X)
    golden["awq"].append({"type": kind, "exponent": k, "factors": [float(v) for v in s], "bytes": out.hex()})
print(json.dumps(golden, separators=(",", ":")))
