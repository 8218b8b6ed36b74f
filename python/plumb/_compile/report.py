"""What a check of a compiler found."""

import html
from typing import Dict, List, NamedTuple, Optional

from plumb._compile.judged import COARSER, Judged

MOST_LINES = 40
ROUNDED = "results on the way rounded to"


class CheckedPass(NamedTuple):
    """One pass on one graph. verdict: "unchanged" where the graph is as it was."""
    stage: str      # pre-grad pass, joint pass or post-grad pass
    graph: str      # which graph: a number, and what it is
    pass_name: str
    slot: str       # the setting or observer through which inductor runs it, where that is another name
    verdict: str
    why: str
    node: Optional[str]
    was: str        # the nodes that the pass took away there
    what: str       # the first result that is wrong
    pattern: str    # what the fault looks like
    patterns: List[str]  # of inductor's pattern matcher that the pass applied
    source: str     # the line of the script that the node is from

    @property
    def title(self) -> str:
        return f"{self.pass_name} ({self.slot})" if self.slot else self.pass_name


def first_line(stage: str, where: Optional[str], node: Optional[str], was: str, what: str) -> str:
    text = f"{stage}: {where}" if where else stage
    if node:
        text += f", first at node {node}"
    if was:
        text += f" (before: {was})"
    return text + (f"; {what}" if what else "")


class InductorReport:
    """What plumb.inductor_check() saw. Truthy when passes ran, and none that could be judged is a fault."""

    def __init__(self) -> None:
        self.checked: List[CheckedPass] = []
        self.graphs: List[str] = []
        self.problems: List[str] = []  # of the check itself
        self.notes: List[str] = []

    def __bool__(self) -> bool:
        looked = [one for one in self.checked if one.verdict != "not judged"]
        return bool(looked) and not self.faults

    @property
    def faults(self) -> List[CheckedPass]:
        return [one for one in self.checked if one.verdict == "fault"]

    @property
    def not_judged(self) -> List[CheckedPass]:
        return [one for one in self.checked if one.verdict == "not judged"]

    @property
    def words(self) -> Dict[str, int]:
        found = [one.verdict for one in self.checked]
        return {word: found.count(word) for word in sorted(set(found), key=found.index)}

    @property
    def first(self) -> Optional[CheckedPass]:
        return self.faults[0] if self.faults else None

    @property
    def coarser(self) -> Optional[CheckedPass]:
        """The first pass after which results on the way have a narrower type, else the first that rounds more."""
        found = [one for one in self.checked if one.verdict == COARSER]
        return next((one for one in found if one.why.startswith(ROUNDED)), next(iter(found), None))

    @property
    def stage(self) -> Optional[str]:
        return self.first.stage if self.first else None

    @property
    def pass_name(self) -> Optional[str]:
        return self.first.pass_name if self.first else None

    @property
    def node(self) -> Optional[str]:
        return self.first.node if self.first else None

    @property
    def pattern(self) -> str:
        return self.first.pattern if self.first else ""

    @property
    def verdict(self) -> str:
        """The worst of all."""
        if self.faults:
            return "fault"
        order = ("cheaper arithmetic", "tie", "rounding", "same", "unchanged")
        return next((word for word in order if word in self.words), "not judged")

    @property
    def why(self) -> str:
        if self.first is not None:
            return self.first.why
        one = next((one for one in self.checked if one.verdict == self.verdict), None)
        return one.why if one is not None else "no pass ran: nothing was compiled meanwhile"

    def summary(self) -> str:
        """A few lines."""
        if not self.checked:
            lines = ["NOT CHECKED: no pass of inductor ran: nothing was compiled meanwhile"]
        else:
            counts = ", ".join(f"{count} {word}" for word, count in self.words.items())
            head = "FAULT" if self.faults else "NO FAULT" if self else "NOT JUDGED"
            lines = [f"{head}: {len(self.checked)} passes over {len(self.graphs)} graphs: {counts}"]
        for one in self.faults[:MOST_LINES]:
            lines.append("fault in " + first_line(one.stage, f"{one.title} on {one.graph}", one.node,
                                                  one.was, f"{one.what}: {one.why}"))
            lines += [f"  pattern of inductor: {name}" for name in one.patterns[:4]]
            lines += [f"  from {one.source}"] * bool(one.source)
        for one in self.not_judged[:MOST_LINES]:
            lines.append(f"not judged: {one.stage} {one.title} on {one.graph}: {one.why}")
        for kind, found in (("faults", self.faults), ("passes that were not judged", self.not_judged)):
            if len(found) > MOST_LINES:
                lines.append(f"and {len(found) - MOST_LINES} more {kind}")
        lines += [f"the check itself failed: {text}" for text in self.problems]
        return "\n".join(lines + self.notes)

    def text(self) -> str:
        """The summary, and the passes that changed a graph."""
        changed = [one for one in self.checked if one.verdict != "unchanged"]
        lines = [f"{one.stage:14}  {one.verdict:18}  {one.title}  on {one.graph}" +
                 (f"  ({', '.join(one.patterns[:3])})" if one.patterns else "")
                 for one in changed[:MOST_LINES]]
        if len(changed) > MOST_LINES:
            lines.append(f"and {len(changed) - MOST_LINES} more that changed a graph")
        return "\n".join(lines + [self.summary()])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<InductorReport {self.summary().splitlines()[0]}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text())}</pre>"


def checked_pass(stage: str, graph: str, name: str, slot: str, found: Judged, patterns: List[str],
                 source: str) -> CheckedPass:
    return CheckedPass(stage, graph, name, slot, found.verdict, found.why, found.node, found.was, found.what,
                       found.pattern, patterns, source)
