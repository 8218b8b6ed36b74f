"""plumb-mpi where the ranks of a dump lie on the disks of single hosts: what plumb says of all of them on one machine."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Dict, List, Optional, Sequence

sys.path.insert(0, str(Path(__file__).resolve().parent))
import mpi_case  # noqa: E402
from test_mpi import MPIS, PLUMB, ROOT, Ended, Mpi, ended  # noqa: E402
from test_mpi_hosts import HOSTS, OBSTACLE  # noqa: E402

ODD = "a b=c:d'é"  # of a folder: what rules, shells and messages may trip over


@unittest.skipIf(OBSTACLE, OBSTACLE)
class DisksCase(unittest.TestCase):
    """self.disk has all of the dump; self.disk/hostN is what hostN sees in its place."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="plumb-disks-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.disk = self.folder / "disk"
        self.npu, self.gpu = self.disk / ODD / "npu", self.disk / ODD / "gpu"

    def make(self, ranks: int = 6, steps: int = 1) -> None:
        mpi_case.make(self.disk / ODD, ranks, 4, 50, steps)

    def give(self, side: Path, rank: int, *hosts: int) -> None:
        """Copies of a rank, in all steps. Their times are those of the copies."""
        for path in side.glob(f"step*/rank{rank}"):
            for host in hosts:
                shutil.copytree(path, self.at(host, path), copy_function=shutil.copyfile)

    def spread(self, ranks: Sequence[int] = range(6), hosts: int = 3) -> None:
        for rank in ranks:
            for side in (self.npu, self.gpu):
                self.give(side, rank, rank % hosts + 1)

    def at(self, host: int, path: Path) -> Path:
        return self.disk / f"host{host}" / path.relative_to(self.disk)

    def run_one(self, command: List[str], out: Optional[Path]) -> Ended:
        done = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "TMPDIR": str(self.folder)}, timeout=120)
        self.said = done.stderr
        return ended(done.returncode, done.stdout, out)

    def plain(self, *words: object) -> Ended:
        return self.run_one([str(PLUMB), *map(str, words)], self.folder / "out")

    def on_hosts(self, mpi: Mpi, hosts: int, processes: int, *words: object) -> Ended:
        return self.run_one([str(HOSTS), str(hosts), "--disk", str(self.disk), "--", mpi.launcher[0], "-n",
                             str(processes), str(mpi.program), "--patience", "20", *map(str, words)],
                            self.folder / "out")

    def check_same(self, *words: object, hosts: int = 3, counts: Sequence[int] = (4,)) -> Ended:
        plain = self.plain(*words)
        for mpi in MPIS:
            for count in counts:
                with self.subTest(mpi=mpi.name, processes=count, words=words):
                    self.assertEqual(plain, self.on_hosts(mpi, hosts, count, *words), self.said)
        return plain

    def check_without(self, lacking: Sequence[int], plain: Ended, saying: str) -> None:
        """All but some ranks are compared, and something is said of these."""
        for mpi in MPIS:
            with self.subTest(mpi=mpi.name):
                done = self.on_hosts(mpi, 3, 3, "compare", self.npu, self.gpu, "-o", "out")
                names = {f"compare_result_rank{rank}_TIME.csv" for rank in lacking}
                self.assertEqual(done.files, {k: v for k, v in plain.files.items() if k not in names})
                self.assertEqual(done.code, 1)
                self.assertIn(saying, self.said)


