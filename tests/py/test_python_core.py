"""The C extension of the Python package against numpy, torch, zlib and json: tensors of every type
and layout, statistics, memory, JSON, and arguments that nobody should pass."""

import gc
import itertools
import json
import math
import os
import random
import sys
import threading
import unittest
import zlib
from pathlib import Path
from typing import Any, List

from python_case import Case, run_script

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
        """They are made alone or together, as it took less time: the numbers are the same."""
        for dtype in (torch.float32, torch.int64, torch.complex64, torch.bfloat16):
            x = (torch.randn(1_500_001) * 1000).to(dtype)
            self.check_stats(x)
            self.check_stats(x[:1_500_000].reshape(1000, 1500).t())
        x = torch.randn(3_000_001, generator=torch.Generator().manual_seed(2)) * 1e3
        made = {(view(x).stats(), view(x).stats_and_mark(), view(x).mark()) for _ in range(200)}
        self.assertEqual(len(made), 1)
        (stats, both, mark), = made
        self.assertEqual(both, (stats, mark))
        norm = float(np.float64(np.sqrt(np.sum(np.square(x.numpy(), dtype="f8"), dtype="g"))))
        self.assertLessEqual(abs(stats.norm - norm), math.ulp(norm))  # a block's sum of squares is rounded
        self.assertEqual(stats.max, float(x.max()))

    def test_statistics_in_a_fork(self) -> None:
        """OpenMP has no threads in the child of a fork, and would wait for them."""
        done = run_script("""
import os, torch
from plumb.tensors import view
torch.set_num_threads(4)
x = torch.randn(1 << 20)
before = [view(x).stats() for _ in range(4)]
child = os.fork()
if child == 0:
    os._exit([view(x).stats() for _ in range(130)] != before[:1] * 130)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""", timeout=60)
        self.assertEqual(done.stdout, "0\n", done.stderr)

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
