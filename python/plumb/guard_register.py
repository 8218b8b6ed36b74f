"""Checking one's own kernels only: a registrar, and a wrapper for torch.library."""

import functools
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple

import torch

from plumb import guard
from plumb.clean_worker import find_operator
from plumb.guard_check import CHECK, Checker, Entry, is_busy


def checked(fn: Callable[..., Any], name: str) -> Callable[..., Any]:
    """fn, a kernel of the operator `name` ("aten::add.Tensor", or "add.Tensor" for aten), that is
    checked while a check is enabled:

        library.impl("add.Tensor", plumb.checked(my_add, "add.Tensor"), "CUDA")
    """
    full = name if "::" in name else f"aten::{name}"
    func = find_operator(torch, full)
    known: List[Tuple[Checker, Entry]] = []

    @functools.wraps(fn)
    def kernel(*args: Any, **kwargs: Any) -> Any:
        checker = guard.current()
        if checker is None or is_busy():
            return fn(*args, **kwargs)
        if not known or known[0][0] is not checker:
            known[:] = [(checker, checker.entry(func, kernel=True))]
        entry = known[0][1]
        if entry.call() != CHECK:
            return fn(*args, **kwargs)
        return checker.run(entry, fn, args, kwargs)

    return kernel


def default_dispatch_key() -> str:
    if torch.cuda.is_available():
        return "CUDA"
    return "PrivateUse1" if hasattr(torch, "npu") else "CPU"


class PrecisionCheckRegister:
    """A registrar for libraries that take one (`registrar=plumb.PrecisionCheckRegister`): gets the
    list of (operator, kernel) and registers each kernel, checked, through torch.library.

    Entries may have more than two items; operators named in user_unused_ops_list are left out. When
    no check is enabled, the kernels are registered as they are."""

    def __init__(self, config: Iterable[Sequence[Any]] = (),
                 user_unused_ops_list: Optional[Sequence[str]] = None,
                 cpp_patched_ops_list: Optional[Sequence[str]] = None, lib: Any = None,
                 dispatch_key: Optional[str] = None, **more: Any) -> None:
        self.lib = lib if lib is not None else torch.library.Library("aten", "IMPL")
        self.dispatch_key = dispatch_key or default_dispatch_key()
        self.unused = {*(user_unused_ops_list or ()), *(cpp_patched_ops_list or ())}
        self.all_ops: List[str] = []
        self.all_keys: List[str] = []
        self.for_each(config)

    def for_each(self, config: Iterable[Sequence[Any]]) -> None:
        for key, fn, *_ in config:
            if key not in self.unused and getattr(fn, "__name__", key) not in self.unused:
                self.register_impl(key, fn)

    def register_impl(self, key: str, fn: Callable[..., Any],
                      dispatch_key: Optional[str] = None) -> None:
        kernel, checker = fn, guard.current()
        if checker is not None:
            try:
                kernel = checked(fn, key)
            except (AttributeError, RuntimeError):  # torch.library takes it all the same
                full = key if "::" in key else f"aten::{key}"
                checker.guard.operator(full).give_up("this PyTorch has no such operator")
        self.lib.impl(key.partition("::")[2] or key, kernel, dispatch_key or self.dispatch_key)
        self.all_ops.append(getattr(fn, "__name__", key))
        self.all_keys.append(key)

    def get_all_ops(self) -> List[str]:
        return self.all_ops

    def get_all_keys(self) -> List[str]:
        return self.all_keys
