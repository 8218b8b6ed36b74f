"""docs/SHARDED.md shows what is printed: its script and its commands are run."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))

from test_docs import BUILD, ROOT, blocks, commands, shows  # noqa: E402

import torch  # noqa: E402

VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


class Sharded(unittest.TestCase):
    @unittest.skipUnless(VERSION >= (2, 8), "fully_shard() of this PyTorch needs a GPU")
    def test_page(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "PATH": f"{BUILD}:{os.environ['PATH']}",
                       "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        checked = 0
        with tempfile.TemporaryDirectory(prefix="plumb-docs-") as folder:
            for language, block in blocks((ROOT / "docs" / "SHARDED.md").read_text("utf-8")):
                saved = re.match(r"# (\w+\.py)\n", block)
                if language == "python" and saved:
                    (Path(folder) / saved.group(1)).write_text(block, "utf-8")
                if not language.startswith("console"):
                    continue
                for command, shown in commands(block):
                    with self.subTest(command=command):
                        done = subprocess.run(["bash", "-c", command], cwd=folder, text=True, env=environment,
                                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
                        self.assertTrue(shows(shown, done.stdout.splitlines(), "near" in language), done.stdout)
                        checked += 1
        self.assertEqual(6, checked)


if __name__ == "__main__":
    unittest.main()
