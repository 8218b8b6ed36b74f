"""Workers of PyTorch that crash, hang, are killed or run out of memory, and what is left then."""

import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from typing import Any, List

sys.path.insert(0, str(Path(__file__).parent))
from check_dump import forward, tensor  # noqa: E402
from torch_runs import Folder, Result  # noqa: E402

FAULTS = {"relu": "the worker was ended by SIGSEGV",
          "gelu": "the worker was ended by SIGABRT; it last said: terminate called",
          "silu": "the worker was ended by SIGKILL",
          "hardswish": "the worker was ended by SIGILL (an instruction that this machine does not have; "
                       "in a virtual machine set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16)",
          "mish": "the worker ended with exit code 7",
          "elu": "no answer within 10 s",
          "selu": "no answer within 10 s",
          "celu": "out of memory: RuntimeError",
          "softplus": "ModuleNotFoundError: No module named 'no_such_module'",
          "tanh": "ValueError: what a"}


def children(pid: int) -> List[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(name))
        except OSError:
            pass  # has ended
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(true: Any, seconds: float = 300) -> bool:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class Faults(Folder):
    def test_each_costs_one_call(self) -> None:
        names: List[str] = []
        for name in FAULTS:
            names += [f"Functional.{name}", "Torch.exp"]
        result = self.check(self.dump_of(names), "-d", "torch:cpu", "--import", "my_ops",
                            "--timeout", "10", "-n", "2")
        self.assertEqual(result.code, 0)
        self.assertEqual([row[0] for row in result.rows.values()], ["SKIP", "pass"] * len(FAULTS))
        for name, row in result.rows.items():
            if row[0] == "SKIP":
                self.assertIn(f"device: {FAULTS[name.split('.')[1]]}", row[2])

    def left_by_workers(self, name: str) -> str:
        """What a worker wrote into its own folder."""
        return "".join(path.read_text() for path in self.folder.glob(f"plumb-worker-*/{name}"))

    def test_a_stand_in_that_crashes(self) -> None:
        """For the built-in device, which has no complex matrices to invert."""
        (self.folder / "crashing.py").write_text(
            "import ctypes, torch\n"
            "def crash(x):\n"
            "    ctypes.string_at(0)\n"
            "torch.linalg.inv = crash\n")
        c = tensor([3, 3], "complex64", 0.0, 2.0)
        result = self.check(self.dump(Torch__linalg__inv__0=(forward(c), None),
                                      Torch__linalg__det__0=(forward(c), None)), "--import", "crashing.py")
        self.assertEqual([row[0] for row in result.rows.values()], ["SKIP", "pass"])
        self.assertIn("SIGSEGV", result.rows["Torch.linalg.inv.0"][2])

    def start(self, dump: Path) -> "subprocess.Popen[str]":
        command = self.command(dump, "-d", "torch:cpu", "--import", "my_ops", "-n", "2")
        run = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.PIPE, start_new_session=True,
                               env={**os.environ, "TMPDIR": str(self.folder)})
        self.addCleanup(run.stdout.close)
        self.addCleanup(run.stderr.close)
        return run

    def test_workers_do_not_survive(self) -> None:
        """Not even one that never returns to Python."""
        run = self.start(self.dump_of(["Functional.selu", "Functional.elu"]))
        self.assertTrue(wait_until(lambda: len(children(run.pid)) == 2))
        workers = children(run.pid)
        time.sleep(1.5)
        run.kill()
        run.wait()
        self.assertTrue(wait_until(lambda: not any(is_running(pid) for pid in workers)))

    def test_a_killed_worker(self) -> None:
        run = self.start(self.dump_of(["Torch.exp", "Functional.sigmoid", "Torch.exp"]))
        self.assertTrue(wait_until(lambda: self.left_by_workers("asleep")))
        os.kill(int(self.left_by_workers("asleep")), signal.SIGKILL)
        out, err = run.communicate()
        result = Result(subprocess.CompletedProcess([], run.returncode, out, err))
        self.assertEqual([row[0] for row in result.rows.values()], ["pass", "SKIP", "pass"])
        self.assertIn("SIGKILL", result.rows["Functional.sigmoid.1"][2])

    def test_what_a_worker_started_goes_with_it(self) -> None:
        (self.folder / "forks.py").write_text(
            "import os, time\n"
            "FILE = open('child', 'a')\n"  # later it may not open one here
            "def leave(x):\n"
            "    if os.fork() == 0:\n"
            "        FILE.write(str(os.getpid()))\n"
            "        FILE.flush()\n"
            "        time.sleep(1000)\n"
            "    while not os.path.getsize('child'): time.sleep(0.01)\n"
            "    os.kill(os.getpid(), 9)\n"  # the child still holds the other end of the socket
            "def strange(x):\n"
            "    raise ValueError('\\ud800 and \\0')\n"
            "from torch.nn import functional as F\n"
            "F.relu, F.gelu = leave, strange\n")
        result = self.check(self.dump_of(["Functional.relu", "Functional.gelu", "Torch.exp"]), "-d",
                            "torch:cpu", "--import", "forks", "--timeout", "10")
        self.assertEqual([row[0] for row in result.rows.values()], ["SKIP", "SKIP", "pass"])
        self.assertIn("no answer within 10 s", result.rows["Functional.relu.0"][2])
        self.assertIn("ValueError: \\ud800 and", result.rows["Functional.gelu.1"][2])
        child = int((self.folder / "child").read_text())
        self.assertTrue(wait_until(lambda: not is_running(child)))

    def test_interrupt_and_resume(self) -> None:
        """A Ctrl-C reaches everything that belongs to the terminal, but what is at hand is
        finished, and what was left is done later to the same bytes."""
        names = ["Torch.exp", "Functional.sigmoid"] + ["Torch.exp", "Torch.cos"] * 20
        dump = self.dump_of(names)
        options = ["-d", "torch:cpu", "--import", "my_ops"]
        whole = self.check(dump, *options)
        run = subprocess.Popen(self.command(dump, *options), cwd=self.folder, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
        results: List[Path] = []

        def first_is_there() -> bool:
            results[:] = [path for path in self.folder.glob("*/accuracy_checking_result_*.csv")
                          if path.read_bytes() != whole.bytes[0] and b"exp.0" in path.read_bytes()]
            return bool(results)

        self.assertTrue(wait_until(first_is_there))
        os.killpg(run.pid, signal.SIGINT)
        out, err = run.communicate()
        partial = Result(subprocess.CompletedProcess([], run.returncode, out, err))
        self.assertEqual(run.returncode, 2, err)
        self.assertLess(len(partial.rows), len(names))
        self.assertEqual(partial.not_passed(), {})
        resumed = self.check(dump, *options, "-csv_path", str(results[0]))
        self.assertEqual(resumed.bytes, whole.bytes)


if __name__ == "__main__":
    unittest.main()
