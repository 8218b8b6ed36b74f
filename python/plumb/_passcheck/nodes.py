"""torch.fx graphs: put in order, and followed node by node."""

from typing import Any, Dict, List, Tuple

import torch
from torch import fx

from plumb._passcheck.compare import Comparer
from plumb._passcheck.copies import describe
from plumb._passcheck.leaves import named_leaves


def in_order(module: torch.nn.Module, notes: List[str]) -> torch.nn.Module:
    """A graph module whose nodes stand in an order they can run in: the module itself where they
    do, else a new one over the same parameters. Anything but a graph module is left alone."""
    if not isinstance(module, fx.GraphModule):
        return module
    nodes = list(module.graph.nodes)
    order = running_order(nodes)
    if order == nodes:
        return module
    graph = fx.Graph()
    twins: Dict[fx.Node, fx.Node] = {}
    for node in order:
        twins[node] = graph.node_copy(node, lambda needed: twins[needed])
    notes.append("the nodes of a graph did not stand in the order of their use; the check sorted "
                 "a copy")
    sorted_module = fx.GraphModule(module, graph)
    sorted_module.training = module.training
    return sorted_module


def running_order(nodes: List[fx.Node]) -> List[fx.Node]:
    """Stable: only what needs something that stands behind it moves back."""
    placed: Dict[fx.Node, None] = {}
    known = set(nodes)
    waiting = nodes
    while waiting:
        later: List[fx.Node] = []
        for node in waiting:
            if all(needed in placed for needed in node.all_input_nodes):
                placed[node] = None
            else:
                later.append(node)
        if len(later) == len(waiting):
            gone = [needed.name for node in later for needed in node.all_input_nodes
                    if needed not in known]
            raise RuntimeError(f"the graph uses {gone[0]}, which is not in it" if gone else
                               "the graph has a cycle through " +
                               ", ".join(node.name for node in later[:5]))
        waiting = later
    return list(placed)


def lint(module: torch.nn.Module, notes: List[str]) -> None:
    """What fx has to say about a graph; it is told, and the check goes on."""
    if not isinstance(module, fx.GraphModule):
        return
    try:
        module.graph.lint()
        module.recompile()
    except Exception as error:
        notes.append(f"the graph does not pass fx's lint: {describe(error)}")


class _Recorder(fx.Interpreter):
    """Runs a graph and keeps what every node came to, as it was at that moment."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.seen: Dict[str, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        if n.op not in ("placeholder", "get_attr", "output"):
            self.seen[n.name] = copy_of(result)
        return result


def copy_of(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        return [copy_of(item) for item in value]
    if type(value) is dict:
        return {key: copy_of(item) for key, item in value.items()}
    return value


def record_nodes(module: fx.GraphModule, arguments: Tuple[Any, ...]) -> Dict[str, Any]:
    recorder = _Recorder(module)
    with torch.no_grad():
        recorder.run(*arguments)
    return recorder.seen


def compare_nodes(comparer: Comparer, before: Dict[str, Any], after: Dict[str, Any],
                  keep_rows: bool, iteration: int = 0) -> None:
    """Nodes that kept their names, in the order they ran before. The first that differs is noted in
    the report; rows are kept where they were asked for."""
    report = comparer.report
    start = len(report.rows)
    for name, value in before.items():
        if name not in after:
            continue
        comparer.pairs(iteration, "node", named_leaves(value, name, iterators=False),
                       named_leaves(after[name], name, iterators=False))
    comparer.forgive(start)  # outputs decide; a node on the way there may be anything
    failed = next((row for row in report.rows[start:] if report.objects(row)), None)
    if failed is not None and report.first_node is None:
        report.first_node = failed.name
    if not keep_rows:
        del report.rows[start:]
