"""docs/COMPILE.md shows what plumb prints."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))

from test_docs import BUILD, ROOT, blocks, commands, shows  # noqa: E402


class Page(unittest.TestCase):
    def test_compile(self) -> None:
        checked = 0
        environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
        with tempfile.TemporaryDirectory(prefix="plumb-docs-") as folder:
            for language, block in blocks((ROOT / "docs/COMPILE.md").read_text("utf-8")):
                saved = re.match(r"# (\w+\.py)\n", block)
                if language == "python" and saved:
                    (Path(folder) / saved.group(1)).write_text(block, "utf-8")
                for command, shown in commands(block) if language == "shell" else ():
                    done = subprocess.run(["bash", "-c", command], cwd=folder, text=True, env=environment,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                    self.assertTrue(shows(shown, done.stdout.splitlines(), True), done.stdout)
                    checked += 1
        self.assertEqual(1, checked)


if __name__ == "__main__":
    unittest.main()
