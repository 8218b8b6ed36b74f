"""What diagnose found."""

import math
import shutil
import weakref
from html import escape
from typing import Any, Dict, List, Optional

from plumb._compare.notebook import Report
from plumb._diagnose import extra
from plumb._verdict.blame import Blame


class Diagnosis:
    """True when nothing is wrong. Printed, and in a notebook, it is the page.

    a, b: what was run, in words; folders: where both dumps are. apart: how far the outputs are from each
    other, largest relative distance (NaN: nothing to compare). first: what is wrong first in the order of the
    run, a dictionary with `call`, `place`, `module`, `why` and `kind` ("fault"; "source" for a difference that no call makes;
    "extra" for a call that only one of them makes, `side`, and that the other goes on without;
    "parting" where no call is wrong, but the two do not do the same), or None. faults, sources, extras: all of them;
    faults_of_b: calls of b that are wrong. parting: where the two stop doing the same though no call is wrong, or None.
    blame: what plumb.blame says of a beside b; other: of b beside a; report: what plumb.compare says.
    judged: how many calls were, in each direction; where it is 0, nothing is said to be right.
    nan: a sentence for each run whose outputs hold NaN; then something is wrong, whoever it comes from.
    not_recorded: what was not looked at, with the reason."""

    def __init__(self, a: str, b: str, folders: List[str], blame: Blame, other: Blame, report: Report, apart: float,
                 nan: List[str], not_recorded: Dict[str, str], problems: List[str],
                 temporary: Optional[str]) -> None:
        self.a, self.b, self.folders = a, b, folders
        self.blame, self.other, self.report, self.apart = blame, other, report, apart
        self.nan, self.not_recorded, self.problems = nan, not_recorded, problems
        if temporary is not None:  # the dumps live as long as this
            weakref.finalize(self, shutil.rmtree, temporary, True)
        self.faults: List[Dict[str, Any]] = blame.faults
        self.faults_of_b: List[Dict[str, Any]] = other.faults
        self.sources: List[Dict[str, Any]] = blame["sources"]
        self.parting: Optional[Dict[str, Any]] = blame["parting"]
        self.extras: List[Dict[str, Any]] = extra.find(folders, report) if blame["unmatched"] else []
        self.judged: int = blame["calls"] - blame["verdicts"]["not judged"]
        self.first = self._first()

    def __bool__(self) -> bool:
        return self.judged > 0 and self.first is None and not self.faults_of_b and not self.nan

    def _first(self) -> Optional[Dict[str, Any]]:
        """Rows are in the order of the run."""
        order: Dict[str, int] = {}
        for number, row in enumerate(self.report):
            order.setdefault(extra.call_of(row["API Name"]), number)
        kinds = ("extra", self.extras), ("source", self.sources), ("fault", self.faults)
        found = [(order.get(item.get("before", item["call"]), len(self.report)), turn, kind, item)
                 for turn, (kind, items) in enumerate(kinds) for item in items]
        if not found and self.parting:
            found = [(0, False, "parting", self.parting)]
        if not found:
            return None
        _, _, kind, item = min(found, key=lambda entry: entry[:2])
        return {"place": item.get("result", ""), **item, "kind": kind,
                "module": module_of(item["call"], item["parent"])}

    def __str__(self) -> str:
        lines = [f"a: {self.a}", f"b: {self.b}"]
        if not math.isnan(self.apart):
            lines.append(f"The outputs are {100 * self.apart:.3g} % apart.")
        if self.faults_of_b and not self.faults:
            lines.append(f"b is wrong, and a is not: {self.faults_of_b[0]['call']}: {self.faults_of_b[0]['why']}")
        lines += [f"{text}." for text in self.nan]
        alone = self.blame["unmatched"]
        if self:
            lines.append("Nothing is wrong: what differs is rounding.")
            lines += [f"Not compared: {alone} tensors of one run have no counterpart in the other."] * bool(alone)
        if not self.judged:
            lines.append("Nothing could be judged.")
        if self.first is not None:
            what = f", {self.first['place']}" if self.first["kind"] in ("source", "parting") else ""
            where = f" in {self.first['module']}" if self.first["module"] else ""
            begin = "No call is wrong, but a and b do not do the same. They part" \
                if self.first["kind"] == "parting" else "First"
            lines.append(f"{begin}{where}: {self.first['call']}{what}: {self.first['why']}")
        lines += [f"Not recorded: {name} {why}" for name, why in list(self.not_recorded.items())[:5]]
        if len(self.not_recorded) > 5:
            lines.append(f"... and {len(self.not_recorded) - 5} more that were not recorded")
        lines += [f"While recording: {problem}" for problem in self.problems[:5]]
        lines += ["", str(self.blame)]
        if self.faults_of_b:
            lines += ["b beside a:", str(self.other)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def module_of(call: str, parent: Optional[str]) -> str:
    """"model.layers.0.mlp" of Module.model.layers.0.mlp.MLP.forward.0; "" where it is not known."""
    name = call if call.startswith("Module.") else parent or ""
    if not name.startswith("Module."):
        return ""
    for word in (".forward.", ".backward.", ".parameters_grad."):
        if word in name:
            name = name[:name.index(word)]
            break
    path, _, kind = name[len("Module."):].rpartition(".")
    return path or kind
