"""Operators that are given functions (cond, while_loop, flex_attention) under a mode of PyTorch's dispatcher.

A mode is off while it handles an operator, so that it would see nothing of what these run. Their kernel, which is
Python, is called with the mode on instead.
"""

import contextlib
import sys
from typing import Any, Callable, Dict, Iterator, Optional, Type

import torch
from torch.utils._python_dispatch import TorchDispatchMode

FLEX = "torch.nn.attention.flex_attention"
COND = "torch._higher_order_ops.cond"
UNCOMPILED = "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"

_loaded = getattr(torch._ops, "_higher_order_ops", {})  # by name
_KNOWN_BY_RULE = not hasattr(TorchDispatchMode, "supports_higher_order_operators")


def know_higher_order(kind: Type[TorchDispatchMode]) -> None:
    """Where PyTorch asks higher-order operators, not modes, what to do under a mode: those that are loaded."""
    if not _KNOWN_BY_RULE:
        return

    def passed_on(op: Any) -> Callable[..., Any]:
        return lambda mode, *args, **kwargs: mode.__torch_dispatch__(op, (), args, kwargs)

    for op in list(_loaded.values()):
        table = getattr(op, "python_key_table", None)
        if table is not None and kind not in table:
            table[kind] = passed_on(op)


class Mode(TorchDispatchMode):
    """One that sees higher-order operators too."""

    supports_higher_order_operators = True

    def __enter__(self) -> Any:
        know_higher_order(type(self))
        return super().__enter__()


def is_higher(func: Any) -> bool:
    return not hasattr(func, "_schema") and hasattr(func, "py_kernels")


def is_closed(func: Any) -> bool:
    """Whether run_higher() cannot show what is inside."""
    return str(func) != "cond" and _kernel(func) is None


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
