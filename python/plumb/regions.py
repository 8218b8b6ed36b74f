"""Compiled regions: when what torch.compile made of a function or a module runs, who listens is told.

Every region sets the hook of the compiler right before it begins and right after it ends, through one
function, whoever compiled it and when: here something else stands in that place.
"""

import contextlib
import functools
import re
import sys
import threading
from typing import Any, Callable, ContextManager, Dict, List, NamedTuple, Optional, Tuple

import torch


class Seen:
    """What a listener does about one region. Neither may raise."""

    def left(self) -> None:
        """The region is over, whether it raised or not."""

    def returned(self, result: Any) -> None:
        """Behind left(), of a region that did not raise."""


class Listener:
    """Neither may raise."""

    def region(self, function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any],
               told: bool) -> Optional[Seen]:
        """A region begins on this thread. told: its result will be."""
        return None

    def aside(self) -> ContextManager[Any]:
        """While torch.compile itself runs, which keeps functions and methods as they are then."""
        return contextlib.nullcontext()

    def backward(self) -> ContextManager[Any]:
        """While what the compiler made of a region's backward runs, on whichever thread."""
        return contextlib.nullcontext()


class Region(NamedTuple):
    frame: Any  # of the compiler's wrapper
    seen: List[Seen]


class Here(threading.local):
    def __init__(self) -> None:
        self.regions: List[Region] = []
        self.returning: Optional[Region] = None  # it is over, and its result about to be told


here = Here()
_listeners: List[Listener] = []
_original: Optional[Callable[[Any], Any]] = None  # what sets the compiler's hook
_original_run: Optional[Callable[..., Any]] = None  # what runs code of the compiler, backward too
_original_compile = getattr(torch, "compile", None)
_tool: Optional[int] = None  # our number among those who watch Python
_MISSING = object()
RUNTIME, RUN = "torch._functorch._aot_autograd.runtime_wrappers", "call_func_at_runtime_with_args"


def module_of(function: Callable[..., Any]) -> Optional[torch.nn.Module]:
    """Of a region, where it is one."""
    inner = getattr(function, "__wrapped__", function)
    owner = getattr(inner, "__self__", inner)
    return owner if isinstance(owner, torch.nn.Module) else None


def name_of(function: Callable[..., Any]) -> str:
    """Of a region: that of its function, or the class of its module."""
    module, inner = module_of(function), getattr(function, "__wrapped__", function)
    name = type(module).__name__ if module is not None else getattr(inner, "__name__", type(inner).__name__)
    return re.sub(r"\W", "", name) or "function"


# -- Listening -------------------------------------------------------------------------------------

def listen(listener: Listener) -> None:
    """From now on, until unlisten() has been called as often."""
    _listeners.append(listener)
    if _original_compile is not None and torch.compile is _original_compile:
        torch.compile = compile
    _watch()


def unlisten(listener: Listener) -> None:
    if listener in _listeners:
        _listeners.remove(listener)
    if _listeners:
        return
    if getattr(torch, "compile", None) is compile:
        torch.compile = _original_compile
    module = sys.modules.get("torch._dynamo.eval_frame")
    if getattr(module, "_maybe_set_eval_frame", None) is _set_hook:
        module._maybe_set_eval_frame = _original  # type: ignore[union-attr]
    module = sys.modules.get(RUNTIME)
    if getattr(module, RUN, None) is _run:
        setattr(module, RUN, _original_run)


def _watch() -> None:
    """If the compiler has been loaded; torch.compile loads it."""
    global _original
    module = sys.modules.get("torch._dynamo.eval_frame")
    place = getattr(module, "_maybe_set_eval_frame", None)
    if place is not None and place is not _set_hook:
        module.skip_code(_set_hook.__code__)  # type: ignore[union-attr]
        _original = place
        module._maybe_set_eval_frame = _set_hook  # type: ignore[union-attr]


