"""begin_dump and end_dump: every operator that a stretch of a program runs, for unit tests of them.

    plumb.begin_dump(X_DEBUG=0x102, X_DEDUP=True, X_DUMP_NUM=5)
    output = model(batch); output.sum().backward()
    plumb.end_dump(clear_context=True)

writes xray_debug/proc_{pid}/dump.json and, beside it in dump/, the tensors that were kept. `plumb
jprof` makes unit tests of it, `plumb acc_check` checks the same calls natively.

A dispatch mode sees the operators of its thread, those of backward passes too, also where they run
on threads of the autograd engine. Other threads are seen when they call begin_dump themselves. The
file is whole JSON at any moment: a program that dies leaves what it had recorded. In the child of a
fork nothing is recorded until begin_dump is called there. Whatever goes wrong is told at the end
and never raised.
"""

import atexit
import contextlib
import os
import random
import threading
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor
from torch.utils import _python_dispatch as dispatch

from plumb import _core
from plumb._capture.config import tell
from plumb._capture.files import JsonFile
from plumb._capture.given import as_outputs
from plumb._capture.leaves import NOTHING, Encoder, Numbers, statistics, tensor_leaf
from plumb._capture.sink import as_lines
from plumb._passcheck import higher
from plumb.tensors import view

TRACE = 0x100    # operators at all
DETAIL = 0x2     # with shapes, dtypes and ranges
DEFAULT_DEBUG = TRACE | DETAIL
NOTES = 20       # of which the texts are kept
MAX_DEPTH = 64
UNSEEN = ("prim", "profiler")  # namespaces that compute nothing


class Settings(NamedTuple):
    debug: int
    dedup: bool
    keep: int  # calls of each operator whose tensors are kept
    outputs: bool = False  # and of these also what came out


class Entry:
    """An operator that is running."""
    __slots__ = ("name", "op", "record", "files", "slot")

    def __init__(self, name: str, op: str, slot: int) -> None:
        self.name, self.op, self.slot = name, op, slot
        self.record: Dict[str, Any] = {"op": op}
        self.files: List[str] = []


class Kept(NamedTuple):
    """A call whose tensors are on the disk: where dump.json has its entry, and their names."""
    at: int
    text: bytes
    files: List[str]


class Reservoir:
    """Chooses n of however many calls, each with the same chance: the k-th takes the place of a
    chosen one with probability n/k. The generator is its own, so the choice depends on the calls of
    this operator only."""

    def __init__(self, op: str) -> None:
        self.random = random.Random(f"plumb {op}")
        self.seen = 0
        self.kept: Dict[int, Kept] = {}

    def choose(self, n: int) -> int:
        """The place for this call, or -1."""
        self.seen += 1
        place = self.seen - 1 if self.seen <= n else self.random.randrange(self.seen)
        return place if place < n else -1


class Leaves(Encoder):
    """As in any dump.json, but nothing that an operator takes is lost."""

    def nested(self, value: Tensor, place: str) -> Any:
        raise _core.Error("a nested tensor, which a unit test cannot make again")

    def scalar(self, value: Any, place: str, key: Optional[str]) -> Any:
        if isinstance(value, (torch.dtype, torch.layout)):
            return {"type": f"torch.{type(value).__name__}", "value": str(value)}
        if isinstance(value, torch.device):
            return {"type": "torch.device", "value": str(value)}
        if isinstance(value, torch.Generator):
            return {"type": "torch.Generator"}
        for number in (getattr(torch, name, None) for name in ("SymInt", "SymFloat", "SymBool")):
            if number is not None and isinstance(value, number):
                plain = {"SymInt": int, "SymFloat": float}.get(type(value).__name__, bool)(value)
                return {"type": type(plain).__name__, "value": plain}
        leaf = super().scalar(value, place, key)
        return {"type": type(value).__name__} if leaf is None else leaf


def signature(value: Any, depth: int = MAX_DEPTH) -> Any:
    """What makes two arguments repeat each other."""
    if isinstance(value, Tensor):
        return value.dtype, tuple(value.shape)
    if isinstance(value, (list, tuple)) and depth:
        return (len(value), *[signature(item, depth - 1) for item in value])
    if isinstance(value, dict) and depth:
        return tuple((str(key), signature(item, depth - 1)) for key, item in sorted(value.items()))
    if isinstance(value, torch.Generator):
        return torch.Generator
    return type(value).__name__, repr(value)


