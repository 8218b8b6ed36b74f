"""One operator call under the online check: what it was given, what it gave, what is right."""

import contextlib
import sys
import threading
from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch
from torch.utils import _python_dispatch

from plumb import _core, tensors
from plumb.clean_worker import CleanWorker, observed

PASS, CHECK, QUIET = 0, 1, 2
MOST_FRAMES = 30

_local = threading.local()  # busy: this thread is inside a check


def is_busy() -> bool:
    return getattr(_local, "busy", False)


@contextlib.contextmanager
def _modes_aside() -> Iterator[None]:
    modes: List[Any] = []
    while _python_dispatch._get_current_dispatch_mode_stack():
        modes.append(_python_dispatch._pop_mode())
    try:
        yield
    finally:
        for mode in reversed(modes):
            _python_dispatch._push_mode(mode)


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """The check's own calls are not checked, and no dispatch mode of the program sees them."""
    before = is_busy()
    _local.busy = True
    try:
        with getattr(_python_dispatch, "_disable_current_modes", _modes_aside)():
            yield
    finally:
        _local.busy = before


# -- Operators -------------------------------------------------------------------------------------


def full_name(func: Any) -> str:
    """"aten::add.Tensor", "aten::mm"."""
    schema = func._schema
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name


def changes_arguments(func: Any) -> bool:
    return any(argument.alias_info is not None and argument.alias_info.is_write
               for argument in func._schema.arguments)


def why_unfit(func: Any) -> Optional[str]:
    """Why an operator is never checked, from its schema; names are known to the guard itself."""
    arguments, returns = func._schema.arguments, func._schema.returns
    seeded = getattr(torch.Tag, "nondeterministic_seeded", None)
    if seeded in getattr(func, "tags", ()) or any("Generator" in str(a.type) for a in arguments):
        return "random"
    if any(getattr(argument, "is_out", False) for argument in arguments):
        return "writes into a given tensor"
    if any(value.alias_info is not None and not value.alias_info.is_write for value in returns):
        return "a view or a layout"
    if not returns and not changes_arguments(func):
        return "gives nothing to compare"
    return None


def is_overridden(func: Any) -> bool:
    """Whether the kernel for the CPU is not PyTorch's own any more."""
    try:
        table = torch._C._dispatch_dump_table(full_name(func))
    except (AttributeError, RuntimeError):
        return False
    for line in table.splitlines():
        if line.startswith("CPU:"):
            return "/ATen/" not in line and "\\ATen\\" not in line
    return False


class Entry:
    """An operator that a guard counts. `kernel` says that somebody's own kernel is checked, which
    may be one for the CPU."""

    __slots__ = ("func", "op", "call", "name", "changes", "kernel", "overridden", "outputs")

    def __init__(self, func: Any, op: _core.GuardOperator, kernel: bool = False) -> None:
        self.func = func
        self.op = op
        self.call = op.call
        self.name = full_name(func)
        self.changes = changes_arguments(func)
        self.kernel = kernel
        self.overridden: Optional[bool] = None
        returns = func._schema.returns
        lists = any("[]" in str(value.type) or "List" in str(value.type) for value in returns)
        self.outputs = None if lists or not returns else len(returns)

    def short_name(self) -> str:
        return self.name.partition("::")[2] if self.name.startswith("aten::") else self.name

    def known(self) -> bool:
        """Whether plumb has the operator. Somebody's own neg need not be what plumb calls so."""
        return self.name.startswith(("aten::", "npu::")) and _core.has_op("Aten", self.short_name())

    def replaced(self) -> bool:
        if self.overridden is None:
            self.overridden = self.kernel or (self.name.startswith("aten::")
                                              and is_overridden(self.func))
        return self.overridden


# -- Values ----------------------------------------------------------------------------------------


