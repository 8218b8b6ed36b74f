#!/usr/bin/env python3
"""Kernels that add up in another order each time, in three arithmetics, as right ones and with faults, judged
by `plumb blame --repeat`. Prints what was blamed wrongly and what was missed.

    PYTHONPATH=build/python /usr/bin/python3 tests/verdicts/repeats.py [--fast]
"""

import argparse
import itertools
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))
import numpy as np

from test_blame import Dump, plumb

Random = np.random.Generator


def bits(x: np.ndarray, dropped: int) -> np.ndarray:
    """float32 without its last bits, rounded."""
    words = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    words = (words + (1 << (dropped - 1))) >> dropped << dropped
    return words.astype(np.uint32).view(np.float32)


ARITHMETIC: Dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "float32": lambda x: x.astype(np.float32), "11 bits": lambda x: bits(x, 13), "bfloat16": lambda x: bits(x, 16)}


def added(terms: np.ndarray, own: Random, kept: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    total = np.zeros(terms.shape[1:], terms.dtype)
    for k in own.permutation(len(terms)):
        total = kept(total + terms[k]).astype(terms.dtype)
    return total


def kernel(name: str, common: Random, own: Random, kept: Callable[[np.ndarray], np.ndarray],
           drift: float) -> Tuple[str, List[Any], np.ndarray]:
    """The call, its arguments, which drift from repeat to repeat, and what the kernel gives."""
    def drifting(x: np.ndarray) -> np.ndarray:
        return (x * (1 + drift * own.standard_normal(x.shape))).astype(x.dtype)

    def normal(*shape: int) -> np.ndarray:
        return common.standard_normal(shape).astype(np.float32)

    if name == "mm":
        a, b = drifting(normal(16, 48)), normal(48, 16)
        return "Torch.mm.0", [a, b], added(a.T[:, :, None] * b[:, None, :], own, kept)
    if name == "index_add":
        base, source, index = normal(40, 8), drifting(normal(300, 8)), common.integers(0, 12, 300)
        y = base.copy()
        for k in own.permutation(300):
            y[index[k]] = kept(y[index[k]] + source[k])
        return "Torch.index_add.0", [base, 0, index, source], y
    x = normal(64, 16, 16)
    x = np.abs(x) if name == "sum of one sign" else x
    x = drifting(x.astype(np.float16) if name == "sum of float16" else x)
    return "Torch.sum.0", [x, 0], added(x, own, kept)


def tile(y: np.ndarray, own: Random) -> np.ndarray:
    y[:4, :4] = 0
    return y


def element(y: np.ndarray, own: Random) -> np.ndarray:
    y[1, 2] += np.abs(y).max()
    return y


def row(y: np.ndarray, own: Random) -> np.ndarray:
    y[2] *= y.dtype.type(1.1)
    return y


def race(y: np.ndarray, own: Random) -> np.ndarray:
    places = own.choice(y.size, y.size // 10, replace=False)
    y.reshape(-1)[places] = np.abs(y).max() * own.standard_normal()
    return y


CHANGES: Dict[str, Callable[[np.ndarray, Random], np.ndarray]] = {
    "right": lambda y, own: y, "scaled": lambda y, own: y * y.dtype.type(1.05),
    "shifted": lambda y, own: (y + 0.2 * np.abs(y).mean()).astype(y.dtype),
    "rolled": lambda y, own: np.roll(y, 1, -1), "tile": tile, "element": element, "row": row, "race": race}
KERNELS = ("sum", "sum of one sign", "sum of float16", "mm", "index_add")


def judged(folder: Path, about: Tuple[Any, ...]) -> Tuple[str, str]:
    name, arithmetic, change, drift, n, seed = about
    runs = []
    for k in range(n):
        own = np.random.default_rng([seed, k])
        call, inputs, y = kernel(name, np.random.default_rng(seed), own, ARITHMETIC[arithmetic], drift)
        dump = Dump(folder / f"run{k}")
        dump.forward(call, inputs, [CHANGES[change](y.copy(), own)])
        dump.save()
        runs.append(dump.folder)
    found = json.loads(plumb("blame", runs[0], "--format", "json", "--repeat", *runs[1:]).stdout)
    word, = (word for word, count in found["verdicts"].items() if count)
    rows = found["faults"] + found["suspicious"] + found["unsteady"]
    return word, rows[0]["why"] if rows else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fast", action="store_true")
    seeds = range(1 if parser.parse_args().fast else 3)
    counts = {True: [0, 0], False: [0, 0]}  # right ones and faults: all, and wrongly judged
    for about in itertools.product(KERNELS, ARITHMETIC, CHANGES, (0.0, 1e-3), (2, 4), seeds):
        with tempfile.TemporaryDirectory() as folder:
            word, why = judged(Path(folder), about)
        right = about[2] == "right"
        fine = word in ("same", "rounding") if right else word == "fault"
        counts[right][0] += 1
        counts[right][1] += not fine
        if not fine:
            print(f"{'BLAMED' if right else 'MISSED'} {about}: {word}: {why}")
    print(f"{counts[True][0]} right, {counts[True][1]} blamed; {counts[False][0]} faults, {counts[False][1]} missed")
    sys.exit(1 if counts[True][1] + counts[False][1] else 0)


if __name__ == "__main__":
    main()
