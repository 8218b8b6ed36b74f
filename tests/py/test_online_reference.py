"""plumb.checked(fn, reference=...): right functions are not blamed, wrong ones are, and the program is left alone."""

import json
import math
import os
import random
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

BUILD = Path(os.environ["PLUMB_BUILD"])
sys.path.insert(0, str(BUILD / "python"))

import torch
import torch.nn.functional as F

import plumb
from test_online_check import OnlineCheck

NAN, INF = float("nan"), float("inf")
Tensor = torch.Tensor


# -- Formulas, and other ways to compute them ------------------------------------------------------


def rms(x: Tensor, w: Tensor, eps: float = 1e-6) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * w


def rms_in_float32(x: Tensor, w: Tensor) -> Tensor:
    return rms(x.float(), w.float()).to(x.dtype)


def rms_divided(x: Tensor, w: Tensor) -> Tensor:
    return x / torch.sqrt(x.pow(2).sum(-1, keepdim=True) / x.shape[-1] + 1e-6) * w


def attention(q: Tensor, k: Tensor, v: Tensor, first_hidden: int = 1, scale: float = 0.25) -> Tensor:
    s = (q @ k.transpose(-1, -2)) * scale
    hidden = torch.ones(s.shape[-2:], dtype=torch.bool).triu(first_hidden)
    return s.masked_fill(hidden, -INF).softmax(-1) @ v


def attention_by_blocks(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """As flash attention does it."""
    most = torch.full((*q.shape[:-1], 1), -INF)
    total, out = torch.zeros_like(most), torch.zeros(q.shape)
    row = torch.arange(q.shape[-2])[:, None]
    for at in range(0, k.shape[-2], 16):
        s = q.float() * 0.25 @ k[..., at:at + 16, :].float().transpose(-1, -2)
        s = s.masked_fill(torch.arange(at, at + 16)[None] > row, -1e30)
        now = torch.maximum(most, s.amax(-1, keepdim=True))
        p, less = torch.exp(s - now), torch.exp(most - now)
        total, out, most = total * less + p.sum(-1, keepdim=True), out * less + p @ v[..., at:at + 16, :].float(), now
    return (out / total).to(q.dtype)


def product(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


def product_backwards(a: Tensor, b: Tensor) -> Tensor:
    """Adds up from the end, in float32."""
    total = torch.zeros(a.shape[0], b.shape[1])
    for at in reversed(range(0, a.shape[1], 16)):
        total = total + a[:, at:at + 16].float() @ b[at:at + 16].float()
    return total.to(a.dtype)


def swiglu(x: Tensor, g: Tensor) -> Tensor:
    return F.silu(g) * x


class SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, g: Tensor) -> Tensor:
        ctx.save_for_backward(x, g)
        return g / (1 + torch.exp(-g)) * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, Tensor]:
        x, g = ctx.saved_tensors
        s = 1 / (1 + torch.exp(-g))
        return grad * (g * s), grad * x * s * (1 + g * (1 - s))


class WrongSwiGLU(SwiGLU):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, Tensor]:
        x, g = ctx.saved_tensors
        s = torch.sigmoid(g)
        return grad * (g * s), grad * x * s * (1 + g * s)


def layer_norm(x: Tensor, w: Tensor) -> Tensor:
    d = x - x.mean(-1, keepdim=True)
    return d / (d.square().mean(-1, keepdim=True) + 1e-5).sqrt() * w


def with_tile(x: Tensor, w: Tensor) -> Tensor:
    whole = torch.ones(x.shape, dtype=x.dtype)
    whole[4:8, 16:32] = 0
    return rms(x, w) * whole


def with_nan(x: Tensor, w: Tensor) -> Tensor:
    add = torch.zeros(x.shape, dtype=x.dtype)
    add[3, 5] = NAN
    return rms(x, w) + add


def lose_entropy(x: Tensor, t: Tensor) -> Tensor:
    return -x.log_softmax(-1).gather(1, t[:, None]).sum() / x.shape[0]


class Case(NamedTuple):
    name: str
    fn: Callable[..., Any]
    reference: Callable[..., Any]
    args: Tuple[Any, ...]


