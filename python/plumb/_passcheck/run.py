"""The check of a module before a transformation against the same after it."""

import contextlib
import copy
import warnings
from typing import (Any, Callable, ContextManager, Dict, List, Optional, Sequence, Tuple, Type,
                    Union)

import torch
from torch import fx

from plumb._passcheck.compare import Comparer
from plumb._passcheck.copies import copy_inputs, copy_module, describe
from plumb._passcheck.leaves import named_leaves
from plumb._passcheck.names import named, renamed
from plumb._passcheck.nodes import compare_nodes, in_order, lint, record_nodes
from plumb._passcheck.report import NumericReport
from plumb._passcheck.state import SEED, deterministic, seed

LEARNING_RATE = 0.01
KINDS = ("parameter", "buffer", "output", "input", "gradient", "step")
VERDICTS = ("rules", "expected", "both")
STEP = "parameter after step"
ALL = "gradient of all outputs"
SHARED = ("before and after are two modules over one graph, so both are what the pass made of it, and nothing can be "
          "found: copy.deepcopy(module) before the pass (copy.copy and GraphModule.__copy__ share the graph). "
          "plumb.inductor_check() checks the passes of inductor")

Pass = Callable[[fx.GraphModule], Any]


def numeric_check(before: torch.nn.Module, after: Union[torch.nn.Module, Sequence[Pass]],
                  inputs: Any, num_iterations: int = 10, precision: float = 1e-4,
                  requires_optimizer: bool = True, *, compare: Sequence[str] = KINDS,
                  follow: Optional[bool] = None, verdict: str = "rules",
                  arithmetic: Union[str, Sequence[str]] = "") -> NumericReport:
    """Whether a transformation kept the numbers: parameters, outputs, inputs (which a run may
    change), gradients, and the parameters after a step of SGD, over several iterations, both sides
    from the same seeds.

    inputs: the arguments; a lone tensor is one argument, a dict is keyword arguments.
    after: the transformed module, or a list of passes (each changes a GraphModule in place or
        returns one): the report then names those that break the numbers.
    compare: what is compared, of parameter, buffer, output, input, gradient and step.
    follow: compare intermediate nodes of two graph modules that kept their names. None: only to
        name the first that differs, once something does.
    verdict: what decides, "rules" (within precision), "expected" (how results compare with what
        right arithmetic shows, in one iteration; docs/PASSCHECK.md) or "both".
    arithmetic: cheaper arithmetic that is meant ("bf16-store").

    Works on copies and puts all global state back. What goes wrong in a module or a pass is in the
    report, which is then false; only senseless options raise, and two modules over one graph
    (ValueError)."""
    options = Options(num_iterations, precision, requires_optimizer, compare, follow, verdict,
                      arithmetic)
    if isinstance(after, (list, tuple)):
        from plumb._passcheck.bisect import check_passes
        return check_passes(before, after, inputs, options)
    if isinstance(before, fx.GraphModule) and isinstance(after, fx.GraphModule) and \
            before.graph is after.graph:
        raise ValueError(SHARED)
    return check_pair(before, after, inputs, options)


class Options:
    def __init__(self, num_iterations: int, precision: float, requires_optimizer: bool,
                 compare: Sequence[str], follow: Optional[bool], verdict: str = "rules",
                 arithmetic: Union[str, Sequence[str]] = "") -> None:
        if num_iterations < 1:
            raise ValueError(f"num_iterations must be at least 1, not {num_iterations}")
        if not 0 <= precision < float("inf"):
            raise ValueError(f"precision must be a number from 0 on, not {precision}")
        unknown = [kind for kind in compare if kind not in KINDS]
        if isinstance(compare, str) or unknown:
            raise ValueError(f"compare takes some of {', '.join(KINDS)}, not {compare!r}")
        if verdict not in VERDICTS:
            raise ValueError(f"verdict is one of {', '.join(VERDICTS)}, not {verdict!r}")
        if arithmetic and verdict == "rules":
            raise ValueError('arithmetic needs verdict="expected" or "both"')
        self.verdict = verdict
        self.arithmetic = arithmetic if isinstance(arithmetic, str) else ",".join(arithmetic)
        self.num_iterations = 1 if verdict == "expected" else int(num_iterations)
        self.precision = float(precision)
        self.kinds = set(compare) - (set() if requires_optimizer else {"step"})
        self.follow = follow
        self.free = True

    def once(self) -> "Options":
        """The same with a single iteration, for one of many checks."""
        twin = copy.copy(self)
        twin.num_iterations, twin.follow, twin.free = 1, None, False
        return twin

    def report(self) -> NumericReport:
        return NumericReport(self.num_iterations, self.precision, self.verdict)


