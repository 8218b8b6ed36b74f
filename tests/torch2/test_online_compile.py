"""The online check beside torch.compile: nothing left behind, no graph broken, no number changed, and what was
compiled judged at its boundary."""

import copy
import json
import sys
import threading
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))

import python_case  # noqa: E402,F401  (puts the package under test into the path)
import torch  # noqa: E402
import torch._dynamo  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils import _python_dispatch  # noqa: E402

import plumb  # noqa: E402
from test_online_check import OnlineCheck  # noqa: E402

aten = torch.ops.aten


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 32)
        self.batch = nn.BatchNorm1d(32)
        self.norm = nn.LayerNorm(32)
        self.last = nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.norm(F.gelu(self.batch(self.first(x)))))


def flags() -> Dict[str, Any]:
    """Of dispatch modes, as PyTorch keeps them for the whole process."""
    return {name: value for name, value in vars(_python_dispatch).items()
            if name.startswith("_is_in_") and isinstance(value, bool)}


def graphs() -> int:
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def step(model: nn.Module, run: Callable[..., Any], x: torch.Tensor) -> List[torch.Tensor]:
    model.zero_grad()
    result = run(x)
    result.square().mean().backward()
    return [result.detach(), *(p.grad.clone() for p in model.parameters()), *(b.clone() for b in model.buffers())]


def backend(forward: Optional[Callable[..., None]] = None, backward: Optional[Callable[..., None]] = None) -> Any:
    """A compiler that runs the graphs as they are, or as somebody changed them."""
    from torch._dynamo.backends.common import aot_autograd
    from functorch.compile import make_boxed_func

    def compiler(change: Optional[Callable[..., None]]) -> Callable[..., Any]:
        def compiled(module: torch.fx.GraphModule, inputs: Any) -> Any:
            if change is not None:
                change(module)
                module.recompile()
            return make_boxed_func(module.forward)
        return compiled
    return aot_autograd(fw_compiler=compiler(forward), bw_compiler=compiler(backward))


def scaled(target: Any, factor: float, which: int = 0) -> Callable[..., None]:
    def change(module: torch.fx.GraphModule) -> None:
        node = [node for node in module.graph.nodes if node.target is target][which]
        with module.graph.inserting_after(node):
            wrong = module.graph.call_function(aten.mul.Tensor, (node, factor))
        node.replace_all_uses_with(wrong)
        wrong.args = (node, factor)
    return change


class Compiled(OnlineCheck):
    def setUp(self) -> None:
        super().setUp()
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        torch.manual_seed(0)
        self.model, self.x = Model(), torch.randn(8, 16)

    def watch(self, run: Callable[[], Any], times: int = 2, **settings: Any) -> Dict[str, Dict[str, Any]]:
        """The rows of compiled regions."""
        self.enable(**{"log_format": "jsonl", "save_failures": False, **settings})
        with plumb.precision_check():
            for _ in range(times):
                run()
        table = self.finish()
        self.assertNotIn("went wrong", self.said)
        return {name[len("compiled::"):]: row for name, row in table.items() if name.startswith("compiled::")}

    def faults(self) -> List[Dict[str, Any]]:
        return [json.loads(line) for line in self.lines()]


class Modes(Compiled):
    def test_compiling_works_afterwards(self) -> None:
        before = flags()
        self.enable(max_checks=1)
        with plumb.precision_check():
            for _ in range(300):  # until it leaves by itself
                torch.ones(2).neg()
        self.assertEqual(flags(), before)
        self.assertEqual(_python_dispatch._get_current_dispatch_mode_stack(), [])
        torch.compile(self.model, fullgraph=True)(self.x)
        self.assertEqual(graphs(), 1)

    def test_blocks_of_threads_that_overlap(self) -> None:
        before, inside, leave = flags(), threading.Event(), threading.Event()
        self.enable()

        def other() -> None:
            with plumb.precision_check():
                inside.set()
                leave.wait(60)
                torch.ones(2).neg()
        thread = threading.Thread(target=other)
        with plumb.precision_check():
            thread.start()
            inside.wait(60)
        torch.compile(self.model, fullgraph=True)(self.x)  # while another thread watches
        self.assertEqual(graphs(), 1)
        leave.set()
        thread.join()
        self.assertEqual(flags(), before)

    def test_compiling_works_inside_and_changes_nothing(self) -> None:
        for dtype in (torch.float32, torch.bfloat16):
            for way in ("torch.compile(module)", "module.compile()", "function"):
                with self.subTest(way, dtype=dtype):
                    found, numbers = [], []
                    for watched in (False, True):
                        torch._dynamo.reset()
                        torch._dynamo.utils.counters.clear()
                        model, x = copy.deepcopy(self.model).to(dtype), self.x.to(dtype)
                        run: Callable[..., Any] = model
                        if way == "module.compile()":
                            model.compile(fullgraph=True)
                        else:
                            run = torch.compile(model if way != "function" else lambda x: model(x), fullgraph=True)
                        if watched:
                            rows = self.watch(lambda: numbers.append(step(model, run, x)))
                            self.assertEqual(len(rows), 2)
                            for row in rows.values():
                                self.assertEqual((row["Calls"], row["Checked"], row["Failed"]), (2, 2, 0))
                                self.assertIn(row["Verdict"], ("same", "rounding"))
                        else:
                            numbers += [step(model, run, x) for _ in range(2)]
                        found.append(graphs())
                    self.assertEqual(found, [1, 1])
                    for plain, watched in ((numbers[0], numbers[2]), (numbers[1], numbers[3])):
                        self.assertTrue(all(torch.equal(a, b) for a, b in zip(plain, watched)))

    def test_other_modes_keep_their_places(self) -> None:
        class Other(_python_dispatch.TorchDispatchMode):
            @classmethod
            def ignore_compile_internals(cls) -> bool:
                return True

            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                return func(*args, **(kwargs or {}))
        self.enable()
        run = torch.compile(self.model)
        with Other() as below, plumb.precision_check(), Other() as above:
            run(self.x)
            stack = _python_dispatch._get_current_dispatch_mode_stack()
            self.assertEqual([type(mode).__name__ for mode in stack], ["Other", "Watcher", "Other"])
            self.assertTrue(stack[0] is below and stack[2] is above)

    def test_what_a_region_raises(self) -> None:
        def refuses(x: torch.Tensor) -> torch.Tensor:
            raise KeyError("mine")
        self.enable()
        with plumb.precision_check():
            with self.assertRaisesRegex(KeyError, "mine"):
                torch.compile(refuses)(self.x)
            torch.ones(2).neg()
        self.assertIn("neg", self.finish())


