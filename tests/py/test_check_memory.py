"""acc_check and the memory that calls may take: one budget for all threads, and runs that were killed
for lack of it."""

import re
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Dict

import check_dump as make
from check_case import PLUMB, Folder, check, rows, tables
from check_dump import backward, forward, tensor

KILLED = "an earlier run was killed for lack of memory while it ran this call"


def calls(sizes: Dict[int, int], count: int = 12) -> Dict[str, Any]:
    """Products of small matrices, some of them of the given sizes."""
    data: Dict[str, Any] = {}
    for k in range(count):
        one = tensor([sizes.get(k, 16)] * 2, grad=True)
        make.add(data, f"Torch.matmul.{k}", forward(one, one), backward(tensor(one["shape"])))
    return data


class Budget(Folder):
    def test_a_call_that_needs_more_is_skipped(self) -> None:
        """Its backward only, where the forward fits; and the others are checked."""
        path = self.dump(calls({3: 1000, 7: 4000}))
        done = check(path, "-o", self.out("out"), "--memory", "48M")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = rows(self.folder / "out")
        self.assertEqual(found["Torch.matmul.7"][:2], ["SKIP", "SKIP"])
        self.assertIn("memory", found["Torch.matmul.7"][2])
        self.assertEqual(found["Torch.matmul.3"][:2], ["pass", "SKIP"])
        self.assertRegex(found["Torch.matmul.3"][2], r"no backward: .*MiB of memory")
        for k in set(range(12)) - {3, 7}:
            self.assertEqual(found[f"Torch.matmul.{k}"][:2], ["pass", "pass"])
        self.assertIn("12 APIs: 11 pass, 0 warning, 0 error, 1 skipped; the backward of 1 could not be "
                      "checked\n", done.stdout)

    def test_threads_share_it(self) -> None:
        """The rows are the same for any number of threads, and so is the limit: a call that is too
        large for its thread's part runs alone."""
        path = self.dump(calls({k: 600 for k in range(0, 24, 2)}, 24))
        found, peaks = set(), []
        for n in ("1", "2", "8"):
            done = subprocess.run(
                [sys.executable, "-c", "import resource, subprocess, sys\n"
                 "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
                 "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                 PLUMB, "multi_acc_check", str(path), "--no-torch", "-n", n, "-o",
                 str(self.out(n)), "--memory", "64M"], stdout=subprocess.PIPE, text=True, timeout=600)
            code, peak = map(int, done.stdout.split())
            self.assertEqual(code, 0)
            found.add(tables(self.folder / n))
            peaks.append(peak)
        self.assertEqual(len(found), 1)
        self.assertEqual(set(row[0] for row in rows(self.folder / "8").values()), {"pass"})
        self.assertLess(max(peaks), (64 + 48) << 10, peaks)  # KiB; eight at once would take 230 MiB

    def test_sizes(self) -> None:
        path = self.dump(calls({}))
        for size in ("", "much", "-1G", "0", "1P"):
            done = check(path, "-o", self.folder / "none", "--memory=" + size)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--memory", done.stderr)
            self.assertFalse((self.folder / "none").exists())


class Killed(Folder):
    """A run that dies leaves the calls that it had under way beside its result."""

    def cut(self, lines: int) -> Path:
        """A result of which only the first calls are finished."""
        check(self.dump(calls({})), "-o", self.out("out"))
        result, = self.folder.glob("out/*_result_*.csv")
        self.whole = tables(self.folder / "out")
        for path in (result, Path(str(result).replace("_result_", "_details_"))):
            kept = path.read_text(encoding="utf-8").splitlines(True)
            last = max(k for k, line in enumerate(kept) if line.startswith(f"Torch.matmul.{lines - 1}"))
            path.write_text("".join(kept[:last + 1]), encoding="utf-8")
        return result

    def resume(self, result: Path, *more: str) -> "subprocess.CompletedProcess[str]":
        done = check(self.folder / "dump.json", "-csv_path", result, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([path.name for path in (self.folder / "out").glob("*running*")], [])
        return done

    def leave(self, result: Path, kills: int, *running: str, boot: str = "") -> None:
        boot = boot or Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        Path(str(result) + ".running").write_text(
            "".join(f"{line:47}\n" for line in (boot, str(kills), *running)), encoding="ascii")

    def kills(self) -> int:
        text = Path("/proc/vmstat").read_text(encoding="ascii")
        found = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
        return int(found[1]) if found else 0

    def test_for_lack_of_memory(self) -> None:
        """Of the calls that ran, the largest is not tried again, and that is told."""
        result = self.cut(5)
        self.leave(result, self.kills() + 1, "8 500", "6 90000", "7 1200")
        done = self.resume(result)
        self.assertEqual(done.stderr, f"plumb: Torch.matmul.6 is skipped: {KILLED}\n")
        found = rows(self.folder / "out")
        self.assertEqual(found["Torch.matmul.6"], ["SKIP", "SKIP", KILLED])
        self.assertEqual([name for name, row in found.items() if row[0] != "pass"], ["Torch.matmul.6"])
        self.assertEqual(len(found), 12)

    def test_otherwise(self) -> None:
        """Who was killed by somebody else, or before the machine was started again, loses nothing;
        and whatever stands in that file does no harm."""
        for kills, boot, running in ((0, "", ["6 90000"]), (1, "0" * 36, ["6 90000"]), (1, "", []),
                                     (1, "", ["2 5"]), (1, "", ["99999999999999999999999 5", "-1 -1"]),
                                     (1, "", ["many calls", "\x7f" * 40])):
            result = self.cut(5)
            self.leave(result, self.kills() + kills, *running, boot=boot)
            self.assertEqual(self.resume(result).stderr, "")
            self.assertEqual(tables(self.folder / "out"), self.whole)
            for path in self.folder.glob("out/*"):
                path.unlink()


if __name__ == "__main__":
    unittest.main()
