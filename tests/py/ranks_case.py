"""Programs that run as several gloo processes on this machine."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, List

sys.path.insert(0, str(Path(__file__).parent))
from capture_case import BUILD  # noqa: E402

LIMIT = 1200  # seconds


def run_ranks(world: int, words: Callable[[int], List[str]]) -> None:
    """Python with the words of each rank, all at once. When one fails, what it wrote is the error; none stays behind."""
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    children = [subprocess.Popen([sys.executable, *words(rank)], env=environment, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True) for rank in range(world)]
    try:
        said = [child.communicate(timeout=LIMIT)[0] for child in children]
    finally:
        for child in children:
            child.kill()
    for child, text in zip(children, said):
        if child.returncode:
            raise AssertionError(text)
