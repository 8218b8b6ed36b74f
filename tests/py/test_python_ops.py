"""What the C extension computes: operators, metrics, verdicts, tables and whole runs."""

import gc
import json
import os
import unittest
from pathlib import Path
from typing import Any, List

from python_case import Case, run_script

import numpy as np
import torch

import plumb
from plumb import _core
from plumb.tensors import view


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
        self.assertEqual(str(table), table.text())
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
                         {"compared": 2, "passed": 1, "suspicious": 0, "failed": 1, "unjudged": 0,
                          "unmatched": 1, "unreadable": 0})
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


if __name__ == "__main__":
    unittest.main()
