"""Seeing every operator of a thread: a dispatch mode that goes when nothing is left to see."""

import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from plumb import _core, regions
from plumb._guard.check import CHECK, QUIET, Checker, full_name, is_busy, see, walk
from plumb._guard.region import PREFIX, Call
from plumb._passcheck.higher import know_higher_order


_local = threading.local()  # watchers: those at work on this thread, the innermost last
_is_wrapper = getattr(_python_dispatch, "is_traceable_wrapper_subclass", lambda value: False)
INSIDE = "what is inside a higher-order operator is not seen"


def is_operator(func: Any) -> bool:
    """And none that takes functions (flex_attention, cond), which have no schema."""
    return hasattr(func, "_schema")


class Watcher(TorchDispatchMode):
    """Stands on the stack of dispatch modes without the global flags that PyTorch 2 keeps of modes:
    they would keep torch.compile from compiling, on other threads and, once blocks have ended in
    another order than they began, for good."""

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __init__(self, checker: Checker, include: Optional[List[str]], exclude: List[str]) -> None:
        super().__init__()
        self.checker = checker
        self.include = include
        self.exclude = exclude
        self.included = False  # something that is to be included has been seen
        self.entries: Dict[Any, Any] = {}
        self.leaving = False  # waiting for a moment to do so
        self.covered = False  # another one inside it sees the calls
        # Operators that are not to be watched here are counted all the same, to see a pass end.
        self.other = checker.guard.operator("plumb::other", "not included")

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (),
                           kwargs: Optional[Dict[str, Any]] = None) -> Any:
        if self.covered or self.checker.closed:
            if self.checker.closed and not self.leaving:
                self.leave()
            return func(*args, **kwargs) if kwargs else func(*args)
        entry = self.entries.get(func)
        if entry is None:
            entry = self.learn(func)
        if self.wrapped(types, args, kwargs):
            return NotImplemented  # their own operators are seen, on plain tensors
        step = entry.call()
        if step == QUIET and not self.leaving:
            self.leave()
        before = see(func if entry is not self.other else None)
        try:
            if step == CHECK and not is_busy():
                return self.checker.run(entry, func, args, kwargs or {})
            return func(*args, **kwargs) if kwargs else func(*args)
        finally:
            see(before)

    @staticmethod
    def wrapped(types: Any, args: Tuple[Any, ...], kwargs: Optional[Dict[str, Any]]) -> bool:
        """Whether there are tensors among the arguments that are made of others: DTensor, nested and
        quantised ones."""
        return bool(types) and any(_is_wrapper(tensor) for tensor in walk((args, kwargs or {})))

    def learn(self, func: Any) -> Any:
        entry: Any = self.other
        know_higher_order(Watcher)  # more of them may have been loaded
        try:
            if not is_operator(func):
                entry = self.checker.guard.operator(f"higher_order::{func}", INSIDE)
            elif self.is_wanted(full_name(func)):
                entry = self.checker.entry(func)
        except Exception as error:  # an operator without a schema, say
            self.other.trouble(f"{func}: {type(error).__name__}: {error}".split("\n", 1)[0])
        self.entries[func] = entry
        return entry

    def is_wanted(self, name: str) -> bool:
        if any(_core.guard_named(name, written) for written in self.exclude):
            return False
        if self.include is None:
            return True
        wanted = any(_core.guard_named(name, written) for written in self.include)
        self.included = self.included or wanted
        return wanted

    # -- Going early -------------------------------------------------------------------------------

    # While a mode handles a call it is off the stack, and is put back afterwards whatever it does.
    # So it waits until no mode is at work on this thread: Python reports that through the profile
    # hook, which is taken only if it is free, and only for that while.

    def leave(self) -> None:
        if sys.getprofile() is None:
            self.leaving = True
            sys.setprofile(self.on_event)

    def on_event(self, frame: Any, event: str, arg: Any) -> None:
        if not self.is_on():
            return
        while frame is not None:
            code = frame.f_code
            if (code.co_name == "__torch_dispatch__"
                    or code.co_filename == _python_dispatch.__file__
                    or is_around_handler(frame)):
                return
            frame = frame.f_back
        sys.setprofile(None)
        self.take_off()

    # -- The stack ---------------------------------------------------------------------------------

    def is_on(self) -> bool:
        return any(mode is self for mode in _python_dispatch._get_current_dispatch_mode_stack())

    def take_off(self) -> bool:
        """From wherever it stands; False when it is not there."""
        # The list keeps them alive: PyTorch 2.6 frees a mode that nobody else holds as it is popped.
        stack = list(_python_dispatch._get_current_dispatch_mode_stack())
        place = next((k for k, mode in enumerate(stack) if mode is self), None)
        if place is None:
            return False
        for _ in stack[place:]:
            _python_dispatch._pop_mode()
        for mode in stack[place + 1:]:
            _python_dispatch._push_mode(mode)
        return True

    def put_back(self, below: int) -> None:
        """Onto the stack, above so many modes."""
        above = list(_python_dispatch._get_current_dispatch_mode_stack())[below:]
        for _ in above:
            _python_dispatch._pop_mode()
        for mode in [self, *above]:
            _python_dispatch._push_mode(mode)

    def __enter__(self) -> "Watcher":
        know_higher_order(Watcher)
        self._stand([*getattr(_local, "watchers", ()), self])
        regions.listen(LISTENER)
        _python_dispatch._push_mode(self)
        return self

    @staticmethod
    def _stand(watchers: List["Watcher"]) -> None:
        _local.watchers = watchers
        for watcher in watchers:
            watcher.covered = watcher is not watchers[-1]
            watcher.included = watcher.included or watcher.covered  # it does not see everything

    def __exit__(self, *exception: Any) -> None:
        self._stand([watcher for watcher in _local.watchers if watcher is not self])
        regions.unlisten(LISTENER)
        if sys.getprofile() == self.on_event:
            sys.setprofile(None)
        self.take_off()  # blocks of generators need not end in the order that they began in


