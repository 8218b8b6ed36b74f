"""--report of the commands beside compare and blame: the page says what exit code and closing line
say, and nothing of what was not looked at."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

import numpy as np

import ge_dump
from ge_dump import Op, Tensor, fx_folder, ge_folder, write_fx, write_ge, write_graph
from page_read import Page

HERE = Path(__file__).resolve().parent
PLUMB = Path(os.environ["PLUMB_BUILD"]) / "plumb"
EXAMPLES = HERE.parents[1] / "examples" / "passcheck"
CASES = HERE.parent / "data" / "golden" / "precheck" / "api_precision_compare"
BAD, DOUBT, UNSEEN, GOOD = range(4)


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def run_plumb(self, *words: object) -> None:
        done = subprocess.run([str(PLUMB), *map(str, words)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, cwd=self.root)
        self.code, self.said, self.errors = done.returncode, done.stdout, done.stderr

    def page(self, *words: object) -> Page:
        path = self.root / "page.html"
        self.run_plumb(*words, "--report", path)
        self.assertIn(self.code, (0, 1), self.errors)
        self.assertIn(f"report: {path}", self.errors)
        page = Page(path)
        self.assertEqual(page.mood == BAD, self.code == 1, page.sentence)
        return page


def tensor(dtype: str, shape: List[int]) -> Dict[str, Any]:
    return {"type": "torch.Tensor", "dtype": f"torch.{dtype}", "shape": shape, "Max": 1, "Min": -1,
            "requires_grad": True}


class TestPreCheck(Case):
    def dump(self, **calls: List[Dict[str, Any]]) -> Path:
        data = {f"{name.replace('_', '.')}.0.forward":
                {"input_args": inputs, "input_kwargs": {}, "output": []}
                for name, inputs in calls.items()}
        path = self.root / "dump.json"
        path.write_text(json.dumps({"framework": "pytorch", "dump_data_dir": None, "data": data}))
        return path

    def check(self, *words: object) -> Page:
        page = self.page("acc_check", "--no-torch", self.root / "dump.json", "-o",
                         self.root / "out", *words)
        line = re.search(r"(\d+) APIs: (\d+) pass, (\d+) warning, (\d+) error, (\d+) skipped",
                         self.said)
        self.assertIsNotNone(line, self.said)
        total, *each = map(int, line.groups())
        self.assertEqual([page.counts.get(word, 0) for word in ("pass", "warning", "error", "skipped")],
                         each)
        self.assertEqual(len(page.column("APIs", "API name")), total)
        return page

    def test_counts_and_what_was_skipped(self) -> None:
        self.dump(Torch_add=[tensor("float32", [2, 3]), tensor("float32", [3])],
                  Torch_nothing=[tensor("float32", [2])], Torch_mm=[tensor("float32", [2])])
        page = self.check()
        self.assertEqual(page.sentence, "None of 1 checked API fails. 2 were skipped.")
        self.assertEqual(page.mood, GOOD)
        self.assertIn("2 skipped or not judged: Torch.nothing.0, Torch.mm.0", page["notes"])
        self.assertEqual(page.names, ["APIs", "outputs"])
        self.assertEqual(page.moods("APIs"), [GOOD, UNSEEN, UNSEEN])

    def test_nothing_checked_is_not_good(self) -> None:
        self.dump(Torch_nothing=[tensor("float32", [2])])
        page = self.check()
        self.assertEqual((page.mood, page.sentence), (UNSEEN, "No API could be checked."))

    def test_both_verdicts(self) -> None:
        self.dump(Torch_add=[tensor("float32", [2, 3]), tensor("float32", [3])])
        page = self.check("--verdict", "both")
        self.assertEqual(page.sentence, "None of 1 API fails. None of 1 judged API is wrong by "
                                        "itself.")
        opinions = re.search(r"second opinion: (.*)", self.said).group(1)
        self.assertEqual({f"second opinion: {word}": int(count) for count, word in
                          re.findall(r"(\d+) ([a-z ]+)", opinions) if int(count)},
                         {word: count for word, count in page.counts.items() if ":" in word})

    def test_a_failing_api(self) -> None:
        """A limit that nothing passes."""
        self.dump(Tensor_exp=[tensor("float16", [64])],
                  Torch_add=[tensor("float32", [2]), tensor("float32", [2])])
        folder = self.root / "out"
        self.run_plumb("acc_check", "--no-torch", "dump.json", "-o", folder)
        result = next(folder.glob("*result*.csv"))
        result.write_text(re.sub(r"(Tensor\.exp\.0),pass", r"\1,error", result.read_text()))
        page = self.check("-csv_path", result)
        self.assertEqual((self.code, page.sentence), (1, "1 of 2 APIs fails."))
        self.assertEqual(page["answer"]["where"], "Tensor.exp.0")
        self.assertEqual(page["answer"]["row"], 0)
        self.assertTrue(any("earlier run" in note for note in page["notes"]), page["notes"])


class TestTwoDevices(Case):
    def compare(self, case: str, *words: object) -> Page:
        page = self.page("api_precision_compare", "-npu", CASES / case / "npu_details.csv", "-gpu",
                         CASES / case / "gpu_details.csv", "-o", self.root / "out", *words)
        line = re.search(r"APIs?: (\d+) pass, (\d+) warning, (\d+) error, (\d+) SKIP", self.said)
        self.assertEqual([page.counts[word] for word in ("pass", "warning", "error", "SKIP")],
                         [int(number) for number in line.groups()])
        return page

    def test_side_by_side(self) -> None:
        page = self.compare("p2_nan_skip_names")
        self.assertEqual(page.sentence, "52 of 100 compared APIs are in error on the device under "
                                        "test. 46 were skipped.")
        self.assertEqual(page["answer"]["where"], "Tensor.add.1")
        self.assertEqual(page.names, ["APIs", "both devices", "outputs"])
        outcome = dict(zip(page.column("both devices", "API Name"),
                           page.column("both devices", "Comparison result")))
        self.assertEqual(outcome["Torch.onlynpu.0.forward.output.0"], "only in the NPU file")
        self.assertEqual(outcome["Torch.onlygpu.0.forward.output.0"], "only in the GPU file")
        self.assertEqual(outcome["Tensor.add.1.forward.output.0"], "error")
        self.assertTrue(any("Torch.onlynpu.0" in note for note in page["notes"]))
        titles = [column["title"] for column in page["tables"][1]["columns"]]
        self.assertIn("NPU Status", titles)
        self.assertEqual(titles[2::2], [title.replace("GPU", "NPU", 1) for title in titles[3::2]])

    def test_rules_of_others(self) -> None:
        page = self.compare("p2_nan_skip_names", "--rules", "msprobe")
        self.assertIn("error", page.column("both devices", "Comparison result"))


class TestPasses(Case):
    def test_a_planted_mistake(self) -> None:
        page = self.page("numeric_check", EXAMPLES / "before.json", EXAMPLES / "after.json")
        failed, compared = re.search(r"(\d+) of (\d+) comparisons failed", self.said).groups()
        self.assertEqual(page.sentence, f"{failed} of {compared} comparisons fail.")
        self.assertEqual(page.counts["failed"], int(failed))

    def test_equal(self) -> None:
        page = self.page("numeric_check", EXAMPLES / "before.json", EXAMPLES / "before.json")
        self.assertEqual(page.mood, GOOD)
        self.assertTrue(page.sentence.startswith("0 of "), page.sentence)

    def test_by_expected(self) -> None:
        page = self.page("numeric_check", EXAMPLES / "before.json", EXAMPLES / "after.json",
                         "--verdict", "expected")
        self.assertEqual(self.code, 1)
        self.assertRegex(page.sentence, r"^\d+ of \d+ judged tensors (is|are) wrong\.$")

    def test_no_page_of_what_failed(self) -> None:
        self.run_plumb("numeric_check", "none.json", "none.json", "--report", "page.html")
        self.assertEqual(self.code, 2)
        self.assertFalse((self.root / "page.html").exists())


class TestGraphDumps(Case):
    def graph(self, off: float) -> None:
        self.ge, self.fx = self.root / "ge", self.root / "fx"
        write_graph(self.ge, [Op(f"Add{i}", ["x", "y"], [f"add_{i}-aten.add.OUTPUT.0"])
                              for i in range(3)])
        for i in range(3):
            a = np.full((3, 4), i + 1, np.float32)
            write_ge(ge_folder(self.ge), "Add", f"Add{i}", i, [Tensor(a), Tensor(a)],
                     [Tensor(a + a + (off if i == 1 else 0))])
            write_fx(fx_folder(self.fx), f"add_{i}-aten.add", [a, a], [a + a])

    def compare(self, *words: object) -> Page:
        return self.page("compare", "--mode", "torchair", self.ge, self.fx, *words)

    def test_agree(self) -> None:
        self.graph(0)
        self.assertEqual(self.compare().mood, GOOD)

    def test_a_wrong_node(self) -> None:
        self.graph(2)
        page = self.compare()
        failed = int(re.search(r"(\d+) fail", self.said).group(1))
        self.assertEqual(page.counts["beyond a limit"], failed)
        self.assertIn(f"{failed} of ", page.sentence)
        self.assertIn("Add1", page["answer"]["where"])
        self.assertEqual(page.moods(page.names[0]).count(BAD), failed)
        page = self.compare("--rules", "msprobe")
        self.assertEqual(self.code, 1)


class TestRulesOfOthers(Case):
    def tree(self, path: str, largest: str) -> None:
        (self.root / path).mkdir(parents=True)
        (self.root / path / "dump.json").write_text(
            '{"task": "statistics", "data": {"Cell.fc.Dense.forward.0": {"input_args": [{"type": '
            '"torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": %s, "Min": -1.5, '
            '"Mean": 0.25, "Norm": 2.5, "requires_grad": true}]}}}' % largest)

    def test_ranks(self) -> None:
        for rank, largest in enumerate(("1.0", "NaN")):
            self.tree(f"t/step0/rank{rank}", largest)
            self.tree(f"g/step0/rank{rank}", "1.0")
        page = self.page("compare", "-tp", "t/step0", "-gp", "g/step0", "-o", "out", "--rules",
                         "msprobe")
        self.assertEqual(page.sentence, "1 of 2 compared tensors is in error.")
        self.assertEqual(page.names, ["rank0", "rank1"])
        self.assertEqual(page["answer"]["where"], "Cell.fc.Dense.forward.0.input.0, rank1")
        self.assertEqual(page.counts["error"], 1)
        page = self.page("compare", "t/step0/rank0", "g/step0/rank0", "--rules", "msprobe")
        self.assertEqual((page.mood, self.code), (GOOD, 0))

    def test_analysis_has_none(self) -> None:
        self.tree("t/step0/rank0", "1.0")
        self.run_plumb("compare", "-da", "t/step0", "t/step0", "--report", "page.html")
        self.assertEqual(self.code, 2)
        self.assertIn("--report has no effect on -da", self.errors)


if __name__ == "__main__":
    unittest.main()
