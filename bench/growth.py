"""How cost grows: ten times the bytes, ten times the records, twice the threads, a cold cache."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

import dumps
import sets
from commands import best, memory, seconds


@dataclass
class Growth:
    what: str
    small: float  # seconds
    large: float
    times: float  # by how much the work grew
    megabytes: tuple[float, float]  # anonymous memory


def compared(what: str, times: float, small: list[str | Path], large: list[str | Path]) -> Growth:
    return Growth(what, best(*small), best(*large), times, (memory(*small).anonymous, memory(*large).anonymous))


def forget(path: Path) -> None:
    """Takes a file out of the page cache."""
    with path.open("rb") as file:
        os.fdatasync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cold(target: Path, golden: Path) -> float:
    times = []
    for _ in range(3):
        forget(target)
        forget(golden)
        times.append(seconds("compare", target, golden))
    return min(times)


def measure(scratch: Path, tensors: int) -> list[Growth]:
    rows = 50 * tensors
    few = sets.make(scratch, "safetensors", max(2, tensors // 10), torch.float32)
    many = sets.make(scratch, "safetensors", tensors, torch.float32)
    short, long = dumps.statistics_pair(scratch, rows), dumps.statistics_pair(scratch, 10 * rows)
    both: list[str | Path] = ["compare", *many]
    found = [
        compared("bytes x 10, .safetensors", 10, ["compare", *few], both),
        compared("records x 10, dump.json", 10, ["compare", *short], ["compare", *long]),
        compared("threads x 2, .safetensors", 0.5, [*both, "--threads", "1"], [*both, "--threads", "2"]),
    ]
    warm = best(*both)
    found.append(Growth("from the disk instead of the page cache", warm, cold(*many), 1, (0, 0)))
    for path in (*few, *many, *short, *long):
        sets.remove(path)
    return found


def lines(found: list[Growth]) -> list[str]:
    table = ["| what grows | seconds before | after | times | of the work | anonymous MB |", "|---|---:|---:|---:|---:|---:|"]
    for one in found:
        grown = one.large / one.small
        room = f"{one.megabytes[0]:.1f} to {one.megabytes[1]:.1f}" if one.megabytes[1] else ""
        table.append(f"| {one.what} | {one.small:.3f} | {one.large:.3f} | {grown:.2f} | {grown / one.times:.2f} | {room} |")
    return table
