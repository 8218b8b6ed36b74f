"""Results are whole under their names, or not there, whenever the program is killed."""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from typing import Dict, List, Set

BUILD = os.environ.get("PLUMB_BUILD", str(Path(__file__).resolve().parents[2] / "build"))
PLUMB = os.path.join(BUILD, "plumb")
KILLS = 25


def npy(path: Path, values: bytes) -> None:
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % len(values)
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + values)


class Kills(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="plumb-kills-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for side in ("a", "b"):
            (self.folder / side).mkdir()
            for k in range(200):
                npy(self.folder / side / f"a_tensor_with_a_name_of_its_own_{k}.npy", bytes([k] * 16))

    def run_killed(self, words: List[str], delay: float) -> bool:
        """True when it was not over by then."""
        with subprocess.Popen([PLUMB, *words], cwd=self.folder, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as child:
            time.sleep(delay)
            child.send_signal(signal.SIGKILL)
            child.wait()
            return child.returncode == -signal.SIGKILL

    def contents(self, folder: str) -> Dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (self.folder / folder).iterdir()
                if not path.name.startswith(".")}

    def check(self, words: List[str]) -> None:
        """Kills it at moments spread over the time that it takes, and looks at what it left."""
        start = time.monotonic()
        subprocess.run([PLUMB, *words, "-o", "whole"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        took = time.monotonic() - start
        wanted: Set[bytes] = set(self.contents("whole").values())
        self.assertTrue(wanted and all(wanted))
        dice = random.Random(3)
        killed = 0
        for _ in range(KILLS):
            killed += self.run_killed([*words, "-o", "killed"], dice.uniform(0, 1.3 * took))
        self.assertGreater(killed, 0)
        if words[-1] != "--xlsx":  # which has the time in it
            self.assertLessEqual(set(self.contents("killed").values()), wanted)
        for name, data in self.contents("killed").items():
            self.assertTrue(data, f"{name} is empty")

    def test_table(self) -> None:
        self.check(["compare", "a", "b"])

    def test_workbook(self) -> None:
        self.check(["compare", "a", "b", "--xlsx"])


if __name__ == "__main__":
    unittest.main()
