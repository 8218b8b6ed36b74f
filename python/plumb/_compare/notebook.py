"""Comparing by hand: plumb.compare, plumb.summary and plumb.assert_close.

All take torch tensors, numpy arrays, Python numbers and lists of them, dicts and lists of any of
these, and paths of what plumb reads. Results print themselves, in a terminal and in a notebook.
"""

import os
import tempfile
from html import escape
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from plumb._compare import leaves, pairs, ranks
from plumb._core import Table, Writer, compare_runs, summarise_run
from plumb._compare.leaves import Leaf
from plumb._verdict.judge import judge

Path = Union[str, "os.PathLike[str]"]

_COUNTS = ("compared", "passed", "suspicious", "failed", "unjudged", "unmatched", "unreadable")
_COLOURS = {1: "#fff3cd", 2: "#f8d7da"}


class Listing:
    """A table that shows itself. Iterating gives a dict for each row."""

    def __init__(self, table: Table, closing: str = "") -> None:
        self.table = table
        self.closing = closing.strip()

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        columns = self.table.columns
        return (dict(zip(columns, row)) for row in self.table)

    def __getitem__(self, row: int) -> Dict[str, Any]:
        return dict(zip(self.table.columns, self.table[row]))

    def __bool__(self) -> bool:
        return True

    def save(self, path: Path) -> None:
        """.csv .json .md .xlsx or .txt by its ending."""
        self.table.save(path)

    def __str__(self) -> str:
        return self.table.text(wide=True) + self.closing

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(title)}</th>" for title in self.table.columns)
        rows = []
        for number, row in enumerate(self.table):
            colour = _COLOURS.get(self.table.severity(number))
            style = f' style="background:{colour};color:#000"' if colour else ""
            cells = "".join(f"<td>{escape(_shown(cell))}</td>" for cell in row)
            rows.append(f"<tr{style}>{cells}</tr>")
        closing = f"<p>{escape(self.closing)}</p>" if self.closing else ""
        return (f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
                + closing)


class Report(Listing):
    """The result of a comparison: true when nothing failed. `counts` says how many were compared,
    passed, suspicious, failed, unjudged (neither), unmatched and unreadable. `verdicts` says how many
    results have which word, where second opinions were asked for; `bool` then follows what decides."""

    def __init__(self, table: Table, closing: str, counts: Dict[str, int]) -> None:
        super().__init__(table, closing)
        self.counts = {name: counts.pop(name) for name in _COUNTS}
        self.bad: Optional[int] = counts.pop("bad", None)
        self.verdicts = counts
        self.again: Optional[Tuple[Any, ...]] = None  # how plumb.report() gets the page, with the tensors

    def __bool__(self) -> bool:
        if self.bad is not None:
            return not self.bad
        return not any(self.counts[name] for name in ("failed", "unmatched", "unreadable"))


