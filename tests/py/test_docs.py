"""The README and the tutorials show what plumb really prints: their console blocks are run, line by
line. A Python block that begins with "# NAME.py" is first saved under that name, as a reader would."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Iterator, List, Tuple

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("PLUMB_BUILD", ROOT / "build"))


def blocks(text: str) -> Iterator[Tuple[str, str]]:
    """The language and the lines of each fenced block."""
    for match in re.finditer(r"^```(\w+)\n(.*?)^```", text, re.M | re.S):
        yield match.group(1), match.group(2)


def commands(block: str) -> Iterator[Tuple[str, List[str]]]:
    """Each command of a console block ("$ ", continued with "> ") and the lines below it."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        lines = part.splitlines()
        more = 1
        while more < len(lines) and lines[more].startswith("> "):
            more += 1
        yield "\n".join([lines[0]] + [line[2:] for line in lines[1:more]]), lines[more:]


def shows(shown: List[str], printed: List[str]) -> bool:
    """Is this what was printed, with "..." for any number of lines, and " ... " within a line?"""
    pattern = "".join("(?:.*\n)*?" if line == "..." else
                      ".*".join(re.escape(part) for part in re.split(r" \.\.\.(?: |$)", line)) + "\n"
                      for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


class Docs(unittest.TestCase):
    def walk(self, page: Path, at_least: int) -> None:
        environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "HOME": ""}
        checked = 0
        with tempfile.TemporaryDirectory(prefix="plumb-docs-") as folder:
            for name in ("examples", "tests"):
                os.symlink(ROOT / name, Path(folder) / name)
            environment["HOME"] = folder
            for language, block in blocks(page.read_text("utf-8")):
                saved = re.match(r"# (\w+\.py)\n", block)
                if language == "python" and saved:
                    (Path(folder) / saved.group(1)).write_text(block, "utf-8")
                if language != "console":
                    continue
                for command, shown in commands(block):
                    with self.subTest(command=command):
                        done = subprocess.run(["bash", "-c", command], cwd=folder, text=True,
                                              env=environment, stdout=subprocess.PIPE,
                                              stderr=subprocess.STDOUT)
                        self.assertTrue(shows(shown, done.stdout.splitlines()), done.stdout)
                        checked += 1
        self.assertGreaterEqual(checked, at_least)

    def test_readme(self) -> None:
        self.walk(ROOT / "README.md", 10)

    def test_gpu_against_npu(self) -> None:
        self.walk(ROOT / "docs/tutorials/gpu-against-npu.md", 5)

    def test_my_kernel(self) -> None:
        self.walk(ROOT / "docs/tutorials/my-kernel.md", 5)

    def test_my_compiler_pass(self) -> None:
        self.walk(ROOT / "docs/tutorials/my-compiler-pass.md", 5)


if __name__ == "__main__":
    unittest.main()
