"""What PrecisionDebugger costs: a training step of a GPT with and without it, and writing the same files plainly.

As a program (with PyTorch on OpenBLAS in its library path, and build/python in PYTHONPATH) it measures one setting:
capture.py TASK MODE LEVEL; prints seconds and megabytes as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
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
]
ROUNDS = 5
LARGEST = 4 * 256 * 8000 * 4 / 1e6  # MB: the logits


@dataclass
class Capture:
    what: str
    ratio: float  # of the same step without capture
    plain: float  # seconds of that
    grown: float  # MB more memory at most
    disk: float   # of the time that capture adds, how much plain writing of the files takes; 0 when there are none


def environment(build: Path) -> dict[str, str]:
    return {**os.environ, "LD_LIBRARY_PATH": f"{OPENBLAS}:{os.environ.get('LD_LIBRARY_PATH', '')}",
            "PYTHONPATH": str(build / "python")}


def measure(build: Path, task: str, mode: str, level: str) -> Capture:
    words = [sys.executable, __file__, task, mode, level]
    done = subprocess.run(words, env=environment(build), check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    added = found["captured"] - found["plain"]
    return Capture(f"{mode if task == 'statistics' else task}, {level}", found["captured"] / found["plain"],
                   found["plain"], found["grown"], found["disk"] / added if found["disk"] else 0.0)


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


def child(task: str, mode: str, level: str) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "py"))
    import gpt_model
    import torch

    from plumb import PrecisionDebugger

    torch.set_num_threads(2)
    config = gpt_model.Config(width=512, layers=4, heads=8, vocab=8000, context=256)
    model, ids = gpt_model.make(config, batch=4)
    ids = torch.cat([ids, ids[:, :1]], dim=1)  # 256 tokens go in
    optimiser = torch.optim.AdamW(model.parameters())

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
    print(json.dumps({"plain": min(plain), "captured": min(captured), "grown": grown, "disk": disk}),
          flush=True)



if __name__ == "__main__":
    child(*sys.argv[1:4])
