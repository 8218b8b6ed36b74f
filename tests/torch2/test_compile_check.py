"""plumb.compile_check: healthy models are right, and a fault is traced to its stage, pass and node."""

import contextlib
import logging
import os
import sys
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, Iterator

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "py")]
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no pool of processes for graphs this small

import python_case  # noqa: E402,F401  (puts the package under test into the path)
from compile_case import Attention, Conv, Mlp, aten, made, relu_to_sigmoid, transformers_models  # noqa: E402

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch._inductor import config, decomposition, lowering  # noqa: E402

import plumb  # noqa: E402

logging.getLogger("plumb.inductor_check").setLevel(logging.CRITICAL)


class Right(unittest.TestCase):
    def healthy(self, model: nn.Module, x: Any, **options: Any) -> Any:
        report = plumb.compile_check(model, x, **options)
        self.assertTrue(report, report)
        self.assertIsNone(report.stage)
        self.assertNotIn(report.verdict, ("fault", "not judged"), report)
        self.assertGreater(report.graphs, 0)
        self.assertNotIn("not judged", report.results.words, report)
        return report

    def test_small_models(self) -> None:
        for kind in (Mlp, Conv, Attention):
            for dtype in (torch.float32, torch.bfloat16):
                for train in (True, False):
                    with self.subTest(kind=kind.__name__, dtype=dtype, train=train):
                        model, x = made(kind, dtype, train)
                        report = self.healthy(model, x)
                        kinds = {row.kind for row in report.results.rows}
                        self.assertIn("gradient of all outputs", kinds)
                        self.assertTrue(all(parameter.grad is None for parameter in model.parameters()))

    def test_transformers(self) -> None:
        for name, (model, asked) in transformers_models().items():
            for dtype in (torch.float32, torch.bfloat16):
                with self.subTest(name=name, dtype=dtype):
                    self.healthy(model.to(dtype), asked)

    def test_dropout(self) -> None:
        """The compiled model draws what the model itself draws."""
        model, _ = made(lambda: Mlp(0.4))
        report = self.healthy(model, torch.randn(32, 16))
        self.assertIn("NO FAULT", str(report))

    def test_functions_breaks_and_options(self) -> None:
        def broken(x: torch.Tensor, y: torch.Tensor) -> Dict[str, torch.Tensor]:
            z = torch.sin(x) @ y
            torch._dynamo.graph_break()
            return {"sum": z.sum(), "z": torch.nn.functional.silu(z)}
        report = self.healthy(broken, (torch.randn(5, 6, requires_grad=True), torch.randn(6, 3)))
        self.assertEqual(2, report.graphs)
        self.healthy(made(Mlp)[0], made(Mlp)[1], dynamic=True, fullgraph=True)
        self.healthy(made(Mlp)[0], made(Mlp)[1], mode="max-autotune-no-cudagraphs", backward=False)

    def test_a_model_that_is_compiled_already(self) -> None:
        model, x = made(Mlp)
        compiled = torch.compile(model)
        before = compiled(x)
        report = self.healthy(compiled, x)
        self.assertIn("compiled already", str(report))
        self.assertTrue(torch.equal(before, compiled(x)))

    def test_often(self) -> None:
        """More often than the compiler compiles one function: it must not run uncompiled in silence."""
        model, x = made(Mlp)
        for _ in range(10):
            self.assertEqual(1, plumb.compile_check(model, x, backward=False).graphs)


