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
from compile_case import (Attention, Complex, Conv, Mlp, aten, made, normed, relu_to_sigmoid,  # noqa: E402
                          transformers_models)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch._inductor import config, decomposition, lowering  # noqa: E402

import plumb  # noqa: E402

# Before 2.14 (2.6 was looked at) inductor itself cannot compile the gradients of cond with such branches.
OLD = tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 14)

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

    def test_gradients_that_are_zero(self) -> None:
        """Of a bias in front of a normalisation: nothing but rounding, of sums that compiled code makes one term after
        the other. Some seeds show more of it."""
        for seed, size in ((1, 9), (5, 9), (8, 9), (0, 28)):
            with self.subTest(seed=seed, size=size):
                torch.manual_seed(seed)
                self.healthy(normed(2 if size > 9 else 1), torch.randn(4 if size == 9 else 8, 3, size, size))

    def test_complex_parameters(self) -> None:
        torch.manual_seed(1)
        report = self.healthy(Complex(), torch.randn(4, 8))
        self.assertIn("gradient of all outputs", {row.kind for row in report.results.rows})

    def test_empty_results(self) -> None:
        report = self.healthy(lambda x: (x * 2, x.sum()), torch.zeros(0, 8))
        self.assertEqual({"same": 3}, report.results.words)
        self.healthy(lambda x: x * 2, torch.zeros(0, 8))

    def test_branches(self) -> None:
        """torch.cond, with the parameters of both branches, and without any gradient."""
        class Branches(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.cond(x.sum() > 0, lambda x: self.a(x).relu(), lambda x: self.b(x).tanh(), (x,)).square()
        torch.manual_seed(0)
        x = torch.randn(4, 8)
        if OLD:
            report = plumb.compile_check(Branches(), x)
            self.assertIn("NOT CHECKED", str(report))
            self.assertFalse(report)
            for given in (x, -x):
                self.assertTrue(plumb.compile_check(Branches(), given, backward=False))
            return
        for given in (x, -x):
            report = self.healthy(Branches(), given)
            self.assertIn("gradient of all outputs", {row.kind for row in report.results.rows})
        self.healthy(lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)), x.clone().requires_grad_())

    def test_flex_attention(self) -> None:
        """What inductor cannot compile here is its own affair, and the model itself can be run."""
        from torch.nn.attention.flex_attention import flex_attention

        def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + 0.1 * (j - i))
        torch.manual_seed(0)
        given = [torch.randn(1, 2, 32, 16) for _ in range(3)]
        report = plumb.compile_check(attend, tuple(given), backward=False)
        try:
            torch.compile(attend)(*given)
        except Exception:
            self.assertIn("the module compiled could not be run", str(report.error))
        else:
            self.assertTrue(report, report)
        self.assertNotIn("uncompiled", str(report.error))

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

    def test_a_decomposition_of_the_backward(self) -> None:
        """Not the one before it whose results have names."""
        def gelu_backward(grad: torch.Tensor, x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
            return grad * (0.5 * (1 + torch.erf(x * 0.7071067811865476)) + x * torch.exp(-0.5 * x * x) * 0.4)
        with patched(decomposition.decompositions, aten.gelu_backward.default, gelu_backward):
            decomposition.fast_random_decomps.cache_clear()
            try:
                torch.manual_seed(1)
                model = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 8))
                self.fault(model, torch.randn(8, 16), "decompositions", "gelu_backward")
            finally:
                decomposition.fast_random_decomps.cache_clear()

    def test_a_scale_in_sixteen_bits(self) -> None:
        """1 % is below the rounding of each element, and above that of all of them together."""
        def scaled(graph: Any) -> None:
            node = next((one for one in graph.nodes if one.target is aten.mul.Tensor and
                         isinstance(one.args[1], float)), None)
            if node is not None:
                node.args = (node.args[0], node.args[1] * 1.01)
        for dtype in (torch.bfloat16, torch.float16):
            torch.manual_seed(0)
            model = nn.Sequential(nn.Linear(64, 256), nn.LayerNorm(256), nn.GELU(), nn.Linear(256, 64)).to(dtype)
            x = torch.randn(128, 64).to(dtype)
            with self.subTest(dtype), config.patch(post_grad_custom_pre_pass=scaled):
                report = self.fault(model, x, "post-grad pass", "mul", backward=False)
                self.assertEqual("scaled", report.pass_name)
            self.assertTrue(plumb.compile_check(model, x, backward=False))

    def test_a_gradient_that_is_zero(self) -> None:
        """A mean that is hardly wrong shows where rounding alone is right."""
        def mean_off(graph: Any) -> None:
            node = next((one for one in graph.nodes if one.target is aten.mul.Tensor and
                         isinstance(one.args[1], float) and abs(one.args[1] - 1 / 196) < 1e-6), None)
            if node is not None:
                node.args = (node.args[0], node.args[1] * 1.0001)
        torch.manual_seed(0)
        with config.patch(post_grad_custom_pre_pass=mean_off):
            report = self.fault(normed(1), torch.randn(4, 3, 9, 9), "post-grad pass", "mul")
        self.assertEqual("mean_off", report.pass_name)
        self.assertNotIn("_compile", report.source)  # of a Sequential there is no line of a script

    def test_a_complex_gradient(self) -> None:
        def halved(graph: Any) -> None:
            for node in [one for one in graph.nodes if one.op == "call_method" and one.target == "abs"]:
                with graph.inserting_before(node):
                    value = node.args[0]
                    parts = [graph.call_function(torch.mul, (one, 0.5))
                             for one in (value, graph.call_method("detach", (value,)))]
                    node.args = (graph.call_function(torch.add, tuple(parts)),)
        torch.manual_seed(1)
        with config.patch(pre_grad_custom_pass=halved):
            report = self.fault(Complex(), torch.randn(4, 8), "pre-grad pass", "detach")
        self.assertEqual("halved", report.pass_name)
        self.assertIn("scaled by 0.5", report.why)

    def test_a_pass_that_rounds(self) -> None:
        """Of a float64 model to float32: cheaper arithmetic for the pass, too cheap for the model."""
        def rounded(graph: Any) -> None:
            for node in [one for one in graph.nodes if one.target is aten.tanh.default]:
                convert = torch.ops.prims.convert_element_type.default
                with graph.inserting_after(node):
                    narrow = graph.call_function(convert, (node, torch.float32))
                with graph.inserting_after(narrow):
                    wide = graph.call_function(convert, (narrow, torch.float64))
                node.replace_all_uses_with(wide)
                narrow.args = (node, torch.float32)
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 8)).double()
        with config.patch(post_grad_custom_pre_pass=rounded):
            report = self.fault(model, torch.randn(8, 16).double(), "post-grad pass", "convert_element_type")
        self.assertEqual("rounded", report.pass_name)
        self.assertIn("rounded to float32", report.why)

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
    def test_a_pass_that_makes_a_wrong_graph(self) -> None:
        """The reason is said, not only that there is one."""
        def nonsense(graph: Any) -> None:
            for node in graph.nodes:
                if node.target is aten.relu.default:
                    raise ValueError("no relu for me")
        with config.patch(post_grad_custom_pre_pass=nonsense):
            report = plumb.compile_check(*made(Mlp))
        self.assertFalse(report)
        self.assertIn("no relu for me", str(report.error))
        self.assertNotIn("plumb", str(report.error))

    def test_gradients_that_are_not_judged(self) -> None:
        """A function whose backward takes nothing but float32: counted, with the reason."""
        class Narrow(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                return x * 2

            @staticmethod
            def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
                if grad.dtype is not torch.float32:
                    raise TypeError("only float32 here")
                return grad * 2
        report = plumb.compile_check(lambda x: Narrow.apply(x).sin(), torch.randn(4, 4, requires_grad=True))
        self.assertEqual(1, report.results.words.get("not judged"), report)
        self.assertIn("1 not judged", report.summary())
        self.assertIn("only float32 here", report.summary())

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
