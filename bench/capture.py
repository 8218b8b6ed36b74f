"""What PrecisionDebugger costs: a training step of a GPT with and without it.

    PYTHONPATH=build/python bench/capture.py [LAYERS]

A process for each setting, with PyTorch on OpenBLAS; prints the ratio of the fastest steps, and how much more memory
the captured ones took at most.
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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OPENBLAS = Path("/usr/lib/x86_64-linux-gnu/openblas-pthread")
SETTINGS = [
    ("statistics", "statistics", "L0"), ("statistics", "statistics", "L1"), ("statistics", "statistics", "mix"),
    ("statistics", "md5", "L1"), ("statistics", "md5", "mix"), ("tensor", "statistics", "L1"),
]
ROUNDS = 5
LIMIT = 1.5  # of statistics and md5


def run(task: str, mode: str, level: str, layers: int) -> dict[str, Any]:
    places = {**os.environ, "LD_LIBRARY_PATH": f"{OPENBLAS}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    words = [sys.executable, __file__, "child", task, mode, level, str(layers)]
    done = subprocess.run(words, env=places, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def child(task: str, mode: str, level: str, layers: int) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "py"))
    import gpt_model
    import torch

    from plumb import PrecisionDebugger

    torch.set_num_threads(2)
    config = gpt_model.Config(width=512, layers=layers, heads=8, vocab=8000, context=256)
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

    try:
        for _ in range(2):
            step(False)
        plain, captured = [step(False)], []
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(ROUNDS):
            captured.append(step(True))
            shutil.rmtree(folder / "dump", ignore_errors=True)
            plain.append(step(False))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps({"plain": min(plain), "captured": min(captured), "grown": grown}), flush=True)


def main() -> None:
    layers = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    largest = 4 * 256 * 8000 * 4 / 1e6  # the logits
    late = []
    for task, mode, level in SETTINGS:
        found = run(task, mode, level, layers)
        ratio = found["captured"] / found["plain"]
        what = mode if task == "statistics" else task
        print(f"  capture {what:10} {level:3} {ratio:7.2f} x of {found['plain']:.2f} s, {found['grown']:.0f} MB more",
              flush=True)
        if (task == "statistics" and ratio > LIMIT) or found["grown"] > 64 + 2 * largest:
            late.append(f"{what} {level}")
    if late:
        sys.exit(f"bench: over the limit of {LIMIT} x, or 64 MB and two of the largest tensor: {', '.join(late)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    else:
        main()
