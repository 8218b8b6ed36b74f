"""What a check found: a row for each pair that was compared."""

import html
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from plumb import _core
from plumb._verdict.judge import ORDER, Opinion

# Titles that people see; the other metrics go by their names.
TITLES = {"cosine": "Cosine", "max_abs": "MaxAbsErr", "max_rel": "MaxRelativeErr",
          "not_close": "NotClose"}
MOST_LINES = 60
METRICS = tuple(TITLES)


class NumericRow(NamedTuple):
    """One pair. kind: parameter, buffer, node, output, input (as the run left it), gradient (of the
    first output's sum), "gradient of all outputs" or "parameter after step"."""
    iteration: int
    kind: str
    name: str
    dtype: str  # "float32", or "float32 / float16" where the sides differ
    shape: str
    metrics: Dict[str, Any]  # empty where there was nothing to measure
    equal: bool
    reason: str  # why not; or what is odd all the same
    compared: bool = True  # false: nobody can tell, which is not equal either
    opinion: Optional[Opinion] = None  # what right arithmetic shows, where that was asked for

    @property
    def verdict(self) -> str:
        return "NOT COMPARED" if not self.compared else "PASS" if self.equal else "FAIL"

    @property
    def severity(self) -> int:
        return 0 if self.equal else 2 if self.compared else 1


