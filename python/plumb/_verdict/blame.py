"""plumb.blame: which calls of a run are wrong, apart from those that pass it on (docs/BLAME.md)."""

import json
import os
from typing import Any, Dict, List, Optional, Sequence, Union

from plumb import _core


class Blame(Dict[str, Any]):
    """What `plumb blame --format json` says, as a dictionary; printed, the page for people. It is true
    when no judged call is a fault."""

    def __init__(self, fields: Dict[str, Any], text: str) -> None:
        super().__init__(fields)
        self.text = text

    @property
    def faults(self) -> List[Dict[str, Any]]:
        faults: List[Dict[str, Any]] = self["faults"]
        return faults

    def __bool__(self) -> bool:
        return not self["faults"]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Blame: {self['calls']} calls, {len(self['faults'])} faults>"


def blame(target: "Union[str, os.PathLike[str]]",
          golden: "Optional[Union[str, os.PathLike[str]]]" = None, *,
          arithmetic: Union[str, Sequence[str]] = "", seed: int = 1234, threads: int = 0,
          weights: "Optional[Union[str, os.PathLike[str]]]" = None) -> Blame:
    """Names the calls of `target` (a dump, a capture, or a folder of them) that are wrong themselves.
    With another run of the same program as `golden`, it also says where differences grow, and judges
    what it cannot compute. weights: a file of the model's parameters, for modules whose own were not
    recorded."""
    allowed = arithmetic if isinstance(arithmetic, str) else ",".join(arithmetic)
    fields, text = _core.blame(os.fspath(target), None if golden is None else os.fspath(golden),
                               allowed or None, seed=seed, threads=threads,
                               weights=None if weights is None else os.fspath(weights))
    return Blame(json.loads(fields), text)