def inputs(dtype: torch.dtype, seed: int) -> Dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    made = lambda *shape: torch.randn(shape, generator=generator).to(dtype).requires_grad_()
    w = (1 + 0.1 * torch.randn(64, generator=generator)).to(dtype).requires_grad_()
    return {"x": made(32, 64), "g": made(32, 64), "w": w, "a": made(32, 96), "b": made(96, 24),
            "qkv": tuple(made(1, 2, 48, 16) for _ in range(3)),
            "t": torch.randint(0, 64, (32,), generator=generator)}


def right(dtype: torch.dtype, seed: int = 1) -> List[Case]:
    i = inputs(dtype, seed)
    x, w, a, b, qkv = i["x"], i["w"], i["a"], i["b"], i["qkv"]
    found = [
        Case("itself", rms, rms, (x, w)), Case("divided", rms_divided, rms, (x, w)),
        Case("fused", lambda x, w: F.normalize(x, dim=-1) * 8.0 * w, lambda x, w: rms(x, w, 0.0), (x, w)),
        Case("turned", lambda a, b: (b.T @ a.T).T, product, (a, b)),
        Case("autograd.Function", SwiGLU.apply, swiglu, (x, i["g"])),
        Case("layer norm", lambda x, w: F.layer_norm(x, (64,), w), layer_norm, (x, w)),
        Case("loss", lose_entropy, F.cross_entropy, (x, i["t"])),
        Case("logsumexp", lambda x: (x - x.detach().amax(1, keepdim=True)).exp().sum(1).log()
             + x.detach().amax(1), lambda x: torch.logsumexp(x, 1), (x,)),
        Case("reference of a wider type", rms, lambda x, w: rms(x.double(), w.double()), (x, w)),
    ]
    if dtype != torch.float64:
        found += [Case("float32 inside", rms_in_float32, rms, (x, w)),
                  Case("narrow beside float32", rms, rms_in_float32, (x, w)),
                  Case("other order", product_backwards, product, (a, b)),
                  Case("by blocks", attention_by_blocks, attention, qkv)]
    if hasattr(F, "scaled_dot_product_attention"):
        found.append(Case("sdpa", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
                          attention, qkv))
    return found


def wrong(dtype: torch.dtype, seed: int = 1) -> List[Case]:
    i = inputs(dtype, seed)
    x, w, a, b, qkv = i["x"], i["w"], i["a"], i["b"], i["qkv"]
    half = dtype in (torch.bfloat16, torch.float16)  # which do not show the thousandth part
    scale, eps = (1.02, 0.1) if half else (1.001, 1e-3)
    return [
        Case("scale", lambda x, w: rms(x, w) * scale, rms, (x, w)), Case("tile", with_tile, rms, (x, w)),
        Case("eps", lambda x, w: rms(x, w, eps), rms, (x, w)), Case("NaN", with_nan, rms, (x, w)),
        Case("gradient", WrongSwiGLU.apply, swiglu, (x, i["g"])),
        Case("no mask", lambda q, k, v: attention(q, k, v, 48), attention, qkv),
        Case("mask off by one", lambda q, k, v: attention(q, k, v, 2), attention, qkv),
        Case("scale of scores", lambda q, k, v: attention(q, k, v, 1, 0.27), attention, qkv),
        Case("last term", lambda a, b: a[:, :-1] @ b[:-1], product, (a, b)),
        Case("rows exchanged", lambda a, b: (a @ b)[torch.arange(32) ^ 1], product, (a, b)),
        Case("another gelu", lambda x: F.gelu(x * 1.05), F.gelu, (x,)),
        Case("lost gradient", lambda x, w: rms(x, w.detach()), rms, (x, w)),
        Case("mean over one more", lambda x, t: F.cross_entropy(x, t, reduction="sum") / 33, F.cross_entropy,
             (x, i["t"])),
        Case("shape", lambda x, w: rms(x, w)[:1], rms, (x, w)),
    ]


class Reference(OnlineCheck):
    def judged(self, fn: Any, reference: Any, *args: Any, name: str = "f", **options: Any) -> Optional[Dict[str, Any]]:
        """The line of the log about one call; None when there is none. The call must have been checked."""
        self.enable(log_format="jsonl", save_failures=False)
        self.log.write_text("")
        plumb.checked(fn, name, reference=reference, **options)(*args)
        row = self.finish().get(name)
        self.assertIsNotNone(row, self.said)
        self.assertEqual(row["Checked"], 1, self.said)
        self.assertNotIn("went wrong", self.said)
        lines = self.lines()
        self.assertEqual(len(lines), row["Failed"])
        return json.loads(lines[0]) if lines else None


