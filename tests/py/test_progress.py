"""The bar of work that takes longer than a second."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import tempfile
import termios
import unittest
from pathlib import Path
from typing import List

PLUMB = str(Path(os.environ["PLUMB_BUILD"]) / "plumb")


def drawn(columns: int, *words: str) -> str:
    """What a command writes to a terminal on stderr."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    run = subprocess.Popen([PLUMB, *words], stdout=subprocess.PIPE, stderr=follower, env=env)
    os.close(follower)
    text = b""
    try:
        while True:
            text += os.read(leader, 65536)
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    run.communicate()
    return text.decode()


class Progress(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": 1.0,
                  "Min": 0.0, "Mean": 0.5, "Norm": 2.0, "requires_grad": False}
        calls = {f"Torch.add.{i}.forward": {"input_args": [tensor], "input_kwargs": {},
                                            "output": [tensor]} for i in range(20000)}
        self.dump = self.folder / "dump.json"
        self.dump.write_text(json.dumps({"task": "statistics", "level": "L1",
                                         "dump_data_dir": None, "data": calls}))

    def step(self, ranks: int) -> str:
        for rank in range(ranks):
            folder = self.folder / "step0" / f"rank{rank}"
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / "dump.json").exists():
                os.link(self.dump, folder / "dump.json")
        return str(self.folder / "step0")

    def bars(self, columns: int) -> List[str]:
        """Those of as many ranks as take this machine longer than a second."""
        ranks, text = 32, ""
        while not text and ranks <= 1024:
            text = drawn(columns, "overflow_check", self.step(ranks), "-o", str(self.folder))
            ranks *= 4
        self.assertTrue(text.endswith("\r\x1b[K"), text)
        self.assertNotIn("\n", text)
        return [line.replace("\x1b[K", "") for line in text.split("\r")[1:-1]]

    def test_counts(self) -> None:
        bars = self.bars(100)
        self.assertRegex(bars[-1], r"\A\[#+ *\] +\d+ % \d+ of \d+ ranks, [\d.]+ ranks/s, "
                                   r"\d+ s left\Z")

    def test_narrow(self) -> None:
        self.assertLess(max(map(len, self.bars(40))), 40)

    def test_merge(self) -> None:
        """Reading, making and writing the sheets: none of it stands still in silence."""
        row = "Module.b.Linear.forward.{0}.output.0," + ",".join(["0.01"] * 8) + "\n"
        titles = ("NPU Name,Max diff,Min diff,Mean diff,L2norm diff,MaxRelativeErr,MinRelativeErr,"
                  "MeanRelativeErr,NormRelativeErr\n")
        rows, text = 20000, ""
        while "writing the sheets: 1 s" not in text and rows <= 640000:
            for rank in range(4):
                path = self.folder / f"compare_result_rank{rank}_20260101000000.csv"
                path.write_text(titles + "".join(row.format(i) for i in range(rows)))
            text = drawn(100, "merge_result", "-i", str(self.folder), "-o", str(self.folder / "out"))
            rows *= 4
        self.assertRegex(text, r"\rwriting the sheets: 1 s\x1b\[K")
        self.assertTrue(text.endswith("\r\x1b[K"), text)
        self.assertNotIn("\n", text)

    def test_pipe(self) -> None:
        done = subprocess.run([PLUMB, "overflow_check", self.step(2), "-o", str(self.folder)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.stderr, b"")


if __name__ == "__main__":
    unittest.main()