class Stages(unittest.TestCase):
    def fault(self, model: Any, x: Any, stage: str, node: str, **options: Any) -> Any:
        report = plumb.compile_check(model, x, **options)
        self.assertFalse(report, report)
        self.assertEqual((stage, "fault"), (report.stage, report.verdict), report)
        self.assertIn(node, str(report.node), report)
        for word in ("FAULT", stage, str(report.node)):
            self.assertIn(word, str(report))
        return report

    def test_passes(self) -> None:
        for slot, stage in (("pre_grad_custom_pass", "pre-grad pass"), ("joint_custom_post_pass", "joint pass"),
                            ("post_grad_custom_pre_pass", "post-grad pass")):
            with self.subTest(slot), config.patch({slot: relu_to_sigmoid}):
                report = self.fault(*made(Mlp), stage, "" if slot.startswith("pre") else "relu")
                self.assertEqual("relu_to_sigmoid", report.pass_name)
                self.assertIn("compile_case.py", report.source)

    def test_lowerings(self) -> None:
        root, mul = lowering.lowerings[aten.rsqrt.default], lowering.lowerings[aten.mul.Tensor]
        wrong: Dict[Any, Callable[..., Any]] = {aten.relu.default: lowering.lowerings[aten.tanh.default],
                                                aten.rsqrt.default: lambda x: mul(root(x), 1.01)}
        for target, function in wrong.items():
            with self.subTest(str(target)), patched(lowering.lowerings, target, function):
                report = self.fault(*made(Mlp), "code generation", target.__name__.split(".")[0])
                self.assertIn(str(target), report.target)

    def test_a_lowering_of_the_backward(self) -> None:
        """The comparison that relu has there, and only there."""
        class Where(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a = nn.Linear(8, 8)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.relu(self.a(x)).square()
        torch.manual_seed(0)
        model, x = Where(), torch.randn(6, 8)
        original = lowering.lowerings[aten.le.Scalar]
        with patched(lowering.lowerings, aten.le.Scalar, lambda a, b: original(a, b + 0.2)):
            report = self.fault(model, x, "code generation", "le")
        self.assertIn("backward", str(report))

    def test_a_decomposition(self) -> None:
        def silu(x: torch.Tensor) -> torch.Tensor:
            return x * torch.sigmoid(x) * 1.0005
        table = decomposition.decompositions
        with patched(table, aten.silu.default, silu):
            decomposition.fast_random_decomps.cache_clear()
            try:
                model = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 8))
                report = self.fault(model, torch.randn(8, 16), "decompositions", "silu")
            finally:
                decomposition.fast_random_decomps.cache_clear()
        self.assertIn("1.0005", report.why)

    def test_dynamo(self) -> None:
        """A function that does something else while it is traced."""
        class Traced(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a, self.b = nn.Linear(16, 16), nn.Linear(16, 4)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                x = self.a(x)
                x = F.gelu(x, approximate="tanh") * 1.1 if torch.compiler.is_compiling() else F.gelu(x)
                return self.b(x)
        torch.manual_seed(0)
        report = self.fault(Traced(), torch.randn(8, 16), "dynamo", "")
        self.assertIsNotNone(report.node)
        self.assertIn("gelu", report.target)

    def test_aot(self) -> None:
        """An operator whose backward is another one while it is traced."""
        @torch.library.custom_op("plumb_test::tripled", mutates_args=())
        def tripled(x: torch.Tensor) -> torch.Tensor:
            return x * 3
        tripled.register_fake(torch.empty_like)
        tripled.register_autograd(lambda ctx, grad: grad * (3.0 if type(grad) is torch.Tensor else 2.0))

        class Model(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a = nn.Linear(5, 7)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return tripled(self.a(x)).sin()
        torch.manual_seed(0)
        report = self.fault(Model(), torch.randn(4, 5), "aot", "mul")
        self.assertIn("backward", str(report))

    def test_cheaper_arithmetic_is_no_fault(self) -> None:
        """A model in bfloat16 whose compiled code keeps intermediates in float32 is right."""
        class Chain(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                for _ in range(6):
                    x = torch.sin(x) * 1.5 + 0.25
                return x
        self.assertTrue(plumb.compile_check(Chain(), torch.randn(64, 64).bfloat16()))


class Refused(unittest.TestCase):
    def test_a_model_that_raises(self) -> None:
        report = plumb.compile_check(nn.Linear(3, 4), torch.randn(2, 5))
        self.assertFalse(report)
        self.assertIn("could not be run", str(report))

    def test_what_cannot_be_compiled(self) -> None:
        def broken(x: torch.Tensor) -> torch.Tensor:
            torch._dynamo.graph_break()
            return x + 1
        report = plumb.compile_check(broken, torch.ones(2), fullgraph=True)
        self.assertFalse(report)
        self.assertIn("could not be run", str(report))

    def test_switched_off(self) -> None:
        with torch.compiler.set_stance("force_eager"):
            report = plumb.compile_check(nn.Linear(3, 4), torch.randn(2, 3))
        self.assertFalse(report)
        self.assertIn("nothing was compiled", str(report))

    def test_options(self) -> None:
        with self.assertRaises(ValueError):
            plumb.compile_check(nn.Linear(3, 4), torch.randn(2, 3), mode="default", options={"dce": True})


@contextlib.contextmanager
def patched(table: Dict[Any, Any], key: Any, value: Any) -> Iterator[None]:
    before = table.get(key)
    table[key] = value
    try:
        yield
    finally:
        if before is None:
            del table[key]
        else:
            table[key] = before


if __name__ == "__main__":
    unittest.main()