def _shown(cell: Any) -> str:
    if cell is None:
        return ""
    return f"{cell:.7g}" if isinstance(cell, float) else str(cell)


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def compare(target: Any, golden: Any, standard: Optional[str] = None, *,
            metrics: Optional[str] = None, match: Optional[str] = None, wide: bool = False,
            verdict: str = "rules", arithmetic: Union[str, Sequence[str]] = "",
            shards: Union[bool, Path] = False, dims: Optional[ranks.Dims] = None,
            parallel: Optional[ranks.Parallel] = None, **settings: Any) -> Report:
    """Compares what was computed with what it should be. Settings change thresholds and tolerances
    of the standard: rtol=1e-2, max_abs=0.1. Without a standard, values in memory are compared
    element by element with tolerances that fit the coarser of the two types, and files as
    `plumb compare` does it. metrics ("all", or names with commas between), match and wide are for
    files only. So is verdict: with "expected" or "both" every recorded call of a dump of tensors is
    computed again from the target's own inputs, and what right arithmetic cannot have given is a fault;
    arithmetic names cheaper arithmetic that is meant. Raises plumb.Error when no call can be judged.

    shards=True puts the tensors of several ranks together on both sides, as `plumb compare --shards`, and finds in
    the data how they lie; a path is that of a YAML file with layouts. dims={"*.qkv.weight": "o[tp] i"} writes down
    how tensors lie, parallel={"tp": 2, "pp": 4} (or "target:tp=2", or a list of such) what axes the ranks have;
    both mean shards=True. For files only."""
    allowed = arithmetic if isinstance(arithmetic, str) else ",".join(arithmetic)
    if verdict != "rules" and not _is_path(target):
        raise leaves.refuse("second opinions need recorded calls, which a dump on disk holds; "
                            "plumb.judge() takes the result of a call in memory")
    together = ranks.options(shards, dims, parallel)
    if together and not (_is_path(target) and _is_path(golden)):
        raise leaves.refuse("shards puts together what several ranks left on disk: give two paths")
    if not _is_path(target) and not _is_path(golden):
        return _compare_memory(target, golden, standard, settings)
    with tempfile.TemporaryDirectory(prefix="plumb-") as folder:
        memory = os.path.join(folder, "memory.safetensors")
        paths = [side if _is_path(side) else _to_file(side, memory) for side in (target, golden)]
        how = (*paths, standard, pairs.assignments(settings), metrics, match, wide, verdict, allowed, together)
        table, closing, counts = compare_runs(*how)
    report = Report(table, closing, counts)
    if _is_path(target) and _is_path(golden):
        report.again = tuple(os.path.abspath(side) for side in (target, golden)) + how[2:]
    if report.verdicts and sum(report.verdicts.values()) == report.verdicts["not judged"]:
        raise leaves.refuse(f"no result could be judged: {report.closing}")
    return report


def _to_file(value: Any, path: str) -> str:
    """Values in memory as a file, so that a file can be compared with them by name."""
    writer = Writer()
    number = writer.open_h5(path)
    for leaf in leaves.find(value):
        writer.add_h5(number, leaf.name or "tensor", -1, leaves.tensor_of(leaf))
    writer.close()
    for name, message in writer.errors():
        raise leaves.refuse(f"{name}: {message}")
    return path


_COLUMNS = ["Name", "Result", "Dtype", "Shape", "Cosine", "MaxAbsErr", "MaxRelativeErr", "Max ULP",
            "NotClose", "Reason"]


def _compare_memory(target: Any, golden: Any, standard: Optional[str],
                    settings: Dict[str, Any]) -> Report:
    table = Table(_COLUMNS)
    counts = dict.fromkeys(_COUNTS, 0)
    first: Optional[Tuple[str, str]] = None
    for name, result in pairs.judge_all(target, golden, standard, settings):
        counts[result.count] += 1
        if result.count in ("passed", "suspicious", "failed"):
            counts["compared"] += 1
        if result.severity == 2 and first is None:
            first = name, result.reason
        found = result.metrics
        table.add([name, result.word, result.dtype, result.shape,
                   *(found.get(key) for key in ("cosine", "max_abs", "max_rel", "max_ulp",
                                                "not_close")),
                   result.reason], result.severity)
    return Report(table, _closing(counts, first, standard), counts)


def _closing(counts: Dict[str, int], first: Optional[Tuple[str, str]],
             standard: Optional[str]) -> str:
    """The line below the table, worded as `plumb compare` words it."""
    parts = [f"{counts['passed'] + counts['suspicious']} pass"]
    if counts["suspicious"]:
        parts[0] += f" ({counts['suspicious']} suspicious)"
    parts.append(f"{counts['failed']} fail")
    text = f"{counts['compared']} compared: {', '.join(parts)}; {counts['unmatched']} unmatched"
    if counts["unreadable"]:
        text += f"; {counts['unreadable']} could not be compared"
    if first:
        text += f"; first failure: {first[0] or 'the tensor'} ({first[1]})"
    return text + f"; standard: {standard or 'allclose, tolerances by type'}"


