"""What plumb compare shows on a terminal: a digest of long tables, all of short ones."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import tempfile
import termios
import unicodedata
import unittest
from pathlib import Path
from typing import Dict, List, Tuple

import numpy as np

PLUMB = str(Path(os.environ["PLUMB_BUILD"]) / "plumb")
ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "evil\x1b[2J\x07\u202e\x9b31m\nname"


def width(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def on_terminal(columns: int, *words: str, cwd: Path = ROOT, term: str = "dumb") -> Tuple[int, str]:
    """Exit code and output of a command that has a terminal of that many columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    run = subprocess.Popen([PLUMB, *words], stdin=subprocess.DEVNULL, stdout=follower,
                           stderr=subprocess.PIPE, cwd=cwd, env={**env, "TERM": term})
    os.close(follower)
    shown = b""
    try:
        while True:
            shown += os.read(leader, 65536)
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    run.communicate()
    return run.returncode, shown.decode().replace("\r\n", "\n")


def piped(*words: str, cwd: Path = ROOT) -> str:
    return subprocess.run([PLUMB, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
                          text=True).stdout


def tables(text: str) -> List[List[str]]:
    """The rows of each table, titles first."""
    found: List[List[str]] = []
    rules = 3
    for line in text.splitlines():
        if line.startswith("+-"):
            if rules == 3:
                found.append([])
                rules = 0
            rules += 1
        elif line.startswith("| "):
            found[-1].append(line)
    return found


def names(table: List[str]) -> List[str]:
    return [row.split("|")[1].strip() for row in table[1:]]


class Digest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def runs(self, count: int) -> Tuple[Dict[str, np.ndarray], Dict[str, np.ndarray]]:
        draw = np.random.default_rng(count)
        golden = {f"m{i:04d}": draw.standard_normal(16).astype(np.float32) for i in range(count)}
        return {name: value.copy() for name, value in golden.items()}, golden

    def compare(self, target: Dict[str, np.ndarray], golden: Dict[str, np.ndarray], *more: str,
                columns: int = 120, term: str = "dumb") -> str:
        np.savez(self.folder / "a.npz", **target)
        np.savez(self.folder / "b.npz", **golden)
        self.status, shown = on_terminal(columns, "compare", "a.npz", "b.npz", *more,
                                         cwd=self.folder, term=term)
        return shown

    def test_few_rows(self) -> None:
        """39 rows are all shown, 40 are not; a pipe gets the same as ever."""
        shown = self.compare(*self.runs(39), "--wide")
        self.assertEqual(shown, piped("compare", "a.npz", "b.npz", "--wide", cwd=self.folder))
        self.assertEqual(len(names(tables(shown)[0])), 39)
        shown = self.compare(*self.runs(40))
        self.assertEqual(tables(shown), [])
        self.assertIn("--all shows all 40 rows", shown)
        self.assertEqual(self.status, 0)

    def test_planted_fault(self) -> None:
        """The fault is named first, among its neighbours; what it spoils later is the worst."""
        target, golden = self.runs(500)
        target["m0123"] *= np.float32(1.1)
        for i in range(124, 400, 4):
            target[f"m{i:04d}"] *= np.float32(1.1 + i / 1000)
        shown = self.compare(target, golden)
        lines = shown.splitlines()
        self.assertEqual(self.status, 1)
        self.assertEqual(lines[0],
                         "500 compared: 430 pass, 70 fail; 0 unmatched; standard: torchair")
        self.assertRegex(lines[2], r"\AFirst failure, .*: m0123 \(max_rel 0\.1\d* >= 0\.01\)\Z")
        first, worst = tables(shown)
        self.assertEqual(names(first), [f"m{i:04d}" for i in range(120, 127)])
        self.assertEqual([" FAIL " in row for row in first[1:]],
                         [False] * 3 + [True] * 2 + [False] * 2)
        self.assertEqual(names(worst), [f"m{i:04d}" for i in range(396, 356, -4)])
        self.assertRegex(lines[-2], r"\A70 beyond the limits \(--only fail\); first: m0123 \(")
        self.assertRegex(lines[-1], r"\A--all shows all 500 rows")

    def test_edges(self) -> None:
        for index, around in ((0, range(4)), (1, range(5)), (59, range(56, 60))):
            target, golden = self.runs(60)
            target[f"m{index:04d}"] *= 2
            self.assertEqual(names(tables(self.compare(target, golden))[0]),
                             [f"m{i:04d}" for i in around])

    def test_kinds(self) -> None:
        """Each kind of trouble has its line, its count and its first row, the worst kinds first."""
        target, golden = self.runs(100)
        target["m0010"][3] = np.nan
        target["m0011"][3] = np.inf
        target["m0020"] *= 2
        target["m0030"] = target["m0030"][:8]
        target["m0040"] = target["m0040"].astype(np.int32)
        del golden["m0050"], golden["m0051"], target["m0060"]
        target["m0070"][0] = golden["m0070"][0] = np.nan
        shown = self.compare(target, golden, "--match", "exact", columns=400)
        kinds = [re.fullmatch(r"(\d+) (.*?) \(--only (\w+)\); first: (\w+) \(.*\)", line)
                 for line in shown.splitlines()]
        self.assertEqual([kind.groups() for kind in kinds if kind], [
            ("2", "with NaN or infinity on one side only", "fail", "m0010"),
            ("1", "beyond the limits", "fail", "m0020"),
            ("1", "of different shapes", "fail", "m0030"),
            ("1", "of different types", "fail", "m0040"),
            ("2", "in the target run only", "fail", "m0050"),
            ("1", "in the golden run only", "fail", "m0060"),
            ("1", "suspicious", "suspicious", "m0070")])
        self.assertEqual(names(tables(shown)[1]), ["m0010", "m0011", "m0020", "m0030", "m0040",
                                                   "m0050", "m0051", "m0060", "m0070"])
        self.assertIn("To pair more: ", shown)
        for option, count in (("fail", 8), ("suspicious", 9)):
            shown = self.compare(target, golden, "--match", "exact", "--only", option, "--wide")
            self.assertEqual(len(names(tables(shown)[0])), count)

    def test_unreadable(self) -> None:
        for side in "ab":
            (self.folder / side).mkdir()
            for i in range(45):
                np.save(self.folder / side / f"m{i:02d}.npy", np.arange(9.0))
        whole = (self.folder / "a" / "m07.npy").read_bytes()
        (self.folder / "a" / "m07.npy").write_bytes(whole[:-20])
        status, shown = on_terminal(300, "compare", "a", "b", cwd=self.folder)
        self.assertEqual(status, 1)
        self.assertRegex(shown, r"\n1 unreadable \(--only fail\); first: m07 \(.*m07\.npy")

    def test_nothing_fails(self) -> None:
        target, golden = self.runs(50)
        target["m0030"] *= np.float32(1.002)
        shown = self.compare(target, golden)
        self.assertEqual(self.status, 0)
        self.assertIn("\nNothing fails. First suspicious row, with the rows around it: m0030 (",
                      shown)
        target["m0030"] = golden["m0030"] * np.float32(1.0001)
        shown = self.compare(target, golden)
        self.assertNotIn("First ", shown)
        self.assertIn("\nThe 1 with the largest relative distance:\n", shown)
        self.assertEqual(names(tables(shown)[0]), ["m0030"])

    def test_whole_table(self) -> None:
        """--all, and what asks for certain rows, give the table and its closing line."""
        target, golden = self.runs(60)
        target["m0020"] *= 2
        for more, count in ((("--all",), 60), (("--sort", "-Cosine"), 60), (("--limit", "50"), 50),
                            (("--only", "fail"), 1)):
            shown = self.compare(target, golden, "--wide", *more)
            self.assertEqual(shown, piped("compare", "a.npz", "b.npz", "--wide", *more,
                                          cwd=self.folder))
            self.assertEqual(len(names(tables(shown)[0])), count)
        for format in "csv", "json", "md":
            shown = self.compare(target, golden, "--format", format)
            self.assertEqual(shown, piped("compare", "a.npz", "b.npz", "--format", format,
                                          cwd=self.folder))
        self.assertIn("60 rows written to", self.compare(target, golden, "result.csv"))
        self.assertEqual(len((self.folder / "result.csv").read_text().splitlines()), 61)
        self.assertEqual(self.compare(target, golden, "--quiet"), "")
        self.assertEqual(self.status, 1)

    def test_pipe(self) -> None:
        """Without a terminal, all rows, and --all changes nothing."""
        words = ("compare", "examples/demo/target", "examples/demo/golden")
        text = piped(*words)
        self.assertEqual(len(tables(text)[0]), 1 + 119)
        self.assertRegex(text.splitlines()[-1],
                         r"\A119 compared: .*; first failure: .*; standard: xray\Z")
        self.assertEqual(text, piped(*words, "--all"))

    def test_columns(self) -> None:
        """Room is saved by columns that the others make up for, unless more were asked for."""
        target, golden = self.runs(60)
        target["m0020"] *= 2
        titles = tables(self.compare(target, golden, columns=300))[0][0]
        self.assertNotIn("Data Name", titles)
        self.assertNotIn("Ratio", titles)
        self.assertIn("Err_message", titles)
        for more in (("--wide",), ("--metrics", "rmse")):
            titles = tables(self.compare(target, golden, *more, columns=300))[0][0]
            self.assertIn("Data Name", titles)

    def test_narrow(self) -> None:
        target, golden = self.runs(60)
        long = "层" * 40 + ".a.module.of.a.name.that.is.longer.than.many.a.terminal." * 3
        target[long], golden[long] = np.ones(3), np.zeros(3)
        for columns in (200, 120, 80, 60, 50):
            shown = self.compare(target, golden, columns=columns)
            self.assertLessEqual(max(map(width, shown.splitlines())), columns)
            self.assertIn(long.replace(".", ""), re.sub(r"[\s.]", "", shown))
        for columns in (30, 12, 1):  # narrower than any table: the lines around it still fit
            shown = self.compare(target, golden, columns=columns)
            around = [line for line in shown.splitlines() if line[:1] not in "+|"]
            self.assertLessEqual(max(map(width, around)), max(columns, 2))

    def test_hostile_names(self) -> None:
        target, golden = self.runs(60)
        target[HOSTILE], golden[HOSTILE] = np.ones(3), np.zeros(3)
        for columns in (60, 120):
            shown = self.compare(target, golden, columns=columns)
            self.assertIn("1 beyond the limits", shown)
            self.assertFalse({unicodedata.category(c) for c in shown if c != "\n"} & {"Cc", "Cf"})
            self.assertTrue(all(re.match(r"\d|First|The |    |--all|\+|\||$", line)
                                for line in shown.splitlines()), shown)

    def test_colours(self) -> None:
        target, golden = self.runs(60)
        target["m0020"] *= 2
        shown = self.compare(target, golden, term="xterm")
        self.assertIn("\x1b[1;31mm0020\x1b[0m", shown)
        self.assertNotIn("\x1b", self.compare(target, golden, "--no-color", term="xterm"))

    def test_many_rows(self) -> None:
        shown = self.compare(*self.runs(5000))
        self.assertLess(len(shown), 500)

    def test_statistics(self) -> None:
        """Dumps without values are ranked by the difference of their statistics."""
        for side, factor in (("npu", 2.0), ("gpu", 1.0)):
            calls = {}
            for i in range(50):
                value = float(i + 1) * (factor if i in (30, 40) else 1.0)
                value = float("inf") if i == 35 and side == "npu" else value
                calls[f"Torch.add.{i}.forward"] = {"input_args": [], "input_kwargs": {}, "output": [
                    {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": value,
                     "Min": 0.0, "Mean": 1.0, "Norm": value, "requires_grad": False}]}
            folder = self.folder / side
            folder.mkdir()
            (folder / "dump.json").write_text(json.dumps(
                {"task": "statistics", "level": "L1", "dump_data_dir": None, "data": calls}))
        status, shown = on_terminal(250, "compare", "npu", "gpu", cwd=self.folder)
        self.assertEqual(status, 1)
        self.assertIn("rule: statistics differ by less than 1%\n", shown)
        self.assertEqual(names(tables(shown)[0])[3], "Torch.add.30.forward.output.0")
        self.assertRegex(shown, r"\n1 with NaN or infinity on one side only .*add\.35\.")
        self.assertRegex(shown, r"\n2 beyond the limits .*add\.30\.")

    def test_graph_dumps(self) -> None:
        """Rows of graph dumps have tokens and places, and may do without a counterpart."""
        for side in ("target", "golden"):
            folder = self.folder / side / "worldsize1_global_rank0" / "graph_1" / "0"
            folder.mkdir(parents=True)
            for i in range(45):
                value = np.arange(6, dtype=np.float32) + (2 if side == "target" and i == 20 else 1)
                name = f"add_{i:02d}-aten.add.Tensor.OUTPUT.0.20250301120000{i:06d}.npy"
                np.save(folder / name, value)
        status, shown = on_terminal(150, "compare", "target", "golden", cwd=self.folder)
        self.assertEqual(status, 1)
        self.assertRegex(shown, r"\A45 compared: 44 pass, 1 fail; 0 unmatched; standard: torch")
        self.assertRegex(shown, r"\nFirst failure, with the rows around it: add_20.*, output 0 \(")
        self.assertEqual(len(names(tables(shown)[0])), 7)
        self.assertRegex(shown, r"\n1 beyond the limits \(--only fail\); first: add_20")
        self.assertEqual(on_terminal(150, "compare", "target", "golden", "--all", "--wide",
                                     cwd=self.folder)[1],
                         piped("compare", "target", "golden", "--wide", cwd=self.folder))


if __name__ == "__main__":
    unittest.main()