def split_inputs(inputs: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    if isinstance(inputs, dict):
        return (), inputs
    if isinstance(inputs, (list, tuple)) and not hasattr(inputs, "_fields"):
        return tuple(inputs), {}
    return (inputs,), {}


def check_pair(before: torch.nn.Module, after: torch.nn.Module, inputs: Any, options: Options,
               side: Optional[Type["Side"]] = None) -> NumericReport:
    """side: how a module is run, where that is not as it is."""
    report = options.report()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with deterministic(options.free):
                Check(before, after, inputs, options, report, side or Side).run()
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


class Failed(Exception):
    """One side could not be run."""

    def __init__(self, side: str, what: str, error: Exception) -> None:
        super().__init__(f"the module {side} {what}: {describe(error)}")
        self.side = side


class Side:
    """One of the two modules: a copy of its own, and what the last run of it gave."""

    def __init__(self, name: str, module: torch.nn.Module, notes: List[str]) -> None:
        self.name = name
        self.notes = notes
        if not isinstance(module, torch.nn.Module):
            raise Failed(name, "is no torch.nn.Module", TypeError(type(module).__name__))
        try:
            self.module = copy_module(in_order(module, notes), notes)
        except Exception as error:
            raise Failed(name, "cannot be copied, without which it would not be left alone",
                          error) from error
        lint(self.module, notes)
        self.names: Dict[str, str] = {}  # of parameters and buffers, to those of the other side
        self.outputs: Dict[str, Any] = {}
        self.arguments: Dict[str, Any] = {}  # as the run left them

    def run(self, inputs: Any) -> None:
        args, kwargs = split_inputs(copy_inputs(inputs, self.notes))
        given = (args, kwargs) if kwargs else args
        self.leaves = named_leaves(given, "input", iterators=False)
        self.module.zero_grad(set_to_none=True)
        seed()
        try:
            with self.around():
                result = self.call(*args, **kwargs)
            if torch.is_tensor(result) or result is None:
                result = (result,)
            self.outputs = named_leaves(result, "output")
        except Exception as error:
            raise Failed(self.name, "could not be run", error) from error
        self.arguments = named_leaves(given, "input", iterators=False)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @staticmethod
    def around() -> ContextManager[Any]:
        """What holds while a module runs forward."""
        return contextlib.nullcontext()

    def _named(self, items: Any) -> Dict[str, torch.Tensor]:
        return {self.names.get(name, name): value for name, value in named(items).items()}

    def parameters(self) -> Dict[str, torch.Tensor]:
        return {name: value.detach()
                for name, value in self._named(self.module.named_parameters()).items()}

    def buffers(self) -> Dict[str, torch.Tensor]:
        return {name: value.detach()
                for name, value in self._named(self.module.named_buffers()).items()}

    def followed(self) -> Dict[str, torch.Tensor]:
        """What has gradients: parameters, and the inputs that ask for them."""
        found = self._named(self.module.named_parameters())
        found.update({name: value for name, value in self.leaves.items()
                      if torch.is_tensor(value) and value.requires_grad})
        return found

    def gradients(self) -> Dict[str, Optional[torch.Tensor]]:
        return {name: value.grad for name, value in self.followed().items()}

    def differentiable(self) -> List[str]:
        return [name for name, value in self.outputs.items()
                if torch.is_tensor(value) and value.requires_grad]

    def gradients_of(self, cotangents: Dict[str, torch.Tensor]
                     ) -> Dict[str, Optional[torch.Tensor]]:
        """Those of the outputs, each weighted by its cotangent. The gradients that are there stay.
        By backward(): checkpointed modules refuse torch.autograd.grad."""
        followed = self.followed()
        kept = {name: value.grad for name, value in followed.items()}
        for value in followed.values():
            value.grad = None
        try:
            torch.autograd.backward([self.outputs[name] for name in cotangents],
                                    list(cotangents.values()), retain_graph=True)
            return self.gradients()
        finally:
            for name, value in followed.items():
                value.grad = kept[name]

    def backward(self, output: str) -> None:
        value = self.outputs[output]
        if value.is_complex():
            value = torch.view_as_real(value)
        value.sum().backward(retain_graph=True)

    def step(self) -> None:
        parameters = list(self.module.parameters())
        if parameters:
            torch.optim.SGD(parameters, lr=LEARNING_RATE).step()


class Check:
    def __init__(self, before: torch.nn.Module, after: torch.nn.Module, inputs: Any,
                 options: Options, report: NumericReport, side: Type["Side"]) -> None:
        self.given = (before, after)
        self.side = side
        self.inputs = inputs
        self.options = options
        self.report = report
        self.comparer = Comparer(report)

    def run(self) -> None:
        try:
            self.before = self.side("before", self.given[0], self.report.notes)
            self.after = self.side("after", self.given[1], self.report.notes)
            self._name()
            if self.options.follow:
                self._follow(keep_rows=True)
            for iteration in range(self.options.num_iterations):
                self._iterate(iteration)
        except Failed as error:
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
        if iteration == 0:
            self._ask(self.before, self.after)
        if "parameter" in kinds:
            pairs(iteration, "parameter", self.before.parameters(), self.after.parameters())
        if "buffer" in kinds:
            pairs(iteration, "buffer", self.before.buffers(), self.after.buffers(), False)
        if "output" in kinds:
            pairs(iteration, "output", self.before.outputs, self.after.outputs)
        if "input" in kinds:
            start = len(self.report.rows)
            pairs(iteration, "input", self.before.arguments, self.after.arguments)
            self.comparer.forgive(start)  # what it was given is not what a module computes
        if "gradient" in kinds or "step" in kinds:
            self._backward(iteration)
        if "gradient" in kinds:
            pairs(iteration, "gradient", self.before.gradients(), self.after.gradients())
            self._backward_of_all(iteration)
        if "step" in kinds:
            self.before.step()
            self.after.step()
            pairs(iteration, STEP, self.before.parameters(), self.after.parameters())

    def _ask(self, *sides: Side) -> None:
        """For the second opinion, once, where it is wanted. Both sides have been run."""
        if self.options.verdict == "rules" or self.comparer.opinions is not None:
            return
        from plumb._passcheck.opinions import Opinions, Plan
        before, after = (side.differentiable() for side in sides)
        both = [name for name in before if name in after]
        outputs = [next(iter(both or names), None) for names in (before, after)]
        plan = Plan(self.options.kinds, outputs, self.cotangents(0, *sides), LEARNING_RATE)

        def nodes(module: fx.GraphModule, inputs: Any) -> Dict[str, Any]:
            with self.side.around():
                return record_nodes(module, _placed(module, inputs))

        self.comparer.opinions = Opinions(self.given, self.after.names, self.inputs, plan, self.side,
                                          nodes, self.options.arithmetic)

    def _name(self) -> None:
        """Parameters that another name has after: found in the originals, which passes share."""
        for kind in ("parameters", "buffers"):
            before, after = (named(getattr(module, f"named_{kind}")()) for module in self.given)
            names = renamed(before, after)
            self.after.names.update(names)
            for name, original in names.items():
                self.comparer.note(f"{kind[:-1]} {original} is called {name} after")

    def _backward(self, iteration: int) -> None:
        """From the sum of the first output of both; one without a gradient is told, and the next is
        taken. A gradient that only one side can have is a difference."""
        before, after = self.before.differentiable(), self.after.differentiable()
        if not before and not after:
            self.comparer.note("no gradients were compared: no output has a grad_fn")
            return
        both = [name for name in before if name in after]
        if "gradient" in self.options.kinds:
            lone = [{name: None for name in names if name not in both and name in other.outputs}
                    for names, other in ((before, self.after), (after, self.before))]
            self.comparer.pairs(iteration, "gradient", *lone)
        first = next(iter(self.before.outputs), None)
        for side, names in ((self.before, before), (self.after, after)):
            output = next(iter(both or names), None)
            if output is None:
                self.comparer.note(f"no output has a grad_fn {side.name}")
                continue
            if output != first:
                self.comparer.note(f"{first} has no grad_fn; gradients are those of {output}")
            try:
                side.backward(output)
            except Exception as error:
                raise Failed(side.name, "has no backward", error) from error

    def _backward_of_all(self, iteration: int) -> None:
        """From all outputs at once, with cotangents drawn at random: the sum of a softmax, or of
        anything else that is normalised, has no gradient at all."""
        drawn = self.cotangents(iteration, self.before, self.after)
        if not drawn:
            return
        found, errors = [], []
        for side in (self.before, self.after):
            try:
                found.append(side.gradients_of({
                    name: value.to(side.outputs[name].device) for name, value in drawn.items()}))
            except Exception as error:
                errors.append(Failed(side.name, "has no second backward", error))
        if len(errors) == 1:
            raise errors[0]
        if errors:
            self.comparer.note(f"gradients of all outputs were not compared: {errors[0]}")
        else:
            self.comparer.pairs(iteration, ALL, found[0], found[1])

    @staticmethod
    def cotangents(iteration: int, before: Side, after: Side) -> Dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(SEED + iteration)
        drawn: Dict[str, torch.Tensor] = {}
        both = set(after.differentiable())
        for name in (name for name in before.differentiable() if name in both):
            ours, theirs = before.outputs[name], after.outputs[name]
            if (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype) and \
                    ours.layout is theirs.layout is torch.strided:
                wide = torch.complex128 if ours.is_complex() else torch.float64
                drawn[name] = torch.randn(ours.shape, dtype=wide, generator=generator)
        return {name: value.to(before.outputs[name].dtype) for name, value in drawn.items()}

    def _follow(self, keep_rows: bool) -> None:
        """Fresh copies: training has moved on in those of the check."""
        if not all(isinstance(module, fx.GraphModule) for module in self.given):
            if keep_rows:
                self.comparer.note("nodes were not followed: both modules must be torch.fx graphs")
            return
        try:
            seen = []
            for name, module in zip(("before", "after"), self.given):
                side = self.side(name, module, [])
                args = _placed(side.module, copy_inputs(self.inputs))
                seed()
                with self.side.around():
                    seen.append(record_nodes(side.module, args))
            if self.options.verdict != "rules" and self.comparer.opinions is None:
                sides = [self.side(name, module, []) for name, module in
                         zip(("before", "after"), self.given)]
                for side in sides:
                    side.run(self.inputs)
                self._ask(*sides)
            if self.comparer.opinions is not None:
                shared = [name for name in seen[0] if name in seen[1]]
                self.comparer.opinions.add_nodes(shared, named_leaves)
            compare_nodes(self.comparer, seen[0], seen[1], keep_rows)
        except Exception as error:
            self.comparer.note(f"nodes could not be followed: {describe(error)}")


def _placed(module: fx.GraphModule, inputs: Any) -> Tuple[Any, ...]:
    """The arguments in the order of the graph's placeholders."""
    args, kwargs = split_inputs(inputs)
    return args + tuple(kwargs[node.target] for node in module.graph.nodes
                        if node.op == "placeholder" and node.target in kwargs)
