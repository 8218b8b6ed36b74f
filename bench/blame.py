"""Two runs of a transformer's blocks as dumps with tensors: what `plumb blame` costs beside reading them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

WIDTH, HEADS, TOKENS, BATCH = 512, 8, 256, 4


@dataclass
class Blame:
    """Of one pair of dumps."""

    gigabytes: float = 0.0  # of both sides
    seconds: float = 0.0
    compare: float = 0.0  # seconds of `plumb compare`, which reads all of it, too
    anonymous: float = 0.0  # MB, at most
    bounded: float = 0.0  # MB, with --memory 512M


class Dump:
    """A dump.json tree in the making."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "dump_tensor_data"
        self.data.mkdir(parents=True)
        self.entries: dict[str, Any] = {}
        self.counts: dict[str, int] = {}

    def value(self, name: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            torch.save(value, self.data / f"{name}.pt")
            return {"type": "torch.Tensor", "dtype": str(value.dtype), "shape": list(value.shape),
                    "Max": value.max().item(), "Min": value.min().item(), "Mean": value.mean().item(),
                    "Norm": value.norm().item(), "requires_grad": False, "data_name": f"{name}.pt"}
        if isinstance(value, (list, tuple)):
            return [self.value(name, item) for item in value]
        return value if value is None else {"type": type(value).__name__, "value": value}

    def call(self, prefix: str, function: Any, *args: Any) -> torch.Tensor:
        out = function(*args)
        api = f"{prefix}.{function.__name__}"
        number = self.counts[api] = self.counts.get(api, -1) + 1
        name = f"{api}.{number}.forward"
        self.entries[name] = {
            "input_args": [self.value(f"{name}.input.{k}", arg) for k, arg in enumerate(args)],
            "input_kwargs": {}, "output": [self.value(f"{name}.output.0", out)]}
        return out

    def save(self) -> None:
        (self.folder / "dump.json").write_text(json.dumps({
            "task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": str(self.data),
            "data": self.entries}))


def block(dump: Dump, x: torch.Tensor, weights: torch.Generator) -> torch.Tensor:
    def weight(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=weights) / shape[-1] ** 0.5

    def heads(y: torch.Tensor) -> torch.Tensor:
        return y.reshape(BATCH, TOKENS, HEADS, -1).transpose(1, 2).contiguous()

    h = dump.call("Functional", F.layer_norm, x, [WIDTH], weight(WIDTH), weight(WIDTH), 1e-5)
    q, k, v = (heads(dump.call("Functional", F.linear, h, weight(WIDTH, WIDTH), weight(WIDTH))) for _ in range(3))
    scores = dump.call("Torch", torch.matmul, q, k.transpose(2, 3).contiguous())
    mixed = dump.call("Torch", torch.matmul, dump.call("Functional", F.softmax, scores / 8, -1), v)
    x = dump.call("Torch", torch.add, x, mixed.transpose(1, 2).reshape(BATCH, TOKENS, WIDTH))
    h = dump.call("Functional", F.linear, x, weight(4 * WIDTH, WIDTH), weight(4 * WIDTH))
    h = dump.call("Functional", F.gelu, h)
    return dump.call("Torch", torch.add, x, dump.call("Functional", F.linear, h, weight(WIDTH, 4 * WIDTH)))


def write(folder: Path, blocks: int, off: float) -> None:
    """The same weights on both sides; the input may be off."""
    weights = torch.Generator().manual_seed(1)
    dump = Dump(folder)
    x = torch.randn(BATCH, TOKENS, WIDTH, generator=weights)
    x = x + off * torch.randn(x.shape, generator=torch.Generator().manual_seed(2))
    for _ in range(blocks):
        x = block(dump, x, weights)
    dump.save()


def pair(folder: Path, blocks: int) -> tuple[Path, Path]:
    """Two dumps of about 115 MB a block each."""
    target, golden = folder / "blame_target", folder / "blame_golden"
    for path, off in ((target, 1e-6), (golden, 0.0)):
        if not path.exists():
            write(path, blocks, off)
    return target, golden