class Recorder:
    """The dump of this process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.folder = os.path.join(os.path.abspath("xray_debug"), f"proc_{self.pid}")
        self.data = os.path.join(self.folder, "dump")
        self.lock = threading.RLock()
        self.active = False
        self.settings = Settings(0, False, 0)
        self.file: Optional[JsonFile] = None
        self.writer: Optional[_core.Writer] = None
        self.encoder = Leaves(self.tensor, lambda array, place: None)
        self.entry: Optional[Entry] = None  # whose tensors are written down now
        self.index = 0
        self.written = 0
        self.repeated = 0
        self.seen: set = set()
        self.reservoirs: Dict[str, Reservoir] = {}
        self.problems = 0
        self.notes: List[str] = []

    # -- On and off --------------------------------------------------------------------------------

    def begin(self, settings: Settings) -> None:
        with self.lock:
            self.settings = settings
            if not settings.debug & TRACE:
                return
            path = os.path.join(self.folder, "dump.json")
            if self.file is not None and not os.path.exists(path):
                self.end(True)  # somebody took the dump away: what comes is a new one
                self.file = None
                self.seen.clear()
                self.reservoirs.clear()
            if self.file is None:
                os.makedirs(self.data, exist_ok=True)
                self.file = JsonFile(path, {
                    "task": "tensor" if settings.keep else "statistics", "level": "aten",
                    "framework": "pytorch", "dump_data_dir": self.data})
            elif self.file.file < 0:
                self.file.file = os.open(path, os.O_WRONLY)
            self.active = True

    def end(self, forget: bool) -> None:
        with self.lock:
            self.active = False
            if self.writer is not None:
                self.writer.flush()
                for text in as_lines(self.writer.errors()):
                    self.note(text)
            if forget and self.file is not None and self.file.file >= 0:
                self.file.close()
                self.file.file = -1

    def close(self) -> None:
        self.end(True)
        if self.written or self.problems:
            text = f"{self.written} operators in {os.path.join(self.folder, 'dump.json')}"
            if self.repeated:
                text += f", {self.repeated} repeated ones left out"
            tell(text)
        for note in self.notes:
            tell(note)
        if self.problems > len(self.notes):
            tell(f"... and {self.problems - len(self.notes)} more")
        self.written = self.repeated = self.problems = 0
        self.notes.clear()

    def note(self, text: str) -> None:
        self.problems += 1
        if len(self.notes) < NOTES and text not in self.notes:
            self.notes.append(text)

    # -- Operators ---------------------------------------------------------------------------------

    def before(self, func: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Entry]:
        """The operator with its arguments as they are now; None when it is not recorded."""
        try:
            op = str(func)
            if op.partition(".")[0] in UNSEEN:
                return None
            with self.lock, torch.no_grad():
                return self.arguments(op, args, kwargs)
        except Exception as error:
            self.note(f"{func}: {type(error).__name__}: {error}")
            return None

    def arguments(self, op: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Entry]:
        settings = self.settings
        if settings.dedup:
            key = (op, signature(args), signature(kwargs)) if settings.debug & DETAIL else op
            if key in self.seen:
                self.repeated += 1
                return None
            self.seen.add(key)
        slot = -1
        if settings.keep:
            reservoir = self.reservoirs.get(op)
            if reservoir is None:
                reservoir = self.reservoirs[op] = Reservoir(op)
            slot = reservoir.choose(settings.keep)
        entry = Entry(f"{self.index:05d}-aten", op, slot)
        self.index += 1
        if settings.debug & DETAIL or slot >= 0:
            self.entry = entry
            element = self.encoder.element
            entry.record["input_args"] = [element(arg, f"{entry.name}.input.{i}")
                                          for i, arg in enumerate(args)]
            entry.record["input_kwargs"] = {key: element(arg, f"{entry.name}.kwargs.{key}", key)
                                            for key, arg in kwargs.items()}
            self.entry = None
        return entry

    def after(self, entry: Entry, output: Any) -> None:
        try:
            with self.lock, torch.no_grad():
                keep = entry.slot >= 0 and self.settings.outputs
                if self.settings.debug & DETAIL or keep:
                    self.entry = entry if keep else None
                    element = self.encoder.element
                    entry.record["output"] = [element(value, f"{entry.name}.output.{i}")
                                              for i, value in enumerate(as_outputs(output))]
                    self.entry = None
                self.add(entry)
        except Exception as error:
            self.note(f"{entry.name} {entry.op}: {type(error).__name__}: {error}")

    def add(self, entry: Entry) -> None:
        if self.file is None or self.file.file < 0:
            return
        if entry.files:
            self.writer.flush()  # a program that is killed leaves no names without tensors
        self.file.add(entry.name, entry.record)
        self.written += 1
        if entry.files:
            self.keep(entry)

    def keep(self, entry: Entry) -> None:
        """Takes the place of an earlier call, whose tensors go away: out of dump.json first. There,
        null and blanks stand where their names were, so that all behind them stays in place."""
        kept = self.reservoirs[entry.op].kept
        old = kept.get(entry.slot)
        if old is not None:
            text = old.text
            for name in old.files:
                quoted = _core.json_text(name).encode()
                text = text.replace(quoted, b"null".ljust(len(quoted)), 1)
            os.pwrite(self.file.file, text, old.at)
            self.writer.flush()
            for name in old.files:
                os.unlink(os.path.join(self.data, name))
        body = f"{_core.json_text(entry.name)}: {_core.json_text(entry.record, 2)}".encode()
        kept[entry.slot] = Kept(self.file.at - len(body), body, entry.files)

    def raised(self, entry: Entry) -> None:
        """The operator refused its arguments: there is nothing to test."""
        try:
            if entry.files:
                self.writer.flush()
            for name in entry.files:
                os.unlink(os.path.join(self.data, name))
        except Exception as error:
            self.note(f"{entry.name} {entry.op}: {type(error).__name__}: {error}")

    def tensor(self, tensor: Tensor, place: str) -> Dict[str, Any]:
        try:
            seen = view(tensor)
        except _core.Error:
            # Of a meta or sparse tensor the type and shape are all there is.
            return tensor_leaf(tensor, Numbers(NOTHING, None))
        leaf = tensor_leaf(tensor, Numbers(statistics(seen, tensor), None))
        leaf["stride"] = list(tensor.stride())
        entry = self.entry
        if entry is not None and entry.slot >= 0 and seen.count:
            name = f"{place}.pt"
            if self.writer is None:
                self.writer = _core.Writer()
            self.writer.save(os.path.join(self.data, name), seen)
            entry.files.append(name)
            leaf["data_name"] = name
        return leaf


class Mode(higher.Mode):
    """On the stack of modes of a thread between begin_dump and end_dump. Of operators that are given
    functions (cond, flex_attention) those that their functions call are recorded."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (),
                           kwargs: Optional[Dict[str, Any]] = None) -> Any:
        kwargs = kwargs or {}
        recorder = _recorder
        entry = None
        if higher.is_higher(func):
            if recorder is not None and higher.is_closed(func):
                recorder.note(f"what is inside {func} is not recorded")
            elif recorder is not None and str(func) == "flex_attention_backward":
                recorder.note("flex_attention ran uncompiled: tensors that its functions close over have no gradient")
            return higher.run_higher(self, func, args, kwargs)
        if recorder is not None and recorder.active and recorder.pid == os.getpid():
            entry = recorder.before(func, args, kwargs)
        if entry is None:
            return func(*args, **kwargs)
        try:
            output = func(*args, **kwargs)
        except BaseException:
            recorder.raised(entry)
            raise
        recorder.after(entry, output)
        return output


