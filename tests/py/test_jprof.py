"""From recorded operators to unit tests of them, to the one that a device computes wrongly."""

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
import zipfile
from pathlib import Path
from typing import Any, Dict, List, Optional

BUILD = os.environ.get("PLUMB_BUILD", str(Path(__file__).resolve().parents[2] / "build"))
sys.path.insert(0, os.path.join(BUILD, "python"))

import torch  # noqa: E402

import plumb  # noqa: E402
from plumb._capture import aten  # noqa: E402

# An operator of the "device" that is wrong in float32 and float16, and right in float64.
FAULT = """
import torch
library = torch.library.Library("aten", "IMPL")
def relu(x):
    y = torch.clamp_min(x, 0)
    return y if x.dtype == torch.float64 else y * 1.001
library.impl("relu", relu, "CPU")
"""

# Kernels for the CPU that take every type, float64 too: one rounds inside, one does not, one makes
# every subtraction of the process zero.
ROUNDING = """
import torch
def softmax(x, dim, half_to_float):
    y = x.to(TYPE)
    y = (y + -y.amax(dim, True)).exp()
    return (y / y.sum(dim, True)).to(x.dtype)
library = torch.library.Library("aten", "IMPL")
library.impl("_softmax", softmax, "CPU")
"""
NOTHING = """
import torch
library = torch.library.Library("aten", "IMPL")
library.impl("sub.Tensor", lambda a, b, alpha=1: torch.zeros_like(torch.add(a, b)), "CPU")
"""


def variety() -> None:
    """Operators of many kinds: types, layouts, lists, no tensors, several outputs, in place."""
    x = torch.randn(4, 6)
    torch.relu(x.t())
    torch.linspace(0, 47, 10)
    torch.arange(3, 30, 4)
    torch.full((2, 2), 1.5, dtype=torch.float64, device="cpu")
    torch.zeros_like(x, memory_format=torch.contiguous_format)
    torch.add(x, x.half().float(), alpha=0.5)
    x.expand(3, 4, 6).sum((0, 2))
    torch.cat([x, x, x[:1]])
    x[:, torch.tensor([0, 5, 5])]
    torch.sort(x, dim=1)
    x.max(dim=0)
    x.clone().add_(1).mul_(x)
    torch.nn.functional.conv2d(torch.randn(1, 2, 5, 5), torch.randn(3, 2, 3, 3), padding=1)
    torch.nn.functional.layer_norm(x, (6,), torch.ones(6))
    torch.nn.functional.embedding(torch.tensor([[0, 3], [2, 2]]), torch.randn(4, 3))
    torch.nn.functional.cross_entropy(x, torch.tensor([0, 1, 5, 2]))
    torch.nn.functional.softmax(x.masked_fill(x > 0, float("-inf")), -1)
    torch.addmm(torch.randn(5), x, torch.randn(6, 5))
    x.bfloat16() * 3
    torch.randn(3, dtype=torch.complex64) * (1 + 2j)
    x > 0.5
    torch.tensor([1, 2, 3]) // 2
    torch.tensor([True, False]).logical_not()
    x.to(torch.int32)
    torch.empty(0, 3).sum(0)
    torch.tensor(5.0).item()
    torch._foreach_add([torch.ones(2), torch.ones(3)], 1.0)
    torch.sub(x, 1, out=torch.empty(4, 6))
    torch.sub(x, x.flip(0))


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.before = os.getcwd()
        cls.root = tempfile.mkdtemp(prefix="plumb-jprof-")
        os.chdir(cls.root)
        aten._recorder = None
        torch.manual_seed(0)
        plumb.begin_dump(X_DEBUG=0x102, X_DEDUP=True, X_DUMP_NUM=1)
        variety()
        plumb.end_dump(clear_context=True)
        aten._recorder = None
        os.chdir(cls.before)
        os.rename(os.path.join(cls.root, "xray_debug", f"proc_{os.getpid()}"),
                  os.path.join(cls.root, "xray_debug", "proc_1"))

    @classmethod
    def tearDownClass(cls) -> None:
        shutil.rmtree(cls.root)

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="plumb-jprof-")
        shutil.copytree(os.path.join(self.root, "xray_debug"), self.folder, dirs_exist_ok=True)

    def tearDown(self) -> None:
        shutil.rmtree(self.folder)

    def run_in(self, *words: str, wanted: Optional[int] = 0, **environment: str) -> str:
        done = subprocess.run(words, cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, "PYTHONPATH": self.folder, **environment})
        if wanted is not None:
            self.assertEqual(done.returncode, wanted, done.stdout)
        return done.stdout

    def jprof(self, *words: str) -> str:
        return self.run_in(os.path.join(BUILD, "plumb"), "jprof", *words, "proc_1/dump.json")

    def pytest(self, out: str, *words: str, wanted: Optional[int] = 0) -> str:
        """Without plumb and numpy in reach, as on another machine."""
        return self.run_in(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W",
                           "ignore",
                           f"--detail_compare_path={out}", "proc_1/pytests", "--device", "cpu",
                           *words,
                           wanted=wanted)

    def rows(self, out: str) -> Dict[str, Dict[str, str]]:
        with open(os.path.join(self.folder, out)) as file:
            return {row["name"]: row for row in csv.DictReader(file)}

    def read(self, name: str) -> str:
        with open(os.path.join(self.folder, name)) as file:
            return file.read()

    def data(self) -> Dict[str, Any]:
        with open(os.path.join(self.folder, "proc_1", "dump.json")) as file:
            return json.load(file)["data"]

    def ops(self, name: str) -> List[str]:
        return [key for key, entry in self.data().items() if entry["op"] == name]


