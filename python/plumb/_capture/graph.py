"""The gradients of one call, without adding to the graph.

Before a call the gradient edges of its inputs are taken: (node, which of its outputs), or the
tensor itself for a leaf. After it, the nodes between its outputs and those edges are the call's
own. Hooks on the nodes that have an edge into an input see what exactly this call sends there,
which is not the whole gradient of a tensor that is used elsewhere too. Nothing here keeps a node or
a tensor: a hook that refers to its node would never be freed.
"""

import functools
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor

from plumb._capture import wrappers

MAX_NODES = 100_000  # a walk that leaves its call is given up


class Edges(NamedTuple):
    """Where the inputs of a call hang in the graph, taken before the call."""
    nodes: Dict[Tuple[Any, int], List[int]]  # edge -> numbers of the inputs
    leaves: Dict[int, List[int]]             # id of a leaf -> numbers of the inputs
    first: Optional[int]                     # the next number of a node, where PyTorch tells


def sequence() -> Optional[int]:
    """The number that the next node of this thread gets (PyTorch 2)."""
    peek = getattr(torch.autograd, "_get_sequence_nr", None)
    return peek() if peek else None


def edges_of(tensors: Sequence[Tensor]) -> Edges:
    nodes: Dict[Tuple[Any, int], List[int]] = {}
    leaves: Dict[int, List[int]] = {}
    for number, tensor in enumerate(tensors):
        if not tensor.requires_grad:
            continue
        try:
            node = tensor.grad_fn
        except RuntimeError:  # a view that autograd has lost track of; the call itself will say so
            continue
        if node is None:
            leaves.setdefault(id(tensor), []).append(number)
        else:
            nodes.setdefault((node, tensor.output_nr), []).append(number)
    return Edges(nodes, leaves, sequence() if nodes or leaves else None)


class Work(NamedTuple):
    """What one hook reports."""
    taken: List[Tuple[int, int]]             # (which gradient comes in, number of the output)
    sent: List[Tuple[int, Sequence[int]]]    # (which one goes on, numbers of the inputs)
    passed: List[Tuple[int, Sequence[int]]]  # (which comes in, numbers of inputs that it is)


class Plan(NamedTuple):
    """The hooks of a call, and how many gradients each input gets."""
    nodes: List[Tuple[Any, Work]]
    parts: Dict[int, int]
    complete: bool


def plan(edges: Edges, outputs: Sequence[Tensor]) -> Plan:
    """Finds the call's nodes, from its outputs back to its inputs."""
    works: Dict[Any, Work] = {}
    starts: List[Any] = []
    passing: List[Tuple[Any, int, List[int]]] = []
    for number, tensor in enumerate(outputs):
        node = tensor.grad_fn if tensor.requires_grad else None
        if node is None:
            continue
        work = works.setdefault(node, Work([], [], []))
        work.taken.append((tensor.output_nr, number))
        inputs = edges.nodes.get((node, tensor.output_nr))
        if inputs is None:
            starts.append(node)
        else:
            passing.append((node, tensor.output_nr, inputs))
    slots: Dict[Tuple[int, ...], List[Tuple[Any, int]]] = {}
    complete = True
    if starts and (edges.nodes or edges.leaves):
        complete = walk(edges, starts, slots)
    parts: Dict[int, int] = {}
    for inputs, found in slots.items():
        if len(found) == len(inputs) and len({node for node, _ in found}) == 1:
            shares = [(node, slot, (number,)) for (node, slot), number in zip(found, inputs)]
        else:
            # A tensor that was given twice: its parts cannot be told from each other.
            shares = [(node, slot, inputs[:1]) for node, slot in found]
        for node, slot, numbers in shares:
            works.setdefault(node, Work([], [], [])).sent.append((slot, numbers))
            for number in numbers:
                parts[number] = parts.get(number, 0) + 1
    for node, slot, numbers in passing:
        # An output that is an input: what comes in goes out, unless more of it came to light.
        alone = [number for number in numbers if number not in parts]
        if alone:
            works[node].passed.append((slot, alone))
            parts.update(dict.fromkeys(alone, 1))
    return Plan(list(works.items()), parts, complete)


def walk(edges: Edges, starts: List[Any],
         slots: Dict[Tuple[int, ...], List[Tuple[Any, int]]]) -> bool:
    """slots: numbers of inputs -> the (node, position) that send gradients there, in order."""
    ends = {node for node, _ in edges.nodes}
    seen = set()
    todo = list(reversed(starts))
    while todo:
        node = todo.pop()
        if node in seen or node in ends:
            continue
        seen.add(node)
        if len(seen) > MAX_NODES:
            return False
        if edges.first is not None and node._sequence_nr() < edges.first:
            continue  # made before the call
        following = node.next_functions
        # Writing into a view rebuilds the history of its base, which is not part of the call.
        outside = 0 if type(node).__name__ == "CopySlices" else -1
        for slot, (target, number) in enumerate(following):
            if target is None:
                continue
            inputs = edges.nodes.get((target, number))
            if inputs is None and edges.leaves:
                variable = getattr(target, "variable", None)
                inputs = edges.leaves.get(id(variable)) if variable is not None else None
            if inputs is not None:
                slots.setdefault(tuple(inputs), []).append((node, slot))
            elif slot != outside:
                todo.append(target)
    return True


class Follow:
    """The gradients that are still to come for one call. on_gradient(side, number, grad) gets each
    when it is whole; add returns True when the last node has run."""

    __slots__ = ("waiting", "parts", "sums", "any")

    def __init__(self, nodes: int, parts: Dict[int, int]) -> None:
        self.waiting = set(range(nodes))
        self.parts = parts
        self.sums: Dict[int, Tensor] = {}
        self.any = False

    def add(self, which: int, work: Work, given: Sequence[Optional[Tensor]],
            received: Sequence[Optional[Tensor]],
            on_gradient: Callable[[str, int, Tensor], None]) -> bool:
        if which not in self.waiting:
            return False
        self.waiting.discard(which)
        for slot, number in work.taken:
            self.hand("input", (number,), received, slot, on_gradient)
        for slot, numbers in work.sent:
            self.hand("output", numbers, given, slot, on_gradient)
        for slot, numbers in work.passed:
            self.hand("output", numbers, received, slot, on_gradient)
        return not self.waiting

    def hand(self, side: str, numbers: Sequence[int], grads: Sequence[Optional[Tensor]], slot: int,
             on_gradient: Callable[[str, int, Tensor], None]) -> None:
        grad = grads[slot] if slot < len(grads) else None
        for number in numbers:
            total = grad
            if side == "output":
                self.parts[number] -= 1
                before = self.sums.pop(number, None)
                if before is not None:
                    total = before if grad is None else wrappers.total(before, grad)
                if self.parts[number]:
                    if total is not None:
                        self.sums[number] = total
                    continue
            if total is not None:
                self.any = True
                on_gradient(side, number, total)

    def rest(self, on_gradient: Callable[[str, int, Tensor], None]) -> None:
        """Sums of which not all parts came."""
        for number, total in self.sums.items():
            self.any = True
            on_gradient("output", number, total)
        self.sums = {}


def hook(nodes: Sequence[Tuple[Any, Work]], ran: Callable[..., None], call: Any, before: Dict[Any, Any]) -> None:
    """before: of nodes whose last hook is ours, what that leaves behind."""
    for which, (node, work) in enumerate(nodes):
        node.register_hook(functools.partial(ran, call, which, work, before.get(node)))
