"""compare and api_precision_compare --verdict: second opinions on the calls of a dump. numpy stands for the
device in dumps that are written here; a small transformer is recorded with PyTorch."""

import csv
import json
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "verdicts"))
import test_blame  # noqa: E402
from test_blame import Dump, plumb  # noqa: E402
from test_digest import on_terminal  # noqa: E402

NORM, LINEAR, RELU = "Functional.layer_norm.0", "Functional.linear.0", "Functional.relu.0"
Rows = Dict[str, Dict[str, Any]]


class Case(test_blame.Case):
    def compare(self, target: Path, golden: Path, *more: str, status: int = 0) -> Tuple[Rows, str]:
        done = plumb("compare", target, golden, "--format", "json", *more, status=status)
        rows = json.loads(done.stdout)["rows"]
        return {row["API Name"]: row for row in rows}, done.stderr

    def words(self, rows: Rows) -> Dict[str, str]:
        return {name: row["Verdict"] for name, row in rows.items() if row["Verdict"]}


class Words(Case):
    def test_fault(self) -> None:
        """The call that is wrong is a fault; what follows from it is inherited, and its source is named."""
        rows, said = self.compare(self.make("bad", fault=1.01), self.make("good"), "--verdict", "expected",
                                  status=1)
        self.assertEqual(rows[f"{NORM}.forward.output.0"]["Verdict"], "fault")
        self.assertIn("scaled by 1.01", rows[f"{NORM}.forward.output.0"]["Why"])
        self.assertEqual(rows[f"{RELU}.forward.output.0"]["Verdict"], "inherited")
        self.assertIn(f"since {RELU}.forward.input.0 is 1 % from it", rows[f"{RELU}.forward.output.0"]["Why"])
        self.assertIn(rows[f"{LINEAR}.forward.output.0"]["Verdict"], ("same", "rounding"))
        for k in range(3):
            self.assertIn(rows[f"{LINEAR}.backward.output.{k}"]["Verdict"], ("same", "rounding"))
        self.assertIsNone(rows[f"{NORM}.forward.input.0"]["Verdict"])
        self.assertEqual(rows[f"{NORM}.forward.output.0"]["Judged by"], "expected 2; seed 1234")
        self.assertLess(said.index("; first fault: " + NORM), said.index("first failure: "))
        self.assertRegex(said, r"\ASecond opinion: \d+ results judged: 1 fault, 1 inherited, ")

    def test_gradient_of_wrong_inputs(self) -> None:
        """A gradient inherits from what went in forward, too."""
        rows, _ = self.compare(self.make("off", off=0.1), self.make("good"), "--verdict", "expected")
        weight = rows[f"{LINEAR}.backward.output.1"]
        self.assertEqual(weight["Verdict"], "inherited")
        self.assertIn(f"since {LINEAR}.forward.input.0 is ", weight["Why"])
        self.assertNotEqual(rows[f"{LINEAR}.backward.output.0"]["Verdict"], "inherited")

    def test_golden_is_wrong(self) -> None:
        rows, said = self.compare(self.make("good"), self.make("bad", fault=1.01), "--verdict", "expected")
        row = rows[f"{NORM}.forward.output.0"]
        self.assertIn(row["Verdict"], ("same", "rounding"))
        self.assertRegex(row["Why"], "the golden run is 0.99 % away from the same inputs: look there")
        self.assertNotIn("first fault", said)

    def test_not_judged(self) -> None:
        """It is counted and named, and no pass."""
        rows, said = self.compare(self.make("a"), self.make("b"), "--verdict", "expected")
        self.assertEqual(rows["Functional.gumbel_softmax.0.forward.output.0"]["Verdict"], "not judged")
        self.assertEqual(rows["Torch.frobnicate.0.forward.output.0"]["Why"], "plumb has no operator frobnicate")
        self.assertIn("; 2 not judged (1: ", said)

    def test_wrong_gradient_by_its_place(self) -> None:
        """Of several results only the wrong one is a fault."""
        dump = self.make("bad").parent
        path = dump / "dump_tensor_data" / f"{LINEAR}.backward.output.1.npy"
        np.save(path, np.load(path) * np.float32(1.001))
        rows, _ = self.compare(dump, self.make("good"), "--verdict", "expected", status=1)
        self.assertEqual([name for name, word in self.words(rows).items() if word == "fault"],
                         [f"{LINEAR}.backward.output.1"])

    def test_unmatched(self) -> None:
        """A word of its own, which does not fail; the call of the target is judged all the same."""
        target, golden = self.make("good"), self.make("other")
        for path, call in ((golden, RELU), (target, "Torch.frobnicate.0")):
            entries = json.loads(path.read_text())
            del entries["data"][f"{call}.forward"]
            path.write_text(json.dumps(entries))
        rows, said = self.compare(target, golden, "--verdict", "expected")
        words = self.words(rows)
        self.assertEqual(words["Torch.frobnicate.0.forward.output.0"], "unmatched")
        self.assertEqual(words[f"{RELU}.forward.output.0"], "same")
        self.assertIn("; 4 unmatched", said)
        self.compare(target, golden, "--verdict", "both", status=1)

    def test_first_fault_in_order_of_execution(self) -> None:
        """Rows without a partner stand at the end of the table, but a fault there may be the first."""
        target, golden = self.make("bad", fault=1.01), self.make("good")
        path = target.parent / "dump_tensor_data" / f"{RELU}.forward.output.0.npy"
        np.save(path, np.load(path) * np.float32(1.5))
        entries = json.loads(golden.read_text())
        del entries["data"][f"{NORM}.forward"]
        golden.write_text(json.dumps(entries))
        _, said = self.compare(target, golden, "--verdict", "expected", status=1)
        self.assertIn(f"; first fault: {NORM}.forward.output.0 (", said)

    def test_ranks_and_steps(self) -> None:
        for side, fault in (("npu", 1.01), ("gpu", 1.0)):
            for rank in range(2):
                made = self.make("one", fault=fault if rank else 1.0).parent
                shutil.copytree(made, self.folder / side / "step3" / f"rank{rank}")
                shutil.rmtree(made)
        done = plumb("compare", self.folder / "npu", self.folder / "gpu", "-o", self.folder / "out", "--verdict",
                     "expected", status=1)
        faults = {}
        for path in (self.folder / "out").glob("compare_result_rank*.csv"):
            with open(path, newline="") as file:
                rows = list(csv.DictReader(file))
            faults[path.name[:20]] = [r["API Name"] for r in rows if r["Verdict"] == "fault"]
            self.assertGreater(len({r["Verdict"] for r in rows}), 2)
        self.assertEqual(faults, {"compare_result_rank0": [], "compare_result_rank1": [f"{NORM}.forward.output.0"]})
        self.assertEqual(done.stdout.count("Second opinion: "), 2)