class ByRank(DisksCase):
    def compare(self) -> "tuple[object, ...]":
        return ("compare", self.npu, self.gpu, "-o", "out")

    def test_spread(self) -> None:
        self.make(steps=2)
        self.spread()
        done = self.check_same(*self.compare(), counts=(3, 8))
        self.assertEqual(len(done.files), 6)
        self.check_same(*self.compare(), "--verdict", "both")

    def test_step_by_step(self) -> None:
        """The path of one step, and one host that has one rank only, whose dump.json is damaged."""
        self.make(4)
        (self.npu / "step0/rank3/dump.json").write_text('{"data": {"Functional.relu.0.forward": {"inp', "utf-8")
        mpi_case.damage(self.disk / ODD)
        self.spread(range(3), 2)
        for side in (self.npu, self.gpu):
            self.give(side, 3, 3)
        done = self.check_same("compare", self.npu / "step0", self.gpu / "step0", "-o", "out")
        self.assertIn("the JSON text ends in the middle of a value", done.out)

    def test_copies(self) -> None:
        """Ranks that several hosts have, and those that the first has not."""
        self.make()
        for side in (self.npu, self.gpu):
            for rank in range(6):
                self.give(side, rank, 2, *([3] if rank % 2 else []))
        self.check_same(*self.compare())

    def test_more_hosts_than_ranks(self) -> None:
        self.make(2)
        self.give(self.npu, 0, 4)
        self.give(self.gpu, 0, 4)
        self.give(self.npu, 1, 2)
        self.give(self.gpu, 1, 2)
        self.at(3, self.npu).mkdir(parents=True)
        self.at(1, self.npu / "step0/rank1").mkdir(parents=True)  # begun, and nothing written
        self.check_same(*self.compare(), hosts=5, counts=(5,))

    def test_one_process(self) -> None:
        self.make(3)
        self.spread(range(3), 1)
        self.check_same(*self.compare(), hosts=1, counts=(1, 2))

    def test_a_rank_on_one_side(self) -> None:
        self.make()
        shutil.rmtree(self.gpu / "step0/rank5")
        self.spread()
        shutil.rmtree(self.at(3, self.gpu))
        shutil.rmtree(self.at(3, self.npu / "step0/rank2"))
        shutil.rmtree(self.npu / "step0/rank2")
        shutil.rmtree(self.gpu / "step0/rank2")
        done = self.check_same(*self.compare())
        self.assertIn("unmatched", done.out)

    def test_other_dump_json(self) -> None:
        self.make()
        self.spread()
        self.give(self.npu, 1, 3)
        with open(self.at(3, self.npu / "step0/rank1/dump.json"), "a", encoding="utf-8") as file:
            file.write("\n")
        self.check_without([1], self.plain(*self.compare()), f"rank 1 of {self.npu} is not the same on host2 and on host3")

    def test_other_files(self) -> None:
        self.make()
        self.spread()
        self.give(self.gpu, 4, 1)
        data = self.at(1, self.gpu / "step0/rank4/dump_tensor_data")
        (data / "Functional.relu.1.forward.output.0.npy").unlink()
        self.check_without([4], self.plain(*self.compare()), f"rank 4 of {self.gpu} is not the same on host1 and on host2")

    def test_sides_apart(self) -> None:
        self.make()
        self.spread(range(5))
        self.give(self.npu, 5, 1)
        self.give(self.gpu, 5, 3)
        self.check_without([5], self.plain(*self.compare()),
                           f"rank 5 of {self.npu} is on host1, of {self.gpu} on host3: no host has both")

    def test_all_sides_apart(self) -> None:
        self.make(2)
        for rank in range(2):
            self.give(self.npu, rank, 1)
            self.give(self.gpu, rank, 2)
        self.check_without([0, 1], self.plain(*self.compare()), "no host has both")

    def test_nobody_has_it(self) -> None:
        self.make(2)
        done = self.on_hosts(MPIS[0], 2, 2, *self.compare())
        self.assertEqual((done.code, done.files), (2, {}))


class OverflowCheck(DisksCase):
    def make_step(self) -> Path:
        step = self.disk / ODD / "step0"
        for rank in range(6):
            (step / f"rank{rank}").mkdir(parents=True)
            calls: Dict[str, object] = {}
            for call in range(3):
                bad = rank >= 3 and call == rank - 3
                value = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2],
                         "Max": float("nan") if bad else 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 1.0}
                calls[f"Functional.relu.{call}.forward"] = {"input_args": [], "input_kwargs": {}, "output": [value]}
            (step / f"rank{rank}/dump.json").write_text(json.dumps({"task": "statistics", "level": "L1", "data": calls}))
        return step

    def test_spread(self) -> None:
        step = self.make_step()
        (step / "rank1/dump.json").write_text("{", "utf-8")
        (step / "rank2/dump.json").unlink()
        for rank in range(6):
            shutil.copytree(step / f"rank{rank}", self.at(rank % 3 + 1, step / f"rank{rank}"))
        done = self.check_same("overflow_check", step, "-o", "out", counts=(4,))
        self.assertEqual(done.code, 1)
        self.assertEqual(len(done.files), 1)
        self.check_same("overflow_check", step, "--rules", "msprobe", "-o", "out")

    def test_another_form(self) -> None:
        step = self.make_step()
        for rank in range(6):
            shutil.copytree(step / f"rank{rank}", self.at(rank % 3 + 1, step / f"rank{rank}"))
        shutil.copytree(step / "rank0", self.at(2, step / "rank5"))
        for mpi in MPIS:
            done = self.on_hosts(mpi, 3, 3, "overflow_check", step, "-o", "out")
            self.assertEqual(done.code, 1)
            self.assertIn(f"rank5: left out: rank 5 of {step} is not the same on host2 and on host3", self.said)

    def test_nothing(self) -> None:
        self.check_same("overflow_check", self.disk / "nothing", hosts=2, counts=(2,))


class OneTable(DisksCase):
    """What process 0 lists, it has to see."""

    def test_refused(self) -> None:
        self.make(3)
        self.spread(range(3))
        for words in (("compare", self.npu, self.gpu), ("summary", self.npu), ("blame", self.npu, self.gpu)):
            for mpi in MPIS:
                with self.subTest(words=words, mpi=mpi.name):
                    done = self.on_hosts(mpi, 3, 3, *words)
                    self.assertEqual((done.code, done.out), (2, ""))
                    self.assertIn("rank 1 is on host2 only, and process 0, on host1, has to see all of them", self.said)

    def test_copies(self) -> None:
        self.make(3)
        for rank in range(3):
            for side in (self.npu, self.gpu):
                self.give(side, rank, 1, 2)
        self.check_same("compare", self.npu, self.gpu, hosts=2, counts=(3,))


