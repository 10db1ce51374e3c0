"""Rounds one matrix as methods do, by their definitions in numpy, for TestMethodsAgainstNumpy.

  python gen_methods.py > methods.json

GPTQ: the inverse of the damped products, its upper Cholesky factor by numpy's lower one
transposed, one column at a time, no lazy updates. On reference grids: the inverse itself,
from which each column is eliminated; OBQ's is computed anew for what is left. AWQ: outputs are computed, not their
products' forms. SqueezeLLM: every cut of a row is tried. QuantEase and SignRound: all slopes
are computed anew at each step. QuIP: dense orthogonal matrices. LoRC: numpy's SVD. Formats are ggml's Q4_0 and Q4_1, written here from their definition.
"""
import json
from statistics import NormalDist
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


def hqq(w, turns=20):
    out = b""
    for row in w.astype(np.float64):
        for b in range(0, COLS, BLOCK):
            x = row[b:b + BLOCK]
            d = (x.max() - x.min()) / 15
            zero = best = -x.min() / d
            least, beta = np.inf, 10.0
            for _ in range(turns):
                q = np.clip(np.floor(x / d + zero + 0.5), 0, 15)
                e = x - (q - zero) * d
                loss = sum(np.abs(e))
                if loss >= least:
                    break
                least, best = loss, zero
                shrunk = np.zeros_like(e)
                on = e != 0
                shrunk[on] = np.sign(e[on]) * np.maximum(np.abs(e[on]) - np.abs(e[on]) ** (0.7 - 1) / beta, 0)
                zero, beta = sum(q - (x - shrunk) / d) / len(x), beta * 1.01
            step, low = np.float64(f16(f32(d))), np.float64(f16(f32(-best * d)))
            out += block_bytes("Q4_1", f32(low), f32(step), np.clip(np.floor((x - low) / step + 0.5), 0, 15))
    return out


half = lambda v: np.float64(f16(f32(v)))


def affine_fit(x, kept, bits):
    x = x[~kept]
    return (half(x.min()), half((x.max() - x.min()) / (2 ** bits - 1))) if len(x) else (0.0, 0.0)


def affine_value(w, low, step, bits):
    return low + step * np.clip(np.floor((w - low) / step + 0.5), 0, 2 ** bits - 1) if step else low


def damped(h, damp=0.01):
    h = h.copy()
    mean = np.mean(np.diag(h))
    i = np.arange(len(h))
    h[i, i] = np.where(np.diag(h) == 0, mean, np.diag(h)) + damp * mean
    return h


def eliminate(w, h, order, kept, bits, group):
    out = np.zeros(w.shape)
    for r, row in enumerate(w.astype(np.float64)):
        inverse, v = np.linalg.inv(damped(h)), row.copy()
        for t, c in enumerate(order):
            if t % group == 0:
                g = order[t:t + group]
                low, step = affine_fit(v[g], kept[r][g], bits)
            q = half(v[c]) if kept[r][c] else affine_value(v[c], low, step, bits)
            out[r, c] = q
            rest = order[t + 1:]
            v[rest] -= (v[c] - q) / inverse[c, c] * inverse[c, rest]
            inverse -= np.outer(inverse[:, c], inverse[c, :]) / inverse[c, c]
    return out


def plain_errors(w, bits, group):
    e = np.zeros(w.shape)
    for r, row in enumerate(w.astype(np.float64)):
        for b in range(0, COLS, group):
            x = row[b:b + group]
            low, step = affine_fit(x, np.zeros(len(x), bool), bits)
            e[r, b:b + group] = [v - affine_value(v, low, step, bits) for v in x]
    return e


def owq(w, h, bits, group, share):
    loss = (plain_errors(w, bits, group) ** 2).sum(0) * np.diag(h)
    weak = np.sort(np.argsort(-loss, kind="stable")[:int(share * COLS + 0.5)])
    kept = np.zeros(w.shape, bool)
    kept[:, weak] = True
    order = np.array([c for c in range(COLS) if c not in weak] + list(weak))
    return eliminate(w, h, order, kept, bits, group)


def spqr(w, h, bits, group, share):
    loss = (plain_errors(w, bits, group) ** 2 / np.diag(np.linalg.inv(damped(h)))).flatten()
    kept = np.zeros(w.size, bool)
    kept[np.argsort(-loss, kind="stable")[:int(share * w.size + 0.5)]] = True
    return eliminate(w, h, np.arange(COLS), kept.reshape(w.shape), bits, group)


