"""Results of a compiled module held against what the module shows uncompiled, in its own types and in float64."""

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Type

import torch
from torch import fx

from plumb._compile.replay import Draws, Replay
from plumb._passcheck.compare import Comparer
from plumb._passcheck.copies import copy_inputs
from plumb._passcheck.higher import Branches, uncompiled
from plumb._passcheck.leaves import named_leaves
from plumb._passcheck.nodes import record_nodes
from plumb._passcheck.opinions import Opinions, Plan
from plumb._passcheck.report import NumericReport
from plumb._passcheck.run import ALL, Check, Side

KINDS = ("output", "buffer", "input", "gradient")


class CompiledSide(Side):
    """Runs what a compiler made of the module."""

    def __init__(self, name: str, module: torch.nn.Module, notes: List[str],
                 compiled: Callable[[torch.nn.Module], Callable[..., Any]]) -> None:
        super().__init__(name, module, notes)
        self.compiled = compiled(self.module)
        self.state: Optional[torch.Tensor] = None  # of the generator, after forward

    def call(self, *args: Any, **kwargs: Any) -> Any:
        result = self.compiled(*args, **kwargs)
        self.state = torch.get_rng_state()
        return result

    def gradients_of(self, cotangents: Dict[str, torch.Tensor]) -> Dict[str, Optional[torch.Tensor]]:
        """Once: a compiled backward may use up what it was given."""
        torch.autograd.backward([self.outputs[name] for name in cotangents], list(cotangents.values()))
        return self.gradients()


class Against:
    """The module uncompiled, run once; what is compiled is compared with it as often as wanted."""

    def __init__(self, module: torch.nn.Module, inputs: Any, backward: bool, arithmetic: str,
                 start: Optional[Callable[[], None]] = None) -> None:
        """start: sets the generators, where their usual start is not the one."""
        self.module, self.inputs, self.arithmetic = module, inputs, arithmetic
        self.backward = backward
        self.draws = Draws()
        self.notes: List[str] = []
        draws = self.draws

        class Eager(Side):
            @staticmethod
            @contextlib.contextmanager
            def around() -> Iterator[None]:
                if start is not None:
                    start()
                with Replay(draws), uncompiled():
                    yield

        self.kind: Type[Side] = Eager
        self.eager = Eager("uncompiled", module, self.notes)
        branches = Branches.count
        self.eager.run(inputs)
        self.branches = Branches.count > branches
        self.state = torch.get_rng_state()
        self.cotangents: Dict[str, torch.Tensor] = {}
        self.gradients: Dict[str, Any] = {}
        self.opinions: Optional[Opinions] = None

    def compare(self, side: CompiledSide) -> NumericReport:
        """Runs the compiled module, forward and backward."""
        report = NumericReport(1, 1e-4, "expected")
        side.run(self.inputs)
        if self.draws.kept and side.state is not None and not torch.equal(side.state, self.state):
            report.error = "the compiled model draws other random numbers than the model itself"
            return report
        comparer = self._comparer(report, side)
        comparer.pairs(0, "output", self.eager.outputs, side.outputs)
        comparer.pairs(0, "buffer", self.eager.buffers(), side.buffers(), False)
        start = len(report.rows)
        comparer.pairs(0, "input", self.eager.arguments, side.arguments)
        comparer.forgive(start)
        if self.cotangents:
            lone = [name for name in self.cotangents if name not in side.differentiable()]
            if lone:
                comparer.pairs(0, ALL, {name: "" for name in lone}, {})
            else:
                comparer.pairs(0, ALL, self.gradients, self._without_zeros(side.gradients_of(self.cotangents)))
        return report

    def _without_zeros(self, found: Dict[str, Optional[torch.Tensor]]) -> Dict[str, Optional[torch.Tensor]]:
        """None for the zeros of a branch that was not taken."""
        return {name: None if self.branches and value is not None and self.gradients.get(name) is None and
                not value.any() else value for name, value in found.items()}

    def _comparer(self, report: NumericReport, side: Side) -> Comparer:
        if self.opinions is None:
            if self.backward:
                self.cotangents = Check.cotangents(0, self.eager, side)
                if self.cotangents:
                    self.gradients = self.eager.gradients_of(self.cotangents)
            plan = Plan(KINDS if self.cotangents else KINDS[:3], [None, None], self.cotangents, 0.0)
            self.opinions = Opinions((self.module, self.module), {}, self.inputs, plan, self.kind, self.nodes,
                                     self.arithmetic)
        comparer = Comparer(report)
        comparer.opinions = self.opinions
        return comparer

    def nodes(self, module: fx.GraphModule, inputs: Any) -> Dict[str, Any]:
        with self.kind.around():
            return record_nodes(module, tuple(inputs))

    # -- A graph whose results are there already ---------------------------------------------------

    def compare_results(self, results: Sequence[Any]) -> NumericReport:
        """What a compiled graph gave for these inputs."""
        report = NumericReport(1, 1e-4, "expected")
        comparer = self._comparer(report, self.eager)
        comparer.pairs(0, "output", self.eager.outputs, named_leaves(tuple(results), "output"))
        return report

    def compare_nodes(self, values: Dict[str, Any]) -> NumericReport:
        """Of a graph: what a compiler gave for some nodes, in the order of the graph."""
        assert isinstance(self.module, fx.GraphModule)
        report = NumericReport(1, 1e-4, "expected")
        comparer = self._comparer(report, self.eager)
        side = self.kind("uncompiled", self.module, [])
        seen = self.nodes(side.module, copy_inputs(self.inputs))
        names = [name for name in seen if name in values]
        assert self.opinions is not None
        self.opinions.add_nodes(names, named_leaves)
        for name in names:
            comparer.pairs(0, "node", named_leaves(seen[name], name, iterators=False),
                           named_leaves(values[name], name, iterators=False))
        return report
