"""Pairs of values, and the rows that they give."""

import math
from typing import Any, Dict, Iterator, Mapping, Set, Tuple

import torch

from plumb import _core, tensors
from plumb.numeric_copy import describe
from plumb.numeric_report import NumericReport, NumericRow

_PLAIN = (bool, int, float, complex, str, bytes)


def leaves(value: Any, path: str, depth: int = tensors.MAX_DEPTH) -> Iterator[Tuple[str, Any]]:
    """(path, value) of tensors, numbers, texts and None in nested containers, in their order. What
    is none of these is left out."""
    if value is None or tensors.is_tensor(value) or isinstance(value, _PLAIN):
        yield path, value
    elif depth:
        for name, item in tensors.children(value):
            yield from leaves(item, f"{path}.{name}", depth - 1)


class Comparer:
    """Adds rows to a report: allclose with rtol = atol = precision, NaN equal to NaN."""

    def __init__(self, report: NumericReport) -> None:
        self.report = report
        self.settings = [f"rtol={report.precision!r}", f"atol={report.precision!r}",
                         "equal_nan=yes"]
        self.noted: Set[str] = set()

    def note(self, text: str) -> None:
        """Once, whatever the number of iterations."""
        if text not in self.noted:
            self.noted.add(text)
            self.report.notes.append(text)

    def pairs(self, iteration: int, kind: str, before: Mapping[str, Any], after: Mapping[str, Any],
              missing_fails: bool = True) -> None:
        """By name. What only one side has is a difference, or, where it may be missing, a note."""
        for name, value in before.items():
            if name in after:
                self.pair(iteration, kind, name, value, after[name])
            else:
                self._missing(iteration, kind, name, "only before", missing_fails)
        for name in after:
            if name not in before:
                self._missing(iteration, kind, name, "only after", missing_fails)

    def _missing(self, iteration: int, kind: str, name: str, where: str, fails: bool) -> None:
        if fails:
            self._add(iteration, kind, name, "", "", {}, False, where)
        else:
            self.note(f"{kind} {name} is there {where}")

    def pair(self, iteration: int, kind: str, name: str, before: Any, after: Any) -> None:
        if before is None or after is None:
            if before is not after:
                side = "before" if before is not None else "after"
                self.note(f"{kind} {name} is there only {side}; skipped")
            return
        if tensors.is_tensor(before) and tensors.is_tensor(after):
            self._tensors(iteration, kind, name, before, after)
        else:
            same = self._same_value(before, after)
            types = either(type(before).__name__, type(after).__name__)
            self._add(iteration, kind, name, types, "", {}, same,
                      "" if same else f"{_short(before)} became {_short(after)}")

    def _same_value(self, before: Any, after: Any) -> bool:
        if type(before) is not type(after):
            return False
        if not isinstance(before, float):
            return bool(before == after)
        if math.isnan(before) or math.isnan(after):
            return math.isnan(before) and math.isnan(after)
        return math.isclose(before, after, rel_tol=self.report.precision,
                            abs_tol=self.report.precision)

    def _tensors(self, iteration: int, kind: str, name: str, before: Any, after: Any) -> None:
        dtype = either(_dtype(before), _dtype(after))
        shape = either(str(list(before.shape)), str(list(after.shape)))
        metrics: Dict[str, Any] = {}
        equal, reason = False, ""
        if tuple(before.shape) != tuple(after.shape):
            reason = "the shape changed"
        else:
            try:
                golden, target = _view(before), _view(after)
                metrics = _core.compare(target, golden, rtol=self.report.precision,
                                        atol=self.report.precision, equal_nan=True)
                verdict, rule, _ = _core.judge(target, golden, "allclose", self.settings)
                # NaN on both sides is suspicious to a standard, and equal here; the row says so.
                equal, reason = verdict != "fail", "" if verdict == "pass" else rule
            except Exception as error:
                self.note(f"{kind} {name} was not compared: {describe(error)}")
                return
            if _dtype(before) != _dtype(after):
                equal, reason = False, "the type changed"
        self._add(iteration, kind, name, dtype, shape, metrics, equal, reason)

    def _add(self, iteration: int, kind: str, name: str, dtype: str, shape: str,
             metrics: Dict[str, Any], equal: bool, reason: str) -> None:
        self.report.rows.append(
            NumericRow(iteration, kind, name, dtype, shape, metrics, equal, reason))


def either(before: str, after: str) -> str:
    return before if before == after else f"{before} / {after}"


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def _view(tensor: Any) -> "_core.Tensor":
    if isinstance(tensor, torch.Tensor):
        tensor = tensor.detach()
        if tensor.layout is not torch.strided:
            tensor = tensor.to_dense()
        if tensor.is_quantized:
            tensor = tensor.dequantize()
    return tensors.view(tensor)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
