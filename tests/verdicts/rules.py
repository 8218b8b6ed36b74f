"""Other rules that the planted suite is judged by, beside plumb.judge.

`assert_close` is PyTorch's own with its default tolerances (it has none for 8-bit floats: those are left
out), NMSE and cosine are limits that papers and test suites use. All three hold a result against one
that was computed in float32 and rounded to the type.

The documented rules are those of `plumb acc_check` (docs/PRECHECK.md): tests/tools/judge_pair, the same
C code without the rest of the command, holds the result against plumb's float64 reference
(`_core.run_op`, raised) under the operator's name. Its `error` counts as blamed, or as found; `warning`
and `pass` do not.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import torch

import plumb
from kinds import Kind
from operators import Case
from plumb import _core, tensors
from plumb._verdict import judge as plumb_judge

Tensor = torch.Tensor


class Item(NamedTuple):
    """One result that is to be judged."""
    kind: str     # "right", "fault", "cheaper", or "none": planted, and yet a right result
    where: str
    case: Case
    got: Tensor
    pattern: str
    reference: Tensor            # what another run would have given
    type: Kind
    g: Optional[Tensor] = None   # the gradient of the output, where a gradient is judged
    part: Optional[int] = None   # which gradient
    hidden: str = ""             # why nobody can tell it from a right result; "" where one can


def own_kernel(item: Item) -> bool:
    """Whether PyTorch computed it in the type, in whatever arithmetic it likes."""
    return ": PyTorch" in item.where and item.type.name in ("bfloat16", "float16")


def by_assert_close(item: Item) -> Optional[bool]:
    if item.type.eight:
        return None
    try:
        torch.testing.assert_close(item.got, item.reference)
        return True
    except AssertionError:
        return False


def _numbers(item: Item) -> Optional[Tuple[Tensor, Tensor]]:
    """Both sides where they are finite; None where only one is."""
    a, b = item.got.double().flatten(), item.reference.double().flatten()
    finite = torch.isfinite(a)
    return (a[finite], b[finite]) if bool((finite == torch.isfinite(b)).all()) else None


def by_nmse(item: Item) -> Optional[bool]:
    pair = _numbers(item)
    return pair is not None and bool(((pair[0] - pair[1]) ** 2).sum() <= 5e-4 * (pair[1] ** 2).sum())


def by_cosine(item: Item) -> Optional[bool]:
    pair = _numbers(item)
    return pair is not None and bool(torch.dot(*pair) >= 0.99 * pair[0].norm() * pair[1].norm())


OTHERS = {"assert_close": by_assert_close, "NMSE 5e-4": by_nmse, "cosine 0.99": by_cosine}


# -- The documented rules --------------------------------------------------------------------------


def tool() -> Path:
    """judge_pair of the build that plumb comes from."""
    return Path(plumb.__file__).resolve().parents[2] / "tests" / "judge_pair"


def _reference(item: Item) -> _core.Tensor:
    prefix, name, *_ = plumb_judge._called(item.case.op)
    args = [tensors.to_core(item.type.hand(value)) for value in item.case.inputs]
    if item.part is None:
        return _core.run_op(prefix, name, args, item.case.kwargs)[0][0]
    args = [plumb_judge._wanting(value) for value in args]
    found = _core.run_op(prefix, name, args, item.case.kwargs,
                         [tensors.to_core(item.type.hand(item.g))])
    return found[2][item.part]


class Documented:
    """Collects results and asks judge_pair about many at a time."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="plumb-verdicts-")
        self.lines: List[str] = []
        self.kinds: List[str] = []
        self.last: Tuple[Any, ...] = ()
        self.wrong: Dict[str, int] = {"right": 0, "fault": 0, "cheaper": 0}

    def add(self, item: Item) -> None:
        number = len(self.lines)
        if self.last[:2] != (id(item.case), item.part):
            path = f"{self.folder.name}/{number}.reference.npy"
            _reference(item).save(path)
            self.last = id(item.case), item.part, path, item.case
        got = f"{self.folder.name}/{number}.npy"
        np.save(got, item.type.bits(item.got).numpy())
        self.lines.append(f"documented\t{item.case.op}\t{int(bool(item.type.eight))}\t"
                          f"{self.last[2]}@float64\t{got}@{item.type.name}\n")
        self.kinds.append(item.kind)
        if len(self.lines) == 512:
            self.flush()

    def flush(self) -> None:
        done = subprocess.run([str(tool())], input="".join(self.lines), stdout=subprocess.PIPE,
                              text=True, check=True)
        found = [json.loads(line)["status"] for line in done.stdout.splitlines()]
        assert len(found) == len(self.lines), f"{len(found)} answers to {len(self.lines)} pairs"
        for kind, status in zip(self.kinds, found):
            self.wrong[kind] += (status == "error") == (kind == "right")
        for path in Path(self.folder.name).iterdir():
            path.unlink()
        self.lines, self.kinds, self.last = [], [], ()
