#!/usr/bin/python3
"""Runs the tests of one Python file and reports each result as it comes, for tests/run.py.

    py_harness.py FILE REPORT [FROM]

REPORT gets one JSON object per line: {"plan": names} first, then {"start": number, "at": bytes} and
{"end": number, "outcome": ..., "text": ...} for each test, {"extra": name, "text": ...} for a failure
that belongs to no test, and {"done": true}. A test that dies has a start and no end; FROM starts
behind it. "at" says how much the tests before it had printed.
"""

import contextlib
import importlib
import json
import os
import sys
import traceback
import unittest
from pathlib import Path
from typing import Any, Dict, Iterator, List, TextIO


def flat(suite: Any) -> Iterator[Any]:
    if isinstance(suite, unittest.TestSuite):
        for item in suite:
            yield from flat(item)
    else:
        yield suite


def short(test: Any) -> str:
    """Class.test_name"""
    return ".".join(test.id().split(".")[-2:])


class Reporter(unittest.TestResult):
    """Sums up what unittest says about a test, which may be several things (subTest)."""

    def __init__(self, tests: List[Any], begin: int, report: TextIO) -> None:
        super().__init__()
        self.numbers = {test.id(): number for number, test in enumerate(tests)}
        self.tests, self.begin, self.report = tests, begin, report
        self.out = os.dup(1)  # whatever a test does to its own
        self.ended: Dict[str, bool] = {}
        self.faults: List[str] = []
        self.skips: List[str] = []

    def say(self, **what: Any) -> None:
        self.report.write(json.dumps(what) + "\n")
        self.report.flush()

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        self.faults, self.skips = [], []
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        self.say(start=self.numbers[test.id()], at=os.fstat(self.out).st_size)

    def stopTest(self, test: Any) -> None:
        super().stopTest(test)
        self.end(test, self.faults, self.skips)
        self.faults, self.skips = [], []

    def end(self, test: Any, faults: List[str], skips: List[str]) -> None:
        outcome = "failed" if faults else "skipped" if skips else "passed"
        self.ended[test.id()] = True
        self.say(end=self.numbers[test.id()], outcome=outcome, text="\n".join(faults or skips))

    def fixture(self, holder: Any, faults: List[str], skips: List[str]) -> bool:
        """setUpClass, setUpModule and their opposites: one result stands for many."""
        what, _, place = str(holder).partition(" (")
        if isinstance(holder, unittest.TestCase):
            return False
        if not what.startswith("setUp"):
            self.say(extra=str(holder), text="\n".join(faults))
            return True
        for test in self.tests[self.begin:]:
            kind = type(test)
            inside = f"{kind.__module__}.{kind.__qualname__}" == place.rstrip(")")
            if test.id() not in self.ended and (what == "setUpModule" or inside):
                self.end(test, faults, skips)
        return True

    def fault(self, test: Any, error: Any) -> None:
        text = "".join(traceback.format_exception(*error))
        if not self.fixture(test, [text], []):
            self.faults.append(text)

    def addError(self, test: Any, err: Any) -> None:
        self.fault(test, err)

    def addFailure(self, test: Any, err: Any) -> None:
        self.fault(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.faults.append(f"{subtest}\n" + "".join(traceback.format_exception(*err)))

    def addSkip(self, test: Any, reason: str) -> None:
        if not self.fixture(test, [], [reason]):
            self.skips.append(reason)

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.faults.append("an expected failure passed")


def main() -> None:
    file, report = Path(sys.argv[1]), sys.argv[2]
    begin = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    sys.argv[1:] = []
    sys.path[0] = str(file.parent)
    with open(report, "a", encoding="utf-8") as out:
        module = importlib.import_module(file.stem)
        for name in ("COLUMNS", "LINES"):  # PyTorch 2.6 loads readline, which sets them for all that is started
            os.unsetenv(name)
        tests = list(flat(unittest.defaultTestLoader.loadTestsFromModule(module)))
        result = Reporter(tests, begin, out)
        result.say(plan=[short(test) for test in tests])
        unittest.TestSuite(tests[begin:]).run(result)
        result.say(done=True)


if __name__ == "__main__":
    main()
