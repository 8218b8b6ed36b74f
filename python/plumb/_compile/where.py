"""Which node of a graph is the first to be wrong, for each stage in its own way."""

import contextlib
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set

import torch
from torch import fx

from plumb._compile.against import Against
from plumb._compile.backends import Graph
from plumb._compile.judged import judge_pair
from plumb._compile.snapshot import Copies, snapshot
from plumb._passcheck.copies import copy_inputs
from plumb._passcheck.higher import Mode, is_higher, run_higher
from plumb._passcheck.report import NumericReport, NumericRow

MOST_NUMBERS = 1 << 25  # of an uncompiled run that are kept
FEW = 200  # nodes whose decompositions are looked at one by one


class Found(NamedTuple):
    node: Optional[str]
    graph: Optional[Graph]
    verdict: str = "fault"
    why: str = ""
    what: str = ""
    target: str = ""  # the operator


# -- Dynamo and AOT: what the uncompiled run never had ---------------------------------------------

class Seen(Mode):
    """Every result of a run."""

    def __init__(self) -> None:
        super().__init__()
        self.results: Dict[Any, List[torch.Tensor]] = {}
        self.size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (),
                           kwargs: Optional[Dict[str, Any]] = None) -> Any:
        if is_higher(func):
            return run_higher(self, func, args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        for one in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(one, torch.Tensor) and self.size < MOST_NUMBERS:
                self.size += one.numel()
                self.results.setdefault(tuple(one.shape), []).append(one.detach().clone())
        return result

    def has(self, value: torch.Tensor) -> bool:
        """Whether something like it was there; yes where nothing of its shape was."""
        known = self.results.get(tuple(value.shape))
        if known is None or not value.numel():
            return True
        wide = value.detach().to(torch.float64)
        limit = 1e-2 if value.dtype in (torch.bfloat16, torch.float16) else 1e-4
        size = float(wide.abs().max())
        return any(torch.allclose(wide, one.to(torch.float64), rtol=limit, atol=limit * size, equal_nan=True)
                   for one in known if not one.is_complex()) if not value.is_complex() else True


def never_seen(against: Against, graphs: Sequence[Graph]) -> Found:
    """The first node whose result the uncompiled run did not have."""
    seen = Seen()
    side = against.kind("uncompiled", against.module, [])
    with seen:
        side.run(against.inputs)
        if against.cotangents:
            side.gradients_of(against.cotangents)
    if seen.size >= MOST_NUMBERS:
        return Found(None, None, why="the model is too large to keep every result of a run")
    for graph in graphs:
        for node in graph.module.graph.nodes:
            value = graph.values.get(node.name)
            if isinstance(value, torch.Tensor) and not seen.has(value):
                return Found(node.name, graph, what=f"node {node.name}", target=str(node.target))
    return Found(None, None)


# -- Decompositions: each against the operator itself ----------------------------------------------

class _Call(torch.nn.Module):
    """A function with everything but its tensors."""

    def __init__(self, function: Any, args: Any, kwargs: Dict[str, Any]) -> None:
        super().__init__()
        self.function, self.held = function, (args, kwargs)

    def forward(self, *tensors: torch.Tensor) -> Any:
        at = iter(tensors)

        def fill(value: Any) -> Any:
            if isinstance(value, _Place):
                return next(at)
            if isinstance(value, (list, tuple)):
                return type(value)(fill(item) for item in value)
            return value
        args, kwargs = self.held
        result = self.function(*fill(args), **{key: fill(value) for key, value in kwargs.items()})
        if result is NotImplemented:
            raise NotImplementedError("the decomposition leaves this call alone")
        return tuple(result) if isinstance(result, tuple) else result  # whose parts may have names


class _Place:
    pass


def wrong_decomposition(graphs: Sequence[Graph]) -> Found:
    """graphs: those of AOT, not decomposed yet."""
    from torch._inductor.compile_fx import select_decomp_table
    table = select_decomp_table()
    tried: Set[Any] = set()
    for graph in graphs:
        if graph.inputs is None:
            continue
        values = dict(graph.values)
        names = [node.name for node in graph.module.graph.nodes if node.op == "placeholder"]
        values.update(zip(names, graph.inputs))
        for node in graph.module.graph.nodes:
            if node.op != "call_function" or node.target not in table or len(tried) >= FEW:
                continue
            found = _decomposed(node, table[node.target], values, tried)
            if found is not None:
                return found._replace(graph=graph)
    return Found(None, None)


def _decomposed(node: fx.Node, function: Any, values: Dict[str, Any], tried: Set[Any]) -> Optional[Found]:
    tensors: List[torch.Tensor] = []

    def take(value: Any) -> Any:
        if isinstance(value, fx.Node):
            value = values.get(value.name)
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            return _Place()
        if isinstance(value, (list, tuple)):
            return type(value)([take(item) for item in value])
        return value

    args = tuple(take(value) for value in node.args)
    kwargs = {key: take(value) for key, value in node.kwargs.items()}
    tried.add(node)
    judged = judge_pair(_Call(node.target, args, kwargs), _Call(function, args, kwargs), tensors, False)
    if judged.verdict != "fault":
        return None
    return Found(node.name, None, judged.verdict, judged.why, f"the decomposition of {node.target}",
                 str(node.target))


# -- Code generation: what is compiled against what is interpreted ---------------------------------

def wrong_code(graphs: Sequence[Graph], arithmetic: str) -> Found:
    """graphs: those that inductor compiled, with the inputs and results of a run."""
    for graph in graphs:
        if graph.inputs is None or graph.results is None:
            continue
        against = _against(graph.module, graph, arithmetic)
        rows = against.compare_results(graph.results).faults
        if rows:
            first = _exposed(graph, against) or _halved(graph, arithmetic)
            found = _row(rows[0]) if first is None else _row(first)
            name = None if first is None else first.name.split(".", 1)[0]
            return found._replace(node=name, graph=graph, target=_target(graph.module, name))
    return Found(None, None)


def right_code(graphs: Sequence[Graph], arithmetic: str) -> bool:
    """Whether what is compiled gives what the graphs do after all passes, in their own types. Not where nothing ran."""
    ran = [graph for graph in graphs if graph.inputs is not None and graph.results is not None]
    for graph in ran:
        if graph.final is None or graph.results is None:
            return False
        found = _against(graph.final, graph, arithmetic).compare_results(graph.results)
        if found.faults or not found.judged:
            return False
    return bool(ran)


def _target(module: fx.GraphModule, name: Optional[str]) -> str:
    return next((str(node.target) for node in module.graph.nodes if node.name == name), "")


def _row(row: NumericRow) -> Found:
    assert row.opinion is not None
    return Found(None, None, row.opinion.verdict, row.opinion.why, f"{row.kind} {row.name}")


def _against(module: fx.GraphModule, graph: Graph, arithmetic: str) -> Against:
    def start() -> None:
        if graph.state is not None:
            torch.set_rng_state(graph.state)
    assert graph.inputs is not None
    return Against(module, tuple(graph.inputs), False, arithmetic, start)


def _inner(module: fx.GraphModule, graph: Graph) -> Sequence[Any]:
    """Compiled as the graph was, and run."""
    from torch._inductor.compile_fx import compile_fx_inner
    assert graph.inputs is not None
    inputs = copy_inputs(list(graph.inputs))
    with torch.no_grad():
        compiled: Any = compile_fx_inner(module, copy_inputs(list(graph.inputs)), is_backward=graph.backward)
        if graph.state is not None:
            torch.set_rng_state(graph.state)
        results: Sequence[Any] = compiled(inputs)
        return results


def _values(module: fx.GraphModule, graph: Graph) -> List[fx.Node]:
    """The nodes that are tensors, in order, but for those that write to an input."""
    seen: Dict[str, Any] = {}
    against = _against(module, graph, "")
    with contextlib.suppress(Exception):
        seen = against.nodes(against.eager.module, copy_inputs(tuple(graph.inputs or ())))
    return [node for node in module.graph.nodes
            if isinstance(seen.get(node.name), torch.Tensor) and node.users]


def _exposed(graph: Graph, against: Against) -> Optional[NumericRow]:
    """All nodes as results of one compiled graph."""
    nodes = _values(graph.module, graph)
    try:
        results = _inner(snapshot(graph.module, Copies(), outputs=tuple(nodes)), graph)
    except Exception:
        return None  # a graph that cannot be compiled so; it is halved
    report = against.compare_nodes({node.name: value for node, value in zip(nodes, results)})
    return next(iter(report.faults), None)


def _halved(graph: Graph, arithmetic: str) -> Optional[NumericRow]:
    """Graphs that end at one node: what is fused may be wrong only then."""
    nodes = _values(graph.module, graph)

    def bad(at: int) -> Optional[NumericRow]:
        module = snapshot(graph.module, Copies(), outputs=(nodes[at],))
        try:
            results = _inner(snapshot(module, Copies()), graph)
            report: NumericReport = _against(module, graph, arithmetic).compare_results(results)
        except Exception:
            return None
        return next(iter(report.faults), None)

    low, high, found = -1, len(nodes) - 1, None
    if high < 0 or (found := bad(high)) is None:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        row = bad(middle)
        low, high, found = (middle, high, found) if row is None else (low, middle, row)
    return found._replace(name=nodes[high].name)
