"""Runs the program and measures what it takes: time, and memory of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLUMB = os.environ.get("PLUMB", str(ROOT / "build" / "plumb"))
RUNS = 5


@dataclass
class Memory:
    """The most of each kind that a command and its children had at once, in MB."""

    anonymous: float = 0.0
    resident: float = 0.0  # with what is mapped from files


def command(words: tuple[str | Path, ...]) -> list[str]:
    return [PLUMB, *[str(word) for word in words]]


def seconds(*words: str | Path) -> float:
    """Of one run. 0 and 1 are verdicts, anything else ends the benchmark."""
    line = command(words)
    start = time.perf_counter()
    done = subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    elapsed = time.perf_counter() - start
    if done.returncode not in (0, 1):
        sys.exit(f"bench: {' '.join(line)} ended with {done.returncode}: {done.stderr.strip()}")
    return elapsed


def best(*words: str | Path) -> float:
    """Seconds of the fastest run. Where the first one was far from it the machine was busy, or had
    dropped the files from its memory: then that round was the warm-up, and another one counts."""
    times = [seconds(*words) for _ in range(RUNS)]
    if times[0] > 2 * min(times):
        times += [seconds(*words) for _ in range(RUNS)]
    return min(times)


def check(count: int, *words: str | Path) -> None:
    """Makes sure that a `plumb compare` compares every pair, and brings the files into memory."""
    line = command(words)
    lines = subprocess.run(line, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    every = rf"{count} (compared: .*; 0 unmatched|rows: .*, 0 without a partner)"
    if not any(re.match(every, text) for text in lines):
        last = lines[-1] if lines else "nothing printed"
        sys.exit(f"bench: {' '.join(line)}: not all {count} pairs compared: {last}")


def memory(*words: str | Path) -> Memory:
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(command(words), stdout=nowhere, stderr=nowhere)
    peak = Memory()

    def watch() -> None:
        while process.poll() is None:
            now = [status(pid) for pid in with_children(process.pid)]
            peak.anonymous = max(peak.anonymous, sum(one.anonymous for one in now))
            peak.resident = max(peak.resident, sum(one.resident for one in now))
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    watcher.join()
    return peak


def with_children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return [pid]
    return [pid, *map(int, text.split())]


def status(pid: int) -> Memory:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return Memory()
    sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.endswith(" kB")}
    return Memory(int(sizes.get("RssAnon", 0)) / 1e3, int(sizes.get("VmRSS", 0)) / 1e3)