class Verdicts(Reference):
    TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)

    def types(self) -> List[torch.dtype]:
        """Matrices of float16 are not multiplied on the CPU by every PyTorch."""
        try:
            torch.ones(2, 2).half() @ torch.ones(2, 2).half()
            return list(self.TYPES)
        except RuntimeError:
            return list(self.TYPES[:3])

    def test_right_functions_are_not_blamed(self) -> None:
        n = 0
        for dtype in self.types():
            for seed in (1, 2, 3):
                for case in right(dtype, seed):
                    with self.subTest(case.name, dtype=dtype, seed=seed):
                        self.assertIsNone(self.judged(case.fn, case.reference, *case.args))
                        n += 1
        self.assertGreater(n, 100)

    def test_wrong_functions_are(self) -> None:
        n = 0
        for dtype in self.types():
            for case in wrong(dtype):
                with self.subTest(case.name, dtype=dtype):
                    found = self.judged(case.fn, case.reference, *case.args)
                    self.assertIsNotNone(found)
                    if case.name != "shape":
                        self.assertEqual(found["verdict"], "fault")
                    n += 1
        self.assertGreater(n, 40)

    def test_what_is_wrong_is_named(self) -> None:
        i = inputs(torch.float32, 1)
        found = self.judged(WrongSwiGLU.apply, swiglu, i["x"], i["g"])
        self.assertEqual(found["judged"], "gradient of argument 1")
        found = self.judged(lambda x, w: rms(x, w) * 1.001, rms, i["x"], i["w"])
        self.assertEqual(found["judged"], "output")
        self.assertIn("everything is scaled by 1.001", found["why"])
        self.assertIn("zero", self.judged(with_tile, rms, i["x"], i["w"])["why"])
        self.assertIn("NaN where the reference has a number", self.judged(with_nan, rms, i["x"], i["w"])["why"])
        pair = self.judged(lambda x: {"a": x * 2, "b": [x * 3, x * 4.1]}, lambda x: {"a": x * 2, "b": [x * 3, x * 4]},
                           i["x"])
        self.assertEqual(pair["judged"], "output b.1")

    def test_a_narrower_type_than_anybody_has(self) -> None:
        x = torch.randn(8, 8, generator=torch.Generator().manual_seed(0))
        found = self.judged(lambda x: x.sin().bfloat16(), torch.sin, x)
        self.assertIn("a result of type bfloat16 instead of float32", found["why"])
        self.assertIsNone(self.judged(torch.sin, lambda x: x.float().sin(), x.bfloat16()))

    def test_whole_numbers_and_ties(self) -> None:
        x = torch.randn(64, 16, generator=torch.Generator().manual_seed(0))
        self.assertIsNone(self.judged(lambda x: (x * 3).argmax(-1), lambda x: x.argmax(-1), x))
        self.assertIsNotNone(self.judged(lambda x: x.argmin(-1), lambda x: x.argmax(-1), x))
        self.assertIsNotNone(self.judged(lambda x: x > 0.1, lambda x: x > 0, x))

    def test_a_missing_result(self) -> None:
        x = torch.randn(8, generator=torch.Generator().manual_seed(0))
        found = self.judged(lambda x: x * 2, lambda x: {"": x * 2, "more": x}, x)
        self.assertEqual(found["verdict"], "fault")

    def test_numbers_alone_decide_nothing(self) -> None:
        """The tolerances of the check are for operators whose noise nobody knows."""
        x = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
        near = lambda x: x * (1 + 2e-5)  # well within rtol
        self.assertEqual(self.judged(near, lambda x: x * 1.0, x)["verdict"], "fault")
        far = lambda x: (x * 1e4 + x) - x * 1e4  # cancels: far outside
        self.assertIsNone(self.judged(far, far, x))


