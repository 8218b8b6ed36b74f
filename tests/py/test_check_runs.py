"""acc_check as a program: the same bytes however it is run, killed and resumed; what it says
meanwhile."""

import os
import pty
import random
import re
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path
from typing import Dict, Tuple

import check_dump as make
from check_case import PLUMB, Folder, check, rows, tables
from check_dump import forward, tensor


def saved(folder: Path) -> Dict[str, bytes]:
    """Error data by name, whatever the time in the folder's name."""
    return {path.name: path.read_bytes() for path in folder.glob("ut_error_data*/*")} | {
        path.name: b"" for path in folder.glob("ut_error_data*/.*")}


class SameBytes(Folder):
    @classmethod
    def setUpClass(cls) -> None:
        cls.data = make.mixture(300)

    def setUp(self) -> None:
        super().setUp()
        self.path = self.dump(self.data)
        whole = self.out("whole")
        done = check(self.path, "-o", whole, cwd=whole)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.whole = tables(whole)

    def test_threads_do_not_matter(self) -> None:
        for command, more in (("multi_acc_check", ["-n", "1"]), ("multi_acc_check", ["-n", "8"]),
                              ("multi_acc_check", []), ("acc_check", ["--threads", "3"])):
            with self.subTest(command=command, more=more):
                out = self.out(command + "".join(more).replace("-", "_"))
                check(self.path, "-o", out, *more, command=command)
                self.assertEqual(tables(out), self.whole)

    def test_rows_are_in_the_order_of_the_dump(self) -> None:
        names = [name[:-len(".forward")] for name in self.data if name.endswith(".forward")]
        self.assertEqual(list(rows(self.folder / "whole")), names)

    def test_filter_keeps_rows_as_they_are(self) -> None:
        out = self.out("filtered")
        done = check(self.path, "-f", "-o", out)
        kept = tables(out)
        for part, whole in zip(kept, self.whole):
            lines = whole.splitlines()
            self.assertLess(len(part.splitlines()), len(lines))
            self.assertLessEqual(set(part.splitlines()), set(lines))
        repeated, = re.findall(r"(\d+) repeat others", done.stdout)
        self.assertEqual(int(repeated) + len(rows(out)), 300)

    def test_another_seed_gives_other_values(self) -> None:
        out = self.out("seed")
        check(self.path, "--seed", "5", "-o", out)
        self.assertNotEqual(tables(out)[1], self.whole[1])

    def test_a_part_of_the_dump_gives_those_rows(self) -> None:
        part = {name: entry for name, entry in self.data.items() if ".matmul." in name}
        out = self.out("part")
        check(make.save(self.folder / "part.json", part), "-o", out)
        self.assertLessEqual(set(tables(out)[1].splitlines()), set(self.whole[1].splitlines()))

    def test_copies_of_dropout_agree(self) -> None:
        self.assertEqual({tuple(row) for name, row in rows(self.folder / "whole").items()
                          if "dropout" in name}, {("pass", "pass", "")})


