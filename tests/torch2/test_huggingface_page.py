"""docs/HUGGINGFACE.md: its programs run, and print what the page shows."""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "HUGGINGFACE.md"
SHOWN = {"ask.py": 0, "wrong.py": 1}  # the program and the text block with its output


@unittest.skipIf(importlib.util.find_spec("transformers") is None, "Transformers is not installed")
class Page(unittest.TestCase):
    def test_programs(self) -> None:
        text = PAGE.read_text("utf-8")
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, re.M | re.S)
        programs = {}
        for language, block in blocks:
            if language != "python":
                continue
            compile(block, str(PAGE), "exec")
            named = re.match(r"# (\w+\.py)\n", block)
            if named:
                programs[named.group(1)] = block
        outputs = [block for language, block in blocks if language == "text"]
        self.assertEqual(len(outputs), len(SHOWN))
        path = os.pathsep.join([str(Path(os.environ["PLUMB_BUILD"]) / "python"), os.environ.get("PYTHONPATH", "")])
        with tempfile.TemporaryDirectory() as folder:
            for name, block in programs.items():
                (Path(folder) / name).write_text(block, "utf-8")
            for name, number in SHOWN.items():
                done = subprocess.run([sys.executable, name], cwd=folder, capture_output=True, text=True,
                                      env={**os.environ, "PYTHONPATH": path, "TRANSFORMERS_VERBOSITY": "error"})
                self.assertEqual(done.returncode, 0, done.stderr)
                wanted = re.escape(outputs[number]).replace(r"\.\.\.", ".*")
                self.assertRegex(done.stdout, re.compile(rf"\A{wanted}", re.S))


if __name__ == "__main__":
    unittest.main()