class Writes(Reference):
    def setUp(self) -> None:
        super().setUp()
        self.x = torch.randn(16, 16, generator=torch.Generator().manual_seed(0))

    def test_functions_that_write_into_an_argument(self) -> None:
        self.assertIsNone(self.judged(lambda x: x.mul_(2).add_(1), lambda x: x.copy_(2 * x + 1), self.x.clone()))
        self.assertIsNone(self.judged(lambda x: (x.mul_(2), None)[1], lambda x: (x.add_(x.clone()), None)[1],
                                      self.x.clone()))
        found = self.judged(lambda x: (x.mul_(2.01), None)[1], lambda x: (x.mul_(2), None)[1], self.x.clone())
        self.assertEqual(found["judged"], "argument 0")
        kept = self.x.clone().requires_grad_()
        self.assertIsNone(self.judged(lambda x: x.mul_(2), lambda x: x.mul_(2), kept * 1.0))

    def test_one_that_should_not(self) -> None:
        found = self.judged(lambda x, y: (x + y, y.zero_())[0], torch.add, self.x, self.x.clone())
        self.assertEqual(found["error"], "input_changed")
        self.assertIn("argument 1", found["message"])

    def test_one_that_should_and_does_not(self) -> None:
        found = self.judged(lambda x: x * 2, lambda x: x.mul_(2), self.x.clone())
        self.assertEqual(found["verdict"], "fault")


