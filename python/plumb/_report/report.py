"""plumb.report(): a result as one page of HTML, in a file or in a notebook (docs/REPORT.md)."""

import os
from html import escape
from typing import Any, Callable, List, Optional, Tuple, Type, Union

from plumb import _core

Path = Union[str, "os.PathLike[str]"]
BAD, DOUBT, UNSEEN, GOOD = range(4)
WORDS = {"fault": BAD, "cheaper arithmetic": DOUBT, "not judged": UNSEEN}  # the others are good


class Shown:
    """A page that a notebook shows. `html`: all of it, as one text."""

    def __init__(self, page: "_core.Page", height: int = 720) -> None:
        self.html = page.html()
        self.height = height
        self._page = page

    def save(self, path: Path) -> None:
        self._page.save(os.fspath(path))

    def __repr__(self) -> str:
        return f"<report of {len(self.html)} characters; .save(path) writes it>"

    def _repr_html_(self) -> str:
        """The page is in a frame of its own, which can reach neither the notebook nor the network. Its base
        address is its own: links inside of it would lead to the notebook else. It stands before the page's
        policy, which allows none."""
        page = self.html.replace("<head>", '<head><base href="about:srcdoc">', 1)
        plain = escape(page, quote=True).encode("ascii", "xmlcharrefreplace").decode()  # whatever the encoding there
        return (f'<iframe srcdoc="{plain}" title="plumb report" '
                f'sandbox="allow-scripts allow-downloads" width="100%" height="{self.height}" '
                'style="border:0"></iframe>')


def report(result: Any, path: Optional[Path] = None, *, height: int = 720) -> Optional[Shown]:
    """What plumb.compare, blame, diagnose, numeric_check, compile_check or inductor_check found, as a page for people.
    With a path it is written there, whole or not at all. Without one it is returned, and a notebook shows
    it, that many pixels high.

    The page of a comparison of files shows their tensors, and reads them again for that; it raises
    plumb.Error when they are others by now."""
    page = page_of(result)
    if path is None:
        return Shown(page, height)
    page.save(os.fspath(path))
    return None


def page_of(result: Any) -> "_core.Page":
    for kind, make in _kinds():
        if isinstance(result, kind):
            return make(result)
    raise TypeError(f"plumb.report takes results of compare, blame, diagnose, numeric_check, compile_check and "
                    f"inductor_check, not {type(result).__name__}")


def _kinds() -> List[Tuple[Type[Any], Callable[[Any], "_core.Page"]]]:
    """Only of modules that are loaded: a result of any other cannot exist."""
    import sys
    names = {"plumb._compare.notebook": ("Report", _comparison), "plumb._verdict.blame": ("Blame", _blame),
             "plumb._diagnose.result": ("Diagnosis", _diagnosis), "plumb._passcheck.report": ("NumericReport", _numeric),
             "plumb._compile.check": ("CompileReport", _compiled), "plumb._compile.report": ("InductorReport", _inductor)}
    return [(getattr(sys.modules[module], name), make) for module, (name, make) in names.items()
            if module in sys.modules]


def _error(message: str) -> "_core.Error":
    error = _core.Error(message)
    error.code = "ARG"
    return error


# -- Comparisons -----------------------------------------------------------------------------------

def _comparison(result: Any) -> "_core.Page":
    if result.again is not None:
        _, closing, counts, page = _core.compare_runs(*result.again, page=True)
        if {name: counts[name] for name in result.counts} != result.counts:
            raise _error(f"the files are others than when they were compared: {closing.strip()}")
        return page
    counts, rows = result.counts, len(result.table)
    bad = counts["failed"] + counts["unmatched"] + counts["unreadable"]
    page = _core.Page("compare", "Comparison of values")
    seen = counts["compared"]
    page.answer(UNSEEN if not seen and not bad else BAD if not result else DOUBT if counts["suspicious"] else GOOD,
                "Nothing could be compared." if not seen and not bad else f"{bad} of {rows} values fail." if bad
                else f"All {rows} values agree." if seen == rows else
                f"The {seen} values that could be compared agree, of {rows}.",
                *_first_failure(result.table), result.closing)
    for word, mood in (("failed", BAD), ("unmatched", BAD), ("unreadable", BAD), ("suspicious", DOUBT),
                       ("unjudged", UNSEEN), ("passed", GOOD)):
        if counts[word]:
            page.count(word, counts[word], mood)
    page.table("values", result.table)
    return page


def _first_failure(table: "_core.Table", column: int = 0) -> Tuple[str, int]:
    for row in range(len(table)):
        if table.severity(row) == 2:
            return str(table[row][column] or ""), row
    return "", -1


