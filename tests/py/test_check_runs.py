"""acc_check as a program: the same bytes however it is run, killed and resumed; bad input and no
room; what it says meanwhile."""

import csv
import json
import os
import pty
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import check_dump as make
from check_dump import backward, forward, tensor, value

BUILD = Path(os.environ["PLUMB_BUILD"])
PLUMB = str(BUILD / "plumb")
STAMP = re.compile(r"\d{14}")


def check(dump: Path, *more: str, command: str = "acc_check", **how: Any
          ) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([PLUMB, command, "--no-torch", "-api_info", str(dump), *map(str, more)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=200, **how)


def tables(folder: Path) -> Tuple[bytes, bytes]:
    """The result and its details, of the only run in a folder. A kill right at the start may leave a details file
    that has no result yet; nobody resumes that one."""
    result, = folder.glob("accuracy_checking_result_*.csv")
    details = folder / result.name.replace("_result_", "_details_")
    return result.read_bytes(), details.read_bytes()


def rows(folder: Path) -> Dict[str, List[str]]:
    """The result rows by API."""
    text = tables(folder)[0].decode("utf-8")
    return {row[0]: row[1:] for row in list(csv.reader(text.splitlines()))[1:]}


def saved(folder: Path) -> Dict[str, bytes]:
    """Error data by name, whatever the time in the folder's name."""
    return {path.name: path.read_bytes() for path in folder.glob("ut_error_data*/*")} | {
        path.name: b"" for path in folder.glob("ut_error_data*/.*")}


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="plumb-check-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def dump(self, data: Dict[str, Any], **more: Any) -> Path:
        return make.save(self.folder / "dump.json", data, **more)

    def out(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return folder


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
        self.assertFalse(self.kill(out, 100, *more))
        return out, time.monotonic() - start

    def try_kills(self, count: int, *more: str) -> None:
        whole, seconds = self.undisturbed(*more)
        killed = 0
        for k in range(count):
            out = self.out(f"kill{k}")
            for _ in range(self.rng.choice([1, 1, 1, 3, 6])):
                killed += self.kill(out, self.rng.uniform(0.001, seconds), *more)
            for _ in range(20):
                if not self.kill(out, 100, *more):
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
            said, message = run.communicate(timeout=60)
            result, = out.glob("*result*.csv")
            self.assertEqual(run.returncode, 2)
            self.assertIn(f"not finished; to go on, repeat the command with -csv_path {result}",
                          message)
            self.assertIn(str(result), said)
            self.assertEqual(tables(out)[0][-1:], b"\n")
            self.assertFalse(self.kill(out, 100))
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


class BadInput(Folder):
    """Bad calls cost their own row; a bad dump costs a line and exit code 2."""

    def unusable(self, done: "subprocess.CompletedProcess[str]", word: str) -> None:
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"\Aplumb: [^\n]*" + re.escape(word) + r"[^\n]*\n\Z")
        self.assertFalse((self.folder / "out").exists())

    def test_dumps(self) -> None:
        out = ["-o", str(self.folder / "out")]
        path = self.folder / "bad.json"
        self.unusable(check(path, *out), "No such file")
        self.unusable(check(self.folder, *out), "not a regular file")
        for text, word in (("", "ends in the middle"), ("[]", "no JSON object"), ("{}", "framework"),
                           ('{"framework":"mindspore","data":{}}', "MindSpore"),
                           ('{"framework":"jax","data":{}}', "jax"),
                           ('{"framework":"pytorch"}', "data"),
                           ('{"framework":"pytorch","data":[]}', "data"),
                           ('{"framework":"pytorch","data":{"Torch.exp.0":{}}}', "Torch.exp.0"),
                           ('{"framework":"pytorch","data":{"Torch.exp.0.forward":', "middle"),
                           ("[" * 100000, "no JSON object"),
                           ('{"framework":"pytorch","data":{"Torch.exp.0.forward":'
                            '{"input_args":' + "[" * 100000 + "]" * 100000 + "}}}", "nested")):
            path.write_text(text)
            self.unusable(check(path, *out), word)
        path.write_bytes(os.urandom(5000))
        self.unusable(check(path, *out), "bad.json")

    def test_no_calls(self) -> None:
        done = check(self.dump({}), "-o", self.folder / "out")
        self.assertEqual(done.returncode, 0)
        self.assertIn("0 APIs: ", done.stdout)
        self.assertEqual(rows(self.folder / "out"), {})

    def run_calls(self, calls: List[Dict[str, Any]], api: str = "Torch.exp", *more: str,
                  **head: Any) -> List[List[str]]:
        data = {f"{api}.{k}.forward": call for k, call in enumerate(calls)}
        out = Path(tempfile.mkdtemp(dir=self.folder))
        done = check(self.dump(data, **head), "-o", out, *more)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found = rows(out)
        self.assertEqual(list(found), [f"{api}.{k}" for k in range(len(calls))])
        return list(found.values())

    def skipped(self, found: List[str], word: str) -> None:
        self.assertEqual(found[:2], ["SKIP", "SKIP"])
        self.assertIn(word, found[2])
        self.assertNotIn(str(self.folder / "dump.json"), found[2])  # rows are the same anywhere

    def test_shapes(self) -> None:
        words = {(2 ** 40,): "memory", (2 ** 40, 2 ** 40): "memory", (2 ** 63,): "size", (-3,): "-3",
                 (1e300,): "1e+300", (1,) * 65: "dimensions", (2 ** 32, 2 ** 32, 0): ""}
        found = self.run_calls([forward(tensor(list(shape))) for shape in words] +
                               [forward(tensor("wide")), forward(tensor(None)),  # type: ignore
                                forward({"type": "torch.Tensor"}), forward(tensor([0, 3]))])
        for row, word in zip(found[:6], words.values()):
            self.skipped(row, word)
        for row in found[7:10]:
            self.skipped(row, "shape")
        self.assertEqual(found[10][0], "pass")

    def test_results_that_fit_nowhere(self) -> None:
        for api, args in (("Torch.zeros", [value(2 ** 40)]),
                          ("Tensor.repeat", [tensor([9]), value(2 ** 40)]),
                          ("Torch.outer", [tensor([2 ** 18]), tensor([2 ** 18])]),
                          ("Torch.arange", [value(2 ** 50)])):
            self.skipped(self.run_calls([forward(*args)], api)[0], "reference: ")

    def test_limits(self) -> None:
        nan, inf = float("nan"), float("inf")
        good = [(nan, nan), (-inf, inf), (None, None), (inf, -inf), (3, 3), (True, True)]
        found = self.run_calls([forward(tensor([8], low=low, high=high)) for low, high in good])
        self.assertEqual({row[0] for row in found}, {"pass"})
        found = self.run_calls([forward(tensor([8], low="a", high="b")),
                                forward(tensor([8], low={}, high=[])),
                                forward(tensor([8], low=5, high=1))])
        self.skipped(found[0], "no number")
        self.skipped(found[1], "no number")
        self.skipped(found[2], "above")

    def test_arguments(self) -> None:
        found = self.run_calls([forward(), forward(None), forward({}), forward(tensor([3]), extra={}),
                                {"input_args": 5}, {"input_args": [], "input_kwargs": 5},
                                forward(tensor([3], "float3")), forward([value(1)] * 100000)])
        for row in found:
            self.skipped(row, "")
        self.assertIn("float3", found[6][2])
        self.skipped(self.run_calls([forward(tensor([3]))], "Torch.no_such_thing")[0],
                     "no operator no_such_thing")

    def test_arguments_of_the_wrong_type(self) -> None:
        one = tensor([3])
        for api, call, words in (
                ("Torch.add", forward(value("x"), one), "'input' has to be a tensor or a number, not a str"),
                ("Torch.sum", forward(one, dim=value("x")),
                 "'dim' has to be an int or a list of ints or None, not a str"),
                ("Torch.cat", forward([one, value(2)]),
                 "'tensors' has to be a list of tensors, not a list that holds an int"),
                ("Functional.softmax", forward(one, tensor([2, 2])),
                 "'dim' has to be an int or None, not a tensor of 4 float32")):
            with self.subTest(api=api):
                self.skipped(self.run_calls([call], api)[0], words)

    def test_gradients(self) -> None:
        data: Dict[str, Any] = {}
        for k, grads in enumerate(([tensor([7])], [None], [], [tensor([3]), tensor([3])])):
            make.add(data, f"Torch.exp.{k}", forward(tensor([3], grad=True)), backward(*grads))
        out = self.out("out")
        check(self.dump(data), "-o", out)
        found = list(rows(out).values())
        self.assertEqual(found[0][:2], ["pass", "SKIP"])
        self.assertIn("has 7 elements instead of 3", found[0][2])
        self.assertEqual(found[1][:2], ["pass", "SKIP"])
        self.assertEqual(found[2][:2], ["pass", "SKIP"])

    def test_names(self) -> None:
        names = ["", "x", "Torch.exp", "Torch.a.b.c.d.0", 'Torch.exp.1,"\n', "Torch.exp.2/../..",
                 "Torch.exp." + "9" * 400, "Torch.exp.\x1b[31m", "Torch.exp.é"]
        call = forward(tensor([300], "float16", 1.0, 9.0))
        out = self.out("out")
        done = check(self.dump({name + ".forward": call for name in names}), "-o", out,
                     "-save_error_data", cwd=out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("\x1b", done.stdout)
        with open(next(out.glob("*result*")), newline="", encoding="utf-8") as file:
            self.assertEqual([row[0] for row in csv.reader(file)][1:], names)
        self.assertTrue(all(len(path.name) < 256 for path in out.glob("ut_error_data*/*")))

    def test_names_that_are_formulas(self) -> None:
        names = ["=cmd|' /C calc'!A0.x.0", "+1.x.0", "-2+3.x.0", "@sum.x.0", "Torch.exp.0", "'=quoted.x.0"]
        wanted = ["'" + name if name[0] in "=+-@" else name for name in names]
        path = self.dump({name + ".forward": forward(tensor([3])) for name in names})
        out = self.out("out")
        self.assertEqual(check(path, "-o", out).returncode, 0)
        whole = tables(out)
        self.assertEqual(list(rows(out)), wanted)
        details = list(csv.reader(whole[1].decode().splitlines()))[1:]
        self.assertEqual([row[0] for row in details], [name + ".forward.output.0" for name in wanted])
        result, = out.glob("*result*.csv")
        result.write_bytes(whole[0][:whole[0].index(b"Torch.exp")])
        done = check(path, "-csv_path", result)
        self.assertIn("4 were finished before", done.stdout)
        self.assertEqual(tables(out), whole)

    def test_the_last_of_equal_names_counts(self) -> None:
        path = self.dump({"Torch.exp.0.forward": forward(tensor([3]))})
        text = path.read_text()
        entry = text[text.index('"Torch.exp.0.forward"'):-2]
        path.write_text(text[:-2] + ", " + entry.replace("[3]", "[4]") + "}}")
        out = self.out("out")
        check(path, "-o", out)
        self.assertEqual(len(rows(out)), 1)
        self.assertIn(b"(4,)", tables(out)[1])

    def test_payloads(self) -> None:
        import torch
        data = self.folder / "dump_tensor_data"
        data.mkdir()
        torch.save(torch.ones(3), data / "good.pt")
        torch.save(torch.ones(4), data / "shape.pt")
        torch.save(torch.ones(3, dtype=torch.float64), data / "type.pt")
        torch.save({"a": torch.ones(3)}, data / "dict.pt")
        (data / "cut.pt").write_bytes((data / "good.pt").read_bytes()[:200])
        (data / "empty.pt").write_bytes(b"")
        (data / "dir.pt").mkdir()
        torch.save(torch.ones(3), self.folder / "outside.pt")
        names = ["good.pt", "shape.pt", "type.pt", "dict.pt", "cut.pt", "empty.pt", "dir.pt",
                 "missing.pt", "../outside.pt", str(self.folder / "outside.pt"), "", 5]
        found = self.run_calls([forward(tensor([3], data_name=name)) for name in names],
                               dump_data_dir="somewhere")
        found_by = dict(zip(names, found))
        self.assertEqual(found_by["good.pt"][0], "pass")
        self.assertEqual(found_by["dict.pt"][0], "pass")  # one tensor is one tensor
        for name in names:
            if name not in ("good.pt", "type.pt", "dict.pt", 5):
                self.skipped(found_by[name], "forward.input.0: ")
                self.assertIn(str(name), found_by[name][2])

    def test_many_calls(self) -> None:
        """Far more than 1,000 APIs a second, in memory that does not follow their number."""
        call = forward(tensor([3, 4]), tensor([4]))
        path = self.dump({f"Torch.add.{k}.forward": call for k in range(50000)})
        start = time.monotonic()
        done = check(path, "-o", self.out("out"), "--quiet")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(rows(self.folder / "out")), 50000)
        self.assertLess(time.monotonic() - start, 50)

    def test_memory_does_not_follow_the_number_of_calls(self) -> None:
        one, grads = tensor([512, 512], grad=True), backward(tensor([512, 512]))
        peaks = []
        for count in (30, 300):
            data: Dict[str, Any] = {}
            for k in range(count):
                make.add(data, f"Torch.add.{k}", forward(one, one), grads)
            done = subprocess.run(
                [sys.executable, "-c", "import resource, subprocess, sys\n"
                 "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
                 "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                 PLUMB, "multi_acc_check", str(self.dump(data)), "-n", "2", "-o",
                 str(self.out(str(count)))], stdout=subprocess.PIPE, text=True, timeout=200)
            code, peak = map(int, done.stdout.split())
            self.assertEqual(code, 0)
            peaks.append(peak)
        self.assertLess(peaks[1], 1.5 * peaks[0] + 10000, peaks)


class Room(Folder):
    """No room, no permission: a message, what was finished stays, and can be gone on with."""

    def become(self) -> Optional[Callable[[], None]]:
        if os.geteuid() != 0:
            return None
        os.chmod(self.folder, 0o755)
        return lambda: os.setuid(65534)

    def test_read_only_folder(self) -> None:
        path = self.dump(make.mixture(5))
        closed = self.out("closed")
        become = self.become()
        os.chmod(closed, 0o555)
        for out in (closed, closed / "deeper"):
            done = check(path, "-o", out, preexec_fn=become)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"\Aplumb: .*closed.*Permission denied\n\Z")
        self.assertEqual(list(closed.iterdir()), [])

    def test_error_data_without_permission(self) -> None:
        path = self.dump(make.mixture(60))
        closed, out = self.out("closed"), self.out("out")
        os.chmod(out, 0o777)
        config = self.folder / "config.json"
        config.write_text(json.dumps({"acc_check": {"white_list": [], "black_list": [],
                                                    "error_data_path": str(closed)}}))
        become = self.become()
        os.chmod(closed, 0o555)
        more = ["-save_error_data", "-config", str(config)]
        done = check(path, "-o", out, *more, preexec_fn=become)
        self.assertEqual(done.returncode, 2)
        self.assertIn("Permission denied", done.stderr)
        result, = out.glob("*result*.csv")
        self.assertIn(f"-csv_path {result}", done.stderr)
        self.assertLess(0, len(rows(out)))
        os.chmod(closed, 0o777)
        self.assertIn(check(path, "-csv_path", result, *more).returncode, (0, 1))
        whole = self.out("whole")
        check(path, "-o", whole)
        self.assertEqual(tables(out), tables(whole))

    def test_error_data_path_is_no_folder(self) -> None:
        config = self.folder / "config.json"
        config.write_text(json.dumps({"acc_check": {"error_data_path": str(self.folder / "no")}}))
        done = check(self.dump({}), "-o", self.folder / "out", "-save_error_data", "-config", config)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("error_data_path is no folder", done.stderr)
        self.assertFalse((self.folder / "out").exists())

    def test_a_file_in_place_of_the_folder(self) -> None:
        path = self.dump({})
        done = check(path, "-o", path)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("Not a directory", done.stderr)

    def resume_after(self, out: Path, done: "subprocess.CompletedProcess[str]", word: str,
                     path: Path) -> None:
        self.assertEqual(done.returncode, 2)
        self.assertIn(word, done.stderr)
        result, = out.glob("*result*.csv")
        self.assertIn(f"-csv_path {result}", done.stderr)
        self.assertLess(0, len(rows(out)))
        self.assertIn(check(path, "-csv_path", result).returncode, (0, 1))
        whole = self.out("whole")
        check(path, "-o", whole)
        self.assertEqual(tables(out), tables(whole))

    def test_largest_file(self) -> None:
        path, out = self.dump(make.mixture(300)), self.out("out")

        def no_room() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        done = check(path, "-o", out, preexec_fn=no_room, restore_signals=False)
        self.resume_after(out, done, "File too large", path)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_full_disk(self) -> None:
        path, disk = self.dump(make.mixture(300)), self.out("disk")
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)],
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest("cannot mount")
        try:
            done = check(path, "-o", disk)
            self.assertIn("No space left", done.stderr)
            subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
            self.resume_after(disk, done, "No space left", path)
        finally:
            subprocess.run(["umount", str(disk)], check=True)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_full_disk_from_the_start(self) -> None:
        path, disk = self.dump(make.mixture(5)), self.out("disk")
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(disk)],
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest("cannot mount")
        try:
            (disk / "rest").write_bytes(bytes(4096))
            done = check(path, "-o", disk)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertIn("No space left", done.stderr)
            self.assertEqual([entry.name for entry in disk.iterdir()], ["rest"])
        finally:
            subprocess.run(["umount", str(disk)], check=True)


