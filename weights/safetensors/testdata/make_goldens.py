#!/usr/bin/env python3
"""Makes the goldens of the safetensors tests with the reference implementation.

    make_goldens.py DIR    writes types.safetensors, sorted.safetensors into DIR
"""
import os
import sys

import torch
from safetensors.torch import save_file

d = sys.argv[1]

g = torch.Generator().manual_seed(1)


def bits(n, dtype):
    """n bytes of noise seen as dtype."""
    return torch.randint(0, 256, (n,), generator=g, dtype=torch.uint8).view(dtype)


save_file(
    {
        "f64": bits(16, torch.float64),
        "f32": bits(24, torch.float32).reshape(2, 3),
        "f16": bits(12, torch.float16).reshape(1, 2, 3),
        "bf16": bits(16, torch.bfloat16).reshape(2, 2, 2),
        "i64": torch.arange(3),
        "i32": torch.arange(4, dtype=torch.int32).reshape(2, 2),
        "i16": torch.arange(5, dtype=torch.int16),
        "i8": torch.arange(6, dtype=torch.int8),
        "u8": torch.arange(7, dtype=torch.uint8),
        "bool": torch.tensor([True, False, True]),
        "f8_e4m3": bits(4, torch.float8_e4m3fn),
        "f8_e5m2": bits(4, torch.float8_e5m2),
        "scalar": torch.tensor(1.5),
        "empty": torch.zeros(0, 7),
        "na\u00efve \"name\"\\\n<b>": torch.tensor([2.5]),
    },
    os.path.join(d, "types.safetensors"),
    metadata={"format": "pt \u00e9 \"q\" <b> & \n"},
)

save_file(
    {f"model.layers.{i}.{n}": torch.full((2, 2), float(i)).to(t)
     for i in (0, 10, 2) for n, t in (("b.weight", torch.float32), ("a.weight", torch.bfloat16), ("c.bias", torch.float16))},
    os.path.join(d, "sorted.safetensors"),
)
