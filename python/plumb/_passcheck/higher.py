"""Operators that are given functions (cond, while_loop, flex_attention) under a mode of PyTorch's dispatcher.

A mode is off while it handles an operator, so that it would see nothing of what these run. Their kernel, which is
Python, is called with the mode on instead.
"""

import contextlib
import sys
from typing import Any, Callable, Dict, Iterator, Optional

from torch.utils._python_dispatch import TorchDispatchMode

FLEX = "torch.nn.attention.flex_attention"
COND = "torch._higher_order_ops.cond"
UNCOMPILED = "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"


def is_higher(func: Any) -> bool:
    return not hasattr(func, "_schema") and hasattr(func, "py_kernels")


def run_higher(mode: TorchDispatchMode, func: Any, args: Any, named: Dict[str, Any]) -> Any:
    kernel = _branch if str(func) == "cond" else _kernel(func)  # that of cond refuses modes
    if kernel is None:
        return func(*args, **named)
    with mode:
        return kernel(*args, **named)


class Branches:
    """How often a branch was run in place of cond: parameters of the other then have no gradient, where cond itself
    gives zeros."""
    count = 0


def _branch(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    Branches.count += 1
    return (true_fn if pred else false_fn)(*operands)


def _kernel(func: Any) -> Optional[Callable[..., Any]]:
    from torch._C import DispatchKey
    found: Optional[Callable[..., Any]] = func.py_kernels.get(DispatchKey.CompositeExplicitAutograd)
    return found


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """cond and flex_attention compile themselves wherever they are called, which cannot be done under a mode, and
    leave out gradients of what their functions close over when it is not."""
    with contextlib.ExitStack() as stack:
        flex = sys.modules.get(FLEX)
        if hasattr(flex, UNCOMPILED):
            stack.enter_context(_changed(flex, UNCOMPILED, True))
        operator = getattr(sys.modules.get(COND), "cond_op", None)
        if operator is not None and "__call__" in vars(type(operator)):
            stack.enter_context(_changed(type(operator), "__call__", lambda self, *args, **named:
                                         _branch(*args, **named)))
        yield


@contextlib.contextmanager
def _changed(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
