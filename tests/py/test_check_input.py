"""acc_check given bad dumps and calls, very many calls, lists that fit nothing, and rules of one's
own."""

import csv
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Dict, List, Tuple

import check_dump as make
from check_case import PLUMB, Folder, check, rows, tables
from check_dump import backward, forward, tensor, value


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

    def test_names_of_error_data(self) -> None:
        """What fails is saved under names of the dump: they lead nowhere, and are fit for a terminal."""
        (self.folder / "strict").write_text("base documented\nset cosine 1\nset max_abs 0\n")
        odd = "_../../k\x1b[31m\n"
        call = forward(tensor([30]), tensor([30]), **{odd: tensor([2])})
        names = ["Torch.add.1", "Torch.add.\n\x1b[31m2", "Torch.add.3/../../x"]
        dump = self.dump({name + ".forward": call for name in names})
        out = self.out("out")
        done = check(dump, "-o", out, "-save_error_data", "--rules", self.folder / "strict", cwd=out)
        self.assertEqual(done.returncode, 1, done.stderr)
        saved, = out.glob("ut_error_data*")
        files = [path.name for path in saved.iterdir()]
        self.assertIn("Torch.add._" + "_[31m2.forward.input.0.pt", files)
        self.assertIn("Torch.add.1.forward.kwargs._.._.._k_[31m_.0.pt", files)
        self.assertTrue(all(name.isprintable() for name in files), files)
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"out", "dump.json", "strict"})

        # A link of that name is not followed, whoever made it.
        other, mine = self.out("other"), self.out("mine")
        now = int(time.time())
        for second in range(now, now + 60):
            stamp = time.strftime("%Y%m%d%H%M%S", time.localtime(second))
            (other / f"ut_error_data{stamp}").symlink_to(mine)
        done = check(dump, "-o", other, "-save_error_data", "--rules", self.folder / "strict", cwd=other)
        self.assertIn("it is a link, or a file", done.stderr)
        self.assertEqual(list(mine.iterdir()), [])

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
        start = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = check(path, "-o", self.out("out"), "--quiet")
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(rows(self.folder / "out")), 50000)
        self.assertLess(end.ru_utime - start.ru_utime, 50)  # of processor time: others may be busy too

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
                 str(self.out(str(count)))], stdout=subprocess.PIPE, text=True, timeout=600)
            code, peak = map(int, done.stdout.split())
            self.assertEqual(code, 0)
            peaks.append(peak)
        self.assertLess(peaks[1], 1.5 * peaks[0] + 10000, peaks)


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

    def test_misspelt_keys(self) -> None:
        self.assertEqual(self.notes(white_lst=["matmul"], tls_path="x", precison=None),
                         ["plumb: -config: there is no setting 'white_lst'; did you mean 'white_list'?",
                          "plumb: -config: 'tls_path' is no setting of the pre-check",
                          "plumb: -config: there is no setting 'precison'; did you mean 'precision'?"])
        config = self.folder / "config.yaml"
        config.write_text("black_list: [conv1d]\nerror_datapath: x\nwhite_list: [matmul]\n")
        path = self.dump({"Torch.matmul.0.forward": forward(tensor([2, 2]), tensor([2, 2]))})
        done = check(path, "-o", self.out("yaml"), "-config", config)
        self.assertEqual((done.returncode, done.stderr.splitlines()),
                         (0, ["plumb: -config: there is no setting 'error_datapath'; did you mean 'error_data_path'?",
                              "plumb: black_list: no call of the dump is of 'conv1d'"]))

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
