"""What a graph is run on: the values that the script gave, where they are known, else made ones."""

from typing import Any, Dict, List, Sequence, Tuple

import torch
from torch import fx

from plumb._compile.drawn import without_modes
from plumb._compile.snapshot import is_fake


class NoValue(Exception):
    """A graph that cannot be given what it needs."""


def whole(value: Any) -> int:
    """A number that may stand for any: the one that the script came with."""
    if isinstance(value, int):
        return value
    node = getattr(value, "node", None)
    hint = getattr(node, "hint", None)
    if hint is None and node is not None and getattr(node, "is_constant", lambda: False)():
        hint = node.maybe_as_int()
    if hint is None:
        raise NoValue(f"an extent that depends on values ({value})")
    return int(hint)


def made(like: Any, name: str) -> Any:
    """A value for a placeholder from what the compiler knows of it."""
    if like is None or isinstance(like, (bool, str, float)):
        return like
    if isinstance(like, (int, torch.SymInt)):
        return whole(like)
    if isinstance(like, torch.SymFloat):
        return float(like.node.hint)
    if isinstance(like, torch.Tensor):
        return _tensor(like, name)
    raise NoValue(f"the input {name} is a {type(like).__name__}")


def _tensor(like: torch.Tensor, name: str) -> torch.Tensor:
    if type(like).__name__ not in ("FakeTensor", "Tensor", "Parameter", "FunctionalTensor"):
        raise NoValue(f"the input {name} is a {type(like).__name__}")
    if like.layout is not torch.strided:
        raise NoValue(f"the input {name} is a {like.layout} tensor")
    shape = tuple(whole(extent) for extent in like.shape)
    stride = tuple(whole(step) for step in like.stride())
    device = "cpu" if like.device.type == "meta" else like.device
    generator = torch.Generator().manual_seed(sum(name.encode()) * 31 + len(name))
    if like.is_floating_point() or like.is_complex():
        wide = torch.complex128 if like.is_complex() else torch.float64
        values = torch.randn(shape, dtype=wide, generator=generator)
    else:  # zeros and ones are places, counts and truths that most graphs can take
        values = torch.randint(0, 2, shape, generator=generator)
    values = values.to(device=device, dtype=like.dtype)
    if values.stride() != stride and 0 not in stride:
        strided = torch.empty_strided(shape, stride, dtype=like.dtype, device=device)
        values = strided.copy_(values)
    return values.requires_grad_(like.requires_grad)


def same_kind(value: Any, like: Any) -> bool:
    """Whether a value can stand for what the compiler knows of an input."""
    if isinstance(like, torch.Tensor):
        try:
            return isinstance(value, torch.Tensor) and value.dtype == like.dtype and \
                tuple(value.shape) == tuple(whole(extent) for extent in like.shape)
        except NoValue:
            return False
    return not isinstance(value, torch.Tensor)


def placeholders(module: fx.GraphModule) -> List[fx.Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def known_of(node: fx.Node) -> Any:
    """What the compiler knows of a node's value."""
    return node.meta["val"] if "val" in node.meta else node.meta.get("example_value")


class Values:
    """Values of one compilation after the other: what the script gave, and what forward graphs made of it for
    their backward."""

    def __init__(self) -> None:
        self.given: List[Any] = []  # to the region at hand
        self.forwards: List[Dict[str, Any]] = []  # by the names of nodes, the newest last

    def start(self, inputs: Sequence[Any]) -> None:
        self.given = [_kept(value) for value in inputs]
        self.forwards.append({})
        del self.forwards[:-8]

    def of(self, stage: str, module: fx.GraphModule, inputs: Sequence[Any] = ()) -> Tuple[Any, ...]:
        nodes = placeholders(module)
        with without_modes(), torch.no_grad():
            if stage == "pre-grad" and len(inputs) == len(nodes):
                return tuple(_real(value, node.name) for value, node in zip(inputs, nodes))
            known = self._known(nodes)
            found = tuple(known[node.name] if node.name in known else made(known_of(node), node.name)
                          for node in nodes)
        if self.forwards:
            self.forwards[-1].update({node.name: value for node, value in zip(nodes, found)})
        return found

    def _known(self, nodes: List[fx.Node]) -> Dict[str, Any]:
        """By name of a forward that fits, else by place of what the script gave."""
        inputs = [node for node in nodes if not node.name.startswith("tangents")]
        for forward in reversed(self.forwards):
            if inputs and all(node.name in forward and same_kind(forward[node.name], known_of(node))
                              for node in inputs):
                return {node.name: forward[node.name] for node in inputs}
        if len(inputs) == len(self.given) and all(
                same_kind(value, known_of(node)) for node, value in zip(inputs, self.given)):
            return {node.name: value for node, value in zip(inputs, self.given)}
        return {}

    def remember(self, values: Dict[str, Any]) -> None:
        """What a forward graph returned, by the names of the nodes, under which its backward gets it."""
        if self.forwards:
            self.forwards[-1].update(values)


def _kept(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and not is_fake(value):
        return value.detach().clone()
    return value


def _real(value: Any, name: str) -> Any:
    if isinstance(value, torch.Tensor) and not is_fake(value):
        return value
    return made(value, name)


