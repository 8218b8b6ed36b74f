"""merge_result: the golden case, and results made here."""

import csv
import os
import re
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path
from typing import Dict, List, Optional
from xml.etree import ElementTree

BUILD = Path(os.environ["PLUMB_BUILD"])
DATA = Path(os.environ["PLUMB_TEST_DATA"]) / "golden"
SPACE = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
STATISTICS = ["NPU Name", "Max diff", "MeanRelativeErr", "NPU max", "Bench max",
              "Requires_grad Consistent"]

Row = List[Optional[object]]


def roots() -> List[Path]:
    return [DATA] + ([Path(os.environ["PLUMB_GOLDEN"])] if "PLUMB_GOLDEN" in os.environ else [])


def column(reference: str) -> int:
    number = 0
    for letter in re.match("[A-Z]+", reference).group():
        number = number * 26 + ord(letter) - 64
    return number - 1


def sheets(path: Path) -> Dict[str, List[List[str]]]:
    """What a workbook of plumb holds: cells as texts, "" for none."""
    found = {}
    with zipfile.ZipFile(path) as book:
        names = [sheet.get("name") for sheet in
                 ElementTree.fromstring(book.read("xl/workbook.xml")).findall("m:sheets/m:sheet", SPACE)]
        for i, name in enumerate(names):
            rows = []
            tree = ElementTree.fromstring(book.read(f"xl/worksheets/sheet{i + 1}.xml"))
            for row in tree.findall("m:sheetData/m:row", SPACE):
                cells = {column(cell.get("r")): "".join(cell.itertext())
                         for cell in row.findall("m:c", SPACE)}
                rows.append([cells.get(c, "") for c in range(max(cells) + 1)])
            width = len(rows[0])
            found[name] = [row + [""] * (width - len(row)) for row in rows]
    return found


def letters(number: int) -> str:
    text = ""
    while number >= 0:
        text = chr(65 + number % 26) + text
        number = number // 26 - 1
    return text


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def workbook(path: Path, parts: List[List[Row]], shared: bool = True, extra: str = "") -> None:
    """A workbook with sheets part_1, part_2, ..., texts shared or inline."""
    strings: List[str] = []
    head = ('<?xml version="1.0" encoding="UTF-8"?>' + extra +
            '<{0} xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
            'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">')

    def cell(row: int, col: int, value: Optional[object]) -> str:
        where = f'r="{letters(col)}{row + 1}"'
        if value is None:
            return f"<c {where}/>"
        if isinstance(value, bool):
            return f'<c {where} t="b"><v>{int(value)}</v></c>'
        if not isinstance(value, str):
            return f"<c {where}><v>{value!r}</v></c>"
        if shared:
            strings.append(value)
            return f'<c {where} t="s"><v>{len(strings) - 1}</v></c>'
        return f'<c {where} t="inlineStr"><is><t>{escape(value)}</t></is></c>'

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for i, rows in enumerate(parts):
            book.writestr(f"xl/worksheets/sheet{i + 1}.xml", head.format("worksheet") + "<sheetData>" +
                          "".join(f'<row r="{r + 1}">' +
                                  "".join(cell(r, c, v) for c, v in enumerate(row)) + "</row>"
                                  for r, row in enumerate(rows)) + "</sheetData></worksheet>")
        relation = ('<Relationship Id="{0}" Type="http://schemas.openxmlformats.org/officeDocument/'
                    '2006/relationships/{1}" Target="{2}"/>')
        book.writestr("xl/_rels/workbook.xml.rels", '<?xml version="1.0"?><Relationships>' +
                      "".join(relation.format(f"rId{i + 1}", "worksheet", f"worksheets/sheet{i + 1}.xml")
                              for i in range(len(parts))) +
                      relation.format("rId99", "sharedStrings", "sharedStrings.xml") + "</Relationships>")
        book.writestr("xl/workbook.xml", head.format("workbook") + "<sheets>" + "".join(
            f'<sheet name="part_{i + 1}" sheetId="{i + 1}" r:id="rId{i + 1}"/>'
            for i in range(len(parts))) + "</sheets></workbook>")
        book.writestr("xl/sharedStrings.xml", head.format("sst") + "".join(
            f"<si><r><t>{escape(text[:2])}</t></r><r><t>{escape(text[2:])}</t></r>"
            "<rPh><t>reading</t></rPh></si>" for text in strings) + "</sst>")


