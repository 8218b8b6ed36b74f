"""A compiled region against the function that it was compiled from.

That function is run again as it is and in float64, on copies of its module or of what it holds, of
its arguments and of its parameters; a run that would write into anything of the program's is broken
off before it does. Gradients are judged when the program's own backward pass reaches the region.
"""

import types
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import torch

from plumb import _core, regions, tensors
from plumb._guard import beside
from plumb._guard.check import CHECK, NoReference, busy, memory_of, walk
from plumb._guard.clean_worker import written
from plumb._passcheck.copies import copy_inputs, copy_module, describe
from plumb._passcheck.opinions import constants
from plumb._passcheck.raised import Errors, Recorder

PREFIX = "compiled::"
MOST_NUMBERS = 1 << 24  # that a module or a function holds
CALLS = ("__call__", "_wrapped_call_impl", "_call_impl")
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Sealed(Recorder):
    """Lets a run write into tensors of its own only."""

    def __init__(self) -> None:
        super().__init__()
        self.own: Set[Any] = set()
        self.kept: List[torch.Tensor] = []  # or their memory might come to be somebody else's

    def take(self, mine: Sequence[torch.Tensor]) -> None:
        self.own.update(map(memory_of, mine))
        self.kept += mine

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (),
                           kwargs: Optional[Dict[str, Any]] = None) -> Any:
        if hasattr(func, "_schema"):
            for tensor in walk(list(written(func, args, kwargs or {}).values())):
                if memory_of(tensor) not in self.own:
                    raise NoReference(f"it changes tensors of its own ({func})")
        result = super().__torch_dispatch__(func, types, args, kwargs)
        self.take(list(walk(result)))
        return result


