"""Training on several processes with plain all_reduce, recorded by plumb, with a fault where one is wanted.

rank_training.py RANK WORLD STORE DUMP KIND BAD PLACE SEED: KIND is "healthy" or one of PLANTS, BAD the rank that has
the fault, PLACE which call, block or exchange it is in, SEED that of model and data.
"""

import sys

import torch
import torch.distributed as dist
from torch import nn

from plumb import PrecisionDebugger

PLANTS = ("operator", "collective", "parameter", "nan")
BLOCKS = 3  # each with a norm, and two linear layers round a gelu


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def counted(module, name, place, change):
    """Every call but number `place` of a function is right; that one's result goes through `change`."""
    right, seen = getattr(module, name), [0]

    def call(*args, **kwargs):
        result = right(*args, **kwargs)
        seen[0] += 1
        return change(result) if seen[0] == place + 1 else result
    setattr(module, name, call)


def spoil_sum(place):
    """The all_reduce of that number gives another sum here, as a broken network card would."""
    group = dist.distributed_c10d._get_default_group()
    right, seen = type(group).allreduce, [0]

    def allreduce(self, tensors, *rest):
        work = right(self, tensors, *rest)
        work.wait()
        if seen[0] == place:
            tensors[0].view(-1)[: max(1, tensors[0].numel() // 4)] *= 1.001
        seen[0] += 1
        return work
    type(group).allreduce = allreduce


def main(rank, world, store, path, kind, bad, place, seed):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = nn.Sequential(*[Block() for _ in range(BLOCKS)], nn.Linear(16, 4))
    for p in model.parameters():  # no constants: as after some training
        p.data += 0.1 * torch.randn_like(p)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    if rank == bad:
        if kind == "operator":
            counted(nn.functional, ("gelu", "layer_norm", "linear")[seed % 3], place, lambda x: x * 1.01)
        elif kind == "nan":
            counted(nn.functional, "gelu", place, lambda x: x * torch.where(
                torch.arange(x.numel()).view_as(x) == 5, torch.tensor(float("nan")), torch.tensor(1.0)))
        elif kind == "parameter":
            list(model.parameters())[place].data.view(-1)[0] *= 1.0 + 2.0 ** -7
        elif kind == "collective":
            spoil_sum(place)
    debugger = PrecisionDebugger(dump_path=path, task="tensor", level="mix")
    torch.manual_seed(1000 * seed + rank)
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
    dist.barrier()


if __name__ == "__main__":
    args = sys.argv[1:]
    main(int(args[0]), int(args[1]), args[2], args[3], args[4], int(args[5]), int(args[6]), int(args[7]))
