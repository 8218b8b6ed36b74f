"""compare and summary of many ranks in one table: the bytes are those of the table as a whole, the memory is that of a rank."""

import array
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
import mpi_case  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PLUMB = Path(os.environ.get("PLUMB_BUILD", ROOT / "build")) / "plumb"
WHOLE = ("--limit", "1000000000")  # cut, even if not by much: this takes all rows at once


class StreamCase(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="plumb-stream-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def run_one(self, command: str, words: Sequence[str], file: str = "table.csv") -> Tuple[int, str, List[str], bytes, int]:
        """Exit code, both streams, the table, and the largest memory in KB. No file: stdout."""
        table = self.folder / file
        paths = 2 if command == "compare" else 1
        (self.folder / "tmp").mkdir(exist_ok=True)
        child = subprocess.Popen([str(PLUMB), command, *words[:paths], *([str(table)] if file else []), *words[paths:]], cwd=self.folder,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(self.folder / "tmp")})
        assert child.stdout and child.stderr
        out, err = child.stdout.read(), child.stderr.read()
        child.stdout.close()
        child.stderr.close()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        rows = table.read_bytes() if file and table.exists() else b""
        if file:
            table.unlink(missing_ok=True)
        self.assertEqual([path.name for path in self.folder.iterdir() if path.is_file()], [])
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])
        return child.returncode, out, err.splitlines(), rows, usage.ru_maxrss

    def check(self, *words: str, command: str = "compare") -> str:
        """In all forms that can be written row by row. What is said beside a CSV file."""
        said = ""
        for file, more in (("table.csv", []), ("table.json", []), ("table.md", []), ("", ["--format", "csv"]), ("", ["--format", "json"]),
                           ("", ["--format", "md"])):
            whole = self.run_one(command, [*words, *more, *WHOLE], file)
            streamed = self.run_one(command, [*words, *more], file)
            self.assertEqual(whole[:4], streamed[:4])
            said = said or streamed[1]
        return said


