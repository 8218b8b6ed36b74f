"""Seeing every operator of a thread: a dispatch mode that goes when nothing is left to see."""

import sys
import threading
from typing import Any, Dict, List, Optional, Tuple

from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from plumb import _core
from plumb._guard.check import CHECK, QUIET, Checker, full_name, is_busy, see


_local = threading.local()  # watchers: those at work on this thread, the innermost last


class Watcher(TorchDispatchMode):
    def __init__(self, checker: Checker, include: Optional[List[str]], exclude: List[str]) -> None:
        super().__init__()
        self.checker = checker
        self.include = include
        self.exclude = exclude
        self.included = False  # something that is to be included has been seen
        self.entries: Dict[Any, Any] = {}
        self.gone = False     # taken off the stack before the end of the `with` block
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

    def learn(self, func: Any) -> Any:
        entry: Any = self.other
        try:
            if self.is_wanted(full_name(func)):
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
        while frame is not None:
            code = frame.f_code
            if (code.co_name == "__torch_dispatch__"
                    or code.co_filename == _python_dispatch.__file__):
                return
            frame = frame.f_back
        sys.setprofile(None)
        self.remove()

    def remove(self) -> None:
        above: List[Any] = []
        stack = _python_dispatch._get_current_dispatch_mode_stack()
        if not any(mode is self for mode in stack):
            return
        while True:
            mode = _python_dispatch._pop_mode()
            if mode is self:
                break
            above.append(mode)
        for mode in reversed(above):
            _python_dispatch._push_mode(mode)
        self.gone = True

    def __enter__(self) -> "Watcher":
        self._stand([*getattr(_local, "watchers", ()), self])
        return super().__enter__()

    @staticmethod
    def _stand(watchers: List["Watcher"]) -> None:
        _local.watchers = watchers
        for watcher in watchers:
            watcher.covered = watcher is not watchers[-1]
            watcher.included = watcher.included or watcher.covered  # it does not see everything

    def __exit__(self, *exception: Any) -> None:
        self._stand([watcher for watcher in _local.watchers if watcher is not self])
        if sys.getprofile() == self.on_event:
            sys.setprofile(None)
        if self.gone:
            return
        stack = _python_dispatch._get_current_dispatch_mode_stack()
        if stack and stack[-1] is self:
            super().__exit__(*exception)
        else:  # blocks of generators need not end in the order that they began in
            self.remove()
