"""A graph before and after a pass, run on the same values and judged by what right arithmetic shows."""

import contextlib
import warnings
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch
from torch import fx

from plumb._compile.drawn import Drawn, without_modes
from plumb._passcheck.copies import describe
from plumb._passcheck.higher import uncompiled
from plumb._passcheck.nodes import record_nodes
from plumb._passcheck.opinions import flat, raise_inputs, same_bits
from plumb._passcheck.raised import Raised, Recorder, raise_module
from plumb._passcheck.report import NumericReport, NumericRow
from plumb._passcheck.run import Options, Side, check_pair
from plumb._passcheck.state import deterministic
from plumb._verdict.judge import ORDER

COARSER = "cheaper arithmetic"
KINDS = ("parameter", "buffer", "output", "input", "gradient")


class DrawnSide(Side):
    """Random numbers are the same whoever draws them."""

    @staticmethod
    @contextlib.contextmanager
    def around() -> Iterator[None]:
        with Drawn(), uncompiled():
            yield


class Judged(NamedTuple):
    """verdict: same, rounding, tie, cheaper arithmetic, fault or not judged."""
    verdict: str
    why: str
    pattern: str = ""  # of the fault
    what: str = ""     # the first result that is a fault
    node: Optional[str] = None  # where it begins
    was: str = ""      # the nodes that were there before it
    words: Dict[str, int] = {}


