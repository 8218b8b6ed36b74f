#!/usr/bin/python3
"""Writes examples/ranks/wrong and examples/ranks/drift: a step of four ranks that each compute linear and gelu and add up the
results. In the first, gelu of rank 2 is wrong; in the second, rank 1 has another weight than the others."""

import json
import math
import shutil
from pathlib import Path
from typing import Any, Dict, List

import numpy as np

RANKS = 4
HERE = Path(__file__).resolve().parent


def leaf(folder: Path, name: str, values: np.ndarray, gradient: bool = False) -> Dict[str, Any]:
    np.save(folder / "dump_tensor_data" / f"{name}.npy", values)
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": list(values.shape), "Max": float(values.max()),
            "Min": float(values.min()), "Mean": float(values.mean()), "Norm": float(np.linalg.norm(values)),
            "requires_grad": gradient, "data_name": f"{name}.npy"}


def entry(folder: Path, name: str, inputs: List[np.ndarray], output: np.ndarray) -> Dict[str, Any]:
    return {"input_args": [leaf(folder, f"{name}.input.{i}", x, i > 0) for i, x in enumerate(inputs)], "input_kwargs": {},
            "output": [leaf(folder, f"{name}.output.0", output)]}


def write(name: str, wrong: int, other: int) -> None:
    random = np.random.default_rng(3)
    weight = random.standard_normal((4, 6)).astype(np.float32)
    given = [random.standard_normal((3, 6)).astype(np.float32) for _ in range(RANKS)]
    results = []
    step = HERE / "ranks" / name / "step0"
    shutil.rmtree(step, ignore_errors=True)
    data: List[Dict[str, Any]] = []
    for rank in range(RANKS):
        folder = step / f"rank{rank}"
        (folder / "dump_tensor_data").mkdir(parents=True)
        own = weight.copy()
        own[1, 2] *= np.float32(1.001) if rank == other else 1
        y = (given[rank].astype(np.float64) @ own.T.astype(np.float64)).astype(np.float32)
        z = np.vectorize(lambda v: v * 0.5 * math.erfc(-v / math.sqrt(2)))(y.astype(np.float64))
        z = (z * (1.01 if rank == wrong else 1)).astype(np.float32)
        results.append(z)
        data.append({"Functional.linear.0.forward": entry(folder, "Functional.linear.0.forward", [given[rank], own], y),
                     "Functional.gelu.0.forward": entry(folder, "Functional.gelu.0.forward", [y], z)})
    total = sum(result.astype(np.float64) for result in results).astype(np.float32)
    for rank in range(RANKS):
        folder = step / f"rank{rank}"
        call = entry(folder, "Distributed.all_reduce.0.forward", [results[rank]], total)
        call["exchange"] = {"order": 0, "group_ranks": list(range(RANKS)), "group_id": "0"}
        data[rank]["Distributed.all_reduce.0.forward"] = call
        head = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": "dump_tensor_data"}
        (folder / "dump.json").write_text(json.dumps({**head, "data": data[rank]}, indent=1) + "\n")


if __name__ == "__main__":
    write("wrong", 2, -1)
    write("drift", -1, 1)