_recorder: Optional[Recorder] = None
_one_at_a_time = threading.Lock()  # of the threads that begin, for there is one dump


def _forked() -> None:
    global _one_at_a_time
    _one_at_a_time = threading.Lock()  # whoever held the other one is not here


os.register_at_fork(after_in_child=_forked)


def _modes() -> List[Any]:
    """Those of this thread, the outermost first."""
    return list(dispatch._get_current_dispatch_mode_stack())


class Standing:
    """Of all threads: how many have our mode, and the flags of modes that PyTorch 2 keeps for the whole process, as
    they were before the first. torch.compile compiles nothing while they say that there is a mode; so cond and
    flex_attention, which compile themselves, are kept from it meanwhile."""
    count = 0
    flags: Dict[str, bool] = {}
    plain = contextlib.ExitStack()


def _enter() -> None:
    if any(isinstance(mode, Mode) for mode in _modes()):
        return
    with _one_at_a_time:
        if Standing.count == 0:
            Standing.flags = {name: value for name, value in vars(dispatch).items()
                              if name.startswith("_is_in_") and isinstance(value, bool)}
            Standing.plain.enter_context(higher.uncompiled())
        Standing.count += 1
        Mode().__enter__()


def _leave() -> None:
    """Takes the mode off the stack, wherever in it others have put it."""
    # The list keeps them alive: PyTorch 2.6 frees a mode that nobody else holds while it is taken off.
    modes = _modes()
    ours = next((place for place, mode in enumerate(modes) if isinstance(mode, Mode)), len(modes))
    for _ in modes[ours:]:
        dispatch._pop_mode()
    for mode in modes[ours:]:
        if not isinstance(mode, Mode):
            dispatch._push_mode(mode)
    if ours == len(modes):
        return
    with _one_at_a_time:
        Standing.count -= 1
        if Standing.count == 0:
            Standing.plain.close()
        if Standing.count == 0 and len(modes[ours:]) == 1:  # others inside ours are still modes
            vars(dispatch).update(Standing.flags)


