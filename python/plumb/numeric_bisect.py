"""Which of several passes was the first to break the numbers.

Checks with all passes first. If that fails, the number of passes that still keep the numbers is
found by halving: for 16 passes in at most 5 runs of the check.
"""

from typing import Any, Dict, List, Optional, Sequence

import torch
from torch import fx

from plumb.numeric_copy import copy_module, describe
from plumb.numeric_nodes import in_order, lint
from plumb.numeric_report import NumericReport
from plumb.numeric_run import Options, Pass, check_pair


def pass_name(one: Any) -> str:
    for place in (one, getattr(one, "func", None), type(one)):
        name = getattr(place, "__name__", None) or getattr(place, "pass_name", None)
        if name:
            return str(name)
    return repr(one)


class _PassRaised(Exception):
    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index


class _Pipeline:
    """The module after the first k passes; each k is made once, from the nearest below it."""

    def __init__(self, before: fx.GraphModule, passes: Sequence[Pass]) -> None:
        self.passes = passes
        self.made: Dict[int, torch.nn.Module] = {0: before}

    def after(self, count: int) -> torch.nn.Module:
        if count not in self.made:
            start = max(k for k in self.made if k < count)
            module = copy_module(self.made[start], [])
            for index in range(start, count):
                module = self._apply(index, module)
            self.made[count] = module
        return self.made[count]

    def _apply(self, index: int, module: torch.nn.Module) -> torch.nn.Module:
        try:
            result = self.passes[index](module)
        except Exception as error:
            raise _PassRaised(index, describe(error)) from error
        result = getattr(result, "graph_module", result)  # what a PassManager's passes return
        if isinstance(result, torch.nn.Module):
            module = result
        elif result is not None and not isinstance(result, (bool, int, fx.Graph)):
            raise _PassRaised(index, f"it returned a {type(result).__name__}, not a GraphModule")
        lint(module, [])  # a pass that works in place may leave recompiling to others
        return in_order(module, [])


def check_passes(before: torch.nn.Module, passes: Sequence[Pass], inputs: Any,
                 options: Options) -> NumericReport:
    names = [pass_name(one) for one in passes]
    try:
        graph = before if isinstance(before, fx.GraphModule) else fx.symbolic_trace(before)
        pipeline = _Pipeline(copy_module(graph, []), passes)
    except Exception as error:
        report = options.report()
        report.passes = names
        report.error = f"the module before could not be traced for the passes: {describe(error)}"
        return report
    raised: Optional[_PassRaised] = None
    good_end = len(passes)
    while True:  # a pass that raises ends the list before itself
        try:
            pipeline.after(good_end)
            break
        except _PassRaised as error:
            raised = error
            good_end = error.index
        except Exception as error:
            report = options.report()
            report.passes = names
            report.error = f"the result of a pass cannot be copied: {describe(error)}"
            return report
    report = _bisect(graph, pipeline, good_end, inputs, options)
    report.passes = names
    if raised is not None:
        report.raised = raised.index
        report.notes.insert(0, f"the pass {names[raised.index]} (number {raised.index + 1} of "
                               f"{len(names)}) raised {raised}")
    return report


def _bisect(graph: torch.nn.Module, pipeline: _Pipeline, count: int, inputs: Any,
            options: Options) -> NumericReport:
    checked: List[Any] = []

    def check(k: int) -> NumericReport:
        report = check_pair(graph, pipeline.after(k), inputs, options)
        checked.append((k, bool(report)))
        return report

    worst = check(count)
    if count and not worst and worst.failed_side != "before":
        good, bad = 0, count  # without passes nothing can have changed
        while bad - good > 1:
            middle = (good + bad) // 2
            report = check(middle)
            if report:
                good = middle
            else:
                bad, worst = middle, report
        worst.bad_pass = bad - 1
    worst.runs = len(checked)
    worst.checked = checked
    return worst
