"""Pairs of values, and the rows that they give."""

import cmath
from typing import Any, Dict, Mapping, Optional, Set

import torch

from plumb import _core, tensors
from plumb._passcheck.copies import describe
from plumb._passcheck.leaves import Unknown
from plumb._passcheck.report import NumericReport, NumericRow

class Comparer:
    """Adds rows to a report: allclose with rtol = atol = precision, NaN equal to NaN."""

    def __init__(self, report: NumericReport) -> None:
        self.report = report
        self.noted: Set[str] = set()
        self.opinions: Any = None  # of the first iteration, where they are asked for

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

    def forgive(self, start: int) -> None:
        """Of the rows from start on, those that could not be compared are notes."""
        rows = self.report.rows
        for row in rows[start:]:
            if not row.compared:
                self.note(f"{row.kind} {row.name} was not compared: {row.reason}")
        rows[start:] = [row for row in rows[start:] if row.compared]

    def _missing(self, iteration: int, kind: str, name: str, where: str, fails: bool) -> None:
        if fails:
            before, after = ("", None) if where == "only before" else (None, "")
            self._add(iteration, kind, name, "", "", {}, False, where, before, after)
        else:
            self.note(f"{kind} {name} is there {where}")

    def pair(self, iteration: int, kind: str, name: str, before: Any, after: Any) -> None:
        if before is None and after is None:
            return
        if before is None or after is None:
            self._add(iteration, kind, name, "", "", {}, False,
                      "None before" if before is None else "None after", before, after)
        elif tensors.is_tensor(before) and tensors.is_tensor(after):
            self._tensors(iteration, kind, name, before, after)
        else:
            self._values(iteration, kind, name, before, after)

    def _values(self, iteration: int, kind: str, name: str, before: Any, after: Any) -> None:
        types = either(type(before).__name__, type(after).__name__)
        unknown = next((leaf for leaf in (before, after) if isinstance(leaf, Unknown)), None)
        if unknown is not None:
            self._skip(iteration, kind, name, "", "", unknown.why)
            return
        try:
            same = self._same_value(before, after)
        except Exception as error:
            self._skip(iteration, kind, name, types, "", describe(error))
            return
        if same is None:
            self._skip(iteration, kind, name, types, "",
                       f"a {type(before).__name__} says nothing of what it holds")
        else:
            self._add(iteration, kind, name, types, "", {}, same,
                      "" if same else f"{_short(before)} became {_short(after)}", before, after)

    def _same_value(self, before: Any, after: Any) -> Optional[bool]:
        """None where nobody can tell."""
        if before is after:
            return True
        if type(before) is not type(after):
            return False
        if isinstance(before, (float, complex)):
            if cmath.isnan(before) or cmath.isnan(after):
                return cmath.isnan(before) and cmath.isnan(after)
            return cmath.isclose(before, after, rel_tol=self.report.precision,
                                 abs_tol=self.report.precision)
        if type(before).__eq__ is object.__eq__ or callable(before):
            return None  # by default a thing is equal to itself alone
        return bool(before == after)

    def _tensors(self, iteration: int, kind: str, name: str, before: Any, after: Any) -> None:
        dtype = either(_dtype(before), _dtype(after))
        shape = either(str(list(before.shape)), str(list(after.shape)))
        metrics: Dict[str, Any] = {}
        equal, reason = False, ""
        if tuple(before.shape) != tuple(after.shape):
            reason = "the shape changed"
        else:
            try:
                verdict, rule, metrics = _core.same(_view(before), _view(after),
                                                    self.report.precision)
                # NaN on both sides is suspicious to a standard, and equal here; the row says so.
                equal, reason = verdict != "fail", "" if verdict == "pass" else rule
            except Exception as error:
                self._skip(iteration, kind, name, dtype, shape, describe(error))
                return
            if _dtype(before) != _dtype(after):
                equal, reason = False, "the type changed"
        self._add(iteration, kind, name, dtype, shape, metrics, equal, reason, before, after)

    def _add(self, iteration: int, kind: str, name: str, dtype: str, shape: str,
             metrics: Dict[str, Any], equal: bool, reason: str, before: Any, after: Any) -> None:
        opinion = None
        if self.opinions is not None and iteration == 0:
            opinion = self.opinions.judge(kind, name, before, after, equal)
        self.report.rows.append(
            NumericRow(iteration, kind, name, dtype, shape, metrics, equal, reason,
                       opinion=opinion))

    def _skip(self, iteration: int, kind: str, name: str, dtype: str, shape: str,
              why: str) -> None:
        """What was not compared is not equal either."""
        opinion = None
        if self.opinions is not None and iteration == 0:
            opinion = self.opinions.judge(kind, name, "", "", None)
        self.report.rows.append(
            NumericRow(iteration, kind, name, dtype, shape, {}, False, why, False, opinion))


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