class ErrorData(Folder):
    def test_files_are_what_was_computed(self) -> None:
        import torch
        data: Dict[str, Any] = {}
        # Too few digits for the reference: never a pass.
        make.add(data, "Functional.linear.0",
                 forward(tensor([30, 64], "bfloat16", grad=True), tensor([8, 64], "bfloat16"),
                         bias=tensor([8], "bfloat16", grad=True)),
                 backward(tensor([30, 8], "bfloat16")))
        make.add(data, "Torch.cat.1", forward([tensor([2, 3]), tensor([4, 3])]))
        make.add(data, "Torch.stack.2", forward(tensors=[tensor([9], "float16")] * 2, out=tensor(
            [2, 9], "float16")), backward(tensor([2, 9], "float16")))
        out = self.out("out")
        done = check(self.dump(data), "-o", out, "-save_error_data", cwd=out)
        folder, = out.glob("ut_error_data*")
        self.assertIn(f"./{folder.name}", done.stdout)
        self.assertIn(STAMP.search(folder.name).group(),  # type: ignore
                      next(out.glob("*result*")).name)
        files = {path.name[:-3]: torch.load(path) for path in folder.iterdir()}
        linear = {name[len("Functional.linear.0."):]: file for name, file in files.items()
                  if name.startswith("Functional.linear.0.")}
        shapes = {name: (str(file.dtype)[6:], list(file.shape)) for name, file in linear.items()}
        self.assertEqual(shapes, {
            "forward.input.0": ("bfloat16", [30, 64]),
            "forward.input.1": ("bfloat16", [8, 64]),
            "forward.kwargs.bias.0": ("bfloat16", [8]),
            "forward.output.bench.0": ("float64", [30, 8]),
            "forward.output.device.0": ("bfloat16", [30, 8]),
            "backward.input.0": ("bfloat16", [30, 8]),
            "backward.output.bench.0": ("float64", [30, 64]),
            "backward.output.device.0": ("bfloat16", [30, 64]),
            "backward.output.bench.2": ("float64", [8]),
            "backward.output.device.2": ("bfloat16", [8]),
        })
        wide = {name: file.double() for name, file in linear.items()}
        wanted = (wide["forward.input.0"] @ wide["forward.input.1"].T +
                  wide["forward.kwargs.bias.0"])
        torch.testing.assert_close(wide["forward.output.bench.0"], wanted)
        torch.testing.assert_close(wide["backward.output.bench.0"],
                                   wide["backward.input.0"] @ wide["forward.input.1"])
        # A list counts its tensors; a pass leaves nothing.
        self.assertEqual(sorted(name for name in files if "stack" in name),
                         ["Torch.stack.2.forward.kwargs.out.0"] +
                         [f"Torch.stack.2.forward.kwargs.tensors.{k}" for k in (0, 1)] +
                         ["Torch.stack.2.forward.output.bench.0",
                          "Torch.stack.2.forward.output.device.0"])
        self.assertFalse([name for name in files if "cat" in name])
        for path in folder.iterdir():
            told = subprocess.run([PLUMB, "info", "--format", "csv", str(path)],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  check=True).stdout
            self.assertIn(str(files[path.name[:-3]].dtype)[6:], told)

    def test_every_type(self) -> None:
        """What torch.save writes and plumb_pt_write writes are read as the same."""
        import torch
        data: Dict[str, Any] = {}
        types = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
                 "float64"]
        for k, dtype in enumerate(types):
            low, high = (False, True) if dtype == "bool" else (1, 9)
            make.add(data, f"Torch.stack.{k}", forward(
                tensors=[tensor(shape, dtype, low, high) for shape in ([2, 3, 1],)],
                out=tensor([1, 2, 3, 1], dtype, low, high)), backward(None))
            make.add(data, f"Torch.stack.{k}0", forward(
                tensors=[tensor([], dtype, low, high)], out=tensor([1], dtype, low, high)), backward(None))
            make.add(data, f"Torch.stack.{k}00", forward(
                tensors=[tensor([0, 4], dtype, low, high)], out=tensor([1, 0, 4], dtype, low, high)),
                backward(None))
        out = self.out("out")
        check(self.dump(data), "-o", out, "-save_error_data", cwd=out)
        folder, = out.glob("ut_error_data*")
        for k, dtype in enumerate(types):
            for tail, shape in (("", [2, 3, 1]), ("0", []), ("00", [0, 4])):
                file = torch.load(folder / f"Torch.stack.{k}{tail}.forward.kwargs.tensors.0.pt")
                self.assertEqual((str(file.dtype), list(file.shape)), (f"torch.{dtype}", shape))
                self.assertTrue(file.is_contiguous())
                result = torch.load(folder / f"Torch.stack.{k}{tail}.forward.output.device.0.pt")
                self.assertTrue(torch.equal(result[0], file))


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

