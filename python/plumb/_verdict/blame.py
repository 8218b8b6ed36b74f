"""plumb.blame: which calls of a run are wrong, apart from those that pass it on (docs/BLAME.md)."""

import copy
import json
import os
from typing import Any, Dict, List, Optional, Sequence, Union

from plumb import _core


class Blame(Dict[str, Any]):
    """What `plumb blame --format json` says, as a dictionary; printed, the page for people. It is true
    when no judged call is a fault; with a baseline, when nothing is new or worse."""

    def __init__(self, fields: Dict[str, Any], text: str, page: Optional["_core.Page"] = None) -> None:
        super().__init__(fields)
        self.text = text
        self.page = page  # for plumb.report(); copies that went through a file have none

    def __getstate__(self) -> Dict[str, Any]:
        return {"text": self.text, "page": None}

    def __deepcopy__(self, memo: Dict[int, Any]) -> "Blame":
        return Blame(copy.deepcopy(dict(self), memo), self.text, self.page)

    @property
    def faults(self) -> List[Dict[str, Any]]:
        faults: List[Dict[str, Any]] = self["faults"]
        return faults

    def __bool__(self) -> bool:
        accepted = self["baseline"]
        return not (accepted["new"] + accepted["worse"] if accepted else self["faults"])

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Blame: {self['calls']} calls, {len(self['faults'])} faults>"


Path = Union[str, "os.PathLike[str]"]


def blame(target: Path, golden: Optional[Path] = None, *, arithmetic: Union[str, Sequence[str]] = "",
          repeat: Union[Path, Sequence[Path]] = (), baseline: Optional[Path] = None,
          write_baseline: Optional[Path] = None, weights: Optional[Path] = None, seed: int = 1234, threads: int = 0) -> Blame:
    """Names the calls of `target` (a dump, a capture, or a folder of them) that are wrong themselves.
    With another run of the same program as `golden`, it also says where differences grow, and judges
    what it cannot compute. What differs
    between `target` and each `repeat` of the same program is noise of its own. What `baseline`, a file
    of `write_baseline`, has is accepted. `weights`: a file of the model's parameters, for
    modules whose own were not recorded."""
    allowed = arithmetic if isinstance(arithmetic, str) else ",".join(arithmetic)
    repeats = [repeat] if isinstance(repeat, (str, os.PathLike)) else repeat

    def path(name: Optional[Path]) -> Optional[str]:
        return None if name is None else os.fspath(name)

    fields, text, page = _core.blame(os.fspath(target), path(golden), allowed or None, seed=seed,
                               threads=threads, repeat=tuple(map(os.fspath, repeats)),
                               baseline=path(baseline), write_baseline=path(write_baseline), weights=path(weights))
    return Blame(json.loads(fields), text, page)