class Killed(Folder):
    """kill -9 at random moments; what is resumed ends like what was left alone."""

    def setUp(self) -> None:
        super().setUp()
        self.path = self.dump(make.mixture(300))
        self.rng = random.Random(7)

    def kill(self, out: Path, seconds: float, *more: str) -> bool:
        """Runs for that long at most. True when it was killed."""
        found = list(out.glob("accuracy_checking_result_*.csv"))
        if found:
            more += ("-csv_path", str(found[0]))
        run = subprocess.Popen([PLUMB, "multi_acc_check", "--no-torch", "-api_info", str(self.path),
                                "-o", str(out), *more], cwd=out, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
        try:
            _, said = run.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            run.kill()
            run.communicate()
            return True
        self.assertIn(run.returncode, (0, 1), said)
        return False

    def undisturbed(self, *more: str) -> Tuple[Path, float]:
        out = self.out("whole")
        start = time.monotonic()
        self.assertFalse(self.kill(out, 600, *more))
        return out, time.monotonic() - start

    def try_kills(self, count: int, *more: str) -> None:
        whole, longest = self.undisturbed(*more)
        seconds, killed = longest, 0
        for k in range(count):
            out = self.out(f"kill{k}")
            for _ in range(self.rng.choice([1, 1, 1, 3, 6])):
                if self.kill(out, self.rng.uniform(0.001, seconds), *more):
                    killed += 1
                else:  # the first run may have been on a busier machine
                    seconds = max(seconds * 0.8, longest / 8)
            for _ in range(20):
                if not self.kill(out, 600, *more):
                    break
            self.assertEqual(tables(out), tables(whole), k)
            self.assertEqual(saved(out), saved(whole), k)
            shutil.rmtree(out)
        self.assertGreater(killed, count // 3)

    def test_one_thread(self) -> None:
        self.try_kills(25, "-n", "1")

    def test_eight_threads(self) -> None:
        self.try_kills(25, "-n", "8")

    def test_with_the_filter(self) -> None:
        self.try_kills(5, "-f")

    def test_with_error_data(self) -> None:
        self.try_kills(10, "-save_error_data")

    def test_the_dialect_of_msprobe(self) -> None:
        self.try_kills(5, "--rules", "msprobe")

    def test_interrupts(self) -> None:
        self.path = self.dump(make.mixture(5000))
        whole, _ = self.undisturbed()
        for number, sign in enumerate((signal.SIGINT, signal.SIGTERM)):
            out = self.out(f"stop{number}")
            run = subprocess.Popen([PLUMB, "acc_check", "--no-torch", str(self.path), "-o", str(out)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while not any(path.stat().st_size > 500 for path in out.glob("*result*.csv")):
                time.sleep(0.001)
            run.send_signal(sign)
            said, message = run.communicate(timeout=600)
            result, = out.glob("*result*.csv")
            self.assertEqual(run.returncode, 2)
            self.assertIn(f"not finished; to continue, repeat the command with -csv_path {result}",
                          message)
            self.assertIn(str(result), said)
            self.assertEqual(tables(out)[0][-1:], b"\n")
            self.assertFalse(self.kill(out, 600))
            self.assertEqual(tables(out), tables(whole))


class Resumed(Folder):
    """What can be gone on with, and what is left alone."""

    def setUp(self) -> None:
        super().setUp()
        self.data = make.mixture(24)
        self.path = self.dump(self.data)
        self.results = self.out("out")
        self.code = check(self.path, "-o", self.results).returncode
        self.result, = self.results.glob("*result*.csv")
        self.details, = self.results.glob("*details*.csv")
        self.bytes = tables(self.results)

    def resume(self, *more: str) -> "subprocess.CompletedProcess[str]":
        return check(self.path, "-csv_path", str(self.result), *more)

    def refused(self, done: "subprocess.CompletedProcess[str]", *words: str) -> None:
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_a_finished_run(self) -> None:
        done = self.resume()
        self.assertEqual(done.returncode, self.code)
        self.assertIn("24 APIs: ", done.stdout)
        self.assertIn(" were finished before", done.stdout)
        self.assertEqual(tables(self.results), self.bytes)

    def test_errors_of_the_earlier_part_count(self) -> None:
        text = self.bytes[0].decode().splitlines()
        text[2] = text[2].split(",")[0] + ",error,pass,found by an earlier run"
        self.result.write_text("\n".join(text) + "\n")
        done = self.resume()
        self.assertEqual(done.returncode, 1)
        self.assertIn(" 1 error", done.stdout)

    def test_empty_files_start_over(self) -> None:
        self.result.write_bytes(b"")
        self.details.write_bytes(b"")
        self.assertEqual(self.resume().returncode, self.code)
        self.assertEqual(tables(self.results), self.bytes)

    def test_lost_details_are_made_again(self) -> None:
        self.details.write_bytes(self.bytes[1][:len(self.bytes[1]) // 2])
        self.assertEqual(self.resume().returncode, self.code)
        self.assertEqual(tables(self.results), self.bytes)

    def test_wrong_name(self) -> None:
        for name in ("result.csv", "accuracy_checking_result_2026.csv",
                     "accuracy_checking_result_20260101120000.csv.bak",
                     "accuracy_checking_details_20260101120000.csv"):
            shutil.copy(self.result, self.results / name)
            self.refused(check(self.path, "-csv_path", self.results / name), name,
                         "accuracy_checking_result_YYYYmmddHHMMSS.csv")

    def test_missing(self) -> None:
        self.details.unlink()
        self.refused(self.resume(), self.details.name, "No such file")
        self.result.unlink()
        self.refused(self.resume(), self.result.name, "No such file")
        self.assertEqual(list(self.results.iterdir()), [])

    def test_details_behind_a_link(self) -> None:
        """Who made the folder chose where it leads; the user named the result only."""
        mine = self.folder / "mine.csv"
        mine.write_bytes(self.bytes[1])
        self.details.unlink()
        self.details.symlink_to(mine)
        self.result.write_bytes(self.bytes[0].splitlines(True)[0])
        self.refused(self.resume(), self.details.name, "symbolic links")
        self.assertEqual(mine.read_bytes(), self.bytes[1])

    def test_details_of_another_run(self) -> None:
        other = self.out("other")
        check(make.save(self.folder / "other.json", {"Torch.exp.900.forward": forward(tensor([3])),
                                                     "Torch.exp.901.forward": forward(tensor([4]))}),
              "-o", other)
        foreign = tables(other)[1]
        self.details.write_bytes(foreign)
        self.refused(self.resume(), self.details.name, "not those of the result file")
        self.assertEqual(tables(self.results), (self.bytes[0], foreign))

    def test_other_rules(self) -> None:
        self.refused(self.resume("--rules", "msprobe"), "--rules")
        self.assertEqual(tables(self.results), self.bytes)

    def test_another_dump(self) -> None:
        names = list(self.data)
        first, last = names[0][:-len(".forward")], [n for n in names if n.endswith(".forward")][-1]
        without_first = {n: e for n, e in self.data.items() if not n.startswith(first + ".")}
        without_last = {n: e for n, e in self.data.items() if n != last}
        turned = dict(reversed(list(self.data.items())))
        for data, words in ((without_first, "is of " + first), (without_last, "no further call"),
                            (turned, "is of " + first)):
            self.refused(check(make.save(self.folder / "other.json", data), "-csv_path", self.result),
                         self.result.name, "line ", words, "go on with the dump")
        self.refused(self.resume("-f"), "-f just as then")
        self.assertEqual(tables(self.results), self.bytes)

    def test_a_dump_that_has_grown(self) -> None:
        data = {**self.data, "Torch.exp.9000.forward": forward(tensor([3]))}
        done = check(make.save(self.folder / "more.json", data), "-csv_path", self.result)
        self.assertEqual(done.returncode, self.code)
        self.assertIn("24 were finished before", done.stdout)
        self.assertTrue(tables(self.results)[0].startswith(self.bytes[0]))
        self.assertIn(b"Torch.exp.9000,pass", tables(self.results)[0])

    def test_garbage(self) -> None:
        for garbage in (b"\x00\xff" * 5000, b'"' * 999, b"a,b\n" * 100, b"\n"):
            self.result.write_bytes(garbage)
            self.refused(self.resume(), self.result.name, "first line")
            self.assertEqual(self.result.read_bytes(), garbage)
        self.result.write_bytes(self.bytes[0])
        self.details.write_bytes(garbage)
        self.refused(self.resume(), self.details.name, "first line")

    def test_a_folder(self) -> None:
        self.result.unlink()
        self.result.mkdir()
        self.refused(self.resume(), self.result.name)

    def test_two_at_once(self) -> None:
        import fcntl
        with open(self.result) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.refused(self.resume(), "another check is writing it")
        self.assertEqual(tables(self.results), self.bytes)

    def test_two_starts_in_a_second(self) -> None:
        for _ in range(3):
            check(self.path, "-o", self.results)
        self.assertEqual(len(list(self.results.glob("*result*.csv"))), 4)
        self.assertEqual({path.read_bytes() for path in self.results.glob("*details*.csv")},
                         {self.bytes[1]})


class Progress(Folder):
    def on_terminal(self, columns: int, *more: str) -> str:
        """What a run draws."""
        path = self.dump(make.mixture(5000))
        leader, follower = pty.openpty()
        env = {**os.environ, "COLUMNS": str(columns)}
        run = subprocess.Popen([PLUMB, "acc_check", "--no-torch", str(path), "-o",
                                str(self.out("out")), *more],
                               stdout=subprocess.PIPE, stderr=follower, env=env)
        os.close(follower)
        drawn = b""
        try:
            while True:
                drawn += os.read(leader, 65536)
        except OSError:  # the other end is closed
            pass
        os.close(leader)
        run.communicate()
        return drawn.decode()

    def test_bar(self) -> None:
        for columns in (100, 40):
            drawn = self.on_terminal(columns)
            lines = [line.replace("\x1b[K", "") for line in drawn.split("\r")]
            bars = [line for line in lines if line.startswith("[")]
            self.assertTrue(bars)
            self.assertTrue(all(len(line) < columns for line in lines), drawn)
            self.assertTrue(drawn.endswith("\r\x1b[K"))
            self.assertNotIn("\n", drawn)
            self.assertRegex(bars[-1], r"\A\[#* *\] \d+ of 5000 ")
        self.assertRegex(self.on_terminal(100), r"\d+ of 5000 APIs, \d+/s, \d+ s left  \w+\.\w+\.\d+")

    def test_quiet(self) -> None:
        self.assertEqual(self.on_terminal(100, "--quiet"), "")

    def test_plain_lines(self) -> None:
        out = self.out("out")
        done = check(self.dump(make.mixture(60)), "-o", out)
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        self.assertRegex(lines[-3], r"\A60 APIs: \d+ pass, \d+ warning, \d+ error, 10 skipped\Z")
        self.assertEqual([Path(line).parent for line in lines[-2:]], [out, out])
        for line in lines[:-3]:
            self.assertRegex(line, r"\A\w+\.\w+\.\d+ +forward (pass|warning|error)")


if __name__ == "__main__":
    unittest.main()
