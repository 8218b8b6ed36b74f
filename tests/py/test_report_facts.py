"""The same facts on the terminal, in JSON (or CSV) and on the page: what each of them says, read back and compared."""

import csv
import json
import re
import sys
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any, Dict, List

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests" / "web")]

import numpy as np  # noqa: E402
import real_reports  # noqa: E402
import test_digest  # noqa: E402
import test_report  # noqa: E402
from report_page import BAD, DOUBT, Page, plumb  # noqa: E402

WIDE = 400  # columns: no cell is cut


def joined(text: str) -> str:
    """Words in their order, whatever lines they were wrapped to."""
    return " ".join(text.split())


def cells(line: str) -> List[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def as_shown(page: Page, title: str, row: int, shown: str) -> bool:
    """Whether a cell of a digest is that of the page: a text, cut at its end or not, or a number in fewer digits."""
    cell = page.column(title)[row]
    if isinstance(cell, float):
        return np.isnan(cell) and shown in ("N/A", "nan", "") or abs(float(shown) - cell) <= 1e-2 * abs(cell) + 1e-7
    text = joined(cell or "")
    return shown in (text, "N/A") or (shown.endswith("...") and text.startswith(shown[:-3]))


class Case(test_report.Case):
    @classmethod
    def setUpClass(cls) -> None:
        import tempfile
        cls.scratch = tempfile.TemporaryDirectory()
        cls.data = Path(cls.scratch.name).resolve()
        real_reports.transformer(cls.data / "device", True)
        real_reports.transformer(cls.data / "reference", False)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.scratch.cleanup()


class OfCompare(Case):
    def three(self, *words: str, cwd: Path = ROOT) -> Page:
        """Digest, JSON and page of one comparison; what they have in common."""
        code, self.digest = test_digest.on_terminal(WIDE, *words, cwd=cwd)
        page = self.page(*words, cwd=cwd)
        rows = json.loads(plumb(*words, "--format", "json", cwd=cwd).stdout)["rows"]
        self.assertEqual(code, 1)
        answer = page.data["answer"]
        name = next(title for title in page.titles() if title in ("API Name", "Module (Bench/Target)"))
        names = page.column(name)
        self.assertEqual([row[name] for row in rows], names)

        # What was found first, why, and the counts: as the page has them.
        found = re.search(r"^First \w+, with the rows around it: (.*?)\n\+-", self.digest, re.M | re.S)
        self.assertIsNotNone(found, self.digest)
        where, why = re.fullmatch(r"(\S+) \((.*)\)", joined(found[1])).groups()
        self.assertEqual(answer["where"], where)
        self.assertEqual(answer["sure"].splitlines()[0], why)
        self.assertEqual(names[answer["row"]], where)
        for line in answer["sure"].splitlines()[1:]:
            self.assertIn(joined(line), joined(self.digest))

        # Every row of its tables, cell by cell.
        tables = test_digest.tables(self.digest)
        self.assertEqual(len(tables), 2)
        for table in tables:
            titles = cells(table[0])
            for line in table[1:]:
                shown = dict(zip(titles, cells(line)))
                row = names.index(shown[name])
                self.assertLessEqual(set(titles) - {"Distance"}, set(page.titles()))
                for title, text in shown.items():
                    if title != "Distance":
                        self.assertTrue(as_shown(page, title, row, text), (title, text, page.column(title)[row]))
        around = [cells(line)[cells(tables[0][0]).index(name)] for line in tables[0][1:]]
        self.assertEqual(around, names[answer["row"] - 3:answer["row"] + 4])

        # The worst ones are bad, are as far as the curve says, and have pages.
        net = page.data["network"]
        total = dict(zip(net["names"], page.array(net["total"])))
        pages = [tensor["name"] for tensor in page.data["tensors"]]
        for line in tables[1][1:]:
            shown = dict(zip(cells(tables[1][0]), cells(line)))
            self.assertEqual(page.moods()[names.index(shown[name])], BAD)
            self.assertIn(shown[name], pages)
            call = next((call for call in total if shown[name].startswith(call) and "output" in shown[name]), None)
            if call:
                apart = float(shown["Distance"].rstrip(" %")) / 100
                self.assertAlmostEqual(apart, total[call], delta=0.01 * total[call])

        # How often what was found.
        for count, word in ((r"(\d+) at fault", "fault"), (r"(\d+) beyond the limits", "beyond a limit"),
                            (r"(\d+) suspicious \(--only", "suspicious")):
            said = re.search(r"^" + count, self.digest, re.M)
            self.assertEqual(int(said[1]) if said else None, page.counts.get(word), word)
        return page

    def test_demo(self) -> None:
        self.three(*test_report.DEMO)

    def test_second_opinions(self) -> None:
        page = self.three("compare", "device", "reference", "--verdict", "both", cwd=self.data)
        said = re.search(r"Second opinion: (\d+) results judged: (.*?);", self.digest)
        words = dict((word, int(count)) for count, word in re.findall(r"(\d+) ([a-z ]+)", said[2]))
        verdicts = [word for word in page.column("Verdict") if word]
        self.assertEqual({word: verdicts.count(word) for word in words}, words)
        self.assertEqual(len(verdicts), int(said[1]))
        tensor = page.data["tensors"][page.array(page.data["tables"][0]["tensor"])[page.data["answer"]["row"]]]
        self.assertEqual(page.data["answer"]["next"], tensor["commands"])


class OfBlame(Case):
    def three(self, *words: str, cwd: Path = ROOT, status: int = 1) -> Page:
        _, text = test_digest.on_terminal(100, *words, cwd=cwd)
        page = self.page(*words, cwd=cwd, status=status)
        self.assertEqual(self.said, text)  # the digest of blame is all that it says
        found = json.loads(plumb(*words, "--format", "json", cwd=cwd).stdout)
        head = re.search(r"(\d+) calls \(forward and backward apart\): (\d+) judged", text)
        self.assertEqual(int(head[1]), found["calls"])
        self.assertEqual(int(head[1]), len(page.column("Call")))
        self.assertEqual(int(head[2]), found["calls"] - found["verdicts"]["not judged"])
        self.assertEqual(page.counts, {word: count for word, count in found["verdicts"].items() if count})
        self.assertEqual(page.data["answer"]["sentence"].split(" ")[0], str(len(found["faults"]) or "None"))
        for number, fault in enumerate(found["faults"], 1):
            self.fault(page, text, number, fault)
        return page

    def fault(self, page: Page, text: str, number: int, fault: Dict[str, Any]) -> None:
        """One that is listed: the paragraph, the row, the page of its tensor."""
        part = re.search(rf"^{number}\. (.*?)(?=^\S|\Z)", text, re.M | re.S)[1]
        self.assertIn(f"{fault['call']}, {fault['result']}", part)
        self.assertIn(joined(fault["why"]), joined(part))
        self.assertIn(fault["replay"], part)
        row = page.column("Call").index(fault["call"])
        for title, key in (("Result", "result"), ("Verdict", "verdict"), ("Why", "why"), ("At", "at"),
                           ("Pattern", "pattern"), ("Module", "parent")):
            self.assertEqual(page.column(title)[row] or "", fault[key] or "", title)
        for title, key in (("Worst", "worst"), ("Limit", "limit"), ("Expected", "expected"), ("Got", "got")):
            if fault[key] is not None:
                self.assertEqual(page.column(title)[row], fault[key], title)
        tensor = page.data["tensors"][page.array(page.data["tables"][0]["tensor"])[row]]
        self.assertEqual(tensor["name"], f"{fault['call']}, {fault['result']}")
        self.assertEqual((tensor["row"], tensor["mood"]), (row, BAD))
        self.assertEqual(dict(tensor["facts"])["why"], fault["why"])
        self.assertEqual(tensor["stack"], fault["stack"])
        self.assertEqual(tensor["commands"], [fault["replay"]])
        at = [element["at"] for element in tensor["worst"]]
        self.assertTrue(json.loads(fault["at"]) in at or len(at) == 20, (fault["at"], at))
        if number == 1:
            self.assertTrue(page.data["answer"]["where"].startswith(tensor["name"]))
            self.assertEqual(page.data["answer"]["sure"], fault["why"])
            self.assertEqual(page.data["answer"]["next"], [fault["replay"]])

    def test_example(self) -> None:
        self.three(*test_report.BLAME)

    def test_transformer(self) -> None:
        self.three("blame", "device", "reference", cwd=self.data)
        self.three("blame", "device", cwd=self.data)

    def test_nothing_wrong(self) -> None:
        page = self.three("blame", "reference", cwd=self.data, status=0)
        self.assertEqual(page.data["tensors"], [])


class OfCheck(Case):
    def three(self, *words: str, status: int = 1) -> Page:
        """acc_check has no JSON: its tables are its output for programs, and JUnit."""
        words = ("acc_check", "device/dump.json", "-d", "recorded", *words)
        _, text = test_digest.on_terminal(WIDE, *words, "-o", str(self.folder / "a"), cwd=self.data)
        page = self.page(*words, "-o", self.folder / "b", cwd=self.data, status=status)
        junit = plumb(*words, "-o", self.folder / "c", "--format", "junit", cwd=self.data)
        result, = (self.folder / "b").glob("accuracy_checking_result_*.csv")
        with result.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["API name"] for row in rows], page.column("API name"))
        for title in ("Forward Test Success", "Message", "Verdict", "Why"):
            self.assertEqual([row.get(title, "").strip() for row in rows],
                             [(cell or "").strip() for cell in (page.column(title) if title in page.titles() else
                                                                 [""] * len(rows))], title)

        # The counts of the closing lines, word by word.
        line = re.search(r"(\d+) APIs: (\d+) pass, (\d+) warning, (\d+) error, (\d+) skipped", text)
        self.assertIn(line[0], page.data["answer"]["sure"])
        self.assertEqual([page.counts.get(word, 0) for word in ("pass", "warning", "error", "skipped")],
                         [int(number) for number in line.groups()[1:]])
        self.assertEqual(len(rows), int(line[1]))
        opinion = re.search(r"^second opinion: (.*)$", text, re.M)
        if opinion:
            self.assertIn(opinion[0], page.data["answer"]["sure"])

        # What is listed as failing is bad on the page, with the same reason, and fails in JUnit.
        listed = {match[1]: joined(match[2]) for match in re.finditer(r"^(\w+\.\w+\.\d+) +((?:.|\n    )*)", text, re.M)}
        moods = dict(zip(page.column("API name"), page.moods()))
        self.assertEqual([name for name, mood in moods.items() if mood in (BAD, DOUBT)], list(listed))
        for name, said in listed.items():
            row = page.column("API name").index(name)
            if "Why" in page.titles():
                self.assertIn(joined(page.column("Why")[row]), said)
        first = next(iter(listed))
        self.assertEqual(page.data["answer"]["where"], first)
        self.assertTrue(joined(page.data["answer"]["sure"].splitlines()[0]))
        cases = xml.fromstring(junit.stdout).iter("testcase")
        self.assertEqual([case.get("name") for case in cases if case.find("failure") is not None], list(listed))
        return page

    def test_expected(self) -> None:
        page = self.three()
        self.assertIn("as if the sums left out the last 1 of 16", page.data["answer"]["sure"].splitlines()[0])
        self.assertEqual(len(page.data["answer"]["next"]), 1)

    def test_both(self) -> None:
        self.three("--verdict", "both")

    def test_rules(self) -> None:
        page = self.three("--verdict", "rules")
        self.assertEqual(page.data["answer"]["sure"].splitlines()[0],
                         "forward.output.0: dual-1000 0 is not above 0.999")


if __name__ == "__main__":
    unittest.main()
