"""Checking one's own kernels only: a registrar, and a wrapper for torch.library."""

import functools
from typing import Any, Callable, Iterable, List, Optional, Sequence, Set, Tuple

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

    A third item of an entry is a function that says whether it counts. Of the operators, by key or
    by the name of the kernel, those in user_include_ops are registered, or, when there are none,
    all but those in user_exclude_ops; never those in cpp_patched_ops. Earlier names of these
    arguments end in _list. When no check is enabled, the kernels are registered as they are."""

    def __init__(self, config: Iterable[Sequence[Any]] = (),
                 user_include_ops: Optional[Iterable[str]] = None,
                 user_exclude_ops: Optional[Iterable[str]] = None,
                 cpp_patched_ops: Optional[Iterable[str]] = None, lib: Any = None,
                 dispatch_key: Optional[str] = None, **more: Any) -> None:
        def named(given: Optional[Iterable[str]], *earlier: str) -> Set[str]:
            return set(given or ()).union(*(more.get(name) or () for name in earlier))
        self.lib = lib if lib is not None else torch.library.Library("aten", "IMPL")
        self.dispatch_key = dispatch_key or default_dispatch_key()
        self.included = named(user_include_ops, "user_include_ops_list")
        self.unused = named(user_exclude_ops, "user_exclude_ops_list", "user_unused_ops_list")
        self.patched = named(cpp_patched_ops, "cpp_patched_ops_list")
        self.all_ops: List[str] = []
        self.all_keys: List[str] = []
        self.for_each(config)

    def for_each(self, config: Iterable[Sequence[Any]]) -> None:
        for key, fn, *condition in config:
            if self.is_wanted(key, getattr(fn, "__name__", key)) and all(
                    said() for said in condition[:1] if callable(said)):
                self.register_impl(key, fn)

    def is_wanted(self, key: str, name: str) -> bool:
        if key in self.patched:
            return False
        if self.included:
            return not self.included.isdisjoint((key, name))
        return self.unused.isdisjoint((key, name))

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

    def get_unused_ops(self) -> List[str]:
        return sorted(self.unused)
