"""The README, the pages in docs/ and the tutorials show what plumb really prints: their console blocks are
run, line by line, with nothing but examples/ at hand. A Python block that begins with "# NAME.py" is first saved under that name, as a reader would.

What plumb computes from files is the same everywhere and compared exactly. What PyTorch computes
differs from processor to processor: a block that shows such numbers begins with "```console
numbers=near", and there numbers with a point or an exponent may be off by NEAR, and columns be as wide
as they like. Counts are exact there too."""

import os
import re
import subprocess
import tempfile
import textwrap
import unittest
from pathlib import Path
from typing import Iterator, List, Set, Tuple

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("PLUMB_BUILD", ROOT / "build"))


NEAR = 0.01
NUMBER = re.compile(r"([-+]?\d+(?:\.\d+(?:e[-+]?\d+)?|e[-+]?\d+))")


def blocks(text: str) -> Iterator[Tuple[str, str]]:
    """The language (and what follows it) and the lines of each fenced block, those inside of lists too."""
    for match in re.finditer(r"^( *)```(\w[^\n]*)\n(.*?)^\1```", text, re.M | re.S):
        yield match.group(2), textwrap.dedent(match.group(3)) if match.group(1) else match.group(3)


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
    parts = [line if line == "..." else re.split(r"(?:^| )\.\.\.(?: |$)", line) for line in shown]
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


# Page -> the least number of commands that it shows.
ELSEWHERE = {"docs/SHARDED.md"}  # run with PyTorch 2, by tests/torch2/test_sharded_docs.py
PAGES = {
    "README.md": 8,
    "docs/CAPTURE.md": 2,
    "docs/CHECKPOINT.md": 1,
    "docs/COMPARE.md": 20,
    "docs/CONDENSE.md": 4,
    "docs/FORMATS.md": 1,
    "docs/GUARD.md": 5,
    "docs/PASSCHECK.md": 1,
    "docs/PRECHECK.md": 4,
    "docs/PRECISION.md": 2,
    "docs/RANKS.md": 5,
    "docs/REPORT.md": 5,
    "docs/SHARDS.md": 5,
    "docs/UNITTEST.md": 5,
    "docs/tutorials/gpu-against-npu.md": 5,
    "docs/tutorials/my-compiler-pass.md": 5,
    "docs/tutorials/my-kernel.md": 5,
}
LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages() -> List[Path]:
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def anchors(text: str) -> Set[str]:
    """The headings of a page as GitHub names them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Docs(unittest.TestCase):
    def walk(self, name: str) -> None:
        page = ROOT / name
        environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "LC_COLLATE": "C"}
        checked = 0
        with tempfile.TemporaryDirectory(prefix="plumb-docs-") as folder:
            os.symlink(ROOT / "examples", Path(folder) / "examples")
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
        self.assertGreaterEqual(checked, PAGES[name])

    def test_readme(self) -> None:
        self.walk("README.md")

    def test_capture(self) -> None:
        self.walk("docs/CAPTURE.md")

    def test_checkpoint(self) -> None:
        self.walk("docs/CHECKPOINT.md")

    def test_formats(self) -> None:
        self.walk("docs/FORMATS.md")

    def test_shards(self) -> None:
        self.walk("docs/SHARDS.md")

    def test_compare(self) -> None:
        self.walk("docs/COMPARE.md")

    def test_condense(self) -> None:
        self.walk("docs/CONDENSE.md")

    def test_guard(self) -> None:
        self.walk("docs/GUARD.md")

    def test_passcheck(self) -> None:
        self.walk("docs/PASSCHECK.md")

    def test_precheck(self) -> None:
        self.walk("docs/PRECHECK.md")

    def test_precision(self) -> None:
        self.walk("docs/PRECISION.md")

    def test_ranks(self) -> None:
        self.walk("docs/RANKS.md")

    def test_report(self) -> None:
        self.walk("docs/REPORT.md")

    def test_unittest(self) -> None:
        self.walk("docs/UNITTEST.md")

    def test_gpu_against_npu(self) -> None:
        self.walk("docs/tutorials/gpu-against-npu.md")

    def test_my_kernel(self) -> None:
        self.walk("docs/tutorials/my-kernel.md")

    def test_my_compiler_pass(self) -> None:
        self.walk("docs/tutorials/my-compiler-pass.md")

    def test_every_page_is_run(self) -> None:
        shown = {str(page.relative_to(ROOT)) for page in pages()
                 if any(language.startswith("console") for language, _ in blocks(page.read_text("utf-8")))}
        self.assertEqual(shown - ELSEWHERE, set(PAGES))

    def test_links(self) -> None:
        for page in pages():
            text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
            for link in LINK.findall(text):
                if "://" in link:
                    continue
                path, _, anchor = link.partition("#")
                target = (page.parent / path).resolve() if path else page
                with self.subTest(page=page.name, link=link):
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(target.read_text("utf-8")))

    def test_readme_is_short(self) -> None:
        self.assertLessEqual(len((ROOT / "README.md").read_bytes()), 10_000)

    def test_task_pages(self) -> None:
        """A page for each task, and a line in the glossary for each command."""
        for task in (ROOT / "src/task").iterdir():
            if task.is_dir():
                self.assertTrue((ROOT / "docs" / f"{task.name.upper()}.md").exists(), task.name)
        glossary = (ROOT / "docs/GLOSSARY.md").read_text("utf-8")
        listed = subprocess.run([str(BUILD / "plumb"), "--help"], text=True, stdout=subprocess.PIPE, check=True).stdout
        for command in re.findall(r"^  (\w+) {3,}", listed.partition("Commands:")[2].partition("Options:")[0], re.M):
            self.assertIn(f"`{command}`", glossary)

    def test_names(self) -> None:
        """What was added is written down: endings, metrics and standards that the program knows."""
        def said(*arguments: str) -> str:
            return subprocess.run([str(BUILD / "plumb"), *arguments], text=True, stdout=subprocess.PIPE, check=True).stdout

        def text(name: str) -> str:
            return " ".join((ROOT / "docs" / name).read_text("utf-8").split())

        endings = re.findall(r"\.\w+", said("--help").partition("It reads")[2].partition("files")[0])
        metrics = re.findall(r"^  (\w+) {3,}", said("help", "metrics"), re.M)
        self.assertGreaterEqual(len(endings), 8)
        self.assertGreaterEqual(len(metrics), 40)
        for page, names in (("FORMATS.md", endings), ("METRICS.md", metrics)):
            for name in names:
                self.assertIn(f"`{name}`", text(page))
        table = (ROOT / "src/format/format.h").read_text("utf-8").partition("#define FORMAT_TABLE")[2].partition("#define")[0]
        targets = (ROOT / "fuzz/meson.build").read_text("utf-8")
        for name in re.findall(r"X\((\w+)\)", table.partition("\n")[2]):
            self.assertIn("targets += {'" + name, targets, "every format has a fuzz target")
        for name in said("standard").split():
            self.assertRegex(text("COMPARE.md") + text("PRECHECK.md"), f"[`/ ]{name}`")


if __name__ == "__main__":
    unittest.main()
