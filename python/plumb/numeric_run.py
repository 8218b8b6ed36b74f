"""The check of a module before a transformation against the same after it."""

import warnings
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import torch
from torch import fx

from plumb.numeric_compare import Comparer, leaves
from plumb.numeric_copy import copy_inputs, copy_module, describe
from plumb.numeric_nodes import compare_nodes, in_order, lint, record_nodes
from plumb.numeric_report import NumericReport
from plumb.numeric_state import deterministic, seed

LEARNING_RATE = 0.01
KINDS = ("parameter", "buffer", "output", "gradient", "step")
STEP = "parameter after step"

Pass = Callable[[fx.GraphModule], Any]


def numeric_check(before: torch.nn.Module, after: Union[torch.nn.Module, Sequence[Pass]],
                  inputs: Any, num_iterations: int = 10, precision: float = 1e-4,
                  requires_optimizer: bool = True, *, compare: Sequence[str] = KINDS,
                  follow: Optional[bool] = None) -> NumericReport:
    """Whether a transformation kept the numbers: parameters, outputs, gradients, and the parameters
    after a step of SGD, over several iterations, both sides from the same seeds.

    inputs: the arguments; a lone tensor is one argument, a dict is keyword arguments.
    after: the transformed module, or a list of passes (each changes a GraphModule in place or
        returns one): the report then names the first that broke the numbers, found by bisection.
    compare: what is compared, of parameter, buffer, output, gradient and step.
    follow: compare intermediate nodes of two graph modules that kept their names. None: only to
        name the first that differs, once something does.

    Works on copies and puts all global state back. What goes wrong in a module or a pass is in the
    report, which is then false; only senseless options raise."""
    options = Options(num_iterations, precision, requires_optimizer, compare, follow)
    if isinstance(after, (list, tuple)):
        from plumb.numeric_bisect import check_passes
        return check_passes(before, after, inputs, options)
    return check_pair(before, after, inputs, options)


class Options:
    def __init__(self, num_iterations: int, precision: float, requires_optimizer: bool,
                 compare: Sequence[str], follow: Optional[bool]) -> None:
        if num_iterations < 1:
            raise ValueError(f"num_iterations must be at least 1, not {num_iterations}")
        if not 0 <= precision < float("inf"):
            raise ValueError(f"precision must be a number from 0 on, not {precision}")
        unknown = [kind for kind in compare if kind not in KINDS]
        if isinstance(compare, str) or unknown:
            raise ValueError(f"compare takes some of {', '.join(KINDS)}, not {compare!r}")
        self.num_iterations = int(num_iterations)
        self.precision = float(precision)
        self.kinds = set(compare) - (set() if requires_optimizer else {"step"})
        self.follow = follow

    def report(self) -> NumericReport:
        return NumericReport(self.num_iterations, self.precision)


