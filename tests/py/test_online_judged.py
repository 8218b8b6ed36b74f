"""What the online check judges of a call: not what is free, but everything else, also what was
written."""

import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Callable, Tuple

BUILD = Path(os.environ["PLUMB_BUILD"])
sys.path.insert(0, str(BUILD / "python"))

import torch

import plumb
from plumb import guard
from test_online_check import OnlineCheck, registered
from test_online_users import Far

aten = torch.ops.aten


class Free(OnlineCheck):
    """Right kernels that choose otherwise pass, wrong ones fail."""

    def setUp(self) -> None:
        super().setUp()
        self.enable(log_once=False, max_checks=1000)

    def passes(self, name: str, kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.assertEqual(self.verdict(name, kernel, *args, **kwargs), "")

    def fails(self, text: str, name: str, kernel: Callable[..., Any], *args: Any,
              **kwargs: Any) -> None:
        self.assertIn(text, self.verdict(name, kernel, *args, **kwargs))

    def test_indices_of_equal_values(self) -> None:
        x = torch.tensor([[3.0, 1.0, 3.0, 3.0, 1.0], [2.0, 2.0, 2.0, 0.0, 2.0]])
        for name, args in (("median.dim", (1,)), ("nanmedian.dim", (1, True)), ("mode", (-1,)),
                           ("kthvalue", (3, 1))):
            packet, _, overload = name.partition(".")
            func = getattr(getattr(aten, packet), overload or "default")
            values, index = func(x, *args)
            flat = values if values.ndim == 2 else values[:, None]
            last = (x == flat).int().mul(torch.arange(1, 6)).argmax(1).reshape(index.shape)
            self.assertFalse(torch.equal(index, last) and torch.equal(
                index, (x == flat).int().argmax(1).reshape(index.shape)))
            self.passes(name, lambda *_: (values, last), x, *args)
            self.fails("values at output 1", name, lambda *_: (values, (last + 1) % 5), x, *args)
            self.fails("output 0 |", name, lambda *_: (values + 1, last), x, *args)
            self.fails("FAIL", name, lambda *_: (values, last + 5), x, *args)  # out of range
        values, index = aten.cummax(x, 1)
        self.passes("cummax", lambda *_: (values, torch.tensor([[0] * 5, [0] * 5])), x, 1)
        self.fails("values at output 1", "cummax",
                   lambda *_: (values, torch.tensor([[0] * 5, [3] * 5])), x, 1)

    def test_indices_of_pools(self) -> None:
        x = torch.ones(1, 2, 4, 4)
        values, index = aten.max_pool2d_with_indices(x, [2, 2], [2, 2])
        self.passes("max_pool2d_with_indices", lambda *_: (values, index + 5), x, [2, 2], [2, 2])
        x = torch.arange(32.0).reshape(1, 2, 4, 4)
        values, index = aten.max_pool2d_with_indices(x, [2, 2], [2, 2])
        self.passes("max_pool2d_with_indices", lambda *_: (values, index), x, [2, 2], [2, 2])
        self.fails("values at output 1", "max_pool2d_with_indices",
                   lambda *_: (values, index - 1), x, [2, 2], [2, 2])

    def test_unique_values_in_any_order(self) -> None:
        x = torch.tensor([2.0, 1.0, 2.0, 3.0])
        name, order = "_unique2", torch.tensor([2, 0, 1])
        values, where, counts = aten._unique2(x, True, True, True)
        mixed = values[order], torch.argsort(order)[where], counts[order]
        self.passes(name, lambda *_: mixed, x, False, True, True)
        self.fails("output 0", name, lambda *_: mixed, x, True, True, True)
        self.fails("values at output 1", name, lambda *_: (mixed[0], where, mixed[2]), x, False,
                   True, True)
        self.fails("counts", name, lambda *_: (mixed[0], mixed[1], counts), x, False, True, True)
        # What was not asked for may be anything.
        self.passes(name, lambda *_: (mixed[0], x, x), x, False, False, False)
        self.fails("shape_mismatch", name, lambda *_: (mixed[0][:2], x, x), x, False, False, False)
        self.fails("output 0", name, lambda *_: (mixed[0] + 1, x, x), x, False, False, False)
        rows = torch.tensor([[1, 2], [1, 2], [0, 5]])
        right = aten.unique_dim(rows, 0, True, True, True)
        self.passes("unique_dim", lambda *_: right, rows, 0, True, True, True)
        self.fails("values at output 1", "unique_dim",
                   lambda *_: (right[0], right[1].flip(0), right[2]), rows, 0, True, True, True)

    def test_factors(self) -> None:
        torch.manual_seed(1)
        x = torch.randn(2, 5, 3) * 30
        for full in (False, True):
            u, s, v = aten._linalg_svd(x, full)
            sign = torch.tensor([1.0, -1.0, -1.0])
            other = u.clone()
            other[..., :3] *= sign
            self.passes("_linalg_svd", lambda *_: (other, s, v * sign[:, None]), x, full)
            self.fails("U S Vh", "_linalg_svd", lambda *_: (other, s, v), x, full)
            self.fails("singular values", "_linalg_svd", lambda *_: (u, s * 1.01, v), x, full)
            wrong = u.clone()
            wrong[..., -1] *= 1.01
            self.fails("U", "_linalg_svd", lambda *_: (wrong, s, v), x, full)
        self.passes("_linalg_svd", lambda *_: (x[:0], s, x[:0]), x, False, False)
        a = torch.randn(4, 4)
        w, q = aten._linalg_eigh(a, "L")
        self.passes("_linalg_eigh", lambda *_: (w, -q), a, "L")
        self.fails("V diag(w) V'", "_linalg_eigh", lambda *_: (w, q.flip(1)), a, "L")
        self.fails("V diag(w) V'", "_linalg_eigh", lambda *_: (w, q * 2), a, "L")
        self.fails("eigenvalues", "_linalg_eigh", lambda *_: (w * 2, q), a, "L")
        self.fails("eigenvalues", "_linalg_eigh", lambda *_: (w, q), a, "U")
        q, r = aten.linalg_qr(x[0])
        self.passes("linalg_qr", lambda *_: (-q, -r), x[0])
        self.fails("Q R", "linalg_qr", lambda *_: (-q, r), x[0])
        turn = torch.linalg.qr(torch.randn(3, 3))[0]
        self.fails("R above", "linalg_qr", lambda *_: (q @ turn, turn.T @ r), x[0])

    def test_factors_of_another_device(self) -> None:
        """Complex ones too, which plumb does not multiply."""
        def turned(name: str) -> Callable[..., Any]:
            return lambda x, *rest: tuple(Far(-y) if k in factors[name] else Far(y) for k, y in
                                          enumerate(getattr(aten, name)(x.held, *rest)))
        factors = {"_linalg_svd": (0, 2), "_linalg_eigh": (1,), "linalg_qr": (0, 1),
                   "linalg_eig": (1,)}
        x = torch.randn(4, 4)
        for name, rest in (("_linalg_svd", (False,)), ("_linalg_eigh", ("L",)), ("linalg_qr", ()),
                           ("linalg_eig", ())):
            for of in (x, x.to(torch.complex64)):
                self.passes(name, turned(name), Far(of), *rest)
        wrong = lambda x, *rest: tuple(Far(y * 2) for y in aten._linalg_svd(x.held, *rest))
        for of in (x, x.to(torch.complex64)):
            self.fails("FAIL", "_linalg_svd", wrong, Far(of), False)
        self.finish()
        self.assertRegex(self.said, "not checked, no reference: eigenvalues come in any order.*: "
                                    "linalg_eig")
        self.assertRegex(self.said, r"factors of complex matrices.*: linalg_qr \(some calls\)")
        self.assertNotIn("went wrong", self.said)

    def test_dropout_as_an_argument(self) -> None:
        x, w = torch.randn(3, 2, 4), [torch.randn(16, 4), torch.randn(16, 4)] * 2
        state = [torch.zeros(2, 2, 4)] * 2
        for name, args, checked in (
                ("lstm.input", (x, state, w, False, 2, 0.5, True, False, False), False),
                ("lstm.input", (x, state, w, False, 2, 0.5, False, False, False), True)):
            before = guard.current().guard.operator(f"aten::{name}").counts()["checked"]
            self.passes(name, aten.lstm.input, *args)
            now = guard.current().guard.operator(f"aten::{name}").counts()["checked"]
            self.assertEqual(now > before, checked)
        self.finish()
        self.assertIn("it drops elements at random", self.said)

    def test_memory_for_the_backward(self) -> None:
        x = torch.randn(4)
        y, buffer = aten.log_sigmoid_forward(x)
        self.passes("log_sigmoid_forward", lambda *_: (y, buffer[:0]), x)
        self.fails("output 0", "log_sigmoid_forward", lambda *_: (y + 1, buffer), x)
        scores, target = torch.randn(3, 5), torch.tensor([0, 4, 2])
        for reduction, fault in ((0, ""), (1, "output 1"), (2, "")):
            loss, weight = aten.nll_loss_forward(scores, target, None, reduction, -100)
            self.assertIn(fault, self.verdict("nll_loss_forward", lambda *_: (loss, weight + 1),
                                              scores, target, None, reduction, -100))
        self.passes("nll_loss_forward", aten.nll_loss_forward.default, scores[0], target[0], None,
                    0, -100)
        logs = torch.randn(6, 2, 4).log_softmax(-1)
        labels = torch.tensor([[1, 2, 1], [3, 1, 0]])
        args = logs, labels, [6, 4], [3, 2], 0, False
        loss, alpha = aten._ctc_loss(*args)
        for b, t, s, free in ((1, 5, 0, True), (1, 2, 6, True), (0, 5, 6, False), (1, 3, 4, False)):
            other = alpha.clone()
            other[b, t, s] = 7
            self.assertEqual(self.verdict("_ctc_loss", lambda *_: (loss, other), *args) == "", free)

    def test_terms_that_cancel(self) -> None:
        torch.manual_seed(2)
        a = torch.randn(64, 512) * 1000
        b = torch.randn(512, 64) * 1000
        right = (a.double() @ b.double()).float()
        self.assertGreater(float((a @ b - right).abs().max()), 0.1)
        self.passes("mm", lambda a, b: a @ b, a, b)
        self.passes("mm", lambda a, b: (a.flip(1) @ b.flip(0)), a, b)
        self.fails("max_abs", "mm", lambda a, b: a @ b + 300, a, b)
        self.fails("max_abs", "mm", lambda a, b: a.bfloat16().float() @ b, a, b)
        bias = torch.zeros(64)
        self.passes("addmm", lambda c, a, b, **_: c - a @ b, bias, a, b, alpha=-1)
        c = torch.randn(1000) * 1e4
        d = c * (1 + 1e-5)
        self.passes("sub.Tensor", lambda x, y, alpha: x - alpha * y, 3.3 * c, d, alpha=3.3)
        self.fails("FAIL", "sub.Tensor", lambda x, y, alpha: x - alpha * y + 1, 3.3 * c, d,
                   alpha=3.3)
        self.passes("sum", lambda x: x.flip(0).sum(), torch.cat([c, -c, d]))
        self.fails("FAIL", "sum", lambda x: x.sum() + 50, torch.cat([c, -c]))

    def test_what_rounding_explains(self) -> None:
        """Stock kernels on data where terms cancel or decisions are near; and the same with faults."""
        torch.manual_seed(3)
        x, grad, weight = torch.randn(2000, 64), torch.randn(2000, 64), torch.randn(64) * 100
        y, mean, rstd = aten.native_layer_norm(x, [64], weight, weight, 1e-5)
        norm = "native_layer_norm"
        self.passes(norm, aten.native_layer_norm.default, x, [64], weight, weight, 1e-5)
        self.fails("output 0", norm, lambda *_: (y * 1.0003, mean, rstd), x, [64], weight, weight,
                   1e-5)
        self.fails("output 0", norm, lambda *_: (y + 0.003 * (y.abs() < 1), mean, rstd), x, [64],
                   weight, weight, 1e-5)
        args = grad, x, [64], mean, rstd, weight, weight, [True] * 3
        backward = aten.native_layer_norm_backward
        dx, dw, db = backward(*args)
        sequential = (grad * (x - mean) * rstd).cumsum(0)[-1]
        self.assertGreater(float((dw - sequential).abs().max()), 1e-5)
        self.passes("native_layer_norm_backward", lambda *_: (dx, sequential, db), *args)
        self.fails("output 1", "native_layer_norm_backward",
                   lambda *_: (dx, dw - (grad * (x - mean) * rstd)[7], db), *args)
        p = torch.randn(50, 100).mul(10).softmax(-1)
        g = torch.randn(50, 100) * 100
        right = aten._softmax_backward_data(g, p, -1, torch.float32)
        name = "_softmax_backward_data"
        self.passes(name, lambda *_: right, g, p, -1, torch.float32)
        self.passes(name, lambda *_: p * g - p * (p * g).sum(-1, True), g, p, -1, torch.float32)
        self.fails("FAIL", name, lambda *_: p * g - p * (p * g)[:, 1:].sum(-1, True), g, p, -1,
                   torch.float32)
        whole = torch.arange(-20.0, 20.0)
        for name in ("floor", "ceil", "trunc", "round"):
            self.passes(name, getattr(aten, name).default, whole / 4)
            self.fails("max_abs: 1.0", name, lambda x: getattr(torch, name)(x) - (x == 3).float(),
                       whole)
        self.fails("FAIL", "remainder.Scalar", lambda x, y: torch.remainder(x, y) + y * (x == 6),
                   whole, 3)
        self.fails("FAIL", "div.Tensor_mode", lambda x, y, rounding_mode: torch.floor(x / y) - 1.0 *
                   (x == 6), whole, torch.tensor(3.0), rounding_mode="floor")
        tenth = torch.arange(-3000, 3000) / 10
        self.passes("floor_divide.Scalar", aten.floor_divide.Scalar, tenth, 0.1)
        self.passes("remainder.Scalar", aten.remainder.Scalar, tenth, 0.7)
        self.fails("FAIL", "floor_divide.Scalar", lambda x, y: torch.floor_divide(x, y) - 1, tenth,
                   0.1)
        many = torch.arange(-20000, 20000) / 200
        self.passes("round.decimals", aten.round.decimals, many, decimals=2)
        self.passes("histc", aten.histc.default, many, 400)
        tenths = torch.arange(-500, 500) / 8 + 0.005
        self.passes("round.decimals", aten.round.decimals, tenths, decimals=2)
        self.fails("FAIL", "round.decimals", lambda x, decimals: aten.round(x), tenths, decimals=2)

    def test_half_types_without_inputs(self) -> None:
        half = dict(dtype=torch.bfloat16)
        self.passes("arange.start_step", aten.arange.start_step, 0, 1, 0.1, **half)
        self.passes("linspace", aten.linspace.default, 0, 1, 50, **half)
        self.fails("rtol=0.01", "linspace", lambda *a, **k: aten.linspace(*a, **k) * 1.1, 0, 1, 50,
                   **half)


def stays(x: torch.Tensor, y: torch.Tensor, alpha: float = 1) -> torch.Tensor:
    return x + alpha * y


class Written(OnlineCheck):
    def both(self, name: str, kernel: Callable[..., Any], make: Callable[[], Tuple[Any, ...]],
             fault: str) -> None:
        """As a wrapped kernel, and registered in a block."""
        self.enable(log_once=False)
        lines = [self.verdict(name, kernel, *make())]
        before = len(self.lines())
        packet, _, overload = name.partition(".")
        with registered(**{name.replace(".", "__"): kernel}), plumb.precision_check():
            getattr(getattr(aten, packet), overload or "default")(*make())
        lines.append("".join(self.lines()[before:]))
        self.finish()
        for line in lines:
            self.assertIn(fault, line) if fault else self.assertEqual(line, "")

    def test_a_result_that_was_not_written(self) -> None:
        make = lambda: (torch.ones(3), torch.ones(3))
        self.both("add_.Tensor", stays, make, "| argument self | max_abs: 1.000000e+00")
        self.both("add_.Tensor", lambda x, y, alpha=1: x.copy_(x + y), make, "")
        self.both("add_.Tensor", lambda x, y, alpha=1: x.copy_(x + y).view_as(x), make, "")
        self.both("add_.Tensor", lambda x, y, alpha=1: x.copy_(x + y).clone(), make, "")
        self.both("erf_", lambda x: torch.special.erf(x), lambda: (torch.ones(3),), "argument self")

    def test_the_other_input_of_an_in_place_kernel(self) -> None:
        def spoils(x: torch.Tensor, y: torch.Tensor, alpha: float = 1) -> torch.Tensor:
            x.copy_(x + y)
            y.copy_(y * 0)
            return x
        pair = lambda: (torch.ones(3), torch.ones(3))
        self.both("add_.Tensor", spoils, pair, "input_changed: the kernel changed its input tensor 1")
        twice = torch.ones(3)
        self.both("mul_.Tensor", lambda x, y: x.copy_(x * y), lambda: (twice, twice), "")
        table = torch.ones(4, 3)
        self.both("mul_.Tensor", lambda x, y: x.copy_(x * y.clone()),
                  lambda: (table, table[:1]), "")

    def test_running_statistics(self) -> None:
        def args(training: bool = True) -> Tuple[Any, ...]:
            torch.manual_seed(1)
            return (torch.randn(4, 3, 2) + 5, torch.ones(3), torch.zeros(3), torch.zeros(3),
                    torch.ones(3), training, 0.1, 1e-5)

        def biased(x: torch.Tensor, w: Any, b: Any, mean: Any, var: Any, *rest: Any) -> Any:
            m, v = x.mean((0, 2)), x.var((0, 2), unbiased=False)
            if rest[0]:
                mean.mul_(0.9).add_(0.1 * m)
                var.mul_(0.9).add_(0.1 * v)
            y = (x - m[:, None]) / (v[:, None] + rest[2]).sqrt() * w[:, None] + b[:, None]
            return y, m, 1 / (v + rest[2]).sqrt()

        def kept(x: torch.Tensor, w: Any, b: Any, mean: Any, var: Any, *rest: Any) -> Any:
            return biased(x, w, b, mean.clone(), var.clone(), *rest)

        def changed(x: torch.Tensor, w: Any, b: Any, mean: Any, var: Any, *rest: Any) -> Any:
            y = (x - mean[:, None]) / (var[:, None] + rest[2]).sqrt() * w[:, None] + b[:, None]
            mean.add_(1)
            return y, x.new_empty(0), x.new_empty(0)
        name = "native_batch_norm"
        self.both(name, biased, args, "argument running_var")
        self.both(name, kept, args, "argument running_mean")
        self.both(name, changed, lambda: args(False), "argument running_mean")
        self.enable(log_once=False)
        x, w, _, mean, var = args()[:5]
        backward = x, x, w, mean, var, mean, var, False, 1e-5, [True] * 3

        def spoilt(*given: Any) -> Any:  # the gradient is only to read them
            result = aten.native_batch_norm_backward(*given)
            given[3].add_(1)
            return result
        self.assertIn("input_changed", self.verdict("native_batch_norm_backward", spoilt, *backward))
        self.assertEqual(self.verdict("native_batch_norm_backward",
                                      aten.native_batch_norm_backward.default, *backward), "")
        self.assertEqual(self.verdict(name, aten.native_batch_norm.default, *args()), "")
        with plumb.precision_check():  # PyTorch's own, in both modes
            aten.native_batch_norm(*args()), aten.native_batch_norm(*args(False))
            torch.nn.BatchNorm2d(3)(torch.randn(2, 3, 4, 4))
        row = self.finish()[name]
        self.assertEqual((row["Checked"], row["Failed"]), (4, 0))

    def test_running_statistics_that_are_only_read(self) -> None:
        """Operators with a momentum that change nothing: PyTorch's own is right, one that writes is not."""
        torch.manual_seed(1)
        x, stay = torch.randn(4, 3, 2) + 5, (0.1, 1e-5)
        rests = {"_native_batch_norm_legit_no_training": stay, "_batch_norm_no_update": stay,
                 "_batch_norm_with_update_functional": stay,
                 "_native_batch_norm_legit_functional": (True, *stay)}
        there = [name for name in rests if hasattr(aten, name)]
        if not there:
            self.skipTest("PyTorch 1.13 has none of these operators")
        for name in there:
            rest = rests[name]
            given = lambda: (x, torch.ones(3), torch.zeros(3), torch.zeros(3), torch.ones(3), *rest)
            native = getattr(aten, name).default

            def moves(*args: Any) -> Any:
                result = native(*args)
                args[3].add_(1)
                return result
            with self.subTest(name):
                self.enable(log_once=False)
                self.assertIn("the kernel changed its input tensor 3", self.verdict(name, moves, *given()))
                self.assertEqual(self.verdict(name, native, *given()), "")
                with plumb.precision_check():
                    native(*given())
                row = self.finish()[name]
                self.assertEqual(row["Failed"], 1)
                self.assertGreaterEqual(row["Checked"], 2)  # three where plumb has the operator

    def test_constants(self) -> None:
        x = torch.ones(2, 3)
        for name, kernel, args in (
                ("zeros_like", lambda x, **_: x + 0, (x,)),
                ("ones_like", lambda x, **_: x * 2, (x,)),
                ("full_like", lambda x, v, **_: x * (v + 1), (x, 3)),
                ("new_zeros", lambda x, size, **_: x + 0, (x, [2, 3])),
                ("new_ones", lambda x, size, **_: x * 2, (x, [2, 3])),
                ("new_full", lambda x, size, v, **_: x * 0, (x, [2, 3], 4)),
                ("fill.Scalar", lambda x, v: x, (x, 4)),
                ("fill_.Scalar", lambda x, v: x, (x, 4)),
                ("fill_.Tensor", lambda x, v: x + v, (x, torch.tensor(4.0))),
                ("zero_", lambda x: x, (x,))):
            with self.subTest(name):
                self.both(name, kernel, lambda: args, "FAIL")
        self.both("zeros_like", lambda x, **_: x.double() * 0, lambda: (x,), "dtype_mismatch")
        self.enable()
        with plumb.precision_check():
            torch.zeros_like(x), torch.ones_like(x, dtype=torch.int64), torch.full_like(x, 2.5)
            x.new_zeros(3), x.new_ones(2), x.new_full((2,), 1.5), x.fill_(2), x.zero_()
            torch.zeros_like(x.bool()), torch.zeros_like(x[:0])
        table = self.finish()
        self.assertEqual({name for name, row in table.items() if row["Failed"]}, set())
        self.assertLessEqual({"zeros_like", "ones_like", "full_like", "new_zeros", "fill_.Scalar"},
                             set(table))

    def test_devices_have_the_native_operator_as_reference(self) -> None:
        """Also where the kernel came through the registrar."""
        for reference, error in (("native", 0.0), ("float64", None)):
            self.enable(reference=reference)
            self.assertEqual(self.verdict("aten::erf", torch.special.erf, Far(torch.ones(3))), "")
            table = self.finish()
            self.assertEqual(table["erf"]["Checked"], 1)
            if error is None:
                self.assertGreater(table["erf"]["MaxAbsErr"], 0)
            else:
                self.assertEqual(table["erf"]["MaxAbsErr"], error)


    def test_devices_with_tensors_of_the_cpu_among_their_arguments(self) -> None:
        self.enable(log_once=False)
        keep = torch.ones(3)
        add = lambda x, y, alpha=1: Far(x.held.add_(y))
        self.assertEqual(self.verdict("aten::add_.Tensor", add, Far(torch.ones(3)), keep), "")
        into = lambda x, y, alpha=1: x.add_(y.held)
        self.assertEqual(self.verdict("aten::add_.Tensor", into, keep, Far(torch.ones(3))), "")
        self.assertEqual(keep.tolist(), [2, 2, 2])
        wrong = lambda x, y, alpha=1: x.add_(y.held + 1)
        self.assertIn("max_abs: 1.0", self.verdict("aten::add_.Tensor", wrong, keep,
                                                   Far(torch.ones(3))))
        fresh = lambda x, y, alpha=1: Far(x.held + y.held)
        self.assertIn("argument self", self.verdict("aten::add_.Tensor", fresh, Far(torch.ones(3)),
                                                    Far(torch.ones(3))))

    def test_devices_and_running_statistics(self) -> None:
        self.enable(log_once=False)
        names = [Far(torch.randn(4, 3)), Far(torch.ones(3)), Far(torch.ones(3)), Far(torch.zeros(3)),
                 Far(torch.ones(3)), True, 0.1, 1e-5]

        def native(*given: Any, keep: bool = False) -> Any:
            plain = [x.held if isinstance(x, Far) else x for x in given]
            if keep:
                plain[3], plain[4] = plain[3].clone(), plain[4].clone()
            return tuple(Far(y) for y in aten.native_batch_norm(*plain))
        self.assertEqual(self.verdict("native_batch_norm", native, *names), "")
        self.assertIn("argument running_mean", self.verdict(
            "native_batch_norm", lambda *given: native(*given, keep=True), *names))


class Replays(OnlineCheck):
    def failure(self, name: str, kernel: Callable[..., Any], *args: Any) -> Path:
        self.enable(save_failures=self.folder.name, log_once=False)
        self.assertNotEqual(self.verdict(name, kernel, *args), "")
        self.finish()
        (saved,) = Path(self.folder.name).glob(f"{name}.0")
        return saved

    def replayed(self, saved: Path) -> Tuple[int, str]:
        done = subprocess.run([BUILD / "plumb", "replay", saved], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.returncode, done.stdout + done.stderr

    def test_faults_that_are_no_numbers(self) -> None:
        def relu(x: torch.Tensor) -> torch.Tensor:
            return x.clamp_(min=0).clone()
        x = torch.tensor([-1.0, 2.0])
        for name, kernel, args, fault in (
                ("neg", lambda x: x.double() * -1, (x,), "dtype_mismatch"),
                ("relu", relu, (x.clone(),), "input_changed"),
                ("add_.Tensor", stays, (x.clone(), x.clone()), "argument self")):
            with self.subTest(name):
                saved = self.failure(name, kernel, *args)
                code, said = self.replayed(saved)
                self.assertEqual(code, 1, said)
                self.assertIn(fault, said)
                self.assertTrue(guard.replay(saved)["passed"])
                with registered(**{name.replace(".", "__"): kernel}):
                    verdict = guard.replay(saved)
                self.assertFalse(verdict["passed"])
                self.assertIn(verdict["error"], (fault, "not_close"))

    def test_what_is_derived(self) -> None:
        x = torch.randn(4, 3)
        u, s, v = aten._linalg_svd(x, False)
        bad = lambda *_: (u, s, v * 2)
        saved = self.failure("_linalg_svd", bad, x, False)
        code, said = self.replayed(saved)
        self.assertEqual(code, 1, said)
        self.assertIn("U S Vh", said)
        self.assertTrue(guard.replay(saved)["passed"])
        with registered(_linalg_svd=bad):
            self.assertFalse(guard.replay(saved)["passed"])


if __name__ == "__main__":
    unittest.main()