def summary(value: Any) -> Listing:
    """The range, mean, deviation and norm of every tensor in value, or in the files at a path."""
    if _is_path(value):
        return Listing(summarise_run(value))
    table = Table(["Name", "Dtype", "Shape", "Min", "Max", "Mean", "Std", "L2norm", "NaN", "Inf",
                   "Problem"])
    for leaf in leaves.find(value):
        table.add(_summary_row(leaf))
    return Listing(table)


def _summary_row(leaf: Leaf) -> List[Any]:
    try:
        tensor = leaves.tensor_of(leaf)
    except (leaves.Error, TypeError) as error:
        return [leaf.name, None, None, None, None, None, None, None, None, None, str(error)]
    stats = tensor.stats()
    return [leaf.name, tensor.dtype, leaves.shape_text(tensor), stats.min, stats.max, stats.mean,
            stats.std, stats.norm, stats.nan, stats.pos_inf + stats.neg_inf, ""]


def assert_close(actual: Any, expected: Any, standard: str = "allclose",
                 rtol: Optional[float] = None, atol: Optional[float] = None,
                 equal_nan: bool = False, **settings: Any) -> None:
    """Raises AssertionError, with what to look at, unless all of actual is as expected. Tolerances
    that are not given fit the coarser of the two types; integers must be equal. A Python number is
    expected of every element.

    With standard="expected", actual is held against what right arithmetic shows for op(*inputs,
    **kwargs), as plumb.judge() does, with its options; expected may be None, or the result of another
    implementation, which is then judged the same way."""
    __tracebackhide__ = True  # pytest shows the caller's line then
    if standard == "expected":
        _assert_expected(actual, expected, _given(rtol, atol, equal_nan), settings)
        return
    if "op" in settings or "inputs" in settings:
        raise TypeError(f'op and inputs belong to standard="expected", and this is {standard!r}')
    if _is_path(actual) or _is_path(expected):
        report = compare(actual, expected, standard, **_given(rtol, atol, equal_nan), **settings)
        if not report:
            raise AssertionError(f"{report.closing}\n{report.table.text(wide=True)}")
        return
    told = _given(rtol, atol, equal_nan)
    failed: List[str] = []
    total = 0
    for name, result in pairs.judge_all(actual, expected, standard, {**told, **settings}):
        total += 1
        if result.severity == 2:
            failed.append(result.explain(name))
    if not failed:
        return
    shown = failed[:3]
    if len(failed) > len(shown):
        shown.append(f"... and {len(failed) - len(shown)} more of {total}; "
                     "print(plumb.compare(actual, expected)) shows all")
    raise AssertionError("\n\n".join(shown))


def _assert_expected(actual: Any, expected: Any, tolerances: Dict[str, Any],
                     settings: Dict[str, Any]) -> None:
    __tracebackhide__ = True
    if tolerances or "op" not in settings:
        raise TypeError('standard="expected" takes op= and inputs=, and no tolerances')
    call = {name: settings.pop(name) for name in ("op", "inputs", "kwargs") if name in settings}
    opinions = [("", judge(actual, **call, **settings))]
    if expected is not None:
        opinions.append(("the expected result: ", judge(expected, **call, **settings)))
    if not all(opinion and opinion.verdict != "not judged" for _, opinion in opinions):
        raise AssertionError("\n".join(f"{who}{opinion}" for who, opinion in opinions))


def _given(rtol: Optional[float], atol: Optional[float], equal_nan: bool) -> Dict[str, Any]:
    told: Dict[str, Any] = {}
    if rtol is not None:
        told["rtol"] = float(rtol)
    if atol is not None:
        told["atol"] = float(atol)
    if equal_nan:
        told["equal_nan"] = True
    return told
