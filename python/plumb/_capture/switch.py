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

from plumb._capture import unwritten
from plumb._capture.wrap import Wrapped

DEPTH = 5  # times the limit of Python's stack


class Here(threading.local):
    """Of each thread: whether a recorder is at work, and the modules that are running."""

    def __init__(self) -> None:
        self.busy = False
        self.inside: List[int] = []


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
    compiled.watch()


def switch_off(recorder: Any) -> None:
    if recorder not in active:
        return
    active.remove(recorder)
    recorder.patches.uninstall()
    if not active:
        Wrapped.active = None
        unwritten.forget()
        compiled.unwatch()
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


def _tracing() -> bool:
    return torch._C._get_tracing_state() is not None or (
        _mode_of is not None and any(key is not None and _mode_of(key) is not None for key in _modes))


# -- Functions -------------------------------------------------------------------------------------

def _api_call(wrapped: Wrapped, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    function = wrapped.function
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


_original_packet_call = found(torch, "_ops", "OpOverloadPacket", "__call__")


def packet_call(self: Any, *args: Any, **kwargs: Any) -> Any:
    function: Callable[..., Any] = functools.partial(_original_packet_call, self)
    space, _, name = getattr(self, "_qualified_op_name", "").partition("::")
    if space == "aten" and not here.busy and not _tracing():
        for recorder in list(active):
            if recorder.apis and not recorder.local.quiet:
                function = functools.partial(recorder.api_call, "Aten", name, function)
    return function(*args, **kwargs)


_original_wait = found(torch._C, "_distributed_c10d", "Work", "wait")


def work_wait(self: Any, *args: Any, **kwargs: Any) -> Any:
    result = _original_wait(self, *args, **kwargs)
    for recorder in list(active):
        recorder.work_done(self)
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
from plumb._capture import compiled  # noqa: E402


def _after_fork() -> None:
    here.busy = False
    while active:
        recorder = active.pop()
        recorder.forked()
    Wrapped.active = None
    _restore_depth()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
