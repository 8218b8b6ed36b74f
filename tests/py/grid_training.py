"""Trainings on a grid of 4 ranks, recorded by plumb, with a wrong shard of a weight at one rank where one is wanted.

Ranks 0, 1 and ranks 2, 3 have the shards of one model (tensor parallel, as Megatron cuts it); ranks 0, 2 and ranks 1, 3 have
the same shards and see other data. grid_training.py RANK WORLD STORE CASES: CASES is a JSON list of objects with `path` of the
dump, `kind` ("healthy" or one of PLANTS), `bad`, the rank with the wrong shard, `place`, which parameter ("all": every one),
`seed`, `level` and `task` of the capture, and `reduce`: how gradients are reduced ("each" or "flat": with recorded calls, "ddp").
`parts`: into how many the model is cut (1, 2 or 4); `rows` of data; `plain`: parameters as PyTorch begins with; `experts`:
each replica has layers of its own, which nobody reduces.
"""

import json
import sys
from typing import Any, Dict, List, Tuple

import torch
import torch.distributed as dist
from torch import nn

from plumb import PrecisionDebugger

PLANTS = ("few", "scaled", "negated", "permuted", "fresh", "slice")
WIDTH, INNER, BLOCKS, ROWS = 16, 32, 2, 8
SHARDED = (2, 3, 4)  # of the five parameters of the first block: what ranks have parts of


class Sum(torch.autograd.Function):
    """The sum over a group, on the way forward."""
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Any) -> torch.Tensor:
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad, None


class Copy(torch.autograd.Function):
    """The sum over a group, on the way back."""
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        grad = grad.clone()
        dist.all_reduce(grad, group=ctx.group)
        return grad, None


class Block(nn.Module):
    def __init__(self, group: Any, parts: int, experts: bool) -> None:
        super().__init__()
        self.expert = nn.Linear(WIDTH, WIDTH) if experts else nn.Identity()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, INNER // parts), nn.Linear(INNER // parts, WIDTH, bias=False)
        self.group = group

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(Copy.apply(self.norm(x), self.group))
        x = self.expert(x)
        return x + Sum.apply(self.down(nn.functional.gelu(y)), self.group)


def build(case: Dict[str, Any], part: int, replica: int, group: Any) -> nn.Module:
    """The same weights for all ranks of one part, but for experts."""
    torch.manual_seed(case["seed"])
    model = nn.Sequential(*[Block(group, case["parts"], case["experts"]) for _ in range(BLOCKS)], nn.Linear(WIDTH, 4))
    for name, p in model.named_parameters():
        parts = torch.randn(4, *p.shape)
        own = replica if "expert." in name else part if "up." in name or "down." in name else 0
        if not case["plain"]:  # as after some training: no constants
            p.data.copy_((0.0 if p.dim() > 1 else 0.5 * p.data) + 0.2 * parts[own])
        elif p.dim() > 1:
            p.data.copy_(0.2 * parts[own])
        elif "norm" not in name:
            p.data.zero_()
    return model


def plant(case: Dict[str, Any], model: nn.Module, part: int, replica: int, group: Any) -> None:
    own, other = list(model.parameters()), list(build(case, part ^ 1, replica, group).parameters())
    torch.manual_seed(77 + case["seed"])
    for i, p in enumerate(own):
        if case["place"] not in ("all", i):
            continue
        flat = p.data.view(-1)
        if case["kind"] == "few":
            flat[:: max(1, len(flat) // 3)] *= 1.01
        elif case["kind"] == "scaled":
            flat *= 1.5
        elif case["kind"] == "negated":
            flat *= -1
        elif case["kind"] == "permuted":
            flat.copy_(flat.flip(0).clone())
        elif case["kind"] == "fresh":
            flat.copy_(0.2 * torch.randn_like(flat))
        elif case["kind"] == "slice":
            p.data.copy_(other[i].data)


def reduce(parameters: List[nn.Parameter], how: str, group: Any) -> None:
    ranks = dist.get_world_size(group)
    if how == "each":
        for p in parameters:
            dist.all_reduce(p.grad, group=group)
            p.grad /= ranks
    elif how == "flat":
        flat = torch.cat([p.grad.reshape(-1) for p in parameters])
        dist.all_reduce(flat, group=group)
        for p, part in zip(parameters, flat.split([p.numel() for p in parameters])):
            p.grad.copy_(part.view_as(p.grad) / ranks)


def wrapped(model: nn.Module, group: Any) -> nn.Module:
    """With DistributedDataParallel, which gives everybody the parameters of its first rank: taken back."""
    kept = [p.data.clone() for p in model.parameters()]
    wrapper = nn.parallel.DistributedDataParallel(model, process_group=group, broadcast_buffers=False)
    for p, data in zip(model.parameters(), kept):
        p.data.copy_(data)
    return wrapper


def run(case: Dict[str, Any], rank: int, tensor_group: Any, data_group: Any) -> None:
    case = {"task": "tensor", "parts": 2, "rows": ROWS, "plain": False, "experts": False, **case}
    part, replica = rank % case["parts"], rank // case["parts"]
    model = build(case, part, replica, tensor_group)
    if rank == case["bad"]:
        plant(case, model, part, replica, tensor_group)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    reduced = [p for name, p in model.named_parameters() if "expert." not in name]
    if case["reduce"] == "ddp":
        model = wrapped(model, data_group)
    debugger = PrecisionDebugger(dump_path=case["path"], task=case["task"], level=case["level"])
    torch.manual_seed(1000 * case["seed"] + replica)
    for _ in range(2):
        debugger.start(model)
        loss = nn.functional.mse_loss(model(torch.randn(case["rows"], WIDTH)), torch.randn(case["rows"], 4))
        loss.backward()
        reduce(reduced, case["reduce"], data_group)
        debugger.stop()
        optimiser.step()
        optimiser.zero_grad()
        debugger.step()
    debugger._close_quietly()


def groups(parts: int, rank: int) -> Tuple[Any, Any]:
    """Of the ranks that have the parts of one model, and of those that have the same part."""
    tensor = [dist.new_group(list(range(first, first + parts))) for first in range(0, 4, parts)]
    data = [dist.new_group(list(range(part, 4, parts))) for part in range(parts)]
    return tensor[rank // parts], data[rank % parts]


def main() -> None:
    rank, world = int(sys.argv[1]), int(sys.argv[2])
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=rank, world_size=world)
    torch.set_num_threads(1)
    grids = {parts: groups(parts, rank) for parts in (1, 2, 4)}
    with open(sys.argv[4]) as file:
        for case in json.load(file):
            run(case, rank, *grids[case.get("parts", 2)])
    dist.barrier()


if __name__ == "__main__":
    main()