class Origin(beside.Plain):
    """What a region was compiled from, copied as it was before the region ran."""

    def __init__(self, function: Callable[..., Any]) -> None:
        inner = getattr(function, "__wrapped__", function)
        owner = getattr(inner, "__self__", inner)
        self.method: Optional[str] = None
        self.names: Dict[int, str] = {}  # of parameters, by the id of the program's
        self.tensors: List[torch.Tensor] = []  # of the last copy
        if isinstance(owner, torch.nn.Module):
            module = getattr(owner, "_orig_mod", owner)
            called = "_call_impl" if inner is owner else inner.__name__
            self.method = "_call_impl" if called in CALLS else called
            held: Dict[str, Any] = {"": module}
        elif isinstance(inner, types.FunctionType):
            super().__init__(inner)
            held = held_by(inner)
        else:
            raise NoReference(f"a {type(inner).__name__} is not run again")
        for name, value in held.items():
            if isinstance(value, torch.nn.Module):
                refuse(value)
                self.names.update((id(one), joined(name, path)) for path, one in value.named_parameters())
        self.held = {name: copy_of(value) for name, value in held.items()}

    def ready(self, wide: bool, errors: Optional[Errors]) -> Tuple[Callable[..., Any], beside.Leaves]:
        held = {name: copy_of(value) for name, value in self.held.items()}
        leaves: beside.Leaves = []
        self.tensors = [value for _, value in tensors.flatten(held) if isinstance(value, torch.Tensor)]
        for name, value in held.items():
            if isinstance(value, torch.nn.Module):
                prepare(value, wide, errors)
                leaves += [(f"parameter {joined(name, path)}", one)
                           for path, one in value.named_parameters()]
                self.tensors += constants(value).values()
        if self.method is not None:
            return getattr(held[""], self.method), leaves
        return rebuilt(self.function, held), leaves

    def recorder(self) -> Recorder:
        return Sealed()

    def passes(self, mode: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        if isinstance(mode, Sealed):
            mode.take([value for _, value in beside.named_tensors(args, kwargs)])
            mode.take(self.tensors)


def joined(name: str, path: str) -> str:
    return f"{name}.{path}" if name else path


def copy_of(value: Any) -> Any:
    return copy_module(value, []) if isinstance(value, torch.nn.Module) else copy_inputs(value)


def refuse(module: torch.nn.Module) -> None:
    if sum(value.numel() for value in constants(module).values()) > MOST_NUMBERS:
        raise NoReference("it has too many parameters to be run again")
    if any(getattr(part, name, None) for part in module.modules() for name in HOOKS):
        raise NoReference("its module has hooks, which would be called again")


def prepare(module: torch.nn.Module, wide: bool, errors: Optional[Errors]) -> None:
    """In float64, with errors as if its parameters had just been stored."""
    before = {name: value.dtype for name, value in constants(module).items()}
    if wide:
        module.double()
    if errors is not None:
        with torch.no_grad():
            for name, value in constants(module).items():
                if value.dtype == torch.float64 and value.numel():
                    value.copy_(errors.stored(value, before[name]))


def held_by(function: types.FunctionType) -> Dict[str, Any]:
    """What a function has besides its arguments: cells, and globals that may change."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    found = {}
    for name, cell in cells.items():
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not there yet
            raise NoReference(f"it uses {name}, which is not there yet") from None
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, (torch.nn.Module, torch.Tensor, list, dict, set)):
            found[name] = value
    return found


def rebuilt(function: types.FunctionType, held: Dict[str, Any]) -> Callable[..., Any]:
    code = function.__code__
    cells = tuple(types.CellType(held[name]) for name in code.co_freevars)
    names = {**function.__globals__, **{name: held[name] for name in code.co_names if name in held}}
    twin = types.FunctionType(code, names, function.__name__, function.__defaults__, cells)
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


class Backward:
    """The gradients of one region, when they come."""

    def __init__(self, op: _core.GuardOperator, origin: Origin, given: beside.Given, args: Tuple[Any, ...],
                 kwargs: Dict[str, Any], arithmetic: str) -> None:
        self.op, self.origin, self.given, self.arithmetic = op, origin, given, arithmetic
        self.leaves: Dict[Any, str] = {}
        self.twice = False  # one tensor is passed as two arguments
        for name, value in beside.named_tensors(args, kwargs):
            if value.requires_grad:
                self.twice = self.twice or self._key(value) in self.leaves
                self.leaves[self._key(value)] = name
        self.outputs: Dict[str, int] = {}

    @staticmethod
    def _key(tensor: torch.Tensor) -> Any:
        return (tensor.grad_fn, tensor.output_nr) if tensor.grad_fn is not None else id(tensor)

    def attach(self, outputs: beside.Found) -> Optional[str]:
        """Why not, when it cannot."""
        wanted = beside.differentiable(outputs)
        nodes = {value.grad_fn for value in wanted.values()}
        if self.twice:
            return "gradients: one tensor is several of its arguments"
        if len(nodes) != 1:
            return "gradients: its results come from more than one graph"
        node = nodes.pop()
        self.places: List[Optional[str]] = []
        for edge, number in node.next_functions:
            variable = getattr(edge, "variable", None)
            name = None if edge is None else self.leaves.get((edge, number)) if variable is None else \
                self.leaves.get(id(variable)) or self._parameter(variable)
            if edge is not None and name is None:
                return "gradients: it is more than one graph, or uses other tensors that want some"
            self.places.append(name)
        self.outputs = {name: value.output_nr for name, value in wanted.items()}
        node.register_hook(self._reached)
        return None

    def _parameter(self, variable: torch.Tensor) -> Optional[str]:
        name = self.origin.names.get(id(variable))
        return None if name is None else f"parameter {name}"

    def _reached(self, grad_inputs: Sequence[Any], grad_outputs: Sequence[Any]) -> None:
        beside.finish(self.op, lambda: self._judge(list(grad_inputs), list(grad_outputs)))

    def _judge(self, grad_inputs: List[Any], grad_outputs: List[Any]) -> None:
        if not self.op.claim(0):
            return
        cotangents = {name: grad_outputs[number].detach() for name, number in self.outputs.items()
                      if number < len(grad_outputs) and grad_outputs[number] is not None}
        found: beside.Found = {}
        for name, grad in zip(self.places, grad_inputs):
            if name is not None and grad is not None:
                label = f"gradient of {name}"
                found[label] = found[label] + grad if label in found else grad.detach()
        why = beside.why_not([*cotangents.items(), *found.items()])
        if why is not None or not found or not cotangents:
            raise NoReference(why or "gradients: there are none")
        ours = beside.reference_of(self.origin, self.given, cotangents)
        ours.exact = {name: value for name, value in ours.exact.items() if name in found}
        check = beside.Check(self.op, self.given, False)
        check.tell(ours, beside.Run({}, {}, found), self.arithmetic)


class Call(regions.Seen):
    """A region that is checked. watched: what brings the watchers back."""

    def __init__(self, checker: Any, function: Callable[..., Any], args: Tuple[Any, ...],
                 kwargs: Dict[str, Any]) -> None:
        self.checker, self.args, self.kwargs = checker, args, kwargs
        self.name = PREFIX + regions.name_of(function)
        self.op = checker.guard.function(self.name)
        self.check: Optional[beside.Check] = None
        if self.op.call() != CHECK:
            return
        try:
            with busy(), torch.inference_mode(False), torch.no_grad():
                self.origin = Origin(function)
                self.check = beside.begin(self.op, args, kwargs, False)
        except NoReference as error:
            self.op.give_up(str(error))
        except Exception as error:
            self.op.trouble(describe(error))

    def returned(self, result: Any) -> None:
        if self.check is None or self.checker.closed:
            return
        beside.finish(self.op, lambda: self._judge(result))

    def _judge(self, result: Any) -> None:
        assert self.check is not None
        outputs = beside.outputs_of(result)
        self.check.judge(lambda: None, self.origin, self.args, self.kwargs, result,
                         self.checker.arithmetic)
        if torch.is_grad_enabled() and beside.differentiable(outputs):
            backward = Backward(self.checker.guard.function(self.name + ".backward"), self.origin,
                                self.check.given, self.args, self.kwargs, self.checker.arithmetic)
            if backward.op.call() == CHECK:
                why = backward.attach(outputs)
                if why is not None:
                    self.op.pass_over(why)