def split_inputs(inputs: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    if isinstance(inputs, dict):
        return (), inputs
    if isinstance(inputs, (list, tuple)) and not hasattr(inputs, "_fields"):
        return tuple(inputs), {}
    return (inputs,), {}


def check_pair(before: torch.nn.Module, after: torch.nn.Module, inputs: Any,
               options: Options) -> NumericReport:
    report = options.report()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with deterministic():
                _Check(before, after, inputs, options, report).run()
        _tell_warnings(caught, report)
    except Exception as error:
        report.error = f"the check failed: {describe(error)}"
    return report


def _tell_warnings(caught: List[warnings.WarningMessage], report: NumericReport) -> None:
    """Those that say an operator is not deterministic belong to the result."""
    for warning in caught:
        text = str(warning.message).split(".", 1)[0]
        if "determinis" in text and text not in report.notes:
            report.notes.append(text)


class _Failed(Exception):
    """One side could not be run."""

    def __init__(self, side: str, what: str, error: Exception) -> None:
        super().__init__(f"the module {side} {what}: {describe(error)}")
        self.side = side


class _Side:
    """One of the two modules: a copy of its own, and what the last run of it gave."""

    def __init__(self, name: str, module: torch.nn.Module, notes: List[str]) -> None:
        self.name = name
        if not isinstance(module, torch.nn.Module):
            raise _Failed(name, "is no torch.nn.Module", TypeError(type(module).__name__))
        try:
            self.module = copy_module(in_order(module, notes), notes)
        except Exception as error:
            raise _Failed(name, "cannot be copied, without which it would not be left alone",
                          error) from error
        lint(self.module, notes)
        self.outputs: Dict[str, Any] = {}
        self.arguments: Dict[str, Any] = {}

    def run(self, inputs: Any) -> None:
        args, kwargs = split_inputs(copy_inputs(inputs))
        self.arguments = dict(leaves((args, kwargs) if kwargs else args, "input"))
        self.module.zero_grad(set_to_none=True)
        seed()
        try:
            result = self.module(*args, **kwargs)
        except Exception as error:
            raise _Failed(self.name, "could not be run", error) from error
        if not isinstance(result, (tuple, list)):
            single = torch.is_tensor(result) or result is None
            result = (result,) if single else result
        self.outputs = dict(leaves(result, "output"))

    def parameters(self) -> Dict[str, torch.Tensor]:
        return {name: parameter.detach() for name, parameter in self.module.named_parameters()}

    def buffers(self) -> Dict[str, torch.Tensor]:
        return {name: buffer.detach() for name, buffer in self.module.named_buffers()}

    def gradients(self) -> Dict[str, Optional[torch.Tensor]]:
        found = {name: value.grad for name, value in self.module.named_parameters()}
        for name, value in self.arguments.items():
            if torch.is_tensor(value) and value.requires_grad:
                found[name] = value.grad
        return found

    def first_differentiable(self) -> Optional[str]:
        for name, value in self.outputs.items():
            if torch.is_tensor(value) and value.grad_fn is not None:
                return name
        return None

    def backward(self, output: str) -> None:
        value = self.outputs[output]
        if value.is_complex():
            value = torch.view_as_real(value)
        value.sum().backward(retain_graph=True)

    def step(self) -> None:
        parameters = list(self.module.parameters())
        if parameters:
            torch.optim.SGD(parameters, lr=LEARNING_RATE).step()


class _Check:
    def __init__(self, before: torch.nn.Module, after: torch.nn.Module, inputs: Any,
                 options: Options, report: NumericReport) -> None:
        self.given = (before, after)
        self.inputs = inputs
        self.options = options
        self.report = report
        self.comparer = Comparer(report)

    def run(self) -> None:
        try:
            self.before = _Side("before", self.given[0], self.report.notes)
            self.after = _Side("after", self.given[1], self.report.notes)
            if self.options.follow:
                self._follow(keep_rows=True)
            for iteration in range(self.options.num_iterations):
                self._iterate(iteration)
        except _Failed as error:
            self.report.error = str(error)
            self.report.failed_side = error.side
        if not self.report.rows and self.report.error is None:
            self.report.error = "there was nothing to compare"
        if self.options.follow is None and self.report.failures:
            self._follow(keep_rows=False)

    def _iterate(self, iteration: int) -> None:
        kinds, pairs = self.options.kinds, self.comparer.pairs
        self.before.run(self.inputs)
        self.after.run(self.inputs)
        if "parameter" in kinds:
            pairs(iteration, "parameter", self.before.parameters(), self.after.parameters())
        if "buffer" in kinds:
            pairs(iteration, "buffer", self.before.buffers(), self.after.buffers(), False)
        if "output" in kinds:
            pairs(iteration, "output", self.before.outputs, self.after.outputs)
        if "gradient" in kinds or "step" in kinds:
            self._backward(iteration)
        if "gradient" in kinds:
            pairs(iteration, "gradient", self.before.gradients(), self.after.gradients())
        if "step" in kinds:
            self.before.step()
            self.after.step()
            pairs(iteration, STEP, self.before.parameters(), self.after.parameters())

    def _backward(self, iteration: int) -> None:
        """From the first output of both; one without a gradient is told, and the next is taken. A
        gradient that only one side can have is a difference."""
        outputs = [side.first_differentiable() for side in (self.before, self.after)]
        if outputs == [None, None]:
            self.comparer.note("no gradients were compared: no output has a grad_fn")
            return
        if outputs[0] != outputs[1]:
            told = ["no output" if name is None else name for name in outputs]
            self.comparer.note(f"what has a grad_fn first is {told[0]} before and {told[1]} after")
            if "gradient" in self.options.kinds:
                lone = [{name: None} if name is not None else {} for name in outputs]
                self.comparer.pairs(iteration, "gradient", lone[0], lone[1])
        first = next(iter(self.before.outputs))
        if outputs[0] == outputs[1] != first:
            self.comparer.note(f"{first} has no grad_fn; gradients are those of {outputs[0]}")
        for side, output in zip((self.before, self.after), outputs):
            if output is None:
                continue
            try:
                side.backward(output)
            except Exception as error:
                raise _Failed(side.name, "has no backward", error) from error

    def _follow(self, keep_rows: bool) -> None:
        """Fresh copies: training has moved on in those of the check."""
        if not all(isinstance(module, fx.GraphModule) for module in self.given):
            if keep_rows:
                self.comparer.note("nodes were not followed: both modules must be torch.fx graphs")
            return
        try:
            seen = []
            for name, module in zip(("before", "after"), self.given):
                args, kwargs = split_inputs(copy_inputs(self.inputs))
                side = _Side(name, module, [])
                args += tuple(kwargs[node.target] for node in side.module.graph.nodes
                              if node.op == "placeholder" and node.target in kwargs)
                seed()
                seen.append(record_nodes(side.module, args))
            compare_nodes(self.comparer, seen[0], seen[1], keep_rows)
        except Exception as error:
            self.comparer.note(f"nodes could not be followed: {describe(error)}")
