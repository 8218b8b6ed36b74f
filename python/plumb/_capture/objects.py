"""Arguments and results that are no tensors and no known containers.

Objects with attributes are not taken apart, as they may lead anywhere; that they hold tensors is listed, and so are
iterators, which only the script may run.
"""

from collections.abc import Iterator
from typing import Any, Sequence, Set

from plumb._capture.given import MAX_DEPTH, NOT_OBJECTS, hides_tensors
from plumb._capture.sink import Call
from plumb.tensors import children


class Objects:
    """Those that a recorder has met."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.listed: Set[type] = set()  # of which there is nothing more to say

    def note(self, call: Call, values: Sequence[Any], depth: int = MAX_DEPTH) -> None:
        for value in values:
            try:
                self._note(call, value, depth)
            except Exception:  # of the script's own
                self.recorder.problem(f"{call.title('forward')}: a {type(value).__name__}")

    def _note(self, call: Call, value: Any, depth: int) -> None:
        kind = type(value)
        if isinstance(value, NOT_OBJECTS) or kind in self.listed:
            return
        items = [item for _, item in children(value)]
        if items:
            if depth:
                self.note(call, items, depth - 1)
        elif isinstance(value, Iterator):
            self._list(call, kind, "is an iterator; what it gives is not recorded")
        elif hides_tensors(value):
            self._list(call, kind, "holds tensors and is no known container")

    def _list(self, call: Call, kind: type, why: str) -> None:
        self.listed.add(kind)
        self.recorder.modules.idle[f"a {kind.__name__}"] = f"(first in {call.title('forward')}) {why}"
