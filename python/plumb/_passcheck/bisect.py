"""Which of several passes break the numbers.

Each pass is checked alone, what it made against what it was given, with one iteration: two that
cancel are both found. Tracing, where the module was no graph yet, is checked before, with all
iterations. Then all passes together, with all iterations too. If only that fails, small differences have added up, or it takes
several iterations: the number of passes that still keep the numbers is found by halving.
"""

from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
from torch import fx

from plumb._passcheck.copies import copy_module, describe
from plumb._passcheck.nodes import in_order, lint
from plumb._passcheck.report import NumericReport
from plumb._passcheck.run import Options, Pass, check_pair


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
    """The module after the first k passes, made from the nearest below it that is still there."""

    def __init__(self, before: fx.GraphModule, passes: Sequence[Pass]) -> None:
        self.passes = passes
        self.made: Dict[int, torch.nn.Module] = {0: before}

    def forget(self, count: int) -> None:
        """A large model should not be there once for every pass."""
        if count:
            self.made.pop(count, None)

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
        # Tracing runs the module's own code, which may change it.
        graph = before if isinstance(before, fx.GraphModule) else \
            fx.symbolic_trace(copy_module(before, []))
        pipeline = _Pipeline(copy_module(graph, []), passes)
    except Exception as error:
        report = options.report()
        report.passes = names
        report.error = f"the module before could not be traced for the passes: {describe(error)}"
        return report
    return _Search(before, pipeline, inputs, options, names).run()


class _Search:
    def __init__(self, before: torch.nn.Module, pipeline: _Pipeline, inputs: Any, options: Options,
                 names: List[str]) -> None:
        self.before, self.pipeline = before, pipeline
        self.inputs, self.options, self.names = inputs, options, names
        self.checked: List[Tuple[int, bool]] = []
        self.bad: List[int] = []

    def run(self) -> NumericReport:
        count = len(self.names)
        raised: Optional[_PassRaised] = None
        traced = self._traced()
        try:
            alone = self._each(count)
        except _PassRaised as error:  # it ends the list before itself
            raised, count, alone = error, error.index, self.alone
        except Exception as error:
            report = self.options.report()
            report.passes = self.names
            report.error = f"the result of a pass cannot be copied: {describe(error)}"
            return report
        report = self._together(count, alone, traced)
        report.passes, report.bad_passes = self.names, self.bad
        report.runs, report.checked = len(self.checked), self.checked
        if raised is not None:
            report.raised = raised.index
            report.notes.insert(0, f"the pass {self.names[raised.index]} (number "
                                   f"{raised.index + 1} of {len(self.names)}) raised {raised}")
        return report

    def _traced(self) -> Optional[NumericReport]:
        """What tracing itself has changed, if it has."""
        if isinstance(self.before, fx.GraphModule):
            return None
        report = check_pair(self.before, self.pipeline.after(0), self.inputs, self.options)
        return None if report or report.failed_side == "before" else report

    def _each(self, count: int) -> Optional[NumericReport]:
        """Every pass alone. The report of the first that breaks the numbers."""
        self.alone: Optional[NumericReport] = None
        for k in range(1, count + 1):
            given = self.pipeline.after(k - 1)
            report = check_pair(given, self.pipeline.after(k), self.inputs, self.options.once())
            if k > 1:
                self.pipeline.forget(k - 1)
            if report.failed_side == "before":
                continue  # the module could not be run, or an earlier pass broke it
            if not report:
                self.bad.append(k - 1)
                self.alone = self.alone or report
        return self.alone

    def _check(self, k: int) -> NumericReport:
        # Against the graph, whose nodes can be followed; tracing was found to change nothing.
        report = check_pair(self.pipeline.after(0), self.pipeline.after(k), self.inputs,
                            self.options)
        self.checked.append((k, bool(report)))
        return report

    def _together(self, count: int, alone: Optional[NumericReport],
                  traced: Optional[NumericReport]) -> NumericReport:
        if traced is not None:
            traced.traced = False
            traced.bad_pass = self.bad[0] if self.bad else None
            return traced
        worst = self._check(self.bad[0] + 1 if self.bad else count)
        if alone is not None:
            worst = alone if worst else worst  # what came before it had hidden it
            worst.bad_pass = self.bad[0]
        elif count and not worst and worst.failed_side != "before":
            worst = self._halve(count, worst)
        return worst

    def _halve(self, count: int, worst: NumericReport) -> NumericReport:
        good, bad = 0, count
        while bad - good > 1:
            middle = (good + bad) // 2
            report = self._check(middle)
            if report:
                good = middle
            else:
                bad, worst = middle, report
        worst.bad_pass = bad - 1
        self.bad = [bad - 1]
        return worst
