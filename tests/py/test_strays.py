"""Files beside the ranks of a dump are no ranks: they change no result, and are named."""

import array
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import List, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
import mpi_case  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PLUMB = Path(os.environ.get("PLUMB_BUILD", ROOT / "build")) / "plumb"


class Strays(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="plumb-strays-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def run_one(self, *words: str) -> Tuple[int, str, List[str]]:
        """Exit code, output without the times of files, and lines on stderr."""
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        done = subprocess.run([str(PLUMB), *words], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return done.returncode, re.sub(r"_[0-9]{8,}", "", done.stdout), done.stderr.splitlines()

    def strew(self, *names: str) -> None:
        for name in names:
            (self.folder / "npu/step0" / name).write_text('{"data": {}}', "utf-8")

    def test_every_command(self) -> None:
        mpi_case.make(self.folder, 2)
        commands = (["compare", "npu/step0", "gpu/step0", "--format", "csv"], ["compare", "npu", "gpu", "--format", "csv"],
                    ["compare", "npu/step0", "gpu/step0", "--all"], ["compare", "npu/step0", "gpu/step0", "-da", "-o", "out"],
                    ["compare", "npu/step0", "gpu/step0", "--rules", "msprobe", "-o", "out", "--quiet"],
                    ["summary", "npu/step0"], ["summary", "npu", "--format", "csv"], ["overflow_check", "npu/step0", "-o", "out"],
                    ["blame", "npu/step0", "gpu/step0"], ["blame", "npu"], ["info", "npu"])
        clean = [self.run_one(*words) for words in commands]
        (self.folder / "npu/step0/.hidden").write_text("", "utf-8")
        (self.folder / "npu/step0/results").mkdir()
        for words, before in zip(commands, clean):
            self.assertEqual(self.run_one(*words), before, words)
        self.strew("notes.json", "rank2.tmp", "rank7")
        for words, before in zip(commands, clean):
            code, out, err = self.run_one(*words)
            self.assertEqual((code, out), before[:2], words)
            self.assertIn("plumb: warning: npu/step0: no rank, and ignored: notes.json, rank2.tmp, rank7", err, words)
            self.assertEqual(len(err), len(before[2]) + 1, words)

    def test_a_table_for_each_rank(self) -> None:
        """It is said once, and there is no table of a rank that is none."""
        mpi_case.make(self.folder, 3)
        self.strew("rank7")
        _, _, err = self.run_one("compare", "npu/step0", "gpu/step0", "-o", "out")
        self.assertEqual(err, ["plumb: warning: npu/step0: no rank, and ignored: rank7"])
        self.assertEqual(sorted(path.name[:20] for path in (self.folder / "out").iterdir()),
                         [f"compare_result_rank{rank}" for rank in range(3)])

    def test_many(self) -> None:
        mpi_case.make(self.folder, 2)
        self.strew("rank01", "z", "rank_3", "b", "a")
        (self.folder / "npu/step0/rank_4").mkdir()
        _, _, err = self.run_one("summary", "npu/step0")
        self.assertEqual(err, ["plumb: warning: npu/step0: no rank, and ignored: a, b, rank01 and 3 more"])

    def test_shards(self) -> None:
        """Tensors of no rank beside those of ranks do not make one more rank."""
        values = array.array("f", range(8))
        for rank in range(2):
            folder = self.folder / f"npu/rank{rank}"
            folder.mkdir(parents=True)
            mpi_case.save_npy(folder / "w.npy", values[4 * rank:4 * rank + 4], [4])
        (self.folder / "gpu").mkdir()
        mpi_case.save_npy(self.folder / "gpu/w.npy", values, [8])
        clean = self.run_one("compare", "npu", "gpu", "--shards", "--format", "csv")
        self.assertEqual(clean[0], 0)
        mpi_case.save_npy(self.folder / "npu/notes.npy", values[:3], [3])
        code, out, err = self.run_one("compare", "npu", "gpu", "--shards", "--format", "csv")
        self.assertEqual((code, out), clean[:2])
        self.assertIn("target, 2 ranks", "\n".join(err))
        self.assertIn("left out: 1 of no rank, the first notes", "\n".join(err))


if __name__ == "__main__":
    unittest.main()