class Lists(Folder):
    """white_list and black_list entries that fit nothing are told."""

    def notes(self, rules: str = "documented", **lists: List[str]) -> List[str]:
        config = self.folder / "config.json"
        config.write_text(json.dumps({"acc_check": {"white_list": [], "black_list": [], **lists}}))
        path = self.dump({"Torch.matmul.0.forward": forward(tensor([2, 2]), tensor([2, 2])),
                          "Torch.linalg.inv.0.forward": forward(tensor([2, 2]))})
        done = check(path, "-o", self.out("out"), "-config", config, "--rules", rules)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr.splitlines()

    def test_misspelt(self) -> None:
        self.assertEqual(self.notes(white_list=["matmul", "linalg.inv"], black_list=["to"][:0]), [])
        self.assertEqual(self.notes(white_list=["matmull", "matmul"]),
                         ["plumb: white_list: no call of the dump is of 'matmull'; did you mean 'matmul'?"])
        self.assertEqual(self.notes(black_list=["linalg_inv", "Torch.matmul.0", "conv2d"]),
                         ["plumb: black_list: no call of the dump is of 'linalg_inv'; did you mean 'linalg.inv'?",
                          "plumb: black_list: no call of the dump is of 'Torch.matmul.0'",
                          "plumb: black_list: no call of the dump is of 'conv2d'"])

    def test_many(self) -> None:
        notes = self.notes(black_list=[f"nothing_{k}" for k in range(15)])
        self.assertEqual(len(notes), 11)
        self.assertIn("5 further entries", notes[-1])


