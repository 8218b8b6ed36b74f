"""The README shows what plumb really prints: its console blocks are run, line by line."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Iterator, List, Tuple

ROOT = Path(__file__).resolve().parent.parent.parent


def commands(text: str) -> Iterator[Tuple[str, List[str]]]:
    """Each command of the console blocks ("$ ", continued with "> ") and the lines below it."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            lines = part.splitlines()
            more = 1
            while more < len(lines) and lines[more].startswith("> "):
                more += 1
            yield "\n".join([lines[0]] + [line[2:] for line in lines[1:more]]), lines[more:]


def shows(shown: List[str], printed: List[str]) -> bool:
    """Is this what was printed, with "..." for any number of lines?"""
    pattern = "".join("(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


class Readme(unittest.TestCase):
    def test_console_blocks(self) -> None:
        checked = 0
        with tempfile.TemporaryDirectory(prefix="plumb-readme-") as folder:
            for name in ("examples", "tests"):
                os.symlink(ROOT / name, Path(folder) / name)
            for command, shown in commands((ROOT / "README.md").read_text("utf-8")):
                with self.subTest(command=command):
                    done = subprocess.run(["bash", "-c", command], cwd=folder, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                    self.assertTrue(shows(shown, done.stdout.splitlines()), done.stdout)
                    checked += 1
        self.assertGreater(checked, 10)


if __name__ == "__main__":
    unittest.main()
