"""Analyses that another tool made: overflow_check and compare -da, as JSON structures.

Small cases live in tests/data/golden; with PLUMB_GOLDEN the whole of them is checked.
"""

import json
import math
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any, List

from rights import copy_tree

PLUMB = Path(os.environ["PLUMB_BUILD"]) / "plumb"
DATA = Path(os.environ["PLUMB_TEST_DATA"]) / "golden"
RULES = ["--rules", "msprobe"]
FREE_TEXT = {"Err_message"}


def cases() -> List[Path]:
    roots = [DATA] + ([Path(os.environ["PLUMB_GOLDEN"])] if "PLUMB_GOLDEN" in os.environ else [])
    return [case for root in roots for case in sorted((root / "compare").glob("ranks_*"))]


def number(value: Any) -> Any:
    """A number that is written as text counts as a number; True and False do not."""
    if isinstance(value, str) and value[:1] in "-0123456789":
        try:
            return float(value[:-1] if value.endswith("%") else value)
        except ValueError:
            pass
    return value


def differences(mine: Any, wanted: Any, where: str = "") -> List[str]:
    if isinstance(mine, dict) and isinstance(wanted, dict):
        found = [f"{where}: keys {sorted(set(mine) ^ set(wanted))}"] if set(mine) != set(wanted) else []
        for key in set(mine) & set(wanted) - FREE_TEXT:
            found += differences(mine[key], wanted[key], f"{where}/{key}")
        return found
    if isinstance(mine, list) and isinstance(wanted, list):
        if len(mine) != len(wanted):
            return [f"{where}: {len(mine)} instead of {len(wanted)} elements"]
        return [line for i, (a, b) in enumerate(zip(mine, wanted))
                for line in differences(a, b, f"{where}/{i}")]
    a, b = number(mine), number(wanted)
    if isinstance(a, (int, float)) and isinstance(b, (int, float)) and \
            isinstance(a, bool) == isinstance(b, bool):
        same = a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= 1e-9 * abs(b)
    else:
        same = type(mine) is type(wanted) and mine == wanted
    return [] if same else [f"{where}: {mine!r} instead of {wanted!r}"]


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.out = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.out)

    def plumb(self, *words: object, code: int) -> subprocess.CompletedProcess:
        done = subprocess.run([str(PLUMB), *map(str, words)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, cwd=self.out)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def written(self, pattern: str, count: int = 1) -> List[Any]:
        paths = sorted(self.out.glob(pattern))
        self.assertEqual(len(paths), count, [path.name for path in self.out.iterdir()])
        return [json.loads(path.read_text("utf-8")) for path in paths]

    def same(self, mine: Any, expected: Path) -> None:
        found = differences(mine, json.loads(expected.read_text("utf-8")))
        self.assertFalse(found, "\n".join(found[:20]))


class Analyses(Case):
    def test_cases_are_there(self) -> None:
        self.assertGreaterEqual(len(cases()), 2)

    def test_overflow_check(self) -> None:
        for case in cases():
            for rules in RULES, []:
                with self.subTest(case=case.name, rules=rules):
                    for old in self.out.iterdir():
                        old.unlink()
                    self.plumb("overflow_check", "-i", case / "overflow" / "step0", "-o", self.out,
                               *rules, code=1)
                    self.same(self.written("anomaly_analyze_*.json")[0],
                              case / "expected_of_anomaly_analyze.json")

    def test_diff_analyze(self) -> None:
        for case in cases():
            for rules in RULES, []:
                with self.subTest(case=case.name, rules=rules):
                    for old in self.out.iterdir():
                        old.unlink()
                    self.plumb("compare", "-tp", case / "npu" / "step0", "-gp",
                               case / "bench" / "step0", "-da", "-o", self.out, *rules, code=1)
                    self.same(self.written("diff_analyze_*.json")[0],
                              case / "expected_da_diff_analyze.json")
                    for rank in range(2):
                        expected = case / f"expected_da_compare_result_rank{rank}.json"
                        if expected.exists():
                            self.same(self.written(f"compare_result_rank{rank}_*.json")[0], expected)

    def test_clean(self) -> None:
        case = cases()[0]
        done = self.plumb("overflow_check", "-i", case / "bench" / "step0", "-o", self.out, code=0)
        self.assertIn("nothing is written", done.stdout)
        self.assertEqual(list(self.out.iterdir()), [])
        done = self.plumb("compare", case / "bench" / "step0", case / "bench" / "step0", "-da",
                          "-o", self.out, code=0)
        self.written("diff_analyze_*.json", 0)
        self.written("compare_result_rank*.json", 2)

    def test_single_files(self) -> None:
        """The other tool wants folders here; a rank alone is analysed like a step of one rank."""
        case = next(one for one in cases() if one.name == "ranks_before_comm")
        wanted = json.loads((case / "expected_of_anomaly_analyze.json").read_text("utf-8"))
        self.plumb("overflow_check", case / "overflow/step0/rank1/dump.json", "-o", self.out, code=1)
        self.assertEqual(differences(self.written("anomaly_*.json")[0]["rank_0"], wanted["rank_1"]), [])
        done = self.plumb("compare", "-tp", case / "npu/step0/rank1/dump.json", "-gp",
                          case / "bench/step0/rank1/dump.json", "-da", "-o", self.out, code=1)
        self.assertIn("Functional.gelu.0.forward", done.stdout)
        wanted = json.loads((case / "expected_da_diff_analyze.json").read_text("utf-8"))
        self.assertEqual(differences(self.written("diff_*.json")[0]["rank_0"], wanted["rank_1"]), [])
        self.written("compare_result_2*.json")

    def test_proc_folder(self) -> None:
        case = next(one for one in cases() if one.name == "ranks_before_comm")
        for side in "overflow", "npu", "bench":
            copy_tree(case / side / "step0" / "rank1", self.out / side / "proc4711")
        self.plumb("overflow_check", "-i", self.out / "overflow", "-o", self.out, code=1)
        self.written("anomaly_analyze_*.json")
        self.plumb("compare", self.out / "npu", self.out / "bench", "-da", "-o", self.out, code=1)
        self.written("compare_result_proc4711_*.json")


class Damage(Case):
    """One rank that is damaged costs what it would have told, and nothing else."""

    def setUp(self) -> None:
        super().setUp()
        case = next(one for one in cases() if one.name == "ranks_before_comm")
        self.step = self.out / "step0"
        copy_tree(case / "overflow" / "step0", self.step)

    def check(self, code: int) -> subprocess.CompletedProcess:
        return self.plumb("overflow_check", "-i", self.step, "-o", self.out / "out", code=code)

    def report(self) -> Any:
        return json.loads(next((self.out / "out").glob("anomaly_*.json")).read_text("utf-8"))

    def test_missing_dump(self) -> None:
        (self.step / "rank0" / "dump.json").unlink()
        self.assertIn("rank0: left out", self.check(1).stderr)
        self.assertEqual(list(self.report()), ["rank_1"])

    def test_every_dump_missing(self) -> None:
        for rank in "rank0", "rank1":
            (self.step / rank / "dump.json").unlink()
        self.assertIn("no rank of it can be read", self.check(2).stderr)

    def test_side_files_missing(self) -> None:
        (self.step / "rank1" / "construct.json").unlink()
        (self.step / "rank1" / "stack.json").unlink()
        done = self.check(1)
        self.assertIn("construct.json", done.stderr)
        self.assertIn("stack.json", done.stderr)
        node = self.report()["rank_1"][0]
        self.assertEqual(node["construct_info"], ["Functional.gelu.0.forward"])
        self.assertEqual(node["stack_info"], {})

    def test_side_files_damaged(self) -> None:
        for name, text in ("construct.json", '{"Functional.gelu.0.forward": "Module.a.A.forward.0", '),\
                ("stack.json", "[1"):
            (self.step / "rank1" / name).write_text(text)
        self.check(1)
        self.assertEqual(self.report()["rank_1"][0]["construct_info"],
                         ["Module.a.A.forward.0", "Functional.gelu.0.forward"])

    def test_circle_of_modules(self) -> None:
        (self.step / "rank1" / "construct.json").write_text(
            '{"Functional.gelu.0.forward": ["a", 0], "a": "b", "b": "a"}')
        self.check(1)
        self.assertEqual(self.report()["rank_1"][0]["construct_info"],
                         ["b", "a", "Functional.gelu.0.forward"])

    def test_truncated_anywhere(self) -> None:
        dump = self.step / "rank1" / "dump.json"
        whole = dump.read_bytes()
        for size in list(range(0, 200)) + list(range(200, len(whole), 97)):
            dump.write_bytes(whole[:size])
            done = subprocess.run([str(PLUMB), "overflow_check", "-i", str(self.step), "-o",
                                   str(self.out / "out")], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
            self.assertIn(done.returncode, (1, 2), f"cut at {size}: {done.stderr}")
            self.assertIn("rank1", done.stderr)

    def test_diff_analyze_without_a_rank(self) -> None:
        case = next(one for one in cases() if one.name == "ranks_before_comm")
        copy_tree(case / "npu" / "step0", self.out / "npu")
        shutil.rmtree(self.out / "npu" / "rank0")
        done = self.plumb("compare", self.out / "npu", case / "bench" / "step0", "-da", "-o",
                          self.out / "out", code=1)
        self.assertIn("rank 1: Functional.gelu.0.forward", done.stdout)


def tensor(maximum: float = 1.0, factor: float = 1.0, **more: object) -> dict:
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": maximum * factor,
            "Min": -2.0 * factor, "Mean": 0.5 * factor, "Norm": 3.0 * factor,
            "requires_grad": False, **more}


def call(output: list, inputs: list = (), **keywords: dict) -> dict:
    return {"input_args": list(inputs) or [tensor()], "input_kwargs": keywords, "output": output}


NAN = math.nan
GROUP = {"type": "torch.ProcessGroup", "group_ranks": [0, 1, 2], "group_id": "0"}


class Rules(Case):
    """Where plumb's own rules see more than those of the other tool."""

    def step(self, name: str, *ranks: dict, **head: str) -> Path:
        for number, data in enumerate(ranks):
            folder = self.out / name / f"rank{number}"
            folder.mkdir(parents=True)
            (folder / "dump.json").write_text(json.dumps(
                {"task": "statistics", "level": "L1", "framework": "pytorch",
                 "dump_data_dir": None, "data": data, **head}))
            (folder / "construct.json").write_text("{}")
            (folder / "stack.json").write_text("{}")
        return self.out / name

    def overflow(self, step: Path, *more: str) -> dict:
        out = Path(tempfile.mkdtemp(dir=self.out))
        done = subprocess.run([str(PLUMB), "overflow_check", "-i", str(step), "-o", str(out), *more],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found = [json.loads(path.read_text("utf-8")) for path in out.iterdir()]
        self.assertEqual(len(found), done.returncode)
        return {rank: [node["op_name"] for node in nodes] for rank, nodes in found[0].items()} \
            if found else {}

    def differing(self, target: Path, golden: Path, *more: str) -> dict:
        out = Path(tempfile.mkdtemp(dir=self.out))
        done = subprocess.run([str(PLUMB), "compare", str(target), str(golden), "-da", "-o", str(out),
                               *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found = [json.loads(path.read_text("utf-8")) for path in out.glob("diff_analyze_*")]
        self.assertEqual(len(found), done.returncode)
        return {rank: [node["op_name"] for node in nodes] for rank, nodes in found[0].items()} \
            if found else {}

    def test_lists_in_lists(self) -> None:
        step = self.step("step", {"Torch.split.0.forward": call([[tensor(), tensor(NAN)]])})
        self.assertEqual(self.overflow(step), {"rank_0": ["Torch.split.0.forward"]})
        self.assertEqual(self.overflow(step, *RULES), {})

    def test_words_for_values(self) -> None:
        for word in "NaN", "inf", "-inf":
            step = self.step(f"step{word}", {"Torch.a.0.forward": call([{**tensor(), "Min": word}])})
            self.assertEqual(self.overflow(step), {"rank_0": ["Torch.a.0.forward"]})

    def test_ignored_and_passed_on(self) -> None:
        step = self.step("step", {"Torch.empty.0.forward": call([tensor(NAN)]),
                                  "Torch.add.0.forward": call([tensor(NAN)], [tensor(NAN)])})
        self.assertEqual(self.overflow(step), {})

    def test_scalars_do_not_count(self) -> None:
        step = self.step("step", {"Torch.a.0.forward": call([{"type": "float", "value": NAN}])})
        self.assertEqual(self.overflow(step), {})

    def test_sender_is_to_blame(self) -> None:
        """The receiver comes earlier in its chain, but what it got was bad already."""
        reduce = {"Distributed.all_reduce.0.forward": call([tensor()], group=GROUP)}
        step = self.step(
            "step",
            {**reduce, "Torch.a.0.forward": call([tensor()]), "Torch.b.0.forward": call([tensor(NAN)]),
             "Distributed.send.0.forward": call([tensor(NAN)], [tensor(NAN)],
                                                dst={"type": "int", "value": 1}, group=GROUP)},
            {**reduce, "Distributed.recv.0.forward": call([tensor(NAN)], group=GROUP,
                                                          src={"type": "int", "value": 0})},
            {**reduce, "Distributed.recv.0.forward": call([tensor()], group=GROUP,
                                                          src={"type": "int", "value": 0})})
        self.assertEqual(self.overflow(step), {"rank_0": ["Torch.b.0.forward"]})
        self.assertEqual(self.overflow(step, *RULES), {"rank_1": ["Distributed.recv.0.forward"]})

    def test_used_later(self) -> None:
        """What was made before one exchange may be sent in another."""
        clean = {"Distributed.all_reduce.0.forward": call([tensor()], group=GROUP),
                 "Distributed.all_reduce.1.forward": call([tensor()], group=GROUP)}
        names = list(clean)
        last = {"Distributed.all_gather.0.forward": call([tensor(NAN)], [tensor(NAN)], group=GROUP)}
        step = self.step("step", {names[0]: clean[names[0]], "Torch.a.0.forward": call([tensor(NAN)]),
                                  names[1]: clean[names[1]], **last},
                         {**clean, "Distributed.all_gather.0.forward": call([tensor(NAN)], group=GROUP)})
        self.assertEqual(self.overflow(step), {"rank_0": ["Torch.a.0.forward"]})
        self.assertEqual(self.overflow(step, *RULES), {"rank_1": ["Distributed.all_gather.0.forward"]})

    def test_group_source(self) -> None:
        """group_src counts inside the group: its number 1 is rank 2 here."""
        group = {**GROUP, "group_ranks": [0, 2]}
        before = {"Distributed.all_reduce.0.forward": call([tensor()], group=GROUP)}
        source = {"type": "int", "value": 1}
        step = self.step(
            "step",
            {**before, "Distributed.broadcast.0.forward": call([tensor(NAN)], group=group,
                                                               group_src=source)},
            before,
            {**before, "Torch.c.0.forward": call([tensor()]), "Torch.a.0.forward": call([tensor(NAN)]),
             "Distributed.broadcast.0.forward": call([tensor(NAN)], [tensor(NAN)], group=group,
                                                     group_src=source)})
        self.assertEqual(self.overflow(step), {"rank_2": ["Torch.a.0.forward"]})

    def test_one_sided_nan_differs(self) -> None:
        good = self.step("good", {"Torch.a.0.forward": call([tensor()])})
        bad = self.step("bad", {"Torch.a.0.forward": call([tensor(NAN)])})
        self.assertEqual(self.differing(bad, good), {"rank_0": ["Torch.a.0.forward"]})
        self.assertEqual(self.differing(bad, good, *RULES), {})

    def test_zero_in_the_golden_run(self) -> None:
        """Next to nothing instead of zero is no difference; something large is."""
        good = self.step("good", {"Torch.a.0.forward": call([{**tensor(), "Mean": 0.0}])})
        near = self.step("near", {"Torch.a.0.forward": call([{**tensor(), "Mean": 1e-9}])})
        far = self.step("far", {"Torch.a.0.forward": call([{**tensor(), "Mean": 1.5}])})
        self.assertEqual(self.differing(near, good), {})
        self.assertEqual(self.differing(far, good), {"rank_0": ["Torch.a.0.forward"]})
        self.assertEqual(self.differing(far, good, *RULES), {})

    def test_limit(self) -> None:
        good = self.step("good", {"Torch.a.0.forward": call([tensor()])})
        for factor, found in (1.5, {}), (1.51, {"rank_0": ["Torch.a.0.forward"]}):
            bad = self.step(f"bad{factor}", {"Torch.a.0.forward": call([tensor(factor=factor)])})
            for rules in RULES, []:
                self.assertEqual(self.differing(bad, good, *rules), found)

    def test_unimportant_outputs(self) -> None:
        name = "NPU.npu_fusion_attention.0.forward"
        good = self.step("good", {name: call([tensor()] * 7)})
        for output, found in (4, {}), (5, {}), (6, {"rank_0": [name]}):
            outputs = [tensor()] * 7
            outputs[output] = tensor(factor=9)
            bad = self.step(f"bad{output}", {name: call(outputs)})
            self.assertEqual(self.differing(bad, good), found)

    def test_checksums(self) -> None:
        good = self.step("good", {"Torch.a.0.forward": call([tensor(md5="11111111")]),
                                  "Torch.b.0.forward": call([tensor(md5="22222222")])})
        bad = self.step("bad", {"Torch.a.0.forward": call([tensor(md5="11111111")]),
                                "Torch.b.0.forward": call([tensor(md5="22222223")])})
        self.assertEqual(self.differing(bad, good), {"rank_0": ["Torch.b.0.forward"]})
        self.plumb("compare", bad, good, "-da", "-o", self.out, *RULES, code=1)
        rows = self.written("compare_result_rank0_*.json")[0]
        self.assertEqual([rows[api]["op_items"][1]["Result"] for api in rows], ["pass", "Different"])
        node = self.written("diff_analyze_*.json")[0]["rank_0"][0]
        self.assertEqual(node["data_info"]["output"]["Torch.b.0.forward.output.0"],
                         {"NPU MD5": "22222223", "NPU P2POp peer": "None"})
        self.assertIsNone(node["stack_info"])

    def test_batched_sends(self) -> None:
        """The partners of a batch are in its P2POp objects."""
        def batch(peer: int, bad: float) -> dict:
            item = {"class_type": "torch.distributed.P2POp", "tensor": tensor(bad), "op": "isend",
                    "peer": peer, "tag": 0, "group_id": "0"}
            return {"input_args": [[item]], "input_kwargs": {}, "output": [[item]]}
        name = "Distributed.batch_isend_irecv.0.forward"
        good = self.step("good", *({name: batch(1 - r, 1.0)} for r in range(2)))
        bad = self.step("bad", *({name: batch(1 - r, 5.0)} for r in range(2)))
        self.assertEqual(self.differing(bad, good), {"rank_0": [name], "rank_1": [name]})
        self.plumb("compare", bad, good, "-da", "-o", self.out, *RULES, code=1)
        row = self.written("compare_result_rank0_*.json")[0][name]["op_items"][0]
        self.assertEqual((row["NPU P2POp op"], row["NPU P2POp peer"]), ("isend", 1))

    def test_rows_without_a_partner(self) -> None:
        good = self.step("good", {"Torch.a.0.forward": call([tensor()])})
        bad = self.step("bad", {"Torch.a.0.forward": call([tensor(), tensor()])})
        self.plumb("compare", bad, good, "-da", "-o", self.out, *RULES, code=0)
        row = self.written("compare_result_rank0_*.json")[0]["Torch.a.0.forward"]["op_items"][2]
        self.assertEqual((row["Bench Name"], row["Max diff"], row["Result"]), ("N/A", "N/A", "N/A"))


if __name__ == "__main__":
    unittest.main()