def judge_pair(before: torch.nn.Module, after: torch.nn.Module, inputs: Sequence[Any],
               gradients: bool) -> Judged:
    """gradients: the graphs run under autograd, and are followed by a backward of its."""
    kinds = KINDS if gradients else tuple(kind for kind in KINDS if kind != "gradient")
    with without_modes(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = _equal(before, after, inputs, kinds)
        if problem == "":
            return Judged("same", "bit for bit the same results")
        if problem is not None:
            return Judged("not judged", problem)
        report = check_pair(before, after, tuple(inputs),
                            Options(1, 1e-4, False, kinds, False, "expected"), DrawnSide)
        return _summed(report, before, after, inputs, kinds)


def _equal(before: torch.nn.Module, after: torch.nn.Module, inputs: Sequence[Any],
           kinds: Sequence[str]) -> Optional[str]:
    """"" where all results are the same bits, None where not, else why nobody can tell."""
    sides: List[Side] = []
    found: List[Dict[str, Any]] = []
    with deterministic(False):
        for name, module in (("before", before), ("after", after)):
            try:
                side = DrawnSide(name, module, [])
                side.run(tuple(inputs))
                names = side.differentiable() if "gradient" in kinds else []
                if names:
                    side.backward(names[0])
                sides.append(side)
            except Exception as error:
                return describe(error).replace("Failed: ", "")
            found.append({**side.outputs, **side.arguments, **side.parameters(),
                          **{f"gradient {key}": value for key, value in side.gradients().items()}})
    if list(found[0]) != list(found[1]):
        return None
    return "" if all(_same(found[0][name], found[1][name]) for name in found[0]) else None


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return same_bits(a, b)
    return type(a) is type(b) and bool(a == b)


def _verdict(row: NumericRow) -> str:
    return "" if row.opinion is None else row.opinion.verdict


def _summed(report: NumericReport, before: torch.nn.Module, after: torch.nn.Module,
            inputs: Sequence[Any], kinds: Sequence[str]) -> Judged:
    if report.error is not None:
        return Judged("not judged", report.error)
    words = report.words
    faults = report.faults
    if not faults:
        judged = [word for word in ORDER if word in words and word != "not judged"]
        if not judged:
            row = next((row for row in report.rows if row.opinion is not None), None)
            return Judged("not judged", row.opinion.why if row is not None and row.opinion is not None
                          else "there was nothing to compare", words=words)
        worst = max(judged, key=ORDER.index)
        row = next(row for row in report.rows if _verdict(row) == worst)
        node = _first_changed(before, after) if worst == COARSER else None
        return Judged(worst, row.opinion.why if row.opinion is not None else "", node=node, words=words)
    first = faults[0]
    assert first.opinion is not None
    node, was = _where(before, after, inputs, kinds)
    return Judged("fault", first.opinion.why, first.opinion.pattern, f"{first.kind} {first.name}", node, was,
                  words)


# -- At which node ---------------------------------------------------------------------------------

def _where(before: torch.nn.Module, after: torch.nn.Module, inputs: Sequence[Any],
           kinds: Sequence[str]) -> Any:
    """The first node after the pass that is another one or new, and leads to what is wrong."""
    if not isinstance(before, fx.GraphModule) or not isinstance(after, fx.GraphModule):
        return None, ""
    good, bad = _by_formula(before, after, inputs)
    if not bad:
        good, bad = _by_opinion(before, after, inputs)
    target = next((node for node in after.graph.nodes if node.name in bad or node.op == "output"), None)
    if target is None:
        return None, ""
    changed = _changed(before, after)
    behind = _behind(target, good)
    found = [node for node in after.graph.nodes if node in behind and node.name in changed]
    was = _gone(before, after, target, good)
    if found:
        return found[0].name, was
    return (_first_changed(before, after) if target.op == "output" else target.name), was  # a wrong gradient


def _by_formula(before: fx.GraphModule, after: fx.GraphModule,
                inputs: Sequence[Any]) -> Tuple[Set[str], Set[str]]:
    """Nodes that kept their names and are the same in float64, and those that are not."""
    seen: List[Dict[str, Any]] = []
    for module in (before, after):
        side = DrawnSide("", module, [])
        raise_module(side.module)
        with deterministic(False), Raised(Recorder()), Drawn():
            seen.append(record_nodes(side.module, raise_inputs(tuple(inputs))))
    good: Set[str] = set()
    bad: Set[str] = set()
    for name in seen[0]:
        if name in seen[1]:
            (good if _near(seen[0][name], seen[1][name]) else bad).add(name)
    return good, bad


def _near(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if a.shape != b.shape:
            return False
        a, b = flat(a), flat(b)
        size = float(torch.nan_to_num(a).abs().max()) if a.numel() else 0.0
        return torch.allclose(a, b, rtol=1e-9, atol=1e-9 * size, equal_nan=True)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_near(x, y) for x, y in zip(a, b))
    return True


def _by_opinion(before: fx.GraphModule, after: fx.GraphModule,
                inputs: Sequence[Any]) -> Tuple[Set[str], Set[str]]:
    """The same by what right arithmetic shows, where the formulas are equal."""
    report = check_pair(before, after, tuple(inputs),
                        Options(1, 1e-4, False, ("output",), True, "expected"), DrawnSide)
    rows = [row for row in report.rows if row.kind == "node" and row.opinion is not None]
    bad = {_node_of(row) for row in rows if _verdict(row) == "fault"}
    return {_node_of(row) for row in rows} - bad, bad


def _node_of(row: NumericRow) -> str:
    return row.name.split(".", 1)[0]


def _behind(target: fx.Node, good: Set[str]) -> Set[fx.Node]:
    """The node and what leads to it, up to nodes that are right."""
    found: Set[fx.Node] = set()
    waiting = [target]
    while waiting:
        node = waiting.pop()
        if node in found or (node is not target and node.name in good):
            continue
        found.add(node)
        waiting += node.all_input_nodes
    return found


def _text(node: fx.Node) -> Any:
    return node.op, str(node.target), repr(node.args), repr(node.kwargs)


def _changed(before: fx.GraphModule, after: fx.GraphModule) -> Set[str]:
    old = {node.name: _text(node) for node in before.graph.nodes}
    return {node.name for node in after.graph.nodes
            if node.op not in ("placeholder", "output") and old.get(node.name) != _text(node)}


def _first_changed(before: torch.nn.Module, after: torch.nn.Module) -> Optional[str]:
    if not isinstance(before, fx.GraphModule) or not isinstance(after, fx.GraphModule):
        return None
    changed = _changed(before, after)
    return next((node.name for node in after.graph.nodes if node.name in changed), None)


def _gone(before: fx.GraphModule, after: fx.GraphModule, target: fx.Node, good: Set[str]) -> str:
    """The nodes that the pass took away there."""
    twin = next((node for node in before.graph.nodes
                 if node.name == target.name or node.op == target.op == "output"), None)
    if twin is None:
        return ""
    left = {node.name for node in after.graph.nodes}
    behind = _behind(twin, good)
    names = [node.name for node in before.graph.nodes if node in behind and node.name not in left]
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
