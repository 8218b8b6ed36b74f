"""plumb.judge: a part of the planted suite, and properties that every verdict has."""

import importlib.util
import math
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
import python_case  # noqa: E402,F401  (puts the package under test into the path)

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import torch  # noqa: E402

import plumb  # noqa: E402

SUITE = Path(__file__).resolve().parents[1] / "verdicts"


def suite() -> Any:
    sys.path.insert(0, str(SUITE))
    spec = importlib.util.spec_from_file_location("verdict_suite", SUITE / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def normal(*shape: int, seed: int = 1, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


class Planted(unittest.TestCase):
    """No fault is missed but for what nobody can tell, no right result blamed."""

    def check(self, dtype: str, ops: List[str]) -> None:
        module = suite()
        seen = {"right": 0, "fault": 0, "cheaper": 0}
        wrong = []
        for item in module.items((dtype,), (1,), tuple(ops)):
            if "PyTorch" in item.where or item.kind == "none":
                continue  # its own kernels differ from release to release
            opinion = plumb.judge(item.got, item.case.op, item.case.inputs, item.case.kwargs)
            seen[item.kind] += 1
            bad = (opinion.verdict not in ("same", "rounding") if item.kind == "right" else
                   opinion.verdict != "fault" if item.kind == "fault" else
                   opinion.verdict not in ("cheaper arithmetic", "fault"))
            if bad and not item.hidden:
                wrong.append(f"{item.kind}: {item.where}: {opinion}")
        self.assertEqual(wrong, [])
        self.assertGreater(seen["right"], 10)
        self.assertGreater(seen["fault"], 80)

    def test_bfloat16(self) -> None:
        self.check("bfloat16", ["mm", "softmax", "silu"])

    def test_float32(self) -> None:
        self.check("float32", ["mm", "layer_norm", "add"])

    def test_float16(self) -> None:
        self.check("float16", ["linear", "exp", "mean"])

    def test_side_by_side(self) -> None:
        """The whole script, with the other rules beside plumb's."""
        script = Path(__file__).resolve().parents[1] / "verdicts" / "run.py"
        build = Path(plumb.__file__).resolve().parents[1]
        done = subprocess.run([sys.executable, str(script), "--fast", "--type", "float32", "--op", "mm", "--pass",
                               "forward"], env={**os.environ, "PYTHONPATH": str(build)}, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for rule in ("assert_close", "NMSE 5e-4", "cosine 0.99", "documented rules"):
            self.assertRegex(done.stdout, rf"(?m)^{rule}: blames \d+ right results, misses \d+ faults$")


Call = Tuple[str, Tuple[Any, ...], Dict[str, Any], Callable[..., torch.Tensor]]


def calls(dtype: torch.dtype) -> List[Call]:
    """Operators of each class, on a batch of rows."""
    x = normal(64, 96, dtype=dtype)
    return [
        ("mm", (x, normal(96, 48, seed=2, dtype=dtype)), {}, torch.mm),
        ("linear", (x, normal(40, 96, seed=3, dtype=dtype), normal(40, seed=4, dtype=dtype)), {},
         torch.nn.functional.linear),
        ("softmax", (3 * x,), {"dim": -1}, torch.softmax),
        ("sum", (x,), {"dim": -1}, torch.sum),
        ("gelu", (x,), {}, torch.nn.functional.gelu),
        ("mul", (x, normal(64, 96, seed=5, dtype=dtype)), {}, torch.mul),
    ]


def right(call: Call, dtype: torch.dtype) -> torch.Tensor:
    """Computed in float32 and rounded once."""
    _, inputs, kwargs, run = call
    return run(*(x.float() for x in inputs), **kwargs).to(dtype)


def wrong(got: torch.Tensor) -> Dict[str, torch.Tensor]:
    row = got.clone()
    row[3] *= 1.1
    return {"scaled": (got.double() * 1.01).to(got.dtype), "a row": row, "negated": -got}


class Properties(unittest.TestCase):
    """What must not matter to a verdict, in two types."""

    TYPES = (torch.float32, torch.bfloat16)

    def verdict(self, got: torch.Tensor, call: Call, inputs: Any = None) -> str:
        return plumb.judge(got, call[0], call[1] if inputs is None else inputs, call[2]).verdict

    def test_powers_of_two(self) -> None:
        for dtype in self.TYPES:
            for call in calls(dtype):
                if call[0] in ("softmax", "gelu"):
                    continue  # they do not grow with their input
                got = right(call, dtype)
                for name, result in {"right": got, **wrong(got)}.items():
                    for factor in (2.0 ** -12, 2.0 ** 9):
                        first, *rest = call[1]
                        if call[0] == "linear":
                            rest[1] = rest[1] * factor
                        with self.subTest(op=call[0], dtype=dtype, result=name, factor=factor):
                            self.assertEqual(self.verdict(result, call), self.verdict(
                                result * factor, call, (first * factor, *rest)))

    def test_order_of_the_batch(self) -> None:
        order = torch.randperm(64, generator=torch.Generator().manual_seed(5))
        for dtype in self.TYPES:
            for call in calls(dtype):
                got = right(call, dtype)
                for name, result in {"right": got, **wrong(got)}.items():
                    moved = tuple(x[order] if x.shape[0] == 64 else x for x in call[1])
                    with self.subTest(op=call[0], dtype=dtype, result=name):
                        self.assertEqual(self.verdict(result, call),
                                         self.verdict(result[order], call, moved))

    def test_size_of_noise(self) -> None:
        """Noise of the size of float32's is rounding, a thousand times that is not."""
        for call in calls(torch.float32):
            inputs, kwargs, run = call[1:]
            exact = run(*(x.double() for x in inputs), **kwargs)
            sigma = exact.abs() * 2.0 ** -24  # at least this has every operator here
            noise = sigma * normal(*exact.shape, seed=9).double()
            with self.subTest(op=call[0]):
                self.assertIn(self.verdict((exact + noise).float(), call), ("same", "rounding"))
                self.assertIn(self.verdict((exact + 1000 * 10 * noise).float(), call),
                              ("cheaper arithmetic", "fault"))

    def test_threads(self) -> None:
        """In a process of its own each, since libraries choose their threads once."""
        program = ("import torch, plumb; g = torch.Generator().manual_seed(1); "
                   "a, b = torch.randn(96, 300, generator=g), torch.randn(300, 80, generator=g); "
                   "y = (a.double() @ b.double()).float() * (1 + 2.0 ** -22); "
                   "print(plumb.judge(y, 'mm', (a, b)).as_dict())")
        said = []
        for threads in ("1", "3"):
            environment = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads,
                           "BLIS_NUM_THREADS": threads, "PYTHONPATH": os.pathsep.join(sys.path)}
            done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                                  check=True, env=environment)
            said.append(done.stdout)
        self.assertIn("verdict", said[0])
        self.assertEqual(*said)


class Explanations(unittest.TestCase):
    """What cheaper arithmetic explains, and what only looks like it."""

    def judge(self, got: torch.Tensor, op: str, *inputs: Any, **kwargs: Any) -> Any:
        return plumb.judge(got, op, inputs, kwargs)

    def test_sums_of_few_bits(self) -> None:
        """One after the other, with a sign: sums of positive numbers stagnate."""
        a, b = (normal(*shape, seed=seed).abs().bfloat16() for shape, seed in (((24, 200), 1),
                                                                               ((200, 30), 2)))
        got = torch.zeros(24, 30, dtype=torch.bfloat16)
        for k in range(200):
            got = got + a[:, k:k + 1] * b[k:k + 1]
        opinion = self.judge(got, "mm", a, b)
        self.assertEqual((opinion.verdict, opinion.arithmetic),
                         ("cheaper arithmetic", "a sum kept in 8 bits (bfloat16)"))
        self.assertEqual(self.judge(got * 1.05, "mm", a, b).verdict, "fault")

    def test_a_missing_bias_is_no_sum_of_few_bits(self) -> None:
        c, a, b = (normal(*shape, seed=seed, dtype=torch.bfloat16) for shape, seed in
                   (((40, 30), 1), ((40, 120), 2), ((120, 30), 3)))
        got = (a.float() @ b.float()).bfloat16()
        self.assertEqual(self.judge(got, "addmm", c, a, b).verdict, "fault")

    def test_saved_results(self) -> None:
        """A backward that starts from a rounded output, with a rounded sum."""
        x, g = normal(32, 100, dtype=torch.bfloat16) * 3, normal(32, 100, seed=2, dtype=torch.bfloat16)
        y = torch.softmax(x.float(), -1).bfloat16().float()
        total = (g.float() * y).sum(-1, keepdim=True).bfloat16().float()
        for factor, word in ((1.0, "cheaper arithmetic"), (1.02, "fault")):
            got = ((g.float() - total) * y * factor).bfloat16()
            opinion = plumb.judge(None, "softmax", (x,), {"dim": -1}, grad_outputs=g, got_grads=[got])
            self.assertEqual(opinion.verdict, word)

    def test_a_single_number(self) -> None:
        a, b = normal(13, 7), normal(13, 7, seed=2)
        loss = torch.nn.functional.mse_loss(a, b)
        self.assertIn(self.judge(loss, "mse_loss", a, b).verdict, ("same", "rounding"))
        for factor in (1.01, 0.999, 1.0005, 91 / 90):
            self.assertEqual(self.judge(loss * factor, "mse_loss", a, b).verdict, "fault")

    def test_masked_rows(self) -> None:
        x, mask = normal(30, 70), normal(30, 70, seed=2) < -0.5
        mask[:, 0] = False
        hidden = x.masked_fill(mask, -math.inf)
        self.assertIn(self.judge(torch.softmax(hidden, -1), "softmax", hidden, dim=-1).verdict,
                      ("same", "rounding"))
        shifted = torch.softmax(x.masked_fill(mask.roll(1, -1), -math.inf), -1)
        self.assertEqual(self.judge(shifted, "softmax", hidden, dim=-1).verdict, "fault")

    def test_a_mean_of_all_but_the_last(self) -> None:
        x, n = normal(96, 320) + 0.5, [320]
        part = x[:, :-2]
        far = x - part.mean(-1, keepdim=True)
        got = far * torch.rsqrt(part.var(-1, unbiased=False, keepdim=True) + 1e-5)
        self.assertEqual(self.judge(got, "layer_norm", x, n).verdict, "fault")

    def test_another_formula(self) -> None:
        for dtype in (torch.float32, torch.bfloat16):
            x = normal(60, 200, dtype=dtype) * 2
            got = torch.nn.functional.gelu(x.float(), approximate="tanh").to(dtype)
            self.assertEqual(self.judge(got, "gelu", x).verdict, "fault")

    def test_rows_that_err_together_are_not_truncated(self) -> None:
        for seed in range(1, 6):
            x = normal(9, 1031, seed=seed) * 4
            self.assertIn(self.judge(torch.log_softmax(x, -1), "log_softmax", x, dim=-1).verdict,
                          ("same", "rounding"))

    def test_a_slope_that_cancels(self) -> None:
        x, g = normal(40, 50) * 3, normal(40, 50, seed=2)
        got = g * (torch.expm1(x) + 1)  # as everybody computes it
        opinion = plumb.judge(None, "expm1", (x,), grad_outputs=g, got_grads=[got])
        self.assertIn(opinion.verdict, ("same", "rounding"))


class Verdicts(unittest.TestCase):
    def setUp(self) -> None:
        self.a, self.b = normal(64, 96), normal(96, 48, seed=2)
        self.right = torch.mm(self.a, self.b)

    def judge(self, got: Any, **how: Any) -> Any:
        return plumb.judge(got, "mm", (self.a, self.b), **how)

    def test_same(self) -> None:
        exact = torch.mm(self.a.double(), self.b.double()).float()
        self.assertEqual(self.judge(exact).verdict, "same")

    def test_noise_of_one_sigma_is_rounding_of_a_thousand_is_not(self) -> None:
        opinion = self.judge(self.right)
        self.assertIn(opinion.verdict, ("same", "rounding"))
        noise = normal(64, 48, seed=3) * self.right.abs().mean() * 2.0 ** -24
        self.assertEqual(self.judge(self.right + noise).verdict, "rounding")
        coarse = self.judge(self.right + 30000 * noise)
        self.assertIn(coarse.verdict, ("cheaper arithmetic", "fault"))

    def test_powers_of_two_change_nothing(self) -> None:
        for got in (self.right, self.right * 1.001):
            first = self.judge(got)
            other = plumb.judge(got * 1024, "mm", (self.a * 1024, self.b))
            self.assertEqual((first.verdict, first.differing), (other.verdict, other.differing))
            self.assertAlmostEqual(first.worst, other.worst, delta=0.01 * first.worst)

    def test_the_order_of_rows_changes_nothing(self) -> None:
        order = torch.randperm(64, generator=torch.Generator().manual_seed(5))
        for got in (self.right, self.right * 1.001):
            self.assertEqual(self.judge(got).verdict,
                             plumb.judge(got[order], "mm", (self.a[order], self.b)).verdict)

    def test_repeats(self) -> None:
        first, second = self.judge(self.right), self.judge(self.right)
        self.assertEqual(first.as_dict(), second.as_dict())

    def test_tf32(self) -> None:
        def short(x: torch.Tensor) -> torch.Tensor:
            bits = x.view(torch.int32)
            return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
        got = torch.mm(short(self.a), short(self.b))
        opinion = self.judge(got)
        self.assertEqual(opinion.verdict, "cheaper arithmetic")
        self.assertIn("TF32", opinion.arithmetic)
        self.assertFalse(opinion.allowed)
        self.assertTrue(self.judge(got, arithmetic="tf32").allowed)
        self.assertEqual(self.judge(got * 1.001).verdict, "fault")

    def test_patterns(self) -> None:
        def changed(change: Any) -> torch.Tensor:
            got = self.right.clone()
            change(got)
            return got
        cases = [
            (self.right * 1.01, "scaled by 1.01"),
            (-self.right, "sign"),
            (torch.roll(self.right, 1, -1), "rolled by 1"),
            (self.right.t().reshape(64, 48), "transposed"),
            (changed(lambda x: x[8:16, 16:32].zero_()), "rows 8 to 15, columns 16 to 31 are zero"),
            (changed(lambda x: x[7].mul_(1.5)), "row 7 are scaled by 1.5"),
            (changed(lambda x: x[3, 4].fill_(float("nan"))), "NaN"),
        ]
        for got, words in cases:
            with self.subTest(words):
                opinion = self.judge(got)
                self.assertEqual(opinion.verdict, "fault")
                self.assertIn(words, opinion.pattern)

    def test_exact_operators_have_no_noise(self) -> None:
        got = self.a.t().contiguous()
        self.assertEqual(plumb.judge(got, "transpose", (self.a, 0, 1)).verdict, "same")
        got[3, 3] += 2.0 ** -20
        self.assertEqual(plumb.judge(got, "transpose", (self.a, 0, 1)).verdict, "fault")

    def test_gradients(self) -> None:
        a, b = self.a.clone().requires_grad_(), self.b.clone().requires_grad_()
        g = normal(64, 48, seed=7)
        torch.mm(a, b).backward(g)
        opinion = plumb.judge(None, "mm", (self.a, self.b), grad_outputs=g, got_grads=(a.grad, b.grad))
        self.assertEqual([part.name for part in opinion.parts], ["gradient 0", "gradient 1"])
        self.assertTrue(opinion)
        wrong = plumb.judge(None, "mm", (self.a, self.b), grad_outputs=g,
                            got_grads=(a.grad, b.grad * 1.001))
        self.assertEqual([part.verdict == "fault" for part in wrong.parts], [False, True])

    def test_what_cannot_be_judged_is_said(self) -> None:
        opinion = plumb.judge(torch.rand(4), "rand", ([4],))
        self.assertEqual(opinion.verdict, "not judged")
        nothing = torch.full((4,), float("nan"))
        self.assertEqual(plumb.judge(nothing, "exp", (nothing,)).verdict, "not judged")
        part = plumb.judge(torch.sort(self.a)[0], "sort", (self.a,))
        self.assertEqual([one.verdict for one in part.parts], ["same", "not judged"])
        self.assertIn("1 of 2 results are not judged", part.why)
        with self.assertRaises(plumb.Error):
            plumb.judge(self.right, "no_such_operator", (self.a,))
        with self.assertRaisesRegex(plumb.Error, "no arithmetic"):
            self.judge(self.right, arithmetic="tf33")
        self.assertEqual(self.judge(self.right[:3]).pattern, "another shape")


if __name__ == "__main__":
    unittest.main()