def _watch_backward() -> None:
    """If the part of the compiler has been loaded that makes backwards; the first region loads it."""
    global _original_run
    module, place = sys.modules.get(RUNTIME), getattr(sys.modules.get(RUNTIME), RUN, None)
    if place is not None and place is not _run:
        sys.modules["torch._dynamo.eval_frame"].skip_code(_run.__code__)  # type: ignore[attr-defined]
        _original_run = place
        setattr(module, RUN, _run)


def _run(*args: Any, **kwargs: Any) -> Any:
    """A region's forward runs between begin and end; what runs outside of any region is a backward."""
    assert _original_run is not None
    if here.regions or not _listeners:
        return _original_run(*args, **kwargs)
    with contextlib.ExitStack() as stack:
        for listener in dict.fromkeys(_listeners):
            stack.enter_context(listener.backward())
        return _original_run(*args, **kwargs)


@functools.wraps(_original_compile or (lambda: None))
def compile(*args: Any, **kwargs: Any) -> Any:
    assert _original_compile is not None
    with contextlib.ExitStack() as stack:
        for listener in dict.fromkeys(_listeners):
            stack.enter_context(listener.aside())
        compiled = _original_compile(*args, **kwargs)
    if _listeners:
        _watch()
    return compiled


# -- Where regions begin and end -------------------------------------------------------------------

def _dynamo() -> Any:
    return torch._C._dynamo.eval_frame


def _set_hook(callback: Any) -> Any:
    # With the hook on, the compiler would look at what is called here. This function itself is left
    # alone since watch() says so.
    assert _original is not None
    before = _dynamo().set_eval_frame(None)
    try:
        frame, regions = sys._getframe(1), here.regions
        if regions and regions[-1].frame is frame:
            _leave(regions.pop())
        elif callable(callback) and _is_region(frame):
            region = _enter(frame)
            if region.seen:
                regions.append(region)
    finally:
        _dynamo().set_eval_frame(before)
    return _original(callback)


def _is_region(frame: Any) -> bool:
    """Others set the hook too: functions that are not to be compiled put back what they found."""
    context = frame.f_locals.get("self")
    kinds = [kind.__name__ for kind in type(context).__mro__]
    return "_TorchDynamoContext" in kinds and "DisableContext" not in kinds and \
        "fn" in frame.f_locals and "args" in frame.f_locals


def _enter(frame: Any) -> Region:
    here.returning = None  # a region that raised
    found = frame.f_locals
    told = "result" in frame.f_code.co_varnames or _watch_returns(frame.f_code)
    seen = [listener.region(found["fn"], found["args"], found.get("kwargs", {}), told)
            for listener in dict.fromkeys(_listeners)]
    return Region(frame, [one for one in seen if one is not None])


def _leave(region: Region) -> None:
    _watch_backward()
    for one in reversed(region.seen):
        one.left()
    if "result" in region.frame.f_code.co_varnames:
        result = region.frame.f_locals.get("result", _MISSING)
        if result is not _MISSING:  # it did not raise
            _tell(region, result)
    else:
        here.returning = region


def _tell(region: Region, result: Any) -> None:
    for one in region.seen:
        one.returned(result)


# -- What a region returns, where its wrapper does not keep it -------------------------------------

def _watch_returns(code: Any) -> bool:
    """Python tells what a function returns, from 3.12 on, and this one only."""
    global _tool
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None:
        return False
    if _tool is None:
        free = [number for number in range(6) if monitoring.get_tool(number) is None]
        if not free:
            return False
        _tool = free[-1]
        monitoring.use_tool_id(_tool, "plumb")
        monitoring.register_callback(_tool, monitoring.events.PY_RETURN, _returned)
    monitoring.set_local_events(_tool, code, monitoring.events.PY_RETURN)
    return True


def _returned(code: Any, offset: int, result: Any) -> None:
    region, here.returning = here.returning, None
    if region is not None and region.frame.f_code is code:
        _tell(region, result)
