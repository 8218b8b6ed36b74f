"""The test sets: two sides of many float tensors, in every container that plumb reads."""

from __future__ import annotations

import json
import os
import shutil
import struct
from pathlib import Path
from typing import Callable, Iterator

import h5py
import numpy as np
import torch

ELEMENTS = 1 << 20  # of one tensor
DEFLATED = "deflate.h5"


def name_of(dtype: torch.dtype) -> str:
    """Of what is stored: not every PyTorch has float8, so its bytes stand for it."""
    return "float8_e5m2" if dtype == torch.uint8 else str(dtype).removeprefix("torch.")


def stored(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if dtype != torch.uint8:
        return values.to(dtype)
    return values.to(torch.float16).view(torch.uint8)[1::2].clone()  # float16 cut in half


def tensors(side: str, count: int, dtype: torch.dtype) -> Iterator[tuple[str, torch.Tensor]]:
    """Normal values; the target differs from the golden side by noise of a thousandth."""
    generator = torch.Generator().manual_seed(1)
    base = torch.randn(ELEMENTS, generator=generator)
    noise = torch.randn(ELEMENTS, generator=generator) * 1e-3
    for i in range(count):
        values = base.roll(4099 * i) * (1 + i / count)
        if side == "target":
            values = values + values * noise
        yield f"layers.{i:03d}.weight", stored(values, dtype).reshape(1024, -1)


def write_npy(path: Path, items: Iterator[tuple[str, torch.Tensor]]) -> None:
    path.mkdir()
    for name, tensor in items:
        np.save(path / f"{name}.npy", tensor.numpy())


def write_pt(path: Path, items: Iterator[tuple[str, torch.Tensor]]) -> None:
    torch.save(dict(items), path)


def write_h5(path: Path, items: Iterator[tuple[str, torch.Tensor]], **how: object) -> None:
    with h5py.File(path, "w", track_order=True) as file:
        step = file.create_group("1", track_order=True)
        for name, tensor in items:
            dataset = step.create_dataset(name, data=tensor.numpy(), **how)
            dataset.attrs["dtype"] = str(tensor.dtype)


def write_deflated(path: Path, items: Iterator[tuple[str, torch.Tensor]]) -> None:
    write_h5(path, items, chunks=(128, ELEMENTS // 1024), compression="gzip", compression_opts=4)


def write_safetensors(path: Path, items: Iterator[tuple[str, torch.Tensor]]) -> None:
    codes = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.uint8: "F8_E5M2"}
    header: dict[str, object] = {}
    offset = 0
    payloads = []
    for name, tensor in items:
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": codes[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
        payloads.append(tensor.view(torch.uint8))
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)  # so that the payload starts at a multiple of 64
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for payload in payloads:
            payload.numpy().tofile(file)


WRITERS = {"npy": write_npy, "pt": write_pt, "safetensors": write_safetensors, "h5": write_h5,
           DEFLATED: write_deflated}


def make_both(
    folder: Path, what: str, write: Callable[[Path, str], None], ending: str = ""
) -> tuple[Path, Path]:
    """The target and the golden side; a complete set that is there already is used again."""
    paths = []
    for side in ("target", "golden"):
        path = folder / f"{side}-{what}{ending}"
        if not path.exists():
            part = path.with_name("unfinished" + ending)
            remove(part)
            write(part, side)
            part.rename(path)
        paths.append(path)
    os.sync()  # later on it would disturb what is measured
    return paths[0], paths[1]


def make(folder: Path, kind: str, count: int, dtype: torch.dtype) -> tuple[Path, Path]:
    short = name_of(dtype)
    ending = "" if kind == "npy" else f".{kind}"

    def write(path: Path, side: str) -> None:
        WRITERS[kind](path, tensors(side, count, dtype))

    return make_both(folder, f"{short}-{count}-{kind}", write, ending)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_records(path: Path, side: str, kind: str, count: int) -> None:
    """Very many, of a few numbers."""
    values = torch.arange(16.0) + (1e-6 if side == "target" else 0)
    WRITERS[kind](path, ((f"layers.{i}.bias", values + i) for i in range(count)))


def size(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())
