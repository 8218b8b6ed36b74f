"""Task "sketch": what is kept of each tensor in place of its file, and comparing it with an earlier run's.

Sketches of a step and rank are one file beside its dump.json, of the form that `plumb condense` writes, under the names
that the files of the tensors would have.
"""

import os
from typing import Dict, Optional, Tuple

from plumb import _core
from plumb._capture.files import GrowingFile

FILE = "sketches.condensed.json"
PARTED = "parted.txt"
END = b"]}\n"
SHOWN = 3


class SketchFile(GrowingFile):
    """The sketches of one step and rank."""

    def __init__(self, folder: str) -> None:
        super().__init__(os.path.join(folder, FILE), _core.sketches_begin(), END)

    def add(self, name: str, sketch: _core.Sketch, requires_grad: bool) -> None:
        self.write(sketch.text(name, requires_grad, self.at == self.body))


class Against:
    """An earlier run, to which each tensor is compared as it comes. `parted.txt` names what parted and what only one of
    the two has."""

    def __init__(self, path: str, limit: Optional[float], most: int) -> None:
        """most: files that are dumped of a step and rank, those that part first."""
        self.path, self.limit, self.most = path, -1.0 if limit is None else limit, most
        self.files: Dict[Tuple[str, str, Tuple[int, ...]], str] = {}  # what is dumped of this step, by its bytes
        self.counts: Dict[str, int] = {}
        self.gone: Dict[str, str] = {}  # folders of the earlier run that cannot be compared with, and why
        self.bench: Optional[_core.Bench] = None
        self.first = ""                 # that parted

    def open(self, place: str, folder: str) -> None:
        """place: the step and rank below a dump_path; folder: that of this run."""
        there = self.folder_of(place)
        self.files.clear()
        self.list = os.path.join(folder, PARTED)
        if os.path.exists(self.list):
            os.remove(self.list)
        try:
            self.bench = _core.Bench(there)
        except _core.Error as error:
            self.bench = None
            self.gone[place] = str(error)

    def folder_of(self, place: str) -> str:
        """That of the earlier run. Where no rank is known, folders are named for processes, which have other numbers."""
        exact = os.path.join(self.path, place)
        step = os.path.dirname(exact)
        if os.path.isdir(exact) or not os.path.basename(exact).startswith("proc") or not os.path.isdir(step):
            return exact
        found = [name for name in os.listdir(step) if os.path.exists(os.path.join(step, name, "dump.json"))]
        return os.path.join(step, found[0]) if len(found) == 1 else exact

    def parts_at(self, name: str, seen: _core.Tensor, sketch: _core.Sketch, written: bool) -> bool:
        """Whether the two runs part at this tensor and it is to be dumped. written: it is not what the memory held."""
        if self.bench is None:
            outcome, why = "alone", "the earlier run has no such step and rank"
        else:
            try:
                outcome, why = self.bench.compare(name, sketch, self.limit)
            except _core.Error as error:  # a file of the earlier run that cannot be read
                outcome, why = "unknown", str(error)
        if not written:
            self.count("unwritten")
            return False
        self.count(outcome)
        if outcome in ("equal", "near"):
            return False
        dumped, more = self.takes(name, seen, sketch) if outcome == "parted" else (False, "")
        if outcome != "alone":
            self.first = self.first or name
        self.note(name, why + more)
        return dumped

    def takes(self, name: str, seen: _core.Tensor, sketch: _core.Sketch) -> Tuple[bool, str]:
        """Whether a tensor that parted is dumped, and what to say if not. The output of one call is the input of the
        next: the same bytes are dumped once."""
        key = sketch.hash, seen.dtype, seen.shape
        known = self.files.get(key)
        if known is not None:
            self.count("same")
            return False, f"; the same bytes as {known}"
        if len(self.files) >= self.most:
            self.count("left")
            return False, "; not dumped"
        self.files[key] = name
        self.count("dumped")
        return True, ""

    def count(self, outcome: str) -> None:
        self.counts[outcome] = self.counts.get(outcome, 0) + 1

    def note(self, name: str, why: str) -> None:
        with open(self.list, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{name}: {why}\n")

    def close(self) -> None:
        """The step is over: what the earlier run has and this one has not."""
        if self.bench is None:
            return
        for name in self.bench.unseen():
            self.count("unseen")
            self.note(name, "only in the earlier run")
        self.bench = None

    def told(self) -> str:
        """For the last line of a capture."""
        counts = self.counts
        compared = sum(counts.get(word, 0) for word in ("equal", "near", "parted", "unknown"))
        text = (f"{compared} tensor{'' if compared == 1 else 's'} compared with {self.path}: {counts.get('equal', 0)} equal, "
                f"{counts.get('near', 0)} near, {counts.get('parted', 0)} parted")
        if "parted" in counts:
            parts = [f"{counts[word]} {what}" for word, what in
                     (("dumped", "dumped"), ("same", "the same bytes as these"), ("left", "beyond bench_dump, not dumped"))
                     if word in counts]
            text += f" ({', '.join(parts)})"
        if "unknown" in counts:
            text += f", {counts['unknown']} not comparable"
        if "unwritten" in counts:
            text += f", {counts['unwritten']} uninitialised and left out"
        if self.first:
            text += f"; first: {self.first}"
        lonely = [f"{counts[word]} {what}" for word, what in
                  (("alone", "only in this run"), ("unseen", "only in the earlier one")) if word in counts]
        if lonely:
            text += f"; {', '.join(lonely)}"
        if self.first or lonely:
            text += f" (see {PARTED})"
        if self.gone:
            some = list(self.gone)[:SHOWN]
            more = len(self.gone) - len(some)
            text += f"; nothing to compare with in {', '.join(some)}{f' and {more} more' if more else ''}: " \
                    f"{next(iter(self.gone.values()))}"
        return text
