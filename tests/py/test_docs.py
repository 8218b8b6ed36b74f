"""The README and the tutorials show what plumb really prints: their console blocks are run, line by
line. A Python block that begins with "# NAME.py" is first saved under that name, as a reader would.

What plumb computes from files is the same everywhere and compared exactly. What PyTorch computes
differs from processor to processor: a block that shows such numbers begins with "```console
numbers=near", and there numbers with a point or an exponent may be off by NEAR, and columns be as wide
as they like. Counts are exact there too."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Iterator, List, Tuple

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("PLUMB_BUILD", ROOT / "build"))


NEAR = 0.01
NUMBER = re.compile(r"([-+]?\d+(?:\.\d+(?:e[-+]?\d+)?|e[-+]?\d+))")


def blocks(text: str) -> Iterator[Tuple[str, str]]:
    """The language (and what follows it) and the lines of each fenced block."""
    for match in re.finditer(r"^```(\w[^\n]*)\n(.*?)^```", text, re.M | re.S):
        yield match.group(1), match.group(2)


def commands(block: str) -> Iterator[Tuple[str, List[str]]]:
    """Each command of a console block ("$ ", continued with "> ") and the lines below it."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        lines = part.splitlines()
        more = 1
        while more < len(lines) and lines[more].startswith("> "):
            more += 1
        yield "\n".join([lines[0]] + [line[2:] for line in lines[1:more]]), lines[more:]


def pattern_of(part: str, near: bool) -> str:
    if not near:
        return re.escape(part)
    words = NUMBER.split(part)  # every other one is a number
    words[::2] = [re.sub(r"-{2,}", "-+", re.sub(r"(?:\\ )+", r" *", re.escape(word).replace(r"\-", "-")))
                  for word in words[::2]]
    words[1::2] = [r"(?<![\d.e+-])([-+]?[\d.]+(?:e[-+]?\d+)?)"] * (len(words) // 2)
    return "".join(words)


def shows(shown: List[str], printed: List[str], near: bool = False) -> bool:
    """Is this what was printed, with "..." for any number of lines, and " ... " within a line?"""
    parts = [line if line == "..." else re.split(r" \.\.\.(?: |$)", line) for line in shown]
    pattern = "".join("(?:.*\n)*?" if line == "..." else
                      ".*".join(pattern_of(part, near) for part in line) + "\n" for line in parts)
    match = re.fullmatch(pattern, "".join(line + "\n" for line in printed))
    if match is None or not near:
        return match is not None
    wanted = [float(word) for line in parts if line != "..." for part in line for word in NUMBER.findall(part)]
    return all(abs(float(got) - want) <= NEAR * abs(want) for got, want in zip(match.groups(), wanted))


class Rules(unittest.TestCase):
    def test_near(self) -> None:
        shown = ["+-----+------+", "| a   | 1.25 |", "+-----+------+", "3 of 4 ... 2e-05 | x"]
        other = ["+---+---------+", "| a | 1.25678 |", "+---+---------+", "3 of 4, in all 1.9999e-05 | x"]
        self.assertTrue(shows(shown, shown, near=True))
        self.assertTrue(shows(shown, other, near=True))
        self.assertFalse(shows(shown, other))
        for wrong in (("1.25678", "1.27"), ("3 of", "4 of"), ("| a", "| b"), ("1.9999e-05", "1.9999e-04")):
            self.assertFalse(shows(shown, [line.replace(*wrong) for line in other], near=True), wrong)


class Docs(unittest.TestCase):
    def walk(self, page: Path, at_least: int) -> None:
        environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "LC_COLLATE": "C"}
        checked = 0
        with tempfile.TemporaryDirectory(prefix="plumb-docs-") as folder:
            for name in ("examples", "tests"):
                os.symlink(ROOT / name, Path(folder) / name)
            environment["HOME"] = folder
            for language, block in blocks(page.read_text("utf-8")):
                saved = re.match(r"# (\w+\.py)\n", block)
                if language == "python" and saved:
                    (Path(folder) / saved.group(1)).write_text(block, "utf-8")
                if language not in ("console", "console numbers=near"):
                    self.assertNotRegex(language, "console")
                    continue
                for command, shown in commands(block):
                    with self.subTest(command=command):
                        done = subprocess.run(["bash", "-c", command], cwd=folder, text=True,
                                              env=environment, stdout=subprocess.PIPE,
                                              stderr=subprocess.STDOUT)
                        self.assertTrue(shows(shown, done.stdout.splitlines(), "near" in language),
                                        done.stdout)
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
