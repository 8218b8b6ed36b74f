"""The C extension of the Python package against numpy, torch and zlib: every type and layout, and
arguments that nobody should pass."""

import gc
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import unittest
import zlib
from pathlib import Path
from typing import Any, List

BUILD = Path(os.environ.get("PLUMB_BUILD", Path(__file__).resolve().parents[2] / "build"))
sys.path.insert(0, str(BUILD / "python"))

import h5py
import numpy as np
import torch

import plumb
from plumb import _core
from plumb.tensors import flatten, view

TORCH_TYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
               torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
               torch.complex128)
NUMPY_TYPES = ("bool", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8",
               "c16")


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run_script(text: str, *args: str, timeout: float = 120) -> "subprocess.CompletedProcess[str]":
    """A Python of its own, with the package under test."""
    start = f"import sys; sys.path.insert(0, {str(BUILD / 'python')!r})\n"
    return subprocess.run([sys.executable, "-c", start + text, *args], timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)


def layouts(x: torch.Tensor) -> List[torch.Tensor]:
    """Dense, transposed, with gaps, broadcast, of one element, empty, and without dimensions."""
    return [x, x.t(), x[::2, 1::3], x[:1].expand(5, -1), x[2:3, 3:4], x[:, :0], x[3, 4], x[1:]]


def sample(dtype: torch.dtype) -> torch.Tensor:
    torch.manual_seed(7)
    if dtype.is_complex:
        return torch.randn(37, 13, dtype=dtype)
    return (torch.randn(37, 13) * 50).to(dtype)


def raw_bytes(x: torch.Tensor) -> bytes:
    dense = x.contiguous().clone().reshape(-1)
    return dense.view(torch.uint8).numpy().tobytes() if dense.numel() else b""


