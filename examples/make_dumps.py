#!/usr/bin/env python3
"""Makes the small dumps that the pages in docs/ use: examples/dumps, ranks, torchair and checkpoint.

All of them show one forward pass of a tiny network, once as a GPU computed it and once as an NPU did
with a planted fault: its gelu is the shortcut x * sigmoid(1.702 x), and its float16 exp overflows.

    dumps/tensor, statistics, md5   dump.json with values, with statistics, with checksums
    dumps/calls                     the NPU's statistics, with one more call at the beginning
    dumps/modules                   modules that have other names on the other side (names.yaml)
    ranks/npu, gpu, overflow        two ranks; the gelu of rank 1 is wrong, or its mul overflows
    torchair/ge, fx                 two ranks of a graph of two operators; the mul of rank 1 is wrong
    checkpoint/parallel, single     a Megatron checkpoint in two parts and in one; one weight is wrong

Needs numpy, and torch for the checkpoints:

    python3 examples/make_dumps.py && git diff --stat examples
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import zlib
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
sys.path.insert(0, str(ROOT / "tests" / "py"))
from ge_dump import Op, Tensor, fx_folder, ge_folder, write_fx, write_ge, write_graph  # noqa: E402

Array = np.ndarray
GROUP = {"group": {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "default"}}


def each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of one number, for arrays, in float64 and rounded once."""
    return lambda x: np.vectorize(function, otypes=[np.float64])(x).astype(x.dtype)


def exp(x: float) -> float:
    return math.exp(x)


def gelu(x: float) -> float:
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def gelu_shortcut(x: float) -> float:
    return x / (1 + math.exp(-1.702 * x))


def layer_norm(x: Array) -> Array:
    y = x.astype(np.float64)
    y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)
    return y.astype(x.dtype)


def linear(x: Array, weight: Array) -> Array:
    return (x.astype(np.float64) @ weight.T.astype(np.float64)).astype(x.dtype)


class Dump:
    """One dump.json and what lies beside it."""

    def __init__(self, folder: Path, task: str = "statistics", checksums: bool = False) -> None:
        self.folder, self.task, self.checksums = folder, task, checksums
        self.data: dict[str, Any] = {}
        self.counts: dict[str, int] = {}

    def tensor(self, value: Array, place: str) -> dict[str, Any]:
        exact = value.astype(np.float64)
        entry = {"type": "torch.Tensor", "dtype": f"torch.{value.dtype}", "shape": list(value.shape),
                 "Max": float(exact.max()), "Min": float(exact.min()), "Mean": float(exact.mean()),
                 "Norm": float(np.sqrt((exact**2).sum())), "requires_grad": False}
        if self.checksums:
            entry["md5"] = f"{zlib.crc32(value.tobytes()):08x}"
        if self.task == "tensor":
            entry["data_name"] = f"{place}.npy"
            path = self.folder / "dump_tensor_data" / entry["data_name"]
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, value)
        return entry

    def call(self, name: str, inputs: list[Array], output: Array,
             keywords: Optional[dict[str, Any]] = None) -> Array:
        """Records the next call of that name; returns the output."""
        number = self.counts.get(name, 0)
        self.counts[name] = number + 1
        call = f"{name}.forward.{number}" if name.startswith("Module.") else f"{name}.{number}.forward"
        self.data[call] = {
            "input_args": [self.tensor(x, f"{call}.input.{i}") for i, x in enumerate(inputs)],
            "input_kwargs": keywords or {},
            "output": [self.tensor(output, f"{call}.output.0")]}
        return output

    def write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        files = "dump_tensor_data" if self.task == "tensor" else None
        dump = {"task": self.task, "level": "L1", "framework": "pytorch", "dump_data_dir": files,
                "data": self.data}
        stack = {"0": [list(self.data), ["File model.py, line 12, in forward, \n y = self.op(x)"]]}
        construct = {call: "Module.block.Block.forward.0" for call in self.data}
        for name, content in (("dump", dump), ("stack", stack), ("construct", construct)):
            (self.folder / f"{name}.json").write_text(json.dumps(content) + "\n")


def numbers(*shape: int, seed: int) -> Array:
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def network(dump: Dump, npu: bool, extra: bool = False) -> None:
    """The functions of one block, forward."""
    x = numbers(4, 8, seed=0)
    up, down = numbers(16, 8, seed=1) / 3, numbers(8, 16, seed=2) / 4
    if extra:  # a warm-up of the matrix product, which moves the numbers of all later ones
        ones = np.ones_like(x)
        dump.call("Functional.linear", [ones, up], linear(ones, up))
    y = dump.call("Functional.layer_norm", [x], layer_norm(x))
    y = dump.call("Functional.linear", [y, up], linear(y, up))
    y = dump.call("Functional.gelu", [y], each(gelu_shortcut if npu else gelu)(y))
    y = dump.call("Functional.linear", [y, down], linear(y, down))
    y = dump.call("Torch.add", [x, y], x + y)
    z = np.linspace(0, 11, 12, dtype=np.float16).reshape(3, 4)
    e = each(exp)(z)
    if npu:
        e[-1, -1] = np.inf
    dump.call("Torch.exp", [z], e)
    dump.write()


def modules(dump: Dump, names: tuple[str, str]) -> None:
    x = numbers(4, 8, seed=0)
    for name, seed in zip(names, (1, 2)):
        weight = numbers(8, 8, seed=seed) / 3
        x = dump.call(f"Module.{name}", [x], linear(x, weight))
    dump.write()