def walk(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from walk(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from walk(item)


def replace(value: Any, change: Any) -> Any:
    """The same structure with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)([replace(item, change) for item in value]) \
            if type(value) in (list, tuple) else [replace(item, change) for item in value]
    if isinstance(value, dict):
        return {key: replace(item, change) for key, item in value.items()}
    return value


def to_cpu(value: Any) -> Any:
    if isinstance(value, torch.device):
        return torch.device("cpu")
    if isinstance(value, dict):
        return {key: to_cpu(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_cpu(item) for item in value]
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def to_core(value: Any) -> Any:
    """As the C side takes it."""
    if isinstance(value, torch.Tensor):
        return tensors.view(value)
    if isinstance(value, torch.dtype):
        return _core.DType(str(value))
    if isinstance(value, torch.device):
        return _core.Device(str(value))
    if isinstance(value, (torch.layout, torch.memory_format)):
        return None
    if isinstance(value, (list, tuple)):
        return [to_core(item) for item in value]
    if isinstance(value, dict):
        return {key: to_core(item) for key, item in value.items()}
    return value


def stack_text() -> str:
    """The frames that led here, innermost last, without those of torch and of plumb."""
    lines: List[str] = []
    frame = sys._getframe(1)
    ours, theirs = __file__.rsplit("/", 1)[0], torch.__file__.rsplit("/", 1)[0]
    while frame is not None and len(lines) < MOST_FRAMES:
        code = frame.f_code
        inside = code.co_filename.startswith((ours, theirs, "<frozen"))
        if not inside and "contextlib" not in code.co_filename:
            lines.append(f'File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}')
        frame = frame.f_back
    return "\n".join(reversed(lines))


# -- References ------------------------------------------------------------------------------------


class NoReference(Exception):
    """Nothing independent of the kernel can say what is right; the message says why. `ever`: nor
    will it of another call of that operator."""

    def __init__(self, why: str, ever: bool = False) -> None:
        super().__init__(f"no reference: {why}")
        self.ever = ever


def own_reference(entry: Entry, args: List[Any], kwargs: Dict[str, Any]) -> Optional[List[Any]]:
    """plumb's float64 operator; None when it has none for such a call."""
    if not entry.known():
        return None
    try:
        outputs = _core.run_op("Aten", entry.short_name(), args, kwargs)[0]
    except (_core.Error, TypeError):
        return None
    if entry.outputs is not None and len(outputs) != entry.outputs:
        return None
    return outputs


def native_reference(entry: Entry, args: Any, kwargs: Any) -> List[Any]:
    """PyTorch's operator on CPU copies, as it is without autocast and gradients."""
    args, kwargs = tuple(to_cpu(args)), to_cpu(kwargs)
    try:
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            return observed(entry.func, entry.func(*args, **kwargs), args)
    except (NotImplementedError, RuntimeError) as error:
        first = str(error).strip().split("\n", 1)[0]
        raise NoReference(f"the CPU refuses it ({first})") from None


def native_types(entry: Entry, args: Any, kwargs: Any) -> Optional[List[torch.dtype]]:
    """The types of the results as PyTorch itself has them; None where only running it tells."""
    meta = lambda tensor: torch.empty_like(tensor, device="meta")
    if entry.changes or not any(True for _ in walk((args, kwargs))):
        return None
    try:
        results = observed(entry.func, entry.func(*replace(args, meta), **replace(kwargs, meta)),
                           tuple(args))
    except Exception:  # it has no form for tensors without values
        return None
    found = [getattr(result, "dtype", None) for result in results]
    return None if None in found else found


def as_typed(value: _core.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A float64 reference in the type that its operator has."""
    tensor = torch.empty(value.shape, dtype=getattr(torch, value.dtype))
    value.copy_into(tensor.data_ptr(), value.nbytes)
    return tensor.to(dtype)


# PyTorch's schemas do not say that these change running statistics.
UNTOLD_CHANGES = ("batch_norm", "instance_norm")


def changed_inputs(entry: Entry, now: List[torch.Tensor],
                   before: List[torch.Tensor]) -> Optional[str]:
    """Which tensors the kernel wrote into though its operator does not."""
    if entry.changes or any(word in entry.name for word in UNTOLD_CHANGES):
        return None
    for number, (new, old) in enumerate(zip(now, before)):
        if new is not old and tensors.view(new).crc32() != tensors.view(old).crc32():
            return f"the kernel changed its input tensor {number}"
    return None


class Checker:
    """Checks calls for one guard. Thread-safe."""

    def __init__(self, guard: _core.Guard, prefer_float64: bool) -> None:
        self.guard = guard
        self.prefer_float64 = prefer_float64
        self.worker = CleanWorker()
        self.closed = False

    def entry(self, func: Any, kernel: bool = False) -> Entry:
        return Entry(func, self.guard.operator(full_name(func), why_unfit(func)), kernel)

    def run(self, entry: Entry, call: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """Makes the call, and checks it if it can. What the call returns or raises is passed on as
        it is; what goes wrong in the check is counted."""
        if self.closed:
            return call(*args, **kwargs)
        given = None
        try:
            with busy():
                given = self._take(entry, args, kwargs)
        except Exception as error:
            self._trouble(entry, error)
        result = call(*args, **kwargs)
        if given is not None:
            try:
                with busy(), torch.no_grad():
                    self._check(entry, given, result, args)
            except Exception as error:
                self._trouble(entry, error)
        return result

    def _trouble(self, entry: Entry, error: Exception) -> None:
        try:
            entry.op.trouble(f"{type(error).__name__}: {error}".split("\n", 1)[0])
        except Exception:
            pass  # even the counting failed; the model goes on

    @staticmethod
    def _take(entry: Entry, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """The arguments as they are before the call; None when it is not checked."""
        given = list(walk(args)) + list(walk(kwargs))
        if any(tensor.device.type == "meta" or tensor.layout is not torch.strided
               or tensor.is_quantized for tensor in given):
            return None
        if not entry.op.claim(max((tensor.numel() for tensor in given), default=0)):
            return None
        # What is no kernel of PyTorch for the CPU may write where it should not.
        if entry.changes or entry.replaced() or any(t.device.type != "cpu" for t in given):
            copy = lambda tensor: tensor.detach().clone()
            return replace(args, copy), replace(kwargs, copy), given
        return args, kwargs, given

    def _check(self, entry: Entry, given: Any, result: Any, args: Tuple[Any, ...]) -> None:
        before, named, inputs = given
        outputs = observed(entry.func, result, args)
        if any(tensor.device.type == "meta" for tensor in walk(outputs)):
            return
        try:
            values, options = to_core(list(before)), to_core(named)
            results = to_core(outputs)
            changed = changed_inputs(entry, inputs, [*walk(before), *walk(named)])
        except _core.Error as error:  # wrappers without memory: fake tensors and the like
            entry.op.pass_over(str(error))
            return
        try:
            reference, raised = self._reference(entry, before, named, inputs, values, options)
        except NoReference as error:
            (entry.op.give_up if error.ever else entry.op.pass_over)(str(error))
            return
        if raised and (entry.replaced() or any(t.device.type != "cpu" for t in inputs)):
            reference, raised = self._typed(entry, before, named, outputs, reference)
        entry.op.judge(entry.short_name(), values, options, results, reference, raised,
                       stack_text(), changed)

    @staticmethod
    def _typed(entry: Entry, args: Any, kwargs: Any, outputs: List[Any],
               reference: List[Any]) -> Tuple[List[Any], bool]:
        """A float64 reference says nothing of the type of a result; where that is wrong, one that
        does, and whether it is still float64."""
        types = native_types(entry, args, kwargs)
        given = [getattr(output, "dtype", None) for output in outputs]
        if types is None or types == given or not len(types) == len(given) == len(reference):
            return reference, True
        return to_core([as_typed(*pair) for pair in zip(reference, types)]), False

    def _reference(self, entry: Entry, before: Any, named: Any, inputs: List[torch.Tensor],
                   values: List[Any], options: Dict[str, Any]) -> Tuple[List[Any], bool]:
        on_cpu = all(tensor.device.type == "cpu" for tensor in inputs)
        replaced = entry.replaced()
        if on_cpu or replaced or self.prefer_float64:
            outputs = own_reference(entry, values, options)
            if outputs is not None:
                return outputs, True
        if not on_cpu and not (replaced and is_overridden(entry.func)):
            try:
                return to_core(native_reference(entry, before, named)), False
            except NoReference:  # half types, say
                outputs = own_reference(entry, values, options)
                if outputs is None:
                    raise
                return outputs, True
        if not replaced:
            if entry.known():
                raise NoReference("the native kernel itself ran, and plumb's does not take it so")
            raise NoReference("the native kernel itself ran, and plumb has no such operator", True)
        try:
            outputs = self.worker.run(entry.name, tuple(to_cpu(before)), to_cpu(named))
        except RuntimeError as error:
            raise NoReference(f"a clean PyTorch refuses it ({error})") from None
        return to_core(outputs), False

    def close(self) -> None:
        self.closed = True
        self.worker.close()
