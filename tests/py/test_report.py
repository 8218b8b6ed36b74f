"""Reports say what the program says elsewhere: on the terminal, as JSON, in its closing line."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np  # noqa: E402
from report_page import BAD, DOUBT, GOOD, ROOT, UNSEEN, Page, plumb  # noqa: E402
from rights import full_disk, make_folder, without_rights  # noqa: E402

DEMO = ("compare", "examples/demo/target", "examples/demo/golden")
OPINIONS = ("compare", "examples/dumps/tensor/npu", "examples/dumps/tensor/gpu", "--verdict", "both")
RANKS = ("compare", "examples/ranks/npu", "examples/ranks/gpu")
BLAME = ("blame", "examples/dumps/tensor/npu", "examples/dumps/tensor/gpu")


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name).resolve()

    def page(self, *words: Any, status: int = 1, cwd: Path = ROOT, **more: Any) -> Page:
        """The report that a command writes; what the command printed is in self.said."""
        out = self.folder / "report.html"
        done = plumb(*words, "-o" if words[0] == "report" else "--report", out, cwd=cwd, **more)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.said = done.stdout
        self.assertEqual(done.stderr, f"report: {out}\n")
        page = Page(out)
        self.sound(page)
        return page

    def sound(self, page: Page) -> None:
        """What holds for every report."""
        data = page.data
        policy, hashes = page.policy()
        for one in hashes:
            self.assertIn(f"'sha256-{one}'", policy)
        self.assertEqual(data["format"], 1)
        self.assertRegex(data["made"], r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")
        self.assertIn(data["answer"]["sentence"], page.plain())
        for number, table in enumerate(data["tables"]):
            for column in table["columns"]:
                for part in ("words", "numbers", "whole"):
                    if part in column:
                        self.assertEqual(column[part]["n"], table["rows"])
                cells = page.column(column["title"], number)
                self.assertEqual(len(cells), table["rows"])
            self.assertLessEqual(set(page.moods(number)), {BAD, DOUBT, UNSEEN, GOOD})
            pages = page.array(table["tensor"])
            self.assertTrue(((pages >= -1) & (pages < len(data["tensors"]))).all())
        of_row: Dict[int, int] = {}  # a call may have several results
        for place, tensor in enumerate(data["tensors"]):
            first = of_row.setdefault(tensor["row"], place)
            self.assertEqual(page.array(data["tables"][0]["tensor"])[tensor["row"]], first)
        for count in data["counts"]:
            self.assertGreater(count["count"], 0)

    def as_table(self, page: Page, rows: List[Dict[str, Any]], titles: List[str], table: int = 0) -> None:
        """The table is that of --format json, cell by cell."""
        self.assertEqual(page.data["tables"][table]["rows"], len(rows))
        for title in titles:
            for k, (cell, row) in enumerate(zip(page.column(title, table), rows)):
                wanted = row[title]
                if isinstance(wanted, (int, float)) and not isinstance(wanted, bool):
                    self.assertEqual(cell, wanted, (title, k))
                elif isinstance(cell, float) and not np.isfinite(cell):  # which JSON has no number for
                    self.assertIn(wanted, (None, "inf", "-inf", "nan", "Infinity", "-Infinity", "NaN"), (title, k))
                else:
                    self.assertEqual(cell or "", wanted or "", (title, k))


def counted(closing: str) -> Dict[str, str]:
    """What the closing line of compare says."""
    found = re.search(r"(?P<compared>\d+) compared: (?P<passed>\d+) pass, (?P<failed>\d+) fail; "
                      r"(?P<unmatched>\d+) unmatched;(?: worst: (?P<worst>\S+) [^;]*;)? "
                      r"first failure: (?P<first>\S+) \((?P<why>.*?)\);", closing)
    assert found, closing
    return found.groupdict()


class Facts(Case):
    def test_demo(self) -> None:
        page = self.page(*DEMO)
        closing = counted(self.said.splitlines()[-1])
        table = json.loads(plumb(*DEMO, "--format", "json").stdout)
        answer = page.data["answer"]
        self.assertEqual(answer["sentence"], "20 of 119 tensors fail.")
        self.assertEqual((closing["failed"], closing["compared"]), ("20", "119"))
        self.assertEqual(page.counts, {"beyond a limit": int(closing["failed"]), "passed": int(closing["passed"])})
        self.assertEqual((answer["mood"], answer["where"]), (BAD, closing["first"]))
        self.assertEqual(answer["sure"].splitlines()[0], closing["why"])
        self.assertIn("119 compared: 99 pass, 20 fail; 0 unmatched; standard: xray", answer["sure"])
        self.assertIn(closing["first"], page.plain())
        self.as_table(page, table["rows"], page.titles())
        names = page.column("Module (Bench/Target)")
        failed = [row["Status"] == "Fail" for row in table["rows"]]
        self.assertEqual([mood == BAD for mood in page.moods()], failed)
        self.assertEqual(names[answer["row"]], closing["first"])
        self.assertEqual(answer["row"], failed.index(True))
        self.assertEqual([tensor["name"] for tensor in page.data["tensors"]],
                         [name for name, bad in zip(names, failed) if bad])
        self.assertEqual(page.data["command"], "compare")
        self.assertEqual(page.data["reproduce"],
                         f"plumb {' '.join(DEMO)} --report {self.folder / 'report.html'}")
        self.assertEqual(dict(page.data["facts"])["target"], DEMO[1])

    def test_demo_along_the_network(self) -> None:
        page = self.page(*DEMO)
        net = page.data["network"]
        total, row = page.array(net["total"]), page.array(net["row"])
        closing = counted(self.said.splitlines()[-1])
        self.assertEqual(len(net["names"]), 32)
        worst = net["names"][int(np.nanargmax(total))]
        self.assertTrue(closing["worst"].startswith(worst), worst)
        self.assertRegex(self.said, rf"relative distance {total[np.nanargmax(total)]:.3g}\)")
        names = page.column("Module (Bench/Target)")
        for call, first in zip(net["names"], row):
            self.assertTrue(names[first].startswith(call), (call, names[first]))
        moods = page.array(net["mood"])
        first = net["names"][int(np.argmax(moods == BAD))]
        self.assertTrue(closing["first"].startswith(first))
        self.assertEqual({net["modules"][m] for m, mood in zip(page.array(net["module"]), moods) if mood == BAD}
                         & {"blocks.0.norm1", "blocks.2.norm2"}, {"blocks.2.norm2"})
        self.assertTrue(np.isnan(page.array(net["local"])).all())
        self.assertTrue((page.array(net["band"])[total > 0] > 0).all())
        self.assertEqual([net["words"][word] for word in page.array(net["word"])],
                         ["beyond a limit" if mood == BAD else "passed" for mood in moods])

    def test_second_opinions(self) -> None:
        page = self.page(*OPINIONS)
        table = json.loads(plumb(*OPINIONS, "--format", "json").stdout)
        self.as_table(page, table["rows"], page.titles())
        said = re.search(r"Second opinion: .*?; first fault: (\S+) \((.*)\)$", self.said, re.M)
        assert said
        answer = page.data["answer"]
        self.assertEqual(answer["sentence"], "2 results are wrong by their own call.")
        self.assertEqual(answer["where"], said[1])
        self.assertEqual(answer["sure"].splitlines()[0], said[2])
        self.assertIn("5 results judged: 2 fault, 2 inherited, 1 same; 1 not judged", answer["sure"])
        verdicts = page.column("Verdict")
        self.assertEqual(verdicts.count("fault"), page.counts["fault"])
        self.assertEqual(page.column("API Name")[answer["row"]], said[1])
        net = page.data["network"]
        local = dict(zip(net["names"], page.array(net["local"])))
        limit = dict(zip(net["names"], page.array(net["limit"])))
        self.assertEqual(f"{local['Functional.gelu.0.forward']:.3g}", "2.61e+05")
        self.assertIn(f"limit {limit['Functional.gelu.0.forward']:.3g}", answer["sure"])
        tensor = next(one for one in page.data["tensors"] if one["name"] == said[1])
        self.assertEqual(dict(tensor["facts"])["verdict"], "fault")
        self.assertEqual(dict(tensor["facts"])["why"], said[2])
        self.assertIn("model.py, line 12", tensor["stack"][0])

    def test_blame(self) -> None:
        page = self.page(*BLAME)
        found = json.loads(plumb(*BLAME, "--format", "json").stdout)
        answer = page.data["answer"]
        first = found["faults"][0]
        self.assertEqual(answer["sentence"], f"{len(found['faults'])} of {found['calls']} judged calls are wrong.")
        self.assertTrue(answer["where"].startswith(f"{first['call']}, {first['result']}"))
        self.assertIn(f"1. {answer['where']}\n", self.said)
        self.assertEqual(answer["sure"], first["why"])
        self.assertEqual(answer["next"], [first["replay"]])
        self.assertEqual(page.counts, {word: count for word, count in found["verdicts"].items() if count})
        self.assertEqual([call for call, verdict in zip(page.column("Call"), page.column("Verdict"))
                          if verdict == "fault"].count(first["call"]), 1)
        self.assertEqual(page.column("Call")[answer["row"]], first["call"])
        self.assertEqual(page.column("Why")[answer["row"]], first["why"])
        gelu = page.column("Call").index("Functional.gelu.0.forward")
        self.assertEqual(page.column("Worst")[gelu], found["faults"][1]["worst"])
        self.assertEqual(page.column("Limit")[gelu], found["faults"][1]["limit"])

    def test_ranks(self) -> None:
        page = self.page(*RANKS)
        closing = counted(self.said.splitlines()[-1])
        table = json.loads(plumb(*RANKS, "--format", "json").stdout)
        self.as_table(page, table["rows"], page.titles())
        self.assertEqual(page.data["answer"]["where"], closing["first"])
        self.assertEqual(page.data["answer"]["sentence"], "12 of 26 tensors fail.")
        net, grid = page.data["network"], page.data["grids"][0]
        self.assertEqual(sorted(set(page.array(net["rank"]).tolist())), [0, 1])
        self.assertEqual(grid["down"], ["rank 0", "rank 1"])
        moods = page.array(grid["mood"]).reshape(2, len(grid["across"]))
        gelu = next(k for k, name in enumerate(grid["across"]) if "gelu" in name)
        self.assertEqual(moods[:, gelu].tolist(), [GOOD, BAD])  # the planted one
        rows = page.array(grid["row"]).reshape(moods.shape)
        self.assertEqual(page.column("Rank")[rows[1, gelu]], 1)

    def test_agreement(self) -> None:
        page = self.page("compare", DEMO[2], DEMO[2], status=0)
        self.assertEqual(page.data["answer"]["sentence"], "All 119 tensors agree.")
        self.assertEqual((page.data["answer"]["mood"], page.data["answer"]["row"]), (GOOD, -1))
        self.assertEqual((page.counts, page.data["tensors"]), ({"passed": 119}, []))

    def test_nothing_but_nan(self) -> None:
        """Equal on both sides, and yet nobody calls that good."""
        np.save(self.folder / "a.npy", np.full((3, 4), np.nan, np.float32))
        page = self.page("compare", self.folder / "a.npy", self.folder / "a.npy", status=0)
        self.assertEqual(page.data["answer"]["sentence"], "The only tensor agrees, and is suspicious.")
        self.assertEqual(page.data["answer"]["mood"], DOUBT)

    def test_unmatched(self) -> None:
        """What was not compared is not called good."""
        np.savez(self.folder / "a.npz", one=np.ones(3, np.float32), two=np.ones(3, np.float32))
        np.savez(self.folder / "b.npz", one=np.ones(3, np.float32), other=np.zeros(7, np.float32))
        page = self.page("compare", self.folder / "a.npz", self.folder / "b.npz", "--match", "exact", status=1)
        self.assertEqual(page.data["answer"]["sentence"], "2 of 3 tensors could not be compared.")
        self.assertEqual(page.data["answer"]["mood"], BAD)  # as the exit code
        self.assertEqual(page.counts, {"only in the target": 1, "only in the golden run": 1, "passed": 1})
        np.savez(self.folder / "c.npz", other=np.zeros(7, np.float32))
        page = self.page("compare", self.folder / "a.npz", self.folder / "c.npz", "--match", "exact", status=1)
        self.assertEqual(page.data["answer"]["sentence"], "Nothing could be compared.")
        self.assertEqual(page.data["answer"]["mood"], UNSEEN)


class Tables(Case):
    """plumb report."""

    def test_precheck(self) -> None:
        done = plumb("acc_check", "-api_info", ROOT / "examples/precheck/dump.json", "-o", self.folder)
        summary = done.stdout.splitlines()[0]
        self.assertRegex(summary, r"\A\d+ APIs: \d+ pass, 0 warning, 0 error, \d+ skipped\Z")
        tables = sorted(self.folder.glob("accuracy_checking_*.csv"))
        page = self.page("report", *tables, "--title", "Pre-check", status=0)
        self.assertEqual(page.data["title"], "Pre-check")
        self.assertIn("<title>Pre-check</title>", page.shell)
        self.assertEqual([table["name"] for table in page.data["tables"]], [path.name for path in tables])
        total = 0
        for number, path in enumerate(tables):
            with path.open(encoding="utf-8", newline="") as file:
                titles, *rows = csv.reader(file)
            total += len(rows)
            self.assertEqual(page.titles(number), titles)
            for k, title in enumerate(titles):
                for cell, row in zip(page.column(title, number), rows):
                    if isinstance(cell, float):
                        self.assertEqual(cell, float(row[k]))
                    else:
                        self.assertEqual((cell or "").strip(), row[k].strip())
        good = page.moods(1).count(GOOD)
        self.assertIn(f"{good} pass", summary)
        self.assertNotIn(BAD, page.moods(0) + page.moods(1))
        self.assertEqual(sum(page.counts.values()), total)
        self.assertEqual(page.data["answer"]["sentence"], f"None of the {page.counts['good']} judged rows is bad.")

    def test_two_devices(self) -> None:
        sides = [ROOT / "examples/precision" / f"{name}.csv" for name in ("npu", "gpu")]
        done = plumb("api_precision_compare", "-npu", sides[0], "-gpu", sides[1], "-o", self.folder)
        self.assertIn("1 error", done.stdout)
        result = sorted(self.folder.glob("*.csv"))
        page = self.page("report", *result, *sides, status=0)
        self.assertEqual(page.data["answer"]["mood"], BAD)
        self.assertEqual(page.data["answer"]["where"], "Functional.gelu.0.forward.output.0")
        self.assertEqual([page.moods(k).count(BAD) for k in range(2)], [1, 1])
        self.assertEqual(sum(page.moods(k).count(BAD) for k in range(4)), page.counts["bad"])

    def test_results_of_compare(self) -> None:
        """A table that compare wrote says the same as the report of compare."""
        plumb(*DEMO, self.folder / "table.csv")
        page = self.page("report", self.folder / "table.csv", status=0)
        self.assertEqual(page.moods().count(BAD), 20)
        self.assertEqual(page.data["answer"]["where"], "blocks.2.norm2.LayerNorm.5.forward_output.0")

    def test_one_that_cannot_be_read(self) -> None:
        done = plumb("report", "no-such.csv", ROOT / "examples/precision/npu.csv", "-o", self.folder / "r.html")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no-such.csv", done.stderr)
        page = Page(self.folder / "r.html")  # with the other
        self.assertEqual(len(page.data["tables"]), 1)
        self.assertIn("no-such.csv", " ".join(page.data["notes"] + [page.data["answer"]["sure"]]))


class Files(Case):
    def test_beside_other_output(self) -> None:
        """The report changes nothing of what else is written."""
        for words in (DEMO, OPINIONS, BLAME):
            alone = plumb(*words)
            beside = plumb(*words, "--report", self.folder / "r.html")
            self.assertEqual((alone.returncode, alone.stdout), (beside.returncode, beside.stdout))
        done = plumb(*DEMO, self.folder / "table.csv", "--report", self.folder / "r.html")
        self.assertEqual(done.returncode, 1)
        plumb(*DEMO, self.folder / "alone.csv")
        self.assertEqual((self.folder / "table.csv").read_bytes(), (self.folder / "alone.csv").read_bytes())
        with (self.folder / "table.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["Index"] for row in rows],
                         [f"{cell:g}" for cell in Page(self.folder / "r.html").column("Index")])
        done = plumb(*DEMO, "--format", "json", "--report", self.folder / "r.html")
        json.loads(done.stdout)

    def test_folder_for_tables(self) -> None:
        done = plumb("compare", "-tp", DEMO[1], "-gp", DEMO[2], "-o", self.folder / "out", "--report",
                     self.folder / "r.html")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(list((self.folder / "out").glob("compare_result_*.csv"))), 1)
        self.assertEqual(Page(self.folder / "r.html").counts, {"beyond a limit": 20, "passed": 99})

    def test_quiet(self) -> None:
        done = plumb(*DEMO, "--quiet", "--report", self.folder / "r.html")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertEqual(Page(self.folder / "r.html").counts["passed"], 99)

    def test_replaces(self) -> None:
        """An older report is replaced as a whole."""
        out = self.folder / "report.html"
        out.write_text("x" * 10_000_000, "utf-8")
        self.page(*DEMO)
        self.assertLess(out.stat().st_size, 1_000_000)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["report.html"])

    def test_places_that_cannot_be_written(self) -> None:
        (self.folder / "folder").mkdir()
        for place in ("no/such/folder/r.html", "folder", ""):
            for words in (DEMO, BLAME):
                with self.subTest(place=place, command=words[0]):
                    done = plumb(*words, "--report", self.folder / place if place else "")
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertRegex(done.stderr, r"\Aplumb: .*\S\n\Z")
        done = plumb("report", ROOT / "examples/precision/npu.csv", "-o", self.folder / "folder")
        self.assertEqual(done.returncode, 2)
        self.assertIn("folder", done.stderr)

    def test_full_disk(self) -> None:
        build = Path(os.environ["PLUMB_BUILD"])
        out = self.folder / "r.html"
        done = plumb(*DEMO, "--report", out, env=full_disk(build, 50_000))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("r.html", done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_no_right_to_write(self) -> None:
        folder = make_folder("plumb-report-")
        self.addCleanup(shutil.rmtree, folder)
        np.savez(folder / "a.npz", x=np.ones(3, np.float32))
        (folder / "a.npz").chmod(0o644)
        (folder / "shut").mkdir(mode=0o555)
        program, how = without_rights(str(Path(os.environ["PLUMB_BUILD"]) / "plumb"), folder)
        done = subprocess.run([program, "compare", str(folder / "a.npz"), str(folder / "a.npz"), "--report",
                               str(folder / "shut" / "r.html")], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, **how)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("shut/r.html", done.stderr)

    def test_same_data_each_time(self) -> None:
        """Threads and SIMD levels change nothing."""
        def facts(*more: str) -> Any:
            page = self.page(*DEMO, *more)
            for part in ("made", "reproduce", "facts"):
                del page.data[part]
            return page.data, page.bulk
        self.assertEqual(facts("--threads", "1"), facts("--threads", "4"))
        self.assertEqual(facts("--cpu-mask", "0"), facts())


if __name__ == "__main__":
    unittest.main()
