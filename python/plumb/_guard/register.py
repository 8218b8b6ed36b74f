"""Checking one's own kernels only: a registrar, and a wrapper for torch.library."""

import functools
import sys
import warnings
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple

import torch

from plumb._guard import beside, enable
from plumb._guard.check import CHECK, Checker, Entry, is_busy, is_seen
from plumb._guard.clean_worker import find_operator


def is_compiling() -> bool:
    """torch.compile reads the function, and then there is nothing to check."""
    compiler = getattr(torch, "compiler", None)
    return compiler is not None and hasattr(compiler, "is_compiling") and compiler.is_compiling()


def checked(fn: Optional[Callable[..., Any]] = None, name: Optional[str] = None, *,
            reference: Optional[Callable[..., Any]] = None, gradients: bool = True) -> Callable[..., Any]:
    """fn, checked while a check is enabled.

    Without a reference, fn is a kernel of the operator `name` ("aten::add.Tensor", or "add.Tensor"
    for aten):

        library.impl("add.Tensor", plumb.checked(my_add, "add.Tensor"), "CUDA")

    With one, any function of tensors, a custom_op or the apply of an autograd.Function, by itself or as
    a decorator; `name` is what the log calls it:

        @plumb.checked(reference=lambda x, w: x / (x.square().mean(-1, True) + 1e-6).sqrt() * w)
        def my_rms_norm(x, w): ...

    reference takes the same arguments, and is run in float64 (docs/GUARD.md). gradients: judged too,
    where arguments want some: from a second run of fn, on copies."""
    if fn is None:
        return functools.partial(checked, name=name, reference=reference, gradients=gradients)
    if reference is not None:
        return _checked_beside(fn, name or _name_of(fn), reference, gradients)
    if name is None:
        raise TypeError("checked() needs the name of the operator, or a reference")
    full = name if "::" in name else f"aten::{name}"
    func = find_operator(torch, full)
    known: List[Tuple[Checker, Entry]] = []

    @functools.wraps(fn)
    def kernel(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return fn(*args, **kwargs)
        checker = enable.current()
        if checker is None or is_busy() or is_seen(func):
            return fn(*args, **kwargs)
        if not known or known[0][0] is not checker:
            known[:] = [(checker, checker.entry(func, kernel=True))]
        entry = known[0][1]
        if entry.call() != CHECK:
            return fn(*args, **kwargs)
        return checker.run(entry, fn, args, kwargs)

    return kernel


def _name_of(fn: Callable[..., Any]) -> str:
    """Of a custom_op its own; of the apply of an autograd.Function that of its class."""
    named = getattr(fn, "_qualname", None)
    if isinstance(named, str):
        return named
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, type):
        return owner.__name__
    return getattr(fn, "__qualname__", type(fn).__name__).rpartition("<locals>.")[2]


