"""Where PyTorch is entered: the functions that stand in its places while something is recorded.

Any number of recorders may be on at once, each with models of its own; each sees every call, and
none sees what another does to write it down.
"""

import contextlib
import functools
import inspect
import os
import sys
import threading
import types
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from plumb._capture import exchange, unwritten
from plumb._capture.wrap import Wrapped

DEPTH = 5  # times the limit of Python's stack


class Here(threading.local):
    """Of each thread: whether a recorder is at work, and the modules that are running."""

    def __init__(self) -> None:
        self.busy = False
        self.inside: List[int] = []
        self.preparing = False  # inside a function that PREPARING code has called
        self.backward = 0  # how many passes are inside each other


here = Here()
active: List[Any] = []  # the recorders that are on
_depth: Optional[Tuple[int, int]] = None  # limits of Python's stack: the script's, ours
_original_call = torch.nn.Module.__call__


def found(owner: Any, *path: str) -> Any:
    """None where this PyTorch has no such thing."""
    for name in path:
        owner = getattr(owner, name, None)
    return owner


def switch_on(recorder: Any) -> None:
    global _depth, _original_call
    if not active:
        _original_call = torch.nn.Module.__call__
        # A module takes several times as many frames of the stack as it does alone.
        script = sys.getrecursionlimit()
        _depth = (script, script * DEPTH)
        sys.setrecursionlimit(script * DEPTH)
    active.append(recorder)
    recorder.patches.install()
    Wrapped.active = _api_call
    if len(active) == 1:
        regions.listen(compiled.LISTENER)


def switch_off(recorder: Any) -> None:
    if recorder not in active:
        return
    active.remove(recorder)
    recorder.patches.uninstall()
    if not active:
        Wrapped.active = None
        unwritten.forget()
        regions.unlisten(compiled.LISTENER)
        _restore_depth()


def _restore_depth() -> None:
    """Unless the script has set a limit since, or is deeper than its own."""
    global _depth
    if _depth is not None and sys.getrecursionlimit() == _depth[1]:
        with contextlib.suppress(RecursionError):
            sys.setrecursionlimit(_depth[0])
    _depth = None


# Of PyTorch 2: modes under which tensors have no values, or are those of a graph in the making.
_modes = [getattr(found(torch._C, "_TorchDispatchModeKey"), name, None)
          for name in ("FAKE", "PROXY", "FUNCTIONAL")]
_mode_of = found(torch._C, "_get_dispatch_mode")
# The compiler is at work, perhaps in the middle of a backward: its calls are not the script's.
_compiling = found(torch, "_guards", "TracingContext", "try_get")


def _tracing() -> bool:
    return torch._C._get_tracing_state() is not None or (
        _compiling is not None and _compiling() is not None) or (
        _mode_of is not None and any(key is not None and _mode_of(key) is not None for key in _modes))


# -- Functions -------------------------------------------------------------------------------------

# Modules of PyTorch that prepare what a program computes: they cut and copy buffers, run shapes through a
# model, take wrappers apart. What they call is no part of the program; what they exchange is recorded.
PREPARING = tuple(f"torch.{name}" for name in (
    "distributed.fsdp", "distributed._composable", "distributed.pipelining", "distributed.algorithms",
    "distributed.utils", "distributed.distributed_c10d", "distributed._functional_collectives", "distributed.tensor._",
    "distributed.tensor.placement_types", "distributed.tensor.device_mesh", "distributed.device_mesh",
    "distributed._tensor", "nn.parallel.distributed", "_functorch", "_prims", "_refs", "_decomp", "_subclasses",
    "_meta_registrations", "_higher_order_ops", "nested._internal"))


def _prepares(frame: Any) -> bool:
    """Whether the code of this frame is of the kind."""
    name = frame.f_globals.get("__name__")
    return type(name) is str and name.startswith("torch.") and name.startswith(PREPARING)