class Same(StreamCase):
    SIDES = ("npu/step0", "gpu/step0")

    def edit(self, rank: str, change: Callable[[Dict[str, Any]], None]) -> None:
        path = self.folder / rank / "dump.json"
        whole = json.loads(path.read_text("utf-8"))
        change(whole)
        path.write_text(json.dumps(whole), "utf-8")

    def both(self, rank: str, change: Callable[[Dict[str, Any]], None]) -> None:
        for side in self.SIDES:
            self.edit(f"{side}/{rank}", change)

    def test_tensors(self) -> None:
        mpi_case.make(self.folder, 4)
        self.assertIn("first failure: Functional.relu.3.forward.output.0", self.check(*self.SIDES))
        for more in (["--wide"], ["--only", "fail"], ["--metrics", "all"], ["--match", "exact"], ["--quiet"], ["--quiet", "--rtol", "1e-9"],
                     ["--columns", "xray"], ["--rtol", "1e-9"]):
            self.check(*self.SIDES, *more)
        self.check("npu", "gpu")

    def test_damage(self) -> None:
        mpi_case.make(self.folder, 3)
        mpi_case.damage(self.folder)
        self.assertIn("not comparable", self.check(*self.SIDES))
        (self.folder / "npu/step0/rank2/dump.json").write_text("{", "utf-8")
        self.check(*self.SIDES)
        (self.folder / "gpu/step0/rank2/dump.json").write_text("{", "utf-8")
        self.check(*self.SIDES)

    def test_the_first_of_each_kind(self) -> None:
        """The worst row is in one rank, the first odd one in another, the first failure in a third."""
        mpi_case.make(self.folder, 5)
        target = self.folder / "npu/step0"
        for rank, scale in ((4, 3.0), (3, 1.5)):
            name = "Functional.relu.0.forward.output.0.npy"
            path = target / f"rank{rank}/dump_tensor_data/{name}"
            mpi_case.save_npy(path, array.array("f", [scale] * 400), [400])
        self.assertIn("worst:", self.check(*self.SIDES))
        self.check(*self.SIDES, "--set", "cosine=0.2")

    def test_no_partner(self) -> None:
        mpi_case.make(self.folder, 3)
        self.edit("npu/step0/rank2", lambda whole: whole["data"].update(
            {"Functional.gelu.0.forward": whole["data"]["Functional.relu.0.forward"]}))
        self.assertIn("unmatched; ", self.check(*self.SIDES))

    def test_no_partner_in_the_last_call_of_the_last_rank(self) -> None:
        """Its stack was shown with the call, and is shown again where records without a partner begin."""
        mpi_case.make(self.folder, 3)
        self.edit("gpu/step0/rank2", lambda whole: whole["data"]["Functional.relu.5.forward"].update(output=[]))
        for side in self.SIDES:
            for rank in range(3):
                path = self.folder / side / f"rank{rank}/stack.json"
                path.write_text(json.dumps({"0": [[f"Functional.relu.{n}.forward" for n in range(6)], ["File a.py, line 1"]]}), "utf-8")
        self.check(*self.SIDES)
        self.assertIn("1 unmatched", self.check(*self.SIDES, "--wide"))

    def test_nothing_has_a_partner(self) -> None:
        mpi_case.make(self.folder, 3)
        for rank in range(3):
            self.edit(f"gpu/step0/rank{rank}", lambda whole: whole.update(
                data={name.replace("relu", "gelu"): call for name, call in whole["data"].items()}))
        said = self.check(*self.SIDES)
        self.assertIn("No name of the target run matches", said)
        self.assertIn("  nearest: Functional.relu.0.forward.input.0 ~ ", said)

    def test_some_have_a_partner(self) -> None:
        """Calls lost, renamed, moved to other ranks and other modules, on both sides, at random."""
        value = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 1.0}
        for seed in range(60):
            rng = random.Random(seed)
            parents, lose, rename = seed % 3, rng.choice((0.02, 0.1, 0.5)), rng.choice((0.0, 0.05, 0.3))
            for side in self.SIDES:
                for rank in range(4):
                    folder = self.folder / side / f"rank{rank}"
                    shutil.rmtree(folder, ignore_errors=True)
                    folder.mkdir(parents=True)
                    calls, construct, stack = {}, {}, {}
                    for k in range(24):
                        kind = rng.choice(("gelu", "conv2d", "relu6")) if rng.random() < rename else ("relu", "linear", "matmul")[k % 3]
                        name = f"Functional.{kind}.{k // 3}.forward"
                        if rng.random() < lose or (rank == 2 and k > 18):
                            continue
                        calls[name] = {"input_args": [value] * rng.choice((1, 1, 1, 2)), "input_kwargs": {},
                                       "output": [{**value, "Max": rng.choice((1.0, 1.0, 1.0, 2.0))}]}
                        stack[str(k)] = [[name], [f"File a.py, line {k}"]]
                        if parents:
                            block = k // 8 if parents == 1 else rng.randrange(3)
                            construct[name] = f"Module.blocks.{block}.Block.forward.0"
                    dump = {"task": "statistics", "level": "L1", "data": calls}
                    for file, text in (("dump", dump), ("construct", construct), ("stack", stack)):
                        (folder / f"{file}.json").write_text(json.dumps(text), "utf-8")
            whole, by_rank = [self.run_one("compare", [*self.SIDES, "--wide", *more]) for more in (WHOLE, [])]
            self.assertEqual(whole[:4], by_rank[:4], seed)

    def test_other_ranks(self) -> None:
        mpi_case.make(self.folder, 3)
        shutil.rmtree(self.folder / "gpu/step0/rank1")
        self.check(*self.SIDES)
        shutil.rmtree(self.folder / "npu/step0/rank1")
        self.check(*self.SIDES)
        shutil.rmtree(self.folder / "npu/step0/rank0")
        self.check(*self.SIDES)

    def test_steps(self) -> None:
        mpi_case.make(self.folder, 2, steps=2)
        self.check("npu", "gpu")
        shutil.rmtree(self.folder / "gpu/step1/rank1")
        self.check("npu", "gpu")

    def test_ranks_of_several_kinds(self) -> None:
        """Statistics here, values there; checksums; levels; single records."""
        def bare(whole: Dict[str, Any]) -> None:
            for call in whole["data"].values():
                for value in [*call["input_args"], *call["output"]]:
                    value.pop("data_name", None)
                    value.pop("md5", None)

        def checksums(whole: Dict[str, Any]) -> None:
            for call in whole["data"].values():
                for value in [*call["input_args"], *call["output"]]:
                    value["md5"] = "1234abcd"

        def short(whole: Dict[str, Any]) -> None:
            for name in list(whole["data"])[1:]:
                del whole["data"][name]
            for call in whole["data"].values():
                call.update(input_args=[], input_kwargs={})

        mpi_case.make(self.folder, 4)
        for change in (lambda whole: whole.update(level="mix"), bare, checksums, short):
            self.both("rank3", change)
            self.check(*self.SIDES)
        for rank in range(4):
            self.both(f"rank{rank}", bare)
        self.assertIn("rule: statistics", self.check(*self.SIDES))

    def test_warnings(self) -> None:
        mpi_case.make(self.folder, 3)
        for path in ("npu/step0/rank2", "gpu/step0/rank1", "npu/step0/rank0"):
            (self.folder / path / "stack.json").write_text("{", "utf-8")
        self.check(*self.SIDES)
        self.assertGreater(len(self.run_one("compare", self.SIDES)[2]), 2)

    def test_a_file_that_cannot_be_written(self) -> None:
        mpi_case.make(self.folder, 2)
        done = subprocess.run([str(PLUMB), "compare", *self.SIDES, "no/such/folder/table.csv"], cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        whole = subprocess.run([str(PLUMB), "compare", *self.SIDES, "no/such/folder/table.csv", *WHOLE], cwd=self.folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (whole.returncode, whole.stdout, whole.stderr))
        self.assertEqual(done.returncode, 2)


    def test_nobody_reads_on(self) -> None:
        mpi_case.make(self.folder, 2)
        done = subprocess.run(f"'{PLUMB}' compare {' '.join(self.SIDES)} --format csv | head -n 1", cwd=self.folder, shell=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertTrue(done.stdout.startswith("API Name,"))
        self.assertNotIn("cannot write", done.stderr)

    def test_no_room_for_temporary_files(self) -> None:
        """Then the table is made as a whole."""
        mpi_case.make(self.folder, 2)
        words = [str(PLUMB), "compare", *self.SIDES, "--format", "csv"]
        good, bad = [subprocess.run(words, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    env={**os.environ, "TMPDIR": folder}) for folder in (str(self.folder), "/no/such/folder")]
        self.assertEqual((good.returncode, good.stdout, good.stderr), (bad.returncode, bad.stdout, bad.stderr))


class Summary(StreamCase):
    def test_same(self) -> None:
        mpi_case.make(self.folder, 3)
        self.assertIn("54 rows written", self.check("npu/step0", command="summary"))
        self.check("npu", "--wide", command="summary")
        mpi_case.damage(self.folder)
        self.check("npu/step0", "--wide", command="summary")
        (self.folder / "npu/step0/rank2/stack.json").write_text("{", "utf-8")
        (self.folder / "npu/step0/rank1/dump.json").write_text("{", "utf-8")
        self.check("npu/step0", command="summary")
        self.assertEqual(self.run_one("summary", ["npu/step0"])[0], 1)

    def test_steps(self) -> None:
        mpi_case.make(self.folder, 2, steps=2)
        self.check("npu", command="summary")
        shutil.rmtree(self.folder / "npu/step1/rank1")
        self.check("npu", command="summary")

    def test_empty(self) -> None:
        mpi_case.make(self.folder, 2)
        for rank in range(2):
            path = self.folder / f"npu/step0/rank{rank}/dump.json"
            path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "data": {}}), "utf-8")
        self.check("npu/step0", command="summary")
        self.assertEqual(self.run_one("summary", ["npu/step0"])[0], 2)


