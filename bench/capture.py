"""What PrecisionDebugger costs: a training step of a GPT with and without it, and writing the same files plainly.

As a program it measures all settings with the PyTorch of its Python: capture.py BUILD. Where there is torch.compile, a
model that it has compiled too, which is recorded at its boundary.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OPENBLAS = Path("/usr/lib/x86_64-linux-gnu/openblas-pthread")
SETTINGS = [
    ("statistics", "statistics", "L0"), ("statistics", "statistics", "L1"), ("statistics", "statistics", "mix"),
    ("statistics", "md5", "L1"), ("statistics", "md5", "mix"), ("tensor", "statistics", "L1"),
    ("sketch", "statistics", "L1"), ("sketch", "statistics", "mix"),
]
COMPILED = [("statistics", "statistics", "L1", "compiled"), ("statistics", "statistics", "mix", "compiled")]
ROUNDS = 15
LARGEST = 4 * 256 * 8000 * 4 / 1e6  # MB: the logits


@dataclass
class Capture:
    what: str
    ratio: float  # of the same step without capture
    plain: float  # seconds of that
    grown: float  # MB more memory at most
    disk: float   # of the time that capture adds, how much plain writing of the files takes; 0 when there are none
    most: float   # that the ratio may be


def environment(build: Path) -> dict[str, str]:
    return {**os.environ, "LD_LIBRARY_PATH": f"{OPENBLAS}:{os.environ.get('LD_LIBRARY_PATH', '')}",
            "PYTHONPATH": str(build / "python")}


def settings() -> list[tuple[str, ...]]:
    """Those that this PyTorch has."""
    import torch
    return SETTINGS + (COMPILED if hasattr(torch, "compile") else [])


def measure(build: Path, task: str, mode: str, level: str, how: str = "eager") -> Capture:
    words = [sys.executable, __file__, task, mode, level, how]
    done = subprocess.run(words, env=environment(build), check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    added = found["captured"] - found["plain"]
    what = f"{mode if task == 'statistics' else task}, {level}" + (f", {how}" if how != "eager" else "")
    most = 1.8 if task == "sketch" else 1.1 if how == "compiled" else 1.3 if mode == "statistics" else 1.5
    return Capture(what, found["captured"] / found["plain"], found["plain"], found["grown"],
                   found["disk"] / added if found["disk"] else 0.0, most)


def write_again(files: Path, to: Path) -> float:
    """Seconds for files of the same sizes, written by nothing but write()."""
    sizes = [path.stat().st_size for path in files.rglob("*") if path.is_file()]
    block = bytes(max(sizes, default=0))
    to.mkdir()
    start = time.perf_counter()
    for i, size in enumerate(sizes):
        with open(to / str(i), "wb", buffering=0) as file:
            file.write(memoryview(block)[:size])
    took = time.perf_counter() - start
    shutil.rmtree(to)
    return took


def child(task: str, mode: str, level: str, how: str) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "py"))
    import gpt_model
    import torch

    from plumb import PrecisionDebugger

    torch.set_num_threads(2)
    config = gpt_model.Config(width=512, layers=4, heads=8, vocab=8000, context=256)
    model, ids = gpt_model.make(config, batch=4)
    ids = torch.cat([ids, ids[:, :1]], dim=1)  # 256 tokens go in
    optimiser = torch.optim.AdamW(model.parameters())
    if how == "compiled":
        model = torch.compile(model)

    folder = Path(tempfile.mkdtemp(prefix="plumb-bench-"))
    settings = {"task": task, "level": level, "dump_path": str(folder / "dump"), task: {"summary_mode": mode}}
    (folder / "config.json").write_text(json.dumps(settings))
    debugger = PrecisionDebugger(str(folder / "config.json"))

    def step(captured: bool) -> float:
        start = time.perf_counter()
        if captured:
            debugger.start(model)
        optimiser.zero_grad()
        gpt_model.loss(model, ids).backward()
        if captured:
            debugger.stop()
            debugger.step()
        optimiser.step()
        return time.perf_counter() - start

    disk = float("inf") if task == "tensor" else 0.0
    try:
        for _ in range(2):
            step(False)
        step(True)  # what is made for the first one only
        shutil.rmtree(folder / "dump", ignore_errors=True)
        plain, captured = [step(False)], []
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(ROUNDS):
            captured.append(step(True))
            if task == "tensor":
                disk = min(disk, write_again(folder / "dump", folder / "again"))
            shutil.rmtree(folder / "dump", ignore_errors=True)
            plain.append(step(False))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    # Medians: where the threads of PyTorch and of its BLAS get in each other's way, the best step is one of luck.
    print(json.dumps({"plain": statistics.median(plain), "captured": statistics.median(captured), "grown": grown,
                      "disk": disk}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        for one in (measure(Path(sys.argv[1]), *setting) for setting in settings()):
            print(f"{one.what:28} {one.ratio:.2f} of a plain step of {one.plain:.2f} s, {one.grown:.0f} MB more",
                  flush=True)
    else:
        child(*sys.argv[1:5])