def _number(name: str, value: Any, default: int) -> int:
    """An argument, or else the environment variable of that name."""
    value = os.environ.get(name, "") if value is None else value
    if value == "":
        return default
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("true", "yes", "on", "false", "no", "off"):
            return int(word in ("true", "yes", "on"))
    try:
        number = int(value, 0) if isinstance(value, str) else int(value)
        if number >= 0:
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    tell(f"begin_dump: {name}={value!r} is not a number from 0; {default} is used")
    return default


def begin_dump(X_DEBUG: Optional[int] = None, X_DEDUP: Optional[bool] = None,
               X_DUMP_NUM: Optional[int] = None,
               X_DUMP_OUTPUT: Optional[bool] = None) -> None:
    """Records the operators that follow on this thread, until end_dump().

    X_DEBUG: 0x100 to record operators, 0x2 with shapes, dtypes and ranges (default: both, 0x102).
    X_DEDUP: leave out calls that repeat an operator with the same shapes, dtypes and other
    arguments (default: no). X_DUMP_NUM: of how many calls of each operator, chosen at random, the
    argument tensors are kept (default: 0). X_DUMP_OUTPUT: keep what they gave as well, for `plumb
    blame` and `acc_check -d recorded` (default: no). Environment variables of these names are used for what
    is not given.

    Begun again before it has ended, it goes on. After an end, the same dump is continued."""
    global _recorder
    try:
        settings = Settings(_number("X_DEBUG", X_DEBUG, DEFAULT_DEBUG),
                            bool(_number("X_DEDUP", X_DEDUP, 0)),
                            _number("X_DUMP_NUM", X_DUMP_NUM, 0),
                            bool(_number("X_DUMP_OUTPUT", X_DUMP_OUTPUT, 0)))
        with _one_at_a_time:
            if _recorder is None or _recorder.pid != os.getpid():
                _recorder = Recorder()
        _recorder.begin(settings)
        if _recorder.active:
            _enter()
    except Exception as error:
        tell(f"begin_dump: nothing is recorded: {error}")


def end_dump(clear_context: bool = True) -> None:
    """Ends recording; dump.json is complete. clear_context: the file is closed; the next begin_dump
    goes on with it, and X_DEDUP with what is in it. Without a begin it does nothing."""
    try:
        _leave()
        if _recorder is not None and _recorder.pid == os.getpid():
            _recorder.end(bool(clear_context))
    except Exception as error:
        tell(f"end_dump: {error}")


@atexit.register
def _close() -> None:
    try:
        if _recorder is not None and _recorder.pid == os.getpid():
            _leave()
            _recorder.close()
    except Exception as error:
        tell(f"end_dump: {error}")
