"""Tables of dump.json trees that another tool wrote, under the rules that describe that tool.

A small set lives in tests/data/golden; with PLUMB_GOLDEN the whole of it is checked.
"""

import csv
import os
import re
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path
from typing import Dict, List, Tuple
from xml.etree import ElementTree

BUILD = Path(os.environ["PLUMB_BUILD"])
DATA = Path(os.environ["PLUMB_TEST_DATA"]) / "golden" / "compare"
FREE_TEXT = {"Err_message"}
RANK = r"(?:_(rank\d*|proc\d+))?"
RULES = ["--rules", "msprobe", "--columns", "msprobe"]


def cases() -> List[Path]:
    roots = [DATA] + ([Path(os.environ["PLUMB_GOLDEN"]) / "compare"]
                      if "PLUMB_GOLDEN" in os.environ else [])
    return sorted(found.parent for root in roots for found in root.rglob("CMD")
                  if "compare -tp" in found.read_text() and "--mode" not in found.read_text())


def commands(case: Path) -> List[Tuple[str, List[str]]]:
    """The prefix of the expected files, and the words after `msprobe compare`."""
    found = []
    for line in (case / "CMD").read_text().splitlines():
        match = re.match(r"(expected_\w*?)\*\s+<-\s+msprobe compare (.*) -o out$", line.strip())
        if match and "-da" not in match.group(2).split():
            found.append((match.group(1), match.group(2).split()))
    return found


def expected(case: Path, prefix: str) -> Dict[str, Path]:
    """Expected tables by the rank in their name, or by "" where there is none."""
    tables = {}
    for path in case.glob(f"{prefix}*compare_result*.csv"):
        match = re.fullmatch(re.escape(prefix) + "compare_result" + RANK + r"(\.xlsx)?\.csv",
                             path.name)
        if match:
            tables[match.group(1) or ""] = path
    return tables


def read_xlsx(path: Path) -> List[List[str]]:
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(path) as archive:
        sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
        strings: List[str] = []
        if "xl/sharedStrings.xml" in archive.namelist():
            shared = ElementTree.fromstring(archive.read("xl/sharedStrings.xml"))
            strings = ["".join(t.text or "" for t in item.iter(space + "t")) for item in shared]
    rows = []
    for row in sheet.iter(space + "row"):
        cells: Dict[int, str] = {}
        for cell in row.iter(space + "c"):
            column = 0
            for letter in re.match(r"[A-Z]+", cell.get("r", "")).group(0):
                column = column * 26 + ord(letter) - ord("A") + 1
            value = cell.find(space + "v")
            inline = cell.find(space + "is")
            if cell.get("t") == "s" and value is not None:
                cells[column] = strings[int(value.text or "0")]
            elif inline is not None:
                cells[column] = "".join(t.text or "" for t in inline.iter(space + "t"))
            elif value is not None:
                cells[column] = value.text or ""
        rows.append([cells.get(i + 1, "") for i in range(max(cells, default=0))])
    return rows


def read(path: Path) -> List[Dict[str, str]]:
    if path.suffix == ".xlsx":
        rows = read_xlsx(path)
        return [dict(zip(rows[0], row)) for row in rows[1:]]
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(text: str):
    """The value of a number, or of the number before a percent sign, and that sign."""
    match = re.fullmatch(r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(%?)", text)
    return (float(match.group(1)), match.group(2)) if match else None


def same(found: str, wanted: str) -> bool:
    if found == wanted:
        return True
    a, b = number(found), number(wanted)
    if a is None or b is None or a[1] != b[1]:
        return False
    return abs(a[0] - b[0]) <= 1e-9 * abs(b[0])


class General(unittest.TestCase):
    maxDiff = None

    def check(self, found: Path, wanted: Path) -> int:
        rows, expected_rows = read(found), read(wanted)
        self.assertEqual([row["NPU Name"] for row in rows],
                         [row["NPU Name"] for row in expected_rows])
        if rows:
            self.assertEqual(list(rows[0]), list(expected_rows[0]))
        wrong = [f"{row['NPU Name']}: {column}: {row[column]!r} instead of {cell!r}"
                 for row, other in zip(rows, expected_rows) for column, cell in other.items()
                 if column not in FREE_TEXT and not same(row[column], cell)]
        self.assertEqual(wrong, [])
        for row in rows:
            self.assertEqual(row["Result"] == "pass", row["Err_message"] == "[]", row["NPU Name"])
        return len(rows)

    def test_tables(self) -> None:
        checked = 0
        for case in cases():
            for prefix, words in commands(case):
                tables = expected(case, prefix)
                if not tables:
                    continue
                with self.subTest(case=str(case), command=words), \
                        tempfile.TemporaryDirectory() as out:
                    done = subprocess.run([str(BUILD / "plumb"), "compare", *words, "-o", out, *RULES],
                                          cwd=case, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                          text=True)
                    self.assertIn(done.returncode, (0, 1), done.stderr)
                    self.assertEqual(done.stderr, "")
                    written = {}
                    for path in Path(out).iterdir():
                        match = re.fullmatch("compare_result" + RANK + r"_\d{14}\.(csv|xlsx)",
                                             path.name)
                        self.assertIsNotNone(match, path.name)
                        self.assertEqual(match.group(2), "xlsx" if "--xlsx" in words else "csv")
                        written[match.group(1) or ""] = path
                    self.assertEqual(set(written), set(tables))
                    errors = 0
                    for rank, path in tables.items():
                        checked += self.check(written[rank], path)
                        errors += sum(row["Result"] == "error" for row in read(path))
                    self.assertEqual(done.returncode, 1 if errors else 0)
        self.assertGreater(checked, 40)


if __name__ == "__main__":
    unittest.main()
