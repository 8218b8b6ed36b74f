"""The pre-check: many small APIs, the layers of a model against PyTorch, and the reference operators.

As a program (with PyTorch on OpenBLAS in its library path) it times the layers in PyTorch: forward and backward, in the
recorded type and in float64; prints the seconds of both together.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OPENBLAS = Path("/usr/lib/x86_64-linux-gnu/openblas-pthread")
SMALL = 1000

Tensor = dict[str, Any]


@dataclass
class Precheck:
    rate: float = 0.0  # small APIs a second
    plumb: float = 0.0  # seconds for the layers
    torch: float = 0.0
    opinions: dict[str, float] = field(default_factory=dict)  # --verdict both, as times the plain check
    references: dict[str, tuple[float, float]] = field(default_factory=dict)  # seconds, work


def tensor(*shape: int, dtype: str = "float32", low: float = -1, high: float = 1, grad: bool = True) -> Tensor:
    return {"type": "torch.Tensor", "dtype": f"torch.{dtype}", "shape": list(shape), "Max": high, "Min": low,
            "Mean": 0.0, "Norm": 1.0, "requires_grad": grad}


def number(value: int) -> dict[str, Any]:
    return {"type": "int", "value": value}


def layers() -> list[tuple[str, list[Any], list[int]]]:
    """What a GPT-style layer of width 512 and a ResNet stage call: name, arguments, shape of the output."""
    b, s, w, h = 4, 256, 512, 8
    d, v = w // h, 8000
    calls: list[tuple[str, list[Any], list[int]]] = [
        ("Functional.embedding", [tensor(b, s, dtype="int64", low=0, high=v - 1, grad=False), tensor(v, w)], [b, s, w]),
        ("Functional.layer_norm", [tensor(b, s, w), [number(w)], tensor(w), tensor(w)], [b, s, w]),
        ("Functional.linear", [tensor(b, s, w), tensor(3 * w, w), tensor(3 * w)], [b, s, 3 * w]),
        ("Tensor.transpose", [tensor(b, s, h, d), number(1), number(2)], [b, h, s, d]),
        ("Torch.matmul", [tensor(b, h, s, d), tensor(b, h, d, s)], [b, h, s, s]),
        ("Functional.softmax", [tensor(b, h, s, s), number(-1)], [b, h, s, s]),
        ("Torch.matmul", [tensor(b, h, s, s), tensor(b, h, s, d)], [b, h, s, d]),
        ("Tensor.__add__", [tensor(b, s, w), tensor(b, s, w)], [b, s, w]),
        ("Functional.linear", [tensor(b, s, w), tensor(4 * w, w), tensor(4 * w)], [b, s, 4 * w]),
        ("Functional.gelu", [tensor(b, s, 4 * w)], [b, s, 4 * w]),
        ("Functional.linear", [tensor(b, s, 4 * w), tensor(w, 4 * w), tensor(w)], [b, s, w]),
        ("Functional.linear", [tensor(b * s, w), tensor(v, w)], [b * s, v]),
        ("Functional.cross_entropy", [tensor(b * s, v), tensor(b * s, dtype="int64", low=0, high=v - 1, grad=False)],
         []),
        ("Functional.conv2d", [tensor(8, 64, 28, 28), tensor(64, 64, 3, 3), tensor(64), number(1), number(1)],
         [8, 64, 28, 28]),
        ("Functional.relu", [tensor(8, 64, 28, 28)], [8, 64, 28, 28]),
        ("Functional.max_pool2d", [tensor(8, 64, 56, 56), number(3), number(2), number(1)], [8, 64, 28, 28]),
    ]
    return calls * 4


def small() -> list[tuple[str, list[Any], list[int]]]:
    kinds = [
        ("Torch.add", [tensor(16, 32), tensor(16, 32)], [16, 32]),
        ("Tensor.__mul__", [tensor(16, 32), tensor(32)], [16, 32]),
        ("Functional.relu", [tensor(16, 32)], [16, 32]),
        ("Functional.softmax", [tensor(16, 32), number(-1)], [16, 32]),
        ("Functional.layer_norm", [tensor(16, 32), [number(32)], tensor(32), tensor(32)], [16, 32]),
        ("Functional.linear", [tensor(16, 32), tensor(64, 32), tensor(64)], [16, 64]),
        ("Torch.matmul", [tensor(4, 16, 32), tensor(4, 32, 16)], [4, 16, 16]),
        ("Torch.cat", [[tensor(16, 32), tensor(16, 32)], number(-1)], [16, 64]),
        ("Tensor.transpose", [tensor(16, 32), number(0), number(1)], [32, 16]),
        ("Tensor.sum", [tensor(16, 32), number(-1)], [16]),
    ]
    return [kinds[k % len(kinds)] for k in range(SMALL)]


def write_dump(path: Path, calls: list[tuple[str, list[Any], list[int]]]) -> None:
    data: dict[str, Any] = {}
    for k, (name, args, out) in enumerate(calls):
        output = tensor(*out)
        data[f"{name}.{k}.forward"] = {"input_args": args, "input_kwargs": {}, "output": [output]}
        data[f"{name}.{k}.backward"] = {"input": [tensor(*out, grad=False)], "output": []}
    path.write_text(json.dumps({"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
                                "data": data}))


def op_speed(program: Path) -> dict[str, tuple[float, float]]:
    text = subprocess.run([str(program)], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for line in text.splitlines():
        name, took, work = line.split()
        found[name] = float(took), float(work)
    return found


def torch_seconds() -> float:
    """In a process of its own, where PyTorch finds OpenBLAS."""
    places = {**os.environ, "LD_LIBRARY_PATH": f"{OPENBLAS}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    done = subprocess.run([sys.executable, __file__], env=places, check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout)


def main() -> None:
    import torch
    import torch.nn.functional as F

    def make(value: Any, dtype: torch.dtype) -> Any:
        if isinstance(value, list):
            return [make(v, dtype) for v in value]
        if "value" in value:
            return value["value"]
        if value["dtype"] == "torch.int64":
            return torch.randint(value["Min"], value["Max"] + 1, value["shape"])
        return torch.rand(value["shape"], dtype=dtype).mul_(2).sub_(1).requires_grad_(value["requires_grad"])

    def function(name: str) -> Any:
        prefix, api = name.split(".")
        if prefix == "Tensor":
            return lambda x, *a: getattr(x, api)(*a)
        return getattr(F if prefix == "Functional" else torch, api)

    total = 0.0
    for dtype in (torch.float32, torch.float64):
        for name, args, _ in layers():
            values = [make(a, dtype) for a in args]
            call, best = function(name), float("inf")
            for _ in range(3):
                start = time.perf_counter()
                out = call(*values)
                out.backward(torch.ones_like(out))
                best = min(best, time.perf_counter() - start)
            total += best
    print(total)


if __name__ == "__main__":
    main()
