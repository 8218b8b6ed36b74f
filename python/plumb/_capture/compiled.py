"""Compiled regions: what torch.compile made of a function or a module is one call.

The compiler reads the functions of PyTorch, and would break its graph, or raise, at those that stand
in their places while something is recorded. So all of them are taken away for as long as a region
runs, and what is recorded is its boundary: inputs, outputs and gradients. A region that is a recorded
module is recorded as that module; any other as Compiled.{name of the function}.

regions.py tells where regions begin and end. What is inside a region is inside.py.
"""

import contextlib
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

from plumb import regions
from plumb._capture import switch
from plumb._capture.wrap import Wrapped

PREFIX = "Compiled"


class Here(threading.local):
    def __init__(self) -> None:
        self.looked_into = 0  # graphs of regions, by inside.py


here = Here()
_lock = threading.Lock()
_running = 0    # regions, in all threads


def is_compiled(module: torch.nn.Module) -> bool:
    """By torch.compile(module) or module.compile()."""
    return hasattr(module, "_orig_mod") or \
        getattr(module, "_compiled_call_impl", None) is not None


def original(module: torch.nn.Module) -> torch.nn.Module:
    """The module that torch.compile(module) wraps."""
    while isinstance(getattr(module, "_orig_mod", None), torch.nn.Module):
        module = module._orig_mod  # type: ignore[assignment]
    return module


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


# -- What recorders see ----------------------------------------------------------------------------

class _Seen(regions.Seen):
    def __init__(self, name: str, ends: List[Callable[[Any], None]]) -> None:
        self.name = name
        self.ends = ends  # what recorders do with the result
        self.looked_into = here.looked_into  # when it began
        _lift()

    def left(self) -> None:
        _put_back()
        for recorder in switch.active:
            if recorder.config.compiled == "inside" and here.looked_into == self.looked_into:
                recorder.note(f"{PREFIX}.{self.name}: what is inside is not recorded: it was compiled before "
                              "a debugger with compiled=\"inside\" was made")

    def returned(self, result: Any) -> None:
        for end in self.ends:
            end(result)


class _Listener(regions.Listener):
    def region(self, function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any],
               told: bool) -> Optional[regions.Seen]:
        if not switch.active or switch.here.busy:
            return None
        ends: List[Callable[[Any], None]] = []
        for recorder in list(switch.active):
            try:
                end = recorder.region(function, args, kwargs)
                if end is not None:
                    ends.append(end)
                    if not told:
                        recorder.note(f"{PREFIX}.{regions.name_of(function)}: what it returned is not "
                                      "recorded; that takes Python 3.12")
            except Exception:
                recorder.problem("a compiled region")
        return _Seen(regions.name_of(function), ends)

    def aside(self) -> Any:
        """torch.compile keeps methods of modules: they must be those of PyTorch."""
        return out_of_the_way()

    def backward(self) -> Any:
        """Operators that the compiler left as they are would be recorded as calls of the script."""
        return out_of_the_way() if switch.active else contextlib.nullcontext()


LISTENER = _Listener()
