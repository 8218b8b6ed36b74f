"""A small network, trained for two steps on one process, or on four with what PyTorch has for that:

    shards_cases.py WAY RANK WORLD STORE DUMP [FAULT]

    one  plain       fsdp  fully_shard()      tp  parallelize_module()      both  a mesh of 2 x 2: fsdp of tp

FAULT "RANK" makes a part of a weight wrong there.
"""

import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional as F

from plumb import PrecisionDebugger

WIDTH, BATCH, LAYERS, STEPS = 10, 8, 2, 2  # 10 rows on 4 ranks: 3, 3, 3 and 1
WAY, RANK, WORLD = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
FAULT = sys.argv[6] if len(sys.argv) > 6 else ""


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def spread(model: Model) -> None:
    tensor: Any = init_device_mesh("cpu", (WORLD,)) if WAY == "tp" else None
    data: Any = init_device_mesh("cpu", (WORLD,)) if WAY == "fsdp" else None
    if WAY == "both":
        mesh = init_device_mesh("cpu", (2, WORLD // 2), mesh_dim_names=("dp", "tp"))
        data, tensor = mesh["dp"], mesh["tp"]
    if tensor is not None:
        for layer in model.layers:
            parallelize_module(layer, tensor, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    if data is not None:
        for part in (*model.layers, model):
            fully_shard(part, mesh=data)


def main() -> None:
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[4]}", rank=RANK, world_size=WORLD)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Model()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    if WORLD > 1:
        spread(model)
    if FAULT == str(RANK):
        with torch.no_grad():
            weight: Any = model.layers[1].up.weight
            weight._local_tensor.mul_(3)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    debugger = PrecisionDebugger(task="tensor", level="mix", dump_path=sys.argv[5])
    for step in range(STEPS):
        torch.manual_seed(100 + step)
        x = torch.randn(BATCH, WIDTH)
        groups = {"fsdp": WORLD, "both": 2}.get(WAY, 1) if WORLD > 1 else 1
        x = x.chunk(groups)[RANK // (WORLD // groups)]
        debugger.start(model)
        model(x).square().mean().backward()
        debugger.stop()
        optimiser.step()
        optimiser.zero_grad()
        debugger.step()
    dist.barrier()
    dist.destroy_process_group()


main()
