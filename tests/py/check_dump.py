"""Makes dump.json files for the tests of acc_check."""

import json
import random
from pathlib import Path
from typing import Any, Dict, List, Optional


def tensor(shape: List[int], dtype: str = "float32", low: Any = -2.0, high: Any = 2.0,
           grad: bool = False, **more: Any) -> Dict[str, Any]:
    return {"type": "torch.Tensor", "dtype": f"torch.{dtype}", "shape": shape, "Max": high,
            "Min": low, "Mean": 0.0, "Norm": 1.0, "requires_grad": grad, **more}


def value(thing: Any) -> Dict[str, Any]:
    return {"type": type(thing).__name__, "value": thing}


def forward(*args: Any, output: Optional[List[Any]] = None, **kwargs: Any) -> Dict[str, Any]:
    return {"input_args": list(args), "input_kwargs": kwargs, "output": output or []}


def backward(*grads: Any) -> Dict[str, Any]:
    return {"input": list(grads), "output": []}


def save(path: Path, data: Dict[str, Any], **more: Any) -> Path:
    head = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**head, **more, "data": data}), "utf-8")
    return path


def add(data: Dict[str, Any], name: str, call: Dict[str, Any],
        grads: Optional[Dict[str, Any]] = None) -> None:
    data[f"{name}.forward"] = call
    if grads:
        data[f"{name}.backward"] = grads


def mixture(count: int, seed: int = 1) -> Dict[str, Any]:
    """Calls of many kinds: quick and slow, with and without backward, some that are skipped, some
    that are no match for the reference in their own type."""
    rng = random.Random(seed)
    data: Dict[str, Any] = {}
    for k in range(count):
        dtype = rng.choice(["float32", "float16", "bfloat16", "float64"])
        n = rng.choice([1, 7, 30])
        one = tensor([n, 5], dtype, grad=True)
        kind = k % 12
        if kind == 0:
            add(data, f"Torch.add.{k}", forward(one, tensor([n, 5], dtype)), backward(one))
        elif kind == 1:
            add(data, f"Tensor.matmul.{k}", forward(tensor([64, 96], dtype, grad=True),
                                                    tensor([96, 64], dtype, grad=True)),
                backward(tensor([64, 64], dtype)))
        elif kind == 2:
            add(data, f"Functional.softmax.{k}", forward(one, dim=value(-1)), backward(one))
        elif kind == 3:
            add(data, f"Torch.cat.{k}", forward([one, tensor([2, 5], dtype, grad=True)],
                                                dim=value(0)),
                backward(tensor([n + 2, 5], dtype)))
        elif kind == 4:
            add(data, f"Functional.dropout.{k}", forward(tensor([40, 5], dtype, grad=True),
                                                         p=value(0.5), training=value(True)),
                backward(tensor([40, 5], dtype)))
        elif kind == 5:
            add(data, f"Torch.no_such_thing.{k}", forward(one))
        elif kind == 6:
            add(data, f"Distributed.all_reduce.{k}", forward(one))
        elif kind == 7:
            add(data, f"Torch.exp.{k}", forward(tensor([200, 100], dtype, grad=True)),
                backward(tensor([200, 100], dtype)))
        elif kind == 8:
            add(data, f"Functional.layer_norm.{k}",
                forward(one, [value(5)], tensor([5], dtype, grad=True), tensor([5], dtype)),
                backward(one))
        elif kind == 9:
            add(data, f"Torch.topk.{k}", forward(one, value(2)), backward(tensor([n, 2], dtype)))
        elif kind == 10:  # nothing is left of most digits
            add(data, f"Torch.sin.{k}", forward(tensor([300], "float16", 1e4, 6e4, grad=True)),
                backward(tensor([300], "float16")))
        else:
            add(data, f"Functional.linear.{k}", forward(tensor([8, 16], dtype, grad=True),
                                                        tensor([4, 16], dtype, grad=True),
                                                        bias=tensor([4], dtype, grad=True)),
                backward(tensor([8, 4], dtype)))
    return data
