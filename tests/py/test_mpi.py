"""plumb-mpi gives what plumb gives: the same bytes for any number of processes, also when some are
killed or stopped."""

import array
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional

sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_dump  # noqa: E402
import mpi_case  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PLUMB_BUILD", ROOT / "build"))
PLUMB = BUILD / "plumb"
TIME = re.compile(r"(_20\d{12}(_\d+)?|_\d{19})(?=\.)")


class Mpi(NamedTuple):
    """One way to start processes."""
    name: str
    program: Path
    launcher: List[str]

    def command(self, count: int, *words: str) -> List[str]:
        return [*self.launcher, "-n", str(count), str(self.program), *words]


def find_mpis() -> List[Mpi]:
    found = []
    for name, launcher in (("Open MPI", ["mpirun.openmpi", "--oversubscribe"]), ("MPICH", ["mpirun.mpich"])):
        for program in (BUILD / "plumb-mpi", BUILD / "plumb-mpi-mpich"):
            if not shutil.which(launcher[0]) or not program.exists():
                continue
            linked = subprocess.run(["ldd", str(program)], stdout=subprocess.PIPE, text=True, check=True).stdout
            if ("libmpich" in linked) == (name == "MPICH"):
                found.append(Mpi(name, program, launcher))
    return found


MPIS = find_mpis()
ALL = {"Open MPI": [2, 8], "MPICH": [1, 4, 16]}  # each number once, and each MPI
FEW = {"Open MPI": [4], "MPICH": [2]}
MANY = {"Open MPI": [2], "MPICH": [16]}


class Ended(NamedTuple):
    code: int
    out: str
    files: Dict[str, bytes]


def environment(**more: str) -> Dict[str, str]:
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none", **more}


def ended(code: int, out: str, folder: Optional[Path]) -> Ended:
    """With what depends on the time taken out."""
    files = {}
    if folder and folder.exists():
        files = {TIME.sub("_TIME", str(path.relative_to(folder))): path.read_bytes()
                 for path in sorted(folder.rglob("*")) if path.is_file()}
        shutil.rmtree(folder)
    return Ended(code, TIME.sub("_TIME", out), files)


def make_large(folder: Path) -> None:
    """Long enough to be killed in the middle."""
    noise = array.array("f", (float(k * k % 1013) for k in range(1 << 20)))
    for side in ("npu", "gpu"):
        (folder / side).mkdir()
        for number in range(3):
            noise[number] += side == "npu"
            mpi_case.save_npy(folder / side / f"{number}.npy", noise * 9, [9, 1 << 20])


@unittest.skipUnless(MPIS, "neither Open MPI nor MPICH is here")
class MpiCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.scratch = tempfile.TemporaryDirectory(prefix="plumb-mpi-")
        cls.folder = Path(cls.scratch.name)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.scratch.cleanup()

    def run_one(self, command: List[str], out: Optional[Path] = None, **more: str) -> Ended:
        done = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment(TMPDIR=str(self.folder), **more), timeout=300)
        self.said = done.stderr
        return ended(done.returncode, done.stdout, out)

    def check_same(self, *words: str, out: str = "", counts: Optional[Dict[str, List[int]]] = None) -> Ended:
        """The plain program and every MPI, with these numbers of processes."""
        folder = self.folder / out if out else None
        plain = self.run_one([str(PLUMB), *words], folder)
        for mpi in MPIS:
            for count in (counts or FEW)[mpi.name]:
                with self.subTest(words=words, mpi=mpi.name, processes=count):
                    self.assertEqual(plain, self.run_one(mpi.command(count, *words), folder), self.said)
        return plain


