#!/usr/bin/env python3
"""Makes the two captures of examples/demo: one model, run by two machines, one of them faulty.

A small vision transformer in float16 sees one picture. The golden side multiplies in float64 and
rounds once. The target side is a fast device: its matrix products keep the sum of every tile of 64
products in float16, so it is off by a rounding here and there, as devices are. On top of that, one
of its layers is wrong: the LayerNorm FAULT takes the variance of a sample (n - 1) instead of that
of the whole row (n), the default of Tensor.var() and a classic when a kernel is ported.

Needs torch and h5py; nothing else of plumb does. The files are the same on every run:

    python3 examples/make_demo.py && git diff --stat examples/demo
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Callable

import h5py
import torch
from h5py import h5f, h5g, h5p
from torch import Tensor, nn

FAULT = "blocks.2.norm2"
DIM, HEADS, HIDDEN, DEPTH, IMAGE, PATCH, CLASSES = 64, 4, 128, 4, 32, 8, 10

Product = Callable[[Tensor, Tensor], Tensor]


def exact_product(a: Tensor, b: Tensor) -> Tensor:
    return (a.double() @ b.double()).half()


def tiled_product(a: Tensor, b: Tensor) -> Tensor:
    total = torch.zeros((), dtype=torch.float16)
    for k in range(0, b.shape[-2], 64):
        part = a[..., k : k + 64].float() @ b[..., k : k + 64, :].float()
        total = (total.float() + part).half()
    return total


# The modules below keep the names of the torch.nn classes, because those go into the dump. They
# bring their own arithmetic: not every torch has float16 kernels for the CPU.


class Linear(nn.Linear):
    product: Product

    def forward(self, x: Tensor) -> Tensor:
        return (self.product(x, self.weight.T).float() + self.bias.float()).half()


class Conv2d(nn.Conv2d):
    product: Product

    def forward(self, x: Tensor) -> Tensor:
        columns = nn.functional.unfold(x.float(), self.kernel_size, stride=self.stride).half()
        y = self.product(self.weight.flatten(1), columns)
        y = (y.float() + self.bias.float()[:, None]).half()
        return y.unflatten(2, (x.shape[2] // PATCH, x.shape[3] // PATCH))


class LayerNorm(nn.LayerNorm):
    unbiased = False

    def forward(self, x: Tensor) -> Tensor:
        x = x.double()
        variance = x.var(-1, unbiased=self.unbiased, keepdim=True)
        y = (x - x.mean(-1, keepdim=True)) / (variance + self.eps).sqrt()
        return (y * self.weight.double() + self.bias.double()).half()


class GELU(nn.GELU):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.gelu(x.float()).half()


class PatchEmbed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = Conv2d(3, DIM, PATCH, stride=PATCH)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    product: Product

    def __init__(self) -> None:
        super().__init__()
        self.qkv = Linear(DIM, 3 * DIM)
        self.proj = Linear(DIM, DIM)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        qkv = self.qkv(x).view(batch, tokens, 3, HEADS, DIM // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        score = self.product(q, k.transpose(-2, -1)).float() * (DIM // HEADS) ** -0.5
        y = self.product(score.softmax(-1).half(), v)
        return self.proj(y.transpose(1, 2).reshape(batch, tokens, DIM))


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear_fc1 = Linear(DIM, HIDDEN)
        self.act_fn = GELU()
        self.linear_fc2 = Linear(HIDDEN, DIM)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear_fc2(self.act_fn(self.linear_fc1(x)))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = LayerNorm(DIM)
        self.attn = Attention()
        self.norm2 = LayerNorm(DIM)
        self.mlp = Mlp()

    def forward(self, x: Tensor) -> Tensor:
        x = (x.float() + self.attn(self.norm1(x)).float()).half()
        return (x.float() + self.mlp(self.norm2(x)).float()).half()


class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch_embed = PatchEmbed()
        self.pos_embed = nn.Embedding((IMAGE // PATCH) ** 2, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = LayerNorm(DIM)
        self.head = Linear(DIM, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patch_embed(image)
        position = self.pos_embed(torch.arange(x.shape[1]))
        x = (x.float() + position.float()).half()
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).float().mean(1).half())


def make_model(product: Product) -> VisionTransformer:
    model = VisionTransformer()
    generator = torch.Generator().manual_seed(2)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if "norm" in name:
            value = noise * 0.2 + (1.0 if name.endswith("weight") else 0.0)
        elif name.endswith("bias"):
            value = noise * 0.1
        elif "pos_embed" in name:
            value = noise * 0.3
        else:
            value = noise * parameter[0].numel() ** -0.5
        parameter.data = value.half()
    for module in model.modules():
        if isinstance(module, (Linear, Conv2d, Attention)):
            module.product = product
    return model.eval()


def make_picture() -> Tensor:
    """A bright disc over a slanted gradient, normalised the way image models want it."""
    y, x = torch.meshgrid(torch.arange(IMAGE), torch.arange(IMAGE), indexing="ij")
    disc = ((x - 20) ** 2 + (y - 12) ** 2 < 64).float()
    planes = [x / IMAGE, y / IMAGE, (x + y) / (2 * IMAGE)]
    picture = torch.stack([plane * 0.6 + disc * 0.4 for plane in planes])
    return ((picture - 0.45) / 0.225)[None].half()


def create(path: Path) -> tuple[h5py.File, h5py.Group]:
    """A dump with the group of step 1, in creation order and without times of day."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lists = [h5p.create(kind) for kind in (h5p.FILE_CREATE, h5p.GROUP_CREATE)]
    for properties in lists:
        properties.set_link_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
        properties.set_obj_track_times(False)
    file = h5py.File(h5f.create(bytes(path), h5f.ACC_TRUNC, fcpl=lists[0]))
    file.attrs["globalrank"] = 0
    file.attrs["localrank"] = 0
    return file, h5py.Group(h5g.create(file.id, b"1", gcpl=lists[1]))


def capture(model: nn.Module, picture: Tensor, path: Path) -> None:
    """Runs the model and writes what goes into and comes out of every leaf module."""
    file, step = create(path)
    with file:
        calls: Counter[str] = Counter()

        def record(name: str, tensor: Tensor) -> None:
            dataset = step.create_dataset(name, data=tensor.detach().contiguous().numpy())
            dataset.attrs["dtype"] = str(tensor.dtype)

        def hook(path_in_model: str) -> Callable[..., None]:
            def after(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
                kind = type(module).__name__
                prefix = f"{path_in_model}.{kind}.{calls[kind]}"
                calls[kind] += 1
                for name, parameter in module.named_parameters(recurse=False):
                    record(f"{prefix}.forward_params.{name}", parameter)
                for i, tensor in enumerate(inputs):
                    record(f"{prefix}.forward_input.{i}", tensor)
                record(f"{prefix}.forward_output.0", output)

            return after

        for name, module in model.named_modules():
            if not list(module.children()):
                module.register_forward_hook(hook(name))
        with torch.no_grad():
            model(picture)


def main() -> None:
    torch.set_num_threads(1)  # one order of summation
    folder = Path(__file__).resolve().parent / "demo"
    golden = make_model(exact_product)
    target = make_model(tiled_product)
    target.get_submodule(FAULT).unbiased = True
    for side, model in (("golden", golden), ("target", target)):
        capture(model, make_picture(), folder / side / "globalrank-0_localrank-0.h5")


if __name__ == "__main__":
    main()