class EndToEnd(Case):
    def test_fault_is_named(self) -> None:
        self.jprof("--cpu_init", "--blacklist", "--factory=load")
        self.assertNotIn("skipped", self.pytest("./gpu.csv", "--seed", "42"))
        self.check_rows(self.rows("gpu.csv"))
        with open(os.path.join(self.folder, "fault.py"), "w") as file:
            file.write(FAULT)
        relu, = self.ops("aten.relu.default")
        text = self.pytest("./xpu.csv", "--seed", "42", "-p", "fault", wanted=1)
        self.assertIn(f"{relu}, aten.relu.default: output 0: ", text)
        rows = self.rows("xpu.csv")
        self.assertEqual([name for name, row in rows.items() if row["is_pass"] == "fail"], [relu])
        text = self.run_in(os.path.join(BUILD, "plumb"), "summary_diff_check", "./xpu.csv",
                           "./gpu.csv",
                           "./result.csv", wanted=1)
        self.assertIn(f"first to fail: {relu}, aten.relu.default\n", text)
        with open(os.path.join(self.folder, "result.csv")) as file:
            result = list(csv.DictReader(file))
        self.assertEqual([row["name"] for row in result if row["is_pass"] != "pass"], [relu])
        row = next(row for row in result if row["name"] == relu)
        self.assertEqual((row["gpu_max"], row["xpu_1e-1"], row["gpu_1e-3"]), ("0", "0", "0"))
        self.assertGreater(int(row["xpu_1e-4"]), 0)
        self.assertGreater(float(row["xpu_max"]), 1e-4)

    def failed(self, out: str) -> List[str]:
        return [name for name, row in self.rows(out).items() if row["is_pass"] == "fail"]

    def plugin(self, name: str, text: str) -> None:
        with open(os.path.join(self.folder, name + ".py"), "w") as file:
            file.write(text)

    def test_replaced_kernel(self) -> None:
        """A kernel under test is not its own reference, nor does it compute the errors."""
        self.jprof("--cpu_init", "--blacklist", "--factory=load")
        self.pytest("golden.csv", "-k", "softmax or sub")
        self.plugin("wrong", ROUNDING.replace("TYPE", "torch.bfloat16"))
        self.plugin("right", ROUNDING.replace("TYPE", "torch.float64"))
        self.plugin("nothing", NOTHING)
        softmax, = self.ops("aten._softmax.default")
        sub, = self.ops("aten.sub.Tensor")
        text = self.pytest("right.csv", "-p", "right", "-k", "softmax or sub")
        self.assertNotIn("skipped", text)
        text = self.pytest("wrong.csv", "-p", "wrong", "-p", "nothing", "-k", "softmax or sub",
                           wanted=1)
        self.assertIn(f"{softmax}, aten._softmax.default: output 0: ", text)
        self.assertEqual(self.failed("wrong.csv"), [softmax, sub])
        diff = [os.path.join(BUILD, "plumb"), "summary_diff_check"]
        text = self.run_in(*diff, "wrong.csv", "golden.csv", "result.csv", wanted=1)
        self.assertIn(f"first to fail: {softmax}, aten._softmax.default\n", text)
        self.run_in(*diff, "right.csv", "golden.csv", "result.csv")
        # Where there can be no clean process, nothing passes.
        self.plugin("blocked", "import sys\nsys.executable = '/bin/false'\n")
        text = self.pytest("blocked.csv", "-p", "right", "-p", "blocked", "-k", "softmax or sub",
                           wanted=1)
        self.assertRegex(text, "nothing can be judged: kernels of the CPU are replaced, .* it "
                         "ended with 1")
        self.assertEqual(self.failed("blocked.csv"), list(self.rows("golden.csv")))
        self.run_in(*diff, "blocked.csv", "golden.csv", "result.csv", wanted=1)
        self.assertNotIn(",pass,", self.read("result.csv"))

    def test_large_numbers(self) -> None:
        """Whose squares are infinite; so was the tolerance, and everything passed."""
        self.jprof()
        path = os.path.join(self.folder, "proc_1", "pytests", "conftest.py")
        names: Dict[str, Any] = {"__name__": "conftest", "__file__": path}
        exec(compile(self.read(path), path, "exec"), names)
        nan = float("nan")
        for kind, got, wanted, good in (
                (torch.float64, [-1e200], [1e200], False), (torch.float64, [1e200, 3.0], [2e200, 3.0], False),
                (torch.complex128, [1e200j], [2e200j], False), (torch.float64, [nan, 1e300], [nan, 1e301], False),
                (torch.float64, [1e200, 3.0], [1e200, 3.0], True), (torch.float64, [1e200], [1.00000001e200], True),
                (torch.float32, [3e38], [1e38], False), (torch.float32, [0.0, nan], [0.0, nan], True),
                (torch.float32, [3e38, 0.0], [3e38, 1e20], True)):
            verdict = names["Verdict"]()
            verdict.add(0, torch.tensor(got, dtype=kind), torch.tensor(wanted, dtype=kind))
            self.assertEqual(not verdict.problem, good, (kind, got, wanted))

    def check_rows(self, rows: Dict[str, Dict[str, str]]) -> None:
        ops = [entry["op"] for entry in self.data().values()]
        random = sum("randn" in op or "empty" in op for op in ops)
        self.assertEqual(len(rows), len(self.data()) - random)
        self.assertEqual({row["is_pass"] for row in rows.values()}, {"pass"})
        linspace = rows[self.ops("aten.linspace.default")[0]]
        self.assertEqual([linspace[key] for key in ("dtype", "shape", "min-val", "max-val")],
                         ["torch.float32", "[10]", "0.0", "47.0"])
        # Kept inputs are used: the recorded range of the result comes out again.
        add = self.ops("aten.addmm.default")[0]
        self.assertAlmostEqual(float(rows[add]["max-val"]), self.data()[add]["output"][0]["Max"], 5)

    def test_seed(self) -> None:
        self.jprof("--cpu_init", "--blacklist", "--factory=random")
        self.pytest("a.csv", "--seed", "42")
        self.pytest("c.csv", "--seed", "43")
        addmm = self.ops("aten.addmm.default")[0]
        self.assertNotEqual(self.rows("a.csv")[addmm], self.rows("c.csv")[addmm])
        # Whatever else runs, a test sees the same inputs.
        self.pytest("d.csv", "--seed", "42", "-k", f"test_{addmm.replace('-', '_')}")
        self.assertEqual(self.rows("d.csv"), {addmm: self.rows("a.csv")[addmm]})
        # Kept tensors that are not there are generated ones.
        self.jprof("--cpu_init", "--blacklist", "--factory=load")
        shutil.rmtree(os.path.join(self.folder, "proc_1", "dump"))
        text = self.pytest("b.csv", "--seed", "42")
        self.assertRegex(text, r"\d+ recorded tensors are not in .*: generated ones were used")
        self.assertEqual(self.rows("a.csv"), self.rows("b.csv"))

    def test_ranges(self) -> None:
        """Generated inputs lie within the recorded range and reach its ends."""
        self.jprof("--cpu_init", "--factory=random")
        probe = textwrap.dedent("""
            import json, math, sys
            sys.path.insert(0, "proc_1/pytests")
            import torch, conftest
            class Session: seed, device, missing = 1, torch.device("cpu"), 0
            with open("proc_1/dump.json") as file:
                data = json.load(file)["data"]
            seen = 0
            def look(leaf, maker, place):
                global seen
                if isinstance(leaf, list):
                    for i, item in enumerate(leaf):
                        look(item, maker, f"{place}.{i}")
                if not isinstance(leaf, dict) or leaf.get("type") != "torch.Tensor":
                    return
                spec = conftest.Spec(leaf["dtype"], leaf["shape"], leaf["stride"], leaf["Min"],
                                     leaf["Max"], None)
                x = maker.make(spec, place, torch.device("cpu"))
                assert str(x.dtype) == leaf["dtype"] and list(x.shape) == leaf["shape"], leaf
                if 1 not in leaf["shape"] and x.numel():
                    assert list(x.stride()) == leaf["stride"], (leaf, x.stride())
                if not x.numel() or x.dtype.is_complex:
                    return
                low, high = x.double().min().item(), x.double().max().item()
                assert leaf["Min"] <= low and high <= leaf["Max"], (leaf, low, high)
                if x.numel() > 1 and 0 not in leaf["stride"]:
                    assert (low, high) == (leaf["Min"], leaf["Max"]), (leaf, low, high)
                seen += 1
            for name, entry in data.items():
                for i, leaf in enumerate(entry["input_args"]):
                    look(leaf, conftest.Maker(Session, name), f"input.{i}")
            print("seen", seen)
            """)
        text = self.run_in(sys.executable, "-c", probe)
        self.assertRegex(text, r"seen \d\d")


    def test_usage(self) -> None:
        self.jprof()
        text = self.pytest("nowhere/a.csv", wanted=4)
        self.assertIn("cannot write nowhere/a.csv: No such file or directory", text)
        text = self.pytest("a.csv", "--device", "abacus", wanted=4)
        self.assertIn("the device abacus cannot be used", text)