class Same(MpiCase):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        mpi_case.make(cls.folder / "right", steps=2)
        mpi_case.make(cls.folder / "hurt")
        mpi_case.damage(cls.folder / "hurt")

    def test_compare(self) -> None:
        for name, counts in (("right", FEW), ("hurt", ALL)):
            done = self.check_same("compare", f"{name}/npu", f"{name}/gpu", "--all", "--metrics", "all", "--wide",
                                   counts=counts)
            self.assertEqual(done.code, 1)
            self.assertIn("Functional.relu.3.forward.output.0", done.out)

    def test_compare_by_rank(self) -> None:
        done = self.check_same("compare", "hurt/npu", "hurt/gpu", "-o", "tables", out="tables", counts=ALL)
        self.assertEqual(len(done.files), 3)
        self.check_same("compare", "right/npu", "right/gpu", "-o", "tables", "--verdict", "both", out="tables")

    def test_a_rank_on_one_side(self) -> None:
        shutil.copytree(self.folder / "right", self.folder / "less")
        shutil.rmtree(self.folder / "less/gpu/step0/rank2")
        shutil.rmtree(self.folder / "less/gpu/step1/rank2")
        done = self.check_same("compare", "less/npu", "less/gpu", "-o", "tables", out="tables")
        self.assertEqual(len(done.files), 3)
        self.check_same("compare", "less/npu", "less/gpu")

    def test_second_opinions(self) -> None:
        done = self.check_same("compare", "hurt/npu", "hurt/gpu", "--verdict", "both")
        self.assertIn("1 fault", done.out)

    def test_folders_and_files(self) -> None:
        one = "step0/rank0/dump_tensor_data"
        self.check_same("compare", f"hurt/npu/{one}", f"hurt/gpu/{one}", "--all", counts=MANY)
        file = f"{one}/Functional.relu.5.forward.input.0.npy"
        self.check_same("compare", f"right/npu/{file}", f"right/gpu/{file}")
        self.check_same("summary", f"right/npu/{file}")

    def test_a_tensor_that_is_cut(self) -> None:
        noise = array.array("f", (float(k * k % 1013) for k in range(1 << 20)))
        for side in ("npu", "gpu"):
            (self.folder / side).mkdir()
            values = array.array("f", noise * 11)
            if side == "npu":
                values[9_000_001] += 1
            mpi_case.save_npy(self.folder / side / "large.npy", values, [11, 1 << 20])
            mpi_case.save_npy(self.folder / side / "small.npy", noise[:5], [5])
        done = self.check_same("compare", "npu", "gpu", "--all", "--metrics", "all")
        self.assertIn("large", done.out)
        self.check_same("summary", "npu", "--wide")

    def test_summary(self) -> None:
        self.check_same("summary", "hurt/npu", "--wide", "--format", "csv", counts=ALL)

    def test_blame(self) -> None:
        done = self.check_same("blame", "right/npu", "right/gpu")
        self.assertIn("Functional.relu.3.forward", done.out)
        self.check_same("blame", "hurt/npu", counts=ALL)

    def test_overflow_check(self) -> None:
        shutil.copytree(ROOT / "examples/ranks/overflow", self.folder / "overflow")
        (self.folder / "overflow/step0/rank7").mkdir()
        (self.folder / "overflow/step0/rank7/dump.json").write_text("{", "utf-8")
        done = self.check_same("overflow_check", "overflow/step0", "-o", "found", out="found", counts=ALL)
        self.assertEqual(done.code, 1)
        self.check_same("overflow_check", "overflow/step0", "--rules", "msprobe", "-o", "found", out="found")

    def test_condense(self) -> None:
        results = []
        commands = [[str(PLUMB)], *(mpi.command(count) for mpi in MPIS for count in ALL[mpi.name])]
        self.check_same("condense", "hurt/npu", "--dry-run")
        for command in commands:
            shutil.copytree(self.folder / "hurt", self.folder / "thin")
            for number in range(3):  # large enough to become smaller
                mpi_case.save_npy(self.folder / f"thin/large{number}.npy", array.array("f", range(4096)), [64, 64])
            results.append(self.run_one([*command, "condense", "thin", "--settle", "0.01"], self.folder / "thin"))
        for other in results[1:]:
            self.assertEqual(results[0], other)
        self.assertTrue(any(name.endswith(".condensed.json") for name in results[0].files))

    def test_acc_check(self) -> None:
        check_dump.save(self.folder / "calls/dump.json", check_dump.mixture(36))
        done = self.check_same("acc_check", "calls/dump.json", "-o", "checked", "--no-torch", "--verdict", "both",
                               out="checked", counts=ALL)
        self.assertEqual(len(done.files), 2)

    def test_what_is_not_shared(self) -> None:
        mpi = MPIS[0]
        done = self.run_one(mpi.command(3, "info", "right/npu"))
        self.assertEqual((done.code, done.out), (2, ""))
        self.assertIn("'info' is not a command that processes share; plumb info does it", self.said)
        self.assertEqual(self.said.count("not a command"), 1)
        for words in (["compare"], ["compare", "right/npu", "no/such"], ["summary", "--nonsense"], ["nonsense"], []):
            plain = self.run_one([str(PLUMB), *words])
            self.assertEqual(plain, self.run_one(mpi.command(2, *words)), words)

    def test_help(self) -> None:
        done = self.run_one(MPIS[0].command(2, "--help"))
        self.assertEqual(done.code, 0)
        self.assertEqual(done.out.count("--scratch DIR"), 1)

    def test_map(self) -> None:
        """Tensors are read where the map leads: under their own names there is something else."""
        shutil.copytree(self.folder / "hurt", self.folder / "there")
        plain = self.run_one([str(PLUMB), "compare", "there/npu", "there/gpu", "--all"])
        (self.folder / "there/npu").rename(self.folder / "disk")
        shutil.copytree(self.folder / "disk", self.folder / "there/npu")
        for path in (self.folder / "there/npu").rglob("*.npy"):
            path.write_bytes(b"\0" * path.stat().st_size)
        (self.folder / "rules").write_text(f"# where tensors are\nelsewhere:there=/wrong\n\n"
                                           f"*:there/npu={self.folder}/disk/  # copies\n", "utf-8")
        words = ("--map", "rules", "compare", "there/npu", "there/gpu", "--all")
        for mpi in MPIS:
            self.assertEqual(plain, self.run_one(mpi.command(3, *words)), self.said)
        self.assertEqual(self.run_one(MPIS[0].command(2, "--map", "rule", *words[2:])).code, 2)


