"""plumb: where two tensor computations stop agreeing, how badly, and whose fault it is.

Importing this costs next to nothing and needs neither torch nor numpy: every name is fetched from
its module when it is first used.
"""

import os
import sys
from importlib import import_module
from typing import Any, List

__version__ = "0.1.0"

# Public name -> the module of the package that has it.
_WHERE = {
    "Error": "_core",
    "PrecisionDebugger": "_capture.debugger",
    "export_graph": "_passcheck.export",
    "compile_check": "_compile.check",
    "inductor_check": "_compile.inductor",
    "numeric_check": "_passcheck.run",
    "numeric_check_config": "_passcheck.enabled",
    "numeric_check_if_enabled": "_passcheck.enabled",
    "enable_precision_check": "guard",
    "disable_precision_check": "guard",
    "precision_check": "guard",
    "PrecisionCheckRegister": "_guard.register",
    "checked": "_guard.register",
    "begin_dump": "_capture.aten",
    "end_dump": "_capture.aten",
    "assert_close": "_compare.notebook",
    "compare": "_compare.notebook",
    "summary": "_compare.notebook",
    "flex_arguments": "_verdict.flex",
    "judge": "_verdict.judge",
    "blame": "_verdict.blame",
    "diagnose": "_diagnose.diagnose",
    "report": "_report.report",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'plumb' has no attribute {name!r}")
    try:
        value = getattr(import_module("plumb." + _WHERE[name]), name)
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        raise ModuleNotFoundError(
            f"plumb.{name} needs PyTorch, which {sys.executable} does not have (on Debian: "
            "apt-get install python3-torch, for /usr/bin/python3)", name="torch") from None
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted([*globals(), *_WHERE])


if os.environ.get("PLUMB_INDUCTOR_CHECK", "0") not in ("", "0"):
    import_module("plumb._compile.inductor").from_environment()