class TestTensor(Case):
    def test_bytes_of_every_type_and_layout(self) -> None:
        for dtype in TORCH_TYPES:
            for x in layouts(sample(dtype)):
                with self.subTest(dtype=dtype, shape=tuple(x.shape), stride=x.stride()):
                    tensor, raw = view(x), raw_bytes(x)
                    self.assertEqual(tensor.dtype, str(dtype)[6:])
                    self.assertEqual((tensor.shape, tensor.count), (tuple(x.shape), x.numel()))
                    self.assertEqual(tensor.nbytes, len(raw))
                    self.assertEqual(tensor.crc32(), zlib.crc32(raw))
                    words = np.frombuffer(raw + bytes(-len(raw) % 8), "<u8")
                    self.assertEqual(tensor.xor64(), int(np.bitwise_xor.reduce(words)))
                    copy = bytearray(len(raw) + 1)
                    room = np.frombuffer(copy, "u1")
                    tensor.copy_into(room.ctypes.data, len(raw))
                    self.assertEqual(bytes(copy), raw + b"\0")

    def test_statistics_of_every_type_and_layout(self) -> None:
        for dtype in TORCH_TYPES:
            for x in layouts(sample(dtype)):
                with self.subTest(dtype=dtype, shape=tuple(x.shape)):
                    self.check_stats(x)

    def check_stats(self, x: torch.Tensor) -> None:
        stats = view(x).stats()
        if x.numel() == 0:
            self.assertEqual(tuple(stats), (None,) * 5 + (0, 0, 0))
            return
        wide = x.to(torch.complex128).abs() if x.is_complex() else x.double()
        lowest, highest = wide.min().item(), wide.max().item()
        if x.is_complex():
            self.assertIsNone(stats.norm)
            self.assertAlmostEqual(stats.min, lowest, delta=1e-15 * abs(lowest))
            self.assertAlmostEqual(stats.max, highest, delta=1e-15 * abs(highest))
        else:
            self.assertEqual((stats.min, stats.max), (x.min().item(), x.max().item()))
            self.assertIs(type(stats.min), type(x.min().item()))
            self.assertAlmostEqual(stats.norm, wide.norm().item(), delta=1e-9 * stats.norm)
        self.assertAlmostEqual(stats.mean, wide.mean().item(), delta=1e-9 * max(1, abs(stats.mean)))
        if x.numel() > 1:
            self.assertAlmostEqual(stats.std, wide.std().item(), delta=1e-9 * max(1, stats.std))
        else:
            self.assertNotEqual(stats.std, stats.std)

    def test_integers_beyond_float64(self) -> None:
        x = torch.tensor([2**63 - 1, -2**63, 5, 2**62 + 1])
        self.assertEqual(view(x).stats()[:2], (-2**63, 2**63 - 1))
        self.assertEqual(view(x[2:]).stats()[:2], (5, 2**62 + 1))
        y = np.array([2**64 - 1, 3, 2**63 + 1], "u8")
        self.assertEqual(view(y).stats()[:2], (3, 2**64 - 1))
        self.assertEqual(view(y[::2]).stats()[:2], (2**63 + 1, 2**64 - 1))

    def test_nan_and_infinity(self) -> None:
        inf, nan = float("inf"), float("nan")
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
            stats = view(torch.tensor([1, nan, inf, -inf, inf], dtype=dtype)).stats()
            self.assertEqual(stats[5:], (1, 2, 1))
            self.assertTrue(all(value != value for value in stats[:5]))
            stats = view(torch.tensor([1, inf, -2], dtype=dtype)).stats()
            self.assertEqual((stats.min, stats.max, stats.mean, stats.norm), (-2, inf, inf, inf))
        stats = view(torch.tensor([complex(3, 4), complex(nan, 1)])).stats()
        self.assertEqual(stats.nan, 1)
        self.assertNotEqual(stats.max, stats.max)

    def test_statistics_on_several_threads(self) -> None:
        for dtype in (torch.float32, torch.int64, torch.complex64, torch.bfloat16):
            x = (torch.randn(1_500_001) * 1000).to(dtype)
            self.check_stats(x)
            self.check_stats(x[:1_500_000].reshape(1000, 1500).t())

    def test_numpy(self) -> None:
        rng = np.random.default_rng(3)
        for code in NUMPY_TYPES:
            base = (rng.standard_normal((20, 9)) * 40).astype(code)
            for x in (base, base.T, base[::-1, ::2], base[3, 4], base[:0], np.asfortranarray(base)):
                with self.subTest(code=code, shape=x.shape):
                    tensor = view(x)
                    self.assertEqual(tensor.crc32(), zlib.crc32(np.ascontiguousarray(x).tobytes()))
                    if x.size and base.dtype.kind not in "c":
                        self.assertEqual(tensor.stats()[:2], (x.min(), x.max()))
            if base.dtype.itemsize > 1:
                swapped = base.astype(base.dtype.newbyteorder(">"))
                self.assertEqual(view(swapped).crc32(), zlib.crc32(base.tobytes()))
        self.assertEqual(view(np.float32(2.5)).value(), 2.5)
        odd = np.zeros(4, dtype=[("a", "i1"), ("b", "f4")])
        odd["b"] = [1, 2, 3, 4]
        self.assertEqual(view(odd["b"]).stats()[:3], (1.0, 4.0, 2.5))
        for bad in (np.array(["a"]), np.array([object()]), odd, np.array([1], "M8[s]"),
                    np.array([1.0], np.longdouble)):
            with self.assertRaises(plumb.Error):
                view(bad)

    def test_value(self) -> None:
        for dtype in TORCH_TYPES:
            x = sample(dtype)
            for one in (x[3, 4], x[3:4, 4:5], x.t()[2:3, 9]):
                value = view(one).value()
                self.assertEqual((value, type(value)), (one.item(), type(one.item())))
        self.assertEqual(view(torch.tensor(2**63 - 1)).value(), 2**63 - 1)
        self.assertEqual(view(np.uint64(2**64 - 1)).value(), 2**64 - 1)
        for x in (torch.zeros(2), torch.zeros(0)):
            with self.assertRaises(plumb.Error):
                view(x).value()

    def test_save(self) -> None:
        for dtype in TORCH_TYPES:
            for x in layouts(sample(dtype)):
                view(x).save(self.path("x.pt"))
                back = torch.load(self.path("x.pt"))
                self.assertTrue(torch.equal(back, x) and back.dtype == dtype)
                if dtype is not torch.bfloat16:
                    view(x).save(Path(self.path("x.npy")))
                    back = np.load(self.path("x.npy"))
                    self.assertTrue(np.array_equal(back,
                                                   x.numpy()) and back.dtype == x.numpy().dtype)
        one = view(torch.ones(1))
        for bad, code in (("x.txt", "ARG"), ("none/x.pt", "IO"), ("x", "ARG")):
            with self.assertRaises(plumb.Error) as caught:
                one.save(self.path(bad))
            self.assertEqual(caught.exception.code, code)
            self.assertIn(bad, str(caught.exception))
        with self.assertRaises(plumb.Error) as caught:
            view(torch.ones(1, dtype=torch.bfloat16)).save(self.path("b.npy"))
        self.assertEqual(caught.exception.code, "UNSUPPORTED")
        self.assertEqual(sorted(os.listdir(self.folder)), ["x.npy", "x.pt"])

    def test_hostile_arguments(self) -> None:
        x = torch.zeros(16)
        p = x.data_ptr()
        good: List[Any] = [p, "float32", [16], None, False, x]
        bad = {
            0: (None, "0", 1.5, True, -1, 2**70, 0, [], object()),
            1: (None, 5, "", "<f4", "float33", "torch.", "float32\0", "\ud800", b"float32",
                "x" * 10**6),
            2: (None, 5, "16", [-1], [2**40, 2**40], [2**70], [1.5], [None], ["1"], [1] * 65, {16},
                [True],
                [0, 2**62, 2**62], itertools.count),
            3: (5, "1", [], [1, 1], [2**70], [1.5], [None], [2**63 - 1], [-2**63]),
        }
        for place, values in bad.items():
            for value in values:
                args = list(good)
                args[place] = value
                with self.subTest(place=place, value=repr(value)[:40]):
                    with self.assertRaises((TypeError, plumb.Error)):
                        _core.Tensor(*args)
        for args in ((), (1,), tuple(good) + (1,)):
            with self.assertRaises(TypeError):
                _core.Tensor(*args)
        with self.assertRaises(TypeError):
            _core.Tensor(*good[:3], stripe=None)
        self.assertEqual(_core.Tensor(0, "float32", [0, 5]).stats().min, None)
        self.assertEqual(_core.Tensor(0, "float32", (3, 0), (-7, 2**62)).crc32(), 0)
        tensor = _core.Tensor(*good)
        for args in ((), (p,), (p, 63), (p, -1), (0, 64), (None, 64), (p, "64"), (p, 2**70),
                     (-p, 64)):
            with self.assertRaises((TypeError, plumb.Error)):
                tensor.copy_into(*args)
        for path in (None, 5, "a\0b.pt", object()):
            with self.assertRaises((TypeError, plumb.Error)):
                tensor.save(path)
        with self.assertRaises(AttributeError):
            tensor.count = 5
        self.assertEqual(repr(tensor), "Tensor(float32, [16])")

    def test_torch_without_memory(self) -> None:
        for x in (torch.zeros(3, device="meta"), torch.zeros(3, 3).to_sparse(),
                  torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.qint8)):
            with self.assertRaises(plumb.Error) as caught:
                view(x)
            self.assertEqual(caught.exception.code, "UNSUPPORTED")
        for x in (None, 5, "x", object(), [torch.zeros(1)]):
            with self.assertRaises(TypeError):
                view(x)

    def test_conjugates_and_gradients(self) -> None:
        x = torch.randn(4, 5, dtype=torch.complex64)
        for lazy in (x.conj(), x.conj().imag, x.t().conj()):
            self.assertEqual(view(lazy).crc32(),
                             zlib.crc32(raw_bytes(lazy.resolve_conj().resolve_neg())))
        leaf = torch.ones(3, requires_grad=True)
        self.assertTrue(view(leaf * 2).requires_grad)
        self.assertFalse(view(leaf.detach()).requires_grad)
        self.assertIsNone(leaf.grad)

    def test_flatten(self) -> None:
        Point = __import__("collections").namedtuple("Point", "x y")
        a, b = torch.zeros(1), np.zeros(2)
        nested = {"k": [a, (b, 5)], 3: Point(a, "no"), "none": None}
        self.assertEqual([path for path, _ in flatten(nested)], ["k.0", "k.1.0", "3.x"])
        self.assertEqual([path for path, _ in flatten(a, "out")], ["out"])
        loop: List[Any] = [a]
        loop.append(loop)
        self.assertGreater(len(list(flatten(loop))), 1)