class Measured(MpiCase):
    """bench/cluster processes, on a job that is too small to say anything."""

    def test_all_ways_are_measured(self) -> None:
        done = subprocess.run([sys.executable, str(ROOT / "bench/cluster"), "processes", "--processes", "1", "3", "--seconds", "0.02",
                               "--numbers", "9000", "--build", str(BUILD), "--scratch", str(self.folder)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), timeout=300)
        self.assertIn("all bytes are equal", done.stdout, done.stderr)
        self.assertEqual(done.returncode, int("not all are within their goals" in done.stdout))
        rows = re.findall(r"^\| (.*?) \| (\d+.*?) \|", done.stdout, re.MULTILINE)
        self.assertEqual(sorted(rows), sorted((mpi.name, count) for mpi in MPIS for count in ("1 (2 threads)", "3")))
        self.assertEqual(list(self.folder.iterdir()), [])


class Killed(MpiCase):
    WORDS = ("compare", "npu", "gpu", "--metrics", "all")

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        make_large(cls.folder)
        cls.plain = cls.run_one(cls(), [str(PLUMB), *cls.WORDS])

    def setUp(self) -> None:
        self.journals = self.folder / "journals"
        shutil.rmtree(self.journals, ignore_errors=True)

    @contextlib.contextmanager
    def started(self, mpi: Mpi, count: int) -> Iterator["subprocess.Popen[str]"]:
        """Started, and a few pieces are finished."""
        self.tag = str(uuid.uuid4())
        command = mpi.command(count, "--scratch", str(self.journals), *self.WORDS)
        with tempfile.TemporaryFile("w+") as self.err, tempfile.TemporaryFile("w+") as self.out:
            child = subprocess.Popen(command, cwd=self.folder, stdout=self.out, stderr=self.err, text=True,
                                     env=environment(PLUMB_CPU_MASK="0", PLUMB_TEST_TAG=self.tag))
            try:
                end = time.monotonic() + 60
                while sum(path.stat().st_size for path in self.journals.glob("*.journal")) < 3000:
                    self.assertIsNone(child.poll(), "it ended before it could be killed")
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.005)
                yield child
            finally:
                if child.poll() is None:
                    child.kill()
                child.wait()
                for number in range(count):
                    with contextlib.suppress(ProcessLookupError, StopIteration):
                        os.kill(self.process(number), signal.SIGKILL)

    def process(self, number: int) -> int:
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (path / "environ").read_bytes().split(b"\0")
                if f"PLUMB_TEST_TAG={self.tag}".encode() in words and (
                        f"OMPI_COMM_WORLD_RANK={number}".encode() in words or f"PMI_RANK={number}".encode() in words):
                    return int(path.name)
        raise StopIteration

    def finished(self, child: "subprocess.Popen[str]") -> Ended:
        code = child.wait(timeout=120)
        self.out.seek(0)
        return ended(code, self.out.read(), None)

    def check_next_start(self, mpi: Mpi) -> None:
        self.assertEqual(len(list(self.journals.glob("*.journal"))), 1)
        again = self.run_one(mpi.command(3, "--scratch", str(self.journals), *self.WORDS), PLUMB_CPU_MASK="0")
        self.assertEqual(self.plain, again, self.said)
        self.assertRegex(self.said, r"plumb: \d+ of \d+ pieces are finished already, by an earlier start")
        self.assertEqual(list(self.journals.glob("*.journal")), [])

    def test_a_worker_is_killed(self) -> None:
        """Debian 12's launchers end the job then; the next start goes on."""
        for mpi in MPIS:
            with self.subTest(mpi=mpi.name), self.started(mpi, 3) as child:
                os.kill(self.process(2), signal.SIGKILL)
                if self.finished(child).out != self.plain.out:  # MPICH itself writes to stdout
                    self.check_next_start(mpi)

    def test_the_first_is_killed(self) -> None:
        for mpi in MPIS:
            with self.subTest(mpi=mpi.name), self.started(mpi, 3) as child:
                os.kill(self.process(0), signal.SIGKILL)
                self.assertNotIn("compared", self.finished(child).out)
                self.check_next_start(mpi)

    def test_a_worker_is_stopped(self) -> None:
        for mpi in MPIS:
            with self.subTest(mpi=mpi.name), self.started(mpi, 3) as child:
                os.kill(self.process(1), signal.SIGSTOP)
                self.assertEqual(self.finished(child), self.plain)

    def test_a_file_changes_before_the_next_start(self) -> None:
        mpi = MPIS[0]
        with self.started(mpi, 2) as child:
            os.kill(self.process(0), signal.SIGKILL)
            self.finished(child)
        path = self.folder / "npu/0.npy"
        kept = path.read_bytes()
        try:
            changed = bytearray(kept)
            changed[-4:] = b"\0\0\xc8\x42"
            path.write_bytes(changed)
            plain = self.run_one([str(PLUMB), *self.WORDS])
            self.assertNotEqual(plain, self.plain)
            self.assertEqual(plain, self.run_one(mpi.command(2, "--scratch", str(self.journals), *self.WORDS)))
        finally:
            path.write_bytes(kept)


if __name__ == "__main__":
    unittest.main()