class Memory(StreamCase):
    def setUp(self) -> None:
        super().setUp()
        value = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 1.0}
        calls = {f"Functional.relu.{call}.forward": {"input_args": [value], "input_kwargs": {}, "output": [value]}
                 for call in range(1000)}
        for side in ("npu", "gpu"):
            for rank in range(64):
                folder = self.folder / side / f"rank{rank}"
                folder.mkdir(parents=True)
                (folder / "dump.json").write_text(json.dumps({"task": "statistics", "level": "L1", "data": calls}), "utf-8")

    def run_far(self, command: str, words: Sequence[str], file: str) -> Tuple[int, str, int]:
        """Exit code, a digest of the table, and memory in KB. Nothing large may be in this process: a child begins as a copy of it."""
        with open(self.folder / "out", "wb") as out:
            child = subprocess.Popen([str(PLUMB), command, *words, *([file] if file else [])], cwd=self.folder, stdout=out)
            _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        digest = hashlib.sha256()
        with open(self.folder / (file or "out"), "rb") as table:
            for block in iter(lambda: table.read(65536), b""):
                digest.update(block)
        return child.returncode, digest.hexdigest(), usage.ru_maxrss

    def test_of_one_rank(self) -> None:
        forms = (("table.csv", []), ("table.json", []), ("table.md", []), ("", ["--format", "json"]), ("", ["--quiet"]))
        for command, words in (("compare", ["npu", "gpu"]), ("summary", ["npu"])):
            for file, more in forms[:4 if command == "summary" else 5]:
                whole = self.run_far(command, [*words, *more, *WHOLE], file)
                streamed = self.run_far(command, [*words, *more], file)
                self.assertEqual(whole[:2], streamed[:2])
                self.assertLess(streamed[2], whole[2] / 3, (command, file, more))

    def test_without_partners(self) -> None:
        """Of all ranks, on one side and on both."""
        extra = {"Functional.gelu.0.forward": {"input_args": [], "input_kwargs": {}, "output": [{"type": "int", "value": 1}]}}
        for side, name in (("npu", "gelu"), ("gpu", "silu")):
            for rank in range(64):
                path = self.folder / side / f"rank{rank}/dump.json"
                whole = json.loads(path.read_text("utf-8"))
                whole["data"].update({call.replace("gelu", name): is_ for call, is_ in extra.items()})
                path.write_text(json.dumps(whole), "utf-8")
            del whole
            of_all, by_rank = [self.run_far("compare", ["npu", "gpu", *more], "table.csv") for more in (WHOLE, [])]
            self.assertEqual(of_all[:2], by_rank[:2])
            self.assertLess(by_rank[2], of_all[2] / 3)


if __name__ == "__main__":
    unittest.main()
