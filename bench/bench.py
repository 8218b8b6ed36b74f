"""`make bench`: how fast plumb compares, against the machine's memory, numpy and h5diff.

Writes bench/results.md. Sets are made under build/bench and removed once measured.

    PLUMB           the program, build/plumb by default
    BENCH_TENSORS   tensors a side, 200 by default; results of any other number go to build/bench
    BENCH_KEEP=1    keep the sets for the next run
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

import sets

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / "build" / "bench"
PLUMB = os.environ.get("PLUMB", str(ROOT / "build" / "plumb"))
TENSORS = int(os.environ.get("BENCH_TENSORS", "200"))
KEEP = os.environ.get("BENCH_KEEP") == "1"
KINDS = ("npy", "pt", "safetensors", "h5")
COLUMNS = {"default": [], "all": ["--metrics", "all"]}


@dataclass
class Results:
    read: tuple[float, float] = (0.0, 0.0)  # GB/s with one thread, with two
    numpy: dict[str, float] = field(default_factory=dict)  # by set of columns
    h5diff: float | None = None
    plumb: dict[tuple[str, str, str], float] = field(default_factory=dict)  # kind, dtype, columns
    anonymous: dict[tuple[str, str, str], float] = field(default_factory=dict)  # MB, likewise
    tiny: dict[str, float] = field(default_factory=dict)  # ms, by kind


def say(text: str) -> None:
    print(text, flush=True)


def output(*command: str | Path) -> str:
    return subprocess.run(
        [str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def compare(*words: str | Path) -> float:
    """Seconds of one `plumb compare`. 0 and 1 are verdicts, anything else ends the benchmark."""
    command = [PLUMB, "compare", *[str(word) for word in words]]
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL)
    elapsed = time.perf_counter() - start
    if done.returncode not in (0, 1):
        sys.exit(f"bench: {' '.join(command)} ended with {done.returncode}")
    return elapsed


def check(*words: str | Path) -> None:
    """Makes sure that a `plumb compare` compares every tensor, and brings the files into memory."""
    command = [PLUMB, "compare", *[str(word) for word in words]]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    closing = done.stdout.splitlines()[-1] if done.stdout else ""
    if not closing.startswith(f"{TENSORS} compared: ") or "; 0 unmatched" not in closing:
        sys.exit(f"bench: {' '.join(command)}: not all {TENSORS} tensors compared: {closing}")


def anonymous_peak(*words: str | Path) -> float:
    """The most anonymous memory, in MB, that a `plumb compare` and its children had at once."""
    process = subprocess.Popen(
        [PLUMB, "compare", *[str(word) for word in words]], stdout=subprocess.DEVNULL
    )
    peak = 0

    def watch() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, sum(map(resident_anonymous, with_children(process.pid))))
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    watcher.join()
    return peak / 1e3


def with_children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return [pid]
    return [pid, *map(int, text.split())]


def resident_anonymous(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    return 0


def read_bandwidth() -> tuple[float, float]:
    program = SCRATCH / "read_bandwidth"
    source = ROOT / "bench" / "read_bandwidth.c"
    compiler = os.environ.get("CC", "cc")
    output(compiler, "-O3", "-march=native", "-pthread", source, "-o", program)
    one, two = output(program).split()
    return float(one), float(two)


def measure_set(results: Results, kind: str, dtype: torch.dtype) -> None:
    target, golden = sets.make(SCRATCH, kind, TENSORS, dtype)
    size = sets.size(target) + sets.size(golden)
    name = str(dtype).removeprefix("torch.")
    for columns, options in COLUMNS.items():
        if dtype != torch.float32 and columns != "default":
            continue
        check(target, golden, *options)
        best = min(compare(target, golden, *options) for _ in range(3))
        results.plumb[kind, name, columns] = size / best / 1e9
        say(f"  {kind:12} {name:9} {columns:8} {size / best / 1e9:7.2f} GB/s")
        results.anonymous[kind, name, columns] = anonymous_peak(target, golden, *options)
    if kind == "npy":
        script = ROOT / "bench" / "numpy_metrics.py"
        for columns, pairs in (("default", 10), ("all", 5)):
            text = output(sys.executable, script, target, golden, columns, str(pairs))
            results.numpy[columns] = float(text)
            say(f"  numpy                  {columns:8} {float(text):7.2f} GB/s")
    if not KEEP:
        sets.remove(target)
        sets.remove(golden)


def measure_h5diff(results: Results) -> None:
    program = shutil.which("h5diff")
    if not program:
        return
    target, golden = sets.make(SCRATCH, "h5", min(20, TENSORS), torch.float32)
    best = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        subprocess.run([program, "-q", "-d", "10", str(target), str(golden)])
        best = min(best, time.perf_counter() - start)
    results.h5diff = (sets.size(target) + sets.size(golden)) / best / 1e9
    say(f"  h5diff                          {results.h5diff:7.2f} GB/s")
    if not KEEP:
        sets.remove(target)
        sets.remove(golden)


def measure_tiny(results: Results) -> None:
    values = torch.arange(12.0).reshape(3, 4)
    for kind in KINDS:
        path = SCRATCH / f"tiny.{kind}"
        sets.remove(path)
        if kind == "npy":
            np.save(path, values.numpy())
        else:
            sets.WRITERS[kind](path, iter([("weight", values)]))
        results.tiny[kind] = 1e3 * statistics.median(compare(path, path) for _ in range(20))
        sets.remove(path)
        say(f"  tiny {kind:12} {results.tiny[kind]:6.1f} ms")


def machine() -> str:
    info = Path("/proc/cpuinfo").read_text()
    flags = next((line.split() for line in info.splitlines() if line.startswith("flags")), [])
    known = [flag for flag in ("avx", "f16c", "fma", "avx2", "avx512f") if flag in flags]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores ({' '.join(known)}), {memory:.0f} GB of memory"


def goal_rows(results: Results) -> list[tuple[str, str, str, bool]]:
    """What was promised: (what, goal, measured, met)."""
    rows = []
    read = results.read[1]

    def at_least(what: str, goal: float, measured: float, unit: str) -> None:
        rows.append((what, f"at least {goal:g} {unit}", f"{measured:.2f}", measured >= goal))

    for columns, share, times in (("default", 0.5, 12), ("all", 0.1, 20)):
        title = "default columns" if columns == "default" else "`--metrics all`"
        for kind in ("npy", "pt", "safetensors"):
            rate = results.plumb[kind, "float32", columns]
            at_least(f"{title}, .{kind}", share, rate / read, "of read bandwidth")
        rate = results.plumb["npy", "float32", columns]
        at_least(f"{title}, .npy", times, rate / results.numpy[columns], "times numpy")
    for name in ("float16", "bfloat16"):
        rate = results.plumb["safetensors", name, "default"]
        base = results.plumb["safetensors", "float32", "default"]
        at_least(f"{name}, .safetensors", 0.5, rate / base, "of float32, per byte")
    peak = max(results.anonymous.values())
    rows.append(("anonymous memory, worst case", "under 64 MB", f"{peak:.1f} MB", peak < 64))
    for kind in KINDS:
        ms = results.tiny[kind]
        rows.append((f"two tiny .{kind} files", "within 20 ms", f"{ms:.1f} ms", ms <= 20))
    return rows


def report(results: Results) -> str:
    mebi = sets.ELEMENTS >> 20
    lines = [
        "# Benchmark",
        "",
        f"`make bench`: two sides of {TENSORS} tensors of {mebi} Mi numbers, in the page cache;",
        "wall clock of the whole command, best of three. GB/s count the bytes of both sides.",
        f"Machine: {machine()}; it reads {results.read[0]:.1f} GB/s with one",
        f"thread and {results.read[1]:.1f} GB/s with two. Read bandwidth below is the latter.",
        "",
        "## Goals",
        "",
        "| what | goal | measured | met |",
        "|---|---|---:|---|",
    ]
    for what, goal, measured, met in goal_rows(results):
        lines.append(f"| {what} | {goal} | {measured} | {'yes' if met else '**no**'} |")
    lines += [
        "",
        "## All numbers",
        "",
        "| files | type | columns | GB/s | of read bandwidth | times numpy | anonymous MB |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for (kind, name, columns), rate in results.plumb.items():
        # An HDF5 pair has other default columns than numpy computes, a 16-bit pair other bytes.
        fair = name == "float32" and (kind != "h5" or columns == "all")
        times = f"{rate / results.numpy[columns]:.1f}" if fair else ""
        peak = results.anonymous[kind, name, columns]
        lines.append(
            f"| .{kind} | {name} | {columns} | {rate:.2f} | {rate / results.read[1]:.2f} "
            f"| {times} | {peak:.1f} |"
        )
    lines += ["", "| for comparison | GB/s |", "|---|---:|"]
    for columns, rate in results.numpy.items():
        lines.append(f"| numpy, the metrics of `{columns}`, float64 | {rate:.3f} |")
    if results.h5diff is not None:
        rate = results.plumb["h5", "float32", "default"]
        lines.append(
            f"| h5diff (plumb on .h5 is {rate / results.h5diff:.0f} times as fast) "
            f"| {results.h5diff:.3f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    if not Path(PLUMB).exists():
        sys.exit(f"bench: there is no {PLUMB}; build it first, or set PLUMB")
    SCRATCH.mkdir(parents=True, exist_ok=True)
    results = Results()
    results.read = read_bandwidth()
    say(f"  reading memory {results.read[0]:.1f} GB/s, with two threads {results.read[1]:.1f}")
    measure_tiny(results)
    for kind in KINDS:
        measure_set(results, kind, torch.float32)
    for dtype in (torch.float16, torch.bfloat16):
        measure_set(results, "safetensors", dtype)
    measure_h5diff(results)
    results.read = max(results.read, read_bandwidth(), key=lambda rates: rates[1])

    folder = ROOT / "bench" if TENSORS == 200 else SCRATCH
    (folder / "results.md").write_text(report(results))
    say(f"written to {(folder / 'results.md').relative_to(ROOT)}")
    missed = [row[0] for row in goal_rows(results) if not row[3]]
    if missed:
        say("goals not met: " + "; ".join(missed))


if __name__ == "__main__":
    main()