def _api_call(wrapped: Wrapped, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    function = wrapped.function
    if wrapped.prefix != exchange.PREFIX:
        if here.preparing:
            return function(*args, **kwargs)
        if _prepares(sys._getframe(2)):
            here.preparing = True
            try:
                return function(*args, **kwargs)
            finally:
                here.preparing = False
    if not here.busy and not _tracing():
        for recorder in list(active):
            if wrapped in recorder.apis_wrapped and not recorder.local.quiet:
                function = functools.partial(recorder.api_call, wrapped.prefix, wrapped.name,
                                             function)
    if wrapped.name not in unwritten.NAMES or here.busy:
        return function(*args, **kwargs)
    result = function(*args, **kwargs)
    for recorder in active[:1]:
        recorder.memory_taken(result)
    return result


# -- Operators: torch.ops.aten.add(...), torch.ops.aten.add.Tensor(...) ----------------------------

# Namespaces of PyTorch's own machinery: nothing that a program computes with.
MACHINERY = frozenset("""
prim prims profiler fsdp c10d inductor _inductor_test _dtensor debugprims rngprims streams mkldnn
c10d_functional symm_mem bucketing _quantized_unused static_runtime export
""".split())
_original_packet_call = found(torch, "_ops", "OpOverloadPacket", "__call__")
_original_overload_call = found(torch, "_ops", "OpOverload", "__call__")
_excluded = found(torch._C, "_dispatch_tls_is_dispatch_key_excluded")
_autograd = found(torch._C, "DispatchKey", "ADInplaceOrView")


def _inside_operator() -> bool:
    """Whether this runs below autograd: what an operator is made of, or a subclass makes of it."""
    return _excluded is not None and _autograd is not None and _excluded(_autograd)


def packet_call(self: Any, *args: Any, **kwargs: Any) -> Any:
    return _operator(getattr(self, "_qualified_op_name", ""), functools.partial(_original_packet_call, self), args,
                     kwargs)


def overload_call(self: Any, *args: Any, **kwargs: Any) -> Any:
    return _operator(self._schema.name, functools.partial(_original_overload_call, self), args, kwargs)


def _operator(full: str, function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    space, _, name = full.partition("::")
    if space in exchange.SPACES:
        return _functional_collective(name, function, args, kwargs)
    if not here.busy and space not in MACHINERY and not _inside_operator() and not _tracing() and \
            not here.preparing and not _prepares(sys._getframe(2)):
        prefix, title = ("Aten", name) if space == "aten" else ("Ops", f"{space}.{name}")
        for recorder in list(active):
            if recorder.apis and not recorder.local.quiet and recorder.takes_operator(prefix, name):
                function = functools.partial(recorder.api_call, prefix, title, function)
    return function(*args, **kwargs)


# -- Processes that exchange tensors ---------------------------------------------------------------

def _functional_collective(name: str, function: Callable[..., Any], args: Tuple[Any, ...],
                           kwargs: Dict[str, Any]) -> Any:
    """Recorded also inside other calls: DTensor exchanges there what it needs."""
    if name == exchange.WAIT:
        result = function(*args, **kwargs)
        for recorder in list(active):
            recorder.exchanges.tensor_done(args[0] if args else result)
        return result
    if not name.startswith("_") and not here.busy and not _tracing():
        for recorder in list(active):
            if recorder.apis and not recorder.local.exchanging:
                function = functools.partial(recorder.exchange_call, name, function)
    return function(*args, **kwargs)


_original_wait = found(torch._C, "_distributed_c10d", "Work", "wait")


def work_wait(self: Any, *args: Any, **kwargs: Any) -> Any:
    result = _original_wait(self, *args, **kwargs)
    for recorder in list(active):
        recorder.exchanges.work_done(self)
    return result


_original_p2p = found(torch, "distributed", "P2POp", "__init__")


def p2p_init(self: Any, *args: Any, **kwargs: Any) -> None:
    """It keeps a function, which PyTorch asks for being its own."""
    _original_p2p(self, *args, **kwargs)
    if isinstance(self.op, Wrapped):
        self.op = self.op.function


_original_backward = torch.autograd.backward


@functools.wraps(_original_backward)
def backward(*args: Any, **kwargs: Any) -> Any:
    """After the outermost one, gradients are what all processes together have."""
    here.backward += 1
    try:
        result = _original_backward(*args, **kwargs)
    finally:
        here.backward -= 1
    if not here.backward and not here.busy and not _tracing():
        for recorder in list(active):
            recorder.went_back()
    return result


# -- Modules ---------------------------------------------------------------------------------------

def module_call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    return _seen(self, functools.partial(_original_call, self), args, kwargs)


def _seen(module: torch.nn.Module, function: Callable[..., Any], args: Tuple[Any, ...],
          kwargs: Dict[str, Any]) -> Any:
    if here.busy or _tracing():
        return function(*args, **kwargs)
    known_to = False
    for recorder in list(active):
        known = recorder.find_module(module, here.inside)
        if known is not None:
            known_to = True
            function = functools.partial(recorder.module_call, known, module, function)
    if not known_to:
        return function(*args, **kwargs)
    here.inside.append(id(module))
    try:
        return function(*args, **kwargs)
    finally:
        here.inside.pop()


_forwards: "weakref.WeakSet[Any]" = weakref.WeakSet()


def forward_of(kind: type) -> Optional[Tuple[type, Callable[..., Any]]]:
    """The class that has the forward of these modules, and what stands there while recording: a call
    of module.forward is one of the module. None where there is no function."""
    owner = next((base for base in kind.__mro__ if "forward" in vars(base)), None)
    if owner is None or owner is torch.nn.Module or issubclass(kind, torch.jit.ScriptModule):
        return None
    original = vars(owner)["forward"]
    if original in _forwards:  # another recorder has put it there
        return owner, original
    if not isinstance(original, types.FunctionType):
        return None

    @functools.wraps(original)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        running = here.inside
        if here.busy or (running and running[-1] == id(self)):
            return original(self, *args, **kwargs)
        return _seen(self, functools.partial(original, self), args, kwargs)
    with contextlib.suppress(ValueError, TypeError):
        forward.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    _forwards.add(forward)
    return owner, forward


def original_forward(kind: type) -> Any:
    """What these modules run when nothing is recorded."""
    forward = getattr(kind, "forward", None)
    return forward.__wrapped__ if forward in _forwards else forward


def original_call() -> Any:
    """The same of torch.nn.Module.__call__."""
    return _original_call


original_replicate = found(torch.nn.Module, "_replicate_for_data_parallel")


def replicate(self: torch.nn.Module) -> torch.nn.Module:
    """Replicas of DataParallel are recorded under the names of the model's modules."""
    replica = original_replicate(self)
    for recorder in list(active):
        known = recorder.modules.known.get(id(self))
        if known is not None:
            recorder.modules.replicas[replica] = known
    return replica


_original_script = torch.jit.script


@functools.wraps(_original_script)
def script(*args: Any, **kwargs: Any) -> Any:
    """The compiler reads functions, and must find those of PyTorch."""
    recorders = list(active)
    for recorder in recorders:
        switch_off(recorder)
    try:
        return _original_script(*args, **kwargs)
    finally:
        for recorder in recorders:
            switch_on(recorder)


# Last, since it needs what is above.
from plumb import regions  # noqa: E402
from plumb._capture import compiled  # noqa: E402


def _after_fork() -> None:
    here.busy = False
    while active:
        recorder = active.pop()
        recorder.forked()
    regions.unlisten(compiled.LISTENER)
    Wrapped.active = None
    _restore_depth()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
