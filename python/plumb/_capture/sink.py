"""Between what is recorded and where it goes.

The recorder (recorder.py) sees calls; a sink writes them down. dump.py is the sink of dump.json,
h5.py that of HDF5 files. A sink is used from one thread at a time (the recorder holds a lock) and
with recording switched off, so it may call PyTorch. What it raises is noted by the recorder and
never reaches the model.

Tensors are lent: a sink must take what it needs (statistics, a copy, bytes handed to _core.Writer)
before it returns and keep no reference, for the model may write into them, or count on being the
only owner, right after.

For one call the order is: arguments, results, then for a call with gradients any number of
`gradient`, then `backward`. A call that raises has `arguments` only. Between `arguments` and
`results` of a module lie the calls inside it.
"""

import os
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

from plumb import _core


class Call:
    """One call of a module or an API. `data` belongs to the sink."""

    __slots__ = ("prefix", "name", "kind", "number", "parent", "module", "stack", "inputs",
                 "outputs", "unwritten", "data", "follow", "exchange", "single", "__weakref__")

    def __init__(self, prefix: str, name: str, kind: str, number: int, parent: Optional["Call"],
                 module: Optional[torch.nn.Module]) -> None:
        self.prefix = prefix    # "Module", or "Torch", "Tensor", "Functional", "Distributed"...
        self.name = name        # the path of the module, or the name of the API
        self.kind = kind        # the class of the module; "" for an API
        self.number = number    # calls of this module or API in this step, from 0
        self.parent = parent    # the innermost recorded module call around it
        self.module = module    # None for an API, and after `results`
        self.stack: Optional[Tuple[Any, ...]] = None  # (code, line) pairs, innermost first
        self.inputs: List[str] = []   # places of the tensors among the arguments: "0", "1.0", "key"
        self.outputs: List[str] = []  # and of those in the output
        self.unwritten = False        # one of them holds what the memory held
        self.data: Any = None
        self.follow: Any = None       # the recorder's, while gradients are awaited
        self.exchange: Optional[Dict[str, Any]] = None  # of what processes exchange: order and group
        self.single: Any = None       # of a module: the code that it runs, when that is all (still.py)

    def title(self, direction: str) -> str:
        """The name of an entry; direction: forward or backward."""
        if not self.kind:
            return f"{self.prefix}.{self.name}.{self.number}.{direction}"
        path = f"{self.name}." if self.name else ""
        return f"{self.prefix}.{path}{self.kind}.{direction}.{self.number}"


class Parameter(NamedTuple):
    """A parameter of a recorded module, under the name that it has there."""
    module: str  # path
    kind: str    # class
    name: str    # "weight"
    number: int  # which backward pass of the step, from 0


def as_lines(errors: List[Tuple[str, str]]) -> List[str]:
    """What a Writer could not write."""
    return [message if message.startswith(name) else f"{name}: {message}" for name, message in errors]


def buffers_of(module: torch.nn.Module) -> Iterator[Tuple[str, Tensor]]:
    """A module's own ones."""
    for name, value in module._buffers.items():
        if value is not None and not is_lazy(value):
            yield name, value


def parameters_of(module: torch.nn.Module) -> Iterator[Tuple[str, Tensor]]:
    """A module's own ones. Those of a lazy module have no values before its first call."""
    for name, value in module._parameters.items():
        if value is not None and not is_lazy(value):
            yield name, value


PLAIN = (bool, int, float, str, type(None))
EPSILONS = ("eps", "epsilon", "variance_epsilon")


def is_plain(value: Any) -> bool:
    return type(value) in PLAIN or \
        (type(value) in (tuple, list, torch.Size) and all(type(item) in PLAIN for item in value))


def settings_of(module: torch.nn.Module) -> Optional[Dict[str, Any]]:
    """What a module without modules inside was constructed with, as far as its attributes say so:
    all plain ones of PyTorch's own classes, and what stands under a square root of others. For
    whoever computes it again."""
    kind = type(module)
    if next(module.children(), None) is not None:
        return None
    found: Dict[str, Any] = {"class": f"{kind.__module__}.{kind.__qualname__}"}
    own = kind.__module__.startswith("torch.nn.modules.")
    for name, value in vars(module).items():  # no property of the script's is run
        known = name in ("training", *EPSILONS) or (own and not name.startswith("_"))
        if known and is_plain(value):
            found[name] = list(value) if isinstance(value, (tuple, list)) else value
    if module._forward_hooks or module._forward_pre_hooks:
        found["hooks"] = True
    return found


class Sink:
    """What the recorder calls. `errors` are lines about what could not be written, `lost` counts the calls of
    this step that are in no file because of it, and `folder` is where dump_error_info.log goes; all are the
    sink's to set."""

    takes_inner = False  # whether inner_parameter is called

    def __init__(self) -> None:
        self.errors: List[str] = []
        self.lost = 0
        self.folder: Optional[str] = None

    def open(self, step: int) -> None:
        """Called by the first start() of a step."""

    def moved(self) -> None:
        """The script, or a function that it called, has run: what was looked at may be something else."""

    def arguments(self, call: Call, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        """Before the call. call.module is there for its parameters."""

    def results(self, call: Call, args: Tuple[Any, ...], kwargs: Dict[str, Any],
                output: Any) -> None:
        """After the call, with the arguments as they are now."""

    def inner_parameter(self, call: Call, name: str, value: Tensor) -> None:
        """After `results`: a parameter of a module inside that was not called by then."""

    def gradient(self, call: Call, side: str, index: int, grad: Tensor) -> None:
        """side "input": a gradient that comes in, of the tensor call.outputs[index]; side "output":
        one that this call sends to the tensor call.inputs[index]."""

    def backward(self, call: Call) -> None:
        """All gradients of the call that will come have come; at least one."""

    def parameter_gradient(self, parameter: Parameter, grad: Tensor, last: bool) -> None:
        """What this backward pass adds to parameter.grad. last: all of the module have come."""

    def saved(self, name: str, number: int, place: str, value: Any) -> None:
        """A value that the script asked to keep (PrecisionDebugger.save), the number-th of that
        name. Of a gradient the name ends in _grad, and place says where in a container its tensor
        is ("" outside)."""

    def list_path(self) -> str:
        """Where a list of what this step did not record belongs."""
        return os.path.join(self.folder or "", "not_recorded.txt")

    def told(self) -> str:
        """What else there is to say at the end, after end(); "" when nothing is."""
        return ""

    def pause(self) -> None:
        """At stop(): put what there is into files that can be read."""

    def close(self) -> None:
        """The step is over: nothing more of it will come. open() begins the next one."""

    def end(self) -> None:
        """The program, or this capture, is over: close all files, after close()."""
