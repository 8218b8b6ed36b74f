"""A small transformer, trained for two steps on one process or on several, in one of these ways:

    shards_train.py WAY RANK WORLD STORE DUMP [FAULT]

    one  plain            tp  tensor parallel, by hand: q k v and up by columns, proj and down by rows
    dp   data parallel    pp  a layer for each rank, numbered from 0 there
    cp   sequences in zigzag order, with all keys and values gathered

All of them compute the same. FAULT "RANK" makes a weight of that rank wrong (of layer 2: up; dp: its norm).
"""

import sys
from typing import Any, List, Tuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

from plumb import PrecisionDebugger

WIDTH, HEADS, LAYERS, WORDS, BATCH, LENGTH, STEPS = 16, 4, 4, 24, 4, 16, 2
WAY, RANK, WORLD = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
FAULT = sys.argv[6] if len(sys.argv) > 6 else ""
TP = WORLD if WAY == "tp" else 1


def on(way: str) -> bool:
    return WAY == way and WORLD > 1


class Copied(torch.autograd.Function):
    """The same input for all ranks; their gradients are added up."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


class Summed(torch.autograd.Function):
    """What ranks have of a sum, added up."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad


class Gathered(torch.autograd.Function):
    """Parts of a sequence, in their order; gradients go back to where the parts are."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        parts = [torch.empty_like(x) for _ in range(WORLD)]
        dist.all_gather(parts, x.contiguous())
        whole = torch.empty(x.shape[0], LENGTH, x.shape[2])
        for rank, part in enumerate(parts):
            whole[:, places(rank)] = part
        return whole

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad[:, places(RANK)]


def places(rank: int) -> List[int]:
    """The positions of a rank: of 2n chunks, the rank-th from the front and from the end."""
    if not on("cp"):
        return list(range(LENGTH))
    size = LENGTH // (2 * WORLD)
    last = 2 * WORLD - 1 - rank
    return [*range(rank * size, (rank + 1) * size), *range(last * size, (last + 1) * size)]


def share(weight: torch.Tensor, axis: int, segments: int = 1) -> torch.Tensor:
    """What a rank of tensor parallelism has: of each segment, its slice."""
    return torch.cat([segment.chunk(TP, axis)[RANK % TP] for segment in weight.chunk(segments, axis)], axis)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(Copied.apply(x) if on("tp") else x).chunk(3, -1)
        if on("cp"):
            k, v = Gathered.apply(k), Gathered.apply(v)
        q, k, v = (part.unflatten(-1, (HEADS // TP, -1)).transpose(1, 2) for part in (q, k, v))
        scores = q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        mine = torch.tensor(places(RANK))
        scores = scores.masked_fill(torch.arange(LENGTH) > mine[:, None], -1e9)
        x = self.proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return Summed.apply(x) if on("tp") else x


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.down(F.gelu(self.up(Copied.apply(x) if on("tp") else x)))
        return Summed.apply(x) if on("tp") else x


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm2, self.mlp = nn.LayerNorm(WIDTH), Mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def begin(self, words: torch.Tensor) -> torch.Tensor:
        return self.embed(words)

    def end(self, x: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), after.flatten())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def made() -> Model:
    torch.manual_seed(0)
    model = Model()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
        for layer in model.layers:
            for linear, axis, segments in ((layer.attention.qkv, 0, 3), (layer.attention.proj, 1, 1),
                                           (layer.mlp.up, 0, 1), (layer.mlp.down, 1, 1)):
                linear.weight = nn.Parameter(share(linear.weight, axis, segments))
                if linear.bias is not None:
                    linear.bias = nn.Parameter(share(linear.bias, 0, segments))
        if FAULT == str(RANK):
            if WAY == "dp":
                model.layers[2].norm1.weight *= 1.3
            else:
                model.layers[2].mlp.up.weight *= 1.3
    if on("pp"):
        model.layers = nn.ModuleList([model.layers[RANK]])
    return model


def batch(step: int) -> Tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(100 + step)
    words = torch.randint(WORDS, (BATCH, LENGTH + 1))
    if on("dp"):
        words = words.chunk(WORLD)[RANK]
    return words[:, :-1][:, places(RANK)], words[:, 1:][:, places(RANK)]


def pipeline(model: Model, words: torch.Tensor, after: torch.Tensor) -> None:
    """Forward from rank to rank, and backward again."""
    x = torch.zeros(*words.shape, WIDTH)
    if RANK == 0:
        begun = model.begin(words)
        x = begun.detach()
    else:
        dist.recv(x, RANK - 1)
    x.requires_grad_()
    y = model(x)
    if RANK == WORLD - 1:
        model.end(y, after).backward()
    else:
        dist.send(y.detach(), RANK + 1)
        grad = torch.zeros_like(y)
        dist.recv(grad, RANK + 1)
        y.backward(grad)
    if RANK:
        dist.send(x.grad, RANK - 1)
    else:
        begun.backward(x.grad)


def main() -> None:
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[4]}", rank=RANK, world_size=WORLD)
    torch.set_num_threads(1)
    model = made()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    debugger = PrecisionDebugger(task="tensor", level="mix", dump_path=sys.argv[5])
    for step in range(STEPS):
        words, after = batch(step)
        debugger.start(model)
        if on("pp"):
            pipeline(model, words, after)
        else:
            model.end(model(model.begin(words)), after).backward()
        debugger.stop()
        if on("dp") or on("cp"):
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= WORLD
        optimiser.step()
        optimiser.zero_grad()
        debugger.step()
    dist.barrier()


main()
