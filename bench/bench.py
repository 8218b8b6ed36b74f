"""`make bench`: how fast plumb compares, against the machine's memory, numpy and h5diff.

Writes bench/results.md. Sets are made under build/bench and removed once measured.

    PLUMB           the program, build/plumb by default
    BENCH_TENSORS   tensors a side, 200 by default; with any other number everything is as much
                    smaller or larger, and the results go to build/bench
    BENCH_KEEP=1    keep the sets for the next run
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

import blame
import capture
import cold
import device
import dumps
import growth
import guard
import inflate
import precheck
import report
import sets
from commands import PLUMB, ROOT, best, check, memory, seconds
from report import Results

SCRATCH = ROOT / "build" / "bench"
TABLES = SCRATCH / "tables"
NORMAL = 200
TENSORS = int(os.environ.get("BENCH_TENSORS", NORMAL))
KEEP = os.environ.get("BENCH_KEEP") == "1"
KINDS = ("npy", "pt", "safetensors", "h5")
COLUMNS = {"default": [], "all": ["--metrics", "all"]}
DUMPS = {report.GE_FX: (dumps.ge_fx, ["--mode", "torchair"]), report.TREE: (dumps.dump_tree, [])}
DUMP_COLUMNS = {
    "default": [],
    "kl": ["--metrics", "kl"],
    "msprobe": ["--rules", "msprobe", "--columns", "msprobe"],
}


def say(text: str) -> None:
    print(text, flush=True)


def output(*command: str | Path) -> str:
    return subprocess.run(
        [str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def other(what: str, *words: str | Path) -> float | None:
    """What bench/others.py measures; None where this system does not have what it takes."""
    done = subprocess.run([sys.executable, str(ROOT / "bench" / "others.py"), what, *map(str, words)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        say(f"  {what}: not measured: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
        return None
    say(f"  {what:33} {float(done.stdout):7.3f}")
    return float(done.stdout)


def done_with(*paths: Path) -> None:
    sets.remove(TABLES)
    for path in paths:
        if not KEEP:
            sets.remove(path)


def read_bandwidth() -> tuple[float, float]:
    program = SCRATCH / "read_bandwidth"
    source = ROOT / "bench" / "read_bandwidth.c"
    compiler = os.environ.get("CC", "cc")
    output(compiler, "-O3", "-march=native", "-pthread", source, "-o", program)
    one, two = output(program).split()
    return float(one), float(two)


def measure(results: Results, key: tuple[str, str, str], size: int, *words: str | Path) -> None:
    """One `plumb compare` of all tensors; size: the bytes of both sides."""
    kind, name, columns = key
    check(TENSORS, "compare", *words)
    rate = size / best("compare", *words) / 1e9
    results.plumb[key] = rate
    results.anonymous[key] = memory("compare", *words).anonymous
    say(f"  {kind:13} {name:9} {columns:8} {rate:7.2f} GB/s")


def measure_set(results: Results, kind: str, dtype: torch.dtype) -> None:
    target, golden = sets.make(SCRATCH, kind, TENSORS, dtype)
    size = sets.size(target) + sets.size(golden)
    name = sets.name_of(dtype)
    for columns, options in COLUMNS.items():
        if dtype == torch.float32 or columns == "default":
            measure(results, (kind, name, columns), size, target, golden, *options)
    if kind == "npy":
        script = ROOT / "bench" / "numpy_metrics.py"
        for columns, pairs in (("default", 10), ("all", 5)):
            text = output(sys.executable, script, target, golden, columns, str(pairs))
            results.numpy[columns] = float(text)
            say(f"  numpy                   {columns:8} {float(text):7.2f} GB/s")
    if kind == "pt":
        results.others["torch.testing.assert_close, .pt"] = other("assert_close", target, golden)
    if kind == "safetensors" and dtype == torch.float32:
        results.others["safetensors and numpy, default columns"] = other("safetensors", target, golden, "10")
    done_with(target, golden)


def origin_form(target: Path, golden: Path) -> list[str | Path]:
    """The sides as options, and the table into a file: how dumps are compared."""
    return ["-tp", target, "-gp", golden, "-o", TABLES]


def measure_dumps(results: Results) -> None:
    for kind, (make, mode) in DUMPS.items():
        target, golden = make(SCRATCH, TENSORS)
        size = sets.size(target) + sets.size(golden)
        for columns, options in DUMP_COLUMNS.items():
            words = [*mode, *origin_form(target, golden), *options]
            measure(results, (kind, "float32", columns), size, *words)
        done_with(target, golden)


def measure_json(results: Results, what: str, amount: float, *words: str | Path) -> None:
    result = report.Json(amount, best(*words), memory(*words))
    results.json[what] = result
    say(f"  dump.json {what:15} {result.seconds:7.2f} s, {result.memory.anonymous:.0f} MB")


def measure_statistics(results: Results) -> None:
    """What has no payloads: many rows, and a single large file."""
    rows = 500 * TENSORS
    target, golden = dumps.statistics_pair(SCRATCH, rows)
    words = ["compare", *origin_form(target, golden)]
    check(rows, *words)
    measure_json(results, report.STATISTICS, rows, *words)
    results.pandas = other("pandas", target, golden)
    done_with(target, golden)

    folder = dumps.large_json(SCRATCH, 500_000 * TENSORS)
    megabytes = sets.size(folder) / 1e6
    measure_json(results, report.READING, megabytes, "info", folder, "--limit", "1")
    measure_json(results, report.LISTING, megabytes, "info", folder)
    results.load_json = other("json", folder)
    done_with(folder)


def measure_h5diff(results: Results) -> None:
    program = shutil.which("h5diff")
    if not program:
        return
    target, golden = sets.make(SCRATCH, "h5", min(20, TENSORS), torch.float32)
    fastest = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        subprocess.run([program, "-q", "-d", "10", str(target), str(golden)])
        fastest = min(fastest, time.perf_counter() - start)
    results.h5diff = (sets.size(target) + sets.size(golden)) / fastest / 1e9
    say(f"  h5diff                           {results.h5diff:7.2f} GB/s")
    done_with(target, golden)


def measure_deflated(results: Results) -> None:
    """Chunks that have to be inflated: against the library that does it, with as many threads."""
    target, golden = sets.make(SCRATCH, sets.DEFLATED, min(20, TENSORS), torch.float32)
    took = best("compare", target, golden)
    unpacked = 2 * min(20, TENSORS) * sets.ELEMENTS * 4
    results.deflated = unpacked / took / 1e9, inflate.rate((target, golden), os.cpu_count() or 1)
    say(f"  deflated .h5 {results.deflated[0]:.2f} GB/s; libdeflate alone {results.deflated[1] or 0:.2f}")
    done_with(target, golden)


def measure_records(results: Results) -> None:
    """Very many records in one file: what each of them costs."""
    count = 500 * TENSORS
    for kind in ("safetensors", "pt"):
        def write(path: Path, side: str) -> None:
            sets.write_records(path, side, kind, count)
        target, golden = sets.make_both(SCRATCH, f"records-{count}", write, f".{kind}")
        results.records[kind] = count, best("compare", target, golden)
        say(f"  {count:,} records, .{kind}: {results.records[kind][1]:.2f} s")
        done_with(target, golden)


def measure_tiny(results: Results) -> None:
    times = []
    for _ in range(20):
        start = time.perf_counter()
        subprocess.run(["true"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        times.append(time.perf_counter() - start)
    results.nothing = 1e3 * statistics.median(times)
    values = torch.arange(12.0).reshape(3, 4)
    for kind in KINDS:
        path = SCRATCH / f"tiny.{kind}"
        sets.remove(path)
        if kind == "npy":
            np.save(path, values.numpy())
        else:
            sets.WRITERS[kind](path, iter([("weight", values)]))
        times = [seconds("compare", path, path) for _ in range(20)]
        results.tiny[kind] = 1e3 * statistics.median(times)
        sets.remove(path)
        say(f"  tiny {kind:12} {results.tiny[kind]:6.1f} ms")


def measure_precheck(results: Results) -> None:
    folder = SCRATCH / "precheck"
    folder.mkdir(exist_ok=True)
    found = results.precheck
    for name, calls in (("small", precheck.small()), ("layers", precheck.layers())):
        dump = folder / f"{name}.json"
        precheck.write_dump(dump, calls)
        took = best("acc_check", dump, "-o", folder, "--quiet")
        found.opinions[name] = best("acc_check", dump, "-o", folder, "--quiet", "--verdict", "both") / took
        if name == "small":
            found.rate = len(calls) / took
        else:
            found.plumb = took
        sets.remove(folder)
        folder.mkdir()
    found.torch = precheck.torch_seconds()
    found.references = precheck.op_speed(Path(PLUMB).parent / "tests" / "op_speed")
    sets.remove(folder)
    say(f"  pre-check: {found.rate:.0f} small APIs a second; layers {found.plumb:.2f} s, "
        f"PyTorch {found.torch:.2f} s; with --verdict both "
        + ", ".join(f"{times:.2f} times ({name})" for name, times in found.opinions.items()))


def measure_device(results: Results) -> None:
    """Checking a model on the user's PyTorch, beside running it there."""
    folder = SCRATCH / "device"
    sets.remove(folder)
    folder.mkdir()
    found = results.device = device.measure(PLUMB, folder)
    sets.remove(folder)
    say(f"  pre-check on torch:cpu: workers {found.workers:.2f} s, PyTorch alone {found.own:.2f} s; "
        f"the whole {found.whole:.2f} s, with -d cpu {found.cpu:.2f} s")


