"""Trainings on several processes with plain all_reduce, recorded by plumb, with a fault where one is wanted.

rank_training.py RANK WORLD STORE CASES: CASES is a JSON list of objects with `path` of the dump, `kind` ("healthy" or one of
PLANTS), `bad`, the rank that has the fault, `place`, which call, parameter or exchange it is in, `seed` of model and data,
and `task` and `level` of the capture. All cases run in one process after the other.
"""

import contextlib
import json
import sys
from typing import Any, Callable, Dict, Iterator

import torch
import torch.distributed as dist
from torch import nn

from plumb import PrecisionDebugger

PLANTS = ("operator", "collective", "missing", "parameter", "nan")
OPERATORS = ("gelu", "layer_norm", "linear")
BLOCKS = 3  # each with a norm, and two linear layers round a gelu


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    own = vars(owner).get(name)  # what getattr gives of a C++ class is no method any more
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


def counted(name: str, place: int, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """All calls of a function but number `place` are right; the result of that one goes through `change`."""
    right, seen = getattr(nn.functional, name), [0]

    def call(*args: Any, **kwargs: Any) -> torch.Tensor:
        result = right(*args, **kwargs)
        seen[0] += 1
        return change(result) if seen[0] == place + 1 else result
    return replaced(nn.functional, name, call)


def spoiled_sum(place: int, missing: bool) -> Any:
    """all_reduce number `place` gives another sum at this rank: a part of it a little too large, or this rank's own numbers."""
    group = type(dist.distributed_c10d._get_default_group())
    right, seen = group.allreduce, [0]

    def allreduce(self: Any, tensors: Any, *rest: Any) -> Any:
        own = tensors[0].clone()
        work = right(self, tensors, *rest)
        work.wait()
        if seen[0] == place and missing:
            tensors[0].copy_(own)
        elif seen[0] == place:
            tensors[0].view(-1)[: max(1, tensors[0].numel() // 4)] *= 1.001
        seen[0] += 1
        return work
    return replaced(group, "allreduce", allreduce)


def with_nan(x: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.arange(x.numel()).view_as(x) == 5, torch.tensor(float("nan")), x)


def fault(case: Dict[str, Any], model: nn.Module) -> Any:
    kind, place = case["kind"], case["place"]
    if kind == "operator":
        return counted(OPERATORS[case["seed"] % 3], place, lambda x: x * 1.01)
    if kind == "nan":
        return counted("gelu", place, with_nan)
    if kind == "parameter":
        list(model.parameters())[place].data.view(-1)[0] *= 1 + 2.0 ** -7
    if kind in ("collective", "missing"):
        return spoiled_sum(place, kind == "missing")
    return contextlib.nullcontext()


def run(case: Dict[str, Any], rank: int, world: int) -> None:
    torch.manual_seed(case["seed"])
    model = nn.Sequential(*[Block() for _ in range(BLOCKS)], nn.Linear(16, 4))
    for p in model.parameters():  # as after some training: no constants
        p.data += 0.1 * torch.randn_like(p)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    debugger = PrecisionDebugger(dump_path=case["path"], task=case["task"], level=case["level"])
    torch.manual_seed(1000 * case["seed"] + rank)
    with fault(case, model) if rank == case["bad"] else contextlib.nullcontext():
        for _ in range(2):
            debugger.start(model)
            loss = nn.functional.mse_loss(model(torch.randn(8, 16)), torch.randn(8, 4))
            loss.backward()
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= world
            debugger.stop()
            optimiser.step()
            optimiser.zero_grad()
            debugger.step()
    debugger._close_quietly()


def main() -> None:
    rank, world = int(sys.argv[1]), int(sys.argv[2])
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=rank, world_size=world)
    torch.set_num_threads(1)
    with open(sys.argv[4]) as file:
        for case in json.load(file):
            run(case, rank, world)
    dist.barrier()


if __name__ == "__main__":
    main()
