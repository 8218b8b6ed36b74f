"""One operator call under the online check: what it was given, what it gave, what is right."""

import contextlib
import sys
import threading
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.utils import _python_dispatch

from plumb import _core, tensors
from plumb._guard.clean_worker import CleanWorker, is_told, observed, written, written_names
from plumb._guard.judged import Judged, Undetermined, judged, running_statistics
from plumb.tensors import to_core

PASS, CHECK, QUIET = 0, 1, 2
PLAIN = (torch.Tensor, torch.nn.Parameter)
_is_functional = getattr(torch, "_is_functional_tensor", lambda tensor: False)
MOST_FRAMES = 30

# busy: this thread is inside a check; seen: the operator whose call is being watched
_local = threading.local()


def is_busy() -> bool:
    return getattr(_local, "busy", False)


def see(func: Any) -> Any:
    """Says that a call of this operator is counted already; returns what was said before."""
    before = getattr(_local, "seen", None)
    _local.seen = func
    return before


def is_seen(func: Any) -> bool:
    """Whether somebody counts this call already. Asked by the kernel, once a call."""
    if getattr(_local, "seen", None) is not func:
        return False
    _local.seen = None
    return True


@contextlib.contextmanager
def _modes_aside() -> Iterator[None]:
    # The list keeps them alive: PyTorch 2.6 frees a mode that nobody else holds while it is taken off.
    modes: List[Any] = list(_python_dispatch._get_current_dispatch_mode_stack())
    for _ in modes:
        _python_dispatch._pop_mode()
    try:
        yield
    finally:
        for mode in modes:
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
    return bool(written_names(func))