def squeezellm(w, h, bits, share):
    w = w.astype(np.float64)
    kept = np.zeros(w.size, bool)
    kept[np.argsort(-np.abs(w).flatten(), kind="stable")[:int(share * w.size + 0.5)]] = True
    kept, out = kept.reshape(w.shape), np.zeros(w.shape)
    for r, row in enumerate(w):
        out[r, kept[r]] = [half(v) for v in row[kept[r]]]
        cols = [c for c in np.argsort(row, kind="stable") if not kept[r][c]]
        x, weight = row[cols], np.diag(h)[cols] + 1e-12
        n = len(x)
        cost = np.full((n + 1, n + 1), np.inf)
        for i in range(n):
            for j in range(i + 1, n + 1):
                mean = np.average(x[i:j], weights=weight[i:j])
                cost[i, j] = (weight[i:j] * (x[i:j] - mean) ** 2).sum()
        best, cuts = cost[0].copy(), []
        for _ in range(2 ** bits - 1):
            table = best[:, None] + cost
            cuts.append(np.argmin(table, axis=0))
            best = table.min(axis=0)
        end = n
        for cut in cuts[::-1] + [np.zeros(n + 1, int)]:
            start = cut[end]
            out[r, [cols[i] for i in range(start, end)]] = half(np.average(x[start:end], weights=weight[start:end]))
            end = start
    return out


def smooth(w, x, strength):
    largest = np.maximum(np.abs(x).max(0).astype(np.float64), 1e-5)
    return np.maximum(largest ** strength / np.maximum(np.abs(w).max(0).astype(np.float64), 1e-5) ** (1 - strength), 1e-5).astype(f32)


def whole(h, damp):
    return h + damp * np.mean(np.diag(h)) * np.eye(len(h))


