"""Files that are not in the page cache: `plumb compare` beside plain reading of the same files.

Every run begins with dropping both files from the cache (POSIX_FADV_DONTNEED). The ways take turns, since disks of
virtual machines are fast for a while and slow afterwards, and the median of each counts.
"""

from __future__ import annotations

import os
import statistics
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import torch

import sets
from commands import PLUMB, ROOT, seconds

ROUNDS = 5
READS = [(threads, block) for threads in (1, 2) for block in (128 << 10, 1 << 20, 4 << 20)]


@dataclass
class Cold:
    gigabytes: float = 0.0
    reads: dict[tuple[int, int], float] = field(default_factory=dict)  # GB/s, by threads and block
    compare: dict[int, float] = field(default_factory=dict)  # GB/s, by threads
    faults: dict[str, int] = field(default_factory=dict)  # page faults of a compare: "cold", "warm"


def faults(*words: str | Path) -> int:
    """Page faults of one run."""
    process = subprocess.Popen([PLUMB, *map(str, words)], stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0  # it has been waited for
    return usage.ru_minflt + usage.ru_majflt


def measure(scratch: Path, tensors: int) -> Cold:
    program = scratch / "cold_read"
    source = ROOT / "bench" / "cold_read.c"
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-pthread", str(source), "-o", str(program)], check=True)
    both = sets.make(scratch, "safetensors", tensors, torch.float32)
    found = Cold(gigabytes=sum(map(sets.size, both)) / 1e9)

    def read(threads: int, block: int) -> float:
        words = [str(program), str(threads), str(block), *map(str, both)]
        return float(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)

    rates: dict[tuple[int, int], list[float]] = {}
    compares: dict[int, list[float]] = {}
    for _ in range(ROUNDS):
        for threads, block in READS:
            rates.setdefault((threads, block), []).append(read(threads, block))
        for threads in (1, 2):
            read(1, 0)  # drops them
            took = seconds("compare", *both, "--threads", str(threads))
            compares.setdefault(threads, []).append(found.gigabytes / took)
    found.reads = {key: statistics.median(values) for key, values in rates.items()}
    found.compare = {key: statistics.median(values) for key, values in compares.items()}
    read(1, 0)
    found.faults = {"cold": faults("compare", *both), "warm": faults("compare", *both)}
    for path in both:
        sets.remove(path)
    return found


def lines(found: Cold) -> list[str]:
    best = max(found.reads.values())
    table = [f"| {found.gigabytes:.2f} GB from the disk, .safetensors | GB/s | of the best plain reading |",
             "|---|---:|---:|"]
    for (threads, block), rate in found.reads.items():
        table.append(f"| pread, {threads} thread{'s' * (threads > 1)}, blocks of {block >> 10} KiB | {rate:.2f} "
                     f"| {rate / best:.2f} |")
    for threads, rate in found.compare.items():
        table.append(f"| `plumb compare --threads {threads}` | {rate:.2f} | {rate / best:.2f} |")
    table += ["", f"Page faults of `plumb compare`: {found.faults['cold']:,} cold, {found.faults['warm']:,} from the page "
              "cache (the kernel maps 16 pages with each)."]
    return table