def by_name(func: Any, args: Sequence[Any], kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments of a call, defaults included."""
    schema = func._schema.arguments
    found = {argument.name: argument.default_value for argument in schema
             if argument.has_default_value()}
    found.update(zip((argument.name for argument in schema), args))
    found.update(kwargs)
    return found


def why_unfit(func: Any) -> Optional[str]:
    """Why an operator is never checked, from its schema; names are known to the guard itself."""
    arguments, returns = func._schema.arguments, func._schema.returns
    if draws(func) and not is_told_to_draw(func):
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


# -- Chance ----------------------------------------------------------------------------------------


def draws(func: Any) -> bool:
    """Whether PyTorch calls an operator random. Some are only when they are told to."""
    seeded = getattr(torch.Tag, "nondeterministic_seeded", None)
    return seeded in getattr(func, "tags", ()) or "dropout" in func._schema.name \
        or any("Generator" in str(argument.type) for argument in func._schema.arguments)


def is_chance(func: Any, name: str) -> bool:
    """An argument that says how much is dropped."""
    return "dropout" in name or (name == "p" and "dropout" in func._schema.name)


def is_told_to_draw(func: Any) -> bool:
    """By a chance, or by the question whether this is training (rrelu)."""
    return any(is_chance(func, argument.name) or argument.name == "training"
               for argument in func._schema.arguments)


def is_random(func: Any, call: Dict[str, Any]) -> bool:
    """Whether these arguments make an operator drop elements."""
    if call.get("train", call.get("training", True)) is False:
        return False
    chances = [value for name, value in call.items() if is_chance(func, name)
               and isinstance(value, (int, float)) and not isinstance(value, bool)]
    return any(value > 0 for value in chances) if chances else draws(func)


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


def why_unseen(tensor: torch.Tensor) -> Optional[str]:
    """Why the values of a tensor are not there, or not to be looked at now."""
    if tensor.device.type == "meta":
        return "tensors of the meta device have no values"
    if tensor.layout is not torch.strided:
        return "sparse and other layouts"
    if tensor.is_quantized:
        return "quantised tensors"
    if tensor.device.type == "cuda" and is_capturing():
        return "a CUDA graph is being captured"
    if type(tensor) in PLAIN:
        return "tensors of a functionalised program" if _is_functional(tensor) else None
    kinds = [kind.__name__ for kind in type(tensor).__mro__]
    if "FakeTensor" in kinds:
        return "fake tensors have no values"
    return "tensors of a functionalised program" if "FunctionalTensor" in kinds else None


def is_capturing() -> bool:
    """While a CUDA graph is captured nothing may be copied from the device, nor waited for."""
    asked = getattr(torch.cuda, "is_current_stream_capturing", None)
    return asked is not None and bool(asked())


def stack_text() -> str:
    """The frames that led here, innermost last, without those of torch and of plumb."""
    lines: List[str] = []
    frame = sys._getframe(1)
    ours, theirs = __file__.rsplit("/", 2)[0], torch.__file__.rsplit("/", 1)[0]
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


class NoMemory(Exception):
    """There is nothing to look at in the tensors of this call."""


class Reference(NamedTuple):
    outputs: List[Any]       # as the C side has them
    raised: bool             # in float64 whatever the types of the results
    written: Dict[str, Any]  # what the arguments hold afterwards, by name, where that is known
    own: bool = False        # plumb's


def own_written(entry: Entry, call: Dict[str, Any], outputs: List[Any]) -> Dict[str, Any]:
    """What plumb's operator would leave in the arguments that it changes."""
    found = {}
    for argument in entry.func._schema.arguments:
        if not is_told(argument):
            continue
        for value, output in zip(entry.func._schema.returns, outputs):
            if value.alias_info is not None \
                    and value.alias_info.before_set == argument.alias_info.before_set:
                found[argument.name] = output
    names = written_names(entry.func)
    if "batch_norm" in entry.name and "gather_stats" not in entry.name and "running_mean" in names:
        found.update(running_statistics(call))
    return found


def own_reference(entry: Entry, args: List[Any], kwargs: Dict[str, Any]) -> Optional[Reference]:
    """plumb's float64 operator; None when it has none for such a call."""
    if not entry.known():
        return None
    try:
        outputs = _core.run_op("Aten", entry.short_name(), args, kwargs)[0]
    except (_core.Error, TypeError):
        return None
    if entry.outputs is not None and len(outputs) != entry.outputs:
        return None
    call = by_name(entry.func, args, kwargs)
    return Reference(outputs, True, own_written(entry, call, outputs), True)


def native_reference(entry: Entry, args: Any, kwargs: Any) -> Reference:
    """PyTorch's operator on CPU copies, as it is without autocast and gradients."""
    args, kwargs = tuple(to_cpu(args)), to_cpu(kwargs)
    if entry.changes:  # what was on the CPU already is no copy yet
        copy = lambda tensor: tensor.clone()
        args, kwargs = tuple(replace(args, copy)), replace(kwargs, copy)
    try:
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            outputs = observed(entry.func, entry.func(*args, **kwargs), args, kwargs)
            return Reference(to_core(outputs), False, to_core(written(entry.func, args, kwargs)))
    except (NotImplementedError, RuntimeError) as error:
        first = str(error).strip().split("\n", 1)[0]
        raise NoReference(f"the CPU refuses it ({first})") from None


def native_types(entry: Entry, args: Any, kwargs: Any) -> Optional[List[torch.dtype]]:
    """The types of the results as PyTorch itself has them; None where only running it tells."""
    meta = lambda tensor: torch.empty_like(tensor, device="meta")
    told = any(is_told(argument) for argument in entry.func._schema.arguments)
    if told or not any(True for _ in walk((args, kwargs))):
        return None
    try:
        results = observed(entry.func, entry.func(*replace(args, meta), **replace(kwargs, meta)),
                           args, kwargs)
    except Exception:  # it has no form for tensors without values
        return None
    found = [getattr(result, "dtype", None) for result in results]
    return None if None in found else found


def as_typed(value: Any, dtype: torch.dtype) -> Any:
    """A float64 reference in the type that its operator has; None, where there is none, stays."""
    if not isinstance(value, _core.Tensor):
        return value
    tensor = torch.empty(value.shape, dtype=getattr(torch, value.dtype))
    value.copy_into(tensor.data_ptr(), value.nbytes)
    return tensor.to(dtype)


def typed(entry: Entry, given: "Given", outputs: List[Any], reference: Reference) -> Reference:
    """A float64 reference says nothing of the type of a result; where that is wrong, one that
    does, and that is not float64 any more."""
    types = native_types(entry, given.args, given.kwargs)
    got = [getattr(output, "dtype", None) for output in outputs]
    right = reference.outputs
    if types is None or types == got or not len(types) == len(got) == len(right):
        return reference
    return Reference(to_core([as_typed(*pair) for pair in zip(right, types)]), False, {},
                     reference.own)


def memory_of(tensor: torch.Tensor) -> Any:
    """Equal for tensors that share memory."""
    try:
        storage = getattr(tensor, "untyped_storage", tensor.storage)
        return storage().data_ptr() or id(tensor)
    except (NotImplementedError, RuntimeError):
        return id(tensor)


def same_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether one is the other, or a view of all of it."""
    if a is b:
        return True
    try:
        return a.data_ptr() == b.data_ptr() != 0 and a.shape == b.shape and a.stride() == b.stride()
    except (NotImplementedError, RuntimeError):
        return False


def changed_inputs(given: "Given") -> Optional[str]:
    """Which tensors the kernel wrote into though its operator does not."""
    if not given.copied:
        return None
    free = {memory_of(tensor) for tensor in walk(given.written)}
    for number, (new, old) in enumerate(zip(given.inputs, given.before())):
        if memory_of(new) not in free and tensors.view(new).crc32() != tensors.view(old).crc32():
            return f"the kernel changed its input tensor {number}"
    return None


class Given:
    """What a call was given: the arguments as they were before it, which are copies where it may
    change them (`copied`), and the tensors themselves."""

    __slots__ = ("args", "kwargs", "copied", "inputs", "written")

    def __init__(self, func: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any],
                 inputs: List[torch.Tensor], copied: bool) -> None:
        copy = lambda tensor: tensor.detach().clone()
        self.args = replace(args, copy) if copied else args
        self.kwargs = replace(kwargs, copy) if copied else kwargs
        self.copied = copied
        self.inputs = inputs
        self.written = written(func, args, kwargs)

    def before(self) -> List[torch.Tensor]:
        return [*walk(self.args), *walk(self.kwargs)]

    def on_cpu(self, outputs: List[Any]) -> bool:
        return all(tensor.device.type == "cpu" for tensor in [*self.inputs, *walk(outputs)])


def whole(entry: Entry, given: Given, outputs: List[Any], results: List[Any], call: Dict[str, Any],
          reference: Reference) -> Optional[Judged]:
    """What is judged of the call: its results, and what it wrote into that is no result; None when
    that is the results as they are."""
    try:
        found = judged(entry.short_name(), call, results, reference.outputs, reference.own)
    except Undetermined as error:
        raise NoReference(str(error)) from None
    more = Judged([], [], [])
    for name, value in given.written.items():
        right = reference.written.get(name)
        if right is None or not isinstance(value, torch.Tensor) \
                or any(same_memory(value, output) for output in walk(outputs)):
            continue
        more.outputs.append(tensors.view(value))
        more.reference.append(right)
        more.labels.append(f"argument {name}")
    if not more.labels or len(results) != len(reference.outputs):
        return found
    if found is None:
        found = Judged(list(results), list(reference.outputs), [""] * len(results))
    return Judged(*(a + b for a, b in zip(found, more)))


class Checker:
    """Checks calls for one guard. Thread-safe."""

    def __init__(self, guard: _core.Guard, prefer_float64: bool, arithmetic: str = "") -> None:
        self.guard = guard
        self.arithmetic = arithmetic
        self.prefer_float64 = prefer_float64
        self.worker = CleanWorker()
        self.closed = False
        self.forked = False  # this process is a child of the one whose check it is

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
                    self._check(entry, given, result, args, kwargs)
            except Exception as error:
                self._trouble(entry, error)
        return result

    def _trouble(self, entry: Entry, error: Exception) -> None:
        try:
            entry.op.trouble(f"{type(error).__name__}: {error}".split("\n", 1)[0])
        except Exception:
            pass  # even the counting failed; the model goes on

    @staticmethod
    def _take(entry: Entry, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Given]:
        """The arguments as they are before the call; None when it is not checked."""
        inputs = list(walk(args)) + list(walk(kwargs))
        why = next(filter(None, map(why_unseen, inputs)), None)
        if why is not None:
            entry.op.pass_over(why)
            return None
        if not entry.op.claim(max((tensor.numel() for tensor in inputs), default=0)):
            return None
        # What is no kernel of PyTorch for the CPU may write where it should not.
        copied = entry.changes or entry.replaced() or any(t.device.type != "cpu" for t in inputs)
        return Given(entry.func, args, kwargs, inputs, copied)

    def _check(self, entry: Entry, given: Given, result: Any, args: Tuple[Any, ...],
               kwargs: Dict[str, Any]) -> None:
        outputs = observed(entry.func, result, args, kwargs)
        if any(tensor.device.type == "meta" for tensor in walk(outputs)):
            return
        try:
            self.verdict(entry, given, outputs)
        except NoReference as error:
            (entry.op.give_up if error.ever else entry.op.pass_over)(str(error))
        except NoMemory as error:
            entry.op.pass_over(str(error))

    def verdict(self, entry: Entry, given: Given, outputs: List[Any],
                saved: Optional[Reference] = None) -> Dict[str, Any]:
        """The verdict, counted and logged. saved: a reference for where plumb has none."""
        try:
            values, options = to_core(list(given.args)), to_core(given.kwargs)
            results = to_core(outputs)
            changed = changed_inputs(given)
        except _core.Error as error:  # wrappers without memory: fake tensors and the like
            raise NoMemory(str(error)) from None
        call = by_name(entry.func, values, options)
        if is_random(entry.func, call):
            raise NoReference("it drops elements at random")
        reference = own_reference(entry, values, options) or saved if saved is not None \
            else self._reference(entry, given, outputs, values, options)
        if reference.raised and (entry.replaced() or not given.on_cpu(outputs)):
            reference = typed(entry, given, outputs, reference)
        found = whole(entry, given, outputs, results, call, reference)
        wanted = reference.outputs if found is None else found.reference
        return entry.op.judge(entry.short_name(), values, options, results, wanted,
                              reference.raised, stack_text(), changed,
                              found and found.outputs, found and found.labels)

    def _reference(self, entry: Entry, given: Given, outputs: List[Any], values: List[Any],
                   options: Dict[str, Any]) -> Reference:
        """On the CPU plumb's, since the native one is the kernel that ran, or has been replaced;
        of another device the native operator of the CPU, while it is the native one."""
        on_cpu = given.on_cpu(outputs)
        native = not on_cpu and not is_overridden(entry.func)
        if not native or self.prefer_float64:
            found = own_reference(entry, values, options)
            if found is not None:
                return found
        if native:
            try:
                return native_reference(entry, given.args, given.kwargs)
            except NoReference:  # half types, say
                found = own_reference(entry, values, options)
                if found is None:
                    raise
                return found
        if on_cpu and not entry.replaced():
            if entry.known():
                raise NoReference("the native kernel itself ran, and plumb's does not take it so")
            raise NoReference("the native kernel itself ran, and plumb has no such operator", True)
        try:
            found, after = self.worker.run(entry.name, tuple(to_cpu(given.args)),
                                           to_cpu(given.kwargs))
        except RuntimeError as error:
            raise NoReference(f"a clean PyTorch refuses it ({error})") from None
        return Reference(to_core(found), False, to_core(after))

    def after_fork(self) -> None:
        self.forked = True
        self.guard.forked()
        self.worker.lock = threading.Lock()  # another thread may have held it

    def close(self) -> None:
        self.closed = True
        self.worker.close()