class Scratch(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="plumb-merge-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.input = self.folder / "in"
        self.input.mkdir()

    def plumb(self, status: int, *words: object) -> subprocess.CompletedProcess:
        done = subprocess.run([str(BUILD / "plumb"), "merge_result", *map(str, words)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600,
                              check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.stderr = done.stderr
        return done

    def merge(self, status: int = 0, *more: object) -> Dict[str, List[List[str]]]:
        out = self.folder / "out"
        for old in out.glob("*"):
            old.unlink()
        self.plumb(status, "-i", self.input, "-o", out, *more)
        (path,) = out.iterdir()
        self.assertRegex(path.name, r"^multi_ranks_compare_merge_\d{14}\.xlsx$")
        return sheets(path)

    def yaml(self, text: str) -> Path:
        path = self.folder / "merge.yaml"
        path.write_text(text)
        return path

    def name(self, rank: int, ending: str = "xlsx", stamp: str = "20260101000000") -> Path:
        return self.input / f"compare_result_rank{rank}_{stamp}.{ending}"

    def csv(self, rank: int, rows: List[Row], stamp: str = "20260101000000") -> None:
        self.csv_of(self.name(rank, "csv", stamp).name, rows)

    def csv_of(self, name: str, rows: List[Row]) -> None:
        with open(self.input / name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)


def rows(*names: str, value: object = 1.5) -> List[Row]:
    return [STATISTICS] + [[name, value, "25.0%", 2.5, 3, True] for name in names]


class Golden(Scratch):
    def test_same_sheets(self) -> None:
        for i, root in enumerate(roots()):
            case = root / "compare" / "ranks_in_comm"
            out = self.folder / f"xlsx{i}"
            self.plumb(0, "-i", case / "merge_in", "-config", case / "merge.yaml", "-o", out)
            (path,) = out.iterdir()
            found = sheets(path)
            for name in ("Max diff", "L2norm diff", "MeanRelativeErr"):
                expected = f"expected_merge_multi_ranks_compare_merge.{name.replace(' ', '_')}.xlsx.csv"
                with open(case / expected, newline="", encoding="utf-8") as file:
                    self.assertEqual(found.pop(name), list(csv.reader(file)))
            self.assertEqual(found, {})

            tables = self.folder / f"csv{i}"
            self.plumb(0, "-i", case / "merge_in", "-config", case / "merge.yaml", "-o", tables, "--csv")
            for path in tables.iterdir():
                index = path.name.split(".")[1]
                expected = case / f"expected_merge_multi_ranks_compare_merge.{index}.xlsx.csv"
                self.assertEqual(path.read_text("utf-8"), expected.read_text("utf-8"))


class Merging(Scratch):
    def test_outer_join(self) -> None:
        workbook(self.name(0), [rows("Tensor.a.0.input.0", "Tensor.c.0.input.0")])
        workbook(self.name(1), [rows("Tensor.b.0.input.0", "Tensor.c.0.input.0", value=7)], shared=False)
        workbook(self.name(10), [rows("Tensor.b.0.input.0", value=9)])
        found = self.merge()
        self.assertEqual(list(found), ["Max diff", "MeanRelativeErr", "Requires_grad Consistent"])
        self.assertEqual(found["Max diff"], [["NPU Name", "rank0", "rank1", "rank10"],
                                             ["Tensor.a.0.input.0", "1.5", "", ""],
                                             ["Tensor.c.0.input.0", "1.5", "7", ""],
                                             ["Tensor.b.0.input.0", "", "7", "9"]])
        self.assertEqual(found["Requires_grad Consistent"][1][1], "True")

    def test_csv_and_xlsx_together(self) -> None:
        workbook(self.name(0), [rows("Tensor.a.0.input.0")])
        self.csv(1, rows("Tensor.a.0.input.0", "Tensor.\"b\",\n.0.x", value=" inf"))
        found = self.merge()["Max diff"]
        self.assertEqual(found[1], ["Tensor.a.0.input.0", "1.5", "inf"])
        self.assertEqual(found[2], ["Tensor.\"b\",\n.0.x", "", "inf"])

    def test_what_is_no_number(self) -> None:
        table = rows("Tensor.a.0.input.0", "Tensor.b.0.input.0", "Tensor.c.0.input.0")
        for row, word in zip(table[1:], ("N/A", "unsupported", "Nan")):
            row[1] = word
        table[2][3:5] = ["tp-0-1", "tp-0-1"]
        table[3][3] = 1e-05
        for rank in (0, 1):
            workbook(self.name(rank), [table])
        found = [row[1] for row in self.merge()["Max diff"]]
        self.assertEqual(found, ["rank0", "NPU:2.5  Bench:3", "NPU:tp-0-1  Bench:tp-0-1",
                                 "NPU:1e-05  Bench:3"])

    def test_config(self) -> None:
        table = rows("Tensor.add.0.forward.input.0", "Distributed.all_reduce.0.forward.input.0",
                     "Distributed.all_reduce_x.0.forward.input.0", "Module.Tensor.add.0.x")
        for rank in (0, 1):
            self.csv(rank, table)
        config = self.yaml("api: [Distributed.all_reduce, 'Tensor.add']\ncompare_index:\n  - Max diff\n")
        found = self.merge(0, "-config", config)
        self.assertEqual(list(found), ["Max diff"])
        self.assertEqual([row[0] for row in found["Max diff"][1:]],
                         ["Distributed.all_reduce.0.forward.input.0", "Tensor.add.0.forward.input.0",
                          "Module.Tensor.add.0.x"])
        found = self.merge(0, "--config-path", self.yaml("api:\n- Tensor.add\ncompare_index:\n"))
        self.assertEqual(len(found), 3)
        self.merge(0, "-config", self.yaml("api:\n- Tensor.add\n- Torch.mm\n"))
        self.assertIn("rank1 has nothing of Torch.mm", self.stderr)

    def test_bad_config(self) -> None:
        for rank in (0, 1):
            self.csv(rank, rows("Tensor.add.0.forward.input.0"))
        for text, says in (("api: Tensor.add\n", "line 1: api must be a list"),
                           ("api:\n- [a]\n", "line 2: api must be a list"),
                           ("api:\n- a\ncompare_index:\n- Max\n", "no column 'Max'"),
                           ("compare_index:\n- Max diff\n- Max\n", "'Max' is a column of no result"),
                           ("a: &x [*x]\n", "aliases"), ("a: [\n", "not YAML"), ("- a\n", "must hold"),
                           ("", "must hold"), ("api:\n- Nope\n", "no rank has a row")):
            self.plumb(2, "-i", self.input, "-o", self.folder / "out", "-config", self.yaml(text))
            self.assertIn(says, self.stderr)
            self.assertFalse((self.folder / "out").exists())

    def test_newest_result_counts(self) -> None:
        self.csv(0, rows("Tensor.a.0.x", value=1))
        self.csv(0, rows("Tensor.a.0.x", value=2), "20260102000000")
        workbook(self.name(0, stamp="20251231235959"), [rows("Tensor.a.0.x", value=3)])
        self.csv(1, rows("Tensor.a.0.x", value=4))
        (self.input / "compare_result_20260101000000.csv").write_text("no rank")
        (self.input / "compare_result_rank2_2026.csv").write_text("no time")
        self.assertEqual(self.merge()["Max diff"][1], ["Tensor.a.0.x", "2", "4"])
        self.assertIn("2 older results", self.stderr)

    def test_graph_dumps(self) -> None:
        """A row for every tensor of every token, and several graphs of a rank."""
        header = ["API Name", "Stack Info", "Data Name", "Token", "In/Out", "Cosine", "Result"]
        places = ("input 0", "input 1", "output 0", "output 0")
        for rank in (0, 1):
            for graph in (1, 10, 2):
                table = [header] + [
                    ["Add", "N/A", "[x, y]", token, place,
                     rank * 1000 + graph * 10 + token + i / 10, "PASS"]
                    for token in (0, 1) for i, place in enumerate(places)]
                self.csv_of(f"compare_result_graph{graph}_rank{rank}_20260101000000.csv", table)
        found = self.merge()["Cosine"]
        self.assertEqual(len(found), 1 + 3 * 2 * 4)
        self.assertEqual(found[1], ["graph1.Add.token0.input.0", "10", "1010"])
        self.assertIn(["graph10.Add.token1.output.0", "101.2", "1101.2"], found)
        self.assertIn(["graph10.Add.token1.output.0#2", "101.3", "1101.3"], found)
        found = self.merge(0, "-config", self.yaml("api: [Add]\ncompare_index: [Result]\n"))
        self.assertEqual(len(found["Result"]), 25)

    def test_only_the_newest_of_a_graph(self) -> None:
        header = ["API Name", "Token", "In/Out", "Cosine"]
        for rank in (0, 1):
            for graph, stamp, value in ((1, "20260101000000", 1), (2, "20260101000000", 2),
                                        (2, "20260101000005", 3)):
                self.csv_of(f"compare_result_graph{graph}_rank{rank}_{stamp}.csv",
                            [header, ["Add", 0, "input 0", value]])
        self.assertEqual(self.merge()["Cosine"][1:], [["graph1.Add.token0.input.0", "1", "1"],
                                                      ["graph2.Add.token0.input.0", "3", "3"]])
        self.assertIn("2 older results", self.stderr)

    def test_parts(self) -> None:
        for rank in (0, 1):
            workbook(self.name(rank), [rows("Tensor.a.0.x"), rows("Tensor.b.0.x"), [["other"], ["x"]]])
        self.assertEqual([row[0] for row in self.merge()["Max diff"]],
                         ["NPU Name", "Tensor.a.0.x", "Tensor.b.0.x"])
        for path in self.input.iterdir():
            path.unlink()
        for rank in (0, 1):
            for part, name in ((2, "Tensor.b.0.x"), (1, "Tensor.a.0.x")):
                self.csv(rank, rows(name), f"20260101000000_part_{part}")
        self.assertEqual([row[0] for row in self.merge()["Max diff"]],
                         ["NPU Name", "Tensor.a.0.x", "Tensor.b.0.x"])

    def test_checksums_are_refused(self) -> None:
        for rank in (0, 1):
            self.csv(rank, [["NPU Name", "NPU MD5", "BENCH MD5", "Result"], ["a.b.0", "1", "1", "pass"]])
        self.plumb(2, "-i", self.input, "-o", self.folder / "out")
        self.assertIn("checksums", self.stderr)

    def test_too_few(self) -> None:
        self.plumb(2, "-i", self.input, "-o", self.folder / "out")
        self.csv(0, rows("Tensor.a.0.x"))
        self.plumb(2, "-i", self.input, "-o", self.folder / "out")
        self.assertIn("only one rank", self.stderr)
        self.plumb(2, "-i", self.folder / "none", "-o", self.folder / "out")
        self.plumb(2, "-i", self.input)

    def test_a_bad_file_costs_its_rank(self) -> None:
        self.csv(0, rows("Tensor.a.0.x"))
        self.csv(1, rows("Tensor.a.0.x"))
        workbook(self.name(2), [rows("Tensor.a.0.x")])
        whole = self.name(2).read_bytes()
        for bad in (whole[:-30], whole[:400] + b"\0" * 50 + whole[450:], b"", b"PK"):
            self.name(2).write_bytes(bad)
            self.assertEqual(self.merge(1)["Max diff"][0], ["NPU Name", "rank0", "rank1"])
            self.assertIn("compare_result_rank2_20260101000000.xlsx", self.stderr)

    def test_entities_are_refused(self) -> None:
        self.csv(0, rows("Tensor.a.0.x"))
        bomb = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
        workbook(self.name(1), [rows("Tensor.a.0.x")], extra=bomb)
        self.merge(1)
        self.assertIn("a document type is refused", self.stderr)

    def test_endless_tags_are_refused(self) -> None:
        """A few kilobytes stand for an attribute, or a comment, that would fill the memory."""
        self.csv(0, rows("Tensor.a.0.x"))
        for extra in ('<a b="%s"/>' % ("x" * (8 << 20)), "<!-- %s -->" % ("x" * (8 << 20))):
            workbook(self.name(1), [rows("Tensor.a.0.x")], extra=extra)
            self.merge(1)
            self.assertIn("a tag of more than 1048576 bytes", self.stderr)

    def test_results_of_plumb_itself(self) -> None:
        """What merge_result writes is read back like anything else."""
        for rank in (0, 1):
            self.csv(rank, rows("Tensor.a.0.x"))
        out = self.folder / "first"
        self.plumb(0, "-i", self.input, "-o", out)
        (path,) = out.iterdir()
        for rank in (0, 1):
            self.name(rank, "csv").unlink()
            self.name(rank).write_bytes(path.read_bytes())
        config = self.yaml("compare_index:\n- rank0\n- rank1\n")
        self.assertEqual(self.merge(0, "-config", config)["rank1"][1], ["Tensor.a.0.x", "1.5", "1.5"])


if __name__ == "__main__":
    unittest.main()
