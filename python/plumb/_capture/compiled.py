"""Compiled regions: what torch.compile made of a function or a module is one call.

The compiler reads the functions of PyTorch, and would break its graph, or raise, at those that stand
in their places while something is recorded. So all of them are taken away for as long as a region
runs, and what is recorded is its boundary: inputs, outputs and gradients. A region that is a recorded
module is recorded as that module; any other as Compiled.{name of the function}.

Every region sets the hook of the compiler right before it begins and right after it ends, through one
function, whoever compiled it and when: here something else stands in that place. What is inside a region is
inside.py.
"""

import contextlib
import functools
import re
import sys
import threading
from typing import Any, Callable, Iterator, List, NamedTuple, Optional

import torch

from plumb._capture import switch
from plumb._capture.wrap import Wrapped

PREFIX = "Compiled"


class Region(NamedTuple):
    frame: Any          # of the compiler's wrapper
    ends: List[Callable[[Any], None]]  # what recorders do with the result
    name: str
    seen: int           # how often a graph had been looked into when it began


class Here(threading.local):
    def __init__(self) -> None:
        self.regions: List[Region] = []
        self.returning: Optional[Region] = None  # it is over, and its result about to be told
        self.looked_into = 0  # graphs of regions, by inside.py


here = Here()
_lock = threading.Lock()
_running = 0    # regions, in all threads
_original: Optional[Callable[[Any], Any]] = None  # what sets the compiler's hook
_tool: Optional[int] = None  # our number among those who watch Python
_MISSING = object()


def is_compiled(module: torch.nn.Module) -> bool:
    """By torch.compile(module) or module.compile()."""
    return hasattr(module, "_orig_mod") or \
        getattr(module, "_compiled_call_impl", None) is not None


def original(module: torch.nn.Module) -> torch.nn.Module:
    """The module that torch.compile(module) wraps."""
    while isinstance(getattr(module, "_orig_mod", None), torch.nn.Module):
        module = module._orig_mod  # type: ignore[assignment]
    return module


def name_of(function: Callable[..., Any]) -> str:
    """Of a region: that of its function, or the class of its module."""
    inner = getattr(function, "__wrapped__", function)
    owner = getattr(inner, "__self__", inner)
    name = type(owner).__name__ if isinstance(owner, torch.nn.Module) else \
        getattr(inner, "__name__", type(inner).__name__)
    return re.sub(r"\W", "", name) or "function"


# -- Nothing of ours in the way --------------------------------------------------------------------

@contextlib.contextmanager
def out_of_the_way() -> Iterator[None]:
    _lift()
    try:
        yield
    finally:
        _put_back()


def _lift() -> None:
    global _running
    with _lock:
        _running += 1
        if _running == 1:
            for recorder in switch.active:
                recorder.patches.uninstall()
            Wrapped.active = None


def _put_back() -> None:
    global _running
    with _lock:
        _running -= 1
        if _running == 0 and switch.active:
            for recorder in switch.active:
                recorder.patches.install()
            Wrapped.active = switch._api_call


def _dynamo() -> Any:
    return torch._C._dynamo.eval_frame


# -- Where regions begin and end -------------------------------------------------------------------

def watch() -> None:
    """From now on, if the compiler has been loaded; torch.compile loads it."""
    global _original
    module = sys.modules.get("torch._dynamo.eval_frame")
    place = getattr(module, "_maybe_set_eval_frame", None)
    if place is not None and place is not _set_hook:
        module.skip_code(_set_hook.__code__)  # type: ignore[union-attr]
        _original = place
        module._maybe_set_eval_frame = _set_hook  # type: ignore[union-attr]


def unwatch() -> None:
    module = sys.modules.get("torch._dynamo.eval_frame")
    if getattr(module, "_maybe_set_eval_frame", None) is _set_hook:
        module._maybe_set_eval_frame = _original  # type: ignore[union-attr]


_original_compile = getattr(torch, "compile", None)


@functools.wraps(_original_compile or (lambda: None))
def compile(*args: Any, **kwargs: Any) -> Any:
    """torch.compile keeps methods of modules: they must be those of PyTorch."""
    assert _original_compile is not None
    with out_of_the_way():
        compiled = _original_compile(*args, **kwargs)
    watch()
    return compiled


def _set_hook(callback: Any) -> Any:
    # With the hook on, the compiler would look at what is called here. This function itself is left
    # alone since watch() says so.
    assert _original is not None
    before = _dynamo().set_eval_frame(None)
    try:
        frame, regions = sys._getframe(1), here.regions
        if regions and regions[-1].frame is frame:
            _leave(regions.pop())
        elif switch.active and not switch.here.busy and callable(callback) and _is_region(frame):
            regions.append(_enter(frame))
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
    region = Region(frame, [], name_of(found["fn"]), here.looked_into)
    told = "result" in frame.f_code.co_varnames or _watch_returns(frame.f_code)
    for recorder in list(switch.active):
        try:
            end = recorder.region(found["fn"], found["args"], found.get("kwargs", {}))
            if end is not None:
                region.ends.append(end)
                if not told:
                    recorder.note(f"{PREFIX}.{name_of(found['fn'])}: what it returned is not "
                                  "recorded; that takes Python 3.12")
        except Exception:
            recorder.problem("a compiled region")
    _lift()
    return region


def _leave(region: Region) -> None:
    _put_back()
    for recorder in switch.active:
        if recorder.config.compiled == "inside" and here.looked_into == region.seen:
            recorder.note(f"{PREFIX}.{region.name}: what is inside is not recorded: it was compiled before "
                          "a debugger with compiled=\"inside\" was made")
    if "result" in region.frame.f_code.co_varnames:
        result = region.frame.f_locals.get("result", _MISSING)
        if result is not _MISSING:  # it did not raise
            _end(region, result)
    elif region.ends:
        here.returning = region


def _end(region: Region, result: Any) -> None:
    for end in region.ends:
        end(result)


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
        _end(region, result)