class Deciding(Case):
    def test_rules_are_as_ever(self) -> None:
        """Without --verdict, and with rules, nothing is added."""
        a, b = self.make("a", fault=1.01), self.make("b")
        for words in ((), ("--verdict", "rules")):
            rows, said = self.compare(a, b, *words, status=1)
            self.assertNotIn("Verdict", rows[f"{NORM}.forward.output.0"])
            self.assertNotIn("opinion", said)

    def test_exit_codes(self) -> None:
        """A fault below the limits of the rules, and a difference that no call is guilty of."""
        good, small = self.make("good"), self.make("small", fault=1.0008)
        for words, status in (((), 0), (("--verdict", "expected"), 1), (("--verdict", "both"), 1)):
            plumb("compare", small, good, *words, status=status)
        off = self.make("off", off=0.5)
        for words, status in (((), 1), (("--verdict", "expected"), 0), (("--verdict", "both"), 1)):
            plumb("compare", off, good, *words, status=status)

    def test_only(self) -> None:
        """--only follows what decides."""
        off, good = self.make("off", off=0.5), self.make("good")
        rows, _ = self.compare(off, good, "--verdict", "expected", "--only", "suspicious")
        self.assertEqual({row["Verdict"] for row in rows.values()}, {"not judged"})
        rows, _ = self.compare(off, good, "--verdict", "both", "--only", "fail", status=1)
        self.assertEqual({row["Result"] for row in rows.values()}, {"FAIL"})

    def test_cheaper_arithmetic(self) -> None:
        """It is suspicious, and nothing when it is meant."""
        paths = {}
        for name in ("cheap", "good"):
            self.rng = np.random.default_rng(3)
            dump = Dump(self.folder / name)
            x = self.numbers(64, 64)
            y = np.exp(x.astype(np.float64)).astype(np.float32)
            if name == "cheap":  # rounded to bfloat16
                bits = y.view(np.uint32)
                y = ((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)
            dump.forward("Torch.exp.0", [x], [y])
            paths[name] = dump.save()
        rows, _ = self.compare(paths["cheap"], paths["good"], "--verdict", "expected")
        row = rows["Torch.exp.0.forward.output.0"]
        self.assertEqual(row["Verdict"], "cheaper arithmetic")
        rows, _ = self.compare(paths["cheap"], paths["good"], "--verdict", "expected", "--arithmetic",
                               "bf16-result")
        row = rows["Torch.exp.0.forward.output.0"]
        self.assertRegex(row["Why"], "allowed: ")
        self.assertEqual(row["Judged by"], "expected 2; seed 1234; allowed bf16-result")
        done = plumb("compare", paths["cheap"], paths["good"], "--verdict", "expected", "--arithmetic", "tf33",
                     status=2)
        self.assertIn("tf33", done.stderr)

    def test_nothing_to_judge(self) -> None:
        """That is no success, and says what would be needed."""
        for side in "ab":
            np.savez(self.folder / f"{side}.npz", x=np.ones(3))
        for verdict in ("expected", "both"):
            done = plumb("compare", self.folder / "a.npz", self.folder / "b.npz", "--verdict", verdict, status=2)
            self.assertIn("1 not judged (1: not a recorded call)", done.stdout)
            self.assertRegex(done.stderr, r"\Aplumb: no result could be judged: .*dump\.json, level L1")
        dump = Dump(self.folder / "statistics")
        x = self.numbers(4, 4)
        dump.forward("Torch.exp.0", [x], [np.exp(x)], values=False)
        path = dump.save()
        done = plumb("compare", path, path, "--verdict", "expected", status=2)
        self.assertRegex(done.stdout, r"0 results judged; 1 not judged \(1: .*recorded")

    def test_refused(self) -> None:
        """No columns for it, or nothing to listen to it."""
        a, b = self.make("a"), self.make("b")
        for words, why in ((("--columns", "xray"), "xray columns"),
                           (("--rules", "msprobe"), "tables of msprobe"),
                           (("--columns", "msprobe"), "tables of msprobe"),
                           (("-da",), "-da"), (("--memory", "lots"), "512M")):
            done = plumb("compare", a, b, "--verdict", "both", *words, status=2)
            self.assertIn(why, done.stderr)
        for option in ("--arithmetic", "--seed", "--baseline", "--write-baseline"):
            done = plumb("compare", a, b, option, "1", status=2)
            self.assertIn(f"{option} needs --verdict expected or both", done.stderr)

    def test_baseline(self) -> None:
        """What is accepted does not fail; what is new or worse does."""
        bad, good, file = self.make("bad", fault=1.01), self.make("good"), self.folder / "known.json"
        plumb("compare", bad, good, "--verdict", "expected", "--write-baseline", file, status=0)
        done = plumb("compare", bad, good, "--verdict", "expected", "--baseline", file, status=0)
        self.assertIn("baseline: accepted: 1, new: 0, worse: 0, gone: 0", done.stdout)
        plumb("compare", bad, good, "--verdict", "both", "--baseline", file, status=1)  # the rules object
        _, said = self.compare(bad, good, "--verdict", "expected", "--baseline", str(file))
        self.assertIn("baseline: accepted: 1,", said)
        path = bad.parent / "dump_tensor_data" / f"{RELU}.forward.output.0.npy"
        np.save(path, np.load(path) * np.float32(1.5))
        done = plumb("compare", bad, good, "--verdict", "expected", "--baseline", file, status=1)
        self.assertIn("new: 1", done.stdout)
        self.assertIn(f"{RELU}.forward.output.0", done.stdout)
        done = plumb("compare", bad, good, "--verdict", "expected", "--baseline", file, "--seed", "5", status=2)
        self.assertIn("seed", done.stderr)

    def test_threads(self) -> None:
        """The same table for any number of threads, and with little memory."""
        a, b = self.make("a", fault=1.01), self.make("b")
        texts = {plumb("compare", a, b, "--verdict", "both", "--format", "csv", *more, status=1).stdout
                 for more in (("--threads", "1"), ("--threads", "7"), ("--memory", "64M"))}
        self.assertEqual(len(texts), 1)
        self.assertRegex(texts.pop(), ',fault,"[^"]*scaled by 1.01')


class Hostile(Case):
    def test_damage(self) -> None:
        """A bad file costs its row; a bad dump.json of calls costs the opinions."""
        a, b = self.make("a", fault=1.01), self.make("b")
        data = a.parent / "dump_tensor_data"
        (data / f"{LINEAR}.forward.input.1.npy").write_bytes(b"\x93NUMPY")
        rows, _ = self.compare(a, b, "--verdict", "expected", status=1)
        self.assertEqual(rows[f"{LINEAR}.forward.output.0"]["Verdict"], "not judged")
        self.assertIn("input.1", rows[f"{LINEAR}.forward.output.0"]["Why"])
        self.assertEqual(rows[f"{NORM}.forward.output.0"]["Verdict"], "fault")

    def test_odd_results(self) -> None:
        """Results of other kinds than the operator gives, and names that lead nowhere."""
        x = self.numbers(4, 4)
        for results in ([None], [3], [], [x, x], [np.exp(x)[:2]], ["\x1b[2Jevil"]):
            with self.subTest(results=results):
                dump = Dump(self.folder / "odd")
                dump.forward("Torch.exp.0", [x], results)
                dump.forward("Torch.neg.0", [x], [-x])
                path = dump.save()
                done = plumb("compare", path, path, "--verdict", "expected", "--format", "json")
                self.assertIn(done.returncode, (0, 1), done.stderr)
                words = [row["Verdict"] for row in json.loads(done.stdout)["rows"]]
                self.assertEqual(words[-1], "same")
                self.assertNotIn("\x1b", done.stdout + done.stderr)
                shutil.rmtree(self.folder / "odd")


class Terminal(Case):
    def test_digest(self) -> None:
        """Faults first, with their neighbours; every name can be told from the others at 80 columns."""
        for name, factor in (("npu", 1.01), ("gpu", 1.0)):
            self.rng = np.random.default_rng(1)
            dump = Dump(self.folder / name)
            x = self.numbers(32, 32)
            for k in range(30):
                y = np.tanh(x.astype(np.float64)).astype(np.float32)
                y = y * np.float32(factor) if k == 12 else y
                dump.forward(f"Torch.tanh.{k}", [x], [y])
                x = y
            dump.save()
        for columns in (80, 200):
            status, shown = on_terminal(columns, "compare", "npu", "gpu", "--verdict", "expected",
                                        cwd=self.folder)
            self.assertEqual(status, 1)
            lines = shown.splitlines()
            self.assertTrue(lines[0].startswith("Second opinion: 30 results judged: 1 fault, "), shown)
            self.assertIn("First fault, with the rows around it: Torch.tanh.12.forward.output.0", shown)
            self.assertIn("| Torch.tanh.12.forward.output.0", shown)
            self.assertIn("1 at fault: the call itself is wrong (--only fail)", shown)
            self.assertLessEqual(max(map(len, lines)), columns)
            self.assertNotIn("First failure", shown)
        status, shown = on_terminal(80, "compare", "gpu", "gpu", "--verdict", "expected", cwd=self.folder)
        self.assertEqual(status, 0)
        self.assertNotIn("fault", shown)


class Python(Case):
    def test_report(self) -> None:
        code = """
import sys, plumb
bad, good = sys.argv[1:]
report = plumb.compare(bad, good, verdict="expected")
assert not report and report.verdicts["fault"] == 1, report.verdicts
assert plumb.compare(good, good, verdict="both")
assert [row["Verdict"] for row in report].count("fault") == 1
assert plumb.compare(bad, good).verdicts == {}
for wrong in (dict(verdict="best"), dict(verdict="expected", arithmetic="tf33")):
    try:
        plumb.compare(bad, good, **wrong)
    except plumb.Error:
        continue
    raise SystemExit(str(wrong))
try:
    plumb.compare([1.0], [1.0], verdict="expected")
except plumb.Error as error:
    assert "recorded calls" in str(error)
else:
    raise SystemExit("memory")
"""
        env = {**test_blame.os.environ, "PYTHONPATH": str(test_blame.BUILD / "python")}
        done = test_blame.subprocess.run([sys.executable, "-c", code, str(self.make("bad", fault=1.01)),
                                          str(self.make("good"))], env=env, stdout=-1, stderr=-1, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


class Devices(Case):
    """api_precision_compare."""

    def details(self, name: str, *more: str, fault: float = 1.0) -> Path:
        folder = self.folder / f"out_{name}"
        plumb("acc_check", self.make(name, fault=fault), "-d", "recorded", "-o", folder, *more)
        return next(folder.glob("accuracy_checking_details_*.csv"))

    def judge(self, npu: Path, gpu: Path, *more: str, status: int) -> Tuple[str, str, List[Dict[str, str]],
                                                                           List[Dict[str, str]]]:
        with tempfile.TemporaryDirectory() as out:
            done = plumb("api_precision_compare", "-npu", npu, "-gpu", gpu, "-o", out, *more, status=status)
            tables = []
            for kind in ("details", "result"):
                found = list(Path(out).glob(f"api_precision_compare_{kind}_*.csv"))
                with open(found[0] if found else "/dev/null", newline="") as file:
                    tables.append(list(csv.DictReader(file)))
        return done.stdout, done.stderr, tables[0], tables[1]

    def test_fault(self) -> None:
        npu, gpu = self.details("npu", fault=1.0008), self.details("gpu")
        said, _, details, results = self.judge(npu, gpu, "--verdict", "expected", status=1)
        self.assertRegex(said, r"second opinion: .*\b1 fault\b")
        row, = [r for r in details if r["API name"] == f"{NORM}.forward.output.0"]
        self.assertEqual(row["Verdict"], "fault")
        self.assertIn(row["GPU Verdict"], ("same", "rounding"))
        row, = [r for r in results if r["API name"] == NORM]
        self.assertEqual(row["Verdict"], "fault")
        self.assertRegex(row["Why"], r"\Aforward\.output\.0: .*scaled by 1\.000\d+")
        self.judge(gpu, npu, "--verdict", "expected", status=0)

    def test_shared(self) -> None:
        npu, gpu = self.details("npu", fault=1.02), self.details("gpu", fault=1.02)
        said, _, _, results = self.judge(npu, gpu, "--verdict", "both", status=1)
        self.assertIn("the trusted device has 1 of the faults, too", said)
        row, = [r for r in results if r["API name"] == NORM]
        self.assertTrue(row["Why"].endswith("; the trusted device has it too"), row)

    def test_rules(self) -> None:
        """As ever: the columns are neither needed nor written."""
        npu, gpu = self.details("npu"), self.details("gpu")
        _, _, details, results = self.judge(npu, gpu, status=0)
        self.assertNotIn("Verdict", {**details[0], **results[0]})

    def test_refused(self) -> None:
        npu, gpu = self.details("npu"), self.details("gpu", "--verdict", "rules")
        _, said, _, _ = self.judge(npu, gpu, "--verdict", "both", status=2)
        self.assertIn("it has no column Verdict; plumb acc_check --verdict both (or expected) writes it", said)
        _, said, _, _ = self.judge(npu, npu, "--verdict", "both", "--rules", "msprobe", status=2)
        self.assertIn("msprobe have no columns", said)
        text = npu.read_text()
        npu.write_text(text.replace(",same,", ",sane,"))
        _, said, _, _ = self.judge(npu, gpu, "--verdict", "rules", status=0)
        _, said, _, _ = self.judge(npu, npu, "--verdict", "both", status=2)
        self.assertIn('"sane" is no verdict', said)

    def test_other_options(self) -> None:
        npu, gpu = self.details("npu"), self.details("gpu", "--arithmetic", "tf32")
        _, said, _, _ = self.judge(npu, gpu, "--verdict", "both", status=0)
        self.assertRegex(said, "not made alike: .*seed 1234\" and .*allowed tf32")


class Transformer(unittest.TestCase):
    """Recorded by PyTorch, in bfloat16: the planted call is the first fault, and right runs have none.
    tests/verdicts/models.py has the whole set."""

    def test_faults_and_right_runs(self) -> None:
        import models
        import torch
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            for name, variant, attention in (("right", "right", "plain"), ("halves", "halves", "plain"),
                                             ("fused", "right", "fused")):
                models.record(folder / name, torch.bfloat16, attention, variant)
            for target in ("halves", "fused"):
                done = plumb("compare", folder / target, folder / "right", "--verdict", "expected", status=0)
                self.assertRegex(done.stdout, r"Second opinion: \d{3} results judged: (?!.*fault)")
            for about, owner, function, number, _ in models.faults()[1::7]:
                models.record(folder / "wrong", torch.bfloat16, variant=about)
                done = plumb("compare", folder / "wrong", folder / "right", "--verdict", "expected", status=1)
                self.assertIn(f"; first fault: {models.prefix_of(owner)}.{function}.{number}.forward.output.0 (",
                              done.stdout)
                shutil.rmtree(folder / "wrong")


if __name__ == "__main__":
    unittest.main()
