"""What checking a model on torch:cpu costs beside running it: a GPT's step is captured, every call of it is checked on
the user's PyTorch, and the same step is run plainly in one process of one thread, as a worker has.

device.py step FOLDER captures the step and times it. device.py worker stands in for worker.py (PLUMB_WORKER), and
writes down what processor time its process has taken, starting and importing PyTorch included, after every call.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OPENBLAS = Path("/usr/lib/x86_64-linux-gnu/openblas-pthread")
STEPS = 5


@dataclass
class Device:
    own: float = 0.0  # seconds of the processor for the plain step
    workers: float = 0.0  # the same for all workers, from their start to their last answer
    calls: float = 0.0  # of these, for the calls
    processes: int = 0
    whole: float = 0.0  # seconds of the whole command, with the reference and comparing
    cpu: float = 0.0  # seconds of the same with -d cpu


def environment(build: Path, folder: Path) -> dict[str, str]:
    return {**os.environ, "LD_LIBRARY_PATH": f"{OPENBLAS}:{os.environ.get('LD_LIBRARY_PATH', '')}",
            "PYTHONPATH": str(build / "python"), "PLUMB_PYTHON": sys.executable, "PLUMB_WORKER": str(Path(__file__)),
            "BENCH_REAL_WORKER": str(build / "python/plumb/_worker/worker.py"), "BENCH_TIMES": str(folder)}


def checked(plumb: str, dump: Path, device: str, folder: Path, environ: dict[str, str]) -> float:
    words = [plumb, "acc_check", str(dump), "-d", device, "-o", str(folder), "--quiet"]
    start = time.perf_counter()
    done = subprocess.run(words, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"bench: {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
    return time.perf_counter() - start


def measure(plumb: str, scratch: Path, rounds: int = 3) -> Device:
    """In turns; of each the run with the least."""
    environ = environment(Path(plumb).resolve().parent, scratch)
    words = [sys.executable, __file__, "step", str(scratch)]
    found = Device(own=float("inf"), workers=float("inf"), whole=float("inf"), cpu=float("inf"))
    for _ in range(rounds):
        step = json.loads(subprocess.run(words, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout
                          .splitlines()[-1])
        found.own = min(found.own, step["own"])
        out, dump = scratch / "out", Path(step["dump"])
        found.cpu = min(found.cpu, checked(plumb, dump, "cpu", out, environ))
        found.whole = min(found.whole, checked(plumb, dump, "torch:cpu", out, environ))
        times = [tuple(map(float, path.read_text().split())) for path in scratch.glob("worker-*")]
        if sum(total for total, _ in times) < found.workers:
            found.workers, found.calls = sum(total for total, _ in times), sum(calls for _, calls in times)
            found.processes = len(times)
        for path in scratch.glob("worker-*"):
            path.unlink()
    return found


def step(folder: Path) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "py"))
    import gpt_model
    import torch

    from plumb import PrecisionDebugger

    torch.set_num_threads(1)
    config = gpt_model.Config(width=512, layers=4, heads=8, vocab=8000, context=256)
    model, ids = gpt_model.make(config, batch=4)
    ids = torch.cat([ids, ids[:, :1]], dim=1)  # 256 tokens go in
    settings = folder / "config.json"
    settings.write_text(json.dumps({"task": "statistics", "level": "L1", "dump_path": str(folder / "dump"),
                                    "statistics": {"summary_mode": "statistics"}}))
    debugger = PrecisionDebugger(str(settings))
    debugger.start(model)
    gpt_model.loss(model, ids).backward()
    debugger.stop()
    debugger.step()
    own = float("inf")
    for _ in range(STEPS):
        model.zero_grad()
        start = time.process_time()
        gpt_model.loss(model, ids).backward()
        own = min(own, time.process_time() - start)
    dump = max((folder / "dump").rglob("dump.json"), key=lambda path: path.stat().st_mtime_ns)
    print(json.dumps({"own": own, "dump": str(dump)}))


def worker() -> None:
    path = Path(os.environ["BENCH_REAL_WORKER"])
    spec = importlib.util.spec_from_file_location("worker", path)
    assert spec and spec.loader
    real = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(real)
    # Opened before the worker gives up the right to.
    times = os.open(Path(os.environ["BENCH_TIMES"], f"worker-{os.getpid()}"), os.O_CREAT | os.O_WRONLY, 0o644)
    calls, answer = 0.0, real.Worker.answer

    def timed(self: Any, request: bytes) -> Any:
        nonlocal calls
        start = time.process_time()
        reply = answer(self, request)
        end = time.process_time()
        calls += end - start
        os.pwrite(times, f"{end:.6f} {calls:.6f}\n".encode(), 0)
        return reply

    real.Worker.answer = timed
    real.main()


if __name__ == "__main__":
    if sys.argv[1:2] == ["step"]:
        os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
        step(Path(sys.argv[2]))
    else:
        worker()
