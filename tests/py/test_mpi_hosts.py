"""plumb-mpi on several hosts, which are network namespaces of this machine: the same bytes, also when one is lost."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Callable, List

sys.path.insert(0, str(Path(__file__).resolve().parent))
import test_mpi  # noqa: E402
from test_mpi import MPIS, PLUMB, ROOT, Ended, Mpi, ended  # noqa: E402

HOSTS = ROOT / "scripts/in-hosts"


def obstacle() -> str:
    """Why hosts cannot be made here; empty: they can."""
    if not MPIS:
        return "neither Open MPI nor MPICH is here"
    done = subprocess.run([str(HOSTS), "1", "--", "true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return "" if done.returncode == 0 else " ".join(done.stdout.split()) or "hosts cannot be made"


OBSTACLE = obstacle()


@unittest.skipIf(OBSTACLE, OBSTACLE)
class HostsCase(unittest.TestCase):
    """Large enough to lose a host in the middle."""
    WORDS = ("compare", "npu", "gpu", "--metrics", "all")

    @classmethod
    def setUpClass(cls) -> None:
        cls.scratch = tempfile.TemporaryDirectory(prefix="plumb-hosts-")
        cls.folder = Path(cls.scratch.name)
        cls.at = cls.folder / "hosts"
        test_mpi.make_large(cls.folder)
        cls.plain = cls.ended([str(PLUMB), *cls.WORDS])

    @classmethod
    def tearDownClass(cls) -> None:
        cls.scratch.cleanup()

    @classmethod
    def environment(cls) -> "dict[str, str]":
        return {**os.environ, "TMPDIR": str(cls.folder), "PLUMB_CPU_MASK": "0"}

    @classmethod
    def ended(cls, command: List[str]) -> Ended:
        done = subprocess.run(command, cwd=cls.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=cls.environment(), timeout=300)
        cls.said = done.stderr
        return ended(done.returncode, done.stdout, None)

    def command(self, mpi: Mpi, hosts: int, processes: int, *words: str) -> List[str]:
        return [str(HOSTS), str(hosts), "--at", str(self.at), "--", mpi.launcher[0], "-n", str(processes),
                str(mpi.program), "--scratch", str(self.folder / "journals"), *words, *self.WORDS]


class Same(HostsCase):
    def test_one_to_sixteen(self) -> None:
        for mpi, counts in ((mpi, {"Open MPI": (2, 8), "MPICH": (1, 4, 16)}[mpi.name]) for mpi in MPIS):
            for count in counts:
                with self.subTest(mpi=mpi.name, processes=count):
                    self.assertEqual(self.ended(self.command(mpi, 4, count)), self.plain, self.said)

    def test_they_are_several(self) -> None:
        for mpi in MPIS:
            command = [str(HOSTS), "3", "--", mpi.launcher[0], "-n", "3", "hostname"]
            self.assertEqual(sorted(self.ended(command).out.split()), ["host1", "host2", "host3"])


class Lost(HostsCase):
    def setUp(self) -> None:
        shutil.rmtree(self.folder / "journals", ignore_errors=True)

    def journals(self) -> List[Path]:
        return list((self.folder / "journals").glob("*.journal"))

    def wait(self, what: str, child: "subprocess.Popen[str]", seconds: float) -> None:
        end = time.monotonic() + seconds
        while not getattr(self, what)() and child.poll() is None:
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.01)

    def begun(self) -> bool:
        return sum(path.stat().st_size for path in self.journals()) > 3000

    def complete(self) -> bool:
        return (self.folder / "out").read_text("utf-8") == self.plain.out and not self.journals()

    def lose(self, mpi: Mpi, what: str, host: str) -> Ended:
        """Three hosts, one of which is lost in the middle. What there was to be said, and the exit code."""
        with open(self.folder / "out", "w", encoding="utf-8") as out, open(self.folder / "err", "w+",
                                                                           encoding="utf-8") as err:
            child = subprocess.Popen(self.command(mpi, 3, 3, "--patience", "10"), cwd=self.folder, stdout=out,
                                     stderr=err, text=True, env=self.environment())
            try:
                self.wait("begun", child, 60)
                self.assertIsNone(child.poll(), "it ended before a host could be lost")
                subprocess.run([str(HOSTS), what, host, "--at", str(self.at)], check=True)
                # Whether a launcher ends by itself when a host is off is its own affair.
                if what == "cut":
                    child.wait(240)
                elif host == "host1":
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        child.wait(10)
                else:
                    self.wait("complete", child, 120)
            finally:
                if child.poll() is None:
                    child.send_signal(signal.SIGTERM)
                child.wait()
            return ended(child.returncode, (self.folder / "out").read_text("utf-8"), None)

    def check_next_start(self, mpi: Mpi) -> None:
        self.assertEqual(len(self.journals()), 1)
        self.assertEqual(self.ended(self.command(mpi, 2, 3)), self.plain, self.said)
        self.assertRegex(self.said, r"plumb: \d+ of \d+ pieces are finished already, by an earlier start")
        self.assertEqual(self.journals(), [])

    def check_losses(self, what: str, host: str, check: Callable[[Ended], None]) -> None:
        for mpi in MPIS:
            with self.subTest(mpi=mpi.name):
                self.setUp()
                done = self.lose(mpi, what, host)
                check(done)
                if self.plain.out != done.out:
                    self.check_next_start(mpi)

    def test_a_host_is_off(self) -> None:
        """Open MPI ends the job then."""
        self.check_losses("off", "host2", lambda done: self.assertNotEqual(done.code, 0))

    def test_the_first_host_is_off(self) -> None:
        self.check_losses("off", "host1", lambda done: self.assertNotIn("compared", done.out))

    def test_a_cable_is_pulled(self) -> None:
        """The processes of that host live, and are not heard: the others do their pieces, and the launcher ends."""
        self.check_losses("cut", "host2", lambda done: self.assertEqual(done, self.plain))


if __name__ == "__main__":
    unittest.main()