class TestMemory(Case):
    def test_owner_is_kept_and_let_go(self) -> None:
        x = torch.ones(1000)
        before = sys.getrefcount(x)
        tensor = view(x)
        self.assertGreater(sys.getrefcount(x), before)
        del tensor
        self.assertEqual(sys.getrefcount(x), before)
        tensor = view(torch.full((1000,), 3.0))
        gc.collect()
        self.assertEqual(tensor.stats().mean, 3.0)

    def test_cycles_are_collected(self) -> None:
        class Owner:
            pass

        gone: List[bool] = []
        owner = Owner()
        x = torch.ones(4)
        owner.view = _core.Tensor(x.data_ptr(), "float32", [4], owner=owner)
        __import__("weakref").finalize(owner, gone.append, True)
        del owner
        gc.collect()
        self.assertEqual(gone, [True])

    def test_nothing_leaks(self) -> None:
        x, y = torch.randn(40, 50), torch.randn(40, 50)
        value = {"a": [1, 2.5, "text", None], "b": {"c": (True,)}}

        def everything() -> None:
            a, b = view(x), view(y.t())
            a.stats(), a.crc32(), a.shape, b.stride, b.dtype, repr(a)
            _core.compare(a, view(y))
            _core.compare(a, view(y), ["cosine"])
            _core.judge(a, view(y), "allclose", ["rtol=0.1"])
            _core.json_text(value)
            _core.run_op("Torch", "mul", [a, view(y)], {}, [view(x)])
            table = _core.Table(["a", "b"], [["x", 1], [None, 2.5]], [0, 1])
            table.text(), table[0], table.columns
            for call in (lambda: _core.Tensor(1, "no", [1]), lambda: _core.Table(["a"], [[1, 2]]),
                         lambda: _core.run_op("Torch", "none", [a], {}),
                         lambda: _core.json_text({1j: 2}),
                         lambda: _core.compare(a, b, ["none"]), lambda: a.save("/none/x.pt")):
                with self.assertRaises((plumb.Error, TypeError)):
                    call()

        for _ in range(200):
            everything()
        gc.collect()
        before, counted = resident(), sys.getrefcount(None)
        for _ in range(1500):
            everything()
        gc.collect()
        self.assertLess(resident() - before, 2 << 20)
        self.assertLess(abs(sys.getrefcount(None) - counted), 200)

    def test_threads(self) -> None:
        problems: List[str] = []
        writer = _core.Writer(1 << 20)

        def work(number: int) -> None:
            x = torch.full((300, 400), float(number))
            crc = zlib.crc32(raw_bytes(x))
            for turn in range(25):
                tensor = view(x)
                if tensor.crc32() != crc or tensor.stats().mean != number:
                    problems.append(f"{number} {turn}")
                if _core.compare(tensor, view(x), ["unequal"])["unequal"] != 0:
                    problems.append(f"{number} {turn} compare")
                writer.save(self.path(f"{number}.{turn}.npy"), tensor)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        writer.close()
        self.assertEqual((problems, writer.errors()), ([], []))
        self.assertEqual(len(os.listdir(self.folder)), 150)
        self.assertTrue((np.load(self.path("5.24.npy")) == 5).all())