def _checked_beside(fn: Callable[..., Any], name: str, reference: Callable[..., Any],
                    gradients: bool) -> Callable[..., Any]:
    known: List[Tuple[Checker, Any]] = []

    @functools.wraps(fn)
    def function(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return fn(*args, **kwargs)
        checker = enable.current()
        if checker is None or checker.closed or is_busy():
            return fn(*args, **kwargs)
        if not known or known[0][0] is not checker:
            known[:] = [(checker, checker.guard.function(name))]
        op = known[0][1]
        if op.call() != CHECK:
            return fn(*args, **kwargs)
        return beside.run(op, fn, reference, args, kwargs, gradients, checker.arithmetic)

    return function


# -- Where kernels are registered ------------------------------------------------------------------


def has_private_backend() -> bool:
    """Whether somebody's own device is there: PyTorch knows a name for it, or can make tensors."""
    named = getattr(torch._C, "_get_privateuse1_backend_name", None)
    if named is not None and named() != "privateuseone":
        return True
    try:
        return torch._C._dispatch_has_kernel_for_dispatch_key("aten::empty.memory_format",
                                                              "PrivateUse1")
    except (AttributeError, RuntimeError):
        return False


def default_dispatch_key() -> str:
    """That of the accelerator of this machine. Without one it is the CPU's, whose kernels are then
    replaced, which is told."""
    if torch.cuda.is_available():
        return "CUDA"
    if hasattr(torch, "npu") or has_private_backend():
        return "PrivateUse1"
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        return "XPU"
    warnings.warn("plumb: no accelerator is found, so the kernels take the place of the CPU's own; "
                  "dispatch_key says where they belong", stacklevel=3)
    return "CPU"


def vendor_exclusions(config: Sequence[Sequence[Any]]) -> Set[str]:
    """What the library that the kernels come from does not use on the device that it found: it
    tells through runtime.backend.get_unused_ops(vendor), if it has such a thing."""
    for package in {str(getattr(row[1], "__module__", "")).partition(".")[0] for row in config if len(row) > 1}:
        backend = sys.modules.get(f"{package}.runtime.backend")
        device = getattr(sys.modules.get(f"{package}.runtime"), "device", None)
        vendor = getattr(device, "vendor_name", None) \
            or getattr(sys.modules.get(package), "vendor_name", None)
        for name in ("get_unused_ops", "get_current_device_unused_op",
                     "get_curent_device_unused_op"):
            ask = getattr(backend, name, None)
            if ask is not None and vendor is not None:
                try:
                    return set(ask(vendor) or ())
                except Exception as error:
                    warnings.warn(f"plumb: {package} does not say what its vendor excludes: {error}",
                                  stacklevel=3)
                    return set()
    return set()


class PrecisionCheckRegister:
    """A registrar for libraries that take one (`registrar=plumb.PrecisionCheckRegister`): gets the
    list of (operator, kernel) and registers each kernel, checked, through torch.library.

    A third item of an entry is a function that says whether it counts, or None; a fourth are more
    dispatch keys to register the kernel under. Of the operators, by key or by the name of the
    kernel, those in user_include_ops are registered, or, when there are none, all but those in
    user_exclude_ops and those that the vendor excludes (vendor_unused_ops, or what the library
    itself says); never those in cpp_patched_ops. Earlier names of these arguments end in _list.
    full_config_by_func: all entries by the name of their kernel, where names to include are looked
    up. A kernel that cannot be registered is reported, and the others are. When no check is
    enabled, the kernels are registered as they are."""

    def __init__(self, config: Iterable[Sequence[Any]] = (),
                 user_include_ops: Optional[Iterable[str]] = None,
                 user_exclude_ops: Optional[Iterable[str]] = None,
                 cpp_patched_ops: Optional[Iterable[str]] = None, lib: Any = None,
                 full_config_by_func: Optional[Dict[str, Sequence[Sequence[Any]]]] = None,
                 dispatch_key: Optional[str] = None, **more: Any) -> None:
        def named(given: Optional[Iterable[str]], *earlier: str) -> Set[str]:
            return set(given or ()).union(*(more.get(name) or () for name in earlier))
        config = list(config)
        self.lib = lib if lib is not None else torch.library.Library("aten", "IMPL")
        self.dispatch_key = dispatch_key or default_dispatch_key()
        self.included = named(user_include_ops, "user_include_ops_list")
        self.unused = named(user_exclude_ops, "user_exclude_ops_list", "user_unused_ops_list")
        self.patched = named(cpp_patched_ops, "cpp_patched_ops_list")
        self.vendor_unused = named(None, "vendor_unused_ops", "vendor_unused_ops_list") \
            or vendor_exclusions(config)
        self.all_ops: List[str] = []
        self.all_keys: List[str] = []
        self.refused: Dict[str, str] = {}  # operators that could not be registered, and why
        for name in self.included:
            for row in (full_config_by_func or {}).get(name, ()):
                if not any(row[0] == other[0] for other in config):
                    config.append(row)
        self.for_each(config)

    def for_each(self, config: Iterable[Sequence[Any]]) -> None:
        found: Set[str] = set()
        for row in config:
            try:
                key, fn, *more = row
                condition, extra = (more + [None, None])[:2]
                name = getattr(fn, "__name__", key)
                found.update((key, name))
                extra = (extra,) if isinstance(extra, str) else extra or ()
                if self.is_wanted(key, name) and (not callable(condition) or condition()):
                    self.register_impl(key, fn, extra_dispatch_keys=extra)
            except Exception as error:
                self.refuse(str(row[0]) if row else "a row without a name", error)
        lost = sorted(self.included - found)
        if lost:
            nothing = "" if self.all_keys else "; nothing is registered"
            warnings.warn(f"plumb: no kernel has a name that is to be included: {', '.join(lost)}"
                          f"{nothing}", stacklevel=3)

    def refuse(self, key: str, error: Exception) -> None:
        why = f"{type(error).__name__}: {error}".strip().split("\n", 1)[0]
        self.refused[key] = why
        warnings.warn(f"plumb: {key} is not registered: {why}", stacklevel=4)
        checker = enable.current()
        if checker is not None:
            full = key if "::" in key else f"aten::{key}"
            checker.guard.operator(full).give_up("its kernel could not be registered")

    def is_wanted(self, key: str, name: str) -> bool:
        if key in self.patched:
            return False
        if self.included:
            return not self.included.isdisjoint((key, name))
        return (self.unused | self.vendor_unused).isdisjoint((key, name))

    def register_impl(self, key: str, fn: Callable[..., Any], dispatch_key: Optional[str] = None,
                      extra_dispatch_keys: Iterable[str] = ()) -> None:
        kernel, checker = fn, enable.current()
        if checker is not None:
            try:
                kernel = checked(fn, key)
            except (AttributeError, RuntimeError):  # torch.library takes it all the same
                full = key if "::" in key else f"aten::{key}"
                checker.guard.operator(full).give_up("this PyTorch has no such operator")
        keys = dict.fromkeys((dispatch_key or self.dispatch_key, *extra_dispatch_keys))
        for each in keys:
            self.lib.impl(key.partition("::")[2] or key, kernel, each)
        self.all_ops.append(getattr(fn, "__name__", key))
        self.all_keys.append(key)

    def get_all_ops(self) -> List[str]:
        return self.all_ops

    def get_all_keys(self) -> List[str]:
        return self.all_keys

    def get_unused_ops(self) -> List[str]:
        return sorted(self.unused | self.vendor_unused)
