"""A graph as it is at this moment, in memory of its own.

GraphModule.__copy__ shares the graph, and whatever a pass does to one it does to both. Here every node is copied,
and the tensors that the module holds. A node that a pattern has replaced by code of the compiler (a lowering), which
no tensor can go through, is put back as the nodes that were there.
"""

from typing import Any, Dict, Hashable, List, NamedTuple, Optional, Tuple

import torch
from torch import fx

from plumb import tensors
from plumb._passcheck.nodes import running_order

KEPT_META = ("stack_trace", "nn_module_stack")
FEW_BYTES = 1 << 26  # of constants: so many are looked at for changes that nothing tells of


class Lowered(NamedTuple):
    """What a pattern replaced by a lowering."""
    module: fx.GraphModule  # computes what was there
    places: List[int]       # its inputs, among the nodes in the arguments of the replacement
    name: str


class Copies:
    """Of tensors, so that several snapshots share those that did not change."""

    def __init__(self) -> None:
        self.made: Dict[int, Tuple[torch.Tensor, int, torch.Tensor]] = {}

    def of(self, value: torch.Tensor) -> torch.Tensor:
        known = self.made.get(id(value))
        if known is not None and known[0] is value and known[1] == _mark(value):
            return known[2]
        twin = value.detach().clone()
        if isinstance(value, torch.nn.Parameter):
            twin = torch.nn.Parameter(twin, value.requires_grad)
        self.made[id(value)] = (value, _mark(value), twin)
        return twin


def is_fake(value: Any) -> bool:
    return type(value).__name__ in ("FakeTensor", "FunctionalTensor") or \
        (isinstance(value, torch.Tensor) and value.device.type == "meta")


def _mark(value: torch.Tensor) -> int:
    """Another number once the tensor has changed."""
    if is_fake(value) or value.numel() * value.element_size() > FEW_BYTES:
        return value._version
    try:
        return int(tensors.view(value.detach()).crc32())
    except Exception:
        return value._version


def _held(module: torch.nn.Module, target: str) -> Any:
    value: Any = module
    for name in target.split("."):
        value = getattr(value, name)
    return value


def signature(module: fx.GraphModule) -> Hashable:
    """Equal as long as nothing has changed."""
    found: List[Hashable] = []
    for node in module.graph.nodes:
        target = node.target if isinstance(node.target, str) else id(node.target)
        found.append((node.op, node.name, target, repr(node.args), repr(node.kwargs)))
        if node.op == "get_attr":
            value = _held(module, node.target)
            if isinstance(value, torch.Tensor):
                found.append((id(value), _mark(value)))
            elif isinstance(value, fx.GraphModule):
                found.append(signature(value))
        elif node.op == "call_module":
            found += [(id(one), _mark(one)) for one in _held(module, node.target).parameters()]
    return tuple(found)


def snapshot(module: fx.GraphModule, copies: Copies, lowered: Optional[Dict[Any, Lowered]] = None,
             outputs: Any = None) -> fx.GraphModule:
    """outputs: nodes of the graph that the copy returns instead of its own."""
    graph = fx.Graph()
    twins: Dict[fx.Node, fx.Node] = {}
    held: Dict[str, Any] = {}
    for node in running_order(list(module.graph.nodes)):
        if outputs is not None and node.op == "output":
            continue
        known = _lowering(lowered, node)
        if known is not None:
            name = f"lowered_{len(held)}"
            held[name] = known.module
            given = node.all_input_nodes
            twin = graph.create_node("call_module", name,
                                     tuple(twins[given[place]] for place in known.places), {}, node.name)
        else:
            twin = graph.node_copy(node, lambda needed: twins[needed])
        if twin.name != node.name:
            twin._rename(node.name)
        twin.meta = {key: node.meta[key] for key in KEPT_META if key in node.meta}
        twins[node] = twin
        if known is None and node.op in ("get_attr", "call_module"):
            held[node.target] = _copied(_held(module, node.target), copies, lowered)
    if outputs is not None:
        graph.output(fx.map_arg(outputs, lambda node: twins[node]))
    copy = fx.GraphModule(held, graph)
    copy.train(module.training)
    return copy


def _lowering(lowered: Optional[Dict[Any, Lowered]], node: fx.Node) -> Optional[Lowered]:
    if not lowered or node.op != "call_function":
        return None
    return lowered.get(id(node.target))


def _copied(value: Any, copies: Copies, lowered: Optional[Dict[Any, Lowered]]) -> Any:
    if isinstance(value, torch.Tensor):
        return value if is_fake(value) else copies.of(value)
    if isinstance(value, fx.GraphModule):
        return snapshot(value, copies, lowered)
    if isinstance(value, torch.nn.Module):
        from plumb._passcheck.copies import copy_module
        return copy_module(value, [])
    return value


def cut_out(nodes: List[fx.Node], result: fx.Node) -> Tuple[fx.GraphModule, List[fx.Node]]:
    """Some nodes of a graph as a module of their own, and what it is to be given."""
    graph = fx.Graph()
    inside, order = set(nodes), []
    twins: Dict[fx.Node, fx.Node] = {}
    for node in in_running_order_of(nodes):
        for needed in node.all_input_nodes:
            if needed not in inside and needed not in twins:
                twins[needed] = graph.placeholder(needed.name)
                order.append(needed)
    for node in in_running_order_of(nodes):
        twins[node] = graph.node_copy(node, lambda needed: twins[needed])
        twins[node].meta = {}
    graph.output(twins[result])
    return fx.GraphModule({}, graph), order


def in_running_order_of(nodes: List[fx.Node]) -> List[fx.Node]:
    chosen = set(nodes)
    return [node for node in nodes[0].graph.nodes if node in chosen] if nodes else []
