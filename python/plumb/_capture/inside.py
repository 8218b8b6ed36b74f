"""What is inside a compiled region: compiled="inside".

The graph that the compiler's back end got is kept, as it was then. Before each run of what was made of it, it is
interpreted on copies of the inputs, node by node, and every node that computes tensors is recorded as a call with
the prefix Inside: InsideFunctional.linear.0.forward. These are numbers of the uncompiled operators, not of the
compiled code, which has no such results to look at. Gradients are not recorded there.
"""

import contextlib
import functools
import operator
from typing import Any, Callable, List, Optional, Tuple

import torch

from plumb._capture import compiled, switch
from plumb._core import Error

PREFIX = "Inside"
_original: Optional[Callable[..., Any]] = None


def watch() -> None:
    """From now on, for what is compiled in this process."""
    global _original
    if not hasattr(torch, "compile"):
        raise Error(f'PrecisionDebugger: compiled: "inside" needs PyTorch 2; this is {torch.__version__}')
    from torch._dynamo.output_graph import OutputGraph
    if _original is None:
        _original = OutputGraph.call_user_compiler
        OutputGraph.call_user_compiler = _compile  # type: ignore[method-assign]


def _compile(self: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
    assert _original is not None
    twin = None
    try:
        from plumb._compile.snapshot import Copies, snapshot
        twin = snapshot(module, Copies())
    except Exception:
        for recorder in switch.active:
            recorder.problem("the graph of a compiled region")
    function = _original(self, module, *args, **kwargs)
    if twin is None:
        return function

    def run(*given: Any) -> Any:  # not functools.wraps: by what that copies, the compiler would find the way around it
        _look(twin, given)
        return function(*given)
    return run


def _look(module: Any, given: Tuple[Any, ...]) -> None:
    recorders = [recorder for recorder in switch.active
                 if recorder.config.compiled == "inside" and not recorder.local.quiet]
    compiled.here.looked_into += 1
    if not recorders or switch.here.busy:
        return
    from plumb._passcheck.copies import copy_inputs
    from plumb._passcheck.state import seeded
    try:
        with contextlib.ExitStack() as stack, seeded(), torch.no_grad():
            for recorder in recorders:
                stack.enter_context(recorder.inside_region())
            inputs = [value.detach() if isinstance(value, torch.Tensor) else value
                      for value in copy_inputs(list(given))]
            _interpreter(recorders)(module).run(*inputs)
    except Exception:
        for recorder in recorders:
            recorder.problem("what is inside a compiled region")


def _interpreter(recorders: List[Any]) -> Any:
    class Recorded(torch.fx.Interpreter):
        """Calls as the recorders take them."""

        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            prefix, name = named(target)
            return self._recorded(prefix, name, target, args, kwargs)

        def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
            return self._recorded("Tensor", target, getattr(torch.Tensor, target), args, kwargs)

        @staticmethod
        def _recorded(prefix: str, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
            for recorder in recorders:
                if prefix and _has_tensors(args, kwargs):
                    function = functools.partial(recorder.api_call, PREFIX + prefix, name, function)
            return function(*args, **kwargs)
    return Recorded


def _has_tensors(args: Any, kwargs: Any) -> bool:
    def any_in(value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return any(any_in(item) for item in value)
        return isinstance(value, torch.Tensor)
    return any_in(args) or any(any_in(value) for value in kwargs.values())


def named(target: Any) -> Tuple[str, str]:
    """Prefix and name of a function, as a capture of the uncompiled model would have them."""
    name = getattr(target, "__name__", "")
    module = getattr(target, "__module__", "") or ""
    if type(target).__module__ == "torch._ops":  # aten.add.Tensor
        packet = getattr(target, "_overloadpacket", target)
        return "Aten", getattr(packet, "__name__", str(packet))
    if module in ("torch.nn.functional", "torch._C._nn") or getattr(torch.nn.functional, name, None) is target:
        return "Functional", name
    if getattr(operator, name, None) is target:
        return ("", name) if name == "getitem" else ("Tensor", f"__{name.strip('_')}__")
    if getattr(torch, name, None) is target:
        return "Torch", name
    return ("Torch", name) if module.startswith("torch") and name else ("", name)