class TestWriter(Case):
    def test_saves_what_was_there(self) -> None:
        writer = _core.Writer(1 << 16)
        x = torch.zeros(1000)
        for i in range(300):
            x.fill_(i)
            writer.save(self.path(f"{i}.pt"), view(x))
        big = torch.randn(400, 300)
        writer.save(self.path("big.npy"), view(big.t()))
        writer.flush()
        self.assertEqual(writer.errors(), [])
        for i in (0, 7, 299):
            self.assertTrue(torch.equal(torch.load(self.path(f"{i}.pt")),
                                        torch.full((1000,), float(i))))
        self.assertTrue(np.array_equal(np.load(self.path("big.npy")), big.t().numpy()))
        writer.close()
        writer.close()
        writer.save(self.path("late.pt"), view(x))
        self.assertTrue(os.path.exists(self.path("late.pt")))

    def test_the_last_of_a_name_wins(self) -> None:
        for budget in (0, 100_000, 1 << 20):
            writer = _core.Writer(budget)
            for i in range(50):
                size = 100_000 if i % 3 else 10
                writer.save(self.path("same.npy"), view(torch.full((size,), float(i))))
            writer.flush()
            self.assertEqual(np.load(self.path("same.npy"))[0], 49)

    def test_h5(self) -> None:
        writer = _core.Writer()
        first = writer.open_h5(self.path("a.h5"), 3, local_rank=1)
        second = writer.open_h5(self.path("b.h5"))
        self.assertNotEqual(first, second)
        x = torch.randn(6, 7)
        for i in range(20):
            writer.add_h5(first, f"layer.{i}", i % 2, view(x.t()))
            writer.add_h5(second, f"n{i}", -1, view(x.bfloat16()))
        refused = ["layer.0", "layer.0/x", "", "a//b", "/a", "a/", "./a"]
        for name in refused:  # none of these may cost the file
            writer.add_h5(first, name, 0, view(x))
        writer.add_h5(first, "group/x", 0, view(x))
        writer.add_h5(first, "group", 0, view(x))
        writer.add_h5(99, "lost", 0, view(x))
        writer.close_h5(first)
        writer.add_h5(first, "late", 0, view(x))
        writer.close_h5(12345)
        writer.close()
        errors = dict(writer.errors())
        self.assertEqual(sorted(errors), sorted(["group", "late", "lost", *refused]))
        with h5py.File(self.path("a.h5")) as file:
            self.assertEqual((file.attrs["globalrank"], file.attrs["localrank"]), (3, 1))
            self.assertEqual(sorted(file), ["0", "1"])
            self.assertTrue(np.array_equal(file["1/layer.3"][()], x.t().numpy()))
        with h5py.File(self.path("b.h5")) as file:
            self.assertEqual(len(file), 20)

    def test_errors_are_collected(self) -> None:
        writer = _core.Writer()
        one = view(torch.ones(1))
        writer.save(self.path("none/x.pt"), one)
        writer.save(self.path("x.doc"), one)
        number = writer.open_h5(self.path("none/x.h5"))
        writer.add_h5(number, "x", 0, one)
        writer.close_h5(number)
        writer.flush()
        errors = writer.errors()
        self.assertEqual([os.path.basename(name) for name, _ in errors], ["x.pt", "x.doc", "x.h5"])
        self.assertIn("No such file", errors[0][1])
        self.assertEqual(writer.errors(), [])
        for i in range(1500):
            writer.save(self.path(f"none/{i}.pt"), one)
        writer.flush()
        errors = writer.errors()
        self.assertEqual(len(errors), 1000)
        self.assertEqual(errors[-1], ("...", "501 more could not be written"))

    def test_hostile_arguments(self) -> None:
        for args in ((None,), ("5",), (-1,), (2**70,), (1, 2)):
            with self.assertRaises((TypeError, plumb.Error)):
                _core.Writer(*args)
        writer = _core.Writer()
        one = view(torch.ones(1))
        for call in (lambda: writer.save(None, one), lambda: writer.save("x.pt", None),
                     lambda: writer.save("x.pt", torch.ones(1)), lambda: writer.save("a\0.pt", one),
                     lambda: writer.save("x.pt"), lambda: writer.add_h5("0", "x", 0, one),
                     lambda: writer.add_h5(0, None, 0, one),
                     lambda: writer.add_h5(0, "x", 2**70, one),
                     lambda: writer.close_h5(None), lambda: writer.open_h5(5),
                     lambda: writer.open_h5("x.h5", "0")):
            with self.assertRaises((TypeError, OverflowError, plumb.Error)):
                call()
        writer.close()
        self.assertEqual(writer.errors(), [])

    def test_full_disk(self) -> None:
        done = run_script("""
import resource, sys, torch
from plumb import _core
from plumb.tensors import view
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
writer = _core.Writer()
number = writer.open_h5(sys.argv[1] + "/x.h5")
writer.add_h5(number, "a", 0, view(torch.ones(100000)))
writer.save(sys.argv[1] + "/x.pt", view(torch.ones(100000)))
writer.save(sys.argv[1] + "/x.npy", view(torch.ones(100000)))
writer.save(sys.argv[1] + "/small.npy", view(torch.ones(100)))
writer.close()
for name, message in writer.errors():
    print(name.rsplit("/")[-1], message)
""", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = sorted(done.stdout.splitlines())
        self.assertEqual([line.split()[0] for line in lines[-2:]], ["x.npy", "x.pt"])
        self.assertIn(lines[0].split()[0], ("a", "x.h5"))  # told by the send or by the close
        self.assertEqual(len(lines), 3)
        self.assertIn("File too large", lines[1])
        self.assertEqual(os.listdir(self.folder), ["small.npy"])

    def test_budget_bounds_memory(self) -> None:
        done = run_script("""
import resource, sys, torch
from plumb import _core
from plumb.tensors import view
x = torch.ones(1 << 20)
view(x).save(sys.argv[1] + "/first.npy")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
writer = _core.Writer(16 << 20)
for i in range(60):
    writer.save(f"{sys.argv[1]}/{i % 4}.npy", view(x))
writer.close()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, len(writer.errors()))
""", self.folder)
        grown, errors = map(int, done.stdout.split())
        self.assertEqual(errors, 0)
        self.assertLess(grown, 26 << 10)  # KiB

    def test_fork_while_writing(self) -> None:
        done = run_script("""
import os, sys, torch
from plumb import _core
from plumb.tensors import view
folder = sys.argv[1]
writer = _core.Writer(64 << 20)
x = torch.ones(200000)
number = writer.open_h5(folder + "/parent.h5")
children = []
for i in range(40):
    writer.save(f"{folder}/parent{i}.npy", view(x))
    writer.add_h5(number, f"x{i}", 0, view(x))
    if i % 8 == 7:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                writer.save(f"{folder}/child{i}.npy", view(x * i))
                assert os.path.exists(f"{folder}/child{i}.npy")
                writer.add_h5(number, "no", 0, view(x))
                own = writer.open_h5(f"{folder}/child{i}.h5")
                writer.add_h5(own, "yes", 0, view(x))
                writer.flush()
                writer.close()
                assert os.path.exists(f"{folder}/child{i}.h5")
                errors = writer.errors()
                assert len(errors) == 1 and "forked" in errors[0][1], errors
                status = 0
            finally:
                os._exit(status)
        children.append(child)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children], flush=True)
if os.fork() == 0:
    sys.exit(0)  # an ordinary end of a child that never used it
os.wait()
writer.close()
print(writer.errors(), len(os.listdir(folder)))
""", self.folder)
        self.assertEqual(done.stdout, "[0, 0, 0, 0, 0]\n[] 51\n", done.stderr)
        with h5py.File(self.path("parent.h5")) as file:
            self.assertEqual(len(file["0"]), 40)

    def test_end_of_the_program(self) -> None:
        """What waits is written whether the Writer was closed, dropped, or kept to the end."""
        for ending in ("del writer", "sys.keep = writer", "import builtins; builtins.keep = writer",
                       "sys.keep = writer; sys.exit(3)", "sys.keep = writer; raise ValueError"):
            with self.subTest(ending=ending), tempfile.TemporaryDirectory() as folder:
                done = run_script("""
import sys, torch
from plumb import _core
from plumb.tensors import view
writer = _core.Writer()
number = writer.open_h5(sys.argv[1] + "/x.h5")
for i in range(50):
    writer.save(f"{sys.argv[1]}/{i}.npy", view(torch.ones(20000)))
    writer.add_h5(number, f"x{i}", 0, view(torch.ones(2000)))
""" + ending, folder, timeout=60)
                self.assertIn(done.returncode, (0, 1, 3), done.stderr)
                self.assertEqual(len(os.listdir(folder)), 51)


class TestJson(Case):
    def random_value(self, rng: random.Random, depth: int) -> Any:
        kind = rng.randrange(9 if depth else 6)
        if kind == 0:
            return rng.choice([None, True, False])
        if kind == 1:
            return rng.choice([0, -1, 2**63, -2**64, rng.getrandbits(200), rng.randrange(-99, 99)])
        if kind == 2:
            return rng.choice([0.0, -0.0, 1e22, 1e16, 1e-5, 123456789.125, float("nan"),
                               float("inf"),
                               float("-inf"), rng.random(), rng.gauss(0, 1e30), 5e-324])
        if kind in (3, 4, 5):
            letters = "ab \"\\/\n\t\r\b\f\x00\x1f\x7f\u00e4\u20ac\U0001f600\ud800\udc00\u2028"
            return "".join(rng.choices(letters, k=rng.randrange(8)))
        items = [self.random_value(rng, depth - 1) for _ in range(rng.randrange(5))]
        if kind == 6:
            return items
        if kind == 7:
            return tuple(items)
        keys = [rng.choice([None, True, 5, -2.5, float("inf"),
                            self.random_value(rng, 0)]) for _ in items]
        return {key if not isinstance(key, list) else 0: item for key, item in zip(keys, items)}

    def test_as_json_dumps(self) -> None:
        rng = random.Random(5)
        for _ in range(3000):
            value = self.random_value(rng, 4)
            text = json.dumps(value, indent=1)
            self.assertEqual(_core.json_text(value), text)
            self.assertEqual(_core.json_text(value, 3), text.replace("\n", "\n   "))

    def test_subclasses(self) -> None:
        from collections import OrderedDict
        from enum import IntEnum
        Colour = IntEnum("Colour", "RED GREEN")
        ordered = OrderedDict(a=1, b=2)
        ordered.move_to_end("a")
        for value in (ordered, Colour.GREEN, {Colour.RED: [torch.Size([2, 3])]}, np.float64(2.5),
                      [np.str_("x")]):
            self.assertEqual(_core.json_text(value), json.dumps(value, indent=1))

    def test_refuses(self) -> None:
        loop: List[Any] = []
        loop.append(loop)
        with self.assertRaises(RecursionError):
            _core.json_text(loop)
        for bad in (object(), {1, 2}, b"x", 1j, {(1,): 2}, [np.float32(1)], {"a": object()}):
            with self.assertRaises(TypeError):
                _core.json_text(bad)
        for args in ((), (1, "2"), (1, -1), (1, 2**40)):
            with self.assertRaises((TypeError, OverflowError, plumb.Error)):
                _core.json_text(*args)
        self.assertEqual(_core.json_text([], level=5), "[]")


class TestOperators(Case):
    def run_op(self, *args: Any, **kwargs: Any) -> List[torch.Tensor]:
        outputs, _, _ = _core.run_op(*args, **kwargs)
        return [self.to_torch(x) for x in outputs]

    def to_torch(self, tensor: Any) -> torch.Tensor:
        out = torch.empty(tensor.shape, dtype=getattr(torch, tensor.dtype))
        tensor.copy_into(out.data_ptr(), out.numel() * out.element_size())
        return out

    def test_values(self) -> None:
        a, b = torch.randn(4, 5), torch.randn(5, 3)
        [out] = self.run_op("Torch", "matmul", [view(a), view(b)], {})
        self.assertTrue(torch.allclose(out, a.double() @ b.double(), rtol=1e-14))
        [out] = self.run_op("Torch", "softmax", [view(a)],
                            {"dim": -1, "dtype": _core.DType("torch.float32")},
                            raised=False)
        self.assertTrue(out.dtype is torch.float32 and torch.allclose(out, a.softmax(-1)))
        [out] = self.run_op("Tensor", "__getitem__", [view(a), (slice(1, None, 2), Ellipsis, None)],
                            {})
        self.assertTrue(torch.equal(out, a[1::2, ..., None].double()))
        outputs, many, _ = _core.run_op("Torch", "topk", [view(a), np.int64(2)], {})
        self.assertTrue(many and len(outputs) == 2)
        self.assertTrue(torch.equal(self.to_torch(outputs[1]), a.topk(2)[1]))

    def test_gradients(self) -> None:
        a = torch.randn(4, 5, requires_grad=True)
        b = torch.randn(5, 3)
        out = torch.ones(4, 3)
        _, _, grads = _core.run_op("Torch", "matmul", (view(a), view(b)), {}, [view(out)])
        self.assertEqual([grad is None for grad in grads], [False, True])
        self.assertTrue(torch.allclose(self.to_torch(grads[0]), (out @ b.t()).double()))

    def test_results_outlive_everything(self) -> None:
        result = _core.run_op("Tensor", "t",
                              [view(torch.arange(6.0, dtype=torch.float64).reshape(2, 3))], {})
        gc.collect()
        junk = [torch.full((6,), 9.0, dtype=torch.float64) for _ in range(100)]
        self.assertEqual(self.to_torch(result[0][0]).tolist(), [[0, 3], [1, 4], [2, 5]])
        del junk

    def test_refuses(self) -> None:
        a = view(torch.ones(2, 2))
        self.assertTrue(_core.has_op("Torch", "matmul") and _core.has_op(None, "relu"))
        self.assertFalse(_core.has_op("Torch", "no such"))
        loop: List[Any] = []
        loop.append(loop)
        for args in (("Torch", "none", [a], {}), ("Torch", "matmul", [a], {}),
                     ("Torch", "matmul", [a, 1j], {}),
                     ("Torch", "matmul", [a, {}], {}), ("Torch", "matmul", [a, object()], {}),
                     ("Torch", "matmul", [a, a], {1: 2}), ("Torch", "matmul", "aa", {}),
                     ("Torch", "matmul", 5, {}),
                     ("Torch", "matmul", [a, a], None), ("Torch", "matmul", [a, a], {}, [5]),
                     ("Torch", "matmul", [a, a], {}, 5), ("Torch", "add", [a, 2**70], {}),
                     (5, "add", [], {}),
                     ("Torch", "sum", [a], {"dtype": _core.DType("nothing")}),
                     ("Torch", "cat", [loop], {}),
                     ("Torch", None, [a], {}), ("Torch", "matmul", [a, torch.ones(2, 2)], {})):
            with self.subTest(args=str(args)[:60]):
                with self.assertRaises((TypeError, RecursionError, plumb.Error)):
                    _core.run_op(*args)


class TestCompare(Case):
    def test_metrics(self) -> None:
        x, y = torch.randn(3000, dtype=torch.float64), torch.randn(3000, dtype=torch.float64)
        found = _core.compare(view(x), view(y))
        self.assertAlmostEqual(found["cosine"], torch.cosine_similarity(x, y, dim=0).item(),
                               places=12)
        self.assertEqual(found["max_abs"], (x - y).abs().max().item())
        self.assertEqual(found["max_abs_index"], (x - y).abs().argmax().item())
        self.assertEqual(found["not_close"], int((~torch.isclose(x, y, 1e-3, 1e-5)).sum()))
        self.assertIs(type(found["count"]), int)
        some = _core.compare(view(x), view(y), ("max_ulp", "cosine"), rtol=0.5)
        self.assertEqual(list(some), ["max_ulp", "cosine"])
        self.assertEqual(_core.compare(view(x), view(x))["unequal"], 0)

    def test_threads_change_nothing(self) -> None:
        x = torch.randn(700_000)
        y = x * (1 + torch.randn(700_000) * 1e-6)
        np.save(self.path("x.npy"), x.numpy())
        np.save(self.path("y.npy"), y.numpy())
        whole = _core.compare(view(x), view(y))
        done = run_script("""
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy, json
from plumb import _core
from plumb.tensors import view
x, y = numpy.load(sys.argv[1] + "/x.npy"), numpy.load(sys.argv[1] + "/y.npy")
print(json.dumps([_core.compare(view(x), view(y)), view(x).stats()]))
""", self.folder)
        alone, stats = json.loads(done.stdout)
        self.assertEqual(alone, whole)
        self.assertEqual(tuple(stats), tuple(view(x).stats()))

    def test_first_apart_and_element(self) -> None:
        x = torch.randn(60, 70)
        y = x.clone()
        self.assertIsNone(_core.first_apart(view(x), view(y), 0, 0))
        y[40, 3] += 1e-2
        y[59, 69] = float("nan")
        self.assertEqual(_core.first_apart(view(y), view(x), 0, 1e-3), 40 * 70 + 3)
        self.assertEqual(_core.first_apart(view(y), view(x), 0, 1), 60 * 70 - 1)
        self.assertEqual(_core.first_apart(view(y.t()), view(x.t()), 0, 1e-3), 3 * 60 + 40)
        self.assertIsNone(_core.first_apart(view(y), view(y), 0, 0, equal_nan=True))
        z = torch.zeros(5, dtype=torch.complex64)
        w = z.clone()
        w[3] = 1j
        self.assertEqual(_core.first_apart(view(z), view(w), 0, 0), 3)
        self.assertEqual(_core.element(view(w), 3), 1j)
        self.assertEqual(_core.element(view(x.t()), 60), x.t()[1, 0].item())
        for index in (-1, 5, 2**70, None, 1.5):
            with self.assertRaises((IndexError, TypeError, plumb.Error)):
                _core.element(view(w), index)
        with self.assertRaises(plumb.Error):
            _core.first_apart(view(z), view(x), 0, 0)

    def test_judge(self) -> None:
        x = torch.randn(100)
        word, rule, metrics = _core.judge(view(x * 1.001), view(x), "allclose", ["rtol=0.1"])
        self.assertEqual((word, rule, metrics["not_close"]), ("pass", "not_close 0 == 0", 0))
        self.assertEqual(_core.judge(view(x + 1), view(x), "xray")[0], "fail")
        Path(self.path("own.std")).write_text("expect max_abs < 1e-9\n")
        self.assertEqual(_core.judge(view(x + 1), view(x), self.path("own.std"))[0], "suspicious")
        for args in ((view(x), view(x), "none"), (view(x), view(x), None), (view(x), x, "xray"),
                     (view(x), view(x[:5]), "xray"), (view(x), view(x), "xray", "rtol=1"),
                     (view(x), view(x), "xray", ["none=1"]), (view(x), view(x), "xray", [None]),
                     (view(x), view(x), "xray", 5)):
            with self.assertRaises((TypeError, plumb.Error)):
                _core.judge(*args)

    def test_hostile_arguments(self) -> None:
        a = view(torch.ones(3))
        for args, kwargs in (((a,), {}), ((a, None), {}), ((None, a), {}), ((a, a, "cosine"), {}),
                             ((a, a, ["none"]), {}), ((a, a, [None]), {}), ((a, a), {"rtol": "x"}),
                             ((a, a, None, 1.0), {}), ((a, view(torch.ones(4))), {}),
                             ((a, a, 5), {})):
            with self.assertRaises((TypeError, plumb.Error)):
                _core.compare(*args, **kwargs)
        empty = view(torch.ones(0))
        self.assertIsNone(_core.compare(empty, empty)["max_abs_index"])


class TestTable(Case):
    def test_rows(self) -> None:
        table = _core.Table(["Name", "n", "x"], [["a", 1, 2.5], ["b", None, float("inf")]], [0, 2])
        table.add(("c", 2**80, True), severity=1)
        self.assertEqual((len(table), table.columns), (3, ["Name", "n", "x"]))
        self.assertEqual(list(table)[:2], [("a", 1, 2.5), ("b", None, float("inf"))])
        self.assertEqual(table[-1], ("c", str(2**80), "True"))
        self.assertEqual([table.severity(i) for i in range(3)], [0, 2, 1])
        self.assertIn("| a    |", table.text())
        rows = json.loads(table.text(format="json"))["rows"]
        self.assertEqual(rows[1]["severity"], "failed")
        self.assertTrue(table.text(format="csv").startswith("Name,n,x"))
        self.assertIn("---", table.text(format="markdown"))
        for ending in ("csv", "json", "md", "xlsx", "txt"):
            table.save(Path(self.path("t." + ending)))
            self.assertGreater(os.path.getsize(self.path("t." + ending)), 10)
        self.assertEqual(len(_core.Table(["a"])), 0)
        self.assertIn("a", _core.Table(["a"]).text())

    def test_refuses(self) -> None:
        table = _core.Table(["a", "b"])
        for call in (lambda: _core.Table(None), lambda: _core.Table("ab"), lambda: _core.Table([1]),
                     lambda: _core.Table(["a"], [[1, 2]]), lambda: _core.Table(["a"], 5),
                     lambda: _core.Table(["a"], ["x"]), lambda: _core.Table(["a"], [[1]], [0, 0]),
                     lambda: _core.Table(["a"], [[1]], [7]),
                     lambda: _core.Table(["a"], [[1]], ["x"]),
                     lambda: table.add([1]), lambda: table.add(5), lambda: table.add(["a\0", 1]),
                     lambda: table.add([1, 2], 9), lambda: table.save("x.doc"),
                     lambda: table.save(None),
                     lambda: table.text(format="html"), lambda: table.text(width=-1),
                     lambda: table.text(format=None),
                     lambda: table[0], lambda: table.severity(0), lambda: table.severity(None)):
            with self.assertRaises((TypeError, IndexError, OverflowError, ValueError, plumb.Error)):
                call()
        self.assertEqual(len(table), 0)

    def test_runs(self) -> None:
        np.savez(self.path("a.npz"), x=np.ones(4), y=np.zeros(3))
        np.savez(self.path("b.npz"), x=np.ones(4), y=np.ones(3), z=np.ones(1))
        table, closing, counts = _core.compare_runs(self.path("a.npz"), Path(self.path("b.npz")),
                                                    "allclose",
                                                    ["rtol=0.1"], metrics="rmse", match="exact",
                                                    wide=True)
        self.assertEqual(counts,
                         {"compared": 2, "passed": 1, "suspicious": 0, "failed": 1, "unmatched": 1,
                                  "unreadable": 0})
        self.assertIn("first failure: y", closing)
        self.assertIn("RMSE", table.columns)
        self.assertEqual(len(_core.summarise_run(self.path("b.npz"))), 3)
        path = self.path("a.npz")
        for call in (lambda: _core.compare_runs(path),
                     lambda: _core.compare_runs(path, self.path("none")),
                     lambda: _core.compare_runs(path, path, "none"),
                     lambda: _core.compare_runs(path, None),
                     lambda: _core.compare_runs(path, path, settings=["x=1"]),
                     lambda: _core.compare_runs(path, path, settings="x"),
                     lambda: _core.compare_runs(path, path, match="best"),
                     lambda: _core.compare_runs(path, path, metrics="nothing"),
                     lambda: _core.summarise_run(self.path("none")),
                     lambda: _core.summarise_run(None)):
            with self.assertRaises((TypeError, plumb.Error)):
                call()


class TestErrors(Case):
    def test_code_and_text(self) -> None:
        with self.assertRaises(plumb.Error) as caught:
            _core.summarise_run(self.path("none"))
        self.assertEqual(caught.exception.code, "IO")
        self.assertIn("none", str(caught.exception))
        self.assertIs(plumb.Error, _core.Error)

    def test_import_is_cheap(self) -> None:
        done = run_script("import plumb; plumb.Error; from plumb import tensors; "
                          "print('torch' in sys.modules, 'numpy' in sys.modules)")
        self.assertEqual(done.stdout, "False False\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