def _blame(result: Any) -> "_core.Page":
    if result.page is None:
        raise _error("this copy of a blame has no page any more: only what plumb.blame returned has one")
    return result.page.copy()


def _diagnosis(result: Any) -> "_core.Page":
    """The curve and the calls of a beside b, with the answer of the diagnosis."""
    page = _blame(result.blame)
    lines = str(result).split("\n\n")[0].splitlines()[2:]  # without what a and b are, and what blame says
    first = result.first or (result.faults_of_b[0] if result.faults_of_b else None)
    kind = (result.first or {}).get("kind")
    mood = GOOD if result else DOUBT if kind == "parting" and not result.faults_of_b and not result.nan else \
        UNSEEN if not result.judged and first is None and not result.nan else BAD
    page.answer(mood, lines[0] if lines else "Nothing could be judged.", first["call"] if first else "", -1,
                "\n".join(lines[1:]))
    page.fact("a", result.a)
    page.fact("b", result.b)
    for name, why in result.not_recorded.items():
        page.note(f"not recorded: {name} {why}")
    for problem in result.problems:
        page.note(f"while recording: {problem}")
    return page


# -- Passes and compilers --------------------------------------------------------------------------

def _words(page: "_core.Page", words: Any) -> None:
    for word, count in words.items():
        page.count(word, count, WORDS.get(word, GOOD))


def _numeric_rows(page: "_core.Page", result: Any) -> None:
    if result.deciding != "expected":
        failed = sum(row.compared and not row.equal for row in result.rows)
        unknown = sum(not row.compared for row in result.rows)
        for word, count, mood in (("failed", failed, BAD), ("not compared", unknown, UNSEEN),
                                  ("passed", len(result.rows) - failed - unknown, GOOD)):
            if count:
                page.count(word, count, mood)
    _words(page, result.words)
    page.table("tensors", result.table, bytes(_row_mood(result, row) for row in result.rows))


def _row_mood(result: Any, row: Any) -> int:
    """By what decides."""
    word = GOOD if result.deciding == "rules" else UNSEEN if row.opinion is None else \
        WORDS.get(row.opinion.verdict, GOOD)
    rule = GOOD if result.deciding == "expected" or row.equal else BAD if row.compared else UNSEEN
    return min(word, rule)


def _numeric(result: Any) -> "_core.Page":
    page = _core.Page("numeric_check", "A graph before and after passes")
    lines = result.summary().splitlines()
    where, row = _first_failure(result.table, 2) if result.rows else ("", -1)
    page.answer(_mood(result, result.error is not None or not result.rows), lines[0] if lines else "",
                result.bad_pass_name or result.first_node or where, row, "\n".join(lines[1:]))
    _numeric_rows(page, result)
    return page


def _mood(result: Any, unseen: bool) -> int:
    if result:
        return DOUBT if "cheaper arithmetic" in getattr(result, "words", ()) else GOOD
    return UNSEEN if unseen else BAD


def _compiled(result: Any) -> "_core.Page":
    page = _core.Page("compile_check", "A model before and after torch.compile")
    lines = result.summary().splitlines()
    unseen = result.error is not None or result.results is None or not result.results.rows
    page.answer(_mood(result, unseen), lines[0], result.node or result.stage or "", -1, "\n".join(lines[1:]))
    if result.results is not None:
        _numeric_rows(page, result.results)
    if result.passes is not None and result.passes.checked:
        _passes(page, result.passes)
    for stage, verdict in result.stages.items():
        page.fact(stage, verdict)
    return page


def _passes(page: "_core.Page", result: Any) -> None:
    table = _core.Table(["Stage", "Graph", "Pass", "Verdict", "Why", "Node", "Result", "Pattern", "Source"])
    for one in result.checked:
        table.add([one.stage, one.graph, one.title, one.verdict, one.why, one.node or "", one.what, one.pattern,
                   one.source], 2 if one.verdict == "fault" else 1 if one.verdict == "cheaper arithmetic" else 0)
    page.table("passes", table, bytes(WORDS.get(one.verdict, GOOD) for one in result.checked))
    for problem in result.problems:
        page.note(f"the check itself failed: {problem}")


def _inductor(result: Any) -> "_core.Page":
    page = _core.Page("inductor_check", "Passes of inductor")
    lines = result.summary().splitlines()
    first = result.first
    page.answer(_mood(result, not result.faults), lines[0], first.title if first else "",
                result.checked.index(first) if first else -1, "\n".join(lines[1:]))
    _words(page, result.words)
    _passes(page, result)
    return page
