"""What people would otherwise use, on the sets that plumb is measured with, in the same run.

    others.py assert_close TARGET.pt GOLDEN.pt     torch.testing.assert_close, tensor by tensor: GB/s
    others.py safetensors TARGET GOLDEN PAIRS      safetensors and numpy, the default columns: GB/s
    others.py json FOLDER                          json.load of its dump.json: seconds
    others.py pandas TARGET GOLDEN                 statistics of two dump.json joined and judged: seconds

Each runs in a process of its own and times its work, not the start of Python and the imports. What
cannot be imported here prints nothing and says why on standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Iterator


def assert_close(target: Path, golden: Path) -> float:
    import torch

    start = time.perf_counter()
    ours, theirs = torch.load(target), torch.load(golden)
    differing = 0
    for name, value in ours.items():
        try:
            torch.testing.assert_close(value, theirs[name])
        except AssertionError:
            differing += 1
    assert differing == len(ours), "the sides differ in every tensor"
    return (target.stat().st_size + golden.stat().st_size) / (time.perf_counter() - start) / 1e9


def safetensors(target: Path, golden: Path, pairs: int) -> float:
    from numpy_metrics import default_metrics
    from safetensors import safe_open

    start, size = time.perf_counter(), 0
    with safe_open(target, "numpy") as ours, safe_open(golden, "numpy") as theirs:
        for name in sorted(ours.keys())[:pairs]:
            a, b = ours.get_tensor(name), theirs.get_tensor(name)
            default_metrics(a, b)
            size += a.nbytes + b.nbytes
    return size / (time.perf_counter() - start) / 1e9


def find_json(folder: Path) -> Path:
    return next(folder.rglob("dump.json"))


def load_json(folder: Path) -> float:
    start = time.perf_counter()
    json.loads(find_json(folder).read_bytes())
    return time.perf_counter() - start


def rows_of(folder: Path) -> Iterator[dict[str, Any]]:
    for call, parts in json.loads(find_json(folder).read_bytes())["data"].items():
        for part in ("input_args", "input", "output"):
            for index, one in enumerate(parts.get(part) or []):
                if isinstance(one, dict) and "Max" in one:
                    yield {"name": f"{call}.{part}.{index}", **{key: one[key] for key in ("Max", "Min", "Mean", "Norm")}}


def pandas_table(target: Path, golden: Path) -> float:
    import pandas

    start = time.perf_counter()
    both = pandas.DataFrame(rows_of(target)).merge(pandas.DataFrame(rows_of(golden)), on="name", suffixes=("", "_g"))
    for key in ("Max", "Min", "Mean", "Norm"):
        both[f"{key} diff"] = both[key] - both[f"{key}_g"]
        both[f"{key} relative"] = (both[f"{key} diff"] / both[f"{key}_g"]).abs()
    both["passes"] = (both[[f"{key} relative" for key in ("Max", "Min", "Mean", "Norm")]] < 0.01).all(axis=1)
    both.to_csv(os.devnull)
    return time.perf_counter() - start


def main() -> None:
    what, *words = sys.argv[1:]
    paths = [Path(word) for word in words[:2]]
    try:
        if what == "assert_close":
            print(f"{assert_close(*paths):.4f}")
        elif what == "safetensors":
            print(f"{safetensors(*paths, int(words[2])):.4f}")
        elif what == "json":
            print(f"{load_json(paths[0]):.4f}")
        else:
            print(f"{pandas_table(*paths):.4f}")
    except ImportError as missing:
        sys.exit(f"{what}: {missing}")


if __name__ == "__main__":
    main()