class Rules(Folder):
    """Rules of one's own."""

    def run_with(self, path: Path, rules: str) -> Tuple[bytes, bytes]:
        out = self.out(f"out{len(list(self.folder.iterdir()))}")
        done = check(path, "-o", out, "--rules", rules)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return tables(out)

    def test_printed_rules_give_the_same(self) -> None:
        path = self.dump(make.mixture(60))
        for name in ("documented", "msprobe"):
            text = subprocess.run([PLUMB, "standard", name], stdout=subprocess.PIPE, check=True).stdout
            mine = self.folder / f"{name}.rules"
            mine.write_bytes(text)
            self.assertEqual(self.run_with(path, str(mine)), self.run_with(path, name))

    def test_a_limit_decides(self) -> None:
        path = self.dump({"Torch.exp.0.forward": forward(tensor([64], "float16", 4.0, 9.0))})
        mine = self.folder / "mine.rules"
        self.assertIn(b"Torch.exp.0,pass", self.run_with(path, "documented")[0])
        mine.write_text("set dual_1000 1\n")
        result, details = self.run_with(path, str(mine))
        self.assertIn(b"Torch.exp.0,warning", result)
        self.assertIn(b"is not above 1", details)

    def test_refused(self) -> None:
        path = self.dump({"Torch.exp.0.forward": forward(tensor([3]))})
        mine = self.folder / "mine.rules"
        mine.write_text("base documented\nset cosin 0.9\n")
        out = self.out("out")
        done = check(path, "-o", out, "--rules", mine)
        self.assertEqual((done.returncode, done.stdout, list(out.iterdir())), (2, "", []))
        self.assertEqual(done.stderr, f"plumb: {mine}: line 2: there is no number 'cosin'; did you mean "
                         "'cosine'? 'plumb standard documented' shows all\n")


if __name__ == "__main__":
    unittest.main()
