"""What was measured, what was promised, and the page that says both."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import blame
import capture
import cold
import commands
import device
import growth
import guard
import precheck
import sets

GE_FX, TREE = "GE against FX", "dump.json"
TITLES = {"default": "default columns", "all": "`--metrics all`", "kl": "`--metrics kl`"}

STATISTICS, READING, LISTING = "compare", "info --limit 1", "info"


@dataclass
class Json:
    amount: float  # rows to compare, or megabytes to read
    seconds: float
    memory: commands.Memory


@dataclass
class Results:
    tensors: int  # of a side
    read: tuple[float, float] = (0.0, 0.0)  # GB/s with one thread, with two
    numpy: dict[str, float] = field(default_factory=dict)  # by set of columns
    h5diff: float | None = None
    others: dict[str, float | None] = field(default_factory=dict)  # GB/s; None: not on this system
    pandas: float | None = None  # seconds for the rows of STATISTICS
    load_json: float | None = None  # seconds for the file of READING
    growth: list[growth.Growth] = field(default_factory=list)
    cold: cold.Cold = field(default_factory=cold.Cold)
    plumb: dict[tuple[str, str, str], float] = field(default_factory=dict)  # kind, dtype, columns
    anonymous: dict[tuple[str, str, str], float] = field(default_factory=dict)  # MB, likewise
    tiny: dict[str, float] = field(default_factory=dict)  # ms, by kind
    nothing: float = 0.0  # ms of `true`, started in the same way
    deflated: tuple[float, float | None] = (0.0, None)  # GB/s out of chunks, and libdeflate's
    records: dict[str, tuple[int, float]] = field(default_factory=dict)  # how many, seconds; by kind
    json: dict[str, Json] = field(default_factory=dict)  # dump.json without payloads
    precheck: precheck.Precheck = field(default_factory=precheck.Precheck)
    device: device.Device = field(default_factory=device.Device)
    blame: blame.Blame = field(default_factory=blame.Blame)
    captures: list[capture.Capture] = field(default_factory=list)
    guard: guard.Guard = field(default_factory=guard.Guard)


# Goals of the reference operators: those whose work is memory, and those that are matrix products.
MOVING = {"layer_norm": 0.15, "softmax": 0.15, "sum": 0.5}
PRODUCTS = {"conv2d": 0.6, "scaled_dot_product_attention": 0.6}

Row = tuple[str, str, str, bool]  # what, goal, measured, met


def flags() -> list[str]:
    info = Path("/proc/cpuinfo").read_text()
    return next((line.split() for line in info.splitlines() if line.startswith("flags")), [])


def has_avx512() -> bool:
    """Whether plumb uses it: see cpu_has_avx512."""
    return {"avx512_bitalg", "avx512vbmi", "gfni", "vpclmulqdq"} <= set(flags())


def goal_rows(results: Results) -> list[Row]:
    rows: list[Row] = []
    read = results.read[1]

    def at_least(what: str, goal: float, measured: float, unit: str) -> None:
        rows.append((what, f"at least {goal:g} {unit}", f"{measured:.2f}", measured >= goal))

    for columns, share, times in (("default", 0.7, 12), ("all", 0.25 if has_avx512() else 0.15, 20)):
        for kind in ("npy", "pt", "safetensors"):
            rate = results.plumb[kind, "float32", columns]
            at_least(f"{TITLES[columns]}, .{kind}", share, rate / read, "of read bandwidth")
        rate = results.plumb["npy", "float32", columns]
        at_least(f"{TITLES[columns]}, .npy", times, rate / results.numpy[columns], "times numpy")
    for name in ("float16", "bfloat16"):
        rate = results.plumb["safetensors", name, "default"]
        base = results.plumb["safetensors", "float32", "default"]
        at_least(f"{name}, .safetensors", 0.6, rate / base, "of float32, per byte")
    for kind in (GE_FX, TREE):
        for columns, share in (("default", 0.55), ("kl", 0.3)):
            rate = results.plumb[kind, "float32", columns]
            at_least(f"{TITLES[columns]}, {kind}", share, rate / read, "of read bandwidth")
    at_least("default columns, .h5", 0.55, results.plumb["h5", "float32", "default"] / read, "of read bandwidth")
    ours, theirs = results.deflated
    if theirs:
        at_least("default columns, .h5 in deflated chunks", 0.8, ours / theirs, "of libdeflate")
    peak = max(results.anonymous.values())
    rows.append(("anonymous memory, worst case", "under 64 MB", f"{peak:.1f} MB", peak < 64))
    for kind, ms in results.tiny.items():
        times = ms / results.nothing
        rows.append((f"two tiny .{kind} files", "at most 4 times `true`", f"{times:.1f}", times <= 4))
    for kind, (count, took) in results.records.items():
        rows.append((f"{count:,} tiny records, .{kind}", "under 1 s", f"{took:.2f} s", took < 1))
    rows_of, large = results.json[STATISTICS], results.json[READING]
    what, took = f"statistics, {rows_of.amount:,} rows", rows_of.seconds
    rows.append((what, "under 2 s", f"{took:.2f} s", took < 2))
    what, took = f"reading a dump.json of {large.amount:.0f} MB", large.seconds
    rows.append((what, "at most 0.4 s", f"{took:.2f} s", took <= 0.4))
    if results.load_json:
        at_least(what, 8, results.load_json / took, "times Python's json")
    peak = large.memory.anonymous
    rows.append((what, "at most 100 MB", f"{peak:.0f} MB", peak <= 100))
    check = results.precheck
    at_least(f"pre-check of {precheck.SMALL:,} small APIs", 1000, check.rate, "a second")
    ratio = check.plumb / check.torch
    rows.append(("pre-check of a model's layers", "at most 1.2 of PyTorch's time", f"{ratio:.2f}", ratio <= 1.2))
    for name, title in (("small", f"{precheck.SMALL:,} small APIs"), ("layers", "a model's layers")):
        times = check.opinions[name]
        rows.append((f"pre-check of {title} with --verdict both", "at most 4 times the plain one", f"{times:.2f}",
                     times <= 4))
    on_torch = results.device
    ratio = on_torch.workers / on_torch.own
    rows.append(("pre-check of a model's step, `-d torch:cpu`: its workers", "at most 3 times PyTorch's own time",
                 f"{ratio:.2f}", ratio <= 3))
    for name, (seconds, amount) in check.references.items():
        if name in MOVING:
            at_least(f"{name}, reference", MOVING[name], amount / seconds / 1e9 / results.read[0],
                     "of one thread's read bandwidth")
        elif name in PRODUCTS:
            took, work = check.references["dgemm"]
            at_least(f"{name}, reference", PRODUCTS[name], amount / seconds / (work / took), "of OpenBLAS' dgemm")
    for one in results.captures:
        if not one.disk:
            rows.append((f"capture, {one.what}", f"at most {one.most} of a plain step", f"{one.ratio:.2f}",
                         one.ratio <= one.most))
    room = 64 + 2 * capture.LARGEST
    grown = max(one.grown for one in results.captures)
    rows.append(("capture, memory", f"at most {room:.0f} MB more", f"{grown:.0f} MB", grown <= room))
    watch = results.guard
    rows.append(("online check, a call let go", "at most 25 us more", f"{watch.call:.1f} us", watch.call <= 25))
    rows.append(("online check, past max_checks", "at most 1.05 of a plain step", f"{watch.past:.3f}",
                 watch.past <= 1.05))
    return rows


def blame_lines(results: Results) -> list[str]:
    one = results.blame
    read = one.gigabytes / results.read[1]
    return ["| blame of a pair of dumps | seconds | times reading the bytes | times `plumb compare` "
            "| anonymous MB | with --memory 512M |", "|---|---:|---:|---:|---:|---:|",
            f"| {one.gigabytes:.2f} GB, a transformer's blocks, float32 | {one.seconds:.2f} "
            f"| {one.seconds / read:.0f} | {one.seconds / one.compare:.0f} "
            f"| {one.anonymous:.0f} | {one.bounded:.0f} |"]


def device_lines(results: Results) -> list[str]:
    """Processor time of PyTorch in one process and of the workers; wall clock of the commands, reference and all."""
    one = results.device
    rows = [("PyTorch itself, forward and backward, one thread (processor time)", one.own),
            (f"`-d torch:cpu`, calls in {one.processes} worker{'s' * (one.processes != 1)} (processor time)", one.calls),
            ("with starting them and importing PyTorch", one.workers),
            ("the whole command, with the reference in float64 (wall clock)", one.whole),
            ("the same with `-d cpu`", one.cpu)]
    lines = ["| pre-check of a GPT's step (4 layers, width 512, 4 x 256 tokens) | seconds | of PyTorch's own |",
             "|---|---:|---:|"]
    return lines + [f"| {what} | {took:.2f} | {took / one.own:.2f} |" for what, took in rows]


def torch_lines(results: Results) -> list[str]:
    lines = ["| a training step (GPT, 4 layers, width 512, 4 x 256 tokens) | of a plain step | MB more | of the time added, "
             "plain writing of the files |", "|---|---:|---:|---:|"]
    for one in results.captures:
        disk = f"{one.disk:.2f}" if one.disk else ""
        lines.append(f"| capture, {one.what} | {one.ratio:.2f} | {one.grown:.0f} | {disk} |")
    lines.append(f"| online check, every operator checked once | {results.guard.checked:.2f} | | |")
    lines.append(f"| online check, past max_checks | {results.guard.past:.3f} | | |")
    return lines


def reference_lines(results: Results) -> list[str]:
    """The reference operators, in float64 on one thread."""
    found = results.precheck.references
    took, work = found["dgemm"]
    peak = work / took
    lines = ["| reference operator, one thread | seconds | |", "|---|---:|---|"]
    for name, (seconds, amount) in found.items():
        if name in MOVING:
            share = f"{amount / seconds / 1e9 / results.read[0]:.2f} of read bandwidth"
        else:
            share = f"{amount / seconds / peak:.2f} of OpenBLAS' dgemm ({peak / 1e9:.1f} GFLOP/s)"
        lines.append(f"| {name} | {seconds:.4f} | {share} |")
    return lines


def machine() -> str:
    known = [flag for flag in ("avx", "f16c", "fma", "avx2", "avx512f") if flag in flags()]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores ({' '.join(known)}), {memory:.0f} GB of memory"


def tensor_lines(results: Results) -> list[str]:
    lines = [
        "| files | type | columns | GB/s | of read bandwidth | times numpy | anonymous MB |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for (kind, name, columns), rate in results.plumb.items():
        # An HDF5 pair has other default columns than numpy computes, a 16-bit pair other bytes.
        fair = name == "float32" and columns in results.numpy
        fair = fair and (kind in ("npy", "pt", "safetensors") or (kind, columns) == ("h5", "all"))
        times = f"{rate / results.numpy[columns]:.1f}" if fair else ""
        peak = results.anonymous[kind, name, columns]
        title = kind if kind in (GE_FX, TREE) else f".{kind}"
        lines.append(
            f"| {title} | {name} | {columns} | {rate:.2f} | {rate / results.read[1]:.2f} "
            f"| {times} | {peak:.1f} |"
        )
    return lines


def json_lines(results: Results) -> list[str]:
    lines = ["| dump.json | seconds | | anonymous MB | resident MB |", "|---|---:|---:|---:|---:|"]
    for what, one in results.json.items():
        speed = f"{one.amount / one.seconds:,.0f} {'rows' if what == STATISTICS else 'MB'}/s"
        lines.append(
            f"| `plumb {what}` | {one.seconds:.2f} | {speed} | {one.memory.anonymous:.0f} "
            f"| {one.memory.resident:.0f} |"
        )
    return lines


def other_lines(results: Results) -> list[str]:
    """Each on the same files in the same run; bench/others.py says how."""
    ours = {"numpy": ("npy", "default"), "assert_close": ("pt", "default"), "safetensors": ("safetensors", "default")}
    lines = ["| what people would otherwise use | | plumb is so many times as fast |", "|---|---:|---:|"]

    def add(what: str, rate: float | None, kind: str, columns: str) -> None:
        if rate is None:
            lines.append(f"| {what} | not on this system | |")
        else:
            lines.append(f"| {what} | {rate:.3f} GB/s | {results.plumb[kind, 'float32', columns] / rate:.0f} |")

    for columns, rate in results.numpy.items():
        add(f"numpy, the metrics of `{columns}` in float64, .npy", rate, "npy", columns)
    for what, found in results.others.items():
        add(what, found, *next(key for word, key in ours.items() if word in what))
    if results.h5diff is not None:
        add("h5diff", results.h5diff, "h5", "default")
    for what, took, key in (("pandas, statistics joined and judged", results.pandas, STATISTICS),
                            ("Python's json, reading alone", results.load_json, READING)):
        if took is None:
            lines.append(f"| {what} | not on this system | |")
        else:
            lines.append(f"| {what} | {took:.2f} s | {took / results.json[key].seconds:.1f} |")
    return lines


def page(results: Results) -> str:
    mebi = sets.ELEMENTS >> 20
    lines = [
        "# Benchmark",
        "",
        f"`make bench`: two sides of {results.tensors} tensors of {mebi} Mi numbers, in the page",
        f"cache; wall clock of the whole command, best of {commands.RUNS} or more. GB/s count the",
        "bytes of both sides. GE against FX are operators of one input and one output each, the",
        "other dump a dump.json with a .pt file a tensor; their tables go to a file.",
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
    lines += ["", "## All numbers", "", *tensor_lines(results), "", *json_lines(results), "",
              *reference_lines(results), "", *blame_lines(results), "", *device_lines(results), "",
              *torch_lines(results)]
    lines += ["", *other_lines(results), "", "## How cost grows", "", *growth.lines(results.growth), "",
              "## A cold cache", "", *cold.lines(results.cold)]
    return "\n".join(lines) + "\n"
