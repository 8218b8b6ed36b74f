"""The online precision check: operators of a running model against a reference, call by call.

    plumb.enable_precision_check(rtol=1e-4, atol=1e-5)
    with plumb.precision_check():
        model(x)
    plumb.disable_precision_check()

Only failures are logged; the account at the end goes to stderr. Nothing that goes wrong in here
reaches the model, and no result is changed by a bit.
"""

import atexit
import os
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Union

from plumb import _core
from plumb._guard.check import Checker
from plumb._guard.mode import Watcher

_current: Optional[Checker] = None


def current() -> Optional[Checker]:
    """The check that is enabled, or None."""
    return _current


def _default_log() -> Path:
    try:
        return Path.home() / ".plumb" / "precision.log"
    except RuntimeError:  # a user whom nobody knows, as in containers
        return Path(".plumb/precision.log")


def enable_precision_check(rtol: float = 1e-4, atol: float = 1e-5, max_checks: int = 10,
                           log_once: bool = True, path: Union[str, "os.PathLike[str]", None] = None,
                           log_format: str = "text", reference: str = "native",
                           save_failures: Union[bool, str, "os.PathLike[str]"] = True,
                           max_elements: int = 1 << 20, verdict: str = "rules",
                           arithmetic: str = "") -> None:
    """Sets the check up for precision_check() and for kernels behind PrecisionCheckRegister.

    path: the log, ~/.plumb/precision.log unless given; log_format: "text" or "jsonl"; reference:
    "native", or "float64" for plumb's own operators wherever it has them; save_failures: a folder
    for the calls that fail, True for one beside the log, False for none; verdict: what fails a call,
    "rules" for the tolerances, "expected" for a fault by plumb's second opinion (docs/VERDICTS.md), where
    plumb has the operator, "both" for either; arithmetic: cheaper arithmetic that is allowed."""
    global _current
    if reference not in ("native", "float64"):
        raise ValueError(f'reference is "native" or "float64", not {reference!r}')
    if max_checks < 0 or max_elements < 0:
        raise ValueError("max_checks and max_elements must not be negative")
    settings: Dict[str, Any] = dict(rtol=rtol, atol=atol, max_checks=max_checks, log_once=log_once,
                                    log_format=log_format, max_elements=max_elements, verdict=verdict,
                                    arithmetic=arithmetic or None)
    log = _default_log() if path is None else Path(path)
    if save_failures is True:
        settings["save"] = None if str(log) == "-" else str(log.with_suffix(".failures"))
    else:
        settings["save"] = None if save_failures is False else os.fspath(save_failures)
    try:
        guard = _core.Guard(path=str(log), **settings)
    except _core.Error as error:
        if error.code != "IO":
            raise
        warnings.warn(f"plumb: {error}; failures of the precision check go to stderr", stacklevel=2)
        if save_failures is True:
            settings["save"] = None
        guard = _core.Guard(path="-", **settings)
    disable_precision_check()
    _current = Checker(guard, reference == "float64", arithmetic)


def disable_precision_check() -> Optional[_core.Table]:
    """Ends the check and tells on stderr what it saw, forked processes included. Returns the table:
    a row for each operator that was checked, or None when no check was enabled. In a forked process
    it tells nothing: what was seen there is in the account of the process that enabled it."""
    global _current
    checker, _current = _current, None
    if checker is None:
        return None
    checker.close()
    table = checker.guard.table()
    if checker.forked:
        return table
    try:
        if len(table):
            width = shutil.get_terminal_size((0, 0)).columns if sys.stderr.isatty() else 0
            sys.stderr.write(table.text(width))
        sys.stderr.write("plumb: " + checker.guard.closing())
    except (OSError, ValueError):
        pass  # stderr is closed
    return table


def _after_fork() -> None:
    if _current is not None:
        _current.after_fork()


atexit.register(disable_precision_check)
os.register_at_fork(after_in_child=_after_fork)


class precision_check:
    """Checks the operators that run in the `with` block on this thread, backward passes included.

    include, exclude: operators by base name ("mm"), overload ("add.Tensor") or full name
    ("aten::add.Tensor"). Does nothing when no check is enabled. Of blocks inside each other the
    innermost decides."""

    def __init__(self, include: Optional[Sequence[str]] = None,
                 exclude: Optional[Sequence[str]] = None) -> None:
        self.include = list(include) if include is not None else None
        self.exclude = list(exclude or ())
        for given, names in ((include, self.include or ()), (exclude, self.exclude)):
            if isinstance(given, str) or not all(isinstance(name, str) for name in names):
                raise TypeError("include and exclude are lists of names")
        self.watchers: List[Optional[Watcher]] = []

    def __enter__(self) -> "precision_check":
        checker = _current
        watcher = Watcher(checker, self.include, self.exclude) if checker is not None else None
        self.watchers.append(watcher)
        if watcher is not None:
            watcher.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        watcher = self.watchers.pop()
        if watcher is None:
            return
        watcher.__exit__(*exception)
        if self.include and exception[:1] == (None,) and not watcher.included:
            warnings.warn(f"plumb: no operator that ran is called {', '.join(self.include)}: "
                          "nothing was checked here", stacklevel=2)
