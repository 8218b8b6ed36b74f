"""What the online check costs when it does not check: a call that it lets go, and a training step of a GPT once every
operator is past max_checks.

As a program (with PyTorch on OpenBLAS in its library path, and build/python in PYTHONPATH) it measures; prints JSON.
Processor time on one thread; rounds with and without in turn.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from capture import environment

ROOT = Path(__file__).resolve().parent.parent
CALLS, ROUNDS = 20000, 9


@dataclass
class Guard:
    call: float = 0.0     # microseconds that watching adds to a call
    past: float = 0.0     # a step with all operators past max_checks, of one without
    checked: float = 0.0  # a step in which every operator is checked once


def measure(build: Path) -> Guard:
    done = subprocess.run([sys.executable, __file__], env={**environment(build), "OPENBLAS_NUM_THREADS": "1"},
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return Guard(**json.loads(done.stdout.splitlines()[-1]))


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


def step_cost(log: str) -> tuple[float, float]:
    """With all operators past max_checks, and when each is checked, of a plain step."""
    sys.path.insert(0, str(ROOT / "tests" / "py"))
    import gpt_model
    import torch

    import plumb

    torch.set_num_threads(1)
    config = gpt_model.Config(width=512, layers=4, heads=8, vocab=8000, context=256)
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
    past = statistics.median(b / a for a, b in zip(plain, watched))
    return past, checked / statistics.median(plain)



def main() -> None:
    with tempfile.TemporaryDirectory(prefix="plumb-bench-") as folder:
        log = str(Path(folder) / "precision.log")
        call = call_cost(log)
        past, checked = step_cost(log)
    print(json.dumps({"call": call, "past": past, "checked": checked}))


if __name__ == "__main__":
    main()