def measure_blame(results: Results) -> None:
    """Every call computed again, beside reading the same files."""
    target, golden = blame.pair(SCRATCH, max(1, TENSORS // 100))
    found = results.blame
    found.gigabytes = (sets.size(target) + sets.size(golden)) / 1e9
    found.compare = best("compare", *origin_form(target, golden))
    found.seconds = min(seconds("blame", target, golden) for _ in range(2))
    found.anonymous = memory("blame", target, golden).anonymous
    found.bounded = memory("blame", target, golden, "--memory", "512M").anonymous
    done_with(target, golden)
    say(f"  blame of {found.gigabytes:.2f} GB {found.seconds:6.2f} s, {found.anonymous:.0f} MB; "
        f"compare {found.compare:.2f} s")


def measure_torch(results: Results) -> None:
    """What the Python package adds to a training step."""
    build = Path(PLUMB).parent
    for setting in capture.settings():
        found = capture.measure(build, *setting)
        results.captures.append(found)
        say(f"  capture {found.what:28} {found.ratio:7.2f} of a plain step, {found.grown:.0f} MB more")
    results.guard = guard.measure(build)
    say(f"  online check {results.guard.call:.1f} us a call let go; past max_checks {results.guard.past:.3f} of a step")


def main() -> None:
    if not Path(PLUMB).exists():
        sys.exit(f"bench: there is no {PLUMB}; build it first, or set PLUMB")
    if TENSORS < 2 or TENSORS % 2:
        sys.exit("bench: BENCH_TENSORS must be an even number: operators have two tensors")
    SCRATCH.mkdir(parents=True, exist_ok=True)
    results = Results(TENSORS)
    results.read = read_bandwidth()
    say(f"  reading memory {results.read[0]:.1f} GB/s, with two threads {results.read[1]:.1f}")
    measure_torch(results)
    measure_precheck(results)
    measure_device(results)
    measure_blame(results)
    measure_tiny(results)
    measure_statistics(results)
    for kind in KINDS:
        measure_set(results, kind, torch.float32)
    for dtype in (torch.float16, torch.bfloat16, torch.uint8):
        measure_set(results, "safetensors", dtype)
    measure_dumps(results)
    measure_h5diff(results)
    measure_deflated(results)
    measure_records(results)
    results.growth = growth.measure(SCRATCH, TENSORS)
    results.cold = cold.measure(SCRATCH, max(2, TENSORS // 4))
    say(f"  cold: compare {results.cold.compare[2]:.2f} GB/s, plain reading {max(results.cold.reads.values()):.2f} GB/s")
    results.read = max(results.read, read_bandwidth(), key=lambda rates: rates[1])

    folder = ROOT / "bench" if TENSORS == NORMAL else SCRATCH
    (folder / "results.md").write_text(report.page(results))
    say(f"written to {(folder / 'results.md').relative_to(ROOT)}")
    missed = [row[0] for row in report.goal_rows(results) if not row[3]]
    if missed:
        say("goals not met: " + "; ".join(missed))


if __name__ == "__main__":
    main()