class Boundary(Compiled):
    def test_wrong_compilers_are_found(self) -> None:
        wrong = {
            "last addmm": (backend(scaled(aten.addmm.default, 1.001, -1)), "Model"),
            "first addmm, hidden by the norm": (backend(scaled(aten.addmm.default, 1.001)), "Model.backward"),
            "gelu, hidden by the norm": (backend(scaled(aten.gelu.default, 1.001)), "Model.backward"),
            "gelu_backward": (backend(None, scaled(aten.gelu_backward.default, 1.01)), "Model.backward"),
            "mm": (backend(None, scaled(aten.mm.default, 1.001)), "Model.backward"),
        }
        x = self.x.clone().requires_grad_()
        for name, (compiler, where) in wrong.items():
            with self.subTest(name):
                torch._dynamo.reset()
                self.log.unlink(missing_ok=True)
                model = copy.deepcopy(self.model)
                run = torch.compile(model, backend=compiler, fullgraph=True)
                rows = self.watch(lambda: step(model, run, x))
                self.assertEqual(rows[where]["Failed"], 1, rows)
                self.assertEqual(rows[where]["Verdict"], "fault")
                self.assertIn("scaled by", self.faults()[0]["why"])

    def test_right_compilers_are_not_blamed(self) -> None:
        compilers = {"eager": "eager", "aot_eager": "aot_eager", "graphs as they are": backend(), "inductor": "inductor"}
        for name, compiler in compilers.items():
            for dtype in (torch.float32, torch.bfloat16, torch.float64):
                for training in (True, False):
                    with self.subTest(name, dtype=dtype, training=training):
                        torch._dynamo.reset()
                        model, x = copy.deepcopy(self.model).to(dtype).train(training), self.x.to(dtype)
                        run = torch.compile(model, backend=compiler)
                        rows = self.watch(lambda: step(model, run, x), 1)
                        self.assertEqual(rows["Model"]["Checked"], 1, self.said)
                        self.assertEqual({row["Failed"] for row in rows.values()}, {0})

    def test_what_a_function_holds_is_left_alone(self) -> None:
        seen, state, buffer, model = [], {"n": 0}, torch.zeros(3), self.model

        def counts(x: torch.Tensor) -> torch.Tensor:
            seen.append(1)
            state["n"] += 1
            buffer.add_(1)
            return model(x) + len(seen)
        rows = self.watch(lambda run=torch.compile(counts): run(self.x), 3)
        self.assertEqual((len(seen), state["n"], buffer.tolist()), (3, 3, [3, 3, 3]))
        self.assertEqual(int(model.batch.num_batches_tracked), 3)
        self.assertEqual(rows["counts"]["Failed"], 0)

    def test_arguments_that_are_written_into(self) -> None:
        z = torch.ones(4)
        rows = self.watch(lambda run=torch.compile(lambda z: z.mul_(2).sum()): run(z))
        self.assertEqual(z.tolist(), [4, 4, 4, 4])
        self.assertEqual((rows["lambda"]["Checked"], rows["lambda"]["Failed"]), (2, 0))

    def test_shapes_that_change_and_graphs_that_break(self) -> None:
        @torch.compile(dynamic=True)
        def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return (a @ b).softmax(-1)
        rows = self.watch(lambda: [product(torch.randn(n, 8), torch.randn(8, 5)) for n in (3, 4, 7)], 1)
        self.assertEqual((rows["product"]["Checked"], rows["product"]["Failed"]), (3, 0))

        model = self.model

        def broken(x: torch.Tensor) -> torch.Tensor:
            y = model(x)
            torch._dynamo.graph_break()
            return y.relu()
        rows = self.watch(lambda run=torch.compile(broken): step(model, run, self.x), 1)
        self.assertEqual((rows["broken"]["Checked"], rows["broken"]["Failed"]), (1, 0))
        self.assertIn("gradients: it is more than one graph", self.said)

    def test_what_is_not_checked_is_named(self) -> None:
        hooked = Model()
        hooked.register_forward_hook(lambda *_: None)
        large = nn.Linear(1100, 1000)
        for run, why in ((lambda x: F.dropout(x, 0.5), "it draws at random"),
                         (hooked, "its module has hooks, which would be called again")):
            torch._dynamo.reset()
            rows = self.watch(lambda: torch.compile(run)(self.x), 1)
            self.assertEqual(rows, {})
            self.assertIn(f"not checked, no reference: {why}", self.said)
        rows = self.watch(lambda: torch.compile(large)(torch.randn(2, 1100)), 1, max_elements=1000)
        self.assertEqual(rows, {})

    def test_names_choose(self) -> None:
        run = torch.compile(self.model)
        self.enable()
        with plumb.precision_check(include=["compiled::Model"]):
            run(self.x)
            self.x.neg()
        self.assertEqual(set(self.finish()), {"compiled::Model"})
        self.enable()
        with plumb.precision_check(exclude=["compiled::Model"]):
            run(self.x)
            self.x.neg()
        self.assertEqual(set(self.finish()), {"neg"})

    def test_inference_and_autocast(self) -> None:
        self.model.eval()
        with torch.inference_mode():
            rows = self.watch(lambda run=torch.compile(self.model): run(self.x))
        self.assertEqual((rows["Model"]["Checked"], rows["Model"]["Failed"]), (2, 0))
        torch._dynamo.reset()
        with torch.autocast("cpu", torch.bfloat16):
            rows = self.watch(lambda run=torch.compile(self.model): step(self.model, run, self.x))
        self.assertEqual({row["Failed"] for row in rows.values()}, {0})
        self.assertEqual(rows["Model"]["Checked"], 2)


