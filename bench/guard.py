"""What the online check costs when it does not check: a call that it lets go, and a training step of a GPT once every
operator is past max_checks.

    PYTHONPATH=build/python bench/guard.py [LAYERS]

Processor time on one thread, with PyTorch on OpenBLAS; rounds with and without in turn.
"""

from __future__ import annotations

import contextlib
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPENBLAS = Path("/usr/lib/x86_64-linux-gnu/openblas-pthread")
CALLS, ROUNDS = 20000, 9
MICROSECONDS, RATIO = 25.0, 1.05  # the limits


def call_cost(log: str) -> float:
    """Microseconds that watching adds to a call."""
    import torch

    import plumb

    x = torch.ones(8)

    def loop() -> float:
        start = time.process_time()
        for _ in range(CALLS):
            torch.neg(x)
        return (time.process_time() - start) / CALLS

    plumb.enable_precision_check(max_checks=0, path=log)
    plain, watched = [], []
    for _ in range(ROUNDS):
        plain.append(loop())
        with plumb.precision_check():
            watched.append(loop())
    plumb.disable_precision_check()
    return (min(watched) - min(plain)) * 1e6


def step_cost(log: str, layers: int) -> tuple[float, float, float]:
    """Seconds of a step; how many times that with all operators past max_checks, and when it is checked."""
    sys.path.insert(0, str(ROOT / "tests" / "py"))
    import gpt_model
    import torch

    import plumb

    torch.set_num_threads(1)
    config = gpt_model.Config(width=512, layers=layers, heads=8, vocab=8000, context=256)
    model, ids = gpt_model.make(config, batch=4)
    optimiser = torch.optim.AdamW(model.parameters())

    def step() -> float:
        start = time.process_time()
        gpt_model.train(model, ids, optimiser)
        return time.process_time() - start

    step()
    plumb.enable_precision_check(max_checks=1, path=log)
    with plumb.precision_check():
        checked = step()
    plain, watched = [], []
    for _ in range(ROUNDS):
        plain.append(step())
        with plumb.precision_check():
            watched.append(step())
    plumb.disable_precision_check()
    usual = statistics.median(plain)
    return usual, statistics.median(b / a for a, b in zip(plain, watched)), checked / usual


def main() -> None:
    if "PLUMB_BENCH_GUARD" not in os.environ:  # again, with the library path that it needs
        places = {**os.environ, "LD_LIBRARY_PATH": f"{OPENBLAS}:{os.environ.get('LD_LIBRARY_PATH', '')}",
                  "PLUMB_BENCH_GUARD": "1", "OPENBLAS_NUM_THREADS": "1"}
        sys.exit(subprocess.run([sys.executable, __file__, *sys.argv[1:]], env=places).returncode)
    layers = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    with tempfile.TemporaryDirectory(prefix="plumb-bench-") as folder, contextlib.redirect_stderr(io.StringIO()):
        log = str(Path(folder) / "precision.log")
        call = call_cost(log)
        plain, past, checked = step_cost(log, layers)
    print(f"  guard, a call let go   {call:7.2f} us more")
    print(f"  guard, past max_checks {past:7.3f} x of {plain:.2f} s")
    print(f"  guard, a checked step  {checked:7.2f} x")
    if call > MICROSECONDS or past > RATIO:
        sys.exit(f"bench: over the limit of {MICROSECONDS} us a call or {RATIO} x a step")


if __name__ == "__main__":
    main()