class Hostile(Case):
    def write(self, data: Dict[str, Any]) -> None:
        with open(os.path.join(self.folder, "proc_1", "dump.json"), "w") as file:
            json.dump({"framework": "pytorch", "data": data}, file)

    def test_nothing_becomes_code(self) -> None:
        marker = os.path.join(self.folder, "ran")
        evil = f"__import__('os').system('touch {marker}')"
        words = [evil, f'"); {evil} #', f"'''\n{evil}\n'''", f'"""\n{evil}\n"""', f"\\\"); {evil}",
                 "\u2028", "\\",
                 "{" + evil + "}", "\r" + evil, "%s", "\x00"]
        data: Dict[str, Any] = {}
        for i, word in enumerate(words):
            tensor = {"type": "torch.Tensor", "dtype": word, "shape": [1], "Max": word, "Min": 0,
                      "data_name": word}
            data[f"{i}-{word}"] = {"op": "aten.add.Tensor",
                                   "input_args": [word, {"type": "str", "value": word}],
                                   "input_kwargs": {word: {"type": word, "value": word}}}
            data[f"t{i}"] = {"op": "aten.add.Tensor", "input_args": [tensor, {word: tensor}]}
            data[f"d{i}"] = {"op": "aten.add.Tensor",
                             "input_args": [{"type": "torch.dtype", "value": word}]}
            data[f"o{i}"] = {"op": f"aten.{word}", "input_args": [1]}
        data["f"] = {"op": "aten.from_file.default", "input_args": [marker],
                     "input_kwargs": {"shared": True}}
        data["s"] = {"op": "aten.save", "input_args": [[1], marker]}
        data["i"] = {"op": "__import__.os.system", "input_args": [f"touch {marker}"]}
        data["c"] = {"op": "aten.__class__.__init__", "input_args": []}
        data["big"] = {"op": "aten.ones.default", "input_args": [[10 ** 12, 10 ** 6]]}
        data["huge"] = {"op": "aten.relu.default", "input_args": [
            {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [10 ** 15], "Max": 1,
             "Min": 0}]}
        data["stride"] = {"op": "aten.relu.default", "input_args": [
            {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 2],
             "stride": [10 ** 15, 1],
             "Max": 1, "Min": 0}]}
        self.write(data)
        self.jprof()
        text = self.pytest("a.csv")
        self.assertFalse(os.path.exists(marker))
        self.assertIn("skipped", text)
        rows = self.rows("a.csv")
        self.assertEqual(len(rows), len(data) - 2)
        self.assertEqual({name for name, row in rows.items() if row["is_pass"] == "pass"},
                         {"stride"})

    def test_operators_that_name_files(self) -> None:
        """Whoever registered them: `-p mine` stands for a package that PyTorch loads by itself."""
        with open(os.path.join(self.folder, "mine.py"), "w") as file:
            file.write("import torch\n"
                       "library = torch.library.Library('image', 'DEF')\n"
                       "library.define('write_file(str filename, Tensor data) -> ()')\n"
                       "library.define('plain(Tensor data, str mode) -> Tensor')\n"
                       "library.impl('write_file', lambda name, data: open(name, 'w').close(), 'CPU')\n"
                       "library.impl('plain', lambda data, mode: data + 1, 'CPU')\n")
        marker = os.path.join(self.folder, "ran")
        tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1, "Min": 0}
        self.write({"file": {"op": "image.write_file", "input_args": [marker, tensor]},
                    "overload": {"op": "image.write_file.default", "input_args": [marker, tensor]},
                    "profile": {"op": "profiler._record_function_enter", "input_args": [marker]},
                    "raise": {"op": "prim.RaiseException", "input_args": [marker]},
                    "plain": {"op": "image.plain", "input_args": [tensor, "some"]}})
        self.jprof()
        self.pytest("a.csv", "-p", "mine")
        self.assertFalse(os.path.exists(marker))
        self.assertEqual({name: row["is_pass"] for name, row in self.rows("a.csv").items()},
                         {"file": "skip", "overload": "skip", "profile": "skip", "raise": "skip", "plain": "pass"})

    def test_terminals(self) -> None:
        """Names reach the terminal and the table, and what they would make a terminal do does not."""
        odd = "x\x1b]0;title\x07\x9b31m\u202e\u2028"
        tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1, "Min": 0}
        self.write({odd: {"op": "aten.relu.default" + odd, "input_args": [tensor]},
                    "b" + odd: {"op": "aten.relu.default", "input_args": [{"type": odd, "value": odd}]},
                    "c" + odd: {"op": "aten.relu.default", "input_args": [tensor]}})
        self.jprof()
        with open(os.path.join(self.folder, "wrong.py"), "w") as file:
            file.write(FAULT)
        text = self.pytest("a.csv", "-rs", "-p", "wrong", wanted=1) + self.read("a.csv")
        self.assertIn(r"cx\x1b]0;title\x07\x9b31m\u202e\u2028", text)
        self.assertEqual([c for c in text if not c.isprintable() and c not in "\r\n"], [])

    def test_links_in_the_cache(self) -> None:
        """pytest writes its cache into the folder of the tests, through links that it finds there."""
        victim, cache = os.path.join(self.folder, "mine"), os.path.join(self.folder, "proc_1/pytests/.pytest_cache")
        os.makedirs(os.path.join(cache, "v", "cache"))
        with open(victim, "w") as file:
            file.write("precious")
        os.symlink(victim, os.path.join(cache, "v", "cache", "nodeids"))
        os.symlink(self.folder, os.path.join(cache, "d"))
        self.jprof("--blacklist")
        self.assertFalse(os.path.exists(cache))
        self.run_in(sys.executable, "-m", "pytest", "-q", "proc_1/pytests", "--device", "cpu")
        self.assertEqual(self.read("mine"), "precious")
        self.assertTrue(os.path.exists(os.path.join(cache, "v", "cache", "nodeids")))

    def kept(self, name: str, words: bytes, data: bytes = bytes(8)) -> None:
        """A file of the dump as torch.save lays it out, with a pickle of our own."""
        folder = os.path.join(self.folder, "proc_1", "dump")
        os.makedirs(folder, exist_ok=True)
        with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
            archive.writestr("archive/data.pkl", words)
            archive.writestr("archive/data/0", data)

    def test_no_formulas(self) -> None:
        """A spreadsheet runs what begins like one."""
        self.write({"=1+1": {"op": "=HYPERLINK(1)", "input_args": [{"type": "int", "value": 1}]}})
        self.jprof()
        self.pytest("a.csv", wanted=None)
        text = self.read("a.csv")
        self.assertIn("'=HYPERLINK(1)", text)
        self.assertNotRegex(text, r"(^|,)[=+@]")

    def test_folders_above_run_nothing(self) -> None:
        """A dump's folder may come with settings for pytest and code that it would load."""
        marker = os.path.join(self.folder, "ran")
        self.jprof("--blacklist")
        for place in ("", "proc_1"):
            for name, text in (("conftest.py", f"open({marker!r}, 'w')"),
                               ("pytest.ini", "[pytest]\naddopts = --wrong")):
                with open(os.path.join(self.folder, place, name), "w") as file:
                    file.write(text)
        self.pytest("a.csv")
        self.assertFalse(os.path.exists(marker))

        # Given several folders, pytest does look further up: no tests are put there.
        self.run_in(os.path.join(BUILD, "plumb"), "jprof", "-o", "suite", "proc_1/dump.json")
        for place in ("proc_1", ""):
            for name in ("conftest.py", "pytest.ini"):
                said = self.run_in(os.path.join(BUILD, "plumb"), "jprof", "proc_1/dump.json", wanted=2)
                self.assertIn(f" holds {name}, which pytest might use", said)
                self.assertIn("above that of the dump" if not place else "folder of the dump", said)
                os.remove(os.path.join(self.folder, place, name))
        self.jprof()

    def test_files_run_nothing(self) -> None:
        """Pickles that call something, also behind an error that made the reader try another way."""
        marker = os.path.join(self.folder, "ran")
        call = b"cos\nsystem\n(V" + f"touch {marker}".encode() + b"\ntR."
        storage = b"(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI2\ntQ"
        tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"I0\n(I2\nt(I1\ntI00\n}tR"
        hostile = {
            "system": call,
            "build": b"ccollections\nOrderedDict\n)RNb" + call,
            "behind": tensor + b"0" + call,
            "state": tensor + b"(V__class__\n" + call[:-1] + b"db.",
            "attribute": b"ctorch._utils\n_rebuild_tensor_v2\nN}V__code__\n" + call[:-1] + b"s\x86b" + call,
            "dotted": b"\x80\x04\x8c\x05torch\x8c\x09os.system\x93\x8c\x04true\x85R.",
            "load": b"ctorch\nload\n(V/etc/passwd\ntR.",
            "getattr": b"cbuiltins\ngetattr\n(ctorch\nfloat32\nV__class__\ntR.",
            "number": b"I1\n.",
            "far": tensor.replace(b"I0\n(I2", b"I9999999\n(I2") + b".",
            "long": tensor.replace(b"(I2\nt(I1", b"(I2000000000\nt(I1") + b".",
            "negative": tensor.replace(b"(I2\nt(I1", b"(I2\nt(I-1") + b".",
            "set": tensor + b"NV__class__\nN\x93.",
            "defaults": b"ctorch._utils\n_rebuild_tensor_v2\n(N}V__defaults__\n)sTb0" + tensor + b".",
            "remembers": tensor + b"r\xff\xff\xff\x7f.",  # 16 GiB, were it followed
            "bytes": tensor + b"0\x96\xff\xff\xff\xff\x03\0\0\0.",
            "says much": tensor + b"(0" * (1 << 16) + b".",
        }
        data: Dict[str, Any] = {}
        for name, words in {**hostile, "good": tensor + b"."}.items():
            self.kept(f"{name}.pt", words)
            data[name] = {"op": "aten.relu.default", "input_args": [
                {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1, "Min": 0,
                 "data_name": f"{name}.pt"}]}
        data["link"] = json.loads(json.dumps(data["good"]).replace("good.pt", "link.pt"))
        data["pipe"] = json.loads(json.dumps(data["good"]).replace("good.pt", "pipe.pt"))
        os.symlink("good.pt", os.path.join(self.folder, "proc_1", "dump", "link.pt"))
        os.mkfifo(os.path.join(self.folder, "proc_1", "dump", "pipe.pt"))
        self.write(data)
        self.jprof()
        self.pytest("a.csv")
        self.assertFalse(os.path.exists(marker))
        rows = self.rows("a.csv")
        self.assertEqual({name for name, row in rows.items() if row["is_pass"] == "pass"}, {"good"})
        self.assertEqual({row["is_pass"] for row in rows.values()}, {"pass", "skip"})

    def test_files_of_every_type(self) -> None:
        """What torch.save writes comes back: types, views, parameters, empty and 0-d tensors."""
        source = Path(__file__).resolve().parents[2] / "src/task/unittest/pytest_load.py"
        with open(source, encoding="utf-8") as file:
            names: Dict[str, Any] = {"Refused": ValueError}
            exec(file.read(), names)  # ours
        path = os.path.join(self.folder, "x.pt")
        base = torch.arange(24.0).reshape(4, 6)
        good = [base, base.t(), base[1:3, ::2], base[2, 3], base[:0], torch.nn.Parameter(base[:2]),
                base.expand(2, 4, 6), torch.randn(3, dtype=torch.complex64), torch.tensor([True, False])]
        good += [base.to(dtype) for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int64,
                                              torch.int32, torch.int16, torch.int8, torch.uint8)]
        for value in good:
            torch.save(value, path)
            read = names["read_tensor"](path)
            self.assertEqual((read.dtype, read.shape), (value.dtype, value.shape))
            self.assertTrue(torch.equal(read, value.detach()), value)
        for value in ([base], {"a": base}, base.to_sparse(), "text", 3):
            torch.save(value, path)
            with self.assertRaises(ValueError):
                names["read_tensor"](path)


if __name__ == "__main__":
    unittest.main()