class HigherOrder(Compiled):
    """Operators that take functions pass through."""

    def same(self, run: Callable[[], Any]) -> None:
        def tensors(value: Any) -> List[torch.Tensor]:
            return [value] if isinstance(value, torch.Tensor) else [x for item in value for x in tensors(item)]
        torch.manual_seed(1)
        plain = tensors(run())
        self.enable(save_failures=False)
        torch.manual_seed(1)
        with plumb.precision_check():
            got = tensors(run())
        table = self.finish()
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(plain, got)))
        self.assertEqual(len(plain), len(got))
        self.assertEqual([name for name, row in table.items() if row["Failed"]], [])
        self.assertNotIn("went wrong", self.said)

    def test_cond(self) -> None:
        self.same(lambda: torch.cond(self.x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (self.x,)))

    def test_while_loop(self) -> None:
        from torch._higher_order_ops.while_loop import while_loop
        self.same(lambda: while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 1.5), (torch.tensor(0), self.x)))

    def test_scan(self) -> None:
        from torch._higher_order_ops.scan import scan
        self.same(lambda: scan(lambda c, y: (c + y, c * y), torch.zeros(16), self.x, dim=0))

    def test_flex_attention(self) -> None:
        from torch.nn.attention.flex_attention import flex_attention
        q, k, v = (torch.randn(1, 2, 128, 16) for _ in range(3))
        causal = lambda s, b, h, i, j: torch.where(i >= j, s, -float("inf"))
        self.same(lambda: flex_attention(q, k, v, score_mod=causal))

    def test_without_a_compiler_around_them(self) -> None:
        from torch._higher_order_ops.cond import cond_op
        with torch.no_grad():
            self.same(lambda: cond_op(torch.tensor(True), lambda x: [x.sin()], lambda x: [x.cos()], [self.x]))
        self.assertIn("not checked, what is inside a higher-order operator is not seen: higher_order::cond", self.said)

    def test_checkpoint(self) -> None:
        from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
        model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.3), nn.Linear(32, 4))
        kept = lambda: create_selective_checkpoint_contexts([aten.addmm.default])

        def run(**options: Any) -> List[torch.Tensor]:
            x = self.x.clone().requires_grad_()
            result = checkpoint(model, x, **options)
            return [result, *torch.autograd.grad(result.sum(), [x, *model.parameters()])]
        self.same(lambda: run(use_reentrant=False))
        self.same(lambda: run(use_reentrant=False, context_fn=kept))

    def test_tracing(self) -> None:
        from torch.fx.experimental.proxy_tensor import make_fx
        model = self.model.eval()
        self.same(lambda: make_fx(lambda x: model(x))(self.x)(self.x))
        self.same(lambda: torch.export.export(model, (self.x,)).module()(self.x))
        self.assertIn("fake tensors have no values", self.said)


if __name__ == "__main__":
    unittest.main()