class NumericReport:
    """Truthy when before and after are equal, and the check could be made. With verdict="expected":
    when no result is a fault, and one could be judged; with "both": when all of this holds."""

    def __init__(self, num_iterations: int, precision: float, deciding: str = "rules") -> None:
        self.deciding = deciding
        self.num_iterations = num_iterations
        self.precision = precision
        self.rows: List[NumericRow] = []
        self.notes: List[str] = []  # what was odd but decides nothing
        self.error: Optional[str] = None  # why the check could not be made
        self.failed_side: Optional[str] = None  # "before" or "after": which could not be run
        self.first_node: Optional[str] = None  # the first node of the graphs that differs
        self.runs = 1  # of the check; more when passes were bisected
        self.passes: List[str] = []  # the names of the passes, where there were any
        self.bad_pass: Optional[int] = None  # the first that broke the numbers, from 0
        self.bad_passes: List[int] = []  # all that do, also such as cancel each other
        self.traced = True  # false: tracing the module, before any pass, changed the numbers
        self.raised: Optional[int] = None  # the pass that raised, from 0
        self.checked: List[Tuple[int, bool]] = []  # (how many passes, whether still equal)

    def __bool__(self) -> bool:
        return self.error is None and self.raised is None and not any(self._failed()) and \
            (self.deciding == "rules" or self.conclusive)

    def objects(self, row: NumericRow) -> bool:
        """Whether a row is bad by what decides."""
        fault = row.opinion is not None and row.opinion.verdict == "fault"
        return fault or (self.deciding != "expected" and not row.equal)

    def _failed(self) -> Iterator[NumericRow]:
        return (row for row in self.rows if self.objects(row))

    @property
    def words(self) -> Dict[str, int]:
        """How many rows have which verdict, where opinions were asked for."""
        found = [row.opinion.verdict for row in self.rows if row.opinion is not None]
        return {word: found.count(word) for word in ORDER if word in found}

    @property
    def judged(self) -> int:
        return sum(count for word, count in self.words.items() if word != "not judged")

    @property
    def conclusive(self) -> bool:
        """Whether an output was judged, where there are any: that inputs are as they were says little."""
        outputs = [row for row in self.rows if row.kind == "output"]
        return any(row.opinion is not None and row.opinion.verdict != "not judged" for row in outputs or self.rows)

    @property
    def faults(self) -> List[NumericRow]:
        return [row for row in self.rows
                if row.opinion is not None and row.opinion.verdict == "fault"]

    @property
    def equal(self) -> bool:
        return bool(self)

    @property
    def failures(self) -> List[NumericRow]:
        return list(self._failed())

    @property
    def bad_pass_name(self) -> Optional[str]:
        return None if self.bad_pass is None else self.passes[self.bad_pass]

    # -- As a table --------------------------------------------------------------------------------

    @property
    def table(self) -> "_core.Table":
        """All rows with every metric."""
        names: List[str] = []
        for row in self.rows:
            if len(row.metrics) > len(names):
                names = list(row.metrics)
        return self._table(self.rows, names)

    def _severity(self, row: NumericRow) -> int:
        if row.opinion is None:
            return 0 if self.deciding == "expected" else row.severity
        cheaper = row.opinion.verdict == "cheaper arithmetic" and not row.opinion.allowed
        second = 2 if row.opinion.verdict == "fault" else 1 if cheaper else 0
        return second if self.deciding == "expected" else max(second, row.severity)

    def _opinion(self, row: NumericRow) -> List[str]:
        """The cells of the second opinion."""
        if self.deciding == "rules":
            return []
        if row.opinion is None:
            return ["not judged", "only the first iteration is judged"]
        return [row.opinion.verdict, row.opinion.why]

    def _table(self, rows: List[NumericRow], metrics: List[str]) -> "_core.Table":
        columns = ["Iteration", "Kind", "Name", "DType", "Shape"]
        columns += [TITLES.get(name, name) for name in metrics] + ["Result", "Reason"]
        columns += [] if self.deciding == "rules" else ["Verdict", "Why"]
        table = _core.Table(columns)
        for row in rows:
            values = [row.metrics.get(name) for name in metrics]
            table.add([row.iteration, row.kind, row.name, row.dtype, row.shape, *values,
                       row.verdict, row.reason, *self._opinion(row)], self._severity(row))
        return table

    def save(self, path: str) -> None:
        """All rows with every metric: .csv, .json, .md, .xlsx or .txt."""
        self.table.save(str(path))

    def _shown(self) -> List[NumericRow]:
        """The first iteration with a difference tells most; of equal ones the last."""
        if not self.rows:
            return []
        first = next(self._failed(), None)
        last = 0 if self.deciding != "rules" else self.rows[-1].iteration
        iteration = first.iteration if first else last
        rows = [row for row in self.rows if row.iteration == iteration]
        if len(rows) > MOST_LINES:
            rows.sort(key=lambda row: not self.objects(row))  # stable: what failed comes first
        return rows[:MOST_LINES]

    def _verdict(self, first: NumericRow) -> str:
        failed = sum(row.compared for row in self.rows if not row.equal)
        unknown = sum(not row.compared for row in self.rows)
        word = f"DIFFERENT: {failed} of {len(self.rows)} comparisons failed" if failed else \
            f"NOT COMPARED: {unknown} of {len(self.rows)} comparisons could not be made"
        if failed and unknown:
            word += f", {unknown} could not be made"
        return (f"{word}; first: {first.kind} {first.name} in iteration {first.iteration}: "
                f"{first.reason}")

    def _opinions(self) -> List[str]:
        words = self.words
        counts = ", ".join(f"{count} {word}" for word, count in words.items()
                           if word != "not judged")
        head = "FAULT" if "fault" in words else "NO FAULT" if self.conclusive else "NOT JUDGED"
        text = f"{head}: {self.judged} result{'s' * (self.judged != 1)} judged"
        text += f": {counts}" if counts else ""
        if "not judged" in words:
            text += f"; {words['not judged']} not judged"
        later = sum(row.opinion is None for row in self.rows)
        if later:
            text += f"; {later} of later iterations not judged"
        lines = [text]
        for word, lead in (("fault", "first fault"), ("not judged", "first not judged"),
                           ("cheaper arithmetic", "first with cheaper arithmetic")):
            for row in self.rows:
                if row.opinion is not None and row.opinion.verdict == word:
                    lines.append(f"{lead}: {row.kind} {row.name}: {row.opinion.why}")
                    break
        return lines

    def summary(self) -> str:
        """A few lines without the table."""
        lines = []
        failed = [row for row in self.rows if not row.equal]
        first = next((row for row in failed if row.compared), failed[0] if failed else None)
        if self.error is not None:
            lines.append(f"NOT CHECKED: {self.error}")
        elif self.deciding == "expected":
            pass
        elif first is not None:
            lines.append(self._verdict(first))
        elif self.raised is None:
            lines.append(f"EQUAL: {len(self.rows)} comparisons in {self.num_iterations} "
                         f"iteration{'s' * (self.num_iterations != 1)}, all within "
                         f"{self.precision:g}")
        if self.deciding != "rules" and self.error is None:
            lines += self._opinions()
        if not self.traced:
            lines.append("tracing itself, before any pass, changed the numbers")
        if self.bad_pass is not None:
            lines.append(f"first pass that broke the numbers: {self.bad_pass_name} (number "
                         f"{self.bad_pass + 1} of {len(self.passes)}; "
                         f"{self.runs} run{'s' * (self.runs != 1)} of the check)")
            lines += [f"another pass that broke the numbers: {self.passes[k]} (number {k + 1})"
                      for k in self.bad_passes if k != self.bad_pass]
        elif self.passes and self.error is None:
            good = len(self.passes) if self.raised is None else self.raised
            lines.append(f"{good} of {len(self.passes)} passes keep the numbers")
        if self.first_node is not None:
            what = "is a fault" if self.deciding == "expected" else "differs"
            lines.append(f"first node that {what}: {self.first_node}")
        return "\n".join(lines + self.notes)

    def text(self, every_iteration: bool = False, **look: Any) -> str:
        """The table and the lines below it; look goes to Table.text (width, wide, colour)."""
        rows = self.rows if every_iteration else self._shown()
        if not rows:
            return self.summary()
        box = self._table(rows, list(METRICS)).text(**look)
        return box.rstrip("\n") + "\n" + self.summary()

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<NumericReport {self.summary().splitlines()[0]}>"

    def _repr_html_(self) -> str:
        head = ["Iteration", "Kind", "Name", "DType", "Shape", *TITLES.values(), "Result", "Reason"]
        head += [] if self.deciding == "rules" else ["Verdict", "Why"]
        cells = "".join(f"<th>{html.escape(title)}</th>" for title in head)
        lines = [f"<table><thead><tr>{cells}</tr></thead><tbody>"]
        for row in self._shown():
            values = [row.metrics.get(name) for name in METRICS]
            shown = [row.iteration, row.kind, row.name, row.dtype, row.shape,
                     *("" if v is None else f"{v:.7g}" for v in values), row.verdict, row.reason,
                     *self._opinion(row)]
            style = "" if not self.objects(row) else ' style="background:#fdd"'
            lines.append(f"<tr{style}>" + "".join(f"<td>{html.escape(str(cell))}</td>"
                                                  for cell in shown) + "</tr>")
        lines.append(f"</tbody></table><pre>{html.escape(self.summary())}</pre>")
        return "\n".join(lines)