def is_around_handler(frame: Any) -> bool:
    """PyTorch 2 calls the handler of a mode through a function of its compiler."""
    if not frame.f_code.co_filename.endswith(("torch/_dynamo/eval_frame.py", "torch/_compile.py")):
        return False
    return getattr(frame.f_locals.get("fn"), "__name__", "") == "__torch_dispatch__"


# -- Compiled regions ------------------------------------------------------------------------------


class _Seen(regions.Seen):
    """Nothing inside a region is watched: the compiler does not compile under a mode, or compiles the
    mode's own doings. The watchers that were on the stack come back to where they stood. call: the
    check of the region as a whole."""

    def __init__(self, watchers: List[Watcher], call: Optional[Call]) -> None:
        self.call = call
        self.places: List[Tuple[Watcher, int]] = []
        for watcher in watchers:
            stack = _python_dispatch._get_current_dispatch_mode_stack()
            place = next((k for k, mode in enumerate(stack) if mode is watcher), None)
            if place is not None:
                watcher.take_off()
                self.places.append((watcher, place))

    def left(self) -> None:
        for watcher, place in reversed(self.places):
            if watcher in _local.watchers:
                watcher.put_back(place)

    def returned(self, result: Any) -> None:
        if self.call is not None:
            self.call.returned(result)


class _Listener(regions.Listener):
    def region(self, function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any],
               told: bool) -> Optional[regions.Seen]:
        watchers = getattr(_local, "watchers", [])
        if not watchers or is_busy():
            return None
        checker, call = watchers[-1].checker, None
        name = PREFIX + regions.name_of(function)
        if not checker.closed and watchers[-1].is_wanted(name):
            if told:
                call = Call(checker, function, args, kwargs)
            else:
                checker.guard.function(name).give_up("what it returned is told from Python 3.12 on")
        return _Seen(watchers, call)


LISTENER = _Listener()