class Condense(DisksCase):
    """Every host condenses its own files; the closing line counts those of all."""

    def tree(self, folder: Path) -> Dict[str, bytes]:
        return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}

    def make(self, ranks: int = 6, steps: int = 1) -> None:
        """Of tensors that are larger than what is kept of them, in place of those before."""
        shutil.rmtree(self.disk, ignore_errors=True)
        mpi_case.make(self.disk / ODD, ranks, 4, 1500, steps)

    def test_spread(self) -> None:
        for mpi in MPIS:
            with self.subTest(mpi=mpi.name):
                self.make()
                self.spread()
                words = ("condense", self.npu, "--settle", "0.1")
                plan = self.check_same(*words, "--dry-run", counts=(3, 6))
                done = self.on_hosts(mpi, 3, 5, *words)
                plain = self.plain(*words)
                self.assertEqual(plain, done, self.said)
                self.assertEqual(plan.out.splitlines()[-1].replace("would be ", "").replace("would become", "became"),
                                 done.out.splitlines()[-1])
                whole = self.tree(self.npu)
                parts: Dict[str, bytes] = {}
                for host in (1, 2, 3):
                    mine = self.tree(self.at(host, self.npu))
                    self.assertFalse(parts.keys() & mine.keys())
                    parts.update(mine)
                self.assertEqual(whole, parts)
                self.assertTrue(any(name.endswith(".condensed.json") for name in whole))
                self.assertFalse(any(name.endswith(".npy") for name in whole))
                again = self.on_hosts(mpi, 3, 5, *words)
                self.assertEqual((again.code, again.out), (0, "nothing was condensed\n"))

    def test_copies_and_nothing(self) -> None:
        """A copy is a file of its own; the first host has nothing, not even the folder."""
        for mpi in MPIS:
            with self.subTest(mpi=mpi.name):
                self.make(2)
                self.give(self.npu, 0, 2, 3)
                self.give(self.npu, 1, 3)
                done = self.on_hosts(mpi, 3, 3, "condense", self.npu, "--settle", "0.1")
                self.assertEqual(done.code, 0, self.said)
                count = len(list(self.npu.glob("step0/rank*/dump_tensor_data/*.npy")))
                self.assertIn(f"{count + count // 2} files with {count + count // 2} tensors condensed", done.out)
                for host in (2, 3):
                    self.assertEqual(list(self.at(host, self.npu).rglob("*.npy")), [])

    def test_shared(self) -> None:
        """All hosts see the same disk: everything once."""
        for mpi in MPIS:
            with self.subTest(mpi=mpi.name):
                self.make(3)
                shared, alone = self.folder / "shared", self.folder / "alone"
                for to in (shared, alone):
                    shutil.copytree(self.npu, to)
                done = self.on_hosts(mpi, 3, 6, "condense", shared, "--settle", "0.1")
                self.assertEqual((done.code, done.out), (0, self.plain("condense", alone, "--settle", "0.1").out))
                self.assertEqual(self.tree(shared).keys(), self.tree(alone).keys())
                for folder in (shared, alone):
                    shutil.rmtree(folder)

    def test_a_host_that_stops(self) -> None:
        """Between the two looks of a pass: it is named, its files stay, and the others are condensed."""
        stopping = self.folder / "stopping"
        stopping.write_text('#!/bin/sh\nif [ "$(hostname)" = host2 ]; then (sleep 4; kill -STOP $$) & fi\nexec "$@"\n', "utf-8")
        stopping.chmod(0o755)
        for mpi in MPIS:
            with self.subTest(mpi=mpi.name):
                self.make(3)
                for rank in range(3):
                    self.give(self.npu, rank, rank + 1)
                done = self.run_one([str(HOSTS), "3", "--disk", str(self.disk), "--", mpi.launcher[0], "-n", "3", str(stopping),
                                     str(mpi.program), "--patience", "5", "condense", str(self.npu), "--settle", "10"], None)
                self.assertIn("host2 does not answer", self.said)
                self.assertIn("1 could not be condensed", self.said)
                self.assertNotEqual(done.code, 0)
                self.assertIn("16 files with 16 tensors condensed", done.out)
                self.assertEqual([len(list(self.at(host, self.npu).rglob("*.npy"))) for host in (1, 2, 3)], [0, 8, 0])

    def test_damage_and_nowhere(self) -> None:
        self.make(3)
        mpi_case.damage(self.disk / ODD)
        for rank in range(3):
            self.give(self.npu, rank, rank + 1)
        for mpi in MPIS:
            with self.subTest(mpi=mpi.name):
                plain = self.plain("condense", self.npu, "--dry-run", "--settle", "0.1")
                said = self.said
                self.assertEqual(plain, self.on_hosts(mpi, 3, 3, "condense", self.npu, "--dry-run", "--settle", "0.1"))
                self.assertEqual(plain.code, 1)
                for line in said.splitlines():
                    self.assertIn(line, self.said)
                done = self.on_hosts(mpi, 3, 3, "condense", self.folder / "nowhere")
                self.assertEqual(done.code, 2)
                self.assertIn("no host can read this folder", self.said)


if __name__ == "__main__":
    unittest.main()