def read(kind, blob):
    """Codes, lows and steps of rows of blocks."""
    size = 18 if kind == "Q4_0" else 20
    codes, low, step = (np.zeros((ROWS, COLS)) for _ in range(3))
    for k in range(ROWS * COLS // BLOCK):
        b = blob[k * size:(k + 1) * size]
        d, nibbles = f32(np.frombuffer(b[:2], f16)[0]), np.frombuffer(b[-16:], np.uint8)
        least = f32(-8) * d if kind == "Q4_0" else f32(np.frombuffer(b[2:4], f16)[0])
        r, c = divmod(k * BLOCK, COLS)
        codes[r, c:c + BLOCK] = np.concatenate([nibbles & 15, nibbles >> 4])
        # A reader computes in float32: a step is the difference of two values.
        low[r, c:c + BLOCK], step[r, c:c + BLOCK] = least, f32(f32(least + d) - least)
    return codes, low, step


def recoded(kind, blob, codes):
    size, out = 18 if kind == "Q4_0" else 20, b""
    for k, c in enumerate(codes.reshape(-1, BLOCK).astype(np.uint8)):
        out += blob[k * size:(k + 1) * size - 16] + (c[:16] | c[16:] << 4).tobytes()
    return out


def clip(kind, w, h):
    out = b""
    for row in w:
        for b in range(0, COLS, BLOCK):
            x, best = row[b:b + BLOCK], None
            for k in range(10):
                width = f32(1) - f32(k) / f32(20)
                y = np.clip(x, f32(x.min() * width), f32(x.max() * width))
                codes, values = encode(kind, y)
                e = values.astype(np.float64) - x
                loss = e @ h[b:b + BLOCK, b:b + BLOCK] @ e
                if best is None or loss < best[0]:
                    best = loss, y, codes
            _, _, low, step = fit(kind, best[1])
            out += block_bytes(kind, low, step, best[2])
    return out


def quantease(kind, w, h, sweeps=20, damp=0.01):
    blob = gptq(kind, w, h, False, damp)
    codes, low, step = read(kind, blob)
    h = whole(h, damp)
    for r, row in enumerate(w.astype(np.float64)):
        for _ in range(sweeps):
            before = codes[r].copy()
            for t in range(COLS):
                d = low[r] + codes[r] * step[r] - row
                best = row[t] + d[t] - d @ h[:, t] / h[t, t]
                if step[r, t] == 0:
                    continue
                codes[r, t] = np.clip(np.floor((best - low[r, t]) / step[r, t] + 0.5), 0, 15)
            if (before == codes[r]).all():
                break
    return recoded(kind, blob, codes)


def signround(kind, w, h, turns=200):
    blob = clip(kind, w, h)
    codes, low, step = read(kind, blob)
    for r, row in enumerate(w.astype(np.float64)):
        at, v = (row - low[r]) / step[r], np.zeros(COLS)
        error = lambda q: low[r] + q * step[r] - row
        best, least, q = codes[r].copy(), error(codes[r]) @ h @ error(codes[r]), codes[r].copy()
        for turn in range(turns):
            slope = h @ error(q)
            free = np.floor(at + v + 0.5)
            move = (slope != 0) & (free >= 0) & (free <= 15)
            v = np.where(move, np.clip(v - (1 - turn / turns) / turns * np.sign(slope) * np.sign(step[r]), -0.5, 0.5), v)
            q = np.where(move, np.clip(np.floor(at + v + 0.5), 0, 15), q)
            loss = error(q) @ h @ error(q)
            if loss < least:
                best, least = q.copy(), loss
        codes[r] = best
    return recoded(kind, blob, codes)


def obq(w, h, bits, group, damp=0.01):
    out, h = np.zeros(w.shape), damped(h, damp)
    for r, row in enumerate(w.astype(np.float64)):
        grid = [affine_fit(row[b:b + group], np.zeros(group, bool), bits) for b in range(0, COLS, group)]
        rounded = lambda c: affine_value(v[c], *grid[c // group], bits)
        v, left = row.copy(), list(range(COLS))
        while left:
            inverse = np.linalg.inv(h[np.ix_(left, left)])
            i = int(np.argmin([(v[c] - rounded(c)) ** 2 / inverse[k, k] for k, c in enumerate(left)]))
            c = left[i]
            q = out[r, c] = rounded(c)
            v[left] -= (v[c] - q) / inverse[i, i] * inverse[i]
            left.remove(c)
    return out


def lorc(w, bits, group, rank):
    e = plain_errors(w, bits, group)
    u, s, v = np.linalg.svd(e)
    a, b = u[:, :rank] * np.sqrt(s[:rank]), v[:rank] * np.sqrt(s[:rank])[:, None]
    return w - e + a.astype(f16).astype(np.float64) @ b.astype(f16).astype(np.float64)


def orthogonal(n):
    """A shuffled, signed Hadamard matrix, and what it was made of."""
    block = n & -n
    had = np.ones((1, 1))
    while len(had) < block:
        had = np.kron(np.array([[1, 1], [1, -1]]), had)
    order, sign = rng.permutation(n), rng.integers(0, 2, n) * 2 - 1
    pick = np.zeros((n, n))
    pick[np.arange(n), order] = sign[order]
    return np.kron(np.eye(n // block), had / np.sqrt(block)) @ pick, order.tolist(), sign.tolist()


def quip(w, h, bits, left, right):
    x, h = left @ w @ right.T, damped(right @ h @ right.T)
    last, best = 2 ** bits - 1, None
    for reach in (1.4, 1.6, 1.8, 2, 2.2, 2.4, 2.7, 3):
        out = np.zeros(x.shape)
        for r, row in enumerate(x):
            top, v, inverse = half(reach * np.sqrt(np.mean(row ** 2))), row.copy(), np.linalg.inv(h)
            for t in range(COLS):
                out[r, t] = top * (2 * np.clip(np.floor((v[t] / top + 1) / 2 * last + 0.5), 0, last) / last - 1)
                v[t + 1:] -= (v[t] - out[r, t]) / inverse[t, t] * inverse[t, t + 1:]
                inverse -= np.outer(inverse[:, t], inverse[t, :]) / inverse[t, t]
        loss = np.trace((out - x) @ h @ (out - x).T)
        if best is None or loss < best[0]:
            best = loss, out
    return left.T @ best[1] @ right


def nf4(w, double):
    quantile, end = NormalDist().inv_cdf, 0.9677083
    values = [quantile(p) for p in np.linspace(end, 0.5, 9)[:-1]] + [-quantile(p) for p in np.linspace(end, 0.5, 8)[:-1]] + [0]
    values = np.sort(values) / max(values)
    starts = range(0, COLS, 64)
    scales = np.array([[np.abs(row[b:b + 64]).max() for b in starts] for row in w.astype(np.float64)])
    if double:
        mean = np.float64(f32(scales.mean()))
        step = np.float64(f32(np.abs(scales - mean).max() / 127))
        scales = mean + step * np.rint((scales - mean) / step)
    wide = np.repeat(scales, [min(64, COLS - b) for b in starts], axis=1)
    return values[np.abs(values[None, None] * wide[..., None] - w[..., None]).argmin(-1)] * wide


def absmean(w):
    scale = np.abs(w.astype(np.float64)).mean(1, keepdims=True)
    return np.clip(np.rint(w / scale), -1, 1) * half(scale)


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
golden["smooth"] = [float(v) for v in smooth(W, X, 0.5)]
golden["hqq"] = hqq(W).hex()
shorter = lambda a: [float(f"{v:.7g}") for v in a.flatten()]
golden["reference"] = {
    "gptq-reference": shorter(eliminate(W, H, np.arange(COLS), np.zeros(W.shape, bool), 3, 32)),
    "owq": shorter(owq(W, H, 3, 32, 0.04)),
    "spqr": shorter(spqr(W, H, 3, 32, 0.02)),
    "squeezellm": shorter(squeezellm(W, H, 3, 0.01)),
    "obq": shorter(obq(W, H, 3, 32)),
    "rtn-reference+lorc": shorter(lorc(W.astype(np.float64), 3, 32, 3)),
    "nf4": shorter(nf4(W.astype(np.float64), False)),
    "nf4-double": shorter(nf4(W.astype(np.float64), True)),
}
for name, method in {"clip": clip, "quantease": quantease, "signround": signround}.items():
    golden[name] = {kind: method(kind, W, H).hex() for kind in ("Q4_0", "Q4_1")}
(left, *left_made), (right, *right_made) = orthogonal(ROWS), orthogonal(COLS)
golden["quip"] = {"left": left_made, "right": right_made, "values": shorter(quip(W.astype(np.float64), H, 2, left, right))}
golden["absmean"] = shorter(absmean(W.flatten()[:1024].reshape(4, 256)))
print(json.dumps(golden, separators=(",", ":")))