def ranks(folder: Path, wrong_gelu: bool = False, overflow: bool = False) -> None:
    """Two ranks that exchange tensors twice."""
    dumps = [Dump(folder / "step0" / f"rank{rank}") for rank in (0, 1)]
    x = [numbers(4, 8, seed=10 + rank) for rank in (0, 1)]
    weight = numbers(8, 8, seed=12) / 3
    for rank, dump in enumerate(dumps):
        x[rank] = dump.call("Functional.linear", [x[rank], weight], linear(x[rank], weight))
        wrong = wrong_gelu and rank == 1
        x[rank] = dump.call("Functional.gelu", [x[rank]], each(gelu)(x[rank]) * (2 if wrong else 1))
    total = x[0] + x[1]
    for rank, dump in enumerate(dumps):
        x[rank] = dump.call("Distributed.all_reduce", [x[rank]], total, GROUP)
        y = x[rank] * 2
        if overflow and rank == 1:
            y[0, 0] = np.inf
        x[rank] = dump.call("Torch.mul", [x[rank]], y)
    both = np.concatenate(x)
    for rank, dump in enumerate(dumps):
        dump.call("Distributed.all_gather", [x[rank]], both, GROUP)
        dump.write()


def torchair(folder: Path) -> None:
    """A GE dump of the graph (x + y) * y, and the FX dump of it."""
    for rank in (0, 1):
        write_graph(folder / "ge", [Op("x"), Op("y"),
                                    Op("Add", ["x", "y"], ["add-aten.add.Tensor.OUTPUT.0"]),
                                    Op("Mul", ["Add", "y"], ["mul-aten.mul.Tensor.OUTPUT.0"])], rank=rank)
        x, y = numbers(4, 8, seed=20 + rank), numbers(4, 8, seed=22 + rank)
        add = x + y
        mul = add * y
        fx = fx_folder(folder / "fx", rank=rank)
        write_fx(fx, "add-aten.add.Tensor", [x, y], [add])
        write_fx(fx, "mul-aten.mul.Tensor", [add, y], [mul])
        x, y, add, mul = (each(lambda v: float(np.float16(v)))(v) for v in (x, y, add, mul))
        if rank == 1:
            mul = mul * np.float32(1.05)
        ge = ge_folder(folder / "ge", rank=rank)
        write_ge(ge, "Add", "Add", 1, [Tensor(x), Tensor(y)], [Tensor(add)])
        write_ge(ge, "Mul", "Mul", 2, [Tensor(add), Tensor(y)], [Tensor(mul)])


def checkpoint(folder: Path) -> None:
    """One layer, split over two tensor parallel ranks, and whole."""
    layer = "decoder.layers.0"
    rows = {"embedding.word_embeddings.weight": (12, 8), f"{layer}.self_attention.linear_qkv.weight": (24, 8),
            f"{layer}.mlp.linear_fc1.weight": (16, 8)}
    columns = {f"{layer}.self_attention.linear_proj.weight": (8, 8), f"{layer}.mlp.linear_fc2.weight": (8, 16)}
    whole = {f"{layer}.input_layernorm.weight": (8,), **rows, **columns}
    model = {name: torch.from_numpy(numbers(*shape, seed=30 + i)) for i, (name, shape) in enumerate(whole.items())}

    def save(side: str, part: str, weights: dict[str, torch.Tensor], size: int) -> None:
        path = folder / side / "iter_0000010" / part / "model_optim_rng.pt"
        path.parent.mkdir(parents=True, exist_ok=True)
        arguments = argparse.Namespace(tensor_model_parallel_size=size, pipeline_model_parallel_size=1)
        torch.save({"args": arguments, "model": weights, "iteration": 10}, path)
        (folder / side / "latest_checkpointed_iteration.txt").write_text("10\n")

    for part in (0, 1):
        save("parallel", f"mp_rank_0{part}", {
            name: weight.chunk(2, 0 if name in rows else 1)[part].clone() if name in {**rows, **columns} else weight
            for name, weight in model.items()}, 2)
    other = {**model, f"{layer}.mlp.linear_fc1.weight": model[f"{layer}.mlp.linear_fc1.weight"].flip(0).clone()}
    other[f"{layer}.extra.weight"] = torch.zeros(3)
    save("single", "mp_rank_00", other, 1)


def main() -> None:
    for name in ("dumps", "ranks", "torchair", "checkpoint"):
        shutil.rmtree(EXAMPLES / name, ignore_errors=True)
    dumps = EXAMPLES / "dumps"
    for side in ("gpu", "npu"):
        network(Dump(dumps / "tensor" / side, task="tensor"), side == "npu")
        network(Dump(dumps / "statistics" / side), side == "npu")
        network(Dump(dumps / "md5" / side, checksums=True), side == "npu")
    network(Dump(dumps / "calls" / "npu"), True, extra=True)
    modules(Dump(dumps / "modules" / "gpu"), ("up.Linear", "down.Linear"))
    modules(Dump(dumps / "modules" / "npu"), ("dense1.ColumnLinear", "dense2.RowLinear"))
    (dumps / "modules" / "names.yaml").write_text(
        "dense1.ColumnLinear: up.Linear\ndense2.RowLinear: down.Linear\n")
    ranks(EXAMPLES / "ranks" / "gpu")
    ranks(EXAMPLES / "ranks" / "npu", wrong_gelu=True)
    ranks(EXAMPLES / "ranks" / "overflow", overflow=True)
    torchair(EXAMPLES / "torchair")
    checkpoint(EXAMPLES / "checkpoint")


if __name__ == "__main__":
    main()