class Programs(Reference):
    """What the program sees."""

    def test_a_decorator(self) -> None:
        @plumb.checked(reference=torch.sin)
        def my_sine(x: Tensor) -> Tensor:
            """Of x."""
            return torch.sin(x) * 1.01
        self.assertEqual((my_sine.__name__, my_sine.__doc__), ("my_sine", "Of x."))
        self.enable()
        my_sine(torch.ones(4))
        self.assertEqual(self.finish()["my_sine"]["Failed"], 1)
        self.assertIn("Op: my_sine | FAIL | in: [(4,):torch.float32] | out: (4,):torch.float32 | output |",
                      self.lines()[0])
        self.assertIn("in test_a_decorator", self.said)

    def test_names(self) -> None:
        self.enable(save_failures=False)
        for fn, name in ((SwiGLU.apply, None), (rms, "mine::rms_out"), (lambda x, w: rms(x, w), None)):
            plumb.checked(fn, name, reference=swiglu if fn is SwiGLU.apply else rms)(torch.ones(2, 4), torch.ones(2, 4))
        self.assertEqual(set(self.finish()), {"SwiGLU", "mine::rms_out", "<lambda>"})
        with self.assertRaises(TypeError):
            plumb.checked(rms)

    def test_without_a_check_it_is_the_function(self) -> None:
        asked = []
        f = plumb.checked(torch.sin, "f", reference=lambda x: asked.append(x))
        self.assertEqual(f(torch.zeros(2)).tolist(), [0, 0])
        self.assertEqual(asked, [])

    def test_results_are_the_same_objects_and_generators_stay(self) -> None:
        kept = torch.ones(3)
        self.enable()
        f = plumb.checked(lambda x: kept, "f", reference=lambda x: x + torch.ones(3) * 0)
        torch.manual_seed(3)
        random.seed(3)
        before = torch.get_rng_state(), random.getstate()
        self.assertIs(f(torch.ones(3)), kept)
        self.assertTrue(torch.equal(before[0], torch.get_rng_state()))
        self.assertEqual(before[1], random.getstate())

    def test_exceptions_are_the_functions_own(self) -> None:
        def refuses(x: Tensor) -> Tensor:
            raise KeyError("mine")
        self.enable()
        with self.assertRaisesRegex(KeyError, "mine"):
            plumb.checked(refuses, "f", reference=torch.sin)(torch.ones(2))
        plumb.checked(torch.sin, "g", reference=refuses)(torch.ones(2))
        self.finish()
        self.assertIn("it cannot be run in float64 (KeyError: 'mine'): g", self.said)

    def test_gradients_of_the_program_are_untouched(self) -> None:
        def step(fn: Callable[..., Tensor]) -> List[Tensor]:
            i = inputs(torch.float32, 5)
            fn(i["x"], i["g"]).square().sum().backward()
            return [i["x"].grad, i["g"].grad]
        plain = step(SwiGLU.apply)
        self.enable()
        for a, b in zip(plain, step(plumb.checked(SwiGLU.apply, "f", reference=swiglu))):
            self.assertTrue(torch.equal(a, b))
        with plumb.precision_check():
            for a, b in zip(plain, step(plumb.checked(SwiGLU.apply, "f", reference=swiglu))):
                self.assertTrue(torch.equal(a, b))
        table = self.finish()
        self.assertEqual((table["f"]["Checked"], table["f"]["Failed"]), (2, 0))
        self.assertIn("exp", table)

    def test_gradients_when_asked_for(self) -> None:
        x = torch.ones(4, requires_grad=True)
        self.assertIsNotNone(self.judged(WrongSwiGLU.apply, swiglu, x, x))
        self.assertIsNone(self.judged(WrongSwiGLU.apply, swiglu, x, x, gradients=False))
        with torch.no_grad():
            self.assertIsNone(self.judged(WrongSwiGLU.apply, swiglu, x, x))
        runs = []
        self.assertIsNone(self.judged(lambda x: (x * 2, runs.append(1))[0], lambda x: x * 2, x))
        self.assertEqual(len(runs), 2)

    def test_what_is_not_checked_is_named(self) -> None:
        self.enable(max_elements=100)
        x = torch.ones(4, requires_grad=True)
        said = {
            "drawn": (lambda x: x, lambda x: x + torch.rand(4), (x,), "it draws at random (rand): drawn"),
            "detached": (lambda x: x.detach() * 2, lambda x: x * 2, (x,), "gradients: its result has none: detached"),
            "none": (lambda x: x * 2, lambda x: x.detach() * 2, (x,), "gradients: the reference has none: none"),
            "empty": (lambda x: 1, lambda x: 1, (x,), "neither it nor the reference gives a tensor: empty"),
            "meta": (torch.sin, torch.sin, (torch.ones(2, device="meta"),),
                     "tensors of the meta device have no values: meta"),
        }
        for name, (fn, reference, args, _) in said.items():
            plumb.checked(fn, name, reference=reference)(*args)
        plumb.checked(torch.sin, "large", reference=torch.sin)(torch.ones(101))
        table = self.finish()
        for name, (_, _, _, text) in said.items():
            self.assertRegex(self.said, f"not checked, (no reference: )?{text}".replace("(rand)", r"\(rand\)"))
        self.assertEqual(set(table), {"detached", "none"})

    def test_references_for_float64_or_outside_pytorch(self) -> None:
        import numpy
        x = torch.randn(32, 8, generator=torch.Generator().manual_seed(0))

        def strict(x: Tensor) -> Tensor:
            if x.dtype != torch.float64:
                raise TypeError(x.dtype)
            return x.softmax(-1)
        self.assertIsNone(self.judged(lambda x: x.softmax(-1), strict, x))
        self.assertIsNotNone(self.judged(lambda x: x.softmax(-1) * 1.0001, strict, x))
        outside = lambda x: torch.from_numpy(numpy.tanh(x.numpy()))
        self.assertIsNone(self.judged(torch.tanh, outside, x))
        self.assertIsNotNone(self.judged(lambda x: torch.tanh(x * 1.001), outside, x))

    def test_few_calls_are_checked(self) -> None:
        runs = []
        self.enable(max_checks=3, save_failures=False)
        f = plumb.checked(torch.sin, "f", reference=lambda x: (runs.append(1), torch.sin(x))[1])
        for _ in range(20):
            f(torch.ones(4))
        row = self.finish()["f"]
        self.assertEqual((row["Calls"], row["Checked"]), (20, 3))
        self.assertEqual(len(runs), 3 * 10)

    def test_one_inside_another(self) -> None:
        inner = plumb.checked(lambda x: torch.sin(x) * 1.1, "inner", reference=torch.sin)
        outer = plumb.checked(lambda x: inner(x) + 1, "outer", reference=lambda x: torch.sin(x) + 1)
        self.enable(save_failures=False)
        outer(torch.ones(4))
        table = self.finish()
        self.assertEqual({name: (row["Calls"], row["Failed"]) for name, row in table.items()},
                         {"inner": (1, 1), "outer": (1, 1)})

    def test_saved_and_replayed(self) -> None:
        self.enable()
        plumb.checked(lambda x, k: torch.sin(x) * k, "my::sine", reference=lambda x, k: torch.sin(x))(
            torch.linspace(0, 1, 8), 1.01)
        self.finish()
        saved = self.log.with_suffix(".failures") / "my__sine.0"
        ended = subprocess.run([str(BUILD / "plumb"), "replay", str(saved)], capture_output=True, text=True)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn("FAIL", ended.stdout)


if __name__ == "__main__":
    unittest.main()
